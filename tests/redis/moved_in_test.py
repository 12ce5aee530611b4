#!/usr/bin/env python3
"""What comes from a server with RedisBloom by its log or as its replica is the same filter here, whatever words and
limits that server has; what cannot be done is counted.

Without REDISBLOOM the log is written here, and what the filters must be was read off RedisBloom 2.8.2.
usage: moved_in_test.py MODULE [REDISBLOOM [SEED]]
"""

import os
import random
import shutil
import sys

from persistence_test import free_port
from redis_server import Error, Server, pack

ITEMS = [f"i{i}" for i in range(700)]


def bloom(*links):
    return [f"size:{sum(link[3] for link in links)}".encode()] + [
        f"bytes:{bits // 8} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{size} ratio:{rate}".encode()
        for bits, hashes, capacity, size, rate in links]


def cuckoo(bucket_size, buckets, expansion=1):
    return f"bktsize:{bucket_size} buckets:{buckets} items:0 deletes:0 filters:1 max_iterations:20 expansion:{expansion}".encode()


# Commands of that server, and the output of *.DEBUG there when the 700 items had been added.
THERE = [
    ("BF.RESERVE k 0.5 100 NONSCALING", bloom((192, 2, 100, 100, 0.5))),
    ("BF.RESERVE k 0.26 100 NONSCALING", bloom((320, 2, 100, 100, 0.26))),
    ("BF.RESERVE k 0.99 1000 NONSCALING", bloom((64, 1, 1000, 64, 0.99))),
    ("BF.RESERVE k 0.3 100", bloom((448, 3, 100, 100, 0.15), (1088, 4, 200, 200, 0.075), (2752, 5, 400, 297, 0.0375))),
    ("BF.RESERVE k 0.9 100", bloom((192, 2, 100, 100, 0.45), (640, 3, 200, 199, 0.225))),
    ("BF.RESERVE k 0.6 100 EXPANSION 4", bloom((256, 2, 100, 100, 0.3), (1600, 3, 400, 344, 0.15))),
    *((f"BF.RESERVE k 0.01 100 {words}", bloom((1152, 8, 100, 100, 0.005), (2496, 9, 200, 200, 0.0025),
                                               (5568, 10, 400, 395, 0.00125)))
      for words in ("NOSCALING", "FOO BAR", "A B C", "EXPANSION 4294967298")),  # 32 bits of it are kept there
    *((f"BF.RESERVE k 0.01 100 {words}", bloom((1152, 8, 100, 100, 0.005), (3776, 9, 300, 300, 0.0025),
                                               (12544, 10, 900, 296, 0.00125))) for words in ("EXPANSION 3 FOO", "FOO EXPANSION 3")),
    *((f"BF.RESERVE k 0.01 100 {words}", bloom((960, 7, 100, 100, 0.01))) for words in ("FOO NONSCALING", "NONSCALING FOO")),
    ("BF.RESERVE k 0.01 100 EXPANSION 40000", bloom((1152, 8, 100, 100, 0.005), (49881856, 9, 4000000, 596, 0.0025))),
    ("BF.INSERT k NONSCALING EXPANSION 2 ITEMS i0", bloom((960, 7, 100, 100, 0.01))),
    ("BF.INSERT k ERROR 0.5 NONSCALING ITEMS i0", bloom((192, 2, 100, 100, 0.5))),
]
CUCKOOS = [
    ("CF.RESERVE k 100 FOO BAR", cuckoo(2, 64)), ("CF.RESERVE k 100 BUCKETSIZE 4 FOO BAR", cuckoo(4, 32)),
    ("CF.RESERVE k 100 FOO BUCKETSIZE 4 BAR", cuckoo(4, 32)), ("CF.RESERVE k 100 A B C D E F G H", cuckoo(2, 64)),
    ("CF.RESERVE k 100 BUCKETSIZE 2 BUCKETSIZE 4", cuckoo(2, 64)),
]
# Commands of no known server, and whether items are missing after them.
STRANGE = [("BF.RESERVE k 0.01 100 EXPANSION 4294967296", False), ("BF.INSERT k EXPANSION 4294967296 ITEMS a", True),
           ("CF.RESERVE k 100 BUCKETSIZE 300", False),
           ("CF.RESERVE k 100 BUCKETSIZE", False), ("BF.INSERT k FOO ITEMS a", True), ("CF.INSERT k FOO ITEMS a", True)]


def lost(client):
    return int(next(line for line in client("INFO", "everything").decode().split("\r\n") if "commands_lost" in line).split(":")[1])


class Loading:
    """A server that reads logs written here."""

    def __init__(self):
        self.server = Server(sys.argv[1], "appendonly", "no")

    def __call__(self, commands):
        server = self.server
        server.kill()
        shutil.rmtree(os.path.join(server.directory, "appendonlydir"), ignore_errors=True)
        with open(os.path.join(server.directory, "appendonly.aof"), "wb") as log:
            log.write(b"".join(pack(words) for words in commands))
        server.options[server.options.index("appendonly") + 1] = "yes"
        server.start()
        return server.client()


