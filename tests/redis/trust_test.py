#!/usr/bin/env python3
"""TAMIS.CHECK never says no for an item whose add was acknowledged.

Each rule is shown twice: as it is, and switched off, where an item is then refused that was added.
usage: trust_test.py MODULE
"""

import os
import signal
import sys

from kinds import KINDS, dump
from persistence_test import free_port, linked, replicated, rewrite
from rdb_value import sealed
from redis_server import Error, Server

MODULE = sys.argv[1]
ITEMS = [f"item{i}" for i in range(200)]
# The rule about moved filters is off where the test of another rule uses RENAME.
MOVED = ("tamis-fault", "moved_is_believed")
LATER = [f"later{i}" for i in range(200)]


def reserve(client, key, *words):
    assert client("TAMIS.RESERVE", key, "0.001", "10000", "SEED", "1", *words) == "OK"
    assert all(reply >= 0 for reply in client("TAMIS.ADD", key, *ITEMS))
    if words:  # until then nothing is known
        assert client("TAMIS.CHECK", key, "item1", "absent") == [-1, -1]
        assert client("TAMIS.TRUST", key) == "OK"


def add(client, key, items):
    assert all(reply >= 0 for reply in client("TAMIS.ADD", key, *items))


def refused(client, key, items):
    return client("TAMIS.CHECK", key, *items).count(0)


def state(client, key):
    return client("TAMIS.INFO", key)[3]


def lost_end_of_the_data(switched_off):
    """The server dies after it acknowledged adds that no file has yet."""
    words = ("tamis-trust-after-restart", "yes") if switched_off else ()
    with Server(MODULE, words=words) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        reserve(client, "plain")
        assert client("SAVE") == "OK"
        add(client, "guard", LATER)
        add(client, "plain", LATER)
        assert refused(client, "guard", ITEMS + LATER) == 0
        server.kill()
        server.start()
        client = server.client()
        assert refused(client, "plain", LATER) > 0, "nothing was lost"
        if switched_off:
            assert refused(client, "guard", LATER) > 0, "the switch does nothing"
            return
        assert client("TAMIS.CHECK", "guard", *ITEMS, *LATER, "absent") == [-1] * 401
        assert state(client, "guard") == b"not trusted"
        # An erase of what may not be there would take away something else.
        assert client("TAMIS.DEL", "guard", *LATER) == [-1] * len(LATER)
        add(client, "guard", LATER)
        assert client("TAMIS.CHECK", "guard", "item1") == [-1]
        assert client("TAMIS.TRUST", "guard") == "OK"
        assert refused(client, "guard", ITEMS + LATER) == 0
        assert client("TAMIS.CHECK", "guard", "absent") == [0]
        assert client("TAMIS.DEL", "guard", "later1") == [1]


def log_that_is_read_again():
    """What a log says of trust holds only where the settings say that it lacks nothing; and what was
    not trusted when it was written is not trusted there either."""
    for preamble in ("yes", "no"):
        for complete in ("no", "yes"):
            with Server(MODULE, "appendonly", "yes", "aof-use-rdb-preamble", preamble,
                        words=("tamis-trust-after-restart", complete)) as server:
                client = server.client()
                reserve(client, "guard", "GUARD")
                reserve(client, "plain")
                assert client("TAMIS.RESERVE", "filling", "0.001", "1000", "GUARD") == "OK"
                for rewritten in (False, True):
                    if rewritten:
                        rewrite(client)
                    assert client("DEBUG", "LOADAOF") == "OK"
                    after = [1, 0] if complete == "yes" else [-1, -1]
                    assert client("TAMIS.CHECK", "guard", "item1", "absent") == after
                    assert client("TAMIS.CHECK", "plain", "item1", "absent") == [1, 0]
                    assert client("TAMIS.CHECK", "filling", "item1") == [-1]
                    assert client("TAMIS.TRUST", "guard") == "OK"
                    assert client("TAMIS.CHECK", "guard", "item1", "absent") == [1, 0]


