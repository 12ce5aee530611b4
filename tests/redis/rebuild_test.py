#!/usr/bin/env python3
"""TAMIS.REBUILD: no row is refused that was added at any time, whatever happens while the new filter
is filled.

Each rule is shown twice: as it is, and switched off, where a row is then refused.
usage: rebuild_test.py MODULE
"""

import sys

from persistence_test import free_port, replicated, rewrite
from redis_server import Error, Server, Simple
from replies import arity, info_fields, run, starts

MODULE = sys.argv[1]
ROWS = [f"row{i}" for i in range(300)]
LATER = [f"later{i}" for i in range(300)]
OK = Simple("OK")
NOT_FOUND = Error("ERR not found")
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
NONE = Error("ERR no rebuild is under way")
BAD_GENERATION = Error("ERR bad generation: send the number that TAMIS.GENERATION gave")
BAD_LEASE = Error("ERR bad lease: it is 0 to 1000000000 seconds")
ARITY = arity("tamis.rebuild")
UNKNOWN = Error("Unknown argument received")
FULL = Error("ERR the new filter was full: ABORT, and START with a greater capacity")
LOST = Error("ERR adds may be lost since START: ABORT, and START again")
OTHER = Error("ERR another rebuild is under way")


def fields(**expected):
    return info_fields(expected)


