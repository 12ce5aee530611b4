"""An application that asks a filter on a server without modules before its database, with redis-py (docs/PLAIN_GUARD.md).

usage: rows.py SOCKET, then `look_up ID`, `insert ID` and `delete ID` on the standard input
"""

import os
import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "clients"))

from database import Database

db = Database()

# --- as the page has it ---
r = redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=0.1, socket_connect_timeout=0.1,
                retry=Retry(NoBackoff(), 0))
KEYS = ["{items}:filter", "{items}:trust", "{items}:new", "{items}:rebuild"]
with open(os.path.join(here, "guard.lua"), encoding="utf-8") as file:
    SCRIPT = file.read()


def guard(*words):
    return r.eval(SCRIPT, len(KEYS), *KEYS, *words)


def look_up(id):
    try:
        if guard("check", id) == 0:
            return None  # there is no such row
    except redis.RedisError:
        pass  # no answer: the database has one
    return db.find(id)


def insert(id):
    with db.transaction():  # rolled back by an exception, as when the outcome of the add is unknown
        db.insert(id)
        guard("add", id)


def delete(id):
    db.delete(id)  # the key stays in the filter until the next load, and costs a lookup now and then
# --- end ---


for line in sys.stdin:
    word, id = line.split()
    asked = db.asked
    try:
        done = {"look_up": look_up, "insert": insert, "delete": delete}[word](id)
        answer = "row" if done else "none"
    except (redis.RedisError, RuntimeError):
        answer = "failed"
    print(answer, "asked" if db.asked > asked else "spared", flush=True)
