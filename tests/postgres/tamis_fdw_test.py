#!/usr/bin/env python3
"""tamis_fdw in a real PostgreSQL: definitions, what goes down, changes and transactions, trouble.

usage: tamis_fdw_test.py TAMIS LIBRARY
"""

import http.server
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request

import psycopg2
import psycopg2.errors

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402  pylint: disable=wrong-import-position

TAMIS, LIBRARY = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]

ORDERS = """CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, at TIMESTAMP, price DECIMAL, paid BOOLEAN,
            weight DOUBLE, mark BLOB)"""
ROWS = """INSERT INTO orders VALUES
    (1, 'kim', 250, '2026-01-02 03:04:05.5', '1.10', 1, 1.5, x'00ff'),
    (2, 'lee', 900, '2026-06-01 00:00:00', '12345678901234567890.5', 0, 9e999, NULL),
    (3, 'kim', 120, NULL, NULL, NULL, NULL, NULL)"""


class PostgresTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.installation = cls.enterClassContext(servers.Installation(LIBRARY))
        cls.server = cls.enterClassContext(servers.postgres.Postgres("max_connections=150", programs=cls.installation.binaries))

    def setUp(self):
        self.store = self.enterContext(servers.Store(TAMIS))
        self.store.run("sql", ORDERS, "CREATE INDEX customer ON orders(customer)", "CREATE INDEX cents ON orders(cents)",
                       "CREATE TABLE places(region TEXT, number INTEGER, name TEXT, PRIMARY KEY(region, number))", ROWS)
        self.store.start("--write")
        self.connection = self.connect()
        self.cursor = self.connection.cursor()
        self.run_sql("DROP EXTENSION IF EXISTS tamis_fdw CASCADE", "CREATE EXTENSION tamis_fdw",
                     f"CREATE SERVER shop FOREIGN DATA WRAPPER tamis_fdw OPTIONS (url '{self.store.url}')",
                     "IMPORT FOREIGN SCHEMA shop FROM SERVER shop INTO public")

    def connect(self, autocommit=True):
        connection = self.server.connect(autocommit)
        self.addCleanup(connection.close)
        return connection

    def run_sql(self, *statements):
        for statement in statements:
            self.cursor.execute(statement)

    def rows(self, statement, *arguments, cursor=None):
        cursor = cursor or self.cursor
        cursor.execute(statement, *arguments)
        return cursor.fetchall()

    def refused(self, code, text, *statements, cursor=None):
        """The last of the statements fails with the SQLSTATE and a message that holds the text."""
        cursor = cursor or self.cursor
        for statement in statements[:-1]:
            cursor.execute(statement)
        with self.assertRaises(psycopg2.Error) as raised:
            cursor.execute(statements[-1])
        self.assertIn(text, str(raised.exception))
        self.assertEqual(raised.exception.pgcode, code, raised.exception)
        return str(raised.exception)

    def plan(self, statement, options="VERBOSE, COSTS OFF"):
        return "\n".join(row[0] for row in self.rows(f"EXPLAIN ({options}) {statement}"))

    def remote(self, statement):
        """The statements that the plan sends."""
        return [line.split("Remote SQL: ")[1] for line in self.plan(statement).splitlines() if "Remote SQL: " in line]

    def stored(self, statement):
        """Rows of the store, past PostgreSQL."""
        self.store.stop()
        text = self.store.run("sql", "--format", "csv", statement)
        self.store.start("--write")
        return text.splitlines()[1:]


