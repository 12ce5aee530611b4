#!/usr/bin/env python3
"""Memory that is not there, at every allocation of every command: an error, and the key is as it was.

What adds many items may have added those whose replies say so. usage: memory_test.py MODULE
"""

import struct
import sys

from redis_server import Error, Server

MODULE = sys.argv[1]
TYPES = ("blocked-quotient", "blocked", "cuckoo", "quotient", "d-left", "blocked-counting", "projected", "counting",
         "dynamic-count", "split-counting", "scalable", "scalable-bloom", "bloom")
MANY = [f"item{i}" for i in range(300)]


def commands(client):
    """What was done before, what is done without memory, and what is asked when it adds many items."""
    client("BF.ADD", "bf", "x")
    bloom = [client("BF.SCANDUMP", "bf", at)[1] for at in (0, 1)]
    client("CF.ADD", "cf", "x")
    cuckoo = [client("CF.SCANDUMP", "cf", at)[1] for at in (0, 1)]
    dumps = {key: client("DUMP", key) for key in ("bf", "cf")}
    link = b"\1" + (6).to_bytes(8, "little") + (7).to_bytes(4, "little") + b"s" * 32 + bytes(6)
    seeded = struct.pack("<BIddBQQ", 1, 2, 0.01, 0.5, 1, 1, len(link)) + link + struct.pack("<qq", 0, 5)
    rows = [
        ([], "BF.RESERVE k 0.01 100", None), ([], "BF.ADD k x", None), ([], ["BF.MADD", "k", *MANY], "BF.MEXISTS"),
        ([], ["BF.INSERT", "k", "CAPACITY", "10", "ITEMS", *MANY], "BF.MEXISTS"),
        (["BF.RESERVE k 0.01 1", "BF.ADD k x"], "BF.ADD k y", None),
        (["BF.ADD k x"], ["BF.MEXISTS", "k", *MANY], None), (["BF.ADD k x"], "BF.INFO k", None),
        (["BF.ADD k x"], "BF.DEBUG k", None), (["BF.ADD k x"], "BF.SCANDUMP k 0", None),
        (["BF.ADD k x"], "BF.SCANDUMP k 1", None), ([], ["BF.LOADCHUNK", "k", "1", bloom[0]], None),
        ([["BF.LOADCHUNK", "k", "1", bloom[0]]], ["BF.LOADCHUNK", "k", str(1 + len(bloom[1])), bloom[1]], None),
        ([], "CF.RESERVE k 100", None), ([], "CF.ADD k x", None), ([], "CF.ADDNX k x", None),
        ([], ["CF.INSERT", "k", "CAPACITY", "8", "ITEMS", *MANY], "CF.MEXISTS"),
        ([], ["CF.INSERTNX", "k", "CAPACITY", "8", "ITEMS", *MANY], "CF.MEXISTS"),
        (["CF.RESERVE k 2 BUCKETSIZE 1", "CF.ADD k x", "CF.ADD k x"], "CF.ADD k x", None),
        (["CF.ADD k x"], ["CF.MEXISTS", "k", *MANY], None), (["CF.ADD k x"], "CF.DEL k x", None),
        (["CF.ADD k x"], "CF.COUNT k x", None), (["CF.ADD k x"], "CF.INFO k", None), (["CF.ADD k x"], "CF.DEBUG k", None),
        (["CF.ADD k x"], "CF.COMPACT k", None), (["CF.ADD k x"], "CF.SCANDUMP k 0", None),
        ([], ["CF.LOADCHUNK", "k", "1", cuckoo[0]], None),
        ([["CF.LOADCHUNK", "k", "1", cuckoo[0]]], ["CF.LOADCHUNK", "k", str(1 + len(cuckoo[1])), cuckoo[1]], None),
        ([], "TAMIS.SIZE 0.01 100", None),
        ([], ["BF.INSERT", "k", "SEED", "s" * 32, "CAPACITY", "10", "ITEMS", *MANY], "BF.MEXISTS"),
        ([], ["BF.LOAD", "k", seeded], None), ([["BF.LOAD", "k", seeded]], "BF.ADD k y", None),
        ([["BF.LOAD", "k", seeded]], ["BF.MEXISTS", "k", *MANY], None), ([["BF.LOAD", "k", seeded]], "BF.INFO k", None),
        ([["BF.LOAD", "k", seeded]], "COPY k copy", None),
        *(([], ["RESTORE", "k", "0", dumps[key]], None) for key in dumps),
        (["BF.ADD k x"], "COPY k copy", None), (["CF.ADD k x"], "COPY k copy", None),
        (["BF.ADD k x", "BF.ADD other y"], "TAMIS.UNION k other", None), (["BF.ADD other y"], "TAMIS.UNION k other", None),
    ]
    clock = client("CONFIG", "GET", "*tamis-running-clock")[0].decode()
    for kind in ("cuckoo", "blocked-quotient", "scalable"):
        make = [f"CONFIG SET {clock} 1000", f"TAMIS.RESERVE k 0.01 100 TYPE {kind} SEED 1 WINDOW 4"]
        filled = [*make, "TAMIS.ADD k x y", f"CONFIG SET {clock} 2500", "TAMIS.ADD k z", f"CONFIG SET {clock} 3500"]
        client("DEL", "window")
        client("TAMIS.RESERVE", "window", "0.01", "100", "TYPE", kind, "SEED", "1", "WINDOW", "4")
        rows += [([], make[1], None), (filled, "TAMIS.ADD k later", "slice"), (filled, "TAMIS.INFO k", None),
                 (filled, ["TAMIS.CHECK", "k", *MANY], None), (filled, "TAMIS.SCANDUMP k 0", None),
                 (filled, "COPY k copy", None), ([], ["RESTORE", "k", "0", client("DUMP", "window")], None)]
    for name in TYPES:
        make = f"TAMIS.RESERVE k 0.01 100 TYPE {name} SEED 1 GUARD"
        filled = [make, "TAMIS.ADD k x y"]
        client("TAMIS.RESERVE", name, "0.01", "100", "TYPE", name, "SEED", "1")
        client("TAMIS.ADD", name, "x", "y")
        parts, at = [], 0
        while True:
            asked, (at, data) = at, client("TAMIS.SCANDUMP", name, at)
            if at == 0:
                break
            parts.append(["TAMIS.LOADCHUNK", "k", str(asked), data])
        start = "TAMIS.REBUILD k START 0.01 100 TYPE " + name
        rows += [
            ([], make, None), ([make], ["TAMIS.ADD", "k", *MANY[:80]], "TAMIS.CHECK"), (filled, "TAMIS.ADD k z", None),
            ([*filled, "TAMIS.TRUST k"], ["TAMIS.CHECK", "k", *MANY], None), (filled, "TAMIS.INFO k", None),
            ([*filled, "TAMIS.TRUST k"], "TAMIS.DEL k x", None), (filled, "TAMIS.TRUST k", None),
            (filled, ["TAMIS.MARK", "k", "m" * 500], None), (filled, "TAMIS.COUNT k", None),
            (filled, "TAMIS.SCANDUMP k 0", None), ([], ["RESTORE", "k", "0", client("DUMP", name)], None),
            (filled, "COPY k copy", None), ([], ["TAMIS.UNION", "k", name], None),
            ([make, "TAMIS.ADD k z"], ["TAMIS.UNION", "k", name], None),
            ([], start, None), (filled, start, None), ([*filled, start], ["TAMIS.REBUILD", "k", "ADD", *MANY[:80]], "rebuild"),
            ([*filled, start], ["TAMIS.ADD", "k", *MANY[:80]], "TAMIS.CHECK"),
            ([*filled, start, "TAMIS.REBUILD k ADD x y"], "TAMIS.REBUILD k COMMIT MARK " + "m" * 100, None),
            ([*filled, start], "TAMIS.REBUILD k ABORT", None),
            *((parts[:i], parts[i], None) for i in range(len(parts))),
        ]
    return rows