def copies():
    with Server(MODULE) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        assert client("RESTORE", "restored", "0", client("DUMP", "guard")) == "OK"
        assert client("COPY", "guard", "copied") == 1
        for key in ("restored", "copied"):
            assert client("TAMIS.CHECK", key, "item1", "absent") == [-1, -1], key
            assert client("TAMIS.TRUST", key) == "OK"
            assert client("TAMIS.CHECK", key, "item1", "absent") == [1, 0], key
        assert client("TAMIS.CHECK", "guard", "item1", "absent") == [1, 0]
        assert client("DEBUG", "RELOAD") == "OK"
        assert client("TAMIS.CHECK", "copied", "item1", "absent") == [-1, -1]


# Commands that take a key away from its name, and those that bring it back.
WAYS_AWAY = {
    "RENAME": (("RENAME guard away",), ("RENAME away guard",)),
    "RENAMENX": (("RENAMENX guard away",), ("RENAMENX away guard",)),
    "MOVE": (("MOVE guard 1",), ("SELECT 1", "MOVE guard 0", "SELECT 0")),
    "SWAPDB": (("SWAPDB 0 1",), ("SWAPDB 0 1",)),
    "RENAME in a transaction": (("MULTI", "RENAME guard away", "EXEC"), ("MULTI", "RENAME away guard", "EXEC")),
}


def run(client, commands):
    for line in commands:
        reply = client(*line.split())
        assert not isinstance(reply, Error), (line, reply)


def moved_away_and_back(words, way):
    """While the filter is away, adds to its name find none, upon which applications commit their rows."""
    away, back = WAYS_AWAY[way]
    with Server(MODULE, words=words) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        generation = client("TAMIS.GENERATION", "guard")
        run(client, away)
        assert "not found" in str(client("TAMIS.ADD", "guard", *LATER))
        run(client, back)
        if not words:
            assert state(client, "guard") == b"not trusted"
            # It may lack what it is to erase.
            assert client("TAMIS.DEL", "guard", "item1") == [-1]
            assert client("TAMIS.DELIF", "guard", generation, "item1") == [-1]
        return refused(client, "guard", LATER)


