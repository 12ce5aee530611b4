#!/usr/bin/env python3
"""Forged bytes: RESTORE, LOADCHUNK and files, on a running server.

The server answers with an error or takes the value; it never ends, and takes no memory that the
bytes do not account for. What it took saves, loads and answers the same, and its neighbours lose
nothing. usage: hostile_test.py MODULE [SEED]
"""

import random
import struct
import sys
import time

from kinds import KINDS, check_members, digests, dump, fill
from rdb_value import BLOOM, D, S, U, payload, sealed
from redis_server import Error, Server

MODULE = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 2**32

HUGE = (2**31, 2**32, 2**32 + 1, 2**61, 2**62, 2**63, 2**64 - 1)


def used_memory(client):
    for line in client("INFO", "memory").decode().split("\r\n"):
        if line.startswith("used_memory:"):
            return int(line.split(":")[1])
    raise AssertionError("no used_memory")


def bloom_fields(**changes):
    """A sound filter of one link, with some of its fields changed."""
    f = dict(size=1, links=1, options=5, growth=2, entries=10, error=0.05, hashes=5,
             bpe=6.235224135554, bits=64, n2=0, bytes=bytes(8), link_size=1)
    f.update(changes)
    return [U(f["size"]), U(f["links"]), U(f["options"]), U(f["growth"]), U(f["entries"]),
            D(f["error"]), U(f["hashes"]), D(f["bpe"]), U(f["bits"]), U(f["n2"]), S(f["bytes"]),
            U(f["link_size"])]


def cuckoo_fields(**changes):
    f = dict(tables=1, buckets=4, items=1, deletes=0, bucket_size=2, iterations=20, expansion=1,
             table_buckets=4, bytes=bytes(8))
    f.update(changes)
    return [U(f[name]) for name in ("tables", "buckets", "items", "deletes", "bucket_size",
                                    "iterations", "expansion", "table_buckets")] + [S(f["bytes"])]


def fields_out_of_range(client, cuckoo_id):
    assert client("RESTORE", "a", "0", payload(BLOOM, bloom_fields())) == "OK"
    assert client("RESTORE", "b", "0", payload(cuckoo_id, cuckoo_fields())) == "OK"
    nan, inf = float("nan"), float("inf")
    bad = []
    for name in ("size", "links", "options", "growth", "entries", "hashes", "bits", "n2", "link_size"):
        # Other servers take any growth of 32 bits, and what the next link may take has a limit of its own.
        least = {"entries": 2**61 + 1, "growth": 2**32}.get(name, 0)
        bad += [(BLOOM, bloom_fields(**{name: value})) for value in HUGE if value >= least]
    for value in (nan, inf, -inf, 0.0, -0.0, -1.0, 1.0, 2.0):
        bad += [(BLOOM, bloom_fields(error=value)), (BLOOM, bloom_fields(bpe=value))]
    bad += [(BLOOM, bloom_fields(**change)) for change in (
        dict(links=0), dict(links=2), dict(options=16), dict(growth=0),
        dict(entries=0), dict(hashes=0), dict(hashes=6), dict(bits=0), dict(bits=128),
        dict(bits=56), dict(bits=65), dict(n2=7), dict(bytes=b""), dict(bytes=bytes(7)), dict(bytes=bytes(9)),
        dict(size=0), dict(size=2), dict(bpe=1e300))]
    for name in ("tables", "buckets", "items", "bucket_size", "iterations", "expansion",
                 "table_buckets"):
        bad += [(cuckoo_id, cuckoo_fields(**{name: value})) for value in HUGE]
    bad += [(cuckoo_id, cuckoo_fields(**change)) for change in (
        dict(tables=0), dict(tables=2), dict(tables=65537), dict(buckets=0), dict(buckets=3),
        dict(buckets=8), dict(items=9), dict(bucket_size=0), dict(bucket_size=256),
        dict(bucket_size=3), dict(iterations=0), dict(iterations=65536), dict(expansion=3),
        dict(expansion=65536), dict(table_buckets=3), dict(bytes=b""), dict(bytes=bytes(7)),
        dict(bytes=bytes(9)))]
    for type_id, fields in bad:
        reply = client("RESTORE", "bad", "0", payload(type_id, fields))
        assert reply == Error("ERR Bad data format"), (fields, reply)
    return len(bad)


def truncated(client, key):
    """Cut at every byte, with a right checksum."""
    whole = client("DUMP", key)
    assert sealed(whole[:-8]) == whole, "the checksum of this test is not the server's"
    body, version = whole[:-10], whole[-10:-8]
    for cut in range(len(body)):
        for bytes_left in (body[:cut] + version, body[:cut]):
            reply = client("RESTORE", "cut", "0", sealed(bytes_left))
            # The server lets a value read on into version and checksum, ten bytes.
            assert isinstance(reply, Error) or cut >= len(body) - 10, (cut, reply)
            client("DEL", "cut")


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(1 + rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(5)
        if what == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 127, 128, 255))
        elif what == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif what == 3:
            del data[at:at + rng.randrange(1, 9)]
        elif at + 8 <= len(data):
            data[at:at + 8] = struct.pack("<Q", rng.choice(HUGE))
    return bytes(data)


