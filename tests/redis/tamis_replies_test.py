#!/usr/bin/env python3
"""Every reply, error and shape of TAMIS.* on a real server. usage: tamis_replies_test.py MODULE"""

import sys

from redis_server import Error, Map, Server, Simple
from replies import arity, info_fields, run, starts

OK = Simple("OK")
OTHER_KIND = Error("WRONGTYPE the filters of a union are all of TAMIS.*, or all of BF.*; those of CF.* and of valkey-bloom's kind "
                   "are not united")
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_FOUND = Error("ERR not found")
PARTIAL = Error("ERR the filter is being loaded: chunks are missing")
UNKNOWN = Error("Unknown argument received")
BAD = Error("ERR received bad data: the log of the server says what is wrong")
BAD_POSITION = Error(
    "ERR bad position: the first one is 0, the next one is that of the last answer of SCANDUMP")
ERASING = ("blocked-quotient", "cuckoo", "quotient", "d-left", "blocked-counting", "projected",
           "counting", "dynamic-count", "split-counting", "scalable")
OTHERS = ("blocked", "bloom", "scalable-bloom")


def fields(**expected):
    return info_fields(expected, number=24)


RESERVE = [
    ("SET string x", OK),
    ("TAMIS.RESERVE a 0.01", arity("tamis.reserve")),
    *((f"TAMIS.RESERVE a {rate} 100", Error("ERR bad error rate")) for rate in ("x", "nan", "1e-400")),
    *((f"TAMIS.RESERVE a {rate} 100", starts("ERR cannot make a filter: fpr is"))
      for rate in ("0", "-1", "0.6", "1", "inf", "-inf", "1e-300")),
    *((f"TAMIS.RESERVE a 0.01 {n}", Error("ERR bad capacity"))
      for n in ("x", "0", "-1", "1.5", str(2**63))),
    *((f"TAMIS.RESERVE a 0.01 {n}", starts("ERR cannot make a filter: capacity is"))
      for n in (2**31 + 1, 2**32, 2**62, 2**63 - 1)),
    ("TAMIS.RESERVE a 0.01 100 TYPE nothing", starts("ERR no such type; there are: blocked bloom")),
    (["TAMIS.RESERVE", "a", "0.01", "100", "TYPE", b"\0\r\n+OK\r\n"], starts("ERR no such type")),
    ("TAMIS.RESERVE a 0.01 100 TYPE binary-fuse", starts("ERR no such type")),
    ("TAMIS.RESERVE a 0.01 100 TYPE", UNKNOWN), ("TAMIS.RESERVE a 0.01 100 SEED", UNKNOWN),
    ("TAMIS.RESERVE a 0.01 100 SEED x", Error("ERR bad seed")),
    ("TAMIS.RESERVE a 0.01 100 GUARDED", UNKNOWN),
    (["TAMIS.RESERVE", "a", "0.01", "100", ""], UNKNOWN),
    ("TAMIS.RESERVE a 0.000001 2147483648 TYPE counting",
     Error("ERR could not create filter: greater than tamis-max-bytes")),
    ("EXISTS a", 0),
    ("TAMIS.RESERVE string 0.01 100", WRONG_TYPE),
    ("TAMIS.RESERVE a 0.01 100 seed 7 guard", OK),
    ("TAMIS.RESERVE a 0.01 100", Error("ERR item exists")),
    ("TYPE a", Simple("TamisFltr")),
    ("TAMIS.INFO a", fields(Type=b"blocked-quotient", State=b"not trusted", Guard=1, Mark=b"",
                            Capacity=100, Items=0, Hits=0, Misses=0, Unknown=0, Refused=0, Stuck=0)),
    # It is not known yet whether all rows are in it.
    ("TAMIS.ADD a x", [1], [1]), ("TAMIS.CHECK a x y", [-1, -1], [-1, -1]),
    ("TAMIS.DEL a x y", [-1, -1], [-1, -1]), ("TAMIS.TRUST a", OK),
    ("TAMIS.CHECK a x y", [1, 0], [1, 0]), ("TAMIS.DEL a x y", [1, 0], [1, 0]),
    ("TAMIS.INFO a", fields(State=b"trusted", Unknown=2)),
    *((words, expected) for doubt in ("TAMIS.DOUBT a", "TAMIS.DOUBTALL") for words, expected in
      ((doubt, OK), ("TAMIS.INFO a", fields(State=b"not trusted")), ("TAMIS.TRUST a", OK),
       ("TAMIS.INFO a", fields(State=b"trusted")))),
    *((f"TAMIS.RESERVE w 0.01 100 WINDOW {n}", Error("ERR bad window: it is 1 to 1000000000 seconds"))
      for n in ("x", "0", "-1", "1.5", "1000000001", str(2**63))),
    *((f"TAMIS.RESERVE w 0.01 100 WINDOW 60 SLICES {n}", Error("ERR bad slices: a window has 1 to 64"))
      for n in ("x", "0", "-1", "65", str(2**63))),
    ("TAMIS.RESERVE w 0.01 100 SLICES 4", Error("ERR SLICES are those of a WINDOW: say its seconds")),
    ("TAMIS.RESERVE w 0.01 100 WINDOW", UNKNOWN), ("TAMIS.RESERVE w 0.01 100 WINDOW 1 SLICES", UNKNOWN),
    ("TAMIS.RESERVE w 0.00000001 100 WINDOW 60 SLICES 64", starts("ERR cannot make a filter: fpr is")),
    ("TAMIS.RESERVE w 0.01 1000 window 1000000000 slices 3 GUARD", OK),
    ("TAMIS.INFO w", fields(Type=b"cuckoo", Guard=1, Capacity=1000, Window=1000000000, Slices=3, Items=0)),
    ("TAMIS.ADD w x", [1], [1]), ("TAMIS.CHECK w x", [-1], [-1]), ("TAMIS.TRUST w", OK),
    ("TAMIS.CHECK w x y", [1, 0], [1, 0]), ("TAMIS.ADD w x", [0], [0]), ("TAMIS.DEL w x", [-1], [-1]),
    ("TAMIS.COUNT w", 2), ("TAMIS.INFO w", fields(Items=2, Skipped_erases=1)),
    ("TAMIS.RESERVE blockedw 0.01 100 TYPE blocked WINDOW 60", OK),
    ("TAMIS.INFO blockedw", fields(Type=b"blocked", Window=60, Slices=4, State=b"trusted")),
    ("TAMIS.DELIF blockedw 1 x", Error("ERR a filter of this type does not erase: make one of another TYPE")),
    *((f"TAMIS.SLICE {rest}", starts("ERR servers send TAMIS.SLICE")) for rest in
      ("w BEGIN 1 0 0", "none BEGIN 1 0 0", "w DEL 0 x", "w OTHER x y")),
    ("TAMIS.SLICE w BEGIN", arity("tamis.slice")),
    ("TAMIS.INFO a", fields(Window=0, Slices=0)),
    ("TAMIS.RESERVE b 0.01 100 TYPE cuckoo", OK),
    ("TAMIS.INFO b", fields(Type=b"cuckoo", Guard=0, State=b"trusted")),
]

