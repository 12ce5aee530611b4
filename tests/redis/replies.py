"""Runs a table of commands and replies against a fresh server, on RESP2 and on RESP3.

A row is (command, reply) or (command, reply on RESP2, reply on RESP3). A command is a string that is
split at blanks, or a list of words. A reply that is a function is called with the reply and says
whether it is right. A boolean reply is written as True or False and is 1 or 0 on RESP2.
"""

from redis_server import Error, Map, Simple


def arity(command):
    return Error(f"ERR wrong number of arguments for '{command}' command")


def starts(text):
    return lambda reply: isinstance(reply, Error) and reply.startswith(text)


def info_fields(expected, number=None):
    """Right is an INFO, a map on RESP3 and flat on RESP2, that has these among its `number` fields."""
    def right(reply):
        flat = [x for pair in reply for x in pair] if isinstance(reply, Map) else reply
        got = dict(zip(flat[::2], flat[1::2]))
        return number in (None, len(got)) and all(got[Simple(name.replace("_", " "))] == value
                                                  for name, value in expected.items())
    return right


def resp2(reply):
    """What a RESP3 reply is on RESP2."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, Map):
        return [resp2(x) for pair in reply for x in pair]
    if isinstance(reply, list):
        return [resp2(x) for x in reply]
    return reply


def same(reply, expected):
    if isinstance(expected, str) and not isinstance(reply, str):
        return False
    if isinstance(expected, list):
        return (isinstance(reply, list) and isinstance(reply, Map) == isinstance(expected, Map)
                and len(reply) == len(expected) and all(map(same, reply, expected)))
    if isinstance(expected, tuple):
        return (isinstance(reply, tuple) and len(reply) == len(expected)
                and all(map(same, reply, expected)))
    return type(reply) is type(expected) and reply == expected


def run(server, table):
    """The number of rows; fails with all that are wrong."""
    wrong = []
    for protocol in (2, 3):
        client = server.client(protocol)
        client("FLUSHALL")
        for row in table:
            command = row[0].split() if isinstance(row[0], str) else row[0]
            expected = row[-1]
            if protocol == 2 and not callable(expected):
                expected = row[1] if len(row) == 3 else resp2(expected)
            reply = client(*command)
            if not (expected(reply) if callable(expected) else same(reply, expected)):
                wrong.append(f"RESP{protocol} {row[0]}\n    expected {expected!r}\n    got      {reply!r}")
        client.close()
    assert not wrong, "\n".join([f"{len(wrong)} replies are wrong:"] + wrong)
    return len(table)
