#!/usr/bin/env python3
"""Every reply, error and shape of CF.* on a real server. usage: cuckoo_replies_test.py MODULE"""

import struct
import sys

from redis_server import Error, Map, Server, Simple
from replies import arity, run

OK = Simple("OK")
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_FOUND = Error("ERR not found")
PARTIAL = Error("ERR the filter is being loaded: chunks are missing")
UNKNOWN = Error("Unknown argument received")
CAPACITY = Error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]")


def info(*values):
    names = ("Size", "Number of buckets", "Number of filters", "Number of items inserted",
             "Number of items deleted", "Bucket size", "Expansion rate", "Max iterations")
    return Map([(Simple(name), value) for name, value in zip(names, values)])


def header(items, buckets, deletes, tables, bucket_size=2, iterations=20, expansion=1):
    return struct.pack("<QQQQHHH", items, buckets, deletes, tables, bucket_size, iterations, expansion)


BITS = bytes([0, 0, 0, 0, 7, 0, 0, 0])

RESERVE = [
    ("SET string x", OK),
    ("CF.RESERVE a", arity("cf.reserve")), ("CF.RESERVE a 100 BUCKETSIZE", arity("cf.reserve")),
    ("CF.RESERVE a 100 x", arity("cf.reserve")),
    ("CF.RESERVE a x", Error("Bad capacity")), ("CF.RESERVE a 1.5", Error("Bad capacity")),
    ("CF.RESERVE a 9223372036854775808", Error("Bad capacity")),
    *((f"CF.RESERVE a {n}", CAPACITY)
      for n in (3, 0, -1, 2**30 + 1, 2**31, 2**32, 2**63 - 1, -2**63)),
    ("CF.RESERVE a 9 BUCKETSIZE 5", CAPACITY),
    *((f"CF.RESERVE a 100 {name} x", Error(f"Couldn't parse {name}"))
      for name in ("MAXITERATIONS", "BUCKETSIZE", "EXPANSION")),
    *((f"CF.RESERVE a 1000 {name} {n}",
       Error(f"{name}: value must be in the range [{least}, {greatest}]"))
      for name, least, greatest in (("MAXITERATIONS", 1, 65535), ("BUCKETSIZE", 1, 255),
                                    ("EXPANSION", 0, 32768))
      for n in (least - 1, greatest + 1, 2**31, 2**32 + 1, 2**63 - 1, -2**63)),
    ("CF.RESERVE a 100 BUCKETSICE 4", UNKNOWN),
    (["CF.RESERVE", "a", "100", "", "4"], UNKNOWN),
    ("EXISTS a", 0),
    ("CF.RESERVE string 100", WRONG_TYPE),
    ("CF.RESERVE a 1000", OK), ("CF.RESERVE a 1000", Error("ERR item exists")),
    ("CF.INFO a", info(1080, 512, 1, 0, 0, 2, 1, 20)),
    ("CF.DEBUG a", b"bktsize:2 buckets:512 items:0 deletes:0 filters:1 max_iterations:20 expansion:1"),
    ("cf.reserve b 1000 bucketsize 5 maxiterations 7 expansion 3", OK),
    ("CF.INFO b", info(40 + 16 + 256 * 5, 256, 1, 0, 0, 5, 4, 7)),
    ("CF.RESERVE c 4 EXPANSION 0", OK), ("CF.INFO c", info(60, 2, 1, 0, 0, 2, 0, 20)),
    ("CF.RESERVE d 510 BUCKETSIZE 255 EXPANSION 32768", OK),
    ("CF.INFO d", info(40 + 16 + 510, 2, 1, 0, 0, 255, 32768, 20)),
    ("TYPE d", Simple("MBbloomCF")),
]

