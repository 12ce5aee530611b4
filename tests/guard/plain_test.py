#!/usr/bin/env python3
"""The guard of docs/PLAIN_GUARD.md, on a server without modules, refuses no row, with each client and in random trouble.

Each rule of the script is shown twice: as it is, and changed, where a row is then refused.
usage: plain_test.py PAGE DIRECTORY CLIENT...   A CLIENT as for clients_test.py. Another server: TAMIS_REDIS_SERVER
"""

import os
import random
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "redis"))

from application import Application, free_port
from redis_server import Error, Server

PAGE, DIRECTORY = map(os.path.abspath, sys.argv[1:3])
CODE = os.path.join(HERE, "..", "..", "examples", "guard", "plain")
CLIENTS = os.path.join(HERE, "..", "..", "examples", "guard", "clients")
LUA = os.path.join(CODE, "guard.lua")
with open(LUA, encoding="utf-8") as lua:
    SCRIPT = lua.read()
KEYS = ["{items}:filter", "{items}:trust", "{items}:new", "{items}:rebuild"]
BYTES, HASHES = "2000", "7"
LANGUAGES = {"redis-py": ("rows.py", "python"), "hiredis": ("rows.c", "c"), "node-redis": ("rows.mjs", "js"),
             "jedis": ("Rows.java", "java")}
# Rules, by what they are without.
CHANGED = {
    "restarts are not seen": ("match('run_id:(%w+)')", "match('arch_bits:(%w+)')"),
    "promotions are not seen": ("match('master_replid:(%w+)')", "match('role:(%w+)')"),
    "a filter that is missing is believed": ("== here .. ' ' .. generation_of(filter)", "~= ''"),
    "adds to no filter end no trust": ("redis.call('DEL', note)", "local _ = note"),
    "adds do not go to the new filter": ("[new] = rebuild}", "}"),
    "the trust is of the commit": ("'SET', trust, noted", "'SET', trust, here .. ' ' .. generation"),
    "a filter without bits is believed": ("found == false", "not found"),
    "any rebuild is committed": ("not here or noted ~= here .. ' ' .. generation", "false"),
}


def changed(*names):
    script = SCRIPT
    for name in names:
        before, after = CHANGED[name]
        assert before in script, name
        script = script.replace(before, after)
    return script


class Guard:
    def __init__(self, client, script=SCRIPT):
        self.client, self.script, self.generations = client, script, 0

    def __call__(self, *words):
        return self.client("EVAL", self.script, "4", *KEYS, *words)

    def start(self):
        generation = os.urandom(8).hex()
        assert self("start", generation, BYTES, HASHES) == "OK"
        return generation

    def load(self, rows):
        generation = self.start()
        if rows:
            assert self("load", generation, *rows) == "OK"
        assert self("commit", generation) == "OK"

    def refused(self, rows):
        return sum(self("check", row) == 0 for row in rows)


ROWS = [f"row{i}" for i in range(100)]
LATER = [f"later{i}" for i in range(100)]


def guarded(server, script):
    guard = Guard(server.client(), script)
    guard.load(ROWS)
    assert guard.refused(ROWS) == 0 and guard("check", "absent") == 0
    return guard


def add(guard, rows):
    for row in rows:
        reply = guard("add", row)
        assert isinstance(reply, int) and not isinstance(reply, Error), reply


def answers():
    with Server(None) as server:
        guard = Guard(server.client())
        assert guard("check", "x") == -1 and guard("add", "x") == 0
        guard.load(ROWS)
        assert guard("check", "row1") == 1 and guard("check", "absent") == 0 and guard("add", "x") == 1
        assert guard("check", "x") == 1
        absent = sum(guard("check", f"absent{i}") for i in range(5000))
        assert absent < 20, absent
        first, second = guard.start(), guard.start()
        assert "another rebuild" in guard("load", first, "y") and "start again" in guard("commit", first)
        assert guard("commit", second) == "OK"
        # Each key that goes, is another one, or of another type.
        for key in KEYS[:2]:
            for words in (("DEL", key), ("SET", key, "x"), ("PEXPIREAT", key, "1")):
                guard.load(ROWS)
                guard.client(*words)
                assert guard("check", "absent") in (-1, 1), words
            guard.load(ROWS)
            guard.client("DEL", key)
            guard.client("SADD", key, "x")
            # An error is "unknown", too.
            assert isinstance(guard("check", "absent"), Error) or guard("check", "absent") == -1, key
            guard.client("DEL", key)
        for words in (("FLUSHALL",), ("FLUSHDB", "ASYNC"), ("UNLINK", *KEYS), ("SWAPDB", "0", "1")):
            guard.load(ROWS)
            guard.client(*words)
            assert guard("check", "row1") == -1, words


