#!/usr/bin/env python3
"""The program as a user meets it: commands, output, exit codes.

usage: program_test.py TAMIS
"""

import contextlib
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

TAMIS = sys.argv.pop(1)

PEOPLE = "Name,Born,Home Town,Note\nada,1815,London,\nalan,1912,London,\"x, \"\"y\"\"\"\ngrace,1906,New York,\n"


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.directory.name, "store")

    def tearDown(self):
        self.directory.cleanup()

    def run_tamis(self, *arguments, stdin="", expect=0):
        done = subprocess.run([TAMIS, "--store", self.store, *arguments], input=stdin, text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def log_bytes(self):
        """The size of the store's log; a file of it may go at any time."""
        size = 0
        for path in glob.glob(os.path.join(self.store, "*.log")):
            with contextlib.suppress(FileNotFoundError):
                size += os.path.getsize(path)
        return size

    def sql(self, statement):
        return json.loads(self.run_tamis("sql", "--format", "json", statement))

    def import_people(self, *more, stdin=PEOPLE, expect=0):
        return self.run_tamis("import", "people", "-", "--format", "csv", "--key", "name", "--column",
                              "born:int64", "--index", "home_town", *more, stdin=stdin, expect=expect)

    def test_commands_for_hbase_alone_are_refused(self):
        attach = ["table", "attach", "t", "--hbase-table", "n:T", "--column", "a=d:A:text"]
        self.run_tamis("table", "create", "x", "--column", "id", "--key", "id")
        self.assertIn("all of its tables are its own",
                      self.run_tamis(*attach, "--key", "id:int64", expect=1))
        self.assertIn("all of its tables are its own", self.run_tamis("table", "detach", "x", expect=1))
        self.assertIn("nothing of it is set up by hand", self.run_tamis("doctor", expect=2))
        # How keys are said to be made.
        self.assertIn("width=N or :until=DELIMITER",
                      self.run_tamis(*attach, "--key", "host:text,at:timestamp", expect=1))
        self.assertIn("colour", self.run_tamis(*attach, "--key", "id:colour", expect=1))
        self.assertIn("two columns", self.run_tamis(*attach, "--column", "a=d:B:text", "--key", "id:int64", expect=1))
        self.run_tamis(*attach, "--key", "host:text:until=|,at:timestamp", expect=1)
        self.assertIn("--hbase-table", self.run_tamis("table", "attach", "t", expect=2))

    def test_a_table_of_other_formats(self):
        self.run_tamis("table", "create", "metrics", "--column", "host", "--column", "n:int64",
                       "--column", "load=d:load:double:float", "--column", "note=d:note\\x3a:text",
                       "--key", "host:until=|,n:long", "--index", "load", "--nulls", "skip")
        described = self.run_tamis("table", "describe", "metrics")
        for part in ("key (host 'until=|', n 'long')", "load double cell 'd:load:float'",
                     "note text cell 'd:note\\x3a:utf8'", "marker 'd:'", "nulls skip"):
            self.assertIn(part, described)
        self.run_tamis("put", "metrics", "host=a", "n=-5", "load=1.5")
        self.run_tamis("put", "metrics", "host=a", "n=7")
        self.assertIn("delimiter", self.run_tamis("put", "metrics", "host=a|b", "n=1", expect=1))
        self.assertIn("no exact place", self.run_tamis("put", "metrics", "host=b", "n=1", "load=0.1",
                                                       expect=1))
        self.assertEqual(self.run_tamis("sql", "SELECT n FROM metrics WHERE host = 'a' AND n < 6",
                                        "--format", "csv"), "n\n-5\n")
        self.assertEqual(self.run_tamis("sql", "SELECT n FROM metrics WHERE load IS NULL", "--format",
                                        "csv"), "n\n7\n")
        self.run_tamis("import", "metrics", "-", "--format", "csv", "--key", "host:until=|,n:long",
                       "--column", "load=d:load:double:float", stdin="host,n,load\nc,1,0.5\n")
        self.assertIn("key column", self.run_tamis(
            "import", "metrics", "-", "--format", "csv", "--key", "host:rest,n", stdin="host,n\nd,1\n",
            expect=1))
        self.run_tamis("index", "create", "metrics", "note", "note", "--nulls", "skip")
        self.assertIn("without NULL", self.run_tamis("index", "list", "metrics"))
        self.assertIn("missing entries 0", self.run_tamis("check", "metrics"))
        self.run_tamis("import", "other", "-", "--format", "jsonl", "--key", "id:rest", "--column",
                       "v=f:v:int64:short", "--index", "v", "--nulls", "skip",
                       stdin='{"id": "x", "v": 1}\n{"id": "y"}\n')
        self.assertIn("key (id 'rest')", self.run_tamis("table", "describe", "other"))

    def test_included_columns_and_conditions_of_indexes(self):
        self.run_tamis("table", "create", "orders", "--column", "id:int64", "--column", "customer", "--column", "status",
                       "--column", "total:int64", "--key", "id", "--index", "customer include (total)",
                       "--index", "status, customer nulls skip where total > 100")
        self.run_tamis("sql", "INSERT INTO orders VALUES (1, 'kim', 'open', 50), (2, 'lee', 'open', 500), "
                              "(3, 'kim', 'closed', 700)")
        self.run_tamis("index", "create", "orders", "open", "customer", "--include", "total", "--where",
                       "status = 'open'")
        self.run_tamis("sql", "CREATE INDEX large ON orders(customer) WHERE total >= 400")
        described = self.run_tamis("table", "describe", "orders")
        for part in ("index customer (customer) fpr 0.001 expected_values 10000 include (total),",
                     "index status_customer (status, customer) fpr 0.001 expected_values 10000 nulls skip where total > 100,",
                     "index open (customer) fpr 0.001 expected_values 10000 include (total) where status = 'open',",
                     "index large (customer) fpr 0.001 expected_values 10000 where total >= 400"):
            self.assertIn(part, described)
        self.assertEqual(self.run_tamis("index", "wait", "orders", "large"), "orders.large: ready, 2 entries\n")
        self.assertIn("orders.open: ready, 2 entries\n", self.run_tamis("index", "wait", "orders"))
        self.assertIn('no index "small"', self.run_tamis("index", "wait", "orders", "small", expect=1))
        listed = self.run_tamis("index", "list", "orders")
        self.assertIn("orders.open (customer) include (total) where status = 'open'", listed)
        self.assertRegex(listed, r"orders\.open .* ready, 2 entries")
        self.assertRegex(listed, r"orders\.large .* ready, 2 entries")
        self.assertEqual(self.sql("SELECT included, condition FROM tamis_indexes('orders') WHERE name = 'open'"),
                         [{"included": "total", "condition": "status = 'open'"}])
        self.run_tamis("sql", "UPDATE orders SET total = 60 WHERE id = 1")
        self.run_tamis("sql", "UPDATE orders SET status = 'open' WHERE id = 3")
        self.assertEqual(self.sql("SELECT sum(total) AS s FROM orders WHERE customer = 'kim'"), [{"s": 760}])
        self.assertIn("index only: 0 rows read",
                      self.run_tamis("explain", "SELECT total FROM orders WHERE customer = 'kim'"))
        explained = self.run_tamis("explain", "SELECT id FROM orders WHERE customer = 'kim' AND status = 'open'")
        self.assertIn("open", explained)
        self.assertIn("index large is not used, since the condition does not imply total >= 400", explained)
        self.assertIn("missing entries 0, foreign entries 0", self.run_tamis("check", "orders"))
        for words, why in ((("--include", "sum"), 'no column "sum"'), (("--include", "customer"), "because it is indexed"),
                           (("--where", "state = 'open'"), 'no column "state"'),
                           (("--where", "total > 'x'"), "does not compare")):
            self.assertIn(why, self.run_tamis("index", "create", "orders", "wrong", "customer", *words, expect=1))

    def test_a_minimum_is_the_first_row_of_its_index(self):
        self.import_people()
        self.assertEqual(self.run_tamis("sql", "--format", "csv", "SELECT min(home_town) FROM people; SELECT 1"),
                         "min(home_town)\nLondon\n1\n1\n")
        self.assertIn("1 rows returned", self.run_tamis("explain", "SELECT min(home_town) FROM people"))
        hidden = "CREATE TEMP TABLE other(a); SELECT min(home_town) FROM people"
        self.assertEqual(self.run_tamis("sql", "--format", "csv", hidden), "min(home_town)\nLondon\n")

    def test_imports_csv(self):
        self.assertIn("people: 3 rows put", self.import_people())
        self.assertEqual(self.sql("SELECT name, note FROM people WHERE home_town = 'London' ORDER BY 1"),
                         [{"name": "ada", "note": None}, {"name": "alan", "note": 'x, "y"'}])
        self.assertEqual(self.sql("SELECT sum(born) AS s FROM people"), [{"s": 1815 + 1912 + 1906}])

    def test_the_same_import_goes_on_and_another_definition_is_refused(self):
        self.import_people()
        self.import_people(stdin="name,born,shoe\nlin,1980,41\n")
        self.assertEqual(self.sql("SELECT count(*) AS n FROM people"), [{"n": 4}])
        self.assertIn("shoe (1)", self.import_people(stdin="name,born,shoe\nlin,1980,41\n"))
        for wrong in (["--column", "note:double"], ["--index", "note"], ["--column", "shoe"]):
            self.assertIn("another definition", self.import_people(*wrong, expect=1))

    def test_bad_records_stop_or_are_skipped(self):
        bad = PEOPLE + "kurt,soon,Brno,\n,1900,Nowhere,\nemmy,1882,Erlangen,\n"
        message = self.import_people(stdin=bad, expect=1)
        self.assertIn("line 5", message)
        self.assertIn("born", message)
        self.assertIn("4 rows put", self.import_people("--on-error", "skip", stdin=bad))
        self.assertIn("2 bad records", self.import_people("--on-error", "skip", stdin=bad))

    def test_put_refuses_text_that_is_not_utf8(self):
        self.import_people()
        self.assertIn("not UTF-8", self.run_tamis("put", "people", "name=\udcff", expect=1))
        self.run_tamis("put", "people", "name=é")

    def test_a_declared_column_that_the_file_lacks_is_refused(self):
        message = self.import_people("--column", "peple:int64", expect=1)
        self.assertIn('"peple"', message)
        self.assertIn("name, born, home_town, note", message)
        self.assertEqual(self.run_tamis("table", "list"), "")
        jsonl = ["import", "j", "-", "--format", "jsonl", "--key", "id", "--column", "prise:decimal"]
        self.assertIn("id, price", self.run_tamis(*jsonl, stdin='{"id": 1, "price": 2}\n', expect=1))
        # Later records may have it.
        self.assertIn("does not have, NULL in the rows put: prise\n", self.run_tamis(
            *jsonl, stdin="".join(f'{{"id": {i}, "price": 2}}\n' for i in range(2000))))

    def test_an_import_that_fails_before_its_first_row_leaves_no_table(self):
        self.assertIn("line 2", self.import_people("--column", "home_town:int64", expect=1))
        self.assertEqual(self.run_tamis("table", "list"), "")
        self.assertIn("line 3", self.import_people(stdin="name,born,home_town\nada,1815,x\nkurt,soon,y\n",
                                                   expect=1))
        self.assertEqual(self.run_tamis("table", "list"), "")
        self.import_people()

    def test_an_import_that_fails_later_names_table_drop(self):
        rows = "".join(f"p{i},{i},Rome,\n" for i in range(5000))
        message = self.import_people(stdin="name,born,home_town,note\n" + rows + "kurt,soon,Brno,\n", expect=1)
        self.assertIn("tamis table drop people", message)
        message = self.run_tamis("import", "people", "-", "--format", "csv", "--key", "name", "--column",
                                 "born:text", stdin=PEOPLE, expect=1)
        self.assertIn("tamis table drop people", message)

    def test_columns_that_a_later_file_lacks_are_named(self):
        self.assertNotIn("NULL", self.import_people())
        self.assertIn("NULL in the rows put: born note\n",
                      self.import_people(stdin="name,home_town\nada,Paris\n"))

    def test_text_that_is_not_utf8_is_reported(self):
        done = subprocess.run([TAMIS, "--store", self.store, "import", "t", "-", "--format", "csv", "--key", "k"],
                              input=b"k,v\n1,fine\n2,caf\xe9\n3,\xff\n", capture_output=True, check=True, timeout=60)
        self.assertIn(b'not UTF-8, stored as they are: 2 (the first: line 3, field "v", byte 4)', done.stdout)

    def import_csv(self, data, *more, expect=0):
        done = subprocess.run([TAMIS, "--store", self.store, "import", "t", "-", "--format", "csv", "--key", "k", *more],
                              input=data if isinstance(data, bytes) else data.encode(), capture_output=True, check=False,
                              timeout=60)
        message = (done.stdout + done.stderr).decode()
        self.assertEqual(done.returncode, expect, message)
        return message

    def test_packed_csv_and_csv_in_utf16(self):
        text = "k,v\n1,é\n2,b\n"
        packed = gzip.compress(text.encode())
        for data in (packed, text.encode("utf-16"), text.encode("utf-8-sig"), text.replace("\n", "\r").encode()):
            self.assertIn("2 rows put", self.import_csv(data))
            self.assertEqual(self.sql("SELECT * FROM t ORDER BY k"), [{"k": "1", "v": "é"}, {"k": "2", "v": "b"}])
            self.run_tamis("table", "drop", "t")
        self.assertIn("cut off", self.import_csv(packed[:-12], expect=1))
        self.assertEqual(self.run_tamis("table", "list"), "")
        self.assertIn("bzip2", self.import_csv(b"BZh91AY&SY...", expect=1))

    def test_csv_with_another_delimiter_or_without_a_header(self):
        self.import_csv("k;v\n1;a,b\n", "--delimiter", ";")
        self.assertEqual(self.sql("SELECT * FROM t"), [{"k": "1", "v": "a,b"}])
        self.import_csv("2\tc\n", "--delimiter", "tab", "--no-header", "--columns", "k,v")
        self.assertEqual(self.sql("SELECT v FROM t WHERE k = '2'"), [{"v": "c"}])
        self.assertIn("has no column \"k\" for the key; it has column_1, column_2", self.run_tamis(
            "import", "u", "-", "--format", "csv", "--no-header", "--key", "k", stdin="1,2\n", expect=1))
        self.assertIn("--delimiter ';'", self.import_csv("k;v\n1;a\n", expect=1))
        self.assertIn("no delimiter", self.import_csv("k\n", "--delimiter", ",,", expect=1))
        self.assertIn("for --format csv", self.run_tamis(
            "import", "u", "-", "--format", "jsonl", "--no-header", "--key", "k", stdin="", expect=1))

    def test_the_name_of_a_file_tells_its_format(self):
        for ending in ("csv", "csv.gz", "jsonl"):
            path = os.path.join(self.directory.name, "rows." + ending)
            data = b'{"k": "x"}\n' if ending == "jsonl" else b"k\nx\n"
            with (gzip.open(path, "wb") if ending.endswith("gz") else open(path, "wb")) as file:
                file.write(data)
            self.assertIn("1 rows put", self.run_tamis("import", "t_" + ending[:3], path, "--key", "k"))
        self.assertIn("give --format", self.run_tamis("import", "t", "-", "--key", "k", stdin="k\nx\n", expect=1))

    def test_an_import_of_nothing_is_an_error(self):
        self.assertIn("the input is empty", self.import_csv("", expect=1))
        self.assertIn("all 2 records of the input are bad", self.import_csv("k,v\n1\n2\n", "--on-error", "skip", expect=1))
        self.assertEqual(self.run_tamis("table", "list"), "")

    def test_a_quoted_field_that_does_not_end_is_never_skipped(self):
        message = self.import_csv('k,v\n1,"x\n2,y\n3,z\n', "--on-error", "skip", expect=1)
        self.assertIn("nothing of lines 2 to 4 can be read", message)
        self.assertNotIn("--on-error", message)

    def test_rows_that_replace_others_of_the_same_file_are_counted(self):
        message = self.import_csv("k,v\n1,a\n2,b\n1,c\n")
        self.assertIn("t: 2 rows put", message)
        self.assertIn("1 of these records replaced one before it with the same key", message)
        self.assertEqual(self.sql("SELECT v FROM t WHERE k = '1'"), [{"v": "c"}])

    def test_imports_jsonl_and_deb822(self):
        self.run_tamis("import", "j", "-", "--format", "jsonl", "--key", "id", "--column", "id:int64",
                       "--column", "price:decimal", stdin='{"id": 1, "price": 1.10}\n{"id": 2}\n')
        self.assertEqual(self.sql("SELECT * FROM j ORDER BY id"),
                         [{"id": 1, "price": 1.1}, {"id": 2, "price": None}])
        self.run_tamis("import", "d", "-", "--format", "deb822", "--key", "package,version",
                       stdin="Package: a\nVersion: 1\nDescription: one\n two\n\nPackage: a\nVersion: 2\n")
        self.assertEqual(self.sql("SELECT version, description FROM d ORDER BY package, version"),
                         [{"version": "1", "description": "one\ntwo"},
                          {"version": "2", "description": None}])

    def test_names_of_columns_are_those_of_the_records(self):
        for _ in range(2):
            self.run_tamis("import", "d", "-", "--format", "deb822", "--key", "Package", "--column",
                           "Installed-Size:int64", "--index", "Installed-Size,Package",
                           stdin="Package: a\nInstalled-Size: 5\n")
        self.assertEqual(self.sql("SELECT * FROM d"), [{"package": "a", "installed_size": 5}])

    def test_an_endless_stream_that_is_bad_is_refused(self):
        endless = subprocess.Popen(["yes", "x"], stdout=subprocess.PIPE)
        done = subprocess.run([TAMIS, "--store", self.store, "import", "t", "-", "--format", "jsonl",
                               "--key", "a"], stdin=endless.stdout, capture_output=True, text=True,
                              timeout=60, check=False)
        endless.stdout.close()
        endless.kill()
        endless.wait()
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 1", done.stderr)

    def test_large_rows_are_imported_in_bounded_memory(self):
        script = ("import resource, subprocess, sys\n"
                  "print(subprocess.run(sys.argv[1:]).returncode,"
                  " resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        path = os.path.join(self.directory.name, "large.jsonl")
        with open(path, "w") as file:
            for i in range(150):
                file.write(json.dumps({"k": i, "text": f"{i:06}" * 170_000}) + "\n")
        done = subprocess.run([sys.executable, "-c", script, TAMIS, "--store", self.store, "import",
                               "t", path, "--format", "jsonl", "--key", "k"], capture_output=True,
                              text=True, timeout=120, check=True)
        code, kilobytes = done.stdout.split()[-2:]
        self.assertEqual(code, "0", done.stderr)
        self.assertLess(int(kilobytes), 600_000)

    def test_imports_from_a_path_that_is_a_pipe(self):
        path = os.path.join(self.directory.name, "pipe")
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: open(path, "w").write(PEOPLE))
        writer.start()
        self.assertIn("3 rows put", self.run_tamis("import", "people", path, "--format", "csv", "--key",
                                                   "name"))
        writer.join()

    def test_unreadable_input_is_not_imported(self):
        for path, why in ((self.directory.name, "Is a directory"), ("/nonexistent", "No such file")):
            message = self.run_tamis("import", "t", path, "--format", "csv", "--key", "a", expect=1)
            self.assertIn(path, message)
            self.assertIn(why, message)

    def test_ctrl_c_stops_an_import_that_waits_for_input(self):
        process = subprocess.Popen(
            [TAMIS, "--store", self.store, "import", "people", "-", "--format", "csv", "--key", "name",
             "--column", "born:int64", "--index", "home_town"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(PEOPLE + "".join(f"p{i},{i},Rome,\n" for i in range(3000)) + "cut")
        process.stdin.flush()
        # Until the log has rows.
        while self.log_bytes() < 20_000:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        # Nothing of what was cut off is there; the same import goes on.
        self.import_people()
        self.assertEqual(self.sql("SELECT count(*) AS n FROM people WHERE name = 'cut'"), [{"n": 0}])

    def test_ctrl_c_stops_a_statement_that_writes(self):
        self.run_tamis("sql", "CREATE VIRTUAL TABLE numbers USING tamis(n int64, key (n))")
        process = subprocess.Popen(
            [TAMIS, "--store", self.store, "sql", "INSERT INTO numbers WITH RECURSIVE i(x) AS "
             "(SELECT 1 UNION ALL SELECT x + 1 FROM i) SELECT x FROM i"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # Until the log has rows.
        while self.log_bytes() < 20_000:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", error)
        # Rows that were written before stand.
        self.assertGreater(self.sql("SELECT count(*) AS n FROM numbers")[0]["n"], 0)

    def test_needs_a_key_for_a_new_table(self):
        self.assertIn("--key", self.run_tamis("import", "t", "-", "--format", "csv", stdin="a\n1\n",
                                              expect=1))

    def test_single_rows(self):
        self.import_people()
        self.assertIn("born = 1815", self.run_tamis("get", "people", "ada"))
        self.run_tamis("put", "people", "name=ada", "born=1816")
        self.assertEqual(self.sql("SELECT born, home_town FROM people WHERE name = 'ada'"),
                         [{"born": 1816, "home_town": None}])
        self.run_tamis("delete", "people", "ada")
        self.assertIn("no row", self.run_tamis("get", "people", "ada", expect=1))
        self.assertIn("no row", self.run_tamis("delete", "people", "ada", expect=1))
        self.assertEqual(self.run_tamis("scan", "people", "--start", "b", "--format", "csv"),
                         "name,born,home_town,note\ngrace,1906,New York,\n")
        self.assertEqual(self.run_tamis("scan", "people", "--limit", "1", "--format", "csv"),
                         "name,born,home_town,note\nalan,1912,London,\"x, \"\"y\"\"\"\n")
        self.assertEqual(self.run_tamis("scan", "people", "--limit", "0", "--format", "csv"), "name,born,home_town,note\n")
        everything = self.run_tamis("scan", "people")
        self.assertEqual(self.run_tamis("scan", "people", "--limit", str(2**64 - 1)), everything)
        self.assertIn("whole number", self.run_tamis("put", "people", "name=x", "born=y", expect=1))
        self.assertIn("twice", self.run_tamis("put", "people", "name=a", "name=b", expect=1))
        self.assertIn("COLUMN=VALUE", self.run_tamis("put", "people", "name", expect=1))

    def test_single_rows_of_every_type(self):
        self.run_tamis("sql", "CREATE VIRTUAL TABLE x USING tamis(k double, ts timestamp, m decimal, "
                              "y bool, b bytes, key (k, ts))")
        self.run_tamis("put", "x", "k=0.1", "ts=2026-01-02T03:04:05.5Z", "m=1.10", "y=true", "b=0x00ff")
        row = "k = 0.1\nts = 2026-01-02 03:04:05.5\n m = 1.1\n y = 1\n b = 0x00ff\n"
        get = self.run_tamis("get", "x", "0.1", "2026-01-02T04:04:05.5+01:00")
        self.assertEqual(get.replace(" ", ""), row.replace(" ", ""))
        self.assertIn("0.1", self.run_tamis("scan", "x", "--start", "0.1", "--end", "0.2"))
        self.run_tamis("delete", "x", "0.1", "2026-01-02 03:04:05.5")
        self.assertEqual(self.sql("SELECT * FROM x"), [])

    def test_control_characters_do_not_reach_a_terminal(self):
        self.run_tamis("sql", "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)")
        for control in ("\x1b", "\x07", "\b", "\x7f", "\u0080", "\u009b", "\u009f", "\u202a", "\u202e",
                        "\u2066", "\u2069"):
            with self.subTest(control):
                value = f"a{control}31mb"
                self.run_tamis("sql", f"INSERT OR REPLACE INTO t VALUES (1, '{value}')")
                select = ["sql", f'SELECT v AS "{value}" FROM t']
                for shown in (self.run_tamis(*select), self.run_tamis(*select, "--format", "line"),
                              self.run_tamis("sql", f'SELECT * FROM "{value}"', expect=1),
                              self.run_tamis("sql", "--echo", f"SELECT '{value}'"),
                              self.run_tamis("table", "describe", value, expect=1)):
                    self.assertIn("a?31mb", shown)
                    self.assertNotIn(control, shown)
                # Programs read these.
                self.assertIn(value, self.run_tamis(*select, "--format", "csv"))
                self.assertEqual(json.loads(self.run_tamis(*select, "--format", "json")), [{value: value}])
        where = "v = 'a\u009bb'"
        self.run_tamis("index", "create", "t", "marked", "v", "--where", where)
        for shown in (self.run_tamis("table", "describe", "t"), self.run_tamis("index", "list", "t"),
                      self.run_tamis("sql", stdin=".schema t\n")):
            self.assertIn("v = 'a?b'", shown)
            self.assertNotIn("\u009b", shown)
        lines = self.run_tamis("sql", "--format", "line", "SELECT 'one' || char(10) || 'two' AS v")
        self.assertEqual(lines, "v = one\ntwo\n")

    def test_rows_are_printed_in_each_format(self):
        self.import_people()
        statement = "SELECT 1 AS a, NULL AS b, 'x''y' AS c, x'00ff' AS d, 1.5 AS e"
        self.assertEqual(self.run_tamis("sql", statement),
                         "a  b     c    d       e\n-  ----  ---  ------  ---\n"
                         "1  NULL  x'y  0x00ff  1.5\n(1 row)\n")
        self.assertEqual(self.run_tamis("sql", "--format", "csv", statement),
                         "a,b,c,d,e\n1,,x'y,0x00ff,1.5\n")
        self.assertEqual(self.sql(statement),
                         [{"a": 1, "b": None, "c": "x'y", "d": "0x00ff", "e": 1.5}])
        self.assertEqual(self.run_tamis("sql", "--format", "line", statement),
                         "a = 1\nb = NULL\nc = x'y\nd = 0x00ff\ne = 1.5\n")
        self.assertEqual(self.sql("SELECT 1 AS a WHERE 0"), [])

    def test_text_with_zero_bytes_is_printed_whole(self):
        self.import_people()
        statement = "SELECT 'a' || char(0) || 'b' AS t"
        self.assertEqual(self.run_tamis("sql", "--format", "csv", statement), "t\na\0b\n")
        self.assertEqual(self.run_tamis("sql", "--format", "line", statement), "t = a?b\n")
        self.assertEqual(self.sql(statement), [{"t": "a\0b"}])

    def test_sql_from_a_pipe(self):
        script = ("CREATE VIRTUAL TABLE t USING tamis(k, n int64, key (k), index n (n));\n"
                  "-- a comment\nINSERT INTO t VALUES ('a;', 1),\n ('b', 2);\n.format csv\n"
                  "SELECT k FROM t WHERE n = 1;\n.kill rs1\nSELECT k FROM t WHERE n = 2;\n.resume rs1\n")
        self.assertEqual(self.run_tamis("sql", stdin=script), "k\na;\nk\nb\n")
        self.assertIn("line 2", self.run_tamis("sql", stdin="SELECT 1;\nSELEC;\n", expect=1))
        self.assertIn(".help", self.run_tamis("sql", stdin=".nonsense\n", expect=1))

    def test_explain(self):
        self.import_people()
        statement = "SELECT name FROM people WHERE home_town = 'London' OR name = 'grace'"
        explain = json.loads(self.run_tamis("explain", "--json", statement))
        for field in ("regions_total regions_asked regions_excluded_by_filter "
                      "regions_excluded_by_range regions_excluded_by_key servers_total servers_asked "
                      "index terms entries_read rows_read rows_returned "
                      "false_positive_regions").split():
            self.assertIn(field, explain)
        self.assertEqual(len(explain["searches"]), 2)
        for search in explain["searches"]:
            self.assertGreater(search["server_us"], 0)
        self.assertEqual(explain["rows_returned"],
                         sum(search["rows_returned"] for search in explain["searches"]))
        self.run_tamis("explain", "DELETE FROM people")
        self.assertEqual(self.sql("SELECT count(*) AS n FROM people"), [{"n": 3}])
        absent = json.loads(self.run_tamis("explain", "--json",
                                           "SELECT * FROM people WHERE home_town = 'Paris'"))
        self.assertEqual(absent["servers_asked"], 0)

    def test_import_tells_options_of_an_index_from_fields(self):
        fields = "id,Price,Price Ranges,Stock ranges_km,Seed\n1,2,3,4,5\n"
        imported = ["import", "shop", "-", "--format", "csv", "--key", "id", "--index", "Price nulls skip", "--index",
                    "Price Ranges", "--index", "Stock ranges_km,Price fpr 0.01 nulls skip", "--index", "Seed", "--index",
                    "Seed,Price Ranges ranges 4"]
        self.run_tamis(*imported, stdin=fields)
        indexes = [line.strip() for line in self.run_tamis("table", "describe", "shop").splitlines() if "index" in line]
        for index, line in zip(("price (price)", "price_ranges (price_ranges)",
                                "stock_ranges_km_price (stock_ranges_km, price)", "seed (seed)",
                                "seed_price_ranges (seed, price_ranges)"), indexes, strict=True):
            self.assertIn(f"index {index}", line)
        self.assertEqual(["nulls skip" in line for line in indexes], [True, False, True, False, False])
        self.assertEqual(["ranges" in line.split(")")[-1] for line in indexes], [False] * 4 + [True])
        self.assertIn("fpr 0.01", indexes[2])
        # Options of an index that is there are no other definition of the table.
        self.run_tamis(*imported, stdin=fields.replace("1,", "2,", 1))
        self.assertIn("no index on (id)", self.run_tamis(*imported, "--index", "id ranges", stdin=fields, expect=1))
        # A field that has the name of another one with an option after it.
        self.run_tamis("import", "one", "-", "--format", "csv", "--key", "id", "--index", "price ranges",
                       stdin="id,price ranges\n1,2\n")
        self.assertIn("one.price_ranges (price_ranges), fpr", self.run_tamis("index", "list", "one"))

    def test_import_fits_the_cells_of_a_definition(self):
        self.import_people("--index", "born ranges 4")
        self.assertRegex(self.run_tamis("index", "list", "people"), r"born .* ranges by \d+ cells")
        self.assertEqual(self.sql("SELECT name FROM people WHERE born < 1900"), [{"name": "ada"}])
        self.run_tamis("table", "create", "empty", "--column", "id:int64", "--key", "id", "--index", "id ranges 4")
        self.assertIn("not fitted", self.run_tamis("index", "list", "empty"))
        self.assertIn("expected_values 10000 ranges 4\n", self.run_tamis("table", "describe", "empty"))
        self.run_tamis("index", "ranges", "empty", "id")  # of no values
        self.assertIn("expected_values 10000 ranges 4\n", self.run_tamis("table", "describe", "empty"))

    def test_status_tells_that_values_have_outgrown_their_cells(self):
        def insert(first, last):
            self.run_tamis("sql", f"WITH RECURSIVE i(x) AS (SELECT {first} UNION ALL SELECT x + 1 FROM i WHERE x < "
                                  f"{last}) INSERT INTO readings SELECT x, x * 10 FROM i")

        self.run_tamis("sql", "CREATE TABLE readings (id INTEGER PRIMARY KEY, at INTEGER)")
        insert(1, 1100)
        self.run_tamis("index", "create", "readings", "at", "at", "--ranges", "4")
        self.assertNotIn("outgrown", self.run_tamis("status"))
        insert(100_000, 101_100)
        self.assertIn("tamis index ranges readings at fits them again", self.run_tamis("status"))
        status = json.loads(self.run_tamis("status", "--json"))
        self.assertEqual(status["tables"][0]["indexes_to_fit"], ["at"])
        self.assertIn("outgrown (tamis index ranges readings at)", self.run_tamis("index", "list", "readings"))
        self.run_tamis("index", "ranges", "readings", "at")
        self.assertNotIn("outgrown", self.run_tamis("status"))

    def test_refit_fits_those_cells_that_values_have_outgrown(self):
        def insert(table, first, last):
            self.run_tamis("sql", f"WITH RECURSIVE i(x) AS (SELECT {first} UNION ALL SELECT x + 1 FROM i WHERE x < "
                                  f"{last}) INSERT INTO {table} SELECT x, x * 10 FROM i")

        for table in ["first", "second", "third"]:
            self.run_tamis("sql", f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, at INTEGER)")
            insert(table, 1, 1100)
            self.run_tamis("index", "create", table, "at", "at", "--ranges", "4")
        self.assertEqual(self.run_tamis("index", "refit"), "")
        for table in ["first", "third"]:
            insert(table, 100_000, 101_100)
        self.assertEqual(self.run_tamis("index", "refit", "second"), "")
        self.assertEqual(self.run_tamis("index", "refit", "third"), "third.at: fitted\n")
        self.assertEqual(self.run_tamis("index", "refit"), "first.at: fitted\n")
        self.assertNotIn("outgrown", self.run_tamis("status"))
        self.run_tamis("table", "create", "later", "--column", "id:int64", "--key", "id", "--index", "id ranges 4")
        self.run_tamis("sql", "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 1100) "
                              "INSERT INTO later SELECT x FROM i")
        self.assertIn("ranges, not fitted yet (tamis index ranges later id)", self.run_tamis("index", "list", "later"))
        self.assertEqual(self.run_tamis("index", "refit"), "later.id: fitted\n")
        self.assertRegex(self.run_tamis("index", "list", "later"), r" ranges by \d+ cells,")

    def test_tables_indexes_regions(self):
        self.import_people()
        self.assertEqual(self.run_tamis("table", "list"), "people\n")
        self.assertIn("index home_town (home_town)", self.run_tamis("table", "describe", "people"))
        self.run_tamis("index", "create", "people", "by_born", "born,name")
        self.assertIn("people.by_born (born, name), fpr 0.001, 10000 values a region",
                      self.run_tamis("index", "list", "people"))
        self.assertEqual(self.sql("SELECT name FROM people WHERE born = 1815"), [{"name": "ada"}])
        self.run_tamis("index", "rebuild", "people")
        self.run_tamis("index", "ranges", "people", "by_born", "--cells", "4")
        self.assertIn("expected_values 10000 ranges\n", self.run_tamis("table", "describe", "people"))
        self.assertRegex(self.run_tamis("index", "list", "people"), r"by_born .* ranges by \d+ cells")
        self.assertEqual(self.sql("SELECT cells > 0 AS has FROM tamis_indexes('people') WHERE name = 'by_born'"), [{"has": 1}])
        self.assertEqual(self.sql("SELECT name FROM people WHERE born BETWEEN 1800 AND 1820"), [{"name": "ada"}])
        self.run_tamis("index", "ranges", "people", "by_born", "--cells", "0")
        self.assertNotIn("ranges", self.run_tamis("table", "describe", "people"))
        self.run_tamis("index", "drop", "people", "by_born")
        self.run_tamis("index", "create", "people", "by_born", "born", "--ranges", "8")
        self.assertRegex(self.run_tamis("index", "list", "people"), r"by_born .* ranges by \d+ cells")
        self.run_tamis("index", "create", "people", "by_name", "name", "--ranges", "65", expect=2)
        self.run_tamis("index", "drop", "people", "by_born")
        self.assertNotIn("by_born", self.run_tamis("index", "list", "people"))
        region = self.sql("SELECT region FROM tamis_regions('people')")[0]["region"]
        self.assertIn("has only 1 column\n", self.run_tamis("region", "split", str(region), "a", "b", expect=1))
        self.run_tamis("region", "split", str(region), "alan")
        self.assertEqual(len(self.sql("SELECT * FROM tamis_regions('people')")), 2)
        self.assertEqual(self.sql("SELECT count(*) AS n FROM people"), [{"n": 3}])
        first = self.sql("SELECT region FROM tamis_regions('people')")[0]["region"]
        self.run_tamis("region", "move", str(first), "rs5")
        self.run_tamis("region", "balance")
        self.run_tamis("region", "merge", str(first))
        self.assertEqual(len(self.sql("SELECT * FROM tamis_regions('people')")), 1)
        self.assertEqual(self.sql("SELECT name FROM people WHERE home_town = 'New York'"),
                         [{"name": "grace"}])
        self.assertIn("8 live", self.run_tamis("status"))
        self.assertIn("rs8", self.run_tamis("server", "list"))
        self.run_tamis("table", "drop", "people")
        self.assertEqual(self.run_tamis("table", "list"), "")
        self.assertIn("people", self.run_tamis("table", "describe", "people", expect=1))

    def test_a_column_is_added_while_rows_stand(self):
        self.import_people()
        self.run_tamis("table", "add-column", "people", "children:int64")
        self.assertIn("children int64", self.run_tamis("table", "describe", "people"))
        self.run_tamis("put", "people", "name=emmy", "children=0")
        self.assertEqual(self.sql("SELECT name, children FROM people WHERE name >= 'emmy' LIMIT 1"),
                         [{"name": "emmy", "children": 0}])
        self.assertEqual(self.sql("SELECT count(*) AS n FROM people WHERE children IS NULL"), [{"n": 3}])
        self.assertIn("children", self.run_tamis("table", "add-column", "people", "children", expect=1))
        self.assertIn("are not cells", self.run_tamis("table", "add-column", "people", "x=d:x:int64", expect=1))
        self.assertIn("colour", self.run_tamis("table", "add-column", "people", "x:colour", expect=1))

    def test_a_computed_column_is_added_and_indexed(self):
        self.import_people()
        self.run_tamis("table", "add-column", "people", "town_lower=lower(home_town)")
        self.run_tamis("table", "add-column", "people", "initial=substr(name, 1, 1)")
        self.assertIn("town_lower text = lower(home_town)", self.run_tamis("table", "describe", "people"))
        self.run_tamis("index", "create", "people", "by_town", "town_lower")
        query = "SELECT name, initial FROM people WHERE town_lower = 'new york'"
        self.assertEqual(self.sql(query), [{"name": "grace", "initial": "g"}])
        self.assertIn("by_town", self.run_tamis("explain", query))
        unchanged = query.replace("town_lower =", "lower(p.home_town) =").replace("people", "people p")
        self.assertEqual(self.sql(unchanged), [{"name": "grace", "initial": "g"}])
        self.assertIn("town_lower = 'new york'", self.run_tamis("explain", unchanged))
        hidden = "CREATE TEMP TABLE p AS SELECT 'X' AS home_town; SELECT * FROM p WHERE lower(home_town) = 'x'"
        self.assertEqual(self.sql(hidden), [{"home_town": "X"}])
        self.assertIn("computed as lower(home_town)",
                      self.run_tamis("put", "people", "name=emmy", "town_lower=erlangen", expect=1))
        self.run_tamis("put", "people", "name=emmy", "home_town=Erlangen")
        self.assertEqual(self.sql("SELECT name FROM people WHERE home_town = 'ERLANGEN' COLLATE NOCASE"),
                         [{"name": "emmy"}])
        self.assertIn("missing entries 0", self.run_tamis("check", "people"))
        self.assertIn("no function", self.run_tamis("table", "add-column", "people", "x=upper(name)", expect=1))
        self.run_tamis("table", "create", "notes", "--column", "id:int64", "--column", "text", "--column",
                       "author=json_text(text, '$.author')", "--key", "id", "--index", "author")
        self.run_tamis("sql", "INSERT INTO notes VALUES (1, '{\"author\": \"Kim\"}')")
        self.assertEqual(self.sql("SELECT id FROM notes WHERE author = 'Kim'"), [{"id": 1}])

    def test_a_computed_column_is_dropped(self):
        self.import_people()
        described = self.run_tamis("table", "describe", "people")
        self.run_tamis("table", "add-column", "people", "town_lower=lower(home_town)")
        self.run_tamis("index", "create", "people", "by_town", "town_lower")
        refusal = self.run_tamis("table", "drop-column", "people", "town_lower", expect=1)
        self.assertIn('it is used by index "by_town"', refusal)
        command = refusal[refusal.index("tamis index drop"):].split()[1:]
        self.run_tamis(*command)
        self.run_tamis("table", "drop-column", "people", "town_lower")
        self.assertEqual(self.run_tamis("table", "describe", "people"), described)
        self.assertIn("no such column", self.run_tamis("sql", "SELECT town_lower FROM people", expect=1))
        query = "SELECT name FROM people WHERE lower(home_town) = 'new york'"
        self.assertEqual(self.sql(query), [{"name": "grace"}])
        self.assertNotIn("dropped_column", self.run_tamis("explain", query))
        collated = "SELECT name FROM people WHERE home_town = 'NEW YORK' COLLATE NOCASE"
        self.assertEqual(self.sql(collated), [{"name": "grace"}])
        self.assertNotIn("dropped_column", self.run_tamis("explain", collated))
        self.assertEqual([name for name in self.sql("SELECT * FROM people LIMIT 1")[0] if "dropped" in name], [])
        self.run_tamis("sql", "UPDATE people SET home_town = 'YORK' WHERE name = 'grace'")
        self.run_tamis("sql", "UPDATE people SET born = x.n FROM (SELECT 1906 AS n) AS x WHERE name = 'grace'")
        self.assertEqual(self.sql("SELECT born, home_town FROM people WHERE name = 'grace'"),
                         [{"born": 1906, "home_town": "YORK"}])
        self.assertIn("no column", self.run_tamis("index", "create", "people", "again", "town_lower", expect=1))
        self.assertIn("not computed", self.run_tamis("table", "drop-column", "people", "home_town", expect=1))
        self.assertIn("no such column", self.run_tamis("table", "drop-column", "people", "town_lower", expect=1))
        self.run_tamis("table", "add-column", "people", "town_lower:int64")
        self.run_tamis("table", "add-column", "people", "town=lower(home_town)")
        self.assertEqual(self.sql("SELECT town, town_lower FROM people WHERE name = 'grace'"),
                         [{"town": "york", "town_lower": None}])
        self.import_people()

    def test_regions_are_shown_by_the_values_of_their_keys(self):
        self.import_people()
        region = self.sql("SELECT region FROM tamis_regions('people')")[0]["region"]
        self.run_tamis("region", "split", str(region), "alan")
        shown = json.loads(self.run_tamis("region", "list", "people", "--format", "json"))
        self.assertEqual([(r["start"], r["end"]) for r in shown], [(None, "('alan')"), ("('alan')", None)])
        shown = json.loads(self.run_tamis("region", "list", "people", "--hex", "--format", "json"))
        self.assertEqual([r["start_key"] for r in shown], ["0x", "0x02616c616e0001"])

    def test_status_says_what_filters_leases_and_feeds_hold(self):
        self.import_people()
        status = json.loads(self.run_tamis("status", "--json"))
        self.assertEqual(status["store"], self.store)
        self.assertEqual([table["name"] for table in status["tables"]], ["people"])
        self.assertEqual(len(status["servers"]), 8)
        holder, = (server for server in status["servers"] if server["regions"] == 1)
        self.assertGreater(holder["filter_bytes"], 0)
        self.assertEqual([c["events_behind"] for c in holder["coordinators"]], [0])
        self.assertGreater(holder["coordinators"][0]["lease_ms"], 0)
        self.assertEqual(status["coordinator"]["regions"], 1)
        self.assertEqual(status["coordinator"]["indexes_missing"], 0)
        self.assertGreater(status["coordinator"]["filter_bytes"], 0)
        self.assertRegex(self.run_tamis("status"), "rs1 live: .* regions, filters .*; feed .* behind")

    def test_filters_that_find_no_room_are_left_out_and_answers_stay_right(self):
        self.import_people()
        for memory, left_out, of_bits in ((1_000_000, 0, 0), (100, 1, 1), (0, 1, 1)):
            little = ["--filter-memory", str(memory), "--server-filter-memory", str(memory)]
            for town, names in (("New York", ["grace"]), ("Paris", [])):
                found = json.loads(self.run_tamis(
                    *little, "sql", "--format", "json",
                    f"SELECT name FROM people WHERE home_town = '{town}'"))
                self.assertEqual([row["name"] for row in found], names)
            status = json.loads(self.run_tamis(*little, "status", "--json"))
            known = status["coordinator"]
            self.assertEqual(known["max_filter_bytes"], memory)
            self.assertLessEqual(known["filter_bytes"], memory)
            self.assertEqual(known["indexes_missing"], left_out)
            self.assertEqual(known["indexes_left_out"], left_out)
            holder, = (server for server in status["servers"] if server["regions"] == 1)
            self.assertEqual(holder["max_filter_bytes"], memory)
            self.assertEqual(holder["filters_of_bits"], of_bits)
            shown = self.run_tamis(*little, "status")
            self.assertIn(f"not loaded: {left_out} ({left_out} for lack of memory)", shown)
            self.assertEqual("1 of bits alone for lack of memory" in shown, of_bits == 1)
            # A starved machine may let a server miss its heartbeats; it is then expelled and starts again.
            live = int(re.search(r"^servers +8, (\d+) live$", shown, re.MULTILINE)[1])
            self.assertEqual(shown.count("filters 0.0 MB of at most 1.0 MB"),
                             live + 1 if memory == 1_000_000 else 0, shown)

    def test_check_finds_no_fault_in_a_sound_store(self):
        self.import_people()
        self.assertIn("3 rows", self.run_tamis("check", "people"))

    def test_wrong_usage_is_an_error_with_a_hint(self):
        self.run_tamis(expect=2)
        for words, what in ((["nonsense"], "command nonsense"), (["table", "lst"], "command lst"),
                            (["--nonsense"], "option --nonsense"), (["index", "--table", "t"], "option --table")):
            self.assertIn("There is no " + what, self.run_tamis(*words, expect=2))
        self.assertIn("subcommand is required", self.run_tamis("table", expect=2))
        for number in ("-1", "18446744073709551616", "x"):
            self.assertIn(number, self.run_tamis("scan", "t", "--limit", number, expect=2))
        self.assertIn("-1", self.run_tamis("index", "ranges", "t", "i", "--cells", "-1", expect=2))
        self.run_tamis("--split-bytes", "-5", "status", expect=2)
        self.run_tamis("import", "t", expect=2)
        self.assertIn("{table,csv,json,jsonl,line}", self.run_tamis("sql", "--format", "xml", "SELECT 1", expect=2))
        self.assertIn("syntax error", self.run_tamis("sql", "--create", "SELEC", expect=1))
        self.assertTrue(self.run_tamis("--version").startswith("tamis "))
        for command in ("", "sql", "import", "region", "index create"):
            self.assertIn("Usage", self.run_tamis(*command.split(), "--help"))

    def test_a_process_that_can_start_no_threads_is_told_so(self):
        def run(megabytes, *arguments):
            limit = (megabytes << 20, megabytes << 20)
            return subprocess.run([TAMIS, *arguments], capture_output=True, text=True, timeout=60, check=False,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))

        if run(400, "--version").returncode != 0:
            self.skipTest("a sanitizer needs the address space")
        self.import_people()
        for megabytes in (200, 300, 400):
            done = run(megabytes, "--store", self.store, "sql", "SELECT name FROM people")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, "no thread can be started|memory")
        self.assertIn("missing entries 0", self.run_tamis("check", "people"))

    def test_closed_streams_are_no_files_of_the_store(self):
        self.import_people()
        streams = {"stdin": 0, "stdout": 1, "stderr": 2}
        command = [TAMIS, "--store", self.store, "sql", "SELECT name FROM people", "SELEC"]
        for closed in (["stdout"], ["stdin", "stdout"], ["stdin", "stdout", "stderr"], ["stderr"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                                  preexec_fn=lambda closed=closed: [os.close(streams[name]) for name in closed])
            self.assertEqual(done.returncode, 1)
            if closed == ["stdout"]:
                self.assertIn(b"cannot write to standard output", done.stderr)
            for directory, _, files in os.walk(self.store):
                for name in files:
                    with open(os.path.join(directory, name), "rb") as file:
                        self.assertNotIn(b"(3 rows)", content := file.read())
                        self.assertNotIn(b"SELEC", content)
        self.assertIn("missing entries 0", self.run_tamis("check", "people"))

    def test_output_that_does_not_arrive_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TAMIS, "--store", self.store, "sql", "--create", "SELECT 1"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_a_mistyped_store_is_not_made(self):
        for command in (["scan", "t"], ["get", "t", "1"], ["put", "t", "a=1"], ["delete", "t", "1"], ["check", "t"],
                        ["status"], ["region", "list", "t"], ["table", "list"], ["table", "drop", "t"],
                        ["index", "list", "t"], ["explain", "SELECT * FROM t"], ["sql", "SELECT * FROM t"],
                        ["sql", "INSERT INTO t VALUES (1)"], ["sql", "DROP TABLE t", "SELECT 1"],
                        ["sql", "CREATE TEMP TABLE t(a)"], ["sql", "SELECT 'CREATE TABLE'; -- CREATE TABLE t(a)"]):
            self.assertIn("there is none; check the name", self.run_tamis(*command, expect=1), command)
            self.assertFalse(os.path.exists(self.store), command)
        for piped in ("", ".tables\n", "SELECT 1;\nSELECT 'CREATE TABLE t(a PRIMARY KEY)';\n"):
            self.run_tamis("sql", stdin=piped, expect=1)
            self.assertFalse(os.path.exists(self.store), piped)

    def test_sql_makes_a_store_that_is_not_there_for_a_table(self):
        table = "CREATE TABLE t(a TEXT PRIMARY KEY)"
        for i, arguments in enumerate((["SELECT 1", table + "; SELECT 1"],
                                       ["/* of */ create virtual table t using tamis(a, key (a))"],
                                       ["--create", "SELECT 1"])):
            self.store = os.path.join(self.directory.name, f"store{i}")
            self.run_tamis("sql", *arguments)
            self.run_tamis("status")

    def test_sql_makes_a_store_that_is_not_there_for_a_table_in_a_pipe(self):
        shown = self.run_tamis("sql", "--format", "csv", stdin="-- Comment\n.tables\nSELECT 1 AS n;\nCREATE TABLE t("
                               "a TEXT PRIMARY KEY);\nINSERT INTO t VALUES ('x');\nSELECT * FROM t;\n")
        self.assertEqual(shown, "n\n1\na\nx\n")
        self.assertIn("line 3", self.run_tamis("sql", stdin="SELECT 1;\nSELECT\n2,;\n", expect=1))

    def test_a_second_process_is_told_that_the_store_is_in_use(self):
        process = self.start_endless_query()
        self.assertIn(self.store, self.run_tamis("status", expect=1))
        process.kill()

    def listing(self):
        """Each file of the store with its size and time; the directory's own time, too."""
        paths = [self.store, *sorted(glob.glob(os.path.join(self.store, "*")))]
        return [(path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in paths]

    def test_a_store_that_is_read_only_answers_and_stays_as_it_is(self):
        self.import_people()
        before = self.listing()
        directory = self.store
        for store, options in ((directory, ["--read-only"]), (f"rocks:{directory}?mode=ro", [])):
            def run(*command, expect=0):
                self.store = store
                return self.run_tamis(*options, *command, expect=expect)
            rows = json.loads(run("sql", "--format", "json", "SELECT name FROM people WHERE home_town = 'London'"))
            self.assertTrue(rows)
            run("check", "people")
            run("status")
            for refused in (["sql", "INSERT INTO people (name) VALUES ('x')"], ["sql", "DELETE FROM people"],
                            ["sql", "CREATE TABLE t (a TEXT PRIMARY KEY)"], ["table", "drop", "people"],
                            ["delete", "people", rows[0]["name"]], ["put", "people", "name=x"],
                            ["index", "drop", "people", "home_town"], ["index", "rebuild", "people"]):
                self.assertIn("open for reading only", run(*refused, expect=1), refused)
            self.assertNotIn("run the same command again", run(
                "import", "people", "-", "--format", "csv", "--key", "name", expect=1))
        self.store = f"rocks:{directory}?mode=r"
        self.assertIn("there is ?mode=ro", self.run_tamis("status", expect=1))
        create = ["sql", "CREATE TABLE t(a INTEGER PRIMARY KEY)"]
        for name, part in ((f"rocks:{directory}2?moed=ro", "there is ?mode=ro"),
                           (f"{directory}2?mode=ro", f"write rocks:{directory}2?mode=ro")):
            self.store = name
            self.assertIn(part, self.run_tamis(*create, expect=1))
        self.assertFalse([made for made in os.listdir(self.directory.name) if "2?" in made])
        self.store = directory
        self.assertEqual(self.listing(), before)

    def test_messages_name_the_cause(self):
        for name, kind in (("HTTP://localhost:1", "http"), ("Rocks:a?mode=ro", "rocks"), ("HBase://a:2181", "hbase")):
            self.store = name
            self.assertIn(f'write "{kind}:" in lower case', self.run_tamis("status", expect=1))
        self.store = os.path.join(self.directory.name, "store")
        self.import_people()
        for option in ("--delimiter", "--format", "--columns"):
            self.assertIn(option, self.import_people(option, "", expect=2))
        for command in (["import", "u", "-", "--format", "csv", "--key", "a"], ["sql"]):
            done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", TAMIS, "--store", self.store, *command],
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot read standard input: it is closed", done.stderr)
            root = os.open("/", os.O_RDONLY)
            self.addCleanup(os.close, root)
            done = subprocess.run([TAMIS, "--store", self.store, *command], stdin=root, capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("directory", done.stderr)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may read every file")
    def test_a_store_that_may_not_be_read_is_not_advised_to_be_opened_for_reading(self):
        self.import_people()
        os.chmod(self.directory.name, 0o755)
        for directory, _, files in os.walk(self.store):
            os.chmod(directory, 0o755)
            for name in files:
                os.chmod(os.path.join(directory, name), 0o000)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        for options in ([], ["--read-only"]):
            done = subprocess.run([*user, TAMIS, *options, "--store", self.store, "status"], capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("get the right to read it", done.stderr)
            self.assertNotIn("write", done.stderr)

    def test_several_processes_read_a_store_and_keep_writers_out(self):
        self.import_people()
        process = self.start_endless_query("--read-only")
        self.run_tamis("--read-only", "status")
        self.assertIn("another process has the store open", self.run_tamis("status", expect=1))
        process.kill()
        process.wait()
        process = self.start_endless_query()
        self.assertIn("another process has the store open", self.run_tamis("--read-only", "status", expect=1))

    def start_endless_query(self, *options):
        if not options:
            self.run_tamis("sql", "--create", "SELECT 1")
        process = subprocess.Popen(
            [TAMIS, "--store", self.store, *options, "sql", "--format", "csv", "SELECT 1 AS ready",
             "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i) SELECT count(*) FROM i"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertEqual(process.stdout.readline(), "1\n")
        return process

    def test_ctrl_c_stops_a_query(self):
        process = self.start_endless_query()
        # Until the second statement runs, SIGINT ends the program: the same code.
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)


unittest.main()
