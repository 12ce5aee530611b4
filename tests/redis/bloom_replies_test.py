#!/usr/bin/env python3
"""Every reply, error and shape of BF.* on a real server. usage: bloom_replies_test.py MODULE"""

import math
import struct
import sys

from redis_server import Error, Map, Server, Simple
from replies import arity, run

OK = Simple("OK")
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_FOUND = Error("ERR not found")
PARTIAL = Error("ERR the filter is being loaded: chunks are missing")
UNKNOWN = Error("Unknown argument received")


def info(capacity, size, filters, items, expansion):
    return Map([(Simple("Capacity"), capacity), (Simple("Size"), size),
                (Simple("Number of filters"), filters), (Simple("Number of items inserted"), items),
                (Simple("Expansion rate"), expansion)])


def one(name, value):
    return [value], Map([(Simple(name), value)])


HEADER = (struct.pack("<QIII", 1, 1, 5, 2)
          + struct.pack("<QQQddIQB", 8, 64, 1, 0.05, -math.log(0.05) / 0.480453013918201, 5, 10, 0))
BITS = bytes.fromhex("0108008000042000")

RESERVE = [
    ("SET string x", OK),
    ("BF.RESERVE", arity("bf.reserve")),
    ("BF.RESERVE a 0.1", arity("bf.reserve")),
    ("BF.RESERVE a 0.1 1 EXPANSION 1 NONSCALING x", arity("bf.reserve")),
    ("BF.RESERVE a x 100", Error("ERR bad error rate")),
    ("BF.RESERVE a nan 100", Error("ERR bad error rate")),
    ("BF.RESERVE a 1e-400 100", Error("ERR bad error rate")),
    *((f"BF.RESERVE a {rate} 100",
       Error("ERR error rate must be in the range (0.000000, 1.000000)"))
      for rate in ("0", "-0", "-1", "1", "1.5", "inf", "-inf")),
    ("BF.RESERVE a 0.1 x", Error("ERR bad capacity")),
    ("BF.RESERVE a 0.1 1.5", Error("ERR bad capacity")),
    ("BF.RESERVE a 0.1 9223372036854775808", Error("ERR bad capacity")),
    *((f"BF.RESERVE a 0.1 {capacity}", Error("ERR capacity must be in the range [1, 1073741824]"))
      for capacity in (0, -1, 2**30 + 1, 2**31, 2**32, 2**62, 2**63 - 1, -2**63)),
    ("BF.RESERVE a 0.1 100 EXPANSION", Error("ERR no expansion")),
    ("BF.RESERVE a 0.1 100 EXPANSION x", Error("ERR bad expansion")),
    ("BF.RESERVE a 0.1 100 NONSCALING EXPANSION 40000", Error("Nonscaling filters cannot expand")),
    ("BF.RESERVE a 0.1 100 EXPANSION 2 NONSCALING", Error("Nonscaling filters cannot expand")),
    *((f"BF.RESERVE a 0.1 100 EXPANSION {n}",
       Error("ERR expansion must be in the range [0, 32768]"))
      for n in (-1, 32769, 2**31, 2**32, 2**63 - 1)),
    ("BF.RESERVE a 0.1 100 NOSCALING", UNKNOWN),
    (["BF.RESERVE", "a", "0.1", "100", ""], UNKNOWN),
    (["BF.RESERVE", "a", "0.1", "100", "e"], UNKNOWN),
    (["BF.RESERVE", "a", "0.1", "100", b"\0\xff\r\n"], UNKNOWN),
    (["BF.RESERVE", "a", "0.1", "100", "N" * 100000], UNKNOWN),
    ("BF.RESERVE a 1e-300 1073741824",
     Error("ERR could not create filter: greater than tamis-max-bytes")),
    ("EXISTS a", 0),
    ("BF.RESERVE string 0.1 100", WRONG_TYPE),
    ("BF.RESERVE a 0.1 10", OK),
    ("BF.RESERVE a 0.1 10", Error("ERR item exists")),
    ("bf.reserve b 0.9 10 expansion 3", OK),
    ("BF.DEBUG b", [b"size:0", b"bytes:8 bits:64 hashes:4 hashwidth:64 capacity:10 size:0 ratio:0.125"]),
    ("BF.RESERVE c 0.001 100 nonscaling", OK),
    ("BF.INFO c", info(100, 32 + 64 + 184, 1, 0, None)),
    ("BF.RESERVE d 0.001 100 EXPANSION 0", OK),
    ("BF.INFO d", info(100, 32 + 64 + 184, 1, 0, None)),
    ("BF.RESERVE e 0.001 100 EXPANSION 0 NONSCALING", OK),
    ("BF.RESERVE f 0.01 100 EXPANSION 32768", OK),
    ("BF.INFO f", info(100, 240, 1, 0, 32768)),
    ("TYPE f", Simple("MBbloom--")),
]