def erases_without_a_row(words):
    """An application sends TAMIS.DELIF for rows that it did not delete: one in a hundred finds another key's place."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        assert client("TAMIS.RESERVE", "guard", "0.01", "1000", "SEED", "1", "GUARD") == "OK"
        add(client, "guard", ITEMS)
        assert client("TAMIS.TRUST", "guard") == "OK"
        for i in range(3000):
            client("TAMIS.DELIF", "guard", client("TAMIS.GENERATION", "guard"), f"absent{i}")
        if not words:
            assert state(client, "guard") == b"not trusted"
            assert "an erase was sent for a key that it does not hold" in server.log()
        return refused(client, "guard", ITEMS)


def moved_away_during_a_rebuild(words, way):
    away, back = WAYS_AWAY[way]
    with Server(MODULE, words=words) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        assert client("TAMIS.REBUILD", "guard", "START", "0.001", "10000") > 0
        run(client, away)
        assert "not found" in str(client("TAMIS.ADD", "guard", *LATER))
        run(client, back)
        committed = client("TAMIS.REBUILD", "guard", "COMMIT")
        assert words or "adds may be lost since START" in str(committed), committed
        return refused(client, "guard", LATER)


def moved_on_a_replica(words):
    """The replica is told of the RENAME, and is promoted."""
    words = ("tamis-trust-on-replicas", "yes", *words)
    with Server(MODULE, "repl-diskless-sync-delay", "0", words=words) as primary, Server(MODULE, words=words) as other:
        pair = Pair(primary)
        pair.follow(other.client())
        reserve(pair.client, "guard", "GUARD")
        run(pair.client, ("RENAME guard away",))
        assert "not found" in str(pair.client("TAMIS.ADD", "guard", *LATER))
        run(pair.client, ("RENAME away guard",))
        replicated(pair.client, other.client())
        return refused(other.client(), "guard", LATER)


def moved_in_a_log(words):
    """A log that is read again has the RENAME in it."""
    with Server(MODULE, *KEEPS_A_LOG, words=(*OWN_FILES, *words)) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        run(client, ("RENAME guard away", "RENAME away guard"))
        assert client("DEBUG", "LOADAOF") == "OK"
        return refused(client, "guard", LATER)


def replica_that_lags(switched_off):
    """The primary acknowledged adds that the replica has not seen; then the replica takes over."""
    words = ("tamis-trust-on-replicas", "yes") if switched_off else ()
    with Server(MODULE, "repl-diskless-sync-delay", "0") as primary, \
            Server(MODULE, words=words) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        reserve(client, "guard", "GUARD")
        replicated(client, reader)
        # One that came by commands and not by the first copy.
        reserve(client, "second", "GUARD")
        replicated(client, reader)
        assert client("TAMIS.CHECK", "second", "item1", "absent") == [1, 0]
        # From here on the replica hears nothing.
        assert client("CONFIG", "SET", "port", "0") == "OK"
        assert client("CLIENT", "KILL", "TYPE", "replica") == 1
        for key in ("guard", "second"):
            add(client, key, LATER)
            assert refused(client, key, LATER) == 0
            if switched_off:
                assert refused(reader, key, LATER) > 0, "the switch does nothing"
            else:
                assert reader("TAMIS.CHECK", key, *ITEMS, *LATER) == [-1] * 400
        assert isinstance(reader("TAMIS.TRUST", "guard"), Error), "a replica is not written"
        # Promoted: still without the last adds.
        assert reader("REPLICAOF", "NO", "ONE") == "OK"
        for key in ("guard", "second"):
            assert reader("TAMIS.CHECK", key, *ITEMS, *LATER) == [-1] * 400
            add(reader, key, LATER)
            assert reader("TAMIS.TRUST", key) == "OK"
            assert refused(reader, key, ITEMS + LATER) == 0
            assert reader("TAMIS.CHECK", key, "absent") == [0]


def primary_that_was_cut_off(switched_off):
    """Its replica was promoted and takes adds of which the old primary knows nothing."""
    words = () if switched_off else ("tamis-guard-min-replicas", "1")
    with Server(MODULE, "repl-diskless-sync-delay", "0", words=words) as primary, \
            Server(MODULE) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()
        assert client("TAMIS.RESERVE", "guard", "0.001", "10000", "GUARD") == "OK"
        add(client, "guard", ITEMS)
        assert client("TAMIS.TRUST", "guard") == "OK"
        alone = [1, 0] if switched_off else [-1, -1]
        assert client("TAMIS.CHECK", "guard", "item1", "absent") == alone
        assert client("TAMIS.DEL", "guard", "item2") == ([1] if switched_off else [-1])
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        while client("TAMIS.CHECK", "guard", "item1", "absent") != [1, 0]:
            pass  # until the first acknowledgement
        assert client("CONFIG", "SET", "port", "0") == "OK"
        assert client("CLIENT", "KILL", "TYPE", "replica") == 1
        assert reader("REPLICAOF", "NO", "ONE") == "OK"
        add(reader, "guard", LATER)
        assert reader("TAMIS.TRUST", "guard") == "OK"
        assert refused(reader, "guard", LATER) == 0
        if switched_off:
            assert refused(client, "guard", LATER) > 0, "the switch does nothing"
        else:
            assert client("TAMIS.CHECK", "guard", *LATER) == [-1] * len(LATER)


def replica_that_stands_still():
    """It is connected and says nothing: it may have been cut off. Until it goes on."""
    words = ("tamis-guard-min-replicas", "1", "tamis-guard-max-lag", "2")
    with Server(MODULE, "repl-diskless-sync-delay", "0", words=words) as primary, \
            Server(MODULE) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()
        reserve(client, "plain")
        assert client("TAMIS.RESERVE", "guard", "0.001", "10000", "GUARD") == "OK"
        assert client("TAMIS.TRUST", "guard") == "OK"
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        for stopped in (False, True, False):
            other.process.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)
            while client("TAMIS.CHECK", "guard", "absent") != [-1 if stopped else 0]:
                pass
            assert client("TAMIS.CHECK", "plain", "item1", "absent") == [1, 0]


def missing_and_half_loaded():
    """What BF.EXISTS and CF.EXISTS refuse, CHECK does not know."""
    with Server(MODULE) as server:
        client = server.client()
        client("BF.ADD", "bf", "x")
        client("CF.ADD", "cf", "x")
        reserve(client, "guard", "GUARD")
        for command, key in (("BF", "bf"), ("CF", "cf")):
            header = client(f"{command}.SCANDUMP", key, "0")[1]
            assert client(f"{command}.LOADCHUNK", key + "half", "1", header) == "OK"
            assert client("TAMIS.CHECK", key + "half", "x", "absent") == [-1, -1]
        client("DEL", "bf", "cf", "guard")
        assert client("BF.EXISTS", "bf", "x") == 0 and client("CF.EXISTS", "cf", "x") == 0
        for key in ("bf", "cf", "guard"):
            assert client("TAMIS.CHECK", key, "x") == [-1]


def copy_that_takes_the_place(words, way):
    """A copy of yesterday is put in the place of the filter that has had adds since."""
    with Server(MODULE, words=(*MOVED, *words)) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        if way == "COPY":
            assert client("COPY", "guard", "old") == 1
        elif way == "RESTORE":
            assert client("RESTORE", "old", "0", client("DUMP", "guard")) == "OK"
        elif way == "UNION":
            assert client("TAMIS.UNION", "old", "guard") == "OK"
        else:
            for at, data in dump(KINDS["TAMIS"], client, "guard"):
                assert client("TAMIS.LOADCHUNK", "old", at, data) == "OK"
        add(client, "guard", LATER)
        assert client("RENAME", "old", "guard") == "OK"
        return refused(client, "guard", LATER)


def union_under_a_name_that_was_missing(words):
    """Adds to the name found no filter, and their rows were committed; then a union of others takes the name."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        reserve(client, "other", "GUARD")
        assert "not found" in str(client("TAMIS.ADD", "guard", *LATER))
        assert client("TAMIS.UNION", "guard", "other") == "OK"
        return refused(client, "guard", LATER)


