#!/usr/bin/env python3
"""Programs, logs and files of valkey-bloom: its words, replies and errors, and filters that it has made.

No package has that module, so the bytes below are those of a program that uses the crates it is made of (bloomfilter 3.0.2,
bincode 1.3.3), and replies and errors are the documented ones. usage: valkey_bloom_test.py MODULE
"""

import os
import struct
import sys

from kinds import digests
from persistence_test import free_port, replicated, rewrite
from rdb_value import D, S, U, payload
from redis_server import Error, Server, Simple, pack

MODULE = sys.argv[1]
SEED = bytes((i * 7 + 3) & 255 for i in range(32))
# Rate 0.01, capacity 20, expansion 2, tightening 0.5; item0 to item19, and in a second link item20 to item26.
LINKS = [bytes.fromhex(part) for part in (
    "01180000000000000007000000030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dc39d738f67cc829af6b9c5bb31a"
    "c8cf8bec74be47682d841b",
    "01380000000000000008000000030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dc2102008002140000"
    "00010c001050000220a49000000300008000a208004028a000080000001480000000841040c0010001a4020082000040")]
CAPACITIES, SIZES = (20, 40), (20, 7)
# The numbers of absent0 to absent859 that the crate finds.
FOUND = [2, 142, 209, 230, 235, 316, 327, 375, 407, 427, 436, 485, 505, 512, 544, 662, 757, 764, 859]
ITEMS = [f"item{i}" for i in range(27)]


def dump(links=LINKS, expansion=2, rate=0.01, tightening=0.5, random=1, version=1):
    body = struct.pack("<BIddBQ", version, expansion, rate, tightening, random, len(links))
    for link, size, capacity in zip(links, SIZES, CAPACITIES):
        body += struct.pack("<Q", len(link)) + link + struct.pack("<qq", size, capacity)
    return body


def type_id(name, encoding):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    number = 0
    for letter in name:
        number = number << 6 | letters.index(letter)
    return b"\x81" + struct.pack(">Q", number << 10 | encoding)


def check(client, key):
    """The filter of LINKS answers as the crate does."""
    assert client("TYPE", key) == "bloomfltr"
    assert client("BF.MEXISTS", key, *ITEMS) == [1] * len(ITEMS), key
    answers = client("BF.MEXISTS", key, *(f"absent{i}" for i in range(860)))
    assert [i for i, there in enumerate(answers) if there] == FOUND, key
    assert client("TAMIS.CHECK", key, "item3", "absent2", "absent3") == [1, 1, 0]
    assert client("BF.EXISTS", key, "item3") == 1 and client("BF.EXISTS", key, "absent3") == 0
    assert client("BF.CARD", key) == 27
    assert client("BF.INFO", key, "CAPACITY") == 60