def sizes():
    """A filter of a size that cannot be is not begun, whatever estimate of the rows it was computed from."""
    sizes = ("0", "-1", "-3", "-4", "-30", "-20000", "", "x", "1e3", "10.5", "0x10", " 10", "10 ", "nan", "inf",
             str(512 << 20), "9" * 400)
    wrong = [(size, "7") for size in sizes] + [("100", hashes) for hashes in sizes + ("101", "99999", "7.5")]
    with Server(None) as server:
        guard = Guard(server.client())
        for size, hashes in wrong:
            generation = os.urandom(8).hex()
            reply = guard("start", generation, size, hashes)
            assert isinstance(reply, Error) and "is a whole number from 1 to" in reply, (size, hashes, reply)
            for words in (("load", generation, *ROWS), ("commit", generation)):
                assert isinstance(guard(*words), Error), (size, hashes, words)
            assert guard("check", "row1") == -1, (size, hashes)
        for size, hashes in (("1", "1"), ("1", "100"), ("3", "7"), ("007", "07")):
            generation = os.urandom(8).hex()
            assert guard("start", generation, size, hashes) == "OK"
            assert guard("load", generation, *ROWS) == "OK" and guard("commit", generation) == "OK"
            assert guard.refused(ROWS) == 0, (size, hashes)
        assert guard("start", "0123456789abcdef", "100", "7") == "OK"
        for words in ((), ("nonsense", "x"), ("__index", "x"), ("check",), ("check", "x", "y"), ("add",), ("load",), ("start",),
                      ("start", "0" * 16, "100"), ("commit",), ("start", "short", "100", "7")):
            reply = guard(*words)
            assert isinstance(reply, Error) and "Script" not in reply and "script:" not in reply, (words, reply)
        assert "four keys" in guard.client("EVAL", SCRIPT, "1", KEYS[0], "check", "x")


def filter_without_bits(script):
    """Something cuts the new filter off, and rows are added, loaded and committed; or the filter that is trusted."""
    denied = 0
    for header in (b"0007", b"0000", b"000x", b"00"):
        for cut in (KEYS[2], KEYS[0]):
            with Server(None) as server:
                guard = guarded(server, script)
                generation = guard.start()
                assert guard("load", generation, *ROWS) == "OK"
                if cut == KEYS[0]:
                    assert guard("commit", generation) == "OK"
                guard.client("SET", cut, generation.encode() + header)
                if cut == KEYS[2]:
                    assert isinstance(guard("load", generation, *ROWS), Error) or script != SCRIPT
                    assert isinstance(guard("commit", generation), Error) or script != SCRIPT
                denied += guard.refused(ROWS)
    return denied


def restart(script):
    """The end of the data is lost."""
    with Server(None) as server:
        guard = guarded(server, script)
        assert guard.client("SAVE") == "OK"
        add(guard, LATER)
        server.kill()
        server.start()
        return Guard(server.client(), script).refused(ROWS + LATER)


def failover(script):
    """A replica that lacks the last adds is promoted, without WAIT; before that it is asked."""
    with Server(None, "repl-diskless-sync-delay", "0") as primary, Server(None) as other:
        follow(primary, other)  # a first replica begins another history
        guard = guarded(primary, script)
        synchronized(guard.client)
        cut(primary)
        add(guard, LATER)
        behind = Guard(other.client(), script).refused(ROWS + LATER)
        assert other.client()("REPLICAOF", "NO", "ONE") == "OK"
        return behind + Guard(other.client(), script).refused(ROWS + LATER)


def failover_and_back(script):
    """The first server, which was the replica meanwhile, is promoted while it lacks the last adds."""
    with Server(None, "repl-diskless-sync-delay", "0") as first, Server(None, "repl-diskless-sync-delay", "0") as second:
        follow(first, second)
        guard = guarded(first, script)
        synchronized(guard.client)
        cut(first)
        assert second.client()("REPLICAOF", "NO", "ONE") == "OK"
        follow(second, first)
        cut(second)
        add(Guard(second.client(), script), LATER)
        assert first.client()("REPLICAOF", "NO", "ONE") == "OK"
        return guard.refused(ROWS + LATER)


def filter_that_goes(script):
    """Evicted, and made anew by something else."""
    with Server(None) as server:
        guard = guarded(server, script)
        guard.client("DEL", KEYS[0])
        guard.client("SET", KEYS[0], b"0" * 16 + b"0007" + bytes(100))
        return guard.refused(ROWS)


def renamed_and_back(script):
    with Server(None) as server:
        guard = guarded(server, script)
        assert guard.client("RENAME", KEYS[0], "{items}:away") == "OK"
        add(guard, LATER)
        assert guard.client("RENAME", "{items}:away", KEYS[0]) == "OK"
        return guard.refused(LATER)


