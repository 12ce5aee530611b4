#!/usr/bin/env python3
"""Exported rows import as the same values: random rows of every type, in each format that can be both
exported and imported. Seed: $SEED, else by the clock; it is printed.

usage: round_trip_test.py TAMIS EXTENSION
"""

import json
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

EXTENSION = sys.argv.pop()
TAMIS = sys.argv.pop()
SEED = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
ROWS = 300
TYPES = ("text", "bytes", "int64", "double", "bool", "timestamp", "decimal")
DOUBLES = (0.1 + 0.2, 1 / 3, 2.0**53, sys.float_info.max, -sys.float_info.max, 5e-324, -0.0, 0.0, 1e22,
           float("inf"), float("-inf"), 123456789012345680.0)
TEXTS = ("", " ", "NULL", "Inf", "0x", "0x00ff", "a\0b", "\r", "\n", "\r\n", "\t", '"', '""', "a,b", "a;b", " a ",
         "\ufeff", "é", "日本", "\U0001f41f", "'", "\\n", "{", "[1]", "#", "sep=;", "1e400", "\x7f\x01")
TIMES = ("1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00", "-0044-03-15 12:00:00",
         "+12345-01-01 00:00:00", "2026-01-02 03:04:05.1", "9999-12-31 23:59:59.999999")
DECIMALS = ("0", "1.10", "-0.000000000000000000000001", "1e300", "1e400", "0.30000000000000004",
            "9223372036854775807", "9223372036854775808", "123456789012345678901234567890.5", "1e22")


class RoundTripTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.store = os.path.join(self.directory.name, "store")
        columns = [f"--column={name}:{name}" for name in TYPES]
        self.definition = ["--column", "k:int64", "--key", "k", *columns]
        self.run_tamis("table", "create", "a", *self.definition)

    def run_tamis(self, *arguments, stdin=b""):
        done = subprocess.run([TAMIS, "--store", self.store, *arguments], input=stdin, capture_output=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, (SEED, done.stdout[-1000:], done.stderr))
        return done.stdout

    def connect(self):
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(EXTENSION)
        db.execute("SELECT tamis_open(?)", (self.store,)).fetchall()
        return db

    def value(self, name):
        rng = self.random
        if rng.randrange(8) == 0:
            return None
        if name == "text":
            if rng.randrange(2):
                return rng.choice(TEXTS)
            return "".join(rng.choice("ab,;\"'\r\n\0\té日 ") for _ in range(rng.randrange(12)))
        if name == "bytes":
            return rng.randbytes(rng.randrange(6))
        if name == "int64":
            return rng.choice((0, -1, 2**63 - 1, -2**63, 2**53 + 1, rng.randrange(-2**63, 2**63)))
        if name == "double":
            if rng.randrange(2):
                return rng.choice(DOUBLES)
            number, = struct.unpack("d", rng.randbytes(8))
            return number if number == number else 0.5  # NaN is no value
        if name == "bool":
            return rng.randrange(2)
        if name == "timestamp":
            return rng.choice(TIMES)
        return rng.choice(DECIMALS)

    def rows_of(self, table):
        db = self.connect()
        rows = db.execute(f"SELECT * FROM {table} ORDER BY k").fetchall()
        db.close()
        # repr tells 1 from 1.0 and -0.0 from 0.0.
        return [repr(row) for row in rows]

    def fill(self):
        db = self.connect()
        marks = ", ".join("?" * (1 + len(TYPES)))
        db.execute("BEGIN")
        db.executemany(f"INSERT INTO a VALUES ({marks})",
                       ([k, *map(self.value, TYPES)] for k in range(ROWS)))
        db.execute("COMMIT")
        db.close()
        return self.rows_of("a")

    def test_rows_of_every_type_come_back_as_they_were(self):
        rows = self.fill()
        self.assertEqual(len(rows), ROWS)
        for form in ("csv", "json", "jsonl"):
            for command in (["scan", "a"], ["sql", "SELECT * FROM a"]):
                exported = self.run_tamis(*command, "--format", form)
                self.run_tamis("import", "b", "-", "--format", form, *self.definition, stdin=exported)
                with self.subTest(seed=SEED, format=form, command=command[0]):
                    self.assertEqual(self.rows_of("b"), rows)
                self.run_tamis("table", "drop", "b")

    def test_single_rows_come_back_as_they_were(self):
        rows = self.fill()
        for k in self.random.sample(range(ROWS), 3):
            for form in ("csv", "json", "jsonl"):
                exported = self.run_tamis("get", "a", str(k), "--format", form)
                self.run_tamis("import", "b", "-", "--format", form, *self.definition, stdin=exported)
        self.assertEqual([row for row in self.rows_of("b") if row not in rows], [], SEED)

    def test_printed_digits_are_the_same_in_every_format(self):
        db = self.connect()
        db.execute("INSERT INTO a (k, double, int64) VALUES (1, 0.1 + 0.2, 5)")
        db.close()
        for form in ("table", "csv", "json", "jsonl", "line"):
            for command in (["scan", "a"], ["get", "a", "1"], ["sql", "SELECT double FROM a"],
                            ["sql", "SELECT sum(double) FROM a"]):
                self.assertIn(b"0.30000000000000004", self.run_tamis(*command, "--format", form))
        self.run_tamis("index", "create", "a", "d", "double")
        shown = json.loads(self.run_tamis("explain", "--json", "SELECT * FROM a WHERE double = 0.1 + 0.2"))
        self.assertIn("0.30000000000000004", str(shown))
        self.assertEqual(self.run_tamis("sql", "SELECT 1e999 AS i, -1e999 AS j, -0.0 * 1 AS z, 2.0 AS w",
                                        "--format", "json"),
                         b'[\n{"i": "Inf", "j": "-Inf", "z": -0.0, "w": 2.0}\n]\n')

    def test_text_that_is_not_utf8_leaves_json_with_a_warning(self):
        done = subprocess.run([TAMIS, "--store", self.store, "sql", "SELECT CAST(x'61ff' AS TEXT) AS t",
                               "--format", "json"], capture_output=True, timeout=60, check=True)
        self.assertIn("1 texts are not UTF-8", done.stderr.decode())
        self.assertEqual(self.run_tamis("sql", "SELECT CAST(x'61ff' AS TEXT) AS t", "--format", "csv"),
                         b"t\na\xff\n")


print(f"SEED={SEED}")
unittest.main()