REPLIES = [
    ("SET string x", OK),
    ("TAMIS.REBUILD a", ARITY), ("TAMIS.REBUILD a START", ARITY), ("TAMIS.REBUILD a START 0.1", ARITY),
    ("TAMIS.REBUILD a ADD", ARITY), ("TAMIS.REBUILD a ADDIF 1", ARITY), ("TAMIS.REBUILD a CHECK 1", ARITY), ("TAMIS.REBUILD a KEEP 1", ARITY),
    ("TAMIS.REBUILD a KEEP 1 2 3", ARITY), ("TAMIS.REBUILD a KEEP x 5", Error("ERR bad id")),
    ("TAMIS.REBUILD a KEEP 1 x", BAD_LEASE), ("TAMIS.REBUILD a KEEP 1 -1", BAD_LEASE),
    ("TAMIS.REBUILD a ADDIF -1 x", Error("ERR bad id")), ("TAMIS.REBUILD a CHECK x x", Error("ERR bad id")), ("TAMIS.REBUILD a ABORT x", UNKNOWN),
    ("TAMIS.REBUILD a ABORT MARK m", UNKNOWN), ("TAMIS.REBUILD a ABORT ID x", Error("ERR bad id")),
    ("TAMIS.REBUILD a STOP", starts("ERR no such step of a rebuild; there are: START ")),
    (["TAMIS.REBUILD", "a", ""], starts("ERR no such step")),
    ("TAMIS.REBUILD a START x 100", Error("ERR bad error rate")),
    ("TAMIS.REBUILD a START 0.6 100", starts("ERR cannot make a filter: fpr is")),
    ("TAMIS.REBUILD a START 0.01 0", Error("ERR bad capacity")),
    ("TAMIS.REBUILD a START 0.01 4294967296", starts("ERR cannot make a filter: capacity is")),
    ("TAMIS.REBUILD a START 0.000001 2147483648 TYPE counting",
     Error("ERR could not create filter: greater than tamis-max-bytes")),
    ("TAMIS.REBUILD a START 0.01 100 TYPE binary-fuse", starts("ERR no such type")),
    ("TAMIS.REBUILD a START 0.01 100 GUARD", UNKNOWN), ("TAMIS.REBUILD a START 0.01 100 ID", UNKNOWN),
    *((f"TAMIS.REBUILD a START 0.01 100 ID {x}", Error("ERR bad id")) for x in ("x", "-1", 2**63)),
    ("TAMIS.REBUILD a START 0.01 100 SEED x", Error("ERR bad seed")),
    ("TAMIS.REBUILD a START 0.01 100 LEASE", UNKNOWN),
    *((f"TAMIS.REBUILD a START 0.01 100 LEASE {x}", BAD_LEASE) for x in ("x", "-1", 10**10)),
    ("EXISTS a", 0),
    *((f"TAMIS.REBUILD none {rest}", NOT_FOUND) for rest in ("ADD x", "ADDIF 1 x", "CHECK 1 x", "KEEP 1 5", "COMMIT", "ABORT")),
    *((f"TAMIS.REBUILD string {rest}", WRONG_TYPE)
      for rest in ("START 0.01 100", "ADD x", "ADDIF 1 x", "KEEP 1 5", "COMMIT", "ABORT")),
    ("TAMIS.RESERVE plain 0.01 100", OK),
    *((f"TAMIS.REBUILD plain {rest}", NONE) for rest in ("ADD x", "ADDIF 1 x", "KEEP 1 5", "COMMIT", "ABORT")),
    # Without a filter before it, nothing is known until the commit.
    ("TAMIS.REBUILD a START 0.01 100 ID 5", 5), ("TAMIS.CHECK a x", [-1]),
    ("TAMIS.REBUILD a START 0.01 100", Error("ERR a rebuild is under way: COMMIT or ABORT it first")),
    ("TAMIS.INFO a", fields(State=b"none", Rebuild=b"under way", Rebuild_id=5, Type=b"", Guard=1,
                            Rebuild_lease=600)),
    # Another program's rebuild is neither filled nor kept.
    ("TAMIS.REBUILD a ADDIF 6 x", OTHER), ("TAMIS.REBUILD a KEEP 6 5", OTHER),
    ("TAMIS.INFO a", fields(Rebuild_items=0, Rebuild_lease=600)),
    ("TAMIS.REBUILD a KEEP 5 0", OK), ("TAMIS.INFO a", fields(Rebuild_lease=0)),
    ("TAMIS.REBUILD a KEEP 5 900", OK), ("TAMIS.INFO a", fields(Rebuild_lease=900)),
    ("TAMIS.REBUILD a CHECK 6 w", OTHER), ("TAMIS.REBUILD a CHECK 5 w", [0]),
    ("TAMIS.REBUILD a addif 5 w", 1), ("TAMIS.REBUILD a check 5 w absent", [1, 0]), ("TAMIS.INFO a", fields(Rebuild_items=1)),
    ("TAMIS.TRUST a", Error("ERR there is only a rebuild: COMMIT it")),
    ("TAMIS.ADD a x x", [1, 0]), ("TAMIS.DEL a x", [-1]), ("TAMIS.REBUILD a ADD y z", 2),
    ("TAMIS.CHECK a x", [-1]), ("TAMIS.MARK a m", OK),
    ("TAMIS.REBUILD a COMMIT x", UNKNOWN), ("TAMIS.REBUILD a COMMIT MARK", UNKNOWN),
    ("TAMIS.REBUILD a COMMIT x y", UNKNOWN), ("TAMIS.REBUILD a COMMIT ID x", Error("ERR bad id")),
    (["TAMIS.REBUILD", "a", "COMMIT", "MARK", b"m" * 1025],
     Error("ERR a mark has at most 1024 bytes")),
    ("TAMIS.REBUILD a COMMIT ID 6", OTHER), ("TAMIS.REBUILD a ABORT ID 6", OTHER),
    ("TAMIS.GENERATION a", 0), ("TAMIS.REBUILD a commit id 5", OK),
    ("TAMIS.CHECK a x y z absent", [1, 1, 1, 0]),
    ("TAMIS.INFO a", fields(State=b"trusted", Rebuild=b"none", Rebuild_id=0, Mark=b"", Items=5,
                            Skipped_erases=0, Guard=1, Rebuild_lease=0)),
    # An erase that was sent before the commit is not told from one that was sent after it.
    ("TAMIS.DEL a x", [-1]), ("TAMIS.INFO a", fields(Skipped_erases=1)),
    ("TAMIS.REBUILD a START 0.01 200 TYPE cuckoo", lambda r: isinstance(r, int) and 0 <= r < 2**53),
    ("TAMIS.CHECK a x y z absent", [1, 1, 1, 0]), ("TAMIS.REBUILD a ADD x", 1),
    ("TAMIS.REBUILD a COMMIT MARK n", OK), ("TAMIS.CHECK a x y", [1, 0]),
    ("TAMIS.INFO a", fields(Type=b"cuckoo", Capacity=200, Mark=b"n")),
    ("TAMIS.REBUILD a START 0.01 200", lambda r: isinstance(r, int)),
    ("TAMIS.REBUILD a ABORT", OK), ("TAMIS.CHECK a x y", [1, 0]),
    ("TAMIS.REBUILD b START 0.01 200", lambda r: isinstance(r, int)),
    ("TAMIS.REBUILD b ABORT", OK), ("EXISTS b", 0),
    ("TAMIS.REBUILD b START 0.01 1 TYPE cuckoo SEED 1 ID 1", 1),
    (["TAMIS.REBUILD", "b", "ADD"] + [f"x{i}" for i in range(60)], lambda r: 0 < r < 60),
    ("TAMIS.REBUILD b COMMIT", FULL), ("TAMIS.INFO b", fields(Rebuild=b"full")),
    # A generation is that of one filter.
    ("TAMIS.GENERATION", Error("ERR wrong number of arguments for 'tamis.generation' command")),
    ("TAMIS.GENERATION none", 0), ("TAMIS.GENERATION string", 0),
    ("TAMIS.DELIF a 1", Error("ERR wrong number of arguments for 'tamis.delif' command")),
    ("TAMIS.DELIF a x y", BAD_GENERATION), ("TAMIS.DELIF a -1 y", BAD_GENERATION),
    ("TAMIS.DELIF none 1 y", NOT_FOUND),
    ("TAMIS.DELIF a 1 x absent", [-1, -1]), ("TAMIS.CHECK a x", [1]),
    ("TAMIS.MARK a o x", BAD_GENERATION),
    ("TAMIS.MARK a o 1", starts("NOGENERATION ")), ("TAMIS.INFO a", fields(Mark=b"n")),
    ("TAMIS.MARK a o 1 x", Error("ERR wrong number of arguments for 'tamis.mark' command")),
    # A filter without GUARD stays one.
    ("TAMIS.ADD plain x", [1]), ("TAMIS.REBUILD plain START 0.01 100 ID 0", 0),
    ("TAMIS.DEL plain x", [1]), ("TAMIS.REBUILD plain COMMIT ID 0", OK),
    ("TAMIS.INFO plain", fields(Guard=0)),
]