USE = [
    ("SET string x", OK),
    *((f"TAMIS.{command} a", arity(f"tamis.{command.lower()}")) for command in
      ("ADD", "DEL", "CHECK", "MARK")),
    ("TAMIS.INFO", arity("tamis.info")), ("TAMIS.TRUST", arity("tamis.trust")),
    ("TAMIS.DOUBT", arity("tamis.doubt")), ("TAMIS.DOUBTALL a", arity("tamis.doubtall")),
    *((f"TAMIS.{command} none{rest}", NOT_FOUND) for command, rest in
      (("ADD", " x"), ("DEL", " x"), ("MARK", " x"), ("INFO", ""), ("TRUST", ""), ("DOUBT", ""))),
    *((f"TAMIS.{command} string{rest}", WRONG_TYPE) for command, rest in
      (("ADD", " x"), ("DEL", " x"), ("MARK", " x"), ("INFO", ""), ("TRUST", ""), ("DOUBT", ""))),
    ("EXISTS none", 0),
    # An unknown answer is never "no".
    ("TAMIS.CHECK none x", [-1], [-1]), ("TAMIS.CHECK string x y", [-1, -1], [-1, -1]),
    *(row for name in ERASING for row in (
        (f"TAMIS.RESERVE {name} 0.0001 1000 TYPE {name} SEED 1", OK),
        (f"TAMIS.CHECK {name} x y", [0, 0], [0, 0]),
        (f"TAMIS.ADD {name} x y x", [1, 1, 0], [1, 1, 0]),
        (f"TAMIS.CHECK {name} x", [1], [1]),
        (f"TAMIS.CHECK {name} x z y", [1, 0, 1], [1, 0, 1]),
        (f"TAMIS.DEL {name} x z", [1, 0], [1, 0]), (f"TAMIS.CHECK {name} x", [1], [1]),
        (f"TAMIS.DEL {name} x", [1], [1]), (f"TAMIS.CHECK {name} x y", [0, 1], [0, 1]),
        (["TAMIS.ADD", name, "", b"\0\r\n\xff"], [1, 1], [1, 1]),
        (["TAMIS.CHECK", name, "", b"\0\r\n\xff", b"\0\r\n"], [1, 1, 0], [1, 1, 0]),
        (f"TAMIS.INFO {name}", fields(Hits=7, Misses=5, Unknown=0)))),
    *(row for name in OTHERS for row in (
        (f"TAMIS.RESERVE {name} 0.0001 1000 TYPE {name} SEED 1", OK),
        (f"TAMIS.ADD {name} x y x", [1, 1, 0], [1, 1, 0]),
        (f"TAMIS.CHECK {name} x z y", [1, 0, 1], [1, 0, 1]),
        (f"TAMIS.DEL {name} x", Error("ERR a filter of this type does not erase: make one of another TYPE")))),
    ("TAMIS.RESERVE full 0.01 1 TYPE cuckoo SEED 1", OK),
    (["TAMIS.ADD", "full", "x"] + [f"y{i}" for i in range(60)], lambda r: r[0] == 1 and r[-1] == -1),
    ("TAMIS.CHECK full x", [1], [1]),
    ("TAMIS.MARK full 0/16B3748", OK), ("TAMIS.INFO full", fields(Mark=b"0/16B3748")),
    (["TAMIS.MARK", "full", b"m" * 1025], Error("ERR a mark has at most 1024 bytes")),
    ("TAMIS.TRUST full", OK),
    # Filters of the other commands.
    ("BF.MADD bf x y", [True, True]), ("TAMIS.CHECK bf x z", [1, 0], [1, 0]),
    ("CF.INSERT cf ITEMS x y", [True, True]), ("TAMIS.CHECK cf x z", [1, 0], [1, 0]),
    *((f"TAMIS.{command} bf{rest}", WRONG_TYPE) for command, rest in
      (("ADD", " x"), ("DEL", " x"), ("INFO", ""), ("TRUST", ""))),
    ("BF.ADD full x", WRONG_TYPE), ("BF.EXISTS full x", False),
]