def union_with_a_filter_without_guard(words, key, source):
    """It lost its last adds with the server, which nobody doubts; the union has GUARD, whose answers are certain."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        reserve(client, "plain")
        assert client("SAVE") == "OK"
        add(client, "plain", LATER)
        server.kill()
        server.start()
        client = server.client()
        assert refused(client, "plain", LATER) > 0, "nothing was lost"
        reserve(client, "guard", "GUARD")
        assert client("TAMIS.UNION", key, source) == "OK"
        return refused(client, key, LATER)


def erase_of_what_was_lost(words):
    """A row whose add is lost goes: what lies where its add would have lain is another row's."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        assert client("TAMIS.RESERVE", "guard", "0.2", "400", "TYPE", "cuckoo", "SEED", "1", "GUARD") == "OK"
        add(client, "guard", ITEMS)
        assert client("TAMIS.TRUST", "guard") == "OK" and client("SAVE") == "OK"
        add(client, "guard", LATER)
        server.kill()
        server.start()
        client = server.client()
        client("TAMIS.DEL", "guard", *LATER)
        assert client("TAMIS.TRUST", "guard") == "OK"
        return refused(client, "guard", ITEMS)


def counter(client, name):
    return int(client("INFO", "bf_filters").decode().split(name + ":")[1].split("\r\n")[0])


