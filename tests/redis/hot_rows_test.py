#!/usr/bin/env python3
"""A row that comes and goes again and again does not fill a filter, in doubt, in a rebuild, after a restart, and
when its inserts are rolled back; and the other rows stay exact. usage: hot_rows_test.py MODULE
"""

import sys

from redis_server import Server

MODULE = sys.argv[1]
# And how often a row can be in a filter and go again.
TYPES = {"blocked-quotient": 15, "cuckoo": 3, "quotient": 15, "d-left": 14, "blocked-counting": 14, "projected": 14,
         "counting": 14, "dynamic-count": 1000, "split-counting": 14, "scalable": 14}
CAPACITY = 1000
HOT = [f"hot{i}" for i in range(4)]
ROWS = [f"row{i}" for i in range(CAPACITY - 300)]
CYCLES = 300


def come(client, key):
    """The rows that come and go; their erases are skipped or not."""
    generation = client("TAMIS.GENERATION", key)
    commands = []
    for _ in range(CYCLES):
        commands += [("TAMIS.ADD", key, *HOT), ("TAMIS.DELIF", key, generation, *HOT)]
    replies = client.pipeline(commands)
    assert all(x in (0, 1) for reply in replies[::2] for x in reply), (key, replies[-2:])
    return replies[1::2]


def come_and_never_go(client, key):
    """As inserts that are rolled back and tried again."""
    replies = client.pipeline([("TAMIS.ADD", key, *HOT)] * CYCLES)
    assert all(x in (0, 1) for reply in replies for x in reply), (key, replies[-1])


def takes_all_rows(client, key):
    assert -1 not in client("TAMIS.ADD", key, *ROWS), key
    assert 0 not in client("TAMIS.CHECK", key, *ROWS, *HOT), key


def others_go(client, key):
    """Rows beside those that stay are erased, and few of them are still there."""
    assert client("TAMIS.DEL", key, *ROWS) == [1] * len(ROWS), key
    assert client("TAMIS.CHECK", key, *ROWS).count(1) < len(ROWS) // 20, key
    assert 0 not in client("TAMIS.CHECK", key, *HOT), key


def main():
    with Server(MODULE, "appendonly", "yes", "appendfsync", "no") as server:
        client = server.client()
        for name in TYPES:
            client("TAMIS.RESERVE", name, "0.01", CAPACITY, "TYPE", name, "GUARD")
            assert come(client, name)[-1] == [-1] * len(HOT), "in doubt nothing is erased"
            client("TAMIS.REBUILD", name, "START", "0.01", CAPACITY, "TYPE", name)
            come(client, name)
            # It is trusted now, so that what comes goes in the old one alone.
            client("TAMIS.TRUST", name)
            assert come(client, name)[-1] == [1] * len(HOT), name
            assert client("TAMIS.REBUILD", name, "ADD", *ROWS) == len(ROWS), name
            assert client("TAMIS.REBUILD", name, "COMMIT") == "OK", name
            assert 0 not in client("TAMIS.CHECK", name, *ROWS, *HOT), name
        server.kill()
        server.start()
        client = server.client()
        client("CONFIG", "SET", "bf.tamis-erase-delay" if client("CONFIG", "GET", "bf.tamis-erase-delay") else
               "tamis-erase-delay", "0")
        for name in TYPES:
            assert client("TAMIS.CHECK", name, HOT[0]) == [-1], name
            come(client, name)
            client("TAMIS.TRUST", name)
            others_go(client, name)
            takes_all_rows(client, name)
        # Each row as often as a filter counts: they go again.
        for name, copies in TYPES.items():
            client("DEL", name)
            client("TAMIS.RESERVE", name, "0.001", CAPACITY, "TYPE", name, "GUARD")
            client("TAMIS.TRUST", name)
            for command in ("TAMIS.ADD", "TAMIS.DEL"):
                replies = client.pipeline([(command, name, "often")] * copies)
                assert all(reply in ([0], [1]) for reply in replies), (name, command)
            assert client("TAMIS.CHECK", name, "often") == [0], name
            come_and_never_go(client, name)
            takes_all_rows(client, name)
            others_go(client, name)
        print(len(TYPES), "types,", CYCLES, "times each")


if __name__ == "__main__":
    main()