def info(client, key):
    reply = client("TAMIS.INFO", key)
    return dict(zip((name.decode() if isinstance(name, bytes) else str(name) for name in reply[::2]), reply[1::2]))


def refused(client, key, items):
    return client("TAMIS.CHECK", key, *items).count(0)


def guarded(client, key="guard", rows=ROWS):
    """A trusted filter that holds the rows."""
    assert client("TAMIS.RESERVE", key, "0.001", "10000", "GUARD") == "OK"
    assert all(reply >= 0 for reply in client("TAMIS.ADD", key, *rows))
    assert client("TAMIS.TRUST", key) == "OK"


def start(client, key="guard", capacity="10000", *words):
    reply = client("TAMIS.REBUILD", key, "START", "0.001", capacity, *words)
    assert isinstance(reply, int), reply
    return reply


def fill(client, rows=ROWS, key="guard"):
    assert client("TAMIS.REBUILD", key, "ADD", *rows) == len(rows)


def fault(name):
    return ("tamis-fault", name) if name else ()


def shown(rule, name):
    """`rule` answers how many rows were refused."""
    assert rule(()) == 0, name
    assert rule(fault(name)) > 0, f"{name}: no row is refused without the rule"


def rows_come_meanwhile(words):
    """Rows that were committed behind the snapshot are in the new filter by their adds alone."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client)
        start(client)
        assert all(reply >= 0 for reply in client("TAMIS.ADD", "guard", *LATER[:150]))
        fill(client)
        assert all(reply >= 0 for reply in client("TAMIS.ADD", "guard", *LATER[150:]))
        assert refused(client, "guard", ROWS + LATER) == 0
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        assert client("TAMIS.CHECK", "guard", "absent") == [0]
        return refused(client, "guard", ROWS + LATER)


GONE = [f"gone{i}" for i in range(3000)]


def rows_go_meanwhile(words):
    """The snapshot no longer has rows whose erases come after it: they would take others away."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client, rows=ROWS + GONE)
        # Tags that are short enough for one of these to be found for another.
        assert isinstance(client("TAMIS.REBUILD", "guard", "START", "0.3", "400", "SEED", "1"), int)
        fill(client)
        assert client("TAMIS.DEL", "guard", *GONE) == [1] * len(GONE)
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        return refused(client, "guard", ROWS)