# How it is made, what it grows by, and what asks it.
WITHOUT_MEMORY = {
    "TAMIS": ("TAMIS.RESERVE {} 0.01 10 TYPE scalable GUARD", "TAMIS.ADD {}", "TAMIS.CHECK {}"),
    "BF": ("BF.RESERVE {} 0.01 1 EXPANSION 1", "BF.MADD {}", "BF.MEXISTS {}"),
    "BF, made by an add": (None, "BF.INSERT {} CAPACITY 2 EXPANSION 1 ITEMS", "TAMIS.CHECK {}"),
    "valkey-bloom": ("BF.INSERT {} CAPACITY 1 EXPANSION 1 TIGHTENING 0.9", "BF.MADD {}", "BF.MEXISTS {}"),
    "valkey-bloom, made by an add": (None, "BF.INSERT {} CAPACITY 2 EXPANSION 1 TIGHTENING 0.9 ITEMS", "TAMIS.CHECK {}"),
    "CF": ("CF.RESERVE {} 2 BUCKETSIZE 1", "CF.INSERT {} ITEMS", "CF.MEXISTS {}"),
    "CF, made by an add": (None, "CF.INSERT {} CAPACITY 4 ITEMS", "TAMIS.CHECK {}"),
}


def replica_without_memory(words, kind):
    """It refused adds that its primary took, and takes over."""
    reserve, adds, asks = WITHOUT_MEMORY[kind]
    fails = ("tamis-fault", "allocations")
    with Server(MODULE, "repl-diskless-sync-delay", "0") as primary, Server(MODULE, words=(*fails, *words)) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        keys = [f"guard{n}" for n in range(1, 31)]
        for n, key in enumerate(keys, 1):
            if reserve:
                assert client(*reserve.format(key).split()) in ("OK", [])
            replicated(client, reader)
            assert "OK" in [reader("CONFIG", "SET", name, n)
                            for name in ("bf.tamis-failing-allocation", "tamis-failing-allocation")]
            for item in ITEMS[:20]:
                reply = client(*adds.format(key).split(), item)
                assert reply in ([0], [1], 0, 1), reply
            replicated(client, reader)
        assert counter(client, "commands_lost") == 0
        assert counter(reader, "commands_lost") > 0
        assert "memory does not suffice for a command that another server has done" in other.log()
        if not words and adds.startswith("BF.MADD"):  # what it does not hold it does not forget either
            before = [client("TAMIS.CHECK", key, "absent") for key in keys]
            assert reader("DEBUG", "RELOAD") == "OK"
            assert [client("TAMIS.CHECK", key, "absent") for key in keys] == before
        assert reader("REPLICAOF", "NO", "ONE") == "OK"
        for key in keys:
            reader("TAMIS.TRUST", key)
        return sum(reader(*asks.format(key).split(), *ITEMS[:20]).count(0) for key in keys)


def put_in_its_place(client, way):
    """A dump of yesterday takes the place of the filter that has had adds since."""
    if way == "RESTORE":
        assert client("RESTORE", "old", "0", client("DUMP", "guard")) == "OK"
    else:
        for at, data in dump(KINDS["TAMIS"], client, "guard"):
            assert client("TAMIS.LOADCHUNK", "old", at, data) == "OK"
    add(client, "guard", LATER)
    assert client("RENAME", "old", "guard") == "OK"
    assert refused(client, "guard", LATER) == 0


KEEPS_A_LOG = ("appendonly", "yes", "appendfsync", "always")
IN_COMMANDS = (*KEEPS_A_LOG, "aof-use-rdb-preamble", "no")
OWN_FILES = ("tamis-trust-after-restart", "yes")


def dump_in_a_log(words, way):
    """What a primary's log has of another filter's bytes is read again."""
    with Server(MODULE, *KEEPS_A_LOG, words=(*OWN_FILES, *MOVED, *words)) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        put_in_its_place(client, way)
        assert client("DEBUG", "LOADAOF") == "OK"
        return refused(client, "guard", LATER)


def parts_in_log(client, server, key):
    """The chunks of the key in the log that its server rewrites."""
    rewrite(client)
    directory = os.path.join(server.directory, "appendonlydir")
    (base,) = [name for name in os.listdir(directory) if ".base." in name]
    with open(os.path.join(directory, base), "rb") as file:
        return [command[2:] for command in commands_of(file)
                if command[0] == b"TAMIS.LOADCHUNK" and command[1] == key.encode()]


