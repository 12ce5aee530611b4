"""A coordinator in a process of its own: answers SQL about a store, a line of JSON for each line of it.

usage: sql_process.py EXTENSION STORE

A line is a statement as a JSON string; its answer {"rows": [[...], ...]} or {"error": "...", "code": SQLite's}.
"""

import json
import sqlite3
import sys

extension, store = sys.argv[1:]
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension(extension)
db.execute("SELECT tamis_open(?)", (store,)).fetchall()
for line in sys.stdin:
    try:
        answer = {"rows": db.execute(json.loads(line)).fetchall()}
    except sqlite3.Error as error:
        answer = {"error": str(error), "code": getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)}
    print(json.dumps(answer), flush=True)
