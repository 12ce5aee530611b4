#!/usr/bin/env python3
"""What the server shows of the module and its keys: events, INFO, keys of commands, memory, categories.

usage: surroundings_test.py MODULE
"""

import sys

from persistence_test import free_port, replicated
from redis_server import Error, Server

MODULE = sys.argv[1]

EVENTS = [
    ("BF.RESERVE b 0.01 100", ["bf.reserve"]), ("BF.ADD b x", ["bf.add"]), ("BF.ADD b x", []),
    ("BF.MADD new x y", ["bf.reserve", "bf.add"]), ("BF.EXISTS b x", []),
    ("CF.RESERVE c 100", ["cf.reserve"]), ("CF.ADD c x", ["cf.add"]), ("CF.ADDNX c x", []),
    ("CF.DEL c x", ["cf.del"]), ("CF.DEL c x", []), ("CF.COMPACT c", ["cf.compact"]), ("CF.COMPACT c", []),
    ("TAMIS.RESERVE t 0.01 100 GUARD", ["tamis.reserve"]), ("TAMIS.ADD t x", ["tamis.add"]),
    ("TAMIS.DEL t x", []), ("TAMIS.TRUST t", ["tamis.trust"]), ("TAMIS.DEL t x", ["tamis.del"]),
    ("TAMIS.DOUBT t", ["tamis.doubt"]), ("TAMIS.DEL t x", []), ("TAMIS.TRUST t", ["tamis.trust"]),
    ("TAMIS.MARK t m", ["tamis.mark"]), ("TAMIS.MARK t m", []), ("TAMIS.CHECK t x", []),
    ("TAMIS.UNION u t", ["tamis.union"]), ("TAMIS.REBUILD t START 0.01 100", ["tamis.rebuild.start"]),
    ("TAMIS.REBUILD t ADD x", ["tamis.rebuild.add"]), ("TAMIS.REBUILD t COMMIT", ["tamis.rebuild.commit"]),
    ("TAMIS.REBUILD t COMMIT", []), ("TAMIS.REBUILD t START 0.01 100", ["tamis.rebuild.start"]),
    ("TAMIS.REBUILD t ABORT", ["tamis.rebuild.abort"]),
]

KEYS = [("BF.MADD a x y", [b"a"]), ("CF.INSERT a ITEMS x", [b"a"]), ("TAMIS.UNION a b c", [b"a", b"b", b"c"]),
        ("TAMIS.REBUILD a START 0.01 100", [b"a"]), ("TAMIS.CHECK a x", [b"a"])]

TYPES = ("blocked-quotient", "blocked", "cuckoo", "quotient", "d-left", "blocked-counting", "projected", "counting",
         "dynamic-count", "split-counting", "scalable", "scalable-bloom", "bloom")


def fields(client, section):
    lines = client("INFO", section).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def events(server):
    client, listener = server.client(), server.client()
    assert client("CONFIG", "SET", "notify-keyspace-events", "Ed") == "OK"
    assert listener("PSUBSCRIBE", "__keyevent@0__:*")[0] == b"psubscribe"
    for number, (command, expected) in enumerate(EVENTS):
        reply = client(*command.split())
        assert not isinstance(reply, Error) or not expected, (command, reply)
        client("BF.ADD", f"end{number}", "x")  # behind it everything has come
        got = []
        while True:
            _, _, channel, key = listener.read()
            if key == b"end%d" % number:
                if channel.endswith(b"bf.add"):
                    break
                continue
            got.append(channel.split(b":", 1)[1].decode())
        assert got == expected, (command, got)


def counters(client):
    assert client("FLUSHALL") == "OK"
    before = fields(client, "bf_filters")
    assert client("TAMIS.RESERVE", "t", "0.001", "100", "GUARD") == "OK"
    client("TAMIS.ADD", "t", "x")
    client("TAMIS.CHECK", "t", "x", "y")
    client("TAMIS.DEL", "t", "x")
    client("TAMIS.TRUST", "t")
    client("TAMIS.CHECK", "t", "x", "y", "z")
    after = fields(client, "bf_filters")
    changed = {name[3:]: int(after[name]) - int(before[name]) for name in after}
    assert changed == {"checks_perhaps": 1, "checks_absent": 2, "checks_unknown": 2, "adds_refused": 0,
                       "commands_lost": 0, "erases_skipped": 1, "rebuilds_started": 0,
                       "rebuilds_committed": 0, "freed_in_background": 0, "waiting_to_be_freed": 0}, changed


