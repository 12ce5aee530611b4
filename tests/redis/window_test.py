#!/usr/bin/env python3
"""A filter made with WINDOW never denies an item before its time, and denies it afterwards, on all ways that a filter goes.

The servers' clocks are settings here; each server has a running clock and a wall clock of its own.
Each rule is shown twice: as it is, and switched off, where an item is denied before its time.
usage: window_test.py MODULE [SEED]
"""

import random
import struct
import sys

from kinds import digests, dump
from persistence_test import replicated, rewrite
from rdb_value import sealed
from redis_server import Error, Server
from trust_test import IN_COMMANDS, Pair, move_from_log

MODULE = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
WINDOW, SLICES = 60_000, 4
SLICE = WINDOW // SLICES
RATE = 0.01
TYPES = ("blocked-quotient", "cuckoo", "counting", "d-left", "blocked")
ERASING = TYPES[:-1]


class Timed:
    """A server whose clocks are driven; `true` is the time as it is, the same for all of them."""

    true = 0

    def __init__(self, *options, words=(), running=1_000_000, wall=1_700_000_000_000):
        self.running, self.wall = running - Timed.true, wall - Timed.true
        clocks = ("tamis-running-clock", str(running), "tamis-wall-clock", str(wall))
        self.server = Server(MODULE, "repl-diskless-sync-delay", "0", *options,
                             words=("tamis-fault", "clocks", *words, *clocks))
        self.client = self.server.client()
        found = self.client("CONFIG", "GET", "*tamis-running-clock")[0].decode()
        self.prefix = found[:-len("tamis-running-clock")]

    def tell(self):
        for name, differs in (("running", self.running), ("wall", self.wall)):
            assert self.client("CONFIG", "SET", f"{self.prefix}tamis-{name}-clock", str(Timed.true + differs)) == "OK"

    def restart(self, running):
        """The running clock begins anew, at any time."""
        self.server.kill()
        self.running = running - Timed.true
        words = self.server.words
        for name, differs in (("running", self.running), ("wall", self.wall)):
            words[words.index(f"tamis-{name}-clock") + 1] = str(Timed.true + differs)
        self.server.start()
        self.client = self.server.client()

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *exception):
        self.server.__exit__(*exception)


def passes(ms, *servers):
    Timed.true += ms
    for server in servers:
        server.tell()


