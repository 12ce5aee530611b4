#!/usr/bin/env python3
"""The loadable extension in the sqlite3 shell and in several connections and processes.

usage: extension_test.py EXTENSION
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

EXTENSION = sys.argv.pop(1)


CONNECTIONS = []  # closed before the store's folder is removed


def connect(store=None, extension=EXTENSION):
    db = sqlite3.connect(":memory:", isolation_level=None)
    CONNECTIONS.append(db)
    db.enable_load_extension(True)
    db.load_extension(extension)
    if store is not None:
        db.execute("SELECT tamis_open(?)", (store,)).fetchall()
    return db


class ExtensionTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.directory.name, "store")

    def tearDown(self):
        while CONNECTIONS:
            CONNECTIONS.pop().close()
        self.directory.cleanup()

    def shell(self, sql):
        return subprocess.run(["sqlite3", "-batch", "-bail"], capture_output=True, text=True,
                              input=f".load {EXTENSION}\n{sql}", timeout=60, check=False)

    def test_works_in_the_sqlite3_shell(self):
        made = self.shell(f"SELECT tamis_open('{self.store}');\n"
                          "CREATE VIRTUAL TABLE t USING tamis(k, n int64, key (k), index n (n));\n"
                          "INSERT INTO t VALUES ('a', 1), ('b', 2);\n")
        self.assertEqual(made.returncode, 0, made.stderr)
        read = self.shell(f"SELECT tamis_open('{self.store}');\nSELECT k FROM t WHERE n = 2;\n")
        self.assertEqual(read.stdout.split("\n")[1], "b", read.stderr)

    def test_says_that_no_store_is_open(self):
        db = connect()
        with self.assertRaisesRegex(sqlite3.OperationalError, "no store is open"):
            db.execute("CREATE VIRTUAL TABLE t USING tamis(k, key (k))")
        with self.assertRaisesRegex(sqlite3.OperationalError, "no store is open"):
            db.execute("SELECT * FROM tamis_servers").fetchall()

    def test_connections_of_a_process_share_the_store(self):
        first = connect(self.store)
        first.execute("CREATE VIRTUAL TABLE t USING tamis(k, n int64, key (k))")
        second = connect(self.store)
        second.execute("INSERT INTO t VALUES ('a', 1)")
        self.assertEqual(first.execute("SELECT n FROM t").fetchall(), [(1,)])
        first.close()
        self.assertEqual(second.execute("SELECT n FROM t").fetchall(), [(1,)])

    def test_another_process_is_told_that_the_store_is_in_use(self):
        db = connect(self.store)
        other = self.shell(f"SELECT tamis_open('{self.store}');\n")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn(self.store, other.stderr)
        db.close()
        self.assertEqual(self.shell(f"SELECT tamis_open('{self.store}');\n").returncode, 0)

    def test_an_update_of_a_row_that_changed_meanwhile_is_refused(self):
        first, second = connect(self.store), connect(self.store)
        first.execute("CREATE VIRTUAL TABLE t USING tamis(k, n int64, s, key (k))")
        first.execute("INSERT INTO t VALUES ('a', 1, 'x')")
        second = connect(self.store)
        first.execute("BEGIN")
        first.execute("UPDATE t SET n = n + 1")
        second.execute("UPDATE t SET s = 'other column'")
        first.execute("COMMIT")  # what it had read still holds
        first.execute("BEGIN")
        first.execute("UPDATE t SET n = n + 1")
        second.execute("UPDATE t SET n = 70")
        with self.assertRaisesRegex(sqlite3.OperationalError, "changed by another client"):
            first.execute("COMMIT")
        self.assertEqual(second.execute("SELECT n, s FROM t").fetchall(), [(70, "other column")])

    def test_condition_of_a_statement_still_holds_when_its_row_is_written(self):
        first = connect(self.store)
        first.execute("CREATE VIRTUAL TABLE t USING tamis(k int64, a text, n int64, key (k), "
                      "index a (a))")
        second = connect(self.store)
        for change in ("UPDATE t SET a = 'mine' WHERE k = 1 AND a = 'one'",
                       "DELETE FROM t WHERE a = 'one'",
                       "UPDATE t SET n = 5 WHERE a IN ('one', 'two')",
                       "DELETE FROM t WHERE a IS NOT NULL AND a > 'on'"):
            first.execute("INSERT OR REPLACE INTO t VALUES (1, 'one', 0)")
            first.execute("BEGIN")
            first.execute(change)
            second.execute("UPDATE t SET a = 'theirs' WHERE k = 1")
            with self.assertRaisesRegex(sqlite3.OperationalError, "changed by another client"):
                first.execute("COMMIT")
            self.assertEqual(second.execute("SELECT a, n FROM t").fetchall(), [("theirs", 0)])

    def test_a_commit_that_fails_ends_the_transaction(self):
        first = connect(self.store)
        first.execute("CREATE VIRTUAL TABLE t USING tamis(k int64, a text, key (k))")
        first.execute("INSERT INTO t VALUES (1, 'one')")
        second = connect(self.store)
        first.execute("BEGIN")
        first.execute("UPDATE t SET a = a || '!'")
        second.execute("UPDATE t SET a = 'theirs'")
        with self.assertRaisesRegex(sqlite3.OperationalError, "changed by another client"):
            first.execute("COMMIT")
        self.assertFalse(first.in_transaction)
        with self.assertRaisesRegex(sqlite3.OperationalError, "no transaction is active"):
            first.execute("COMMIT")

    def test_a_table_in_a_file_of_its_own_waits_for_its_store(self):
        path = os.path.join(self.directory.name, "own.sqlite")
        def own():
            db = sqlite3.connect(path, isolation_level=None)
            db.enable_load_extension(True)
            db.load_extension(EXTENSION)
            return db
        db = own()
        db.execute("SELECT tamis_open(?)", (self.store,)).fetchall()
        db.execute("CREATE VIRTUAL TABLE t USING tamis(k, key (k))")
        db.execute("INSERT INTO t VALUES ('a')")
        db.close()
        db = own()
        with self.assertRaisesRegex(sqlite3.OperationalError, "no store is open"):
            db.execute("SELECT * FROM t")
        db.execute("SELECT tamis_open(?)", (self.store,)).fetchall()
        self.assertEqual(db.execute("SELECT * FROM t").fetchall(), [("a",)])
        db.close()

    def test_a_table_that_could_not_be_renamed_is_there_and_can_be_dropped(self):
        path = os.path.join(self.directory.name, "own.sqlite")
        db = connect(self.store)
        db.execute("ATTACH ? AS own", (path,))
        db.execute("CREATE VIRTUAL TABLE own.t USING tamis(k, key (k))")
        db.execute("INSERT INTO own.t VALUES ('a')")
        for begin, end in (("", ""), ("BEGIN", "COMMIT"), ("BEGIN", "ROLLBACK")):
            db.execute(begin)
            with self.assertRaisesRegex(sqlite3.OperationalError, "keeps its name"):
                db.execute("ALTER TABLE own.t RENAME TO t2")
            db.execute(end)
            self.assertEqual(db.execute("SELECT * FROM own.t").fetchall(), [("a",)])
            self.assertEqual(db.execute("SELECT name FROM own.sqlite_schema").fetchall(), [("t",)])
        db.execute("DROP TABLE own.t")
        self.assertEqual(db.execute("SELECT name FROM own.sqlite_schema").fetchall(), [])

    def test_parameters_and_many_rows(self):
        db = connect(self.store)
        db.execute("CREATE VIRTUAL TABLE t USING tamis(k int64, s, key (k), index s (s))")
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?, ?)", ((i, f"s{i % 100}") for i in range(5000)))
        db.execute("COMMIT")
        for i in range(100):
            rows = db.execute("SELECT count(*) FROM t WHERE s = ?", (f"s{i}",)).fetchall()
            self.assertEqual(rows, [(50,)])


unittest.main()
