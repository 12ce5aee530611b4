#!/usr/bin/python3
"""Asks a store from Python: the ten maintainers with the most packages of a section.

usage: ask.py EXTENSION STORE SECTION
       examples/ask.py build/release/lib/tamis.so build/debian.db games

Python must have been built with loadable extensions; Debian's is.
"""

import sqlite3
import sys


def main():
    extension, store, section = sys.argv[1:]
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.execute("SELECT tamis_open(?)", (store,)).fetchall()
    for maintainer, count in db.execute(
            "SELECT maintainer, count(*) FROM packages WHERE section = ? "
            "GROUP BY maintainer ORDER BY 2 DESC LIMIT 10", (section,)):
        print(f"{count:6} {maintainer}")


main()
