#!/usr/bin/env python3
"""What was added is there after RDB, AOF, replication, DUMP, COPY, chunks and restarts.

usage: persistence_test.py MODULE
"""

import random
import sys

from kinds import KINDS, check_members, digests, dump, fill
from rdb_value import BLOOM, D, S, U, payload
from redis_server import Error, Server

MODULE = sys.argv[1]


def filled(server, seed=1):
    client = server.client()
    members = {}
    for kind in KINDS.values():
        members[kind] = fill(kind, client, seed=seed)
    return client, members


def check(client, members, expected):
    keys = [key for of_kind in members.values() for key in of_kind]
    got = digests(client, keys)
    assert got == expected, "digests differ"
    for kind, of_kind in members.items():
        check_members(kind, client, of_kind)


def digests_of(client, members):
    return digests(client, [key for of_kind in members.values() for key in of_kind])


def reload_and_restart():
    with Server(MODULE) as server:
        client, members = filled(server)
        before = digests_of(client, members)
        assert client("DEBUG", "RELOAD") == "OK"
        check(client, members, before)
        client.close()
        server.shutdown("SAVE")
        server.start()
        client = server.client()
        check(client, members, before)


def aof(preamble):
    """Log, rewritten log, both loaded; and what comes behind the rewritten part."""
    with Server(MODULE, "appendonly", "yes", "aof-use-rdb-preamble", preamble,
                "appendfsync", "always") as server:
        client, members = filled(server)
        before = digests_of(client, members)
        assert client("DEBUG", "LOADAOF") == "OK"
        check(client, members, before)
        rewrite(client)
        assert client("DEBUG", "LOADAOF") == "OK"
        check(client, members, before)
        for kind, of_kind in members.items():
            for key in of_kind:
                items = [f"later{i}" for i in range(50)]
                replies = client.pipeline((kind.add, key, item) for item in items)
                # -1 of a full one
                of_kind[key].update(item for item, r in zip(items, replies) if r != [-1])
        before = digests_of(client, members)
        server.kill()
        server.start()
        client = server.client()
        check(client, members, before)


def rewrite(client):
    client("BGREWRITEAOF")
    while True:
        info = dict(line.split(":", 1) for line in client("INFO", "persistence").decode().split("\r\n")
                    if ":" in line)
        if info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0":
            assert info["aof_last_bgrewrite_status"] == "ok", info
            return


def replica(diskless):
    """A replica of other settings holds the same, whether by its first copy or by commands."""
    with Server(MODULE, "repl-diskless-sync-delay", "0", "repl-diskless-sync", diskless) as primary:
        client, members = filled(primary)
        rng = random.Random(4)
        words = ("bf-error-rate", "0.2", "bf-initial-size", "7", "bf-expansion-factor", "5",
                 "cf-bucket-size", "3", "cf-initial-size", "50", "cf-max-iterations", "3",
                 "cf-expansion-factor", "4", "cf-max-expansions", "1", "tamis-max-bytes", "1",
                 "tamis-auto-create", "no", "tamis-erase-delay", "0")
        with Server(MODULE, "replicaof", "no one", words=words) as other:
            reader = other.client()
            # Replication goes over TCP; the port is the system's choice.
            assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
            port = client("CONFIG", "GET", "port")[1].decode()
            assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
            replicated(client, reader)
            check(reader, members, digests_of(client, members))
            # Adds and erases go where they go on the primary, though it was not filled there.
            for kind, of_kind in members.items():
                for key, counts in of_kind.items():
                    for _ in range(4):
                        kind.change(rng, client, key, counts, 200)
            replicated(client, reader)
            check(reader, members, digests_of(client, members))
            more = {}
            for kind in KINDS.values():
                client("DEL", *members[kind])
                more[kind] = fill(kind, client, seed=2)
            replicated(client, reader)
            check(reader, more, digests_of(client, more))


def linked(reader):
    """Until the replica has had its first copy, and hears what comes behind it."""
    while b"master_link_status:up" not in reader("INFO", "replication"):
        pass


def replicated(client, reader):
    """Until the replica has everything that the primary has."""
    linked(reader)
    client("SET", "marker", "x")  # WAIT waits for the last write of its own connection
    while client("WAIT", "1", "1000") < 1:
        pass


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def replicates_what_changed_alone():
    with Server(MODULE) as server:
        client = server.client()
        for kind in KINDS.values():
            assert kind.replicated, kind
            for command, expected in kind.replicated:
                before = offset(client)
                client(*command.split())
                changed = offset(client) != before
                assert changed == expected, f"{command}: replicated {changed}"


def offset(client):
    for line in client("INFO", "persistence").decode().split("\r\n"):
        if line.startswith("rdb_changes_since_last_save:"):
            return int(line.split(":")[1])
    raise AssertionError("no counter of changes")


def dump_and_restore():
    with Server(MODULE) as server:
        client, members = filled(server)
        for kind, of_kind in members.items():
            for key in of_kind:
                payload = client("DUMP", key)
                assert client("RESTORE", "restored", "0", payload) == "OK"
                assert digests(client, [key]) == digests(client, ["restored"])
                assert client("COPY", key, "copied") == 1
                assert digests(client, [key]) == digests(client, ["copied"])
                client("DEL", "restored")
                assert client("UNLINK", "copied") == 1


