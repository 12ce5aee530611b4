#!/usr/bin/env python3
"""Random commands against models of BF.*, CF.* and TAMIS.*, on a real server.

Replies and SCANDUMP are compared with the models, byte for byte, also after a reload, a log that is read again, DUMP
and RESTORE, chunks, a restart, and on a replica of other settings. Of TAMIS.* filters it is only known what must be
found: what was added and not erased.
usage: model_test.py MODULE [--commands N] [--moves N] [--seed N]
"""

import argparse
import math
import random
import struct
import time
from collections import Counter

from kinds import KINDS, digests, dump
from persistence_test import free_port, replicated
from redis_server import Error, Server

M64 = (1 << 64) - 1


def murmur(data, seed):
    m = 0xC6A4A7935BD1E995
    h = seed ^ (len(data) * m & M64)
    whole = len(data) // 8 * 8
    for k in struct.unpack(f"<{whole // 8}Q", data[:whole]):
        k = k * m & M64
        k = (k ^ k >> 47) * m & M64
        h = (h ^ k) * m & M64
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & M64
    h = (h ^ h >> 47) * m & M64
    return h ^ h >> 47


class BloomModel:
    def __init__(self, rate, capacity, growth):
        self.growth = growth  # 0 = does not scale
        self.size = 0
        self.links = []
        self.add_link(rate * 0.5 if growth else rate, capacity)

    def add_link(self, rate, capacity):
        bpe = -math.log(rate) / 0.480453013918201
        bits = (max(int(capacity * bpe), 1) + 63) // 64 * 64
        self.links.append([bytearray(bits // 8), bits, math.ceil(0.693147180559945 * bpe), capacity, 0, rate])

    @staticmethod
    def positions(item, link):
        a = murmur(item, 0xC6A4A7935BD1E995)
        b = murmur(item, a)
        return [((a + i * b) & M64) % link[1] for i in range(link[2])]

    def exists(self, item):
        return any(all(link[0][p >> 3] >> (p & 7) & 1 for p in self.positions(item, link))
                   for link in self.links)

    def add(self, item):
        """1, 0 or None when it is full."""
        if self.exists(item):
            return 0
        link = self.links[-1]
        if link[4] >= link[3]:
            if not self.growth:
                return None
            self.add_link(link[5] * 0.5, link[3] * self.growth)
            link = self.links[-1]
        for p in self.positions(item, link):
            link[0][p >> 3] |= 1 << (p & 7)
        link[4] += 1
        self.size += 1
        return 1

    def bytes(self):
        return b"".join(bytes(link[0]) for link in self.links)


class CuckooModel:
    def __init__(self, capacity, bucket_size, iterations, expansion):
        self.slots, self.iterations = bucket_size, iterations
        self.expansion = 0 if expansion == 0 else 1 << (expansion - 1).bit_length()
        self.tables = [bytearray((1 << (max(capacity // bucket_size, 1) - 1).bit_length()) * bucket_size)]
        self.items = self.deletes = 0

    def place(self, item):
        h = murmur(item, 0)
        tag = h % 255 + 1
        return h, h ^ tag * 0x5BD1E995, tag

    def at(self, table, h):
        return h % (len(table) // self.slots) * self.slots

    def insert(self, item):
        h, other, tag = self.place(item)
        if not self.free_slot(h, other, tag) and not self.kick(h, tag):
            if not self.expansion:
                return None
            self.tables.append(bytearray(len(self.tables[-1]) * self.expansion))
            assert self.free_slot(h, other, tag)
        self.items += 1
        return 1

    def free_slot(self, h, other, tag):
        for table in reversed(self.tables):
            for x in (h, other):
                at = table.find(0, self.at(table, x), self.at(table, x) + self.slots)
                if at >= 0:
                    table[at] = tag
                    return True
        return False

    def kick(self, bucket, tag):
        table, slot, before = self.tables[-1], 0, bytes(self.tables[-1])
        for _ in range(self.iterations):
            at = self.at(table, bucket) + slot
            table[at], tag = tag, table[at]
            bucket ^= tag * 0x5BD1E995
            begin = self.at(table, bucket)
            empty = table.find(0, begin, begin + self.slots)
            if empty >= 0:
                table[empty] = tag
                return True
            slot = (slot + 1) % self.slots
        table[:] = before
        return False

    def find(self, item):
        h, other, tag = self.place(item)
        for table in reversed(self.tables):
            for x in (h, other):
                at = table.find(tag, self.at(table, x), self.at(table, x) + self.slots)
                if at >= 0:
                    return table, at
        return None

    def exists(self, item):
        return self.find(item) is not None

    def count(self, item):
        h, other, tag = self.place(item)
        return sum(table[at:at + self.slots].count(tag)
                   for table in self.tables for at in {self.at(table, h), self.at(table, other)})

    def delete(self, item):
        found = self.find(item)
        if found is None:
            return 0
        found[0][found[1]] = 0
        self.items -= 1
        self.deletes += 1
        if len(self.tables) > 1 and self.deletes > self.items / 10:
            self.compact(False)
        return 1

    def compact(self, go_on):
        """Tags of newer tables go to free places of older ones; newest tables that are empty are dropped."""
        for i in range(len(self.tables) - 1, 0, -1):
            table = self.tables[i]
            for at, tag in enumerate(table):
                if tag and self.move_down(i, at // self.slots, tag):
                    table[at] = 0
            stuck = any(table)
            if not stuck and i == len(self.tables) - 1:
                self.tables.pop()
            if stuck and not go_on:
                break
        self.deletes = 0

    def move_down(self, i, bucket, tag):
        for table in self.tables[:i]:
            for x in (bucket, bucket ^ tag * 0x5BD1E995):
                at = table.find(0, self.at(table, x), self.at(table, x) + self.slots)
                if at >= 0:
                    table[at] = tag
                    return True
        return False

    def bytes(self):
        return b"".join(map(bytes, self.tables))


class InTransactions:
    """A client that sends some commands within MULTI and EXEC, with others that change nothing."""

    def __init__(self, client, rng):
        self.client, self.rng = client, rng

    @property
    def sent(self):
        return self.client.sent

    def __call__(self, *words):
        if self.rng.randrange(8) != 0 or words[0] in ("DEBUG", "SHUTDOWN"):
            return self.client(*words)
        others = self.rng.randrange(3)
        assert self.client("MULTI") == "OK"
        for _ in range(others):
            assert self.client("PING") == "QUEUED"
        queued = self.client(*words)
        replies = self.client("EXEC")
        return replies[others] if queued == "QUEUED" else queued


class Run:
    def __init__(self, server, reader, rng):
        self.server, self.reader, self.rng = server, reader, rng
        self.client, self.sent = InTransactions(server.client(), rng), 0
        self.models, self.members = {}, {}

    def item(self):
        return self.rng.choice((b"%d", b"row:%d", b"\0\xff%d", b"a rather long item, of several words: %d")) % \
            self.rng.randrange(3000)

    def expect(self, reply, expected, *command):
        if expected is None:
            assert isinstance(reply, Error) or reply in (-1, False), (command, reply)
        else:
            assert reply == expected, (command, reply, expected)

    def bloom(self, key):
        client, rng = self.client, self.rng
        if key not in self.models:
            rate, capacity, growth = rng.choice((0.1, 0.01, 0.0001)), rng.randrange(1, 300), rng.randrange(0, 4)
            assert client("BF.RESERVE", key, rate, capacity, "EXPANSION", growth) == "OK"
            self.models[key] = BloomModel(rate, capacity, growth)
        model = self.models[key]
        items = [self.item() for _ in range(rng.randrange(1, 40))]
        step = rng.randrange(5)
        if step == 0:
            self.expect(client("BF.ADD", key, items[0]), model.add(items[0]), key)
        elif step == 1:
            replies = client("BF.MADD", key, *items)
            for reply, item in zip(replies, items):
                self.expect(reply, model.add(item), key, item)
            assert len(replies) == len(items) or isinstance(replies[-1], Error)
        elif step == 2:
            assert client("BF.MEXISTS", key, *items) == [model.exists(x) for x in items]
        elif step == 3:
            assert client("BF.EXISTS", key, items[0]) == model.exists(items[0])
            assert client("BF.CARD", key) == model.size
        else:
            replies = client("BF.INSERT", key, "CAPACITY", "7", "NOCREATE", "ITEMS", *items)
            for reply, item in zip(replies, items):
                self.expect(reply, model.add(item), key, item)

    def cuckoo(self, key):
        client, rng = self.client, self.rng
        if key not in self.models:
            slots, iterations, expansion = rng.randrange(1, 12), rng.randrange(1, 40), rng.randrange(0, 5)
            capacity = rng.randrange(2 * slots, 600)
            assert client("CF.RESERVE", key, capacity, "BUCKETSIZE", slots, "MAXITERATIONS", iterations,
                          "EXPANSION", expansion) == "OK"
            self.models[key] = CuckooModel(capacity, slots, iterations, expansion)
            self.members[key] = Counter()
        model, members = self.models[key], self.members[key]
        items = [self.item() for _ in range(rng.randrange(1, 20))]
        step = rng.randrange(9)
        if len(model.tables) > 12:  # elsewhere is more to be seen
            client("DEL", key)
            del self.models[key]
            return
        if step == 0:
            replies = client("CF.INSERT", key, "ITEMS", *items)
            for reply, item in zip(replies, items):
                self.inserted(key, reply, item, model.insert(item))
        elif step == 1:
            item = items[0]
            self.inserted(key, client("CF.ADDNX", key, item), item,
                          0 if model.exists(item) else model.insert(item))
        elif step == 2:
            assert client("CF.MEXISTS", key, *items) == [model.exists(x) for x in items]
        elif step == 3:
            assert client("CF.COUNT", key, items[0]) == model.count(items[0])
            assert client("CF.EXISTS", key, items[0]) == model.exists(items[0])
        elif step == 4:
            for item in (x for x in items if members[x] > 0):
                assert client("CF.DEL", key, item) == model.delete(item) == 1
                members[item] -= 1
        elif step == 5:
            replies = client("CF.INSERTNX", key, "NOCREATE", "ITEMS", *items)
            for reply, item in zip(replies, items):
                self.inserted(key, reply, item, 0 if model.exists(item) else model.insert(item))
        elif step == 6:
            item = items[0]
            self.inserted(key, client("CF.ADD", key, item), item, model.insert(item))
        elif step == 7 and rng.randrange(10) == 0:
            assert client("CF.COMPACT", key) == "OK"
            model.compact(True)
        else:
            there = [x for x, n in members.items() if n > 0][:50]
            if there:
                assert client("CF.MEXISTS", key, *there) == [1] * len(there)

    def inserted(self, key, reply, item, done):
        self.expect(reply, done, key, item)
        self.members[key][item] += done or 0

    def own(self, key):
        members = self.members.setdefault(key, Counter())
        KINDS["TAMIS"].change(self.rng, self.client, key, members, 20)
        there = [x for x, n in members.items() if n > 0]
        if there:
            assert 0 not in self.client("TAMIS.CHECK", key, *there)

    def compare(self, client):
        for key, model in self.models.items():
            kind = KINDS["BF" if isinstance(model, BloomModel) else "CF"]
            parts = dump(kind, client, key)
            data = b"".join(data for at, data in parts[1:])
            assert data == model.bytes() or (not data and not any(model.bytes())), f"{key} has other bytes"
            if isinstance(model, CuckooModel) and parts:
                assert struct.unpack("<Q", parts[0][1][:8])[0] == model.items
        for key, members in self.members.items():
            if key.startswith("TAMIS"):
                there = [x for x, n in members.items() if n > 0]
                assert not there or 0 not in client("TAMIS.CHECK", key, *there), key

    def move(self):
        """Everything goes some way, and is the same."""
        client, way = self.client, self.rng.randrange(8)
        if way == 0:
            assert client("DEBUG", "RELOAD") == "OK"
        elif way == 1:
            assert client("DEBUG", "LOADAOF") == "OK"
        elif way == 4:
            replicated(client, self.reader)
            self.compare(self.reader)
            keys = client("KEYS", "*")
            assert digests(client, keys) == digests(self.reader, keys)
        elif way == 5:
            self.restart()
        elif way == 6:
            # TAMIS filters of this test have no GUARD, so that their trust does not end.
            for key in list(self.models) + [key for key in self.members if key.startswith("TAMIS")]:
                if client("EXISTS", key):
                    assert client("COPY", key, "copy") == 1
                    assert client("RENAME", "copy", key) == "OK"
        elif way == 7:
            assert client("SWAPDB", "0", "1") == "OK"
            for key in list(self.models) + list(self.members):
                client.client("SELECT", "1")
                client("MOVE", key, "0")
                client.client("SELECT", "0")
        for key in list(self.models):
            if way == 2:
                payload = client("DUMP", key)
                assert client("RESTORE", key, "0", payload, "REPLACE") == "OK"
            elif way == 3:
                kind = KINDS["BF" if isinstance(self.models[key], BloomModel) else "CF"]
                parts = dump(kind, client, key)
                if parts:
                    client("DEL", key)
                for at, data in parts:
                    assert client(kind.load, key, at, data) == "OK"
        self.compare(self.client)

    def restart(self):
        self.server.shutdown("NOSAVE")  # what it knows afterwards is in the log
        self.server.start()
        self.sent += self.client.sent
        self.client = InTransactions(self.server.client(), self.rng)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("--commands", type=int, default=4_000)
    parser.add_argument("--moves", type=int, default=40, help="everything moves in one of so many rounds")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    sent = moved = 0
    rng = random.Random(arguments.seed)
    words = ("cf-max-expansions", "65536")
    others = ("bf-error-rate", "0.2", "bf-expansion-factor", "7", "cf-bucket-size", "5", "cf-max-expansions", "1",
              "tamis-max-bytes", "1", "tamis-erase-delay", "0", "tamis-auto-create", "no")
    while sent < arguments.commands:
        port = free_port()
        with (Server(arguments.module, "appendonly", "yes", words=words, port=port) as server,
              Server(arguments.module, words=others) as replica):
            reader = replica.client()
            assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
            run = Run(server, reader, rng)
            while run.sent + run.client.sent < 4_000:
                run.bloom(f"BF{rng.randrange(6)}")
                run.cuckoo(f"CF{rng.randrange(6)}")
                run.own(f"TAMIS{rng.randrange(6)}")
                if rng.randrange(arguments.moves) == 0:
                    run.move()
                    moved += 1
            run.compare(run.client)
            sent += run.sent + run.client.sent
        print(f"{sent} commands; {moved} times everything was moved", flush=True)


if __name__ == "__main__":
    main()