def filters_it_has_made():
    """Its dump in a log, its values in files, and its commands, are the same filter."""
    with Server(MODULE) as server:
        client = server.client()
        assert client("BF.LOAD", "loaded", dump()) == "OK"
        check(client, "loaded")
        value = [U(2), U(2), D(0.01), D(0.5), U(1)]
        for link, capacity in zip(LINKS, CAPACITIES):
            value += [S(link), U(capacity)]
        assert client("RESTORE", "restored", "0", payload(type_id("bloomfltr", 1), [*value, U(7)])) == "OK"
        check(client, "restored")
        made = ("BF.INSERT", "made", "CAPACITY", "20", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", SEED, "EXPANSION", "2")
        assert client(*made, "ITEMS", *ITEMS) == [1] * len(ITEMS)
        check(client, "made")
        assert len(set(digests(client, ["loaded", "restored", "made"]))) == 1
        # Adds to a filter that is there.
        assert client("BF.ADD", "made", "item26") == 0
        assert client("BF.ADD", "made", "new") == 1
        assert client("BF.MADD", "made", "new", "newer") == [0, 1]
        assert client("BF.INSERT", "made", "NOCREATE", "ITEMS", "newest") == [1]
        assert client("BF.CARD", "made") == 30


def ways():
    """Files, logs, a replica, copies."""
    for preamble in ("yes", "no"):
        with Server(MODULE, "appendonly", "yes", "aof-use-rdb-preamble", preamble) as server:
            client = server.client()
            assert client("BF.LOAD", "loaded", dump()) == "OK"
            assert client("BF.INSERT", "seeded", "SEED", SEED, "CAPACITY", "10", "ITEMS", *ITEMS)[0] == 1
            before = digests(client, ["loaded", "seeded"])
            for _ in range(2):
                assert client("DEBUG", "LOADAOF") == "OK"
                assert digests(client, ["loaded", "seeded"]) == before
                check(client, "loaded")
                rewrite(client)
            assert client("COPY", "seeded", "copy") == 1
            assert client("RESTORE", "again", "0", client("DUMP", "seeded")) == "OK"
            assert len(set(digests(client, ["copy", "again", "seeded"]))) == 1
            with Server(MODULE, words=("bf-error-rate", "0.2", "bloom-memory-usage-limit", "1")) as other:
                reader = other.client()
                port = str(free_port())
                assert client("CONFIG", "SET", "port", port) == "OK"
                assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
                replicated(client, reader)
                keys = ["loaded", "seeded", "default"]
                assert client("BF.INSERT", "default", "VALIDATESCALETO", "1000", "ITEMS", "x") == [1]
                client("BF.MADD", "seeded", *(f"more{i}" for i in range(500)))
                replicated(client, reader)
                assert digests(client, keys) == digests(reader, keys)
                assert reader("TYPE", "default") == "bloomfltr"


def a_log_that_it_wrote():
    """Its creation as BF.INSERT, adds as they were sent, and the BF.LOAD of a rewritten log."""
    log = [("SELECT", "0"),
           ("BF.INSERT", "a", "CAPACITY", "20", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", SEED, "EXPANSION", "2"),
           ("BF.MADD", "a", *ITEMS[:10]), *(("BF.ADD", "a", item) for item in ITEMS[10:20]),
           ("BF.INSERT", "a", "ITEMS", *ITEMS[20:]),
           ("BF.INSERT", "b", "CAPACITY", "20", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", SEED, "EXPANSION", "2",
            "ITEMS", *ITEMS),
           ("BF.LOAD", "c", dump())]
    with Server(MODULE) as server:
        server.shutdown("NOSAVE")
        with open(os.path.join(server.directory, "appendonly.aof"), "wb") as file:
            file.write(b"".join(pack(words) for words in log))
        server.options += ["appendonly", "yes"]
        server.start()
        client = server.client()
        for key in ("a", "b", "c"):
            check(client, key)
        assert len(set(digests(client, ["a", "b", "c"]))) == 1
        assert b"commands_lost:0" in client("INFO", "bf_filters")


def expect(client, *rows):
    for command, expected in rows:
        words = command.split() if isinstance(command, str) else command
        reply = client(*words)
        assert reply == expected and isinstance(reply, type(expected)), (command, reply, expected)


def replies():
    with Server(MODULE, words=("tamis-valkey-bloom", "yes", "bloom-memory-usage-limit", "100000")) as server:
        for protocol in (2, 3):
            client = server.client(protocol)
            client("FLUSHALL")
            client("SET", "string", "x")
            real = (lambda x: x) if protocol == 3 else (lambda x: b"%.17g" % x)
            expect(
                client,
                ("BF.RESERVE a 0.01 100", Simple("OK")), ("TYPE a", Simple("bloomfltr")),
                ("BF.RESERVE a 0.01 100", Error("ERR item exists")),
                ("BF.RESERVE x y 100", Error("ERR bad error rate")),
                ("BF.RESERVE x 1 100", Error("ERR (0 < error rate range < 1)")),
                ("BF.RESERVE x 0.1 0", Error("ERR (capacity should be larger than 0)")),
                ("BF.RESERVE x 0.1 -1", Error("ERR bad capacity")),
                ("BF.RESERVE x 0.1 1 EXPANSION 0", Error("ERR bad expansion")),
                ("BF.RESERVE x 0.1 1 OTHER", Error("ERROR")),
                ("BF.RESERVE x 0.001 1000000", Error("ERR operation exceeds bloom object memory limit")),
                (["BF.INSERT", "n", "CAPACITY", "2", "ERROR", "0.0001", "SEED", SEED, "NONSCALING"], []),
                ("BF.MADD n x y z q", [1, 1, Error("ERR non scaling filter is full")]),
                ("BF.ADD n z", Error("ERR non scaling filter is full")), ("BF.ADD n x", 0),
                ("BF.INFO n EXPANSION", None), ("BF.INFO n ERROR", real(0.0001)),
                ("BF.INFO n TIGHTENING", Error("ERR invalid information value")),
                ("BF.INFO n MAXSCALEDCAPACITY", Error("ERR invalid information value")),
                ("BF.INFO n", [Simple("Capacity"), 2, Simple("Size"), 269, Simple("Number of filters"), 1,
                               Simple("Number of items inserted"), 2, Simple("Error rate"), real(0.0001),
                               Simple("Expansion rate"), None]),
                ("BF.INFO a", [Simple("Capacity"), 100, Simple("Size"), 384, Simple("Number of filters"), 1,
                               Simple("Number of items inserted"), 0, Simple("Error rate"), real(0.01),
                               Simple("Expansion rate"), 2, Simple("Tightening ratio"), real(0.5),
                               Simple("Max scaled capacity"), 25500]),
                ("BF.INFO a size", 384), ("BF.INFO a TIGHTENING", real(0.5)), ("BF.INFO a MAXSCALEDCAPACITY", 25500),
                ("BF.INFO a x", Error("ERR invalid information value")), ("BF.INFO none", Error("ERR not found")),
                ("BF.ADD a x", 1), ("BF.EXISTS a x", 1), ("BF.MEXISTS a x y", [1, 0]),
                ("BF.INSERT c", []), ("TYPE c", Simple("bloomfltr")), ("BF.INSERT d ITEMS x", [1]),
                ("BF.INSERT e NOCREATE ITEMS x", Error("ERR not found")),
                ("BF.INSERT e ITEMS", Error("ERR wrong number of arguments for 'bf.insert' command")),
                ("BF.INSERT e SEED", Error("ERR wrong number of arguments for 'bf.insert' command")),
                ("BF.INSERT e SEED short ITEMS x", Error("ERR invalid seed")),
                ("BF.INSERT e TIGHTENING x ITEMS x", Error("ERR bad tightening ratio")),
                ("BF.INSERT e TIGHTENING 1 ITEMS x", Error("ERR (0 < tightening ratio range < 1)")),
                ("BF.INSERT e WHAT ITEMS x", Error("ERR unknown argument received")),
                ("BF.INSERT e VALIDATESCALETO 25500 ITEMS x", [1]),
                ("BF.INSERT f VALIDATESCALETO 25501 ITEMS x",
                 Error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")),
                ("BF.INSERT f VALIDATESCALETO 10 NONSCALING ITEMS x",
                 Error("ERR cannot use NONSCALING and VALIDATESCALETO options together")),
                ("BF.INSERT f CAPACITY 1 EXPANSION 1 TIGHTENING 0.0001 VALIDATESCALETO 90 ITEMS x",
                 Error("ERR provided VALIDATESCALETO causes false positive to degrade to 0")),
                ("EXISTS f", 0),
                (["BF.LOAD", "a", dump()], Error("BUSYKEY Target key name already exists.")),
                (["BF.LOAD", "g", b""], Error("ERR bloom object decoding failed")),
                (["BF.LOAD", "g", dump()[:-1]], Error("ERR bloom object decoding failed")),
                (["BF.LOAD", "g", dump(version=2)], Error("ERR bloom object decoding failed. Unsupported version")),
                (["BF.LOAD", "string", dump()], Error("WRONGTYPE Operation against a key holding the wrong kind of value")),
                ("BF.LOAD g", Error("ERR wrong number of arguments for 'bf.load' command")),
                ("BF.ADD string x", Error("WRONGTYPE Operation against a key holding the wrong kind of value")),
            )
            # It grows up to its limit.
            last = client("BF.MADD", "a", *(f"item{i}" for i in range(30000)))[-1]
            assert last == Error("ERR operation exceeds bloom object memory limit"), last
            assert client("BF.INFO", "a", "ITEMS") == client("BF.INFO", "a", "CAPACITY") == 25500
            for words in (["BF.SCANDUMP", "a", "0"], ["BF.DEBUG", "a"], ["BF.LOADCHUNK", "a", "1", "x"]):
                assert "valkey-bloom's kind" in client(*words), words
    # Without the setting filters are those of RedisBloom, and their words are read of a filter that is there.
    with Server(MODULE) as server:
        client = server.client()
        expect(client, ("BF.RESERVE a 0.01 100", Simple("OK")), ("TYPE a", Simple("MBbloom--")),
               ("BF.INSERT a VALIDATESCALETO 1000 ITEMS x", [1]), ("BF.INFO a ERROR", [b"0.01"]),
               ("BF.INFO a TIGHTENING", [b"0.5"]), ("BF.RESERVE small 0.01 100 NONSCALING", Simple("OK")),
               ("BF.INFO small MAXSCALEDCAPACITY", Error("Invalid information value")),
               ("BF.INSERT b", Error("ERR wrong number of arguments for 'bf.insert' command")))
        assert client("CONFIG", "SET", client("CONFIG", "GET", "*tamis-max-bytes")[0], "100000") == "OK"
        most = client("BF.INFO", "a", "MAXSCALEDCAPACITY")[0]
        assert isinstance(client("BF.MADD", "a", *(f"item{i}" for i in range(3 * most)))[-1], Error)
        assert client("BF.INFO", "a", "CAPACITY") == [most]


def hostile():
    """Any bytes of a dump or value are a filter or an error; the server lives."""
    import random
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    with Server(MODULE) as server:
        client = server.client()
        for i in range(2000):
            bent = bytearray(dump())
            for _ in range(rng.randrange(1, 4)):
                bent[rng.randrange(len(bent))] = rng.choice((0, 255, rng.randrange(256)))
            client("BF.LOAD", "k", bytes(bent))
            client("BF.MADD", "k", "x", "y")
            client("BF.INFO", "k")
            client("DEL", "k")
            assert server.alive(), seed
        counts = (0, 1, 2**31, 2**63, 2**64 - 1)
        for links in counts:
            for expansion in counts:
                reply = client("RESTORE", "k", "0", payload(type_id("bloomfltr", 1), [
                    U(links), U(expansion), D(0.01), D(0.5), U(1), S(LINKS[0]), U(20), U(20)]), "REPLACE")
                assert (reply == "OK") == (links == 1 and expansion < 2**32), (links, expansion, reply)
        for rate in (0.0, 1.0, -1.0, float("nan"), float("inf")):
            for value in ([D(rate), D(0.5)], [D(0.01), D(rate)]):
                reply = client("RESTORE", "k", "0", payload(type_id("bloomfltr", 1), [
                    U(1), U(2), *value, U(1), S(LINKS[0]), U(20), U(20)]), "REPLACE")
                assert isinstance(reply, Error), (rate, value)


def main():
    filters_it_has_made()
    ways()
    a_log_that_it_wrote()
    replies()
    hostile()


if __name__ == "__main__":
    main()
