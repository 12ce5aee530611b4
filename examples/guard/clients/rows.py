"""An application that asks a filter in Redis before its database, with redis-py (docs/GUARD.md).

usage: rows.py SOCKET, then `look_up ID`, `insert ID` and `delete ID` on the standard input
"""

import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from database import Database

db = Database()

# --- as docs/GUARD.md has it ---
# No retry: a TAMIS.DELIF whose outcome is unknown must not be sent again.
r = redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=0.1, socket_connect_timeout=0.1,
                retry=Retry(NoBackoff(), 0))


def look_up(id):
    try:
        if r.execute_command("TAMIS.CHECK", "items", id) == [0]:
            return None  # there is no such row
    except redis.RedisError:
        pass  # no answer: the database has one
    return db.find(id)


def insert(id):
    with db.transaction():  # rolled back by an exception
        db.insert(id)
        try:
            if r.execute_command("TAMIS.ADD", "items", id) == [-1]:
                raise RuntimeError("the filter is full: tamis guard load --capacity")
        except redis.ResponseError as error:
            if "not found" not in str(error):  # without a filter nothing is refused
                raise


def delete(id):
    try:
        generation = r.execute_command("TAMIS.GENERATION", "items")  # before the row goes
    except redis.RedisError:
        generation = 0  # of no filter
    if db.delete(id) == 0:  # the row count, after the commit
        return  # no row went: the key in the filter, if any, belongs to another insert
    try:
        r.execute_command("TAMIS.DELIF", "items", generation, id)
    except redis.RedisError:
        pass  # not again: what stays in the filter costs a lookup now and then
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