def erases_that_come_late(words):
    """The same, but the erases come behind the commit."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client, rows=ROWS + GONE)
        assert isinstance(client("TAMIS.REBUILD", "guard", "START", "0.3", "400", "SEED", "1"), int)
        fill(client)
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        client("TAMIS.DEL", "guard", *GONE)
        return refused(client, "guard", ROWS)


def erases_while_the_clock_is_set(words):
    """The wall clock is set ahead between the commit and the erases that were sent before it."""
    with Server(MODULE, words=("tamis-fault", "clocks", "tamis-running-clock", "1000000", "tamis-wall-clock", "1000000000000",
                               *words)) as server:
        client = server.client()
        found = client("CONFIG", "GET", "*tamis-wall-clock")[0].decode()
        guarded(client, rows=ROWS + GONE)
        assert isinstance(client("TAMIS.REBUILD", "guard", "START", "0.3", "400", "SEED", "1"), int)
        fill(client)
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        assert client("CONFIG", "SET", found, "1000003600000") == "OK"
        client("TAMIS.DEL", "guard", *GONE)
        refusals = refused(client, "guard", ROWS)
        if not words:
            assert client("CONFIG", "SET", found.replace("wall", "running"), "1060000") == "OK"
            assert client("TAMIS.DEL", "guard", ROWS[0]) == [1]
            # A lease goes by that clock, too.
            assert isinstance(client("TAMIS.REBUILD", "guard", "START", "0.3", "400", "LEASE", "9"), int)
            assert client("CONFIG", "SET", found, "2000000000000") == "OK"
            info = client("TAMIS.INFO", "guard")
            assert info[info.index("Rebuild lease") + 1] == 9
        return refusals


def erases_with_a_generation(words):
    """A generation that was read before the row went erases from that filter alone, and at once."""
    if words:  # the erases that find nothing would end the trust
        words = (*words, "tamis-fault", "stray_erases_are_believed")
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client, rows=ROWS + GONE)
        read_before = client("TAMIS.GENERATION", "guard")
        assert read_before > 0 and client("TAMIS.TRUST", "guard") == "OK"
        assert client("TAMIS.GENERATION", "guard") == read_before, "it was trusted already"
        assert isinstance(client("TAMIS.REBUILD", "guard", "START", "0.3", "400", "SEED", "1"), int)
        fill(client)
        assert client("TAMIS.DELIF", "guard", read_before, GONE[0]) == [1]
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        client("TAMIS.DELIF", "guard", read_before, *GONE[1:])
        assert client("TAMIS.MARK", "guard", "m", read_before).startswith("NOGENERATION")
        answer = refused(client, "guard", ROWS)
        read_now = client("TAMIS.GENERATION", "guard")
        assert read_now not in (0, read_before)
        if not words:
            assert client("TAMIS.DELIF", "guard", read_now, ROWS[0]) == [1]
            assert client("TAMIS.MARK", "guard", "m", read_now) == "OK"
        # Its adds may be lost: what is added again makes another one of it.
        assert client("DEBUG", "RELOAD") == "OK"
        assert client("TAMIS.DELIF", "guard", read_now, ROWS[1]) == [-1]
        assert client("TAMIS.DELIF", "guard", client("TAMIS.GENERATION", "guard"), ROWS[1]) == [-1]
        untrusted = client("TAMIS.GENERATION", "guard")
        assert client("TAMIS.TRUST", "guard") == "OK"
        assert client("TAMIS.DELIF", "guard", untrusted, *GONE) == [-1] * len(GONE) or words
        return answer


def filter_that_was_full(words):
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client)
        start(client, "guard", "10", "TYPE", "cuckoo")
        assert client("TAMIS.REBUILD", "guard", "ADD", *ROWS) < len(ROWS)
        if client("TAMIS.REBUILD", "guard", "COMMIT") != "OK":
            assert client("TAMIS.REBUILD", "guard", "COMMIT") == FULL
        return refused(client, "guard", ROWS)


def add_that_had_no_place(words):
    """The filter took it, so the application commits the row."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client, rows=ROWS[:1])
        start(client, "guard", "10", "TYPE", "cuckoo")
        fill(client, ROWS[:1])
        assert all(reply >= 0 for reply in client("TAMIS.ADD", "guard", *LATER))
        client("TAMIS.REBUILD", "guard", "COMMIT")
        return refused(client, "guard", ROWS[:1] + LATER)