ADD = [
    ("SET string x", OK),
    *((f"{command}", arity(command.split()[0].lower())) for command in
      ("CF.ADD a", "CF.ADD a b c", "CF.ADDNX a", "CF.ADDNX a b c", "CF.INSERT a ITEMS",
       "CF.INSERT a NOCREATE CAPACITY", "CF.INSERT a NOCREATE ITEMS", "CF.INSERTNX a ITEMS",
       "CF.INSERTNX a NOCREATE ITEMS")),
    *((f"{command} string {rest}", WRONG_TYPE) for command, rest in
      (("CF.ADD", "x"), ("CF.ADDNX", "x"), ("CF.INSERT", "ITEMS x"), ("CF.INSERTNX", "ITEMS x"))),
    ("CF.ADD a x", True), ("CF.ADD a x", True), ("CF.ADDNX a x", False), ("CF.ADDNX a y", True),
    ("CF.COUNT a x", 2), ("CF.INFO a", info(1080, 512, 1, 3, 0, 2, 1, 20)),
    (["CF.ADD", "a", ""], True), (["CF.EXISTS", "a", ""], True),
    (["CF.ADD", "a", b"\0\r\n\xff"], True), (["CF.EXISTS", "a", b"\0\r\n\xff"], True),
    ("CF.INSERT i NOCREATE ITEMS x", NOT_FOUND), ("CF.INSERTNX i NOCREATE ITEMS x", NOT_FOUND),
    *((f"{command} i CAPACITY {n} ITEMS x", Error(text))
      for command in ("CF.INSERT", "CF.INSERTNX")
      for n, text in (("x", "Bad capacity"),
                      *((n, "Capacity must be in the range [cf-bucket-size * 2, 1073741824]")
                        for n in (3, -1, 2**30 + 1, 2**63 - 1)))),
    ("CF.INSERT i CAPACITI 5 ITEMS x", UNKNOWN), (["CF.INSERT", "i", "", "ITEMS", "x"], UNKNOWN),
    ("EXISTS i", 0),
    ("CF.INSERT i CAPACITY 8 ITEMS item1 item1", [True, True]),
    ("CF.INSERTNX i CAPACITY 8 ITEMS item1 other other", [0, 1, 0], [0, 1, 0]),
    ("CF.INFO i", info(64, 4, 1, 3, 0, 2, 1, 20)),
    ("CF.RESERVE full 4 EXPANSION 0 MAXITERATIONS 1", OK),
    ("CF.INSERT full ITEMS x x x x", lambda r: r[:2] in ([1, 1], [True, True])),
    ("CF.INSERT full ITEMS x x x", [-1, -1, -1], [False, False, False]),
    ("CF.INSERTNX full ITEMS x", [0], [0]),
    ("CF.ADD full x", Error("Filter is full")), ("CF.ADDNX full x", False),
    ("CF.EXISTS full x", True),
    ("CF.RESERVE many 4", OK),
    (["CF.INSERT", "many", "ITEMS"] + ["x"] * 200,
     lambda r: len(r) == 200 and r[0] == 1 and r[-1] in (-1, False)),
    ("CF.ADD many x", Error("Maximum expansions reached")),
    ("CF.INFO many", lambda r: 32 in (r[5] if isinstance(r[2], tuple) else r)
     or (Simple("Number of filters"), 32) in r),
]

ASK = [
    ("SET string x", OK),
    *((f"{command}", arity(command.split()[0].lower())) for command in
      ("CF.EXISTS a", "CF.EXISTS a b c", "CF.MEXISTS a", "CF.COUNT a", "CF.DEL a", "CF.DEL a b c",
       "CF.INFO", "CF.INFO a b", "CF.COMPACT", "CF.COMPACT a 0 0", "CF.DEBUG", "CF.SCANDUMP a", "CF.LOADCHUNK a 1")),
    *((f"CF.EXISTS {key} x", False) for key in ("none", "string")),
    *((f"CF.MEXISTS {key} x y", [False, False]) for key in ("none", "string")),
    *((f"CF.COUNT {key} x", 0) for key in ("none", "string")),
    *((f"CF.DEL {key} x", Error("Not found")) for key in ("none", "string")),
    *((f"CF.INFO {key}", NOT_FOUND) for key in ("none", "string")),
    *((f"CF.DEBUG {key}", NOT_FOUND) for key in ("none", "string")),
    *((f"CF.COMPACT {key}", Error("Cuckoo filter was not found")) for key in ("none", "string")),
    ("CF.INSERT a ITEMS 1 2 2 3", [True] * 4),
    ("CF.MEXISTS a 1 4 3", [True, False, True]), ("CF.COUNT a 2", 2), ("CF.COUNT a 9", 0),
    ("CF.DEL a 2", True), ("CF.COUNT a 2", 1), ("CF.DEL a 2", True), ("CF.DEL a 2", False),
    ("CF.EXISTS a 2", False),
    ("CF.INFO a", info(1080, 512, 1, 2, 2, 2, 1, 20)),
    ("CF.DEBUG a", b"bktsize:2 buckets:512 items:2 deletes:2 filters:1 max_iterations:20 expansion:1"),
    ("CF.COMPACT a", OK), ("CF.INFO a", info(1080, 512, 1, 2, 0, 2, 1, 20)),
    *((f"CF.COMPACT a {n}", 0) for n in (0, 1024, 2**63 - 1)),
    *((f"CF.COMPACT {key} {n}", Error("Invalid position"))
      for key in ("a", "none") for n in ("x", -1, 2**63)),
    *((f"CF.COMPACT a {n}", Error("Invalid position")) for n in (1, 1023)),
    ("CF.COMPACT none 0", Error("Cuckoo filter was not found")),
]