def commands_of(file):
    while line := file.readline():
        command = []
        for _ in range(int(line[1:])):
            command.append(file.read(int(file.readline()[1:])))
            file.read(2)
        yield command


def move_from_log(source, client, key, way):
    """The key as the log of `source` has it, sent to another server: as it stands there, or by a program that makes
    a RESTORE of it."""
    reader = source.client()
    chunks = parts_in_log(reader, source, key)
    if way == "LOADCHUNK":
        for at, data in chunks:
            assert client("TAMIS.LOADCHUNK", key, at, data) == "OK"
        return
    assert reader("CONFIG", "SET", "rdbcompression", "no") == "OK"
    value, header = reader("DUMP", key), reader("TAMIS.SCANDUMP", key, "0")[1]
    assert value.count(header) == 1 and len(header) == len(chunks[0][1]) and header != chunks[0][1]
    assert client("RESTORE", key, "0", sealed(value[:-8].replace(header, chunks[0][1]))) == "OK"


def log_of_another(words, way, started):
    """A client sends what the log of another server has; that one has adds later. Then the server is started again."""
    with Server(MODULE, *IN_COMMANDS, words=OWN_FILES) as source, \
            Server(MODULE, *IN_COMMANDS, words=(*OWN_FILES, *words)) as server:
        reader, client = source.client(), server.client()
        reserve(reader, "guard", "GUARD")
        if started:
            assert reader("TAMIS.REBUILD", "guard", "START", "0.001", "10000") > 0
            assert reader("TAMIS.REBUILD", "guard", "ADD", *ITEMS) == len(ITEMS)
        assert client("SELECT", "3") == "OK"
        move_from_log(source, client, "guard", way)
        assert client("TAMIS.CHECK", "guard", "item1", "absent") == [-1, -1]
        add(reader, "guard", LATER)
        server.kill()
        server.start()
        client = server.client()
        client("SELECT", "3")
        if started:
            client("TAMIS.REBUILD", "guard", "COMMIT")
        return refused(client, "guard", LATER)


class Pair:
    """A primary that lets itself be followed, and then no more."""

    def __init__(self, primary):
        self.client = primary.client()
        assert self.client("CONFIG", "SET", "port", str(free_port())) == "OK"
        self.port = self.client("CONFIG", "GET", "port")[1].decode()

    def follow(self, reader):
        assert reader("REPLICAOF", "127.0.0.1", self.port) == "OK"
        replicated(self.client, reader)

    def cut(self):
        assert self.client("CONFIG", "SET", "port", "0") == "OK"
        assert self.client("CLIENT", "KILL", "TYPE", "replica") > 0


def trust_by(client, way):
    if way == "TRUST":
        return reserve(client, "guard", "GUARD")
    assert client("TAMIS.REBUILD", "guard", "START", "0.001", "10000") > 0
    add(client, "guard", ITEMS)
    if way == "COMMIT":
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"


def log_of_a_replica(words, way, before):
    """It is started as a primary, from its own log, which ends before the primary's adds: by what was
    trusted `before` it followed, or by the commands that it heard."""
    with Server(MODULE, "repl-diskless-sync-delay", "0") as primary, \
            Server(MODULE, *KEEPS_A_LOG, words=(*OWN_FILES, *words)) as other:
        pair = Pair(primary)
        if before:
            trust_by(pair.client, way)
        pair.follow(other.client())
        if not before:
            trust_by(pair.client, way)
            replicated(pair.client, other.client())
        rewritten(other.client())
        pair.cut()
        add(pair.client, "guard", LATER)
        other.kill()
        other.start()
        client = other.client()
        if way == "START":  # what was added before it was sound is not in it
            client("TAMIS.REBUILD", "guard", "COMMIT")
        return refused(client, "guard", LATER)


