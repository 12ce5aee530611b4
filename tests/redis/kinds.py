"""The compatible filters as the tests that are the same for all of them see them."""

import random
from collections import Counter

from redis_server import Error


class Bloom:
    name, type, reserve = "BF", "MBbloom--", "BF.RESERVE {} 0.01 {}"
    add, exists, scan, load = "BF.ADD", "BF.MEXISTS", "BF.SCANDUMP", "BF.LOADCHUNK"
    end = b""
    perhaps = 1  # of what is half loaded
    # Command, and whether it changes anything.
    replicated = [("BF.RESERVE r 0.1 10", True), ("BF.RESERVE r 0.1 10", False), ("BF.ADD r x", True),
                  ("BF.ADD r x", False), ("BF.MADD r x x", False), ("BF.MADD r x y", True),
                  ("BF.INSERT r NOCREATE ITEMS x", False), ("BF.INSERT r ITEMS z", True),
                  ("BF.INSERT none NOCREATE ITEMS x", False), ("BF.EXISTS r x", False),
                  ("BF.SCANDUMP r 0", False), ("BF.LOADCHUNK r 1 x", False)]

    @staticmethod
    def change(rng, client, key, members, count):
        """Random changes; `members` counts what must be found."""
        items = [str(rng.randrange(3 * count)) for _ in range(count)]
        reply = client("BF.MADD", key, *items)
        assert len(reply) == len(items) and not any(isinstance(x, Error) for x in reply), reply
        members.update(items)


