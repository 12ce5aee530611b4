#!/usr/bin/env python3
"""CF.COMPACT of filters that are too large for one call: in pieces, with other changes in between, on a primary that
reads its log and is restarted, and on replicas that are copied or promoted in the middle.

usage: compaction_test.py MODULE [SEED]
"""

import math
import random
import struct
import sys
import time

from persistence_test import free_port, replicated, rewrite
from redis_server import Error, Server, Simple

MODULE = sys.argv[1]
PIECE = 16 << 20  # slots that one call passes at most, a bucket that is looked at counting as LOOK of them
LOOK = 64
BUCKETS, BUCKET_SIZE = 1 << 20, 4
TABLE = BUCKETS * BUCKET_SIZE
ITEMS = [f"item{i}" for i in range(3000)]


def tags(rng, fill):
    """A table, `fill` of which is taken."""
    drawn = rng.randbytes(TABLE)
    return drawn.translate(bytes(i + 1 if i < fill * 256 else 0 for i in range(256)))


def make(client, tables, key="c", deletes=1):
    """A filter of these tables, the oldest first, of which so many items were erased."""
    held = sum(len(table) - table.count(0) for table in tables)
    header = struct.pack("<QQQQHHH", held, BUCKETS, deletes, len(tables), BUCKET_SIZE, 20, 1)
    assert client("CF.LOADCHUNK", key, "1", header) == "OK"
    at = 1
    for table in tables:
        at += len(table)
        assert client("CF.LOADCHUNK", key, at, table) == "OK"


def number(client, field, key="c"):
    reply = client("CF.INFO", key)
    return reply[reply.index(Simple(field)) + 1]


def digest(client, key="c"):
    return client("DEBUG", "DIGEST-VALUE", key)


def known(client):
    assert client("CF.MEXISTS", "c", *ITEMS) == [1] * len(ITEMS)


def changes(rng, client):
    """Some that come and go, others that stay."""
    items = [f"short{rng.randrange(10**9)}" for _ in range(50)]
    assert client("CF.INSERT", "c", "ITEMS", *items) == [1] * len(items)
    for item in items[:25]:
        assert client("CF.DEL", "c", item) == 1


def calls_are_bounded(server):
    """Counted, not timed: tables with one tag at the end, which has its place in the first."""
    client = server.client()
    sparse = [bytes(TABLE)] + [bytes(TABLE - 1) + bytes([i + 1]) for i in range(9)]
    make(client, sparse)
    at, positions = client("CF.COMPACT", "c", 0), []
    while at:
        positions.append(at)
        at = client("CF.COMPACT", "c", at)
    assert len(positions) + 1 == math.ceil(9 * TABLE / PIECE), positions
    assert number(client, "Number of filters") == 1 and number(client, "Number of items inserted") == 9
    client("DEL", "c")
    # A full one below: each tag of the newer is looked at twice, and none is moved.
    make(client, [b"\1" * TABLE, b"\2" * (TABLE // 2) + bytes(TABLE // 2)])
    passed = math.ceil(PIECE / (2 * LOOK + 1))
    assert client("CF.COMPACT", "c", 0) == TABLE + passed
    for _ in range(math.ceil(TABLE / 2 / passed) - 1):
        assert number(client, "Number of items deleted") == 1
        assert client("CF.COMPACT", "c") == "OK"
    assert number(client, "Number of items deleted") == 0
    for position in ("x", "-1", str(2**63), "1", str(TABLE - 1)):
        assert client("CF.COMPACT", "c", position) == Error("Invalid position"), position
    for position in (TABLE, 2 * TABLE - 1, 2 * TABLE, 2**63 - 1):
        assert isinstance(client("CF.COMPACT", "c", position), int), position
    assert client("CF.COMPACT", "c", "0", "0") == Error("ERR wrong number of arguments for 'cf.compact' command")
    client("DEL", "c")


def in_the_middle(rng, server, port):
    """Everything that a server goes through; its replicas have the same bytes."""
    client = server.client()
    make(client, [tags(rng, 0.1), tags(rng, 0.3), tags(rng, 0.3), tags(rng, 0.2)])
    assert client("CF.INSERT", "c", "ITEMS", *ITEMS) == [1] * len(ITEMS)
    replicas, calls = [], 0

    def piece():
        nonlocal calls
        changes(rng, client)
        assert client("CF.COMPACT", "c") == "OK"
        changes(rng, client)
        calls += 1

    def add_replica():
        replica = Server(MODULE, words=("cf-max-expansions", "1", "tamis-max-bytes", "1"))
        replicas.append(replica)
        assert replica.client()("REPLICAOF", "127.0.0.1", port) == "OK"

    def all_are_equal():
        for replica in replicas:
            reader = replica.client()
            replicated(client, reader)
            assert client("WAIT", len(replicas), 0) == len(replicas)
            assert digest(reader) == digest(client)
            known(reader)
        known(client)

    try:
        add_replica()
        piece()
        all_are_equal()
        piece()
        add_replica()  # a full copy in the middle
        piece()
        all_are_equal()
        before = digest(client)
        assert client("DEBUG", "LOADAOF") == "OK"  # the log from its beginning
        assert digest(client) == before
        piece()
        rewrite(client)
        piece()
        all_are_equal()
        before = digest(client)
        server.kill()
        server.start()
        client = server.client()
        assert digest(client) == before
        piece()
        all_are_equal()
        assert client("DEBUG", "RELOAD") == "OK"
        assert number(client, "Number of items deleted") > 0, "it is over too early for this test"
        while number(client, "Number of items deleted") > 0:
            assert client("CF.COMPACT", "c") == "OK"
            calls += 1
            assert calls < 1000
        all_are_equal()
        assert number(client, "Number of filters") < 4
        # One more begins again, and who is promoted ends it.
        piece()
        all_are_equal()
        chosen = replicas[0].client()
        assert chosen("REPLICAOF", "NO", "ONE") == "OK"
        while number(chosen, "Number of items deleted") > 0:
            assert chosen("CF.COMPACT", "c") == "OK"
        known(chosen)
    finally:
        for replica in replicas:
            replica.__exit__(None, None, None)
    return calls


def replica_that_begins_anew_differs(rng):
    """If a piece were not replicated with where it begins."""
    fault, port = ("tamis-fault", "compacts_as_it_stands"), free_port()
    with Server(MODULE, port=port, words=fault) as server, Server(MODULE, words=fault) as other:
        client, reader = server.client(), other.client()
        make(client, [tags(rng, 0.1), tags(rng, 0.3), tags(rng, 0.3)])
        assert client("CF.COMPACT", "c") == "OK"
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        assert digest(client) == digest(reader)
        assert client("CF.COMPACT", "c") == "OK"
        replicated(client, reader)
        assert digest(client) != digest(reader)


def main():
    seed = time.time_ns() % 2**32 if len(sys.argv) < 3 else int(sys.argv[2])
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    with Server(MODULE) as server:
        calls_are_bounded(server)
    for preamble in ("yes", "no"):
        port = free_port()
        with Server(MODULE, "appendonly", "yes", "appendfsync", "always", "aof-use-rdb-preamble", preamble,
                    "repl-diskless-sync-delay", "0", port=port) as server:
            print(f"{in_the_middle(rng, server, port)} pieces", flush=True)
    replica_that_begins_anew_differs(rng)


if __name__ == "__main__":
    main()