def rewritten(client):
    """Until the log that a first copy begins is there."""
    while True:
        info = client("INFO", "persistence")
        if b"aof_rewrite_in_progress:0" in info and b"aof_rewrite_scheduled:0" in info:
            return


def start_of_a_replica(words):
    """It was the primary when its files were written, and has heard nothing of its own one yet."""
    with Server(MODULE, words=(*OWN_FILES, "tamis-trust-on-replicas", "yes", *words)) as server:
        reserve(server.client(), "guard", "GUARD")
        server.shutdown("SAVE")
        server.options += ["replicaof", f"127.0.0.1 {free_port()}"]
        server.start()
        return refused(server.client(), "guard", LATER)


def primary_that_followed(words):
    """It was told to follow another, was stopped, and is the primary again: the other has adds."""
    with Server(MODULE, *KEEPS_A_LOG, words=(*OWN_FILES, *words)) as server:
        client = server.client()
        reserve(client, "guard", "GUARD")
        assert client("REPLICAOF", "127.0.0.1", str(free_port())) == "OK"
        server.shutdown("NOSAVE")
        server.start()
        return refused(server.client(), "guard", LATER)


def replica_of_the_promoted(words):
    """The primary dies with adds that its replica does not have, nor the one behind that."""
    words = ("tamis-trust-on-replicas", "yes", *words)
    diskless = ("repl-diskless-sync-delay", "0")
    with Server(MODULE, *diskless) as primary, Server(MODULE, *diskless, words=words) as between, \
            Server(MODULE, words=words) as last:
        pair, next_pair = Pair(primary), Pair(between)
        pair.follow(next_pair.client)
        assert last.client()("REPLICAOF", "127.0.0.1", next_pair.port) == "OK"
        linked(last.client())  # a first copy from a replica is not believed
        trust_by(pair.client, "TRUST")
        while last.client()("TAMIS.CHECK", "guard", "item1", "absent") != [1, 0]:
            pass  # until that has come there
        pair.cut()
        add(pair.client, "guard", LATER)
        assert next_pair.client("REPLICAOF", "NO", "ONE") == "OK"
        assert refused(next_pair.client, "guard", LATER) == 0
        replicated(next_pair.client, last.client())
        return refused(last.client(), "guard", LATER)


def shown(rule, name, *arguments):
    """`rule` answers how many rows were refused."""
    assert rule((), *arguments) == 0, name
    assert rule(("tamis-fault", name), *arguments) > 0, f"{name} {arguments}: no row is refused without the rule"


def sound_by(client, way):
    """Makes a filter, or its rebuild, sound under the key "guard"."""
    if way == "START":
        client("TAMIS.REBUILD", "guard", "START", "0.001", "1000")
    elif way == "COMMIT":
        start = client("TAMIS.REBUILD", "guard", "START", "0.001", "1000")
        assert client("TAMIS.REBUILD", "guard", "COMMIT", "ID", start) == "OK"
    elif way == "UNION":
        reserve(client, "source", "GUARD")
        reserve(client, "guard", "GUARD")
        assert client("TAMIS.UNION", "guard", "source") == "OK"
    elif way == "RENAME":
        reserve(client, "other", "GUARD")
        assert client("RENAME", "other", "guard") == "OK"
        assert client("TAMIS.TRUST", "guard") == "OK"
    else:
        reserve(client, "guard", "GUARD")
    if way == "restart":
        name = client("CONFIG", "GET", "*tamis-trust-after-restart")[0]  # Redis 8 has no prefix
        assert client("CONFIG", "SET", name, "yes") == "OK"
        assert client("DEBUG", "RELOAD") == "OK"
        assert client("CONFIG", "SET", name, "no") == "OK"


def is_aborted(client):
    client("MULTI")
    client("PING")
    return client("EXEC") is None


