"""usage: redis_py.py PORT EVERY_COMMAND"""

import sys

import redis

ITEM = b"\0\r\n\xff"


def inserted(info):
    """On RESP2 the client makes an object of INFO, on RESP3 it gives the map."""
    if hasattr(info, "insertedNum"):
        return info.insertedNum
    name = "Number of items inserted"
    return info[name] if name in info else info[name.encode()]


def check(r):
    r.flushall()
    bf, cf = r.bf(), r.cf()
    assert bf.reserve("b", 0.01, 1000)
    assert [int(bf.add("b", x)) for x in ("x", "x", ITEM)] == [1, 0, 1]
    assert list(map(int, bf.madd("b", "x", "y"))) == [0, 1]
    assert list(map(int, bf.insert("i", ["x", "y"], capacity=100, error=0.1, expansion=4))) == [1, 1]
    assert int(bf.exists("b", ITEM)) == 1 and int(bf.exists("b", "absent")) == 0
    assert list(map(int, bf.mexists("b", "x", "absent", ITEM))) == [1, 0, 1]
    assert bf.card("b") == 3
    assert inserted(bf.info("b")) == 3
    try:
        bf.reserve("b", 0.01, 1000)
        raise AssertionError("reserved twice")
    except redis.ResponseError as error:
        assert str(error) == "item exists", error
    raw = redis.Redis(port=PORT, decode_responses=False, protocol=r.get_connection_kwargs().get("protocol", 2))
    for name, commands in (("b", raw.bf()), ("c", raw.cf())):
        if name == "c":
            assert cf.create("c", 1000)
            assert [int(cf.add("c", "x")), int(cf.addnx("c", "x")), int(cf.add("c", ITEM))] == [1, 0, 1]
        position = 0
        while True:
            position, data = commands.scandump(name, position)
            if position == 0:
                break
            assert commands.loadchunk("copy" + name, position, data)
    assert int(bf.exists("copyb", ITEM)) == 1 and int(bf.exists("copyb", "absent")) == 0
    assert int(cf.exists("copyc", ITEM)) == 1 and int(cf.exists("copyc", "absent")) == 0
    assert list(map(int, cf.insert("c", ["y", "z"]))) == [1, 1]
    assert list(map(int, cf.insertnx("c", ["y", "new"]))) == [0, 1]
    assert list(map(int, cf.mexists("c", "x", "absent"))) == [1, 0]
    assert cf.count("c", "x") == 1 and int(cf.delete("c", "x")) == 1 and int(cf.delete("c", "x")) == 0
    assert inserted(cf.info("c")) == 4
    call = r.execute_command
    assert call("TAMIS.RESERVE", "t", 0.01, 1000, "GUARD") in (b"OK", "OK")
    assert call("TAMIS.ADD", "t", "x", ITEM) == [1, 1] and call("TAMIS.CHECK", "t", "x") == [-1]
    assert call("TAMIS.TRUST", "t") in (b"OK", "OK")
    assert call("TAMIS.CHECK", "t", "x", ITEM, "absent") == [1, 1, 0]
    assert call("TAMIS.CHECK", "none", "x") == [-1]
    pipe = r.pipeline(transaction=True)
    pipe.bf().madd("p", "x", "y")
    pipe.execute_command("TAMIS.DEL", "t", "x")
    pipe.execute_command("TAMIS.MARK", "t", "m")
    pipe.execute_command("TAMIS.CHECK", "t", "x", ITEM)
    replies = pipe.execute()
    assert replies[1] == [1] and replies[3] == [0, 1], replies


def every_command(r):
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            expected, *words = line.split()
            try:
                r.execute_command(*words)
                got = "ok"
            except redis.ResponseError:
                got = "error"
            assert got == expected, line


PORT = int(sys.argv[1])
for protocol in (2, 3):
    for decode in (False, True):
        check(redis.Redis(port=PORT, protocol=protocol, decode_responses=decode))
        every_command(redis.Redis(port=PORT, protocol=protocol))