def written_logs():
    load = Loading()
    with load.server:
        for text, debug in THERE:
            # The log of that server holds the items that a full filter refused, too.
            client = load([text.split(), *(["BF.MADD", "k", item] for item in ITEMS)])
            assert client("BF.DEBUG", "k") == debug, (text, debug, client("BF.DEBUG", "k"))
            assert lost(client) == 0, text
            client("DEL", "k")
            if "BF.RESERVE" in text and any(word in text for word in ("FOO", "NOSCALING", "A B", "40000", "4294967298")):
                assert isinstance(client(*text.split()), Error), text
        for text, debug in CUCKOOS:
            client = load([text.split()])
            assert client("CF.DEBUG", "k") == debug and lost(client) == 0, (text, client("CF.DEBUG", "k"))
        # Options of a filter that is there are ignored.
        client = load(["BF.RESERVE k 0.01 100".split(), f"BF.INSERT k EXPANSION {2**63 - 1} CAPACITY {2**60} ITEMS a".split(),
                       "BF.INSERT k EXPANSION 4294967296 ITEMS b".split()])
        assert client("BF.MEXISTS", "k", "a", "b", "c") == [1, 1, 0] and lost(client) == 0
        for text, items in STRANGE:
            client = load([text.split(), ["BF.ADD", "other", "x"]])
            assert lost(client) == 1, text
            assert client("TAMIS.CHECK", "other", "x", "y") == ([-1, -1] if items else [1, 0]), text
    print(len(THERE) + len(CUCKOOS) + len(STRANGE), "logs read")


def random_words(rng):
    """A command that makes a filter, as a client of that server may send it."""
    rate = rng.choice([0.001, 0.01, 0.2, 0.25, 0.251, 0.3, 0.5, 0.7, 0.9, 0.99])
    capacity = rng.choice([1, 2, 7, 100, 250, 1000])
    other = lambda: rng.choice([[], [], ["FOO"], ["NOSCALING"]])
    if rng.random() < 0.3:
        words = [rng.choice(["FOO", "BUCKETSIZE", "MAXITERATIONS", "EXPANSION"]) for _ in range(rng.randrange(4))]
        pairs = sum(([word, str(rng.choice([1, 2, 3, 4]))] for word in words), [])
        return ["CF.RESERVE", "k", str(max(capacity, 8)), *pairs]
    scale = rng.choice([[], ["NONSCALING"], ["EXPANSION", str(rng.choice([1, 2, 3, 4, 5]))]])
    if rng.random() < 0.3:
        return ["BF.INSERT", "k", "CAPACITY", str(capacity), "ERROR", str(rate), *scale, "ITEMS", "first", "second"]
    return ["BF.RESERVE", "k", str(rate), str(capacity), *other(), *scale, *other()][:7]


def both(redisbloom, seed):
    """The same filters, byte by byte, behind a log and on a replica."""
    rng = random.Random(seed)
    print("seed", seed)
    options = ("appendonly", "yes", "appendfsync", "always", "aof-use-rdb-preamble", "no")
    with Server(redisbloom, *options, port=free_port()) as theirs, Server(sys.argv[1]) as replica:
        client, reader = theirs.client(), replica.client()
        reader("REPLICAOF", "127.0.0.1", client("CONFIG", "GET", "port")[1])
        while b"master_link_status:up" not in reader("INFO", "replication"):
            pass
        keys = {}
        for i in range(160):
            key, words = f"k{i}", random_words(rng)
            words[1] = key
            made = client(*words)
            if isinstance(made, Error):
                continue
            items = [str(rng.randrange(2000)) for _ in range(rng.choice([10, 300, 900]))]
            if words[0].startswith("BF"):
                answers = client("BF.MADD", key, *items)
                taken = [item for item, answer in zip(items, answers) if not isinstance(answer, Error)]
                keys[key] = (words, "BF.MEXISTS", taken)
            else:
                taken = [item for item in items if client("CF.ADD", key, item) == 1]
                keys[key] = (words, "CF.MEXISTS", taken)
        dumps = {key: client("DUMP", key)[:-10] for key in keys}
        assert client("WAIT", "1", "60000") == 1
        keys = {key: made for key, made in keys.items() if made[2]}
        for key, (words, exists, taken) in keys.items():
            assert 0 not in reader(exists, key, *taken), (words, "an item that was taken is refused")
            assert reader("DUMP", key)[:-10] == dumps[key], (words, "other bytes on the replica")
        assert lost(reader) == 0
        theirs.kill()
        load = Loading()
        with load.server:
            log_directory = os.path.join(theirs.directory, "appendonlydir")
            load.server.kill()
            shutil.copytree(log_directory, os.path.join(load.server.directory, "appendonlydir"))
            load.server.options[load.server.options.index("appendonly") + 1] = "yes"
            load.server.start()
            ours = load.server.client()
            for key, (words, exists, taken) in keys.items():
                assert 0 not in ours(exists, key, *taken), (words, "an item that was taken is refused")
                assert ours("DUMP", key)[:-10] == dumps[key], (words, "other bytes behind the log")
            assert lost(ours) == 0
        print(len(keys), "filters are the same")


def main():
    written_logs()
    if len(sys.argv) > 2:
        seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
        both(sys.argv[2], seed)


if __name__ == "__main__":
    main()