def wait_until_freed(client):
    while int(fields(client, "bf_filters")["bf_waiting_to_be_freed"]) > 0:
        pass


def freeing():
    """Whatever takes a large filter away, another thread gives its memory back: one of the module's, or one of the server's
    where the server frees such keys in the background by itself (newer ones do so for more commands). While keys are evicted
    the server's main thread does, since it evicts until it has seen enough come back."""
    makes = [("TAMIS.RESERVE", "some", "0.003", "5000000"), ("BF.RESERVE", "some", "0.003", "5000000"),
             ("CF.RESERVE", "some", "5000000")]
    ways = [("DEL", "some"), ("FLUSHDB", "SYNC"), ("FLUSHALL", "SYNC"), ("SET", "some", "x"), ("RENAME", "other", "some"),
            ("PEXPIRE", "some", "0")]
    with Server(MODULE) as server:
        client = server.client()

        def freed():
            return int(fields(client, "bf_filters")["bf_freed_in_background"])

        def freed_by_server():
            while int(fields(client, "memory")["lazyfree_pending_objects"]) > 0:
                pass
            return int(fields(client, "memory")["lazyfreed_objects"])
        for make in makes:
            for way in ways:
                client("FLUSHALL")
                client("SET", "other", "x")
                before, before_by_server = freed(), freed_by_server()
                assert client(*make) == "OK"
                client(*way)
                by_module = freed() - before
                assert by_module == 1 or by_module == 0 and freed_by_server() > before_by_server, (make, way)
                wait_until_freed(client)
        # A thread of the server's own frees it by itself.
        before = freed()
        assert client("BF.RESERVE", "some", "0.003", "5000000") == "OK"
        assert client("UNLINK", "some") == 1
        while int(fields(client, "memory")["lazyfree_pending_objects"]) > 0:
            pass
        assert freed() == before
        client("FLUSHALL")
        assert client("BF.RESERVE", "small", "0.003", "1000") == "OK"
        before = freed()
        assert client("DEL", "small") == 1
        assert freed() == before, "it takes longer to tell the other thread"
        for i in range(10):
            assert client("BF.RESERVE", f"large{i}", "0.003", "5000000") == "OK"
        wait_until_freed(client)
        before = freed()
        # Evicted in the background, keys beyond those needed go before the memory of the first is seen to come back.
        assert client("CONFIG", "SET", "lazyfree-lazy-eviction", "no") == "OK"
        assert client("CONFIG", "SET", "maxmemory-policy", "allkeys-random") == "OK"
        used = int(fields(client, "memory")["used_memory"])
        one = client("MEMORY", "USAGE", "large0")
        assert client("CONFIG", "SET", "maxmemory", str(used - 2 * one - one // 2)) == "OK"
        assert client("PING") == "PONG"
        evicted = int(fields(client, "stats")["evicted_keys"])
        assert evicted == 3, evicted
        assert freed() == before


def memory(client):
    """maxmemory knows of it at once; an empty one touches no page, however large."""
    assert client("CONFIG", "SET", "lazyfree-lazy-user-del", "no") == "OK"
    for name in TYPES:
        before = fields(client, "memory")
        assert client("TAMIS.RESERVE", "large", "0.003", "30000000", "TYPE", name) == "OK"
        after = fields(client, "memory")
        said = client("MEMORY", "USAGE", "large")
        grown = int(after["used_memory"]) - int(before["used_memory"])
        assert 0.9 * said < grown < 1.2 * said, (name, said, grown)
        assert said > 30_000_000, (name, said)
        resident = int(after["used_memory_rss"]) - int(before["used_memory_rss"])
        assert resident < said / 4, (name, "pages were touched", resident, said)
        assert client("DEL", "large") == 1  # before the next one
        wait_until_freed(client)


def usage(client):
    """MEMORY USAGE is what used_memory grows by, nearly: of a filter of several arrays the sum is rounded to a size class,
    and each array has one of its own."""
    def used():
        return int(fields(client, "memory")["used_memory"])
    for capacity in (700_000, 1_300_000, 2_100_000, 4_500_000):
        for name in TYPES:
            before = used()
            assert client("TAMIS.RESERVE", "some", "0.003", str(capacity), "TYPE", name) == "OK"
            grown, said = used() - before, client("MEMORY", "USAGE", "some")
            assert 0.9 * grown < said < 1.27 * grown, (name, capacity, said, grown)
            foretold = client("TAMIS.SIZE", "0.003", str(capacity), "TYPE", name)[3]
            assert 0.79 * grown < foretold < 1.27 * grown, (name, capacity, foretold, grown)
            assert client("DEL", "some") == 1
            wait_until_freed(client)
        for make in (["BF.RESERVE", "some", "0.003", str(capacity)], ["CF.RESERVE", "some", str(capacity)]):
            before = used()
            assert client(*make) == "OK"
            grown, said = used() - before, client("MEMORY", "USAGE", "some")
            assert 0.95 * grown < said < 1.05 * grown, (make, said, grown)
            assert client("DEL", "some") == 1
            wait_until_freed(client)


def first_touch(server, client):
    """Items that are added to a large new filter clear a small page each, and not one of 2 MB."""
    def faults():
        with open(f"/proc/{server.process.pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[7])

    items = 1000
    for reserve, add, places in (("BF.RESERVE large 0.01 100000000 NONSCALING", "BF.MADD large", 7),
                                 ("CF.RESERVE large 100000000", "CF.INSERT large ITEMS", 1),
                                 ("TAMIS.RESERVE large 0.01 100000000 TYPE bloom", "TAMIS.ADD large", 7),
                                 ("TAMIS.RESERVE large 0.01 100000000", "TAMIS.ADD large", 1)):
        assert client(*reserve.split()) == "OK"
        before = faults()
        assert client(*add.split(), *range(items)).count(1) > 0.9 * items
        # With huge pages there would be less than a hundred. Some may have been joined meanwhile.
        assert faults() - before > items * places / 2, (reserve, faults() - before)
        client("UNLINK", "large")


def copied_bytes():
    """Who asks is told that a filter is too large to be copied; a replica does what was done."""
    too_large = Error("ERR greater than tamis-max-copied-bytes: the server would stop answering while it is copied")
    limit = ("tamis-max-copied-bytes", "3200")
    port = free_port()
    with Server(MODULE, port=port) as server, Server(MODULE, words=limit) as other:
        client, reader = server.client(), other.client()
        parts = {}
        for makes in (client, reader):
            makes("BF.RESERVE", "BF", "0.01", "10000")
            makes("CF.RESERVE", "CF", "10000")
            makes("TAMIS.RESERVE", "TAMIS", "0.01", "10000", "SEED", "1")
            assert makes("TAMIS.RESERVE", "small", "0.01", "1000", "SEED", "1") == "OK"
        for key in ("BF", "CF", "TAMIS"):
            assert isinstance(reader("COPY", key, "copy"), Error), key
        for words in (("TAMIS.UNION", "u", "BF"), ("TAMIS.UNION", "u", "TAMIS"), ("TAMIS.SCANDUMP", "TAMIS", "0"),
                      ("TAMIS.LOADCHUNK", "loaded", "0", client("TAMIS.SCANDUMP", "TAMIS", "0")[1])):
            assert reader(*words) == too_large, words
        assert reader("TAMIS.UNION", "small", "TAMIS", "small") == too_large
        assert reader("TAMIS.RESERVE", "dynamic", "0.01", "1000", "TYPE", "dynamic-count").startswith("ERR could not")
        # A dump that was begun and not ended does not count.
        for words in (("COPY", "small", "copy"), ("TAMIS.UNION", "u", "small"), *[("TAMIS.SCANDUMP", "small", "0")] * 2):
            assert not isinstance(reader(*words), Error), words
        assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
        replicated(client, reader)
        for key in ("BF", "CF", "TAMIS"):
            assert client("COPY", key, "copy-of-" + key) == 1
        for key in ("BF", "TAMIS"):
            assert client("TAMIS.UNION", "union-of-" + key, key) == "OK"
        at = 0
        while parts.setdefault(at, client("TAMIS.SCANDUMP", "TAMIS", at))[0] != 0:
            assert client("TAMIS.LOADCHUNK", "loaded", at, parts[at][1]) == "OK"
            at = parts[at][0]
        assert client("TAMIS.RESERVE", "dynamic", "0.01", "1000", "TYPE", "dynamic-count") == "OK"
        replicated(client, reader)
        keys = sorted(client("KEYS", "*"))
        assert len(keys) == 12 and sorted(reader("KEYS", "*")) == keys, keys
        assert client("DEBUG", "DIGEST-VALUE", *keys) == reader("DEBUG", "DIGEST-VALUE", *keys)


def categories(client):
    """Where modules may name them."""
    def members(category):
        return client("ACL", "CAT", category)

    if isinstance(members("bloom"), Error):
        return
    for category, prefix in (("bloom", b"bf."), ("cuckoo", b"cf."), ("tamis", b"tamis.")):
        listed = members(category)
        assert listed and all(name.lower().startswith(prefix) for name in listed), listed
        assert set(listed) <= set(members("read")) | set(members("write"))
    assert b"tamis.check" in members("read") and b"tamis.add" in members("write")


def defragmentation(client):
    """Arrays that the allocator moves, where it can: what was added is there, meanwhile and afterwards."""
    client("FLUSHALL")
    if isinstance(client("CONFIG", "SET", "activedefrag", "yes"), Error):
        return  # Debian's server has the system's allocator
    items = [str(i) for i in range(400)]  # a few links and tables
    for i in range(600):
        client("BF.MADD", f"BF{i}", *items)
        client("CF.INSERT", f"CF{i}", "CAPACITY", "64", "ITEMS", *items)
        client("TAMIS.RESERVE", f"TAMIS{i}", "0.01", "1000")
        client("TAMIS.ADD", f"TAMIS{i}", *items)
    kept = [f"{kind}{i}" for kind in ("BF", "CF", "TAMIS") for i in range(0, 600, 2)]
    before = client("DEBUG", "DIGEST-VALUE", *kept)
    for i in range(1, 600, 2):
        client("DEL", f"BF{i}", f"CF{i}", f"TAMIS{i}")
    for name, value in (("ignore-bytes", "1"), ("threshold-lower", "0"), ("cycle-min", "50"), ("cycle-max", "75")):
        assert client("CONFIG", "SET", "active-defrag-" + name, value) == "OK"
    hits = int(fields(client, "stats")["active_defrag_hits"])
    while int(fields(client, "stats")["active_defrag_hits"]) < hits + 500:
        for key in kept[::50]:
            assert client("TAMIS.CHECK", key, *items) == [1] * len(items), key
    assert client("DEBUG", "DIGEST-VALUE", *kept) == before
    for key in kept:
        assert client("TAMIS.CHECK", key, *items) == [1] * len(items), key
    assert client("DEBUG", "RELOAD") == "OK"
    assert client("DEBUG", "DIGEST-VALUE", *kept) == before


def main():
    with Server(MODULE, words=("tamis-max-copied-bytes", "0")) as server:
        client = server.client()
        events(server)
        counters(client)
        for command, expected in KEYS:
            assert client("COMMAND", "GETKEYS", *command.split()) == expected, command
        assert isinstance(client("COMMAND", "GETKEYS", "TAMIS.SIZE", "0.01", "100"), Error)
        memory(client)
        usage(client)
        first_touch(server, client)
        categories(client)
        defragmentation(client)
    copied_bytes()
    freeing()


if __name__ == "__main__":
    main()