def two_who_rebuild(words):
    """One stands still; another one aborts, starts anew, and is not done when the first goes on."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client)
        mine = start(client)
        assert client("TAMIS.REBUILD", "guard", "ABORT") == "OK"
        assert start(client) != mine
        fill(client, ROWS[:100])
        client("TAMIS.REBUILD", "guard", "COMMIT", "ID", mine)
        return refused(client, "guard", ROWS)


def lost_end_of_the_data(words):
    """The server dies after it acknowledged adds of a rebuild that no file has yet."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client)
        start(client)
        fill(client, ROWS[:100])
        assert client("SAVE") == "OK"
        fill(client, ROWS[100:])
        server.kill()
        server.start()
        client = server.client()
        assert b"adds may be lost" in client("TAMIS.INFO", "guard") or words
        reply = client("TAMIS.REBUILD", "guard", "COMMIT")
        assert reply == ("OK" if words else LOST), reply
        return refused(client, "guard", ROWS)


def promoted_in_the_middle(words):
    """The replica lacks the last adds of the rebuild."""
    with Server(MODULE, "repl-diskless-sync-delay", "0", words=words) as primary, \
            Server(MODULE, words=words) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()
        guarded(client)
        start(client)
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        fill(client, ROWS[:100])
        replicated(client, reader)
        assert client("CONFIG", "SET", "port", "0") == "OK"
        assert client("CLIENT", "KILL", "TYPE", "replica") == 1
        fill(client, ROWS[100:])
        assert reader("REPLICAOF", "NO", "ONE") == "OK"
        reply = reader("TAMIS.REBUILD", "guard", "COMMIT")
        assert reply == ("OK" if words else LOST), reply
        return refused(reader, "guard", ROWS)


def copies(words):
    """What is added to the one is not in the rebuild of the other."""
    with Server(MODULE, words=words) as server:
        client = server.client()
        guarded(client)
        start(client)
        assert client("COPY", "guard", "copied") == 1
        assert client("RESTORE", "restored", "0", client("DUMP", "guard")) == "OK"
        fill(client)
        assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
        assert refused(client, "guard", ROWS) == 0
        expected = "OK" if words else LOST
        assert client("TAMIS.REBUILD", "restored", "COMMIT") == expected
        assert client("TAMIS.REBUILD", "copied", "COMMIT") == expected
        return refused(client, "copied", ROWS) + refused(client, "restored", ROWS)


