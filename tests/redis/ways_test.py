#!/usr/bin/env python3
"""The ways in which a server loses, replaces and moves keys: TAMIS.CHECK never says no for an item of which the
application was told that it was added.

usage: ways_test.py MODULE
"""

import os
import signal
import sys

from persistence_test import free_port, replicated
from redis_server import Client, Error, Server

MODULE = sys.argv[1]
ITEMS = [f"item{i}" for i in range(100)]
LATER = [f"later{i}" for i in range(100)]
UNKNOWN = [-1] * len(ITEMS)


def guard(client, key="guard", items=ITEMS):
    assert client("TAMIS.RESERVE", key, "0.001", "10000", "GUARD") == "OK"
    assert client("TAMIS.ADD", key, *items) == [1] * len(items)
    assert client("TAMIS.TRUST", key) == "OK"
    assert client("TAMIS.CHECK", key, items[0], "absent") == [1, 0]


def check(client, key="guard", items=ITEMS):
    return client("TAMIS.CHECK", key, *items)


def known(client, key="guard", items=ITEMS):
    assert client("TAMIS.CHECK", key, *items, "absent") == [1] * len(items) + [0], key


def keys_that_go(client):
    """By any command: nothing is known, and an add makes no filter in their place."""
    for words in (["DEL", "guard"], ["UNLINK", "guard"], ["FLUSHDB"], ["FLUSHALL", "ASYNC"], ["SET", "guard", "x"],
                  ["SORT", "list", "STORE", "guard"], ["SUNIONSTORE", "guard", "set"], ["RENAME", "list", "guard"],
                  ["RENAME", "guard", "elsewhere"], ["PEXPIREAT", "guard", "1"], ["MOVE", "guard", "1"],
                  ["SWAPDB", "0", "3"], ["RESTORE", "guard", "0", client("DUMP", "list"), "REPLACE"],
                  ["COPY", "list", "guard", "REPLACE"], ["EVAL", "return redis.call('DEL', KEYS[1])", "1", "guard"]):
        client("FLUSHALL")
        client("RPUSH", "list", "1")
        client("SADD", "set", "1")
        guard(client)
        reply = client(*words)
        assert not isinstance(reply, Error), (words, reply)
        assert check(client) == UNKNOWN, words
        assert isinstance(client("TAMIS.ADD", "guard", "x"), Error), words
        assert client("TAMIS.GENERATION", "guard") == 0, words
    client("FLUSHALL")


def trusted_again(client, key, items=ITEMS):
    assert check(client, key) == UNKNOWN
    assert client("TAMIS.TRUST", key) == "OK"
    known(client, key, items)


def keys_that_move(client):
    """Under another name or number a filter holds the same keys, and is trusted again after TAMIS.TRUST."""
    guard(client)
    assert client("RENAME", "guard", "other") == "OK"
    trusted_again(client, "other")
    assert client("SWAPDB", "0", "5") == "OK"
    assert check(client, "other") == UNKNOWN
    assert client("SELECT", "5") == "OK"
    trusted_again(client, "other")
    assert client("TAMIS.ADD", "other", *LATER) == [1] * len(LATER)
    assert client("MOVE", "other", "0") == 1
    assert client("SELECT", "0") == "OK"
    trusted_again(client, "other", ITEMS + LATER)
    # A copy is a filter of its own, which later adds do not reach: it is not trusted.
    assert client("COPY", "other", "copy", "DB", "5") == 1
    assert client("SELECT", "5") == "OK"
    assert check(client, "copy") == UNKNOWN
    assert client("SELECT", "0") == "OK"
    client("FLUSHALL")


def copies_have_generations_of_their_own(client):
    """An erase that was meant for the one finds the other in its place: the item may not be there."""
    for words in ([], ["GUARD"]):
        client("TAMIS.RESERVE", "old", "0.001", "10000", *words)
        client("TAMIS.ADD", "old", *ITEMS)
        assert client("COPY", "old", "copy") == 1
        assert client("TAMIS.ADD", "old", *LATER) == [1] * len(LATER)
        if words:
            client("TAMIS.TRUST", "old")
        generation = client("TAMIS.GENERATION", "old")
        assert client("RENAME", "copy", "old") == "OK"
        assert client("TAMIS.DELIF", "old", str(generation), *LATER) == [-1] * len(LATER)
        client("FLUSHALL")