def reserve(client, key, *words, kind="blocked-quotient", capacity=4000):
    assert client("TAMIS.RESERVE", key, str(RATE), str(capacity), "TYPE", kind, "WINDOW", str(WINDOW // 1000),
                  "SLICES", str(SLICES), "SEED", "1", *words) == "OK"


def found(server, key, item):
    return server.client("TAMIS.CHECK", key, item)[0]


def forgets():
    """Found for the window, denied a slice later."""
    with Timed() as server:
        client = server.client
        for kind in TYPES:
            reserve(client, kind, kind=kind)
        for turn in range(3 * SLICES):
            for kind in TYPES:
                assert client("TAMIS.ADD", kind, f"item{turn}", f"item{turn}") == [1, 0]
            passes(SLICE, server)
            for kind in TYPES:
                there = [max(client("TAMIS.CHECK", kind, f"item{i}")) for i in range(turn + 1)]
                assert there[-SLICES:] == [1] * len(there[-SLICES:]), (kind, turn, there)
                assert sum(there[:-SLICES]) <= 1, (kind, turn, there)
        for kind in TYPES:
            info = client("TAMIS.INFO", kind)
            info = dict(zip(info[::2], info[1::2]))
            assert info["Window"] == WINDOW // 1000 and info["Slices"] == SLICES
            assert info["Items"] == client("TAMIS.COUNT", kind) > 0
        passes(2 * WINDOW, server)
        for kind in TYPES:
            assert client("TAMIS.COUNT", kind) == 0
            assert found(server, kind, "item11") == 0


def memory_at_size():
    """A million items: slices + 1 filters for a share each, by what the allocator says."""
    with Timed() as server:
        client = server.client
        assert client("TAMIS.RESERVE", "window", str(RATE), "1000000", "WINDOW", str(WINDOW // 1000)) == "OK"
        assert client("TAMIS.INFO", "window")[1] == b"cuckoo"
        one = dict(zip(*[iter(client("TAMIS.SIZE", str(1 - (1 - RATE) ** (1 / 5)), "1000000", "TYPE", "cuckoo"))] * 2))
        said = dict(zip(*[iter(client("TAMIS.SIZE", str(RATE), "1000000", "SLICES", str(SLICES)))] * 2))
        for turn in range(2 * SLICES):
            assert client("TAMIS.ADD", "window", f"item{turn}") == [1]
            passes(SLICE, server)
        used = client("MEMORY", "USAGE", "window")
        bound = one["Bytes"] * (SLICES + 1) / SLICES
        assert used <= bound * 1.03, (used, bound)
        assert abs(said["Bytes"] / used - 1) < 0.03, (said, used)
        # The filter that is made without more words: its items stay.
        assert client("TAMIS.RESERVE", "plain", str(RATE), "1000000") == "OK"
        plain = client("MEMORY", "USAGE", "plain")
        assert used <= plain * (SLICES + 1) / SLICES * 1.01, (used, plain)
        # Over all slices, full, the rate is the one that was asked for.
        reserve(client, "full", kind="cuckoo", capacity=20_000)
        for turn in range(SLICES + 1):
            for i in range(0, 5000, 500):
                assert -1 not in client("TAMIS.ADD", "full", *(f"{turn}/{i + j}" for j in range(500)))
            if turn < SLICES:
                passes(SLICE, server)
        absent = sum(sum(client("TAMIS.CHECK", "full", *(f"absent{i + j}" for j in range(500))))
                     for i in range(0, 50_000, 500))
        assert 20 < absent <= RATE * 50_000 + 5 * (RATE * 50_000) ** 0.5, absent


def slice_that_ends_early(words):
    with Timed(words=words) as server:
        reserve(server.client, "key")
        passes(SLICE - 1, server)
        assert server.client("TAMIS.ADD", "key", "x") == [1]
        passes(WINDOW, server)
        return found(server, "key", "x") == 0


def erase_of_a_copy(words):
    """One row with the key goes; a later one is there."""
    with Timed(words=words) as server:
        client = server.client
        reserve(client, "key")
        first = client("TAMIS.GENERATION", "key")
        assert client("TAMIS.ADD", "key", "x") == [1]
        passes(2 * SLICE, server)
        assert client("TAMIS.ADD", "key", "x") == [0]
        assert client("TAMIS.DELIF", "key", first, "x") == [1]
        passes(WINDOW, server)
        return found(server, "key", "x") == 0


def erase_of_any_age(words):
    """The rows of the erases have left the window; some of them have the place of one that is there."""
    with Timed(words=words) as server:
        client = server.client
        reserve(client, "key", kind="cuckoo")
        items = [f"item{i}" for i in range(800)]
        assert -1 not in client("TAMIS.ADD", "key", *items)
        for i in range(2000):
            assert words or client("TAMIS.DEL", "key", f"old{i}") == [-1]
            client("TAMIS.DEL", "key", f"old{i}")
        return client("TAMIS.CHECK", "key", *items).count(0)


def erase_by_counters(words):
    """Rows of two slices, so many that each slice matches rows of the other one; those of the second go."""
    denied = erased = 0
    with Timed(words=words) as server:
        client = server.client
        kinds = ("counting", "dynamic-count", "split-counting", "scalable", "blocked-counting", "projected", "d-left",
                 "cuckoo", "blocked-quotient", "quotient")
        before = {}
        for kind in kinds:
            assert client("TAMIS.RESERVE", kind, "0.3", "800", "TYPE", kind, "WINDOW", "60", "SEED", "7") == "OK"
            before[kind] = client("TAMIS.GENERATION", kind)
            assert -1 not in client("TAMIS.ADD", kind, *(f"stays{i}" for i in range(150)))
        passes(SLICE, server)
        for kind in kinds:
            goes = [f"goes{i}" for i in range(150)]
            assert -1 not in client("TAMIS.ADD", kind, *goes)
            replies = client("TAMIS.DELIF", kind, before[kind], *goes)
            assert words or 0 not in replies, (kind, replies)
            erased += replies.count(1)
            info = client("TAMIS.INFO", kind)
            assert dict(zip(info[::2], info[1::2]))["Skipped erases"] == replies.count(-1)
            denied += client("TAMIS.CHECK", kind, *(f"stays{i}" for i in range(150))).count(0)
        assert erased > 500
    return denied


def generations():
    """DELIF erases with a generation that was read before the add, until the slice of then is over."""
    with Timed() as server:
        client = server.client
        reserve(client, "key", "GUARD")
        assert client("TAMIS.TRUST", "key") == "OK"
        old = client("TAMIS.GENERATION", "key")
        passes(SLICE, server)  # between the read and the add
        assert client("TAMIS.ADD", "key", "x", "y") == [1, 1]
        assert client("TAMIS.GENERATION", "key") != old
        assert client("TAMIS.MARK", "key", "m", old) == "OK"
        assert client("TAMIS.DEL", "key", "x") == [-1]
        assert client("TAMIS.DELIF", "key", old, "x") == [1]
        assert client("TAMIS.CHECK", "key", "x", "y") == [0, 1]
        passes(WINDOW, server)
        # The slice of the generation is over; that of the add is not.
        assert client("TAMIS.DELIF", "key", old, "y") == [-1]
        assert client("TAMIS.CHECK", "key", "y") == [1]
        assert client("TAMIS.DOUBT", "key") == "OK"
        assert client("TAMIS.TRUST", "key") == "OK"
        # One that was sent with a generation of after the add is seen.
        late = client("TAMIS.GENERATION", "key")
        passes(1, server)
        assert client("TAMIS.ADD", "key", "z") == [1]
        assert client("TAMIS.DELIF", "key", client("TAMIS.GENERATION", "key"), "y") == [0]
        assert client("TAMIS.CHECK", "key", "z") == [-1]
        assert "an erase was sent for a key that it does not hold" in server.server.log()
        assert client("TAMIS.TRUST", "key") == "OK"
        assert client("TAMIS.DELIF", "key", late, "z") == [-1]


def replica_that_begins_no_slice(words):
    """The replica has a clock of its own, is told of each slice, and is promoted."""
    with Timed(words=words) as primary, Timed(running=77, wall=5) as other:
        pair = Pair(primary.server)
        reserve(pair.client, "key")
        pair.follow(other.client)
        passes(WINDOW, primary, other)
        assert pair.client("TAMIS.ADD", "key", "x") == [1]
        replicated(pair.client, other.client)
        passes(SLICE, primary, other)
        if not words:
            assert digests(pair.client, ["key"]) == digests(other.client, ["key"])
        before = found(other, "key", "x") == 0
        assert other.client("REPLICAOF", "NO", "ONE") == "OK"
        passes(WINDOW - SLICE, other)
        return before or found(other, "key", "x") == 0


def replica_without_memory(words):
    """It could not begin a slice, and its adds went to one that is over sooner. It is promoted."""
    denied = 0
    with Timed() as primary, Timed(words=("tamis-fault", "allocations", *words)) as other:
        pair = Pair(primary.server)
        pair.follow(other.client)
        keys = [f"key{n}" for n in range(1, 16)]
        for key in keys:
            reserve(pair.client, key)
        passes(WINDOW, primary, other)
        for n, key in enumerate(keys, 1):
            replicated(pair.client, other.client)
            assert other.client("CONFIG", "SET", f"{other.prefix}tamis-failing-allocation", str(n)) == "OK"
            assert pair.client("TAMIS.ADD", key, "x") == [1]
            replicated(pair.client, other.client)
            assert other.client("CONFIG", "SET", f"{other.prefix}tamis-failing-allocation", "0") == "OK"
        assert b"commands_lost:0" not in other.client("INFO", "bf_filters")
        assert other.client("REPLICAOF", "NO", "ONE") == "OK"
        passes(WINDOW, other)
        for key in keys:
            denied += found(other, key, "x") == 0
    return denied


def wall_clock_that_differs(words, way):
    """Where a filter comes from another server, the two wall clocks are not compared."""
    with Timed() as primary, Timed(words=words, wall=1_900_000_000_000) as other:
        pair = Pair(primary.server)
        reserve(pair.client, "key")
        assert pair.client("TAMIS.ADD", "key", "x") == [1]
        if way == "first copy":
            pair.follow(other.client)
        elif way == "commands":
            pair.client("DEL", "key")
            pair.follow(other.client)
            reserve(pair.client, "key")
            passes(SLICE, primary, other)
            assert pair.client("TAMIS.ADD", "key", "x") == [1]
            replicated(pair.client, other.client)
        elif way == "RESTORE":
            assert other.client("RESTORE", "key", "0", pair.client("DUMP", "key")) == "OK"
        else:
            for at, data in dump(__import__("kinds").Tamis, pair.client, "key"):
                assert other.client("TAMIS.LOADCHUNK", "key", at, data) == "OK"
        if way != "RESTORE" and way != "LOADCHUNK":
            assert other.client("REPLICAOF", "NO", "ONE") == "OK"
        passes(WINDOW, primary, other)
        return found(other, "key", "x") == 0


def what_was_restored_in_a_log():
    """A log that has another server's bytes in it: its time under way does not count when it is read."""
    for way in ("RESTORE", "LOADCHUNK", "RESTORE from its log", "LOADCHUNK from its log"):
        with Timed(*IN_COMMANDS, wall=1_000_000_000_000) as source, Timed(*IN_COMMANDS) as server:
            reserve(source.client, "key")
            assert source.client("TAMIS.ADD", "key", "x") == [1]
            if "log" in way:
                move_from_log(source.server, server.client, "key", way.split()[0])
            elif way == "RESTORE":
                assert server.client("RESTORE", "key", "0", source.client("DUMP", "key")) == "OK"
            else:
                for at, data in dump(__import__("kinds").Tamis, source.client, "key"):
                    assert server.client("TAMIS.LOADCHUNK", "key", at, data) == "OK"
            passes(WINDOW // 2, server)
            server.restart(running=5)
            assert found(server, "key", "x") == 1, way
            passes(WINDOW // 2, server)
            assert found(server, "key", "x") == 1, way


def restarts():
    """The time for which a server does not run counts, by its wall clock, and not if that goes back."""
    for options in ((), ("appendonly", "yes"), ("appendonly", "yes", "aof-use-rdb-preamble", "no")):
        for rewritten in (False, True) if options else (True,):
            with Timed(*options, "appendfsync", "always") as server:
                reserve(server.client, "key")
                passes(SLICE, server)
                assert server.client("TAMIS.ADD", "key", "x") == [1]
                where = (options, rewritten)

                def written():
                    if not options:
                        assert server.client("SAVE") == "OK"
                    elif rewritten:
                        rewrite(server.client)
                written()
                Timed.true += WINDOW
                server.restart(running=12345)
                assert found(server, "key", "x") == 1, where
                written()
                server.wall -= 10 * WINDOW
                server.restart(running=5)
                assert found(server, "key", "x") == 1, where
                passes(SLICE, server)
                # The log has the beginning of the slice, the files what had passed when they were written.
                assert found(server, "key", "x") == (0 if rewritten else 1), where
                server.wall += 10 * WINDOW
                server.restart(running=99)
                assert found(server, "key", "x") == 0, where


def copies():
    with Timed() as server:
        client = server.client
        reserve(client, "key")
        assert client("TAMIS.ADD", "key", "x") == [1]
        passes(WINDOW, server)
        assert client("COPY", "key", "copy") == 1
        assert client("RESTORE", "restored", "0", client("DUMP", "key")) == "OK"
        assert digests(client, ["key"]) == digests(client, ["copy"]) == digests(client, ["restored"])
        for key in ("key", "copy", "restored"):
            assert found(server, key, "x") == 1
        server.wall -= WINDOW  # set, not passed
        passes(SLICE, server)
        for key in ("key", "copy", "restored"):
            assert found(server, key, "x") == 0


def sizes_that_are_not_those_of_the_bytes():
    """The header says what each later slice is made for: more than the bytes that came with it account for."""
    with Timed(words=("tamis-max-bytes", "1000000")) as server, Timed() as other:
        client = server.client
        for kind in TYPES:
            assert client("TAMIS.RESERVE", kind, "0.01", "400", "WINDOW", "60", "TYPE", kind) == "OK"
            chunks = dump(__import__("kinds").Tamis, client, kind)
            sizes = [(size, RATE) for size in (2_000_000_000, 4_000_000, 1 << 33, 1 << 63, (1 << 64) - 1, 0)]
            for capacity, rate in (*sizes, (400, 1e-300), (400, 0.999), (1 << 31, 1e-9)):
                header = bytearray(chunks[0][1])
                assert struct.unpack_from("<dQ", header, 12) == (RATE, 400)
                struct.pack_into("<dQ", header, 12, rate, capacity)
                case = (kind, capacity, rate)
                replies = [client("TAMIS.LOADCHUNK", "loaded", at, bytes(header) if at == 0 else data)
                           for at, data in chunks]
                assert isinstance(replies[-1], Error), case
                client("DEL", "loaded")
                # A filter that RESTORE has taken begins no such slice.
                assert client("CONFIG", "SET", "rdbcompression", "no") == "OK"
                value = client("DUMP", kind)
                now = client("TAMIS.SCANDUMP", kind, "0")[1]
                bad = bytearray(now)
                struct.pack_into("<dQ", bad, 12, rate, capacity)
                assert value.count(now) == 1
                if client("RESTORE", "restored", "0", sealed(value[:-8].replace(now, bytes(bad)))) == "OK":
                    passes(SLICE, server)
                    reply = client("TAMIS.ADD", "restored", "y")
                    assert isinstance(reply, Error) and "tamis-max-bytes" in reply, (case, reply)
                    assert client("MEMORY", "USAGE", "restored") < 1_000_000
                    client("DEL", "restored")
        # Each filter that RESERVE makes is loaded elsewhere.
        for rate, capacity, slices in (("0.5", "1", "64"), ("0.000001", "100000", "1"), ("0.01", "20000", "7")):
            for kind in TYPES:
                client("DEL", "key")
                other.client("DEL", "key")
                if client("TAMIS.RESERVE", "key", rate, capacity, "WINDOW", "60", "SLICES", slices, "TYPE", kind) == "OK":
                    passes(SLICE, server)
                    assert client("TAMIS.ADD", "key", "x") == [1]
                    for at, data in dump(__import__("kinds").Tamis, client, "key"):
                        assert other.client("TAMIS.LOADCHUNK", "key", at, data) == "OK"


def refusals():
    with Timed() as server:
        client = server.client
        reserve(client, "key")
        assert client("TAMIS.RESERVE", "plain", "0.01", "100", "SEED", "1") == "OK"
        for command, text in (("TAMIS.REBUILD key START 0.01 100", "is not rebuilt"),
                              ("TAMIS.UNION key plain", "is not united"), ("TAMIS.UNION plain key", "is not united"),
                              ("TAMIS.UNION new key", "is not united"), ("TAMIS.SLICE key BEGIN 1 0 0", "servers send"),
                              ("TAMIS.SLICE key DEL 0 x", "servers send"), ("TAMIS.SLICE plain BEGIN 1 0 0", "servers send")):
            reply = client(*command.split())
            assert isinstance(reply, Error) and text in reply, (command, reply)


class Model:
    """The adds that are not erased: when, with which generation before, and how much time was lost since."""

    def __init__(self):
        self.adds = {}  # item -> [[time, generation, time that was lost till then]]
        self.lost = 0

    def due(self, item):
        """1: it must be found. 0: it must not, except by chance. None: either."""
        adds = self.adds.get(item, [])
        if any(Timed.true - time <= WINDOW for time, _, _ in adds):
            return 1
        over = WINDOW + SLICE + SLICES + 1
        return None if any(Timed.true - time <= over + self.lost - lost for time, _, lost in adds) else 0

    def forget_generations(self):
        for adds in self.adds.values():
            for add in adds:
                add[1] = 0


def random_times(words, seed, steps=1200):
    """Random adds, erases, moves, promotions, restarts and clocks. Answers how many items were denied early."""
    rng = random.Random(seed)
    early = late = asked = 0
    with Timed("appendonly", "yes", "appendfsync", "always", words=words) as one, \
            Timed("appendonly", "yes", "appendfsync", "always", words=words, running=9, wall=10**12) as two:
        primary, other = one, two
        pair = Pair(primary.server)
        pair.follow(other.client)
        models = {}
        for kind in TYPES:
            reserve(primary.client, kind, kind=kind)
            models[kind] = Model()
        for step in range(steps):
            kind = rng.choice(TYPES)
            model, client = models[kind], primary.client
            item = f"item{rng.randrange(300)}"
            action = rng.randrange(100)
            if action < 35:
                generation = client("TAMIS.GENERATION", kind)
                if client("TAMIS.ADD", kind, item)[0] >= 0:
                    model.adds.setdefault(item, []).append([Timed.true, generation, model.lost])
            elif action < 50 and kind in ERASING:
                known = [(item, i) for item, adds in model.adds.items() for i, add in enumerate(adds) if add[1]]
                if known:
                    item, i = rng.choice(known)
                    reply = client("TAMIS.DELIF", kind, model.adds[item][i][1], item)
                    assert words or reply != [0], (kind, item, model.adds[item])
                    if reply == [1]:
                        del model.adds[item][i]
            elif action < 75:
                passes(rng.randrange(SLICE // 2), one, two)
            elif action == 75:
                rng.choice((one, two)).wall += rng.randrange(-WINDOW, WINDOW)  # somebody sets it
                passes(0, one, two)
            elif action == 76 and rng.randrange(3) == 0:
                # The other one takes over. It heard of everything a little later.
                replicated(client, other.client)
                lag = rng.randrange(SLICE // 4)
                primary, other = other, primary
                assert primary.client("REPLICAOF", "NO", "ONE") == "OK"
                passes(lag, one, two)
                pair = Pair(primary.server)
                pair.follow(other.client)
                for each in models.values():
                    each.lost += lag
                    each.forget_generations()
            elif action == 77 and rng.randrange(3) == 0:
                # After a first copy the log lacks what comes until it is written again: a new primary waits for that.
                while b"aof_rewrite_in_progress:1" in client("INFO", "persistence") or \
                        b"aof_rewrite_scheduled:1" in client("INFO", "persistence"):
                    pass
                if rng.randrange(2):
                    rewrite(client)
                for each in TYPES:  # what is added next says to the log that a clock was set
                    client("TAMIS.ADD", each, "x")
                Timed.true += rng.randrange(SLICE)
                primary.restart(running=rng.randrange(1, 10**6))
                pair = Pair(primary.server)
                other.tell()
                pair.follow(other.client)
                for each in models.values():
                    each.forget_generations()
                    each.lost += WINDOW  # its wall clock may have been set meanwhile, back
            else:
                asks = one if rng.randrange(2) else two
                if asks is other:
                    replicated(client, other.client)
                if rng.randrange(2) and model.adds:
                    # The one whose time is most nearly over.
                    item = max(model.adds, key=lambda name: max(
                        (t for t in (Timed.true - add[0] for add in model.adds[name]) if t <= WINDOW), default=0))
                due, answer = model.due(item), found(asks, kind, item)
                if due == 1 and answer == 0:
                    early += 1
                    assert words, f"seed {seed}, step {step}: {kind} denies {item} early: {Timed.true}, {model.adds[item]}"
                if due == 0:
                    asked += 1
                    late += answer
        replicated(primary.client, other.client)
        assert words or digests(primary.client, TYPES) == digests(other.client, TYPES), f"seed {seed}"
    assert late <= RATE * asked + 5 * (RATE * asked + 1) ** 0.5, (seed, late, asked)
    return early


def shown(rule, name, *arguments):
    assert rule((), *arguments) == 0, name
    assert rule(("tamis-fault", name), *arguments) > 0, f"{name} {arguments}: no item is denied early without the rule"


def main():
    print(f"seed {SEED}")
    forgets()
    memory_at_size()
    generations()
    refusals()
    sizes_that_are_not_those_of_the_bytes()
    copies()
    restarts()
    what_was_restored_in_a_log()
    shown(slice_that_ends_early, "slices_end_early")
    shown(erase_of_a_copy, "erases_newest_copy")
    shown(erase_by_counters, "erases_first_match")
    shown(erase_of_any_age, "erases_of_any_age")
    shown(replica_that_begins_no_slice, "slices_are_not_sent")
    shown(replica_without_memory, "incomplete_is_believed")
    for way in ("first copy", "commands", "RESTORE", "LOADCHUNK"):
        shown(wall_clock_that_differs, "time_under_way_counts", way)
    for i in range(3):
        random_times((), SEED + i)
    assert random_times(("tamis-fault", "slices_end_early"), SEED) > 0, "the check sees no item that is denied early"


if __name__ == "__main__":
    main()