def log_that_is_read_again():
    """A log that lacks nothing gives the same filter, trusted, with the commit before or behind the
    rewritten part."""
    for preamble in ("yes", "no"):
        with Server(MODULE, "appendonly", "yes", "aof-use-rdb-preamble", preamble,
                    words=("tamis-trust-after-restart", "yes")) as server:
            client = server.client()
            for first in (True, False):
                if first:
                    guarded(client)
                start(client)
                fill(client, ROWS[:100])
                assert client("DEBUG", "LOADAOF") == "OK"
                rewrite(client)
                fill(client, ROWS[100:])
                assert client("TAMIS.ADD", "guard", *LATER).count(-1) == 0
                assert client("DEBUG", "LOADAOF") == "OK"
                if first:
                    assert refused(client, "guard", ROWS + LATER) == 0
                assert client("TAMIS.REBUILD", "guard", "COMMIT") == "OK"
                digest = client("DEBUG", "DIGEST-VALUE", "guard")
                assert client("DEBUG", "LOADAOF") == "OK"
                assert client("DEBUG", "DIGEST-VALUE", "guard") == digest
                assert refused(client, "guard", ROWS + LATER) == 0
                assert client("TAMIS.CHECK", "guard", "absent") == [0]
                assert client("DEL", "guard") == 1


def replica_holds_the_same():
    with Server(MODULE, "repl-diskless-sync-delay", "0") as primary, \
            Server(MODULE, words=("tamis-trust-on-replicas", "yes")) as other:
        client, reader = primary.client(), other.client()
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        port = client("CONFIG", "GET", "port")[1].decode()

        def same():
            replicated(client, reader)
            assert (client("DEBUG", "DIGEST-VALUE", "guard", "new", "small")
                    == reader("DEBUG", "DIGEST-VALUE", "guard", "new", "small"))

        guarded(client)
        start(client)
        fill(client, ROWS[:100])
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        start(client, "new")
        same()
        mine = info(client, "guard")["Rebuild id"]
        assert client("TAMIS.REBUILD", "guard", "ADDIF", mine, *ROWS[100:]) == len(ROWS) - 100
        assert info(reader, "guard")["Rebuild lease"] == 0, "a replica granted none"
        client("TAMIS.ADD", "guard", *LATER)
        client("TAMIS.DEL", "guard", *LATER[:50])
        fill(client, LATER, "new")
        client("TAMIS.REBUILD", "small", "START", "0.01", "10", "TYPE", "cuckoo")
        assert client("TAMIS.REBUILD", "small", "ADD", *ROWS) < len(ROWS)
        same()
        client("TAMIS.REBUILD", "guard", "COMMIT", "MARK", "m")
        client("TAMIS.REBUILD", "new", "COMMIT")
        client("TAMIS.REBUILD", "small", "ABORT")
        same()
        assert reader("TAMIS.CHECK", "guard", *ROWS, *LATER, "absent") == [1] * 600 + [0]
        assert reader("TAMIS.CHECK", "new", *LATER, "absent") == [1] * 300 + [0]


def main():
    with Server(MODULE) as server:
        print(run(server, REPLIES), "rows, on RESP2 and RESP3")
    shown(rows_come_meanwhile, "adds_to_old_alone")
    shown(rows_go_meanwhile, "erases_from_both")
    shown(filter_that_was_full, "commit_what_was_full")
    shown(add_that_had_no_place, "commit_what_was_full")
    shown(two_who_rebuild, "commit_of_another")
    shown(lost_end_of_the_data, "commit_after_loss")
    shown(promoted_in_the_middle, "commit_after_loss")
    shown(copies, "commit_after_loss")
    shown(erases_with_a_generation, "erases_of_other_generation")
    shown(erases_while_the_clock_is_set, "delay_by_wall_clock")
    assert erases_that_come_late(()) == 0
    assert erases_that_come_late(("tamis-erase-delay", "0")) > 0, "the delay does nothing"
    log_that_is_read_again()
    replica_holds_the_same()


if __name__ == "__main__":
    main()