def near(**expected):
    """Of a map; numbers to a tenth."""
    def right(reply):
        flat = [x for pair in reply for x in pair] if isinstance(reply, Map) else reply
        got = dict(zip(flat[::2], flat[1::2]))
        return len(got) == len(expected) and all(
            got[Simple(name.replace("_", " "))] == value if isinstance(value, bytes)
            else abs(float(got[Simple(name.replace("_", " "))]) / value - 1) < 0.1
            for name, value in expected.items())
    return right


MORE = [
    ("SET string x", OK), ("BF.ADD bf x", True),
    ("TAMIS.COUNT", arity("tamis.count")), ("TAMIS.COUNT none", NOT_FOUND),
    ("TAMIS.COUNT string", WRONG_TYPE), ("TAMIS.COUNT bf", WRONG_TYPE),
    ("TAMIS.RESERVE a 0.01 100 SEED 5", OK), ("TAMIS.COUNT a", 0),
    ("TAMIS.ADD a x y x", [1, 1, 0]), ("TAMIS.COUNT a", 3), ("TAMIS.DEL a x", [1]), ("TAMIS.COUNT a", 2),
    ("TAMIS.SIZE 0.01", arity("tamis.size")), ("TAMIS.SIZE x 100", Error("ERR bad error rate")),
    ("TAMIS.SIZE 0.01 0", Error("ERR bad capacity")), ("TAMIS.SIZE 0.01 100 GUARD", UNKNOWN),
    ("TAMIS.SIZE 0.01 100 SEED 1", UNKNOWN), ("TAMIS.SIZE 0.01 100 TYPE none", starts("ERR no such type")),
    ("TAMIS.SIZE 0.01 4294967296", starts("ERR cannot make a filter: capacity is")),
    ("TAMIS.SIZE 0.01 1000000 SLICES 4", near(Type=b"cuckoo", Bytes=2.13e6, Bits_per_key=15.8, Rate=0.0092)),
    ("TAMIS.SIZE 0.01 100 SLICES 0", Error("ERR bad slices: a window has 1 to 64")),
    ("TAMIS.SIZE 0.01 100 WINDOW 60", UNKNOWN),
    ("TAMIS.SIZE 0.01 1000000 TYPE blocked",
     near(Type=b"blocked", Bytes=1.44e6, Bits_per_key=10.4, Rate=0.01)),
    ("TAMIS.SIZE 0.01 1000000", near(Type=b"blocked-quotient", Bytes=1.71e6, Bits_per_key=12.8, Rate=0.0027)),
    ("TAMIS.SIZE 0.000001 2147483648 TYPE counting",
     near(Type=b"counting", Bytes=32.5e9, Bits_per_key=115, Rate=1e-6)),
    # Unions.
    ("TAMIS.UNION a", arity("tamis.union")), ("TAMIS.UNION u none", NOT_FOUND),
    ("TAMIS.UNION u a none", NOT_FOUND), ("TAMIS.UNION u a string", OTHER_KIND),
    ("TAMIS.UNION string a", OTHER_KIND), ("TAMIS.UNION u a bf", OTHER_KIND),
    ("TAMIS.UNION u bf a", OTHER_KIND), ("TAMIS.UNION bf a", OTHER_KIND), ("TAMIS.UNION a bf", OTHER_KIND),
    ("EXISTS u", 0),
    *(row for i, other in enumerate(("0.01 100 SEED 6", "0.01 200 SEED 5", "0.001 100 SEED 5 TYPE cuckoo"))
      for row in ((f"TAMIS.RESERVE b{i} {other}", OK), (f"TAMIS.UNION u a b{i}", starts("ERR the filters are not alike")),
                  (f"TAMIS.UNION a b{i}", starts("ERR the filters are not alike")))),
    ("EXISTS u", 0), ("TAMIS.COUNT a", 2),
    ("TAMIS.RESERVE b 0.01 100 SEED 5", OK), ("TAMIS.ADD b p q", [1, 1]), ("TAMIS.MARK b m", OK),
    ("TAMIS.UNION u a b a", OK), ("TAMIS.CHECK u x y p q absent", [1, 1, 1, 1, 0]), ("TAMIS.COUNT u", 4),
    ("TAMIS.INFO u", fields(Guard=0, State=b"trusted", Mark=b"", Capacity=100)),
    ("TAMIS.UNION b a b", OK), ("TAMIS.COUNT b", 4), ("TAMIS.INFO b", fields(Mark=b"m")),
    # Trusted when it was there, and all sources are.
    ("TAMIS.RESERVE g 0.01 100 SEED 5 GUARD", OK), ("TAMIS.ADD g g", [1]),
    ("TAMIS.UNION v a g", OK), ("TAMIS.CHECK v x g absent", [-1, -1, -1]),
    ("TAMIS.INFO v", fields(Guard=1, State=b"not trusted")),
    ("TAMIS.TRUST v", OK), ("TAMIS.UNION v g", OK), ("TAMIS.CHECK v x", [-1]),
    ("TAMIS.TRUST g", OK), ("TAMIS.UNION w a g", OK), ("TAMIS.CHECK w x g absent", [-1, -1, -1]),
    ("TAMIS.TRUST w", OK), ("TAMIS.CHECK w x g absent", [1, 1, 0]),
    ("TAMIS.UNION w g", OK), ("TAMIS.CHECK w x g absent", [1, 1, 0]),
    # A filter without GUARD may lack adds of before a restart.
    ("TAMIS.UNION w a g", OK), ("TAMIS.CHECK w x g absent", [-1, -1, -1]),
    ("TAMIS.TRUST w", OK), ("TAMIS.CHECK w x g absent", [1, 1, 0]),
    ("TAMIS.UNION a g", OK), ("TAMIS.CHECK a x g absent", [-1, -1, -1]), ("TAMIS.INFO a", fields(Guard=1)),
    ("TAMIS.TRUST a", OK), ("TAMIS.UNION a g", OK), ("TAMIS.CHECK a x g absent", [1, 1, 0]),
    ("TAMIS.REBUILD a START 0.01 100", lambda r: isinstance(r, int)),
    ("TAMIS.UNION a g", Error("ERR a rebuild is under way: COMMIT or ABORT it first")),
    ("TAMIS.REBUILD alone START 0.01 100", lambda r: isinstance(r, int)),
    ("TAMIS.UNION z alone", Error("ERR there is only a rebuild: COMMIT it")), ("TAMIS.COUNT alone", 0),
    (["TAMIS.ADD", "b"] + [str(i) for i in range(120)], lambda r: len(r) == 120),
    (["TAMIS.ADD", "w"] + [str(i) for i in range(200, 320)], lambda r: len(r) == 120),
    ("TAMIS.UNION y b w", Error("ERR the filters have more items than one of them has places: make them with a "
                                "greater capacity")),
    # For filters of the other commands; one may have grown.
    ("BF.RESERVE x 0.01 10", OK), ("BF.RESERVE y 0.01 10", OK),
    (["BF.MADD", "y"] + [str(i) for i in range(50)], lambda r: len(r) == 50),
    ("BF.ADD x x", True), ("TAMIS.UNION u x", OTHER_KIND), ("TAMIS.UNION both x y", OK),
    (["BF.MEXISTS", "both", "x"] + [str(i) for i in range(50)], [True] * 51),
    ("BF.EXISTS both absent", False), ("TYPE both", Simple("MBbloom--")),
    ("TAMIS.UNION x y", OK), ("BF.EXISTS x 49", True), ("BF.ADD both later", True),
    ("TAMIS.UNION both bf", starts("ERR the filters are not alike")),
    ("BF.RESERVE n 0.01 10 NONSCALING", OK), ("TAMIS.UNION both n", starts("ERR the filters are not alike")),
    ("CF.ADD cf x", True), ("TAMIS.UNION cf2 cf", OTHER_KIND), ("TAMIS.UNION both cf", OTHER_KIND),
    # Dumps.
    *((f"TAMIS.SCANDUMP {rest}", reply) for rest, reply in (
        ("u", arity("tamis.scandump")), ("none 0", NOT_FOUND), ("string 0", WRONG_TYPE), ("bf 0", WRONG_TYPE),
        ("u x", BAD_POSITION), ("u -1", BAD_POSITION),
        ("u 1", Error("ERR no dump is under way: begin at position 0")),
        ("u 0", lambda r: r[0] == 1 and r[1].startswith(b"TMSF")),
        ("u 1", lambda r: r[0] == len(r[1]) + 1 > 100), ("u 100", lambda r: r[0] == len(r[1]) + 100))),
    ("TAMIS.ADD u later", [1]), ("TAMIS.SCANDUMP u 1", lambda r: r[0] == len(r[1]) + 1),
    ("TAMIS.SCANDUMP u 9223372036854775807", [0, b""]),
    ("TAMIS.SCANDUMP u 1", Error("ERR no dump is under way: begin at position 0")),
]