def use(kind, client, key, taken):
    """A value that was taken works, and is the same after it was saved and loaded."""
    rng = random.Random(taken)
    before = digests(client, [key])
    copy = client("DUMP", key)
    assert client("DEL", "again") in (0, 1)
    if client("RESTORE", "again", "0", copy) == "OK":
        assert digests(client, ["again"]) == before
    item = str(rng.random())
    if client(kind.add, key, item) in (1, [1]):
        assert client(kind.exists, key, item) in ([1], [-1])
        again = client("DUMP", key)
        assert client("RESTORE", "again", "0", again, "REPLACE") == "OK", "what it saves it loads"
    info = client(f"{kind.name}.INFO", key)
    assert isinstance(info, list) or "chunks are missing" in info, info
    client(f"{kind.name}.DEBUG", key)


def fuzz(server, client, rng, rounds):
    members = {kind: fill(kind, client, keys=3, seed=3, steps=2, count=100) for kind in KINDS.values()}
    neighbours = sorted(key for of_kind in members.values() for key in of_kind)
    before = digests(client, neighbours)
    # Redis 8 has no prefix.
    assert "OK" in [client("CONFIG", "SET", name, str(1 << 20))
                    for name in ("bf.tamis-max-bytes", "tamis-max-bytes")]
    taken = 0
    memory = used_memory(client)
    for kind, of_kind in members.items():
        dumps = [client("DUMP", key) for key in of_kind]
        parts = [parts for key in of_kind if (parts := dump(kind, client, key))]
        for i in range(rounds):
            client("DEL", "fuzz", "again")
            if i % 2 or not parts:
                reply = client("RESTORE", "fuzz", "0", sealed(mutated(rng, rng.choice(dumps)[:-8])))
            else:
                chunks = rng.choice(parts)
                broken = rng.randrange(len(chunks))
                for j, (at, data) in enumerate(chunks):
                    if j == broken:
                        data = mutated(rng, data)
                        at = rng.choice((at, at, at, at + 1, at - 1, -at, 2**63 - 1, -2**63, 0))
                    reply = client(kind.load, "fuzz", str(at), data)
            # A changed byte can make it a value of the server's own.
            if client("TYPE", "fuzz") == kind.type:
                taken += 1
                assert used_memory(client) < memory + (4 << 20), "memory that nothing accounts for"
                use(kind, client, "fuzz", i)
                if rng.randrange(50) == 0:
                    both = digests(client, ["fuzz"])
                    assert client("DEBUG", "RELOAD") == "OK"
                    assert digests(client, ["fuzz"]) == both
        check_members(kind, client, of_kind)
    assert digests(client, neighbours) == before
    assert taken > rounds // 20, "hardly anything was taken"
    return taken


def kill_loses_nothing_acknowledged():
    """Killed in the middle of adds, with a log that is synced each time."""
    with Server(MODULE, "appendonly", "yes", "appendfsync", "always") as server:
        for kind in KINDS.values():
            client = server.client()
            if kind.name == "TAMIS":
                assert client("TAMIS.RESERVE", "TAMISkill", "0.01", "1000") == "OK"
            items = [f"item{i}" for i in range(400)]
            for item in items:
                client.send(kind.add, f"{kind.name}kill", item)
            acknowledged = []
            for item in items[:len(items) // 2]:
                assert client.read() in (1, [1], [0]) or kind.name == "BF"
                acknowledged.append(item)
            server.kill()
            server.start()
            client = server.client()
            assert client(kind.exists, f"{kind.name}kill", *acknowledged) == [1] * len(acknowledged)


def copies_without_end(client):
    """Of one item: refused in the end, in bounded memory, and counted right; then erased, each once."""
    before = used_memory(client)
    taken = 0
    for _ in range(20):
        replies = client("CF.INSERT", "copies", "ITEMS", *["x"] * 10_000)
        assert set(replies) <= {1, -1}, replies
        taken += replies.count(1)
    assert client("CF.ADD", "copies", "x") == Error("Maximum expansions reached")
    assert client("CF.COUNT", "copies", "x") == taken < 1000
    assert used_memory(client) < before + (4 << 20)
    assert client("RESTORE", "again", "0", client("DUMP", "copies")) == "OK"
    assert client.pipeline([("CF.DEL", "copies", "x")] * (taken + 1)) == [1] * taken + [0]
    assert client("CF.COUNT", "again", "x") == taken
    client("DEL", "copies", "again")


def main():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    with Server(MODULE) as server:
        client = server.client()
        client("CF.RESERVE", "c", "8")
        cuckoo_id = client("DUMP", "c")[1:10]
        refused = fields_out_of_range(client, cuckoo_id)
        client("BF.RESERVE", "small", "0.1", "10")
        client("BF.ADD", "small", "x")
        truncated(client, "small")
        client("CF.ADD", "c", "x")
        truncated(client, "c")
        client("FLUSHALL")
        copies_without_end(client)
        taken = fuzz(server, client, rng, 1000)
        assert server.alive()
    kill_loses_nothing_acknowledged()
    print(f"{refused} values out of range refused; of the changed ones {taken} were taken")


if __name__ == "__main__":
    main()