class Cuckoo:
    name, type, reserve = "CF", "MBbloomCF", "CF.RESERVE {} {} EXPANSION 2"
    add, exists, scan, load = "CF.ADD", "CF.MEXISTS", "CF.SCANDUMP", "CF.LOADCHUNK"
    end = None
    perhaps = 1
    replicated = [("CF.RESERVE s 10", True), ("CF.RESERVE s 10", False), ("CF.ADD s x", True),
                  ("CF.ADD s x", True), ("CF.ADDNX s x", False), ("CF.INSERTNX s ITEMS x", False),
                  ("CF.INSERTNX s ITEMS x y", True), ("CF.INSERT s NOCREATE ITEMS x", True),
                  ("CF.INSERT none NOCREATE ITEMS x", False), ("CF.EXISTS s x", False),
                  ("CF.DEL s x", True), ("CF.DEL s absent", False), ("CF.COMPACT s", True),
                  ("CF.COMPACT s", False), ("CF.COMPACT s 0", False), ("CF.COMPACT s x", False),
                  ("CF.SCANDUMP s 0", False), ("CF.LOADCHUNK s 1 x", False),
                  ("CF.LOADCHUNK s 100000 x", False)]

    @staticmethod
    def change(rng, client, key, members, count):
        """Some are added, some of those that are there erased."""
        items = [str(rng.randrange(3 * count)) for _ in range(count)]
        reply = client("CF.INSERT", key, "ITEMS", *items)
        for item, added in zip(items, reply):
            members[item] += added == 1
        there = [item for item, n in members.items() if n > 0]
        erased = rng.sample(there, min(count // 3, len(there)))
        assert all(reply == 1 for reply in client.pipeline(("CF.DEL", key, item) for item in erased))
        members.subtract(erased)


class Tamis:
    """Filters of our own, of all types that erase; some of them are full."""

    name, type = "TAMIS", "TamisFltr"
    reserve = "TAMIS.RESERVE {} 0.01 {} SEED 1"
    add, exists, scan, load = "TAMIS.ADD", "TAMIS.CHECK", "TAMIS.SCANDUMP", "TAMIS.LOADCHUNK"
    end = b""
    perhaps = -1
    types = ("blocked-quotient", "cuckoo", "quotient", "d-left", "blocked-counting", "counting",
             "split-counting", "scalable")
    replicated = [("TAMIS.RESERVE t 0.01 100", True), ("TAMIS.RESERVE t 0.01 100", False),
                  ("TAMIS.ADD t x", True), ("TAMIS.ADD t x", True), ("TAMIS.DEL t x", True),
                  ("TAMIS.DEL t absent", False), ("TAMIS.CHECK t x", False),
                  ("TAMIS.MARK t m", True), ("TAMIS.MARK t m", False), ("TAMIS.TRUST t", True),
                  ("TAMIS.DOUBT t", True), ("TAMIS.DOUBT none", False), ("TAMIS.DOUBTALL", True),
                  ("TAMIS.ADD none x", False), ("TAMIS.INFO t", False), ("TAMIS.COUNT t", False),
                  ("TAMIS.REBUILD t ABORT", False), ("TAMIS.REBUILD t START 0.01 100", True),
                  ("TAMIS.REBUILD t START 0.01 100", False), ("TAMIS.REBUILD t ADD x", True),
                  ("TAMIS.REBUILD t COMMIT ID 1", False), ("TAMIS.REBUILD t COMMIT", True),
                  ("TAMIS.REBUILD t COMMIT", False), ("TAMIS.SCANDUMP t 0", False),
                  ("TAMIS.UNION u t", True), ("TAMIS.UNION u none", False),
                  ("TAMIS.RESERVE w 0.01 100 WINDOW 1000", True), ("TAMIS.ADD w x", True),
                  ("TAMIS.DEL w x", False), ("TAMIS.REBUILD w START 0.01 100", False),
                  ("TAMIS.UNION w t", False), ("TAMIS.SLICE w BEGIN 1 0 0", False),
                  ("TAMIS.LOADCHUNK t 1 x", False), ("TAMIS.SIZE 0.01 100", False)]

    @staticmethod
    def change(rng, client, key, members, count):
        if client("EXISTS", key) == 0:
            chosen = Tamis.types[sum(key.encode()) % len(Tamis.types)]
            assert client("TAMIS.RESERVE", key, "0.01", "2000", "TYPE", chosen) == "OK"
        Tamis.rebuild(rng, client, key, members)
        items = [str(rng.randrange(3 * count)) for _ in range(count)]
        for item, added in zip(items, client("TAMIS.ADD", key, *items)):
            members[item] += added >= 0
        there = [item for item, n in members.items() if n > 0]
        erased = rng.sample(there, min(count // 3, len(there)))
        client("TAMIS.DEL", key, *erased)
        members.subtract(erased)

    @staticmethod
    def rebuild(rng, client, key, members):
        """Begins one now and then, and ends it at a later time."""
        step = rng.randrange(4)
        if step == 0:
            client("TAMIS.REBUILD", key, "START", "0.01", "3000", "TYPE", rng.choice(Tamis.types))
            client("TAMIS.REBUILD", key, "ADD", "0", *members.elements())
        elif step == 1 and isinstance(client("TAMIS.REBUILD", key, "COMMIT"), Error):
            client("TAMIS.REBUILD", key, "ABORT")


KINDS = {kind.name: kind for kind in (Bloom, Cuckoo, Tamis)}


def fill(kind, client, keys=8, seed=1, steps=6, count=300):
    """Keys of several links or tables; answers their members by key."""
    rng = random.Random(seed)
    members = {}
    for i in range(keys):
        key = f"{kind.name}{i}"
        members[key] = Counter()
        if i % 2:
            assert client(*kind.reserve.format(key, 10 ** (1 + i % 4)).split()) == "OK"
        for _ in range(steps if i else 0):
            kind.change(rng, client, key, members[key], count)
        if i == 0:  # one that nothing was ever put into
            assert client(*kind.reserve.format(key, 100).split()) == "OK"
    return members


def check_members(kind, client, members):
    for key, counts in members.items():
        items = [item for item, count in counts.items() if count > 0]
        for i in range(0, len(items), 1000):
            piece = items[i:i + 1000]
            reply = client(kind.exists, key, *piece)
            assert all(reply), f"{key} refuses {piece[reply.index(0)]}"


def dump(kind, client, key):
    """All chunks of a key, with the positions at which they are loaded."""
    chunks, at = [], 0
    while True:
        asked = at
        at, data = client(kind.scan, key, at)
        if at == 0:
            assert data == kind.end
            return chunks
        if kind is not Tamis:
            chunks.append((at, data))
        elif asked == 0:
            chunks.append((0, data))
        else:
            chunks += [(asked + i, data[i:i + 2000]) for i in range(0, len(data), 2000)]


def digests(client, keys):
    return client("DEBUG", "DIGEST-VALUE", *sorted(keys))