def split(command):
    return command.split() if isinstance(command, str) else command


def state(client):
    return client("TYPE", "k"), client("DEBUG", "DIGEST-VALUE", "k"), client("EXISTS", "copy")


def said_so(reply):
    """An error, or one in the place of an item; COPY says so by nothing."""
    if isinstance(reply, list):
        return any(map(said_so, reply))
    if isinstance(reply, Error):
        return any(text in reply for text in ("emory", "Bad data format", "not supported", "Couldn't create", "bad data"))
    return reply in (-1, False)


def check_items(client, asked, command, reply):
    """Those whose reply says that they were added are there."""
    items = [x for x in split(command)[2:] if x.startswith("item")]
    if isinstance(reply, Error):
        return
    added = [item for item, done in zip(items, reply) if done in (0, 1)]
    if added:
        assert 0 not in client(asked, "k", *added), command


def main():
    failed = partly = 0
    with Server(MODULE, words=("tamis-fault", "allocations", "tamis-fault", "clocks")) as server:
        client = server.client()
        name = "tamis-failing-allocation"
        if client("CONFIG", "GET", name) == []:
            name = "bf." + name
        for before, command, asked in commands(client):
            n = 1
            while True:
                client("DEL", "k", "copy")
                for words in before:
                    reply = client(*split(words))
                    assert not isinstance(reply, Error), (words, reply)
                was = state(client)
                # With one connection and one write: nothing else allocates meanwhile.
                client("CONFIG", "SET", name, str(n))
                client.send(*split(command))
                client.send("PING")
                reply = client.read()
                whole = not (isinstance(reply, list) and "PONG" in reply) and client.read() == "PONG"
                assert whole, (command, n, reply, "the reply was not whole")
                reached = client("CONFIG", "GET", name)[1] == b"0"
                client("CONFIG", "SET", name, "0")
                what = (before[:1], str(command)[:80], n, reply)
                if not reached:
                    assert not isinstance(reply, Error) or "does not erase" in reply, what
                    break
                failed += 1
                if said_so(reply):
                    if asked is None:
                        assert state(client) == was, what
                else:
                    partly += 1  # what it wanted more memory for, it can do without
                if asked == "slice":  # it may have begun all the same
                    assert 0 not in client("TAMIS.CHECK", "k", "x", "y", "z"), what
                elif asked not in (None, "rebuild"):
                    check_items(client, asked, command, reply)
                n += 1
        assert server.alive()
    print(f"{failed} allocations failed, {partly} of them without harm")


if __name__ == "__main__":
    main()