NO_FILTER = [
    ("SET string x", OK),
    *((f"{command} none{rest}", NOT_FOUND) for command, rest in (
        ("BF.EXISTS", " x"), ("BF.MEXISTS", " x y"), ("CF.EXISTS", " x"), ("CF.MEXISTS", " x"),
        ("CF.COUNT", " x"), ("BF.ADD", " x"), ("BF.MADD", " x"), ("BF.INSERT", " ITEMS x"), ("CF.ADD", " x"),
        ("CF.ADDNX", " x"), ("CF.INSERT", " ITEMS x"), ("CF.INSERTNX", " ITEMS x"))),
    *((f"{command} string x", WRONG_TYPE) for command in (
        "BF.EXISTS", "BF.MEXISTS", "CF.EXISTS", "CF.MEXISTS", "CF.COUNT", "BF.ADD", "CF.ADD")),
    ("BF.RESERVE a 0.01 100", OK), ("BF.ADD a x", True), ("BF.EXISTS a x", True),
    ("CF.RESERVE c 100", OK), ("CF.ADD c x", True), ("CF.MEXISTS c x y", [True, False]),
]

CHUNKS = [
    ("SET string x", OK),
    ("TAMIS.LOADCHUNK a 0", arity("tamis.loadchunk")),
    *((["TAMIS.LOADCHUNK", "a", n, "x"], BAD_POSITION) for n in ("x", "-1", str(-2**63))),
    *((["TAMIS.LOADCHUNK", "a", "0", data], BAD) for data in ("", "x", b"\0" * 37, b"TMSF" * 10)),
    ("TAMIS.LOADCHUNK string 0 x", WRONG_TYPE), ("TAMIS.LOADCHUNK a 1 x", NOT_FOUND),
    ("BF.RESERVE b 0.1 10", OK),
]


def main():
    with Server(sys.argv[1]) as server:
        count = sum(run(server, table) for table in (RESERVE, USE, MORE, CHUNKS))
        assert server.alive()
    with Server(sys.argv[1], words=("tamis-auto-create", "no", "tamis-missing-is-error",
                                    "yes")) as server:
        count += run(server, NO_FILTER)
    print(f"{count} rows, on RESP2 and RESP3")


if __name__ == "__main__":
    main()