class DefinitionsTest(PostgresTest):
    def test_import_makes_columns_of_the_types_that_hold_the_values(self):
        self.assertEqual(
            self.rows("SELECT column_name, data_type, collation_name, is_nullable FROM information_schema.columns "
                      "WHERE table_name = 'orders' ORDER BY ordinal_position"),
            [("id", "bigint", None, "NO"), ("customer", "text", "C", "YES"), ("cents", "bigint", None, "YES"),
             ("at", "timestamp with time zone", None, "YES"), ("price", "numeric", None, "YES"), ("paid", "boolean", None, "YES"),
             ("weight", "double precision", None, "YES"), ("mark", "bytea", None, "YES")])
        self.assertEqual(
            self.rows("SELECT id, at AT TIME ZONE 'UTC', price::text, paid, weight, mark::text, customer FROM orders ORDER BY 1")[:2],
            self.rows("""SELECT * FROM (VALUES
                (1, '2026-01-02 03:04:05.5'::timestamp, '1.1', true, 1.5, '\\x00ff', 'kim'),
                (2, '2026-06-01', '12345678901234567890.5', false, 'inf'::float8, NULL, 'lee')) v"""))

    def test_import_keeps_to_its_lists_and_options(self):
        tables = "SELECT foreign_table_name::text FROM information_schema.foreign_tables WHERE foreign_table_schema = 'other'"
        for clause, expected in (("LIMIT TO (places, none)", ["places"]), ("EXCEPT (places)", ["orders"])):
            self.run_sql("CREATE SCHEMA other", f"IMPORT FOREIGN SCHEMA x {clause} FROM SERVER shop INTO other")
            self.assertEqual(self.rows(tables), [(name,) for name in expected])
            self.run_sql("DROP SCHEMA other CASCADE")
        self.run_sql("CREATE SCHEMA other",
                     "IMPORT FOREIGN SCHEMA x FROM SERVER shop INTO other OPTIONS (c_collation 'false', not_null 'false')")
        self.assertEqual(
            self.rows("SELECT collation_name, is_nullable FROM information_schema.columns WHERE table_schema = 'other' "
                      "AND table_name = 'places' ORDER BY ordinal_position"), [(None, "YES")] * 3)
        self.run_sql("DROP SCHEMA other CASCADE")
        self.refused("HV00D", "its options are: computed".replace("its", "Its"),
                     "IMPORT FOREIGN SCHEMA x FROM SERVER shop INTO public OPTIONS (colour 'red')")

    def test_wrong_options_are_refused_with_a_reason(self):
        server = "CREATE SERVER s FOREIGN DATA WRAPPER tamis_fdw OPTIONS "
        url = "url 'http://127.0.0.1:7470'"
        table = "CREATE FOREIGN TABLE f (a bigint) SERVER shop OPTIONS "
        mapping = "CREATE USER MAPPING FOR tamis SERVER shop OPTIONS "
        for statement, code, text in (
                ("CREATE SERVER s FOREIGN DATA WRAPPER tamis_fdw", "HV00J", 'needs the option "url"'),
                (server + "(url 'localhost:7470')", "HV024", "such as http://127.0.0.1:7470"),
                (server + "(url 'http://user@host')", "HV024", "without user"),
                (server + f"({url}, host 'x')", "HV00D", '"host" is no option of a server'),
                (server + f"({url}, timeout_ms '-1')", "HV024", "not negative"),
                (server + f"({url}, invalid_text 'replace')", "HV024", "error or null"),
                (server + f"({url}, updatable 'perhaps')", "HV024", "true or false"),
                (server + f"({url}, token '0123456789abcdef')", "HV00D", '"token" is no option of a server'),
                (mapping + "(token 'short')", "HV024", "at least 16 characters"),
                (server + f"({url}, ca 'ca.pem')", "HV024", "an absolute path"),
                (table + "(column_name 'x')", "HV00D", "Its options are: table_name"),
                (mapping + "(user 'x')", "HV00D", "Its options are: cert, key, token_file, token"),
                ("ALTER FOREIGN DATA WRAPPER tamis_fdw OPTIONS (ADD x 'y')", "HV00D", "It has no options")):
            self.refused(code, text, statement)

    def test_only_those_who_may_read_files_name_one(self):
        self.run_sql("DROP ROLE IF EXISTS clerk", "CREATE ROLE clerk", "GRANT USAGE ON FOREIGN SERVER shop TO clerk",
                     "SET ROLE clerk")
        self.refused("42501", "pg_read_server_files", "CREATE USER MAPPING FOR clerk SERVER shop OPTIONS (token_file '/etc/passwd')")
        self.run_sql("CREATE USER MAPPING FOR clerk SERVER shop OPTIONS (token '0123456789abcdef')", "RESET ROLE",
                     "DROP ROLE IF EXISTS other", "CREATE ROLE other", "SET ROLE other")
        self.assertEqual(self.rows("SELECT umoptions FROM pg_user_mappings WHERE usename = 'clerk'"), [(None,)])
        self.run_sql("RESET ROLE", "DROP USER MAPPING FOR clerk SERVER shop", "DROP OWNED BY clerk", "DROP ROLE clerk", "DROP ROLE other")

    def test_columns_that_the_store_has_not_or_that_cannot_hold_its_values_are_named(self):
        self.run_sql("CREATE FOREIGN TABLE f (id bigint, x text OPTIONS (column_name 'none'), customer integer, cents integer) "
                     "SERVER shop OPTIONS (table_name 'orders')")
        self.refused("HV005", 'has a column "none", and table "orders" of the store has not', "SELECT x FROM f")
        self.run_sql("ALTER FOREIGN TABLE f ALTER x OPTIONS (SET column_name 'price')", "ALTER FOREIGN TABLE f ALTER x TYPE date")
        self.refused("HV004", "is date, which cannot hold the decimal of the store", "SELECT x FROM f")
        self.refused("22P02", 'invalid input syntax for type integer: "kim"', "SELECT customer FROM f")
        self.assertEqual(self.rows("SELECT sum(cents) FROM f WHERE cents > 200"), [(1150,)])
        self.run_sql("CREATE FOREIGN TABLE g (a bigint) SERVER shop")
        self.refused("HV00R", 'no table "g"', "SELECT * FROM g")

    def test_domains_and_narrower_types_are_checked(self):
        self.run_sql("CREATE DOMAIN instant AS timestamp(0) with time zone CHECK (VALUE > '2026-02-01')", "CREATE DOMAIN raw AS bytea",
                     "CREATE FOREIGN TABLE f (id smallint, at instant, mark raw, customer varchar(2)) SERVER shop "
                     "OPTIONS (table_name 'orders')", "SET timezone = 'Asia/Tokyo'")
        self.assertEqual(self.rows("SELECT at::text, mark::bytea::text FROM f WHERE id = 2"), [("2026-06-01 09:00:00+09", None)])
        self.assertEqual(self.rows("SELECT mark::bytea::text FROM f WHERE id = 1"), [("\\x00ff",)])
        self.refused("23514", "violates check constraint", "SELECT at FROM f WHERE id = 1")
        self.refused("22001", "value too long", "SELECT customer FROM f WHERE id = 1")
        self.run_sql("DROP FOREIGN TABLE f", "DROP DOMAIN instant, raw")

    def test_definitions_are_dumped_and_restored(self):
        dump = subprocess.run([os.path.join(self.installation.binaries, "pg_dump"), "--schema-only", self.server.dsn],
                              capture_output=True, text=True, check=True).stdout
        for line in ("CREATE EXTENSION IF NOT EXISTS tamis_fdw", "CREATE SERVER shop FOREIGN DATA WRAPPER tamis_fdw",
                     "CREATE FOREIGN TABLE public.orders"):
            self.assertIn(line, dump)
        self.run_sql("DROP EXTENSION tamis_fdw CASCADE")
        subprocess.run([os.path.join(self.installation.binaries, "psql"), "--quiet", "--set=ON_ERROR_STOP=1", self.server.dsn],
                       input=dump, capture_output=True, text=True, check=True)
        self.assertEqual(self.rows("SELECT count(*) FROM public.orders"), [(3,)])

    def test_an_encoding_other_than_utf8_is_refused(self):
        self.run_sql("DROP DATABASE IF EXISTS latin", "CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0")
        connection = psycopg2.connect(self.server.dsn.replace("dbname=postgres", "dbname=latin"))
        self.addCleanup(connection.close)
        cursor = connection.cursor()
        self.refused("0A000", "needs a database with encoding UTF8", "CREATE EXTENSION tamis_fdw",
                     "CREATE SERVER s FOREIGN DATA WRAPPER tamis_fdw OPTIONS (url 'http://127.0.0.1:1')",
                     "CREATE FOREIGN TABLE t (a bigint) SERVER s", "SELECT * FROM t", cursor=cursor)

    def test_token_and_certificate_reach_the_server(self):
        self.store.stop()
        work = self.store.directory
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       cwd=work, check=True, capture_output=True)
        with open(os.path.join(work, "token"), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        os.chmod(work, 0o755)
        self.store.start("--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'https://localhost:{self.store.port}')")
        self.refused("HV00N", "certificate", "SELECT count(*) FROM orders")
        self.run_sql(f"ALTER SERVER shop OPTIONS (ADD ca '{work}/cert.pem')")
        self.refused("42501", "CREATE USER MAPPING", "SELECT count(*) FROM orders")
        self.run_sql("CREATE USER MAPPING FOR tamis SERVER shop OPTIONS (token 'fedcba9876543210')")
        self.refused("42501", "token", "SELECT count(*) FROM orders")
        self.run_sql(f"ALTER USER MAPPING FOR tamis SERVER shop OPTIONS (DROP token, ADD token_file '{work}/token')")
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])
        self.run_sql(f"ALTER USER MAPPING FOR tamis SERVER shop OPTIONS (SET token_file '{work}/none')")
        self.refused("58P01", "cannot read the token", "SELECT count(*) FROM orders")
        self.assertEqual(self.rows("SELECT pg_relation_is_updatable('orders'::regclass, false)"), [(28,)])


    def test_client_certificates_and_wrong_servers(self):
        self.store.stop()
        work = self.store.directory
        for name in "localhost", "client", "stranger":
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".pem",
                            "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost"],
                           cwd=work, check=True, capture_output=True)
            os.chmod(os.path.join(work, name + ".key"), 0o644)
        os.chmod(work, 0o755)
        self.store.start("--write", "--tls-cert", "localhost.pem", "--tls-key", "localhost.key", "--tls-client-ca", "client.pem")
        at = f"localhost:{self.store.port}"
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'https://{at}', ADD ca '{work}/localhost.pem')")
        count = "SELECT count(*) FROM orders"
        # TLS 1.3 refuses a client after its request was sent.
        self.refused("08006", "certificate required", count)
        self.run_sql(f"ALTER SERVER shop OPTIONS (ADD cert '{work}/stranger.pem', ADD key '{work}/stranger.key')")
        self.refused("08006", "unknown ca", count)
        # The certificate of the user comes before that of the server.
        self.run_sql(f"CREATE USER MAPPING FOR tamis SERVER shop OPTIONS (cert '{work}/client.pem', key '{work}/client.key')")
        self.assertEqual(self.rows(count), [(3,)])
        self.run_sql("INSERT INTO orders (id) VALUES (70)")
        self.assertEqual(self.rows(count), [(4,)])
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'https://127.0.0.1:{self.store.port}')")
        self.refused("HV00N", "127.0.0.1", count)  # the name is not that of the certificate
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'https://{at}', SET ca '{work}/client.pem')")
        self.refused("HV00N", "certificate", count)


