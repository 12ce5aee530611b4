#!/usr/bin/env python3
"""The examples of docs/SQL.md and docs/TABLES.md run: each indented block that is a command or SQL, in their order.

A statement that a page gives twice, as a command and in SQL, must define the same table.

usage: sql_pages_test.py TAMIS DOCS
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

TAMIS, DOCS = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
# Tables that the examples of a page presume.
PRESUMED = {
    "SQL.md": [],
    "TABLES.md": ["CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total INTEGER, status TEXT)",
                  "INSERT INTO orders VALUES (1, 'kim', 250, 'open'), (2, 'lee', 90, 'closed')"],
}


def examples_of(page):
    """The indented blocks of a page that can be run; those in a list belong to its text."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"(?<=\n\n)(?:    .*\n)+", text):
        lines = "".join(line[4:] + "\n" for line in block.splitlines())
        if re.match(r"\$ tamis |CREATE |SELECT ", lines):
            yield lines


class SqlPagesTest(unittest.TestCase):
    def run_examples(self, page, least):
        with tempfile.TemporaryDirectory() as store:
            def run(*arguments, shell=False):
                environment = dict(os.environ, TAMIS_STORE=os.path.join(store, "s"), HOME=store,
                                   PATH=os.path.dirname(TAMIS) + ":" + os.environ["PATH"])
                done = subprocess.run(*arguments, shell=shell, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{page}: {arguments}\n{done.stdout}{done.stderr}")

            for statement in PRESUMED[page]:
                run([TAMIS, "sql", statement])
            count = 0
            for example in examples_of(page):
                if example.startswith("$ "):
                    run(re.sub(r"^\$ ", "", example, flags=re.MULTILINE), shell=True)
                else:
                    run([TAMIS, "sql", example])
                count += 1
            self.assertGreaterEqual(count, least)

    def test_examples_of_sql(self):
        self.run_examples("SQL.md", 5)

    def test_examples_of_tables(self):
        self.run_examples("TABLES.md", 6)


unittest.main()
