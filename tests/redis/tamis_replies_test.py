#!/usr/bin/env python3
"""Every reply, error and shape of TAMIS.* on a real server. usage: tamis_replies_test.py MODULE"""

import sys

from redis_server import Error, Map, Server, Simple
from replies import run

OK = Simple("OK")
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_FOUND = Error("ERR not found")
PARTIAL = Error("ERR the filter is being loaded: chunks are missing")
UNKNOWN = Error("Unknown argument received")
BAD = Error("ERR received bad data")
ERASING = ("blocked-quotient", "cuckoo", "quotient", "d-left", "blocked-counting", "projected",
           "counting", "dynamic-count", "split-counting", "scalable")
OTHERS = ("blocked", "bloom", "scalable-bloom")


def arity(command):
    return Error(f"ERR wrong number of arguments for '{command}' command")


def starts(text):
    return lambda reply: isinstance(reply, Error) and reply.startswith(text)


def fields(**expected):
    """Of INFO, a map on RESP3 and flat on RESP2."""
    def right(reply):
        flat = [x for pair in reply for x in pair] if isinstance(reply, Map) else reply
        got = dict(zip(flat[::2], flat[1::2]))
        return len(got) == 21 and all(got[Simple(name.replace("_", " "))] == value
                                      for name, value in expected.items())
    return right


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
    ("TAMIS.RESERVE b 0.01 100 TYPE cuckoo", OK),
    ("TAMIS.INFO b", fields(Type=b"cuckoo", Guard=0, State=b"trusted")),
]

USE = [
    ("SET string x", OK),
    *((f"TAMIS.{command} a", arity(f"tamis.{command.lower()}")) for command in
      ("ADD", "DEL", "CHECK", "MARK")),
    ("TAMIS.INFO", arity("tamis.info")), ("TAMIS.TRUST", arity("tamis.trust")),
    *((f"TAMIS.{command} none{rest}", NOT_FOUND) for command, rest in
      (("ADD", " x"), ("DEL", " x"), ("MARK", " x"), ("INFO", ""), ("TRUST", ""))),
    *((f"TAMIS.{command} string{rest}", WRONG_TYPE) for command, rest in
      (("ADD", " x"), ("DEL", " x"), ("MARK", " x"), ("INFO", ""), ("TRUST", ""))),
    ("EXISTS none", 0),
    # What is not known is never "no".
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
        (f"TAMIS.DEL {name} x", Error("ERR a filter of this type does not erase")))),
    ("TAMIS.RESERVE full 0.01 1 TYPE cuckoo SEED 1", OK),
    (["TAMIS.ADD", "full"] + ["x"] * 20, lambda r: r[0] == 1 and r[1] == 0 and r[-1] == -1),
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

CHUNKS = [
    ("SET string x", OK),
    ("TAMIS.LOADCHUNK a 0", arity("tamis.loadchunk")),
    *((["TAMIS.LOADCHUNK", "a", n, "x"], Error("ERR bad position")) for n in ("x", "-1", str(-2**63))),
    *((["TAMIS.LOADCHUNK", "a", "0", data], BAD) for data in ("", "x", b"\0" * 37, b"TMSF" * 10)),
    ("TAMIS.LOADCHUNK string 0 x", WRONG_TYPE), ("TAMIS.LOADCHUNK a 1 x", NOT_FOUND),
    ("BF.RESERVE b 0.1 10", OK),
]


def main():
    with Server(sys.argv[1]) as server:
        count = sum(run(server, table) for table in (RESERVE, USE, CHUNKS))
        assert server.alive()
    print(f"{count} rows, on RESP2 and RESP3")


if __name__ == "__main__":
    main()
