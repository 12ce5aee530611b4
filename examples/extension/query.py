"""A Python program that asks a store in SQL.

python3 query.py build/release/lib/tamis.so DIRECTORY
"""

import sqlite3
import sys

extension, store = sys.argv[1:]
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension(extension)
db.execute("SELECT tamis_open(?)", (store,)).fetchall()
db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS people USING tamis("
           "name, born int64, town, key (name), index town (town))")
db.executemany("INSERT OR REPLACE INTO people VALUES (?, ?, ?)",
               [("ada", 1815, "London"), ("grace", 1906, "New York")])
for name, born in db.execute("SELECT name, born FROM people WHERE town = ?", ("London",)):
    print(name, born)
db.close()