DUMP = [
    ("SET string x", OK),
    *((f"CF.SCANDUMP {key} 0", NOT_FOUND) for key in ("none", "string")),
    *((f"CF.SCANDUMP none {n}", Error("Invalid position")) for n in ("x", -1, -2**63, 2**63)),
    ("CF.RESERVE a 8", OK), ("CF.SCANDUMP a 0", [0, None]), ("CF.SCANDUMP a 1", [0, None]),
    ("CF.ADD a item1", True),
    ("CF.SCANDUMP a 0", [1, header(1, 4, 0, 1)]), ("CF.SCANDUMP a 1", [9, BITS]),
    *((f"CF.SCANDUMP a {n}", [0, None]) for n in (9, 10, 2**32, 2**63 - 1)),
    *((f"CF.LOADCHUNK b {n} x", Error("Invalid position")) for n in ("x", 0, 2**63)),
    (["CF.LOADCHUNK", "a", "1", header(1, 4, 0, 1)], Error("ERR item exists")),
    (["CF.LOADCHUNK", "string", "1", header(1, 4, 0, 1)], WRONG_TYPE),
    (["CF.LOADCHUNK", "b", "1", header(1, 4, 0, 1)[1:]], Error("Invalid header")),
    (["CF.LOADCHUNK", "b", "1", header(1, 4, 0, 1) + b"x"], Error("Invalid header")),
    *((["CF.LOADCHUNK", "b", "1", bad], Error("Couldn't create filter!"))
      for bad in (header(1, 3, 0, 1), header(1, 0, 0, 1), header(1, 2**63, 0, 1),
                  header(1, 2**62, 0, 1), header(1, 2**40, 0, 1), header(1, 4, 0, 0),
                  header(1, 4, 0, 65537), header(1, 4, 0, 2**64 - 1), header(9, 4, 0, 1),
                  header(2**64 - 1, 4, 0, 1), header(1, 4, 0, 1, bucket_size=0),
                  header(1, 4, 0, 1, bucket_size=256), header(1, 4, 0, 1, iterations=0),
                  header(1, 4, 0, 1, expansion=3), header(1, 4, 0, 2, expansion=0),
                  header(1, 4, 0, 40, expansion=32768))),
    (["CF.LOADCHUNK", "b", "9", BITS], NOT_FOUND),
    (["CF.LOADCHUNK", "string", "9", BITS], WRONG_TYPE),
    (["CF.LOADCHUNK", "b", "1", header(1, 4, 0, 1)], OK),
    ("CF.EXISTS b other", True), ("CF.MEXISTS b item1 other", [True, True]),
    ("CF.ADD b x", PARTIAL), ("CF.ADDNX b x", PARTIAL), ("CF.INSERT b ITEMS x", PARTIAL),
    ("CF.INSERTNX b ITEMS x", PARTIAL), ("CF.DEL b item1", PARTIAL), ("CF.COUNT b item1", PARTIAL),
    ("CF.COMPACT b", PARTIAL), ("CF.SCANDUMP b 0", PARTIAL),
    ("CF.INFO b", info(64, 4, 1, 1, 0, 2, 1, 20)),
    *((["CF.LOADCHUNK", "b", n, BITS], Error("Couldn't load chunk!"))
      for n in (-1, 2, 7, 8, 10, 2**32, 2**63 - 1, -2**63)),
    (["CF.LOADCHUNK", "b", "1000", BITS + b"x"], Error("Couldn't load chunk!")),
    (["CF.LOADCHUNK", "b", "10", BITS + b"x"], Error("Couldn't load chunk!")),
    (["CF.LOADCHUNK", "b", "9", BITS], OK),
    ("CF.EXISTS b item1", True), ("CF.EXISTS b other", False), ("CF.SCANDUMP b 1", [9, BITS]),
    ("CF.DEL b item1", True), ("CF.SCANDUMP b 0", [0, None]),
]


def main():
    with Server(sys.argv[1]) as server:
        count = sum(run(server, table) for table in (RESERVE, ADD, ASK, DUMP))
        assert server.alive()
    print(f"{count} rows, on RESP2 and RESP3")


if __name__ == "__main__":
    main()