def clients_that_rely_on_it(silent):
    """The end of all trust aborts transactions that WATCH a sound filter, and tells clients that cache what they read."""
    with Server(MODULE, words=("tamis-fault", "end_of_trust_is_silent") if silent else ()) as server:
        client, watching, tracking, listener = (server.client() for _ in range(4))
        number = listener("CLIENT", "ID")
        listener("SUBSCRIBE", "__redis__:invalidate")
        assert tracking("CLIENT", "TRACKING", "ON", "REDIRECT", str(number)) == "OK"

        def told():
            """The keys since the last time."""
            tracking("GET", "end")
            client("SET", "end", "x")
            keys = []
            while keys[-1:] != [b"end"]:
                keys += listener.read()[2] or []
            return keys[:-1]
        for way in ("TRUST", "COMMIT", "START", "UNION", "RENAME", "restart"):
            for database in ("0", "3"):
                for one in (client, watching, tracking):
                    assert one("SELECT", database) == "OK"
                client("FLUSHALL")
                sound_by(client, way)
                client("SET", "elsewhere", "x")
                told()
                watching("WATCH", "guard")
                tracking("TAMIS.CHECK", "guard", "absent")
                tracking("GET", "elsewhere")
                assert client("SELECT", "1") == "OK"
                assert client("TAMIS.DOUBTALL") == "OK"
                assert told() == ([] if silent else [b"guard"]), way
                assert is_aborted(watching) != silent, way
                assert b" db=1 " in client("CLIENT", "INFO")
                watching("WATCH", "guard")
                assert client("TAMIS.DOUBTALL") == "OK"
                assert not is_aborted(watching), "nothing was trusted any more"
        # A value in the place of a filter that has gone has not changed.
        watching("SELECT", "1")
        for gone in (("DEL", "guard"), ("RENAME", "guard", "away"), ("MOVE", "guard", "9"), ("FLUSHDB",), ("FLUSHALL",)):
            client("FLUSHALL")
            reserve(client, "guard", "GUARD")
            client(*gone)
            client("SET", "guard", "x")
            watching("WATCH", "guard")
            assert client("TAMIS.DOUBTALL") == "OK"
            assert not is_aborted(watching), gone


def main():
    shown(union_under_a_name_that_was_missing, "copies_are_believed")
    shown(union_with_a_filter_without_guard, "copies_are_believed", "plain", "guard")
    shown(union_with_a_filter_without_guard, "copies_are_believed", "guard", "plain")
    for way in ("COPY", "RESTORE", "LOADCHUNK", "UNION"):
        shown(copy_that_takes_the_place, "copies_are_believed", way)
    for way in WAYS_AWAY:
        shown(moved_away_and_back, "moved_is_believed", way)
        shown(moved_away_during_a_rebuild, "moved_is_believed", way)
    shown(erases_without_a_row, "stray_erases_are_believed")
    shown(moved_on_a_replica, "moved_is_believed")
    shown(moved_in_a_log, "moved_is_believed")
    for way in ("RESTORE", "LOADCHUNK"):
        shown(dump_in_a_log, "dumps_are_trusted", way)
    for way in ("LOADCHUNK", "RESTORE"):
        for started in (False, True):
            shown(log_of_another, "log_of_another_is_believed", way, started)
    for way in ("TRUST", "COMMIT", "START"):
        shown(log_of_a_replica, "replicas_log_trust", way, False)
    shown(log_of_a_replica, "replicas_log_trust", "TRUST", True)
    shown(start_of_a_replica, "old_copies_are_believed")
    shown(primary_that_followed, "role_is_not_logged")
    shown(replica_of_the_promoted, "role_is_not_logged")
    shown(erase_of_what_was_lost, "erases_when_unsure")
    for kind in WITHOUT_MEMORY:
        shown(replica_without_memory, "incomplete_is_believed", kind)
    lost_end_of_the_data(False)
    lost_end_of_the_data(True)
    log_that_is_read_again()
    copies()
    replica_that_lags(False)
    replica_that_lags(True)
    primary_that_was_cut_off(False)
    primary_that_was_cut_off(True)
    replica_that_stands_still()
    clients_that_rely_on_it(False)
    clients_that_rely_on_it(True)
    missing_and_half_loaded()


if __name__ == "__main__":
    main()