ADD = [
    ("SET string x", OK),
    ("BF.ADD", arity("bf.add")), ("BF.ADD a", arity("bf.add")), ("BF.ADD a b c", arity("bf.add")),
    ("BF.MADD a", arity("bf.madd")),
    ("BF.ADD string x", WRONG_TYPE), ("BF.MADD string x", WRONG_TYPE),
    ("BF.INSERT string ITEMS x", WRONG_TYPE),
    ("BF.ADD a x", True), ("BF.ADD a x", False), ("BF.INFO a", info(100, 240, 1, 1, 2)),
    (["BF.ADD", "a", ""], True), (["BF.EXISTS", "a", ""], True),
    (["BF.ADD", "a", b"\0\r\n\xff"], True), (["BF.EXISTS", "a", b"\0\r\n\xff"], True),
    (["BF.EXISTS", "a", b"\0\r\n"], False),
    (["BF.ADD", "a", b"x" * 1000000], True),
    ("BF.MADD b 1 2 1 3", [True, True, False, True]),
    ("BF.RESERVE full 0.01 2 NONSCALING", OK),
    ("BF.MADD full 1 2 1 3 4", [True, True, False, Error("ERR non scaling filter is full")]),
    ("BF.ADD full 3", Error("ERR non scaling filter is full")),
    ("BF.ADD full 2", False),
    ("BF.INSERT full ITEMS 1 3 2", [False, Error("ERR non scaling filter is full")]),
    ("BF.INSERT i", arity("bf.insert")), ("BF.INSERT i ITEMS", arity("bf.insert")),
    ("BF.INSERT i NOCREATE CAPACITY", arity("bf.insert")),
    ("BF.INSERT i CAPACITY 5 NOCREATE x", UNKNOWN),
    ("BF.INSERT i CAPACITY 5 NOCREATE ITEMS", arity("bf.insert")),
    ("BF.INSERT i NOCREATE ITEMS x", NOT_FOUND),
    *((f"BF.INSERT i CAPACITY {n} ITEMS x", Error("Bad capacity"))
      for n in ("x", 0, -1, 2**30 + 1, 2**32, 2**63)),
    *((f"BF.INSERT i ERROR {n} ITEMS x", Error("Bad error rate"))
      for n in ("x", 0, 1, -1, "nan", "inf")),
    *((f"BF.INSERT i EXPANSION {n} ITEMS x", Error("Bad expansion"))
      for n in ("x", -1, 32769, 2**32)),
    ("BF.INSERT i NONSCALING EXPANSION 3 ITEMS x", Error("Nonscaling filters cannot expand")),
    ("BF.INSERT i CAPACITI 5 ITEMS x", UNKNOWN),
    (["BF.INSERT", "i", "", "ITEMS", "x"], UNKNOWN),
    ("BF.INSERT i ERROR 1e-300 CAPACITY 1073741824 ITEMS x",
     Error("ERR could not create filter: greater than tamis-max-bytes")),
    ("EXISTS i", 0),
    ("BF.INSERT i CAPACITY 10 ERROR 0.1 EXPANSION 4 ITEMS item1 item1", [True, False]),
    ("BF.INFO i", info(10, 104, 1, 1, 4)),
    ("BF.INSERT i capacity 1000 items y", [True]),
    ("BF.INFO i", info(10, 104, 1, 2, 4)),
    ("BF.INSERT n NONSCALING ITEMS x", [True]),
    ("BF.INFO n EXPANSION", *one("Expansion rate", None)),
    ("BF.INSERT z EXPANSION 0 ITEMS ITEMS NOCREATE", [True, True]),
    ("BF.INFO z EXPANSION", *one("Expansion rate", None)),
]