class QueriesTest(PostgresTest):
    def test_conditions_go_down_where_both_mean_the_same(self):
        self.run_sql("CREATE FOREIGN TABLE natural_orders (id bigint, customer text COLLATE \"en-x-icu\") "
                     "SERVER shop OPTIONS (table_name 'orders')")
        for table, condition, sent in (
                ("orders", "customer = 'kim'", "`customer` = 'kim'"),
                ("orders", "customer > 'kim'", "`customer` > 'kim'"),
                ("natural_orders", "customer = 'kim'", "`customer` = 'kim'"),
                ("natural_orders", "customer > 'kim'", None),
                ("orders", "customer LIKE 'ki%m'", "`customer` >= 'ki' AND `customer` < 'kj'"),
                ("orders", "customer ILIKE 'ki%'", None),
                ("orders", "cents BETWEEN 1 AND 5::int2", '`cents` >= 1 AND `cents` <= 5'),
                ("orders", "cents + 0 = 5", None),
                ("orders", "5 < cents", '`cents` > 5'),
                ("orders", "price > 1.5", '`price` > 1.5'),
                ("orders", "price <> 1.5", None),
                ("orders", "price IN (1, 2)", None),
                ("orders", "price = 1.5 OR cents = 1", None),
                ("orders", "cents IN (1, 2) OR NOT paid", '(`cents` IN ({1,2}) OR NOT (`paid` = 1))'),
                ("orders", "paid IS NOT TRUE AND mark IS NOT NULL", '`paid` IS NOT 1 AND `mark` IS NOT NULL'),
                ("orders", "at >= '2026-01-01 00:00:00+00'", "`at` >= "),
                ("orders", "random() < 2", None)):
            text, = self.remote(f"SELECT id FROM {table} WHERE {condition}")
            if sent is None:
                self.assertNotIn("WHERE", text, condition)
            else:
                self.assertIn(" WHERE " + sent, text)

    def test_values_that_the_store_cannot_have_compare_as_postgresql_says(self):
        for condition, ids in (("weight < 'NaN'", [1, 2]), ("weight >= 'NaN'", []), ("weight <> 'NaN'", [1, 2]), ("weight < 'Infinity'", [1]),
                               ("NOT weight < 'NaN'", []), ("weight <> ALL (ARRAY['NaN'::double precision])", [1, 2]),
                               ("weight = ANY (ARRAY['NaN', 'Infinity']::double precision[])", [2]),
                               ("(weight <> ALL (ARRAY['NaN'::double precision])) IS NULL", [3]), ("price > 'NaN'", []),
                               ("price < 'NaN'", [1, 2]), ("price > '-Infinity'", [1, 2]), ("at < 'infinity'", [1, 2]),
                               ("at <= '-infinity' OR id = 3", [3]), ("at > '20000-01-01'", []), ("at > '0044-03-15 BC'", [1, 2])):
            self.assertEqual(self.rows(f"SELECT id FROM orders WHERE {condition} ORDER BY id"), [(number,) for number in ids], condition)

    def test_order_limit_and_aggregates_go_down(self):
        for statement, sent in (
                ("SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 1", 'SELECT `id` FROM `orders` ORDER BY `id` LIMIT 2 OFFSET 1'),
                ("SELECT cents FROM orders ORDER BY cents DESC NULLS LAST LIMIT 2",
                 'SELECT `cents` FROM `orders` ORDER BY `cents` DESC LIMIT 2'),
                ("SELECT cents FROM orders WHERE cents > 5 ORDER BY cents LIMIT 2",
                 'SELECT `cents` FROM `orders` WHERE `cents` > 5 ORDER BY `cents` LIMIT 2'),
                ("SELECT id FROM orders WHERE cents + 1 > 5 LIMIT 2", 'SELECT `id`, `cents` FROM `orders`'),
                ("SELECT count(*) FROM orders WHERE customer = 'kim'", "SELECT count(*) FROM `orders` WHERE `customer` = 'kim'"),
                ("SELECT customer, sum(cents), avg(cents) FROM orders GROUP BY customer",
                 'SELECT `customer`, sum(`cents` / 4294967296), sum(`cents` % 4294967296), sum(`cents` / 4294967296), '
                 'sum(`cents` % 4294967296), count(`cents`) FROM `orders` GROUP BY `customer`'),
                ("SELECT sum(weight) FROM orders", 'SELECT `weight` FROM `orders`'),
                ("SELECT max(price) FROM orders", 'SELECT `price` FROM `orders`')):
            self.assertEqual(self.remote(statement), [sent])
        self.assertEqual(self.rows("SELECT customer, sum(cents), avg(cents)::text FROM orders GROUP BY 1 ORDER BY 1"),
                         [("kim", 370, "185.0000000000000000"), ("lee", 900, "900.0000000000000000")])

    def test_columns_that_round_are_checked_here(self):
        self.run_sql("CREATE FOREIGN TABLE f (id bigint, price numeric(30, 0), at timestamp(0) with time zone) SERVER shop "
                     "OPTIONS (table_name 'orders')")
        self.assertEqual(self.rows("SELECT id, price::text FROM f WHERE price = 1"), [(1, "1")])
        self.assertEqual(self.rows("SELECT id FROM f WHERE at = '2026-01-02 03:04:06+00'"), [(1,)])
        self.run_sql("UPDATE f SET at = '2026-01-03 00:00:00+00' WHERE id = 1", "DROP FOREIGN TABLE f")
        self.assertEqual(self.rows("SELECT price::text FROM orders WHERE at = '2026-01-03 00:00:00+00'"), [("1.1",)])

    def test_sums_that_do_not_fit_in_64_bits_are_exact(self):
        self.run_sql("INSERT INTO orders (id, customer, cents) VALUES (10, 'big', 9223372036854775807), (11, 'big', 9223372036854775807),"
                     " (12, 'small', -9223372036854775808), (13, 'small', -1)")
        self.assertEqual(self.rows("SELECT customer, sum(cents)::text FROM orders WHERE id >= 10 GROUP BY 1 ORDER BY 1"),
                         [("big", "18446744073709551614"), ("small", "-9223372036854775809")])

    def test_a_join_asks_once_for_each_outer_row(self):
        self.run_sql("CREATE TEMP TABLE wanted AS SELECT 'lee'::text COLLATE \"C\" AS customer", "ANALYZE wanted",
                     "INSERT INTO orders (id, customer) SELECT n, 'c' || n FROM generate_series(100, 3000) n", "ANALYZE orders")
        statement = "SELECT o.id FROM wanted w JOIN orders o ON o.customer = w.customer"
        self.assertIn('`customer` = ?', self.remote(statement)[0])
        self.assertEqual(self.rows(statement), [(2,)])

    def test_explain_analyze_tells_what_the_search_did(self):
        plan = self.plan("SELECT id FROM orders WHERE customer = 'kuno'", "ANALYZE, COSTS OFF, TIMING OFF")
        for line in ("Requests: 1", "Index: customer", "Servers: 0 of 1 asked", "Regions: 0 of 1 asked, excluded: 1 by filter",
                     "Read: 0 index entries, 0 rows"):
            self.assertIn(line, plan)
        plan = self.plan("SELECT count(*) FROM orders", "VERBOSE, COSTS OFF")
        self.assertIn("Relations: Aggregate on (orders)", plan)

    def test_analyze_gives_the_planner_its_statistics(self):
        self.run_sql("INSERT INTO orders (id, customer) SELECT n, 'c' || n % 7 FROM generate_series(100, 1099) n", "ANALYZE orders")
        self.assertEqual(self.rows("SELECT reltuples FROM pg_class WHERE relname = 'orders'"), [(1003,)])
        self.assertEqual(self.rows("SELECT n_distinct FROM pg_stats WHERE tablename = 'orders' AND attname = 'customer'"), [(9,)])

    def test_texts_that_postgresql_cannot_hold_are_errors_or_null(self):
        self.store.stop()
        self.store.run("sql", "INSERT INTO orders(id, customer) VALUES (7, CAST(x'61ff' AS TEXT)), (8, 'a' || char(0))")
        self.store.start("--write")
        text = self.refused("22021", 'column "customer" has a value that is not UTF-8', "SELECT id, customer FROM orders WHERE id = 7")
        self.assertIn("id = 7", text)
        self.refused("22021", "contains a NUL character", "SELECT id, customer FROM orders WHERE id = 8")
        self.assertEqual(self.rows("SELECT id FROM orders WHERE id IN (7, 8)"), [(7,), (8,)])
        self.run_sql("ALTER FOREIGN TABLE orders OPTIONS (ADD invalid_text 'null')")
        self.assertEqual(self.rows("SELECT id, customer FROM orders WHERE id > 2 ORDER BY 1"), [(3, "kim"), (7, None), (8, None)])
        # PostgreSQL sees NULL there, the store a text.
        self.assertEqual(self.rows("SELECT id FROM orders WHERE customer IS NULL ORDER BY 1"), [(7,), (8,)])
        self.assertEqual(self.rows("SELECT id FROM orders WHERE customer <> 'kim' ORDER BY 1"), [(2,)])
        self.assertEqual(self.rows("SELECT count(customer), count(DISTINCT customer), max(customer) FROM orders"), [(3, 2, "lee")])
        self.run_sql("UPDATE orders SET cents = 7 WHERE id = 7")
        self.assertEqual(self.stored("SELECT id, cents, hex(customer) FROM orders WHERE id = 7"), ["7,7,61FF"])

    def test_a_table_that_was_made_anew_is_not_asked_with_the_old_plan(self):
        self.run_sql("PREPARE asked AS SELECT id FROM orders WHERE cents > 200 ORDER BY id", "SET plan_cache_mode = force_generic_plan")
        self.assertEqual(self.rows("EXECUTE asked"), [(1,), (2,)])
        self.store.stop()
        self.store.run("sql", "DROP TABLE orders", "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, cents TEXT)",
                       "INSERT INTO orders VALUES (1, 'kim', '1000')")
        self.store.start("--write")
        self.refused("55000", "was dropped and created again", "EXECUTE asked")
        self.run_sql("ALTER FOREIGN TABLE orders ALTER cents TYPE text")
        self.assertEqual(self.rows("SELECT id FROM orders WHERE cents > '200'"), [])

    def test_a_join_is_checked_again_when_the_other_row_has_changed_meanwhile(self):
        self.run_sql("CREATE TABLE chosen (id bigint, wanted bigint, found bigint)", "INSERT INTO chosen VALUES (1, 1, NULL)",
                     "ANALYZE chosen", "INSERT INTO orders (id) SELECT n FROM generate_series(1000, 3000) n", "ANALYZE orders")
        other = self.connect(autocommit=False)
        other.cursor().execute("UPDATE chosen SET wanted = 2 WHERE id = 1")
        statement = "UPDATE chosen SET found = o.id FROM orders o WHERE o.id = chosen.wanted"
        self.assertIn("`id` = ?", self.remote(statement)[0])
        waiting = threading.Thread(target=self.connect().cursor().execute, args=(statement,))
        waiting.start()
        while not self.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
            pass
        other.commit()
        waiting.join()
        # Order 1 is no longer wanted, and order 2 was not read.
        self.assertEqual(self.rows("SELECT wanted, found FROM chosen"), [(2, None)])
        self.run_sql("DROP TABLE chosen")

    def test_a_condition_without_columns_holds_for_aggregates(self):
        self.run_sql("SET plan_cache_mode = force_generic_plan", "PREPARE q(bool) AS SELECT count(*) FROM orders WHERE $1",
                     "PREPARE l(bool) AS SELECT id FROM orders WHERE $1 ORDER BY id LIMIT 1")
        self.assertEqual(self.rows("EXECUTE q(false)") + self.rows("EXECUTE q(true)"), [(0,), (3,)])
        self.assertEqual(self.rows("EXECUTE l(false)") + self.rows("EXECUTE l(true)"), [(1,)])
        self.run_sql("DROP ROLE IF EXISTS boss", "CREATE ROLE boss", "DROP ROLE IF EXISTS clerk", "CREATE ROLE clerk",
                     "CREATE VIEW shown AS SELECT * FROM orders WHERE pg_has_role('boss', 'member')", "GRANT SELECT ON shown TO clerk",
                     "SET ROLE clerk")
        self.assertEqual(self.rows("SELECT sum(cents) FROM shown"), [(None,)])
        self.run_sql("RESET ROLE", "DROP OWNED BY clerk", "DROP ROLE clerk, boss")

    def test_times_outside_of_the_years_of_conditions_are_compared_here(self):
        self.run_sql("SET plan_cache_mode = force_generic_plan", "PREPARE later(timestamptz) AS SELECT id FROM orders WHERE at > $1",
                     "PREPARE same(timestamptz[]) AS SELECT id FROM orders WHERE at = ANY ($1)")
        for condition in ("at > '20000-01-01'", "at IN ('20000-01-01', '0044-03-15 BC')"):
            self.assertNotIn("WHERE", self.remote(f"SELECT id FROM orders WHERE {condition}")[0])
        self.assertEqual(self.rows("EXECUTE later('-infinity')"), [(1,), (2,)])
        self.refused("22008", "outside of the years 0 to 9999", "EXECUTE later('20000-01-01')")
        self.refused("22008", "outside of the years 0 to 9999", "EXECUTE same('{0044-03-15 BC}')")

    def test_conditions_that_are_too_many_for_the_server_are_checked_here(self):
        for condition in (" OR ".join(f"(id = {n} AND cents = {n})" for n in range(300)) + " OR id = 2",
                          " AND ".join(f"id <> {n}" for n in range(10, 310)) + " AND id = 2",
                          " AND ".join(f"customer LIKE 'le%{'%' * n}'" for n in range(120)),
                          f"id IN ({', '.join(map(str, range(1000, 41000)))}) OR id = 2"):
            self.assertEqual(self.rows(f"SELECT id FROM orders WHERE {condition} ORDER BY id LIMIT 5"), [(2,)])
            self.assertEqual(self.rows(f"SELECT count(*) FROM orders WHERE {condition}"), [(1,)])

    def test_long_arrays_go_down_as_one_parameter(self):
        self.run_sql("PREPARE long_ids(bigint[]) AS SELECT id FROM orders WHERE id = ANY($1) ORDER BY id",
                     "PREPARE long_texts(text[]) AS SELECT id FROM orders WHERE customer <> ALL($1) ORDER BY id",
                     "PREPARE long_times(timestamptz[]) AS SELECT count(*) FROM orders WHERE at = ANY($1)",
                     "SET plan_cache_mode = force_generic_plan")
        def rows(statement, values):
            quoted = ",".join("NULL" if value is None else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
            return self.rows(f"EXECUTE {statement}(%s)", ("{" + quoted + "}",))

        for count in 1000, 1001, 40000, 200000:
            self.assertEqual(rows("long_ids", range(2, count + 2)), [(2,), (3,)])
            texts = [f'k"\\{n}' for n in range(count - 1)] + ["kim"]
            self.assertEqual(rows("long_texts", texts), [(2,)])
            self.assertEqual(rows("long_texts", texts + [None]), [])
        self.run_sql("UPDATE orders SET at = '2026-01-02 03:04:05.678901+00' WHERE id = 1")
        times = [f"{year}-01-02 03:04:05.678901+00" for year in range(1000, 3001)]
        self.assertEqual(rows("long_times", times), [(1,)])
        literal = "{" + ",".join(map(str, range(2, 41002))) + "}"
        plan = self.plan(f"SELECT id FROM orders WHERE id = ANY('{literal}'::bigint[])")
        self.assertNotIn("Filter", plan)

    def test_the_prefix_without_a_next_one_has_no_upper_bound(self):
        self.run_sql("INSERT INTO orders (id, customer) VALUES (50, chr(1114111) || 'a')")
        self.assertEqual(self.rows("SELECT id FROM orders WHERE customer LIKE chr(1114111) || '%'"), [(50,)])
        self.assertEqual(self.remote("SELECT id FROM orders WHERE customer LIKE chr(1114111) || '%'")[0].count("`customer` <"), 0)

    def test_a_view_asks_with_the_rights_of_its_owner(self):
        self.run_sql("DROP ROLE IF EXISTS reader", "CREATE ROLE reader", "CREATE VIEW shown AS SELECT id FROM orders",
                     "GRANT SELECT ON shown TO reader", "SET ROLE reader")
        self.assertEqual(self.rows("SELECT count(*) FROM shown"), [(3,)])
        self.refused("42501", "permission denied", "SELECT id FROM orders")
        self.run_sql("RESET ROLE", "DROP OWNED BY reader", "DROP ROLE reader")


class ChangesTest(PostgresTest):
    def test_rows_are_inserted_updated_and_deleted(self):
        self.run_sql("INSERT INTO orders VALUES (4, E'it''s \"é\"\\n', -5, '2026-01-02 03:04:05.000001+01', 1.10, true, '-Infinity', '\\x00')")
        row = "SELECT id, customer, cents, at AT TIME ZONE 'UTC', price::text, paid, weight::text, mark::text FROM orders WHERE id = 4"
        self.assertEqual([str(value) for value in self.rows(row)[0]],
                         ["4", "it's \"é\"\n", "-5", "2026-01-02 02:04:05.000001", "1.1", "True", "-Infinity", "\\x00"])
        self.assertEqual(self.rows("UPDATE orders SET cents = cents + 1, customer = NULL WHERE id = 4 RETURNING id, cents, customer"),
                         [(4, -4, None)])
        self.assertEqual(self.rows("DELETE FROM orders WHERE cents < 0 RETURNING id"), [(4,)])
        self.run_sql("UPDATE orders SET cents = 0 WHERE customer = 'kim'", "UPDATE orders SET id = 30 WHERE id = 3",
                     "UPDATE orders SET paid = true WHERE price > 5")
        self.assertEqual(self.stored("SELECT id, cents, paid FROM orders ORDER BY id"), ["1,0,1", "2,900,1", "30,0,"])
        self.run_sql("INSERT INTO places SELECT 'r' || n % 10, n, 'x' FROM generate_series(1, 2500) n",
                     "DELETE FROM places WHERE number > 100")
        self.assertEqual(self.stored("SELECT count(*) FROM places"), ["100"])

    def test_a_row_that_a_join_finds_twice_is_changed_once(self):
        self.cursor.execute("UPDATE orders SET cents = 0 FROM generate_series(1, 3) n WHERE customer = 'kim'")
        self.assertEqual(self.cursor.rowcount, 2)
        self.cursor.execute("DELETE FROM orders USING generate_series(1, 3) n WHERE customer = 'kim'")
        self.assertEqual(self.cursor.rowcount, 2)
        self.assertEqual(self.rows("SELECT id FROM orders"), [(2,)])

    def test_copy_writes_rows(self):
        self.cursor.copy_expert("COPY places FROM STDIN", file=io.StringIO("a\t1\tx\nb\t2\t\\N\n"))
        self.assertEqual(self.rows("SELECT * FROM places ORDER BY 1"), [("a", 1, "x"), ("b", 2, None)])

    def test_a_key_that_is_rounded_names_no_row(self):
        self.run_sql("CREATE FOREIGN TABLE f (id numeric(30, -1), cents bigint) SERVER shop OPTIONS (table_name 'orders')",
                     "INSERT INTO f VALUES (20, 5)")
        for statement in ("UPDATE f SET cents = 1", "DELETE FROM f"):
            self.refused("HV004", "which is in the key, is numeric(30,-1), which need not be the value of the store", statement)

    def test_values_that_the_store_cannot_hold_are_refused(self):
        for values in ("(5, NULL, NULL, 'infinity')", "(5, NULL, NULL, NULL, 'NaN')", "(5, NULL, NULL, NULL, NULL, NULL, 'NaN')"):
            self.refused("22003", "cannot hold", f"INSERT INTO orders VALUES {values}")
        self.refused("0A000", "ON CONFLICT is not possible", "INSERT INTO orders (id) VALUES (1) ON CONFLICT DO NOTHING")

    def test_a_single_row_in_autocommit_is_sent_with_its_statement(self):
        text = self.refused("23505", "UNIQUE constraint failed: orders.id", "INSERT INTO orders (id) VALUES (1)")
        self.assertIn('sending change 1 of 1 of the transaction, INSERT into table "orders"', text)

    def test_changes_are_sent_at_commit_in_order(self):
        connection = self.connect(autocommit=False)
        cursor = connection.cursor()
        cursor.execute("INSERT INTO orders (id, cents) VALUES (10, 1), (11, 2)")
        cursor.execute("INSERT INTO places VALUES ('a', 1, 'x')")
        cursor.execute("INSERT INTO orders (id, cents) VALUES (12, 3)")
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])
        connection.commit()
        self.assertEqual(self.rows("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM places)"), [(6, 1)])
        cursor.execute("INSERT INTO places VALUES ('b', 2, 'y')")
        cursor.execute("INSERT INTO orders (id) VALUES (20), (10)")
        with self.assertRaises(psycopg2.errors.UniqueViolation) as raised:
            connection.commit()
        self.assertIn("sending changes 2 to 3 of 3 of the transaction", str(raised.exception))
        self.assertIn("those before were made, and some of these may have been made too", str(raised.exception))
        self.assertEqual(self.rows("SELECT count(*) FROM places"), [(2,)])

    def test_reading_a_table_with_unsent_changes_is_refused(self):
        connection = self.connect(autocommit=False)
        cursor = connection.cursor()
        cursor.execute("DELETE FROM orders WHERE id = 1")
        self.refused("0A000", "its changes are sent at COMMIT", "SELECT * FROM orders", cursor=cursor)
        connection.rollback()
        cursor.execute("DELETE FROM orders WHERE id = 1")
        cursor.execute("SELECT count(*) FROM places")
        connection.rollback()
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])
        # A statement sees the table as it was before it.
        self.run_sql("INSERT INTO orders (id) SELECT id + 100 FROM orders UNION ALL SELECT id + 200 FROM orders")
        self.run_sql("INSERT INTO orders (id) SELECT CASE WHEN n = 1 THEN 500 ELSE (SELECT max(id) + 500 FROM orders) END "
                     "FROM generate_series(1, 2) n")
        self.assertEqual(self.rows("SELECT count(*), max(id) FROM orders"), [(11, 703)])

    def test_a_function_that_fails_leaves_nothing(self):
        self.run_sql("CREATE OR REPLACE FUNCTION half() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
                     "INSERT INTO orders (id) VALUES (50); PERFORM 1/0; END $$")
        self.refused("22012", "division by zero", "SELECT half()")
        self.refused("22012", "division by zero", "INSERT INTO orders (id) VALUES (51); SELECT 1/0")
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])

    def test_rollback_and_savepoints_discard(self):
        connection = self.connect(autocommit=False)
        cursor = connection.cursor()
        for statement in ("INSERT INTO orders (id) VALUES (60)", "SAVEPOINT a", "INSERT INTO orders (id) VALUES (61)", "SAVEPOINT b",
                          "INSERT INTO orders (id) VALUES (62)", "RELEASE b", "ROLLBACK TO a", "INSERT INTO orders (id) VALUES (63)",
                          "SAVEPOINT c", "INSERT INTO orders (id) VALUES (64)", "RELEASE c", "SAVEPOINT d", "ROLLBACK TO d"):
            cursor.execute(statement)
        connection.commit()
        cursor.execute("INSERT INTO orders (id) VALUES (65)")
        connection.rollback()
        self.assertEqual(self.rows("SELECT id FROM orders WHERE id >= 60 ORDER BY 1"), [(60,), (63,), (64,)])

    def test_a_prepared_transaction_is_refused(self):
        connection = self.connect(autocommit=True)
        cursor = connection.cursor()
        self.refused("0A000", "cannot PREPARE", "BEGIN", "INSERT INTO orders (id) VALUES (70)", "PREPARE TRANSACTION 'x'", cursor=cursor)
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])

    def test_row_changed_by_another_client_is_an_error(self):
        connection = self.connect(autocommit=False)
        cursor = connection.cursor()
        cursor.execute("UPDATE orders SET cents = cents + 1 WHERE id = 1")
        self.run_sql("UPDATE orders SET paid = false WHERE id = 1")
        with self.assertRaises(psycopg2.errors.SerializationFailure) as raised:
            connection.commit()
        self.assertIn("was changed by another client", str(raised.exception))
        self.assertEqual(self.rows("SELECT cents, paid FROM orders WHERE id = 1"), [(250, False)])
        cursor.execute("DELETE FROM orders WHERE id = 1")
        self.run_sql("DELETE FROM orders WHERE id = 1")
        with self.assertRaises(psycopg2.errors.SerializationFailure):
            connection.commit()

    def test_computed_columns_are_read_and_never_set(self):
        self.store.stop()
        self.store.run("table", "add-column", "orders", "name=lower(customer)")
        self.store.start("--write")
        self.connection.close()
        self.cursor = self.connect().cursor()
        self.run_sql("DROP FOREIGN TABLE orders", "IMPORT FOREIGN SCHEMA x LIMIT TO (orders) FROM SERVER shop INTO public",
                     "INSERT INTO orders (id, customer) VALUES (5, 'KIM')", "UPDATE orders SET cents = 7 WHERE id = 5")
        self.assertEqual(self.rows("SELECT id, cents FROM orders WHERE name = 'kim' ORDER BY 1"), [(1, 250), (3, 120), (5, 7)])
        self.refused("428C9", "is computed by the store", "INSERT INTO orders (id, name) VALUES (6, 'x')")
        self.refused("428C9", "is computed by the store", "UPDATE orders SET name = 'x' WHERE id = 5")
        self.run_sql("CREATE OR REPLACE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.cents := NEW.cents + 1; RETURN NEW; END $$",
                     "CREATE TRIGGER t BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION more()", "UPDATE orders SET paid = true WHERE id = 5")
        self.assertEqual(self.rows("SELECT cents, paid FROM orders WHERE id = 5"), [(8, True)])

    def test_dropped_computed_column_is_not_imported(self):
        imported = "IMPORT FOREIGN SCHEMA x LIMIT TO (orders) FROM SERVER shop INTO public"
        columns = "SELECT attname FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0 ORDER BY attnum"
        before = self.rows(columns)
        for command in ("add-column", "name=lower(customer)"), ("drop-column", "name"):
            self.store.stop()
            self.store.run("table", command[0], "orders", command[1])
            self.store.start("--write")
            self.connection.close()
            self.cursor = self.connect().cursor()
            if command[0] == "add-column":
                self.run_sql("DROP FOREIGN TABLE orders", imported)
                self.assertEqual(self.rows("SELECT name FROM orders WHERE id = 1"), [("kim",)])
        self.run_sql("DROP FOREIGN TABLE orders", imported)
        self.assertEqual(self.rows(columns), before)
        self.run_sql("UPDATE orders SET cents = 9 WHERE id = 1")
        self.assertEqual(self.rows("SELECT cents FROM orders WHERE id = 1"), [(9,)])

    def test_columns_that_postgresql_generates_are_sent(self):
        self.run_sql("CREATE FOREIGN TABLE f (id bigint, cents bigint GENERATED ALWAYS AS (id * 2) STORED) SERVER shop "
                     "OPTIONS (table_name 'orders')", "INSERT INTO f VALUES (60)", "UPDATE f SET id = 61 WHERE id = 60",
                     "INSERT INTO f VALUES (62)")
        self.assertEqual(self.stored("SELECT id, cents FROM orders WHERE id >= 60 ORDER BY id"), ["61,122", "62,124"])

    def test_a_server_for_reading_gives_its_sentence(self):
        self.store.stop()
        self.store.start()
        self.refused("HV000", "it was started without --write", "INSERT INTO orders (id) VALUES (80)")
        self.run_sql("ALTER FOREIGN TABLE orders OPTIONS (ADD updatable 'false')")
        self.refused("55000", "does not allow inserts", "INSERT INTO orders (id) VALUES (80)")

    def test_triggers_and_partitions_work(self):
        self.run_sql("CREATE OR REPLACE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS "
                     "$$ BEGIN NEW.cents := NEW.cents * 2; RETURN NEW; END $$",
                     "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION twice()",
                     "INSERT INTO orders (id, cents) VALUES (5, 10)", "UPDATE orders SET paid = true WHERE id = 5")
        self.assertEqual(self.rows("SELECT cents, paid FROM orders WHERE id = 5"), [(40, True)])
        self.run_sql("CREATE TABLE all_places (region text COLLATE \"C\", number bigint, name text COLLATE \"C\") PARTITION BY LIST (region)",
                     "CREATE FOREIGN TABLE part PARTITION OF all_places FOR VALUES IN ('a') SERVER shop OPTIONS (table_name 'places')",
                     "INSERT INTO all_places VALUES ('a', 1, 'x')")
        self.assertEqual(self.rows("SELECT number FROM all_places WHERE region = 'a'"), [(1,)])
        self.run_sql("DROP TABLE all_places")


    def test_rows_of_partitions_are_moved_and_deleted(self):
        self.store.stop()
        self.store.run("sql", "CREATE TABLE others(region TEXT, number INTEGER, name TEXT, PRIMARY KEY(region, number))")
        self.store.start("--write")
        self.run_sql("CREATE TABLE all_places (region text COLLATE \"C\", number bigint, name text COLLATE \"C\") PARTITION BY LIST (region)",
                     "CREATE TABLE here PARTITION OF all_places FOR VALUES IN ('a')",
                     "CREATE FOREIGN TABLE there PARTITION OF all_places FOR VALUES IN ('b') SERVER shop OPTIONS (table_name 'places')",
                     "CREATE FOREIGN TABLE far PARTITION OF all_places FOR VALUES IN ('c') SERVER shop OPTIONS (table_name 'others')",
                     "INSERT INTO all_places VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, 'z'), ('c', 4, 'z')")
        self.addCleanup(self.run_sql, "DROP TABLE all_places")
        # Such a row would be updated again where it has come to.
        self.refused("0A000", 'cannot move rows into foreign table "there", which the same UPDATE changes', "UPDATE all_places SET region = 'b'")
        self.run_sql("UPDATE all_places SET region = 'b' WHERE region = 'a'")
        self.assertEqual(self.rows("SELECT number FROM there ORDER BY 1"), [(1,), (2,)])
        self.cursor.execute("DELETE FROM all_places WHERE number > 1 AND number < 4")
        self.assertEqual(self.cursor.rowcount, 2)
        self.assertEqual(self.rows("SELECT number FROM all_places ORDER BY 1"), [(1,), (4,)])

    def test_values_are_written_alike_under_all_settings(self):
        self.run_sql("CREATE FOREIGN TABLE f (id bigint, customer date) SERVER shop OPTIONS (table_name 'orders')",
                     "CREATE FOREIGN TABLE g (id bigint, customer interval) SERVER shop OPTIONS (table_name 'orders')",
                     "SET datestyle = 'German'", "SET intervalstyle = 'sql_standard'", "INSERT INTO f VALUES (50, '2026-01-02')",
                     "INSERT INTO g VALUES (51, '-1 day')")
        self.assertEqual(self.rows("SHOW datestyle"), [("German, DMY",)])
        self.assertEqual(self.stored("SELECT customer FROM orders WHERE id >= 50 ORDER BY id"), ["2026-01-02", "-1 days"])