def adds_during_a_rebuild(script):
    with Server(None) as server:
        guard = guarded(server, script)
        generation = guard.start()
        add(guard, LATER)
        guard("load", generation, *ROWS)
        guard("commit", generation)
        return guard.refused(ROWS + LATER)


def restart_during_a_rebuild(script):
    with Server(None) as server:
        guard = guarded(server, script)
        generation = guard.start()
        guard("load", generation, *ROWS)
        assert guard.client("SAVE") == "OK"
        add(guard, LATER)
        server.kill()
        server.start()
        guard = Guard(server.client(), script)
        guard("commit", generation)
        return guard.refused(ROWS + LATER)


def new_filter_that_goes(script):
    """It is away while rows are added."""
    with Server(None) as server:
        guard = guarded(server, script)
        generation = guard.start()
        guard("load", generation, *ROWS)
        guard.client("RENAME", KEYS[2], "{items}:away")
        add(guard, LATER)
        guard.client("RENAME", "{items}:away", KEYS[2])
        guard("commit", generation)
        return guard.refused(ROWS + LATER)


def follow(primary, replica):
    client, reader = primary.client(), replica.client()
    port = str(free_port())
    assert client("CONFIG", "SET", "port", port) == "OK"
    assert reader("REPLICAOF", "127.0.0.1", port) == "OK"
    while b"master_link_status:up" not in reader("INFO", "replication"):
        pass
    synchronized(client)


def synchronized(client):
    client("SET", "marker", "x")
    while client("WAIT", "1", "1000") < 1:
        pass


def cut(primary):
    client = primary.client()
    assert client("CONFIG", "SET", "port", "0") == "OK"
    client("CLIENT", "KILL", "TYPE", "replica")


class Insert:
    """An insert in its steps, and the rows of a database: committed and, while it lasts, open."""

    def __init__(self, row):
        self.row, self.added = row, False


def random_trouble(script, seed, steps=1500):
    """Answers how many committed rows were refused."""
    rng = random.Random(seed)
    refused = 0
    with Server(None, "repl-diskless-sync-delay", "0") as one, Server(None, "repl-diskless-sync-delay", "0") as two:
        primary, other = one, two
        guards = {one: Guard(one.client(), script), two: Guard(two.client(), script)}
        rows, opened = set(), []
        loading = None  # generation, inserts that were open at its start, whether the rows are read
        linked = False

        def ask(server, row):
            nonlocal refused
            if guards[server]("check", row) == 0:
                refused += 1
                assert script != SCRIPT, f"seed {seed}: {row} is refused"
        for step in range(steps):
            guard = guards[primary]
            action = rng.randrange(100)
            if action < 25:
                opened.append(Insert(f"row{step}"))
            elif action < 60 and opened:
                insert = rng.choice(opened)
                if not insert.added:
                    insert.added = isinstance(guard("add", insert.row), int)
                else:
                    opened.remove(insert)
                    rows.add(insert.row)
                    ask(primary, insert.row)
            elif action < 62 and opened:
                opened.remove(rng.choice(opened))  # rolled back
            elif action < 70:
                # A load waits for the inserts that were open at its start, reads the rows, and commits.
                if loading is None:
                    loading = [guard.start(), list(opened), False]
                elif not any(insert in opened for insert in loading[1]):
                    if not loading[2]:
                        guard("load", loading[0], *rows, "x")
                        loading[2] = True
                    else:
                        guard("commit", loading[0])
                        loading = None
            elif action < 72:
                guard.client("DEL", rng.choice(KEYS))
            elif action == 72 and rng.randrange(4) == 0:
                guard.client("FLUSHALL")
            elif action == 73:
                key = rng.choice(KEYS)
                if guard.client("RENAME", key, "{items}:away") == "OK":
                    if opened:
                        guard("add", opened[0].row)
                    guard.client("RENAME", "{items}:away", key)
            elif action == 74:
                guard.client("SAVE")
            elif action == 75 and rng.randrange(3) == 0:
                primary.kill()
                primary.start()
                guards[primary] = Guard(primary.client(), script)
                linked = False
            elif action == 76 and rng.randrange(2) == 0:
                follow(primary, other)
                linked = True
            elif action == 77 and linked and rng.randrange(2) == 0:
                cut(primary)
                for row in opened:
                    row.added = row.added or isinstance(guard("add", row.row), int)
                assert other.client()("REPLICAOF", "NO", "ONE") == "OK"
                primary, other, linked = other, primary, False
            elif rows:
                ask(primary, rng.choice(sorted(rows)))
                ask(other if linked else primary, rng.choice(sorted(rows)[-20:]))
    return refused