ASK = [
    ("SET string x", OK),
    ("BF.EXISTS a", arity("bf.exists")), ("BF.EXISTS a b c", arity("bf.exists")),
    ("BF.MEXISTS a", arity("bf.mexists")),
    ("BF.EXISTS none x", False), ("BF.EXISTS string x", False),
    ("BF.MEXISTS none x y", [False, False]), ("BF.MEXISTS string x y", [False, False]),
    ("BF.MADD a 1 2 3", [True, True, True]),
    ("BF.MEXISTS a 1 4 3", [True, False, True]),
    ("BF.CARD", arity("bf.card")), ("BF.CARD a b", arity("bf.card")),
    ("BF.CARD none", 0), ("BF.CARD string", WRONG_TYPE), ("BF.CARD a", 3),
    ("BF.INFO", arity("bf.info")), ("BF.INFO a SIZE x", arity("bf.info")),
    ("BF.INFO none", NOT_FOUND), ("BF.INFO string", WRONG_TYPE),
    ("BF.INFO a", info(100, 240, 1, 3, 2)),
    ("BF.INFO a CAPACITY", *one("Capacity", 100)), ("BF.INFO a size", *one("Size", 240)),
    ("BF.INFO a Filters", *one("Number of filters", 1)),
    ("BF.INFO a ITEMS", *one("Number of items inserted", 3)),
    ("BF.INFO a EXPANSION", *one("Expansion rate", 2)),
    ("BF.INFO a x", Error("Invalid information value")),
    (["BF.INFO", "a", ""], Error("Invalid information value")),
    ("BF.DEBUG none", NOT_FOUND), ("BF.DEBUG string", WRONG_TYPE),
    ("BF.DEBUG a", [b"size:3", b"bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:3 ratio:0.005"]),
    ("BF.DEBUG", arity("bf.debug")),
]

DUMP = [
    ("SET string x", OK),
    ("BF.SCANDUMP a", arity("bf.scandump")), ("BF.LOADCHUNK a 1", arity("bf.loadchunk")),
    ("BF.SCANDUMP none 0", NOT_FOUND), ("BF.SCANDUMP string 0", WRONG_TYPE),
    ("BF.SCANDUMP none x", Error("Second argument must be numeric")),
    ("BF.RESERVE a 0.1 10", OK), ("BF.ADD a item1", True),
    ("BF.SCANDUMP a 0", [1, HEADER]), ("BF.SCANDUMP a 1", [9, BITS]),
    ("BF.SCANDUMP a 2", [9, BITS[1:]]),
    *((f"BF.SCANDUMP a {n}", [0, b""]) for n in (9, 10, -1, 2**32, 2**63 - 1, -2**63)),
    ("BF.LOADCHUNK b x y", Error("ERR Second argument must be numeric")),
    (["BF.LOADCHUNK", "string", "1", HEADER], WRONG_TYPE),
    (["BF.LOADCHUNK", "b", "9", BITS], NOT_FOUND),
    (["BF.LOADCHUNK", "b", "1", HEADER[:-1]], Error("ERR received bad data")),
    (["BF.LOADCHUNK", "b", "1", HEADER + b"x"], Error("ERR received bad data")),
    (["BF.LOADCHUNK", "b", "1", b""], Error("ERR received bad data")),
    (["BF.LOADCHUNK", "b", "1", HEADER], OK),
    # Half of a filter is never absent, and takes nothing.
    ("BF.EXISTS b item1", True), ("BF.EXISTS b other", True),
    ("BF.MEXISTS b item1 other", [True, True]),
    ("BF.ADD b x", PARTIAL), ("BF.MADD b x", [PARTIAL]), ("BF.INSERT b ITEMS x", [PARTIAL]),
    ("BF.SCANDUMP b 0", PARTIAL), ("BF.CARD b", 1), ("BF.INFO b", info(10, 104, 1, 1, 2)),
    ("COPY b c", 1), ("BF.EXISTS c other", True),
    *(([f"BF.LOADCHUNK", "b", str(n), BITS], Error("ERR received bad data"))
      for n in (0, -1, -2**63, 7)),
    (["BF.LOADCHUNK", "b", "8", BITS], Error("ERR invalid offset - an earlier chunk is missing")),
    (["BF.LOADCHUNK", "b", "10", BITS], Error("ERR invalid offset - an earlier chunk is missing")),
    (["BF.LOADCHUNK", "b", "10", BITS + b"x"],
     Error("ERR invalid chunk - Too big for current filter")),
    (["BF.LOADCHUNK", "b", "9", BITS], OK),
    ("BF.EXISTS b item1", True), ("BF.EXISTS b other", False), ("BF.SCANDUMP b 1", [9, BITS]),
    ("BF.EXISTS c other", True),
    (["BF.LOADCHUNK", "b", str(2**63 - 1), BITS], Error("ERR invalid offset - no link found")),
    (["BF.LOADCHUNK", "b", "1", HEADER], Error("ERR received bad data")),
    ("BF.ADD b x", True),
]


def main():
    with Server(sys.argv[1]) as server:
        count = sum(run(server, table) for table in (RESERVE, ADD, ASK, DUMP))
        assert server.alive()
    print(f"{count} rows, on RESP2 and RESP3")


if __name__ == "__main__":
    main()
