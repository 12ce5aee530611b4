#!/usr/bin/env python3
"""Clients of PostgreSQL see the foreign tables of tamis_fdw: SQLAlchemy, pgcli and pgjdbc.

usage: clients_test.py TAMIS LIBRARY [--pgjdbc JAR]

The Python packages are those of the interpreter that runs this test; what is not installed is skipped:

    python3 -m venv v && v/bin/pip install psycopg2-binary sqlalchemy pgcli
    mvn dependency:get -Dartifact=org.postgresql:postgresql:42.7.4
    v/bin/python tests/postgres/clients_test.py build/dev/bin/tamis build/dev/lib/tamis_fdw.so \
        --pgjdbc ~/.m2/repository/org/postgresql/postgresql/42.7.4/postgresql-42.7.4.jar
"""

import importlib.util
import os
import socket
import subprocess
import sys
import unittest

PGJDBC = None
if "--pgjdbc" in sys.argv:
    place = sys.argv.index("--pgjdbc")
    PGJDBC = os.path.abspath(sys.argv[place + 1])
    del sys.argv[place:place + 2]

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402  pylint: disable=wrong-import-position
import tamis_fdw_test  # noqa: E402  pylint: disable=wrong-import-position


def has(package):
    return importlib.util.find_spec(package) is not None


class ClientsTest(tamis_fdw_test.PostgresTest):
    @classmethod
    def setUpClass(cls):
        # Java has no sockets of the file system. The server and libpq read the variable.
        with socket.create_server(("127.0.0.1", 0)) as free:
            os.environ["PGPORT"] = str(free.getsockname()[1])
        cls.installation = cls.enterClassContext(servers.Installation(tamis_fdw_test.LIBRARY))
        cls.server = cls.enterClassContext(servers.postgres.Postgres("listen_addresses=127.0.0.1", programs=cls.installation.binaries))

    @unittest.skipUnless(has("sqlalchemy"), "SQLAlchemy is not installed")
    def test_sqlalchemy_describes_reads_and_changes_a_table(self):
        import sqlalchemy  # pylint: disable=import-outside-toplevel,import-error
        engine = sqlalchemy.create_engine("postgresql+psycopg2://", creator=self.server.connect)
        inspector = sqlalchemy.inspect(engine)
        self.assertIn("orders", inspector.get_foreign_table_names())
        types = {column["name"]: str(column["type"]) for column in inspector.get_columns("orders")}
        self.assertEqual((types["id"], types["customer"], types["price"]), ("BIGINT", 'TEXT COLLATE "C"', "NUMERIC"))
        orders = sqlalchemy.Table("orders", sqlalchemy.MetaData(), autoload_with=engine)
        with engine.begin() as connection:
            connection.execute(orders.insert(), [{"id": 7, "customer": "ann"}, {"id": 8, "customer": "ann"}])
        with engine.begin() as connection:
            connection.execute(orders.update().where(orders.c.id == 7).values(cents=70))
        with engine.begin() as connection:  # a transaction reads no table that it has changed
            connection.execute(orders.delete().where(orders.c.id == 8))
        with engine.connect() as connection:
            found = connection.execute(
                sqlalchemy.select(orders.c.id, orders.c.cents).where(orders.c.customer.in_(["ann", "lee"])).order_by(orders.c.id))
            self.assertEqual([tuple(row) for row in found], [(2, 900), (7, 70)])
        engine.dispose()

    @unittest.skipUnless(has("pgcli"), "pgcli is not installed")
    def test_pgcli_lists_and_reads_a_table(self):
        done = subprocess.run(
            [sys.executable, "-m", "pgcli.main", "--no-password", "--less-chatty", self.server.dsn],
            input="\\pset pager off\n\\d orders\nSELECT customer, cents FROM orders WHERE id = 2;\n\\q\n",
            capture_output=True, text=True, timeout=120, check=False,
            env=dict(os.environ, PGCLI_CONFIG_HOME=self.store.directory, HOME=self.store.directory, PAGER="cat"))
        self.assertIn("lee", done.stdout, done.stderr)
        self.assertRegex(done.stdout, r"price\s*\|\s*numeric")

    @unittest.skipUnless(PGJDBC, "--pgjdbc names no jar")
    def test_pgjdbc_describes_reads_and_changes_a_table(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "PgjdbcClient.java")
        url = f"jdbc:postgresql://127.0.0.1:{os.environ['PGPORT']}/postgres?user=tamis"
        done = subprocess.run(["java", "-cp", PGJDBC, program, url], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "orders is a FOREIGN TABLE", "id int8", "customer text", "cents int8", "at timestamptz", "price numeric", "paid bool",
            "weight float8", "mark bytea", "batch 1 1 1", "array 7 8 9", "updated 1", "deleted 2", "fetched 1000", "rolled back 3"])


if __name__ == "__main__":
    unittest.main()