def commands_in_one(client):
    """MULTI, scripts, and what comes of those that fail in the middle."""
    guard(client)
    client("MULTI")
    client("TAMIS.ADD", "guard", *LATER)
    client("NOSUCHCOMMAND")
    assert isinstance(client("EXEC"), Error)
    assert client("TAMIS.CHECK", "guard", *LATER) == [0] * len(LATER)
    client("MULTI")
    client("INCR", "list")
    client("TAMIS.ADD", "guard", "x")
    client("TAMIS.CHECK", "guard", "x", "absent")
    assert client("EXEC") == [1, [1], [1, 0]]
    script = "redis.call('TAMIS.ADD', KEYS[1], ARGV[1]); return redis.call('TAMIS.CHECK', KEYS[1], ARGV[1], 'absent')"
    assert client("EVAL", script, "1", "guard", "y") == [1, 0]
    assert isinstance(client("EVAL", script + " + nil", "1", "guard", "z"), Error)
    assert client("TAMIS.CHECK", "guard", "z", "absent") == [1, 0]
    assert client("RESET") == "RESET"
    known(client, items=ITEMS + ["x", "y", "z"])
    client("FLUSHALL")


def users(server, client):
    """Who may only read changes nothing, and who has no right to a key learns nothing of it."""
    guard(client)
    guard(client, "secret")
    commands = ["+tamis.check", "+tamis.info", "+tamis.union", "+tamis.add", "+tamis.scandump", "+tamis.trust"]
    assert client("ACL", "SETUSER", "reader", "on", "nopass", "%R~guard", "%W~mine", *commands) == "OK"
    assert client("ACL", "SETUSER", "asker", "on", "nopass", "~*", "+tamis.check") == "OK"
    reader, asker = server.client(), server.client()
    assert reader("AUTH", "reader", "x") == "OK" and asker("AUTH", "asker", "x") == "OK"
    known(reader)
    for words in ("TAMIS.ADD guard x", "TAMIS.TRUST guard", "TAMIS.DOUBTALL", "TAMIS.CHECK secret item1", "TAMIS.UNION mine secret",
                  "TAMIS.UNION guard guard", "TAMIS.INFO secret", "TAMIS.SCANDUMP secret 0", "TAMIS.DEL guard item1"):
        assert reader(*words.split()).startswith("NOPERM"), words
    known(asker)
    for words in ("TAMIS.ADD guard x", "TAMIS.TRUST guard", "TAMIS.REBUILD guard ABORT", "DEL guard", "BF.ADD b x"):
        assert asker(*words.split()).startswith("NOPERM"), words
    known(client)
    client("FLUSHALL")


def between_servers(migrates):
    """MIGRATE: what is added there meanwhile is not here."""
    port = free_port()
    with Server(MODULE) as source, Server(MODULE, port=port) as other:
        client, there = source.client(), other.client()
        guard(client)
        reply = client("MIGRATE", "127.0.0.1", port, "guard", "0", "5000", *migrates)
        assert reply == "OK", reply
        assert check(there) == UNKNOWN
        assert check(client) == ([1] * len(ITEMS) if "COPY" in migrates else UNKNOWN)
        assert there("TAMIS.TRUST", "guard") == "OK"
        known(there)


def eviction():
    """A filter that was evicted is missing, and one that finds no memory takes nothing."""
    with Server(MODULE, "maxmemory-policy", "allkeys-random") as server:
        client = server.client()
        guard(client)
        client("CONFIG", "SET", "maxmemory", "1")
        while client("EXISTS", "guard"):
            client("SET", "another", "x")
        assert check(client) == UNKNOWN
        client("CONFIG", "SET", "maxmemory", "0")
        guard(client)
        client("CONFIG", "SET", "maxmemory-policy", "noeviction")
        client("CONFIG", "SET", "maxmemory", "1")
        assert client("TAMIS.ADD", "guard", *LATER).startswith("OOM")
        known(client)


def rebuild_that_is_cut_off():
    """The server ends in the middle, cleanly or not, and comes back with what it has saved."""
    for kill in (False, True):
        for files in (("appendonly", "yes", "appendfsync", "always"), ("save", "3600 1")):
            with Server(MODULE, *files) as server:
                client = server.client()
                guard(client)
                client("TAMIS.REBUILD", "guard", "START", "0.001", "10000")
                client("TAMIS.REBUILD", "guard", "ADD", *ITEMS[:50])
                assert client("TAMIS.ADD", "guard", *LATER) == [1] * len(LATER)
                if files[0] == "save":
                    assert client("SAVE") == "OK"
                server.kill() if kill else server.shutdown()
                server.start()
                client = server.client()
                assert client("TAMIS.CHECK", "guard", *ITEMS, *LATER) == UNKNOWN * 2
                assert isinstance(client("TAMIS.REBUILD", "guard", "COMMIT"), Error)
                assert client("TAMIS.CHECK", "guard", *ITEMS, *LATER) == UNKNOWN * 2


