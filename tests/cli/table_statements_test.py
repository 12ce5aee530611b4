#!/usr/bin/env python3
"""CREATE TABLE, CREATE INDEX, DROP TABLE and DROP INDEX in `tamis sql`: as arguments and from a pipe.

usage: table_statements_test.py TAMIS
"""

import os
import subprocess
import sys
import tempfile
import unittest

TAMIS = sys.argv.pop(1)


class TableStatementsTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.directory.name, "store")

    def tearDown(self):
        self.directory.cleanup()

    def run_tamis(self, *arguments, stdin=None, expect=0):
        done = subprocess.run([TAMIS, "--store", self.store, *arguments], input=stdin, text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def sql(self, *statements, **more):
        return self.run_tamis("sql", "--format", "csv", *statements, **more)

    def refused(self, statement, *parts):
        error = self.sql(statement, expect=1)
        for part in parts:
            self.assertIn(part, error)
        return error

    def test_a_table_and_its_index_are_those_of_the_store(self):
        self.sql("CREATE TABLE Notes(id INTEGER PRIMARY KEY, Body TEXT NOT NULL, at DATETIME); "
                 "CREATE INDEX of_body ON notes(body)",
                 "INSERT INTO notes VALUES (1, 'first', '2026-01-02')")
        self.assertEqual(self.sql("SELECT id, body FROM notes WHERE body = 'first'"),
                         "id,body\n1,first\n")
        described = self.run_tamis("table", "describe", "notes")
        for part in ("id int64 not null", "body text not null", "at timestamp", "key (id)",
                     "index of_body (body)"):
            self.assertIn(part, described)
        self.assertIn("of_body", self.run_tamis("explain", "SELECT id FROM notes WHERE body = 'x'"))

    def test_statements_of_a_pipe_and_in_a_transaction(self):
        self.sql(stdin="BEGIN;\nCREATE TABLE t (\n  a VARCHAR(10), -- a comment; with a semicolon\n"
                 "  b DECIMAL(10, 2), c BOOLEAN,\n  PRIMARY KEY (a, b)) WITHOUT ROWID;\n"
                 "INSERT INTO t VALUES ('x;y', 1.25, true);\nCOMMIT;\n")
        self.assertEqual(self.sql("SELECT * FROM t"), "a,b,c\nx;y,1.25,1\n")

    def test_empty_statements_hide_no_table(self):
        for n, before in enumerate((";", " ;;", "/* a */;", ";-- b\n", "\ufeff", ";\ufeff")):
            self.sql(stdin=f"{before}CREATE TABLE t{n}(a INTEGER PRIMARY KEY); INSERT INTO t{n} VALUES (1);")
            self.assertEqual(self.sql(f"SELECT a FROM t{n}"), "a\n1\n")
            self.sql(f"{before} DROP TABLE t{n}")
        self.assertEqual(self.run_tamis("table", "list"), "")

    def test_a_transaction_that_is_not_committed_is_an_error(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY)")
        self.refused("BEGIN; INSERT INTO t VALUES (1)", "not committed", "COMMIT")
        self.assertIn("not committed", self.sql(stdin="SAVEPOINT s;\nINSERT INTO t VALUES (1);\n", expect=1))
        self.assertEqual(self.sql("SELECT count(*) FROM t"), "count(*)\n0\n")
        self.sql("BEGIN; SELECT a FROM t")
        self.sql("BEGIN; INSERT INTO t VALUES (1); ROLLBACK")
        self.sql("BEGIN; INSERT INTO t VALUES (1)", "COMMIT")

    def test_a_transaction_without_writes_may_stay_open(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY)")
        self.assertEqual(self.sql("BEGIN IMMEDIATE; SELECT count(*) FROM t"), "count(*)\n0\n")
        self.sql("SAVEPOINT s; INSERT INTO t VALUES (1); ROLLBACK TO s")
        self.sql("BEGIN; CREATE TEMP TABLE own(x); INSERT INTO own VALUES (1)")
        self.sql("BEGIN; CREATE TABLE u(a INTEGER PRIMARY KEY)")
        self.refused("BEGIN; DELETE FROM t; INSERT INTO u VALUES (1)", "its writes are dropped")
        self.assertEqual(self.sql("SELECT count(*) FROM u"), "count(*)\n0\n")

    def test_a_write_to_an_attached_database_without_a_commit_is_an_error(self):
        attach = f"ATTACH '{os.path.join(self.directory.name, 'other.sqlite')}' AS \"o'\"; "
        self.sql("--create", attach + "CREATE TABLE \"o'\".kept(x); BEGIN; SELECT * FROM kept")
        self.refused(attach + "BEGIN; INSERT INTO kept VALUES (7)", "not committed",
                     "to the attached database \"o'\"", "COMMIT")
        self.assertEqual(self.sql(attach + "SELECT count(*) FROM kept"), "count(*)\n0\n")

    def test_tables_made_in_a_transaction_outlive_its_rollback(self):
        create = "CREATE TABLE {}(a INTEGER PRIMARY KEY)"
        self.assertEqual(self.sql("BEGIN", create.format("t"), "INSERT INTO t VALUES (1)", "ROLLBACK",
                                  "SELECT count(*) FROM t"), "count(*)\n0\n")
        self.assertEqual(self.sql("SAVEPOINT s;" + create.format("u") + "; ROLLBACK TO s; INSERT INTO u VALUES (1);"
                                  "RELEASE s; SELECT a FROM u"), "a\n1\n")
        self.sql("INSERT INTO t VALUES (1)")
        # A COMMIT that fails ends the transaction.
        self.sql("BEGIN;" + create.format("v") + "; INSERT INTO t VALUES (1); COMMIT", expect=1)
        self.sql("INSERT INTO v VALUES (1)")

    def test_vacuum_into_a_file_is_refused_with_a_copy_that_works(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (7)", "VACUUM")
        copy = os.path.join(self.directory.name, "copy.sqlite")
        for into in ("INTO", "main INTO"):
            error = self.refused(f"VACUUM {into} '{copy}'", "no table of the store")
        self.assertFalse(os.path.exists(copy))
        attach = error[error.index("ATTACH"):error.index(", and for")].replace("FILE", copy)
        create = error[error.index("CREATE TABLE"):].strip().replace("NAME", "t")
        self.sql(attach, create)
        self.assertEqual(self.sql(f"ATTACH '{copy}' AS c", "SELECT a FROM c.t", f"VACUUM c INTO '{copy}.2'"), "a\n7\n")

    def test_a_statement_of_many_lines_is_read_once(self):
        lines = "-- one of many lines\n" * 400_000
        self.assertEqual(self.sql("--create", stdin=f"SELECT 1 AS a\n{lines};"), "a\n1\n")

    def test_a_command_may_follow_a_comment(self):
        for comment in ("-- a\n", "/* a\n.b */\n", "/* a */ -- b\n\n", "/**/\n"):
            with self.subTest(comment):
                script = comment + ".format csv\nSELECT 1 AS b;\n"
                self.assertEqual(self.run_tamis("sql", "--create", stdin=script), "b\n1\n")

    def test_a_statement_ends_with_a_comment_after_its_semicolon(self):
        script = "SELECT 1 AS a; /* a\n{}b */\n.format line\nSELECT 2 AS b;\n"
        for more in ("", "-- c;\n", "it's; */ /* d\n"):
            with self.subTest(more):
                self.assertEqual(self.sql("--create", stdin=script.format(more)), "a\n1\nb = 2\n")
        self.assertEqual(self.sql("--create", stdin="SELECT 1 + /* a;\nb */\n.5 AS a;\n"), "a\n1.5\n")
        # One read at each end of a comment would take minutes.
        lines = "/* one of many */\n" * 400_000
        self.assertEqual(self.sql("--create", stdin=f"SELECT 1 AS a\n{lines};"), "a\n1\n")

    def test_a_dot_in_a_comment_is_no_schema_name(self):
        self.sql("-- version 1.0\nCREATE /* see a.b */ TABLE commented(a INTEGER PRIMARY KEY)")
        self.assertEqual(self.run_tamis("table", "list"), "commented\n")

    def test_if_exists_and_if_not_exists_are_obeyed(self):
        create = "TABLE t(a INTEGER PRIMARY KEY, b REAL, c BLOB)"
        self.sql("CREATE " + create, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY)",
                 "CREATE INDEX i ON t(b)", "CREATE INDEX IF NOT EXISTS i ON t(b)")
        self.refused("CREATE " + create, "exists already", "tamis table describe t")
        self.refused("CREATE INDEX i ON t(b)", "i")
        self.sql("DROP TABLE IF EXISTS t", "DROP TABLE IF EXISTS t", "CREATE " + create)

    def test_drop_table_deletes_the_rows(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", "CREATE INDEX i ON t(b)",
                 "INSERT INTO t VALUES (1, 'x')", "DROP INDEX i")
        self.assertEqual(self.run_tamis("index", "list", "t"), "")
        self.refused("DROP INDEX i", "no such index")
        self.sql("DROP INDEX IF EXISTS i")
        self.refused("BEGIN; DROP TABLE t", "in a transaction")
        self.sql("DROP TABLE t", "CREATE TABLE t(a TEXT PRIMARY KEY)")
        self.assertEqual(self.sql("SELECT count(*) FROM t"), "count(*)\n0\n")

    def test_an_index_of_several_tables_is_not_dropped(self):
        for table in ("t", "u"):
            self.sql(f"CREATE TABLE {table}(a INTEGER PRIMARY KEY, b TEXT)")
            self.run_tamis("index", "create", table, "i", "b")
        self.refused("DROP INDEX i", "several tables", "t i, u i")

    def test_impossible_table_is_refused_with_a_statement_that_works(self):
        for columns, part in (
                ("id INTEGER, body TEXT", "no PRIMARY KEY"),
                ("id INTEGER PRIMARY KEY, body", 'column "body" has no type'),
                ("id INTEGER PRIMARY KEY, body DATE", "has the type DATE"),
                ("id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT", "AUTOINCREMENT"),
                ("id INTEGER PRIMARY KEY, body TEXT DEFAULT 'x'", "has a DEFAULT"),
                ("id INTEGER PRIMARY KEY, body TEXT UNIQUE", "UNIQUE"),
                ("id INTEGER PRIMARY KEY, body TEXT COLLATE NOCASE", "the collation NOCASE"),
                ("id INTEGER PRIMARY KEY, body TEXT CHECK (body <> '')", "CHECK"),
                ("id INTEGER PRIMARY KEY, body TEXT REFERENCES other(x)", "FOREIGN KEY"),
                ("id INTEGER PRIMARY KEY, body TEXT AS (id || '')", "GENERATED"),
                ("id TEXT, body TEXT, PRIMARY KEY (id COLLATE NOCASE)",
                 "its PRIMARY KEY has the collation NOCASE"),
                ("id INTEGER PRIMARY KEY ON CONFLICT REPLACE, body TEXT", "ON CONFLICT")):
            error = self.refused(f"CREATE TABLE t({columns})", part, "CREATE TEMP TABLE")
            proposed = error[error.index("CREATE TABLE"):error.index(", or CREATE TEMP")]
            self.sql(proposed, "INSERT INTO t(id, body) VALUES (1, 'x')", "DROP TABLE t")
        self.refused("CREATE TABLE main.t(a INTEGER PRIMARY KEY)", "no schema name", "CREATE TABLE t (...)")
        self.refused("CREATE TABLE t AS SELECT 1 AS a", "from a SELECT", "INSERT INTO t SELECT")
        self.refused("CREATE TABLE t(a INTEGER PRIMARY KEY", "incomplete input")
        self.assertEqual(self.run_tamis("table", "list"), "")

    def test_a_default_of_null_is_none(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT DEFAULT NULL)",
                 "INSERT INTO t(a) VALUES (1)")
        self.assertEqual(self.sql("SELECT b IS NULL FROM t"), "b IS NULL\n1\n")

    def test_altering_is_refused_with_a_command_that_works(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", "INSERT INTO t VALUES (1, 'x')")
        error = self.refused("ALTER TABLE t ADD COLUMN Since DATETIME", 'cannot alter table "t"')
        command = error[error.index("tamis table add-column"):].split()[1:]
        self.run_tamis(*command)
        self.assertEqual(self.sql("SELECT * FROM t"), "a,b,since\n1,x,\n")
        self.refused("ALTER TABLE t RENAME COLUMN b TO c", "keeps its columns", "INSERT INTO")
        self.refused("ALTER TABLE t DROP COLUMN b", "keeps its columns")
        self.run_tamis("table", "add-column", "t", "small=lower(b)")
        error = self.refused("ALTER TABLE t DROP COLUMN small", 'cannot alter table "t"')
        self.run_tamis(*error[error.index("tamis table drop-column"):].split()[1:])
        self.refused("ALTER TABLE t DROP COLUMN small", "cannot drop column")
        self.refused("ALTER TABLE t RENAME COLUMN b TO c", "keeps its columns")
        error = self.refused("ALTER TABLE t RENAME TO u", "keeps its name")
        view = error[error.index("CREATE TEMP VIEW"):error.index(" gives")]
        self.assertEqual(self.sql(view, "SELECT b FROM u"), "b\nx\n")
        self.refused("ALTER TABLE absent ADD COLUMN c TEXT", "no such table")
        self.assertEqual(self.sql("CREATE TEMP TABLE own(x)", "ALTER TABLE own ADD COLUMN y",
                                  "INSERT INTO own VALUES (1, 2)", "SELECT * FROM own"),
                         "x,y\n1,2\n")

    def test_impossible_index_is_refused(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        self.refused("CREATE UNIQUE INDEX i ON t(b)", "not UNIQUE")
        self.refused("CREATE INDEX i ON t(b) WHERE length(b) > 3", "cannot read its condition")
        self.refused("CREATE INDEX i ON t(lower(b))", "not of expressions")
        self.refused("CREATE INDEX i ON t(b COLLATE NOCASE)", "no collation but BINARY")
        self.refused("CREATE INDEX i ON absent(b)", "no such table")
        self.refused("CREATE INDEX i ON t(c)", "cannot create the index", "no such column: c")
        self.refused("CREATE TEMP TABLE own(x); CREATE INDEX i ON own(y)", "no such column: y")

    def test_an_index_of_an_attached_database_is_refused_by_sqlite(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        attach = f"ATTACH '{os.path.join(self.directory.name, 'copy.sqlite')}' AS copy; "
        self.sql(attach + "CREATE TABLE copy.u(a); CREATE INDEX copy.i ON u(a)")
        self.refused(attach + "CREATE INDEX copy.j ON t(a)", "no such table: copy.t")
        self.refused(attach + "CREATE INDEX copy.j ON u(z)", "no such column: z")
        self.refused("CREATE INDEX copy.j ON t(a)", "unknown database copy")

    def test_views_and_triggers_that_would_be_lost_are_refused(self):
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        self.refused("CREATE VIEW v AS SELECT a FROM t", "CREATE TEMP VIEW")
        self.refused("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END", "trigger")
        self.refused("CREATE VIRTUAL TABLE f USING fts5(x)", "CREATE VIRTUAL TABLE temp.f")

    def test_temporary_tables_are_those_of_sqlite(self):
        self.assertEqual(
            self.sql("--create", "CREATE TEMP TABLE own(x UNIQUE, y DEFAULT 5)", "INSERT INTO own(x) VALUES (1)",
                     "CREATE INDEX o ON own(y)", "CREATE TEMP TABLE two AS SELECT * FROM own",
                     "CREATE TEMP VIEW v AS SELECT * FROM two", "SELECT * FROM v",
                     "DROP INDEX o", "DROP TABLE own"), "x,y\n1,5\n")
        self.refused("CREATE TEMP TABLE own(x); CREATE TABLE own(x INTEGER PRIMARY KEY)",
                     "a temporary table or view of that name")
        self.assertEqual(self.run_tamis("table", "list"), "")
        other = os.path.join(self.directory.name, "other.sqlite")
        self.sql(f"ATTACH '{other}' AS other; CREATE TABLE other.kept(x); "
                 "INSERT INTO other.kept VALUES (7)")
        self.assertEqual(self.sql(f"ATTACH '{other}' AS other; SELECT x FROM other.kept"), "x\n7\n")


unittest.main()