SHOWN = (
    (restart, "restarts are not seen", "promotions are not seen"), (failover, "restarts are not seen"),
    (failover_and_back, "promotions are not seen"), (filter_that_goes, "a filter that is missing is believed"),
    (renamed_and_back, "adds to no filter end no trust"), (adds_during_a_rebuild, "adds do not go to the new filter"),
    (restart_during_a_rebuild, "any rebuild is committed", "the trust is of the commit"),
    (new_filter_that_goes, "adds to no filter end no trust"),
    (filter_without_bits, "a filter without bits is believed"),
)


def command(client, path, port):
    name, _, program = client.partition("=")
    directory = os.path.join(DIRECTORY, name)  # where clients_test.py has put the packages
    if name == "redis-py":
        return ["/usr/bin/python3", os.path.join(CODE, "rows.py"), path]
    if name == "hiredis":
        return [program, path, LUA]
    if name == "node-redis":
        for file in ("rows.mjs", "guard.lua"):
            shutil.copy(os.path.join(CODE, file), os.path.join(directory, "plain-" + file if file == "rows.mjs" else file))
        return ["node", os.path.join(directory, "plain-rows.mjs"), path]
    classes = os.path.join(directory, "plain")
    jars = os.path.join(directory, "jars")
    os.makedirs(classes, exist_ok=True)
    subprocess.run(["javac", "-cp", jars + "/*", "-d", classes, os.path.join(CODE, "Rows.java")], check=True)
    return ["java", "-cp", jars + "/*:" + classes, "Rows", "127.0.0.1", str(port), LUA]


def refuses_no_row(client):
    port = free_port()
    with Server(None, port=port) as server:
        ask = Application(command(client, server.path, port))
        try:
            steps(server, ask)
        finally:
            ask.end()


def steps(server, ask):
    guard = Guard(server.client())

    def check(line, *right):
        got = ask(line)
        assert got in right, (line, got)
    # Without a filter: the database has the answers, and rows are committed.
    check("look_up 1", "none asked")
    check("insert 1", "none spared", "row spared")
    check("look_up 1", "row asked")
    generation = guard.start()
    check("insert 2", "none spared", "row spared")
    assert guard("load", generation, "1") == "OK" and guard("commit", generation) == "OK"
    for row in ("1", "2"):
        check(f"look_up {row}", "row asked")
    check("look_up absent", "none spared")
    check("delete 2", "none spared", "row spared")
    check("look_up 2", "none asked")  # it stays in the filter
    # A server that gives no answer, or none in time.
    os.kill(server.process.pid, signal.SIGSTOP)
    check("look_up 1", "row asked")
    check("look_up absent", "none asked")
    check("insert 3", "failed spared")
    os.kill(server.process.pid, signal.SIGCONT)
    assert guard.client("PING") == "PONG"
    while ask("look_up gone") != "none spared":
        pass  # until it has a connection again
    check("insert 5", "none spared", "row spared")
    check("look_up 5", "row asked")
    # Keys that go, and a server that goes.
    guard.client("DEL", KEYS[0])
    check("look_up 5", "row asked")
    check("look_up absent", "none asked")
    server.kill()
    check("look_up 5", "row asked")
    check("insert 7", "failed spared")
    check("look_up 7", "none asked")
    server.start()
    check("look_up 7", "none asked")


def page_has(path, name, language, whole=False):
    with open(path, encoding="utf-8") as file:
        code = file.read()
    if not whole:
        begin, end = code.index("as the page has it"), code.rindex("--- end ---")
        code = code[code.index("\n", begin) + 1:code.rindex("\n", 0, end)]
        lines = code.rstrip("\n").split("\n")
        least = min(len(line) - len(line.lstrip()) for line in lines if line)
        code = "\n".join(line[least:] for line in lines) + "\n"
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin = page.index(f"<!-- code {name} -->\n") + len(f"<!-- code {name} -->\n")
    end = page.index("<!-- end -->", begin)
    block = f"```{language}\n{code}```\n"
    if page[begin:end] == block:
        return
    if "--write" not in sys.argv:
        sys.exit(f"{PAGE}: the code of {name} is not that of {path}; plain_test.py --write")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page[:begin] + block + page[end:])


def main():
    page_has(LUA, "guard.lua", "lua", whole=True)
    for name, (file, language) in LANGUAGES.items():
        page_has(os.path.join(CODE, file), name, language)
    answers()
    sizes()
    for rule, *names in SHOWN:
        assert rule(SCRIPT) == 0, rule.__name__
        assert rule(changed(*names)) > 0, f"{rule.__name__}: no row is refused where {names}"
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    for i in range(3):
        random_trouble(SCRIPT, seed + i)
    # The same check sees rows that are refused.
    without = changed("adds do not go to the new filter", "a filter that is missing is believed")
    assert any(random_trouble(without, seed + i) for i in range(20)), seed
    for client in sys.argv[3:]:
        if client == "--write":
            continue
        refuses_no_row(client)
        print(f"{client}: well")


if __name__ == "__main__":
    main()