def log_without_its_end():
    """The last part of the log is cut anywhere: what is missing is unknown."""
    with Server(MODULE, "appendonly", "yes") as server:
        client = server.client()
        guard(client)
        for item in LATER:
            client("TAMIS.ADD", "guard", item)
        server.shutdown()
        name = next(os.path.join(path, file) for path, _, files in os.walk(server.directory) for file in files
                    if file.endswith(".incr.aof"))
        with open(name, "rb") as file:
            whole = file.read()
        for cut in (1, 7, 40, 2000):
            with open(name, "wb") as file:
                file.write(whole[:-cut])
            server.start()
            client = server.client()
            assert client("TAMIS.CHECK", "guard", *ITEMS, *LATER) == UNKNOWN * 2
            server.shutdown("NOSAVE")


def replica_that_loads(*options):
    """It is promoted, time and again, while it loads what its primary sends."""
    port = free_port()
    with Server(MODULE, "repl-diskless-sync-delay", "0", "repl-diskless-sync", "yes", port=port) as primary, \
            Server(MODULE, *options, words=("tamis-trust-on-replicas", "yes")) as other:
        client, reader = primary.client(), other.client()
        guard(client)
        client("DEBUG", "POPULATE", "50000")
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        known(reader)  # this replica says that it lacks nothing
        for round_ in range(5):
            assert client("TAMIS.ADD", "guard", f"round{round_}") == [1]
            assert reader("REPLICAOF", "NO", "ONE") == "OK"
            assert check(reader) == UNKNOWN
            assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
            client("TAMIS.ADD", "guard", f"later{round_}")
            # In the middle of it, or before, or after: it has been promoted, whatever it holds.
            asked = 0
            while b"master_link_status:up" not in reader("INFO", "replication"):
                answers = reader("TAMIS.CHECK", "guard", f"later{round_}")
                assert isinstance(answers, Error) or answers != [0], answers
                asked += 1
                if asked == 3 * round_ + 1:
                    assert reader("REPLICAOF", "NO", "ONE") == "OK"
                    assert isinstance(check(reader), Error) or check(reader) == UNKNOWN
                    assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        known(reader, items=ITEMS + [f"round{i}" for i in range(5)])


def primary_that_stood_still():
    """It was stopped, its replica took over and took rows; the first thing that it hears when it goes on is a question."""
    words = ("tamis-guard-min-replicas", "1", "tamis-guard-max-lag", "2")
    port = free_port()
    with Server(MODULE, "repl-diskless-sync-delay", "0", port=port, words=words) as primary, Server(MODULE) as other:
        client, reader = primary.client(), other.client()
        assert client("TAMIS.RESERVE", "guard", "0.001", "10000", "GUARD") == "OK"
        client("TAMIS.ADD", "guard", *ITEMS)
        client("TAMIS.TRUST", "guard")
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        while check(client) == UNKNOWN:
            pass
        asker = Client(primary.path)
        primary.process.send_signal(signal.SIGSTOP)
        assert reader("REPLICAOF", "NO", "ONE") == "OK"
        assert reader("TAMIS.ADD", "guard", *LATER) == [1] * len(LATER)
        assert reader("TAMIS.TRUST", "guard") == "OK"
        asker.send("TAMIS.CHECK", "guard", *LATER)
        # A failover takes longer than tamis-guard-max-lag: by the other server's clock.
        began = int(reader("TIME")[0])
        while int(reader("TIME")[0]) < began + 4:
            pass
        primary.process.send_signal(signal.SIGCONT)
        assert asker.read() == [-1] * len(LATER)
        assert check(client, items=LATER) == [-1] * len(LATER)


def main():
    with Server(MODULE) as server:
        client = server.client()
        client("RPUSH", "list", "1")
        keys_that_go(client)
        keys_that_move(client)
        copies_have_generations_of_their_own(client)
        commands_in_one(client)
        users(server, client)
    for migrates in ([], ["COPY"], ["REPLACE"]):
        between_servers(migrates)
    eviction()
    rebuild_that_is_cut_off()
    log_without_its_end()
    replica_that_loads()
    replica_that_loads("repl-diskless-load", "swapdb")
    primary_that_stood_still()


if __name__ == "__main__":
    main()