def chunks():
    with Server(MODULE) as server:
        client, members = filled(server)
        for kind in KINDS.values():
            of_kind = members[kind]
            for key in of_kind:
                for at, data in dump(kind, client, key):
                    assert client(kind.load, "loaded", str(at), data) == "OK"
                if client("EXISTS", "loaded"):
                    assert digests(client, [key]) == digests(client, ["loaded"]), key
                client("DEL", "loaded")


def half_loaded_stays_half_loaded():
    """Through reload, log, rewritten log and copy: it may contain everything until it is whole."""
    for preamble in ("yes", "no"):
        with Server(MODULE, "appendonly", "yes", "aof-use-rdb-preamble", preamble) as server:
            client, members = filled(server)
            for kind in KINDS.values():
                key = f"{kind.name}4"
                parts = dump(kind, client, key)
                assert len(parts) > 2, "a filter of several links"
                for count in {1, 2, len(parts) // 2, len(parts) - 1}:
                    half = f"half{count}"
                    for at, data in parts[:count]:
                        assert client(kind.load, half, str(at), data) == "OK"

                    def absent_is_perhaps():
                        assert (client(kind.exists, half, "absent", "never")
                                == [kind.perhaps] * 2)
                        assert isinstance(client(kind.scan, half, "0"), Error)

                    absent_is_perhaps()
                    assert client("DEBUG", "RELOAD") == "OK"
                    absent_is_perhaps()
                    assert client("DEBUG", "LOADAOF") == "OK"
                    absent_is_perhaps()
                    rewrite(client)
                    assert client("DEBUG", "LOADAOF") == "OK"
                    absent_is_perhaps()
                    # It does not leave the server as if it were whole.
                    reply = client("RESTORE", "other", "0", client("DUMP", half))
                    if reply == "OK":
                        assert client("TAMIS.CHECK", "other", "absent") == [-1]
                        client("DEL", "other")
                    else:
                        assert "Bad data format" in reply
                    for at, data in parts[count:]:
                        assert client(kind.load, half, str(at), data) == "OK"
                    assert digests(client, [key]) == digests(client, [half])
                    client("DEL", half)


def old_encodings():
    """What RedisBloom 1.0 to 2.2 saved: each encoding with the bits that a later version of it, which
    reads them, sets for the same item."""
    def value(encoding, size, options, bits):
        fields = [U(0), U(1)]
        fields += [U(options)] if encoding >= 2 else []
        fields += [U(2)] if encoding >= 4 else []
        fields += [U(75), D(0.05), U(5), D(6.5)]
        fields += [U(bits), U(0)] if encoding >= 1 else []
        return payload(BLOOM[:-1] + bytes([encoding]), fields + [S(bytes(size)), U(0)])

    cases = [(0, 61, 0, 487, [29, 54, 260, 285, 310])]
    for encoding in (1, 2, 3, 4):
        cases += [(encoding, 64, 0, 512, [30, 142, 230, 342, 454]),
                  (encoding, 72, 0, 576, [86, 270, 294, 454, 478])]
    for encoding in (2, 3, 4):
        cases += [(encoding, 64, 4, 512, [95, 139, 256, 373, 490]),
                  (encoding, 72, 4, 576, [53, 256, 331, 351, 426])]
    with Server(MODULE) as server:
        client = server.client()
        for encoding, size, options, bits, expected in cases:
            case = (encoding, size, options)
            assert client("RESTORE", "old", "0", value(*case, bits), "REPLACE") == "OK", case
            assert client("BF.ADD", "old", "item1") == 1
            data = client("BF.SCANDUMP", "old", "1")[1]
            assert [i for i in range(8 * size) if data[i >> 3] >> (i & 7) & 1] == expected, case
            width = b"hashwidth:%d " % (64 if options else 32)
            assert width in client("BF.DEBUG", "old")[1]
            # It grows, and is saved as those of today.
            client("BF.MADD", "old", *range(500))
            assert client("BF.MEXISTS", "old", "item1", *range(500)) == [1] * 501
            assert client("RESTORE", "again", "0", client("DUMP", "old"), "REPLACE") == "OK"
            for at, chunk in dump(KINDS["BF"], client, "old"):
                assert client("BF.LOADCHUNK", "loaded", str(at), chunk) == "OK"
            assert len(set(digests(client, ["old", "again", "loaded"]))) == 1, case
            assert client("DEL", "loaded") == 1
        # A byte less or more than the bits need.
        for wrong in (60, 62):
            assert "Bad data" in client("RESTORE", "bad", "0", value(0, wrong, 0, 487))


def main():
    old_encodings()
    reload_and_restart()
    aof("yes")
    aof("no")
    replica("yes")
    replica("no")
    replicates_what_changed_alone()
    dump_and_restore()
    chunks()
    half_loaded_stays_half_loaded()


if __name__ == "__main__":
    main()
