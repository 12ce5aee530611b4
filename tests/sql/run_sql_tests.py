#!/usr/bin/env python3
"""Runs SQL tests that stand in files, through the loadable extension in Python's own SQLite.

usage: run_sql_tests.py [--serve TAMIS] EXTENSION FILE...

With --serve the stores are behind a server. Each file gets a store and a connection of its own. It is made of blocks, separated by empty lines:

    statement ok             the SQL of the block succeeds
    statement error TEXT     it fails, and the message contains TEXT
    query [sorted]           SQL, a line ----, then the rows it gives: columns separated by |,
                             NULL, x'00ff', text as it is; with "sorted" in any order
    reopen                   ends the connection and the store, and opens both again

Lines that begin with # are comments.
"""

import os
import sqlite3
import sys
import tempfile

from served_store import ServedStore, take_serve


class Failure(Exception):
    pass


def connect(extension, store):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.execute("SELECT tamis_open(?)", (store,)).fetchall()
    return db


def text_of(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "x'" + value.hex() + "'"
    return str(value)


def blocks(path):
    """(line number, lines) of each block."""
    with open(path, encoding="utf-8") as file:
        block, start = [], 0
        for number, line in enumerate(file.read().split("\n") + [""], 1):
            if line.startswith("#"):
                continue
            if line.strip():
                if not block:
                    start = number
                block.append(line)
            elif block:
                yield start, block
                block = []


def run_block(db, block):
    words = block[0].split()
    if words[0] == "statement":
        try:
            db.execute("\n".join(block[1:])).fetchall()
        except sqlite3.Error as error:
            if words[1] == "ok":
                raise Failure(f"it failed: {error}") from error
            expected = block[0].split("error", 1)[1].strip()
            if expected not in str(error):
                raise Failure(f"the message is: {error}") from error
        else:
            if words[1] == "error":
                raise Failure("it did not fail")
    elif words[0] == "query":
        if "----" not in block:
            raise Failure("the query has no ---- line")
        at = block.index("----")
        expected = block[at + 1:]
        try:
            rows = db.execute("\n".join(block[1:at])).fetchall()
        except sqlite3.Error as error:
            raise Failure(f"it failed: {error}") from error
        got = ["|".join(text_of(value) for value in row) for row in rows]
        if "sorted" in words:
            expected, got = sorted(expected), sorted(got)
        if got != expected:
            raise Failure("the rows are:\n    " + "\n    ".join(got))
    else:
        raise Failure(f"there is no block {words[0]}")


def run_file(extension, path, tamis):
    """The number of blocks, and of failures."""
    failures = count = 0
    with tempfile.TemporaryDirectory() as directory:
        store = ServedStore(tamis, os.path.join(directory, "store"))
        db = connect(extension, store.name)
        for line, block in blocks(path):
            count += 1
            if block[0] == "reopen":
                db.close()
                store.close()
                store = ServedStore(tamis, os.path.join(directory, "store"))
                db = connect(extension, store.name)
                continue
            try:
                run_block(db, block)
            except Failure as failure:
                failures += 1
                print(f"{path}:{line}: {failure}")
                if db.in_transaction:
                    db.execute("ROLLBACK")
        db.close()
        store.close()
    return count, failures


def main():
    total = failed = 0
    tamis = take_serve(sys.argv)
    for path in sys.argv[2:]:
        count, failures = run_file(sys.argv[1], path, tamis)
        total += count
        failed += failures
    print(f"{total} blocks in {len(sys.argv) - 2} files, {failed} failed")
    sys.exit(1 if failed or total == 0 else 0)


main()