class FakeServer:
    """Answers for the table with what a real server has said, cut as `cut` (bytes of the stream) and `ends_well` say."""

    def __init__(self, url, statement):
        self.table = self.ask(url, "/v1/tables/orders", None)
        self.stream = self.ask(url, "/v1/sql", json.dumps({"sql": statement}).encode())
        self.cut, self.ends_well, self.status, self.barrier = len(self.stream), True, None, None
        self.problem = b"<html>"
        fake = self

        class Answers(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                self.answer(fake.table, True)

            def do_POST(self):  # pylint: disable=invalid-name
                self.rfile.read(int(self.headers["Content-Length"]))
                if fake.barrier is not None:
                    fake.barrier.wait(30)
                if fake.status is not None:
                    self.send_response(fake.status)
                    self.send_header("Content-Length", str(len(fake.problem)))
                    self.end_headers()
                    self.wfile.write(fake.problem)
                    return
                self.answer(fake.stream[:fake.cut], fake.ends_well)

            def answer(self, body, ends_well):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                if body:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
                if ends_well:
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @staticmethod
    def ask(url, path, body):
        request = urllib.request.Request(url + path, body, {"Accept": "application/x-ndjson"})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class TroubleTest(PostgresTest):
    # Without the foreign table's rows at hand PostgreSQL would ask for hours.
    SLOW = "SELECT count(*) FROM orders a, orders b WHERE a.cents IS DISTINCT FROM b.cents + (random() * 0)::bigint"

    def fill(self, count):
        self.run_sql(f"INSERT INTO orders (id, customer, cents) SELECT n, repeat('x', 200), n FROM generate_series(1000, {999 + count}) n")

    def test_an_answer_that_is_cut_anywhere_is_an_error(self):
        statement = "SELECT id, customer FROM orders"
        fake = FakeServer(self.store.url, self.remote(statement)[0])
        self.addCleanup(fake.close)
        wanted = self.rows(statement)
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url '{fake.url}')")
        self.assertEqual(self.rows(statement), wanted)
        for fake.ends_well in (False, True):
            for fake.cut in range(len(fake.stream)):
                if fake.ends_well and fake.cut == len(fake.stream) - 1:
                    continue  # the last record without its line's end
                with self.assertRaises(psycopg2.Error) as raised:
                    self.rows(statement)
                self.assertEqual(raised.exception.pgcode, "08006", raised.exception)
        fake.cut, fake.status = len(fake.stream), 502
        text = "answered with status 502, which is not how tamis serve answers"
        self.refused("HV000", text, statement)
        self.refused("08007", text, "INSERT INTO orders (id) VALUES (90)")
        # Larger than what waits to be taken.
        fake.problem *= 100000
        fake.problem = fake.problem.replace(b"><", b">\n<")
        self.run_sql("ALTER SERVER shop OPTIONS (ADD buffer_kb '1')")
        self.refused("HV000", text, statement)

    def test_answers_that_are_no_rows_are_errors(self):
        statement = "SELECT id, customer FROM orders"
        fake = FakeServer(self.store.url, self.remote(statement)[0])
        self.addCleanup(fake.close)
        self.run_sql(f"ALTER SERVER shop OPTIONS (SET url '{fake.url}')")
        whole = fake.stream
        for row in (b'[1]', b'[1,"a",2]', b'[1,"a"', b'[1,"\\x"]', b'[1,"\\ud800"]', b'[1,tru]', b'[,]', b'[1,{"text":1}]', b'nonsense',
                    b'{"rows":1}', b'[1,"a"]]', b'[1,{"text":"0x"}', b'[1,"a\x00"]', b"[[1],2]"):
            fake.stream = whole.replace(b'[1,"kim"]', row)
            fake.cut = len(fake.stream)
            self.assertNotEqual(fake.stream, whole)
            self.refused("08006", "is not complete", statement)
        fake.stream = whole.replace(b'[1,"kim"]\n', b"")
        fake.cut = len(fake.stream)
        self.refused("08006", "rows are missing", statement)
        fake.stream = whole.replace(b'[1,"kim"]', b'["x","kim"]')
        fake.cut = len(fake.stream)
        self.refused("HV004", 'column "id" has a value that is not of the column', statement)
        fake.stream = whole.replace(b'"kim"', b'"\\u00e9\\ud83d\\ude00\\n"')
        fake.cut = len(fake.stream)
        self.assertEqual(self.rows(statement)[0], (1, "é\U0001F600\n"))
        fake.stream = whole.replace(b"INTEGER", b"TEXT")
        self.refused("HV004", "has another type", statement)

    def test_cancel_and_statement_timeout_end_a_request(self):
        # A server that takes the request and never answers.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'http://127.0.0.1:{listener.getsockname()[1]}')",
                         "SET statement_timeout = '300ms'")
            self.refused("57014", "statement timeout", "SELECT count(*) FROM orders")
            self.run_sql("SET statement_timeout = 0")
            with listener.accept()[0] as first:
                first.recv(65536)
                canceller = threading.Thread(target=self.cancel_when_asked, args=(listener,))
                canceller.start()
                self.refused("57014", "user request", "SELECT count(*) FROM orders")
                canceller.join()

    def test_a_change_that_is_not_answered_is_unknown(self):
        self.rows("SELECT id FROM orders WHERE id = 1")
        port = self.store.port
        connection = self.connect(autocommit=False)
        self.run_sql("ALTER SERVER shop OPTIONS (ADD change_timeout_ms '300')")
        for statement, text in (("SELECT 1", "did not answer"), ("SET LOCAL statement_timeout = '100ms'", "did not answer")):
            connection.cursor().execute(statement)
            connection.cursor().execute("INSERT INTO orders (id) VALUES (90)")
            self.store.stop()
            with socket.create_server(("127.0.0.1", port)):
                with self.assertRaises(psycopg2.Error) as raised:
                    connection.commit()
            self.store.start("--write")
            self.assertIn(text, str(raised.exception))
            self.assertEqual(raised.exception.pgcode, "08007")
        self.run_sql("ALTER SERVER shop OPTIONS (SET change_timeout_ms '0')")
        self.plan("INSERT INTO orders (id) VALUES (90)")
        self.rows("SELECT id FROM orders WHERE id = 1")
        self.store.stop()
        with socket.create_server(("127.0.0.1", port)) as listener:
            canceller = threading.Thread(target=self.cancel_when_asked, args=(listener,))
            canceller.start()
            text = self.refused("08007", "user request", "INSERT INTO orders (id) VALUES (90)")
            self.assertIn("its outcome is unknown: it may have been made", text)
            canceller.join()

    def cancel_when_asked(self, listener):
        connection = listener.accept()[0]
        self.addCleanup(connection.close)
        connection.recv(65536)
        self.connection.cancel()

    def test_the_backend_of_a_killed_statement_ends_its_request(self):
        self.fill(30000)
        connection = self.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
        cursor.execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM orders; FETCH 10 FROM c")
        self.await_statements(1)
        self.run_sql(f"SELECT pg_terminate_backend({pid})")
        self.await_statements(0)

    def await_statements(self, count):
        while True:
            with urllib.request.urlopen(self.store.url + "/metrics") as answer:
                if f"\ntamis_statements_running {count}\n".encode() in answer.read():
                    return

    def test_a_scan_that_stops_early_ends_its_request(self):
        self.fill(30000)
        self.assertEqual(len(self.rows("SELECT id FROM orders WHERE cents + 0 > 5 LIMIT 5")), 5)
        self.await_statements(0)
        plan = self.plan("SELECT id FROM orders WHERE cents + 0 > 5 LIMIT 5", "ANALYZE, COSTS OFF, TIMING OFF")
        self.assertIn("Requests Stopped Early: 1", plan)

    def test_a_server_that_was_restarted_is_asked_again(self):
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])
        for _ in range(3):
            self.store.stop()
            self.refused("HV00N", "cannot reach server", "SELECT count(*) FROM orders")
            self.store.start("--write")
            self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(3,)])

    def test_a_server_killed_in_the_middle_of_a_stream_is_an_error(self):
        self.fill(30000)
        connection = self.connect(autocommit=False)
        cursor = connection.cursor("named")
        cursor.itersize = 10
        cursor.execute("SELECT * FROM orders")
        cursor.fetchone()
        self.store.stop(signal.SIGKILL)
        with self.assertRaises(psycopg2.errors.ConnectionFailure):
            cursor.fetchall()
        connection.rollback()
        self.store.start("--write")
        self.assertEqual(self.rows("SELECT count(*) FROM orders"), [(30003,)])

    def test_a_change_whose_answer_is_lost_is_unknown(self):
        self.plan("INSERT INTO orders (id) VALUES (90)")
        self.rows("SELECT id FROM orders WHERE id = 1")
        port = self.store.port
        self.store.stop()
        self.refused("HV00N", "cannot reach server", "INSERT INTO orders (id) VALUES (90)")
        with socket.create_server(("127.0.0.1", port)) as listener:
            cutter = threading.Thread(target=self.cut_after_request, args=(listener,))
            cutter.start()
            text = self.refused("08007", "the outcome of the change is unknown", "INSERT INTO orders (id) VALUES (90)")
            self.assertIn("Read the rows before you repeat it", text)
            cutter.join()
            # The request was sent once.
            listener.settimeout(0)
            self.assertRaises(OSError, listener.accept)

    @staticmethod
    def cut_after_request(listener):
        with listener.accept()[0] as connection:
            while b'"sql"' not in connection.recv(65536):
                pass

    def test_a_change_is_not_sent_again_when_a_kept_connection_is_closed(self):
        table = FakeServer.ask(self.store.url, "/v1/tables/orders", None)
        changes = []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.run_sql(f"ALTER SERVER shop OPTIONS (SET url 'http://127.0.0.1:{listener.getsockname()[1]}')")

            def answer(connection):
                with connection:
                    while request := connection.recv(65536):
                        if request.startswith(b"POST"):
                            changes.append(request)
                            return
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(table), table))

            def accept():
                try:
                    while True:
                        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
                except OSError:
                    pass

            threading.Thread(target=accept, daemon=True).start()
            self.refused("08007", "unknown", "INSERT INTO orders (id) VALUES (90)")
            self.assertEqual(len(changes), 1)
            listener.shutdown(socket.SHUT_RDWR)

    def test_many_backends_ask_at_once(self):
        wrong = []
        # Fewer statements at once than there are backends: the others wait.
        self.store.stop()
        self.store.start("--write", "--statements", "8")

        def ask(number):
            connection = psycopg2.connect(self.server.dsn)
            connection.autocommit = True
            cursor = connection.cursor()
            try:
                for turn in range(10):
                    key = 1000 + number * 100 + turn
                    cursor.execute("INSERT INTO orders (id, customer) VALUES (%s, %s)", (key, f"c{number}"))
                    cursor.execute("SELECT count(*) FROM orders WHERE customer = %s", (f"c{number}",))
                    if cursor.fetchone() != (turn + 1,):
                        wrong.append((number, turn))
            except psycopg2.Error as error:
                wrong.append(error)
            connection.close()

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_busy_server_is_waited_for_no_longer_than_the_time_for_connecting(self):
        self.fill(30000)
        self.store.stop()
        self.store.start("--write", "--statements", "1")
        holder = self.connect(autocommit=False).cursor("holder")
        holder.itersize = 10
        holder.execute("SELECT * FROM orders")
        holder.fetchone()
        self.await_statements(1)
        self.run_sql("ALTER SERVER shop OPTIONS (ADD connect_timeout_ms '200')")
        self.refused("57P03", "try again", "SELECT count(*) FROM orders")
        self.refused("57P03", "try again", "INSERT INTO orders (id) VALUES (5)")
        holder.close()
        self.assertEqual(self.rows("SELECT count(*) FROM orders WHERE id = 5"), [(0,)])

    def test_an_append_asks_all_servers_at_once(self):
        statement = "SELECT id, customer FROM orders"
        barrier = threading.Barrier(3)
        for number in range(3):
            fake = FakeServer(self.store.url, self.remote(statement)[0])
            self.addCleanup(fake.close)
            fake.barrier = barrier  # no server answers before all have been asked
            self.run_sql(f"CREATE SERVER s{number} FOREIGN DATA WRAPPER tamis_fdw OPTIONS (url '{fake.url}')",
                         f"CREATE FOREIGN TABLE o{number} (id bigint NOT NULL, customer text COLLATE \"C\") SERVER s{number} "
                         "OPTIONS (table_name 'orders')")
        united = " UNION ALL ".join(f"SELECT id, customer FROM o{number}" for number in range(3))
        self.assertEqual(self.plan(united).count("Async Foreign Scan"), 3)
        self.assertEqual(sorted(self.rows(united)), sorted(self.rows(statement) * 3))

    def test_an_append_over_one_server_gives_all_rows(self):
        self.fill(20000)
        self.run_sql("ALTER SERVER shop OPTIONS (ADD buffer_kb '1')")
        united = "SELECT id, customer FROM orders UNION ALL SELECT cents, customer FROM orders WHERE cents % 2 = 0 UNION ALL " \
                 "SELECT id, customer FROM orders WHERE customer = 'kim'"
        self.assertEqual(self.plan(united).count("Async Foreign Scan"), 3)
        found = self.rows(united)
        self.run_sql("ALTER SERVER shop OPTIONS (ADD async_capable 'false')")
        self.assertNotIn("Async", self.plan(united))
        self.assertEqual(sorted(found), sorted(self.rows(united)))
        self.run_sql("ALTER SERVER shop OPTIONS (SET async_capable 'true')")
        self.assertEqual(len(self.rows(united + " LIMIT 5")), 5)
        self.assertIn("Requests: 1", self.plan(united, "ANALYZE, COSTS OFF, TIMING OFF"))
        self.store.stop(signal.SIGKILL)
        self.refused("HV00N", "cannot reach server", united)

    def test_several_scans_of_one_statement_stream_side_by_side(self):
        self.fill(20000)
        self.run_sql("SET enable_hashjoin = off", "SET enable_nestloop = off", "ALTER SERVER shop OPTIONS (ADD buffer_kb '1')")
        statement = "SELECT count(*), sum(a.cents) FROM orders a JOIN orders b ON a.id = b.id"
        self.assertIn("Merge Join", self.plan(statement))
        self.assertEqual(self.rows(statement), self.rows("SELECT count(*), sum(cents) FROM orders"))


if __name__ == "__main__":
    unittest.main()
