#!/usr/bin/env python3
"""The application code of docs/GUARD.md, with each client: it fails open, and refuses no row.

usage: clients_test.py MODULE PAGE DIRECTORY CLIENT...

A CLIENT is redis-py, hiredis=PROGRAM, node-redis or jedis; the last two get their package by npm and
Maven, into DIRECTORY.
"""

import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "redis"))

from application import Application, free_port
from redis_server import Server

MODULE, PAGE, DIRECTORY = map(os.path.abspath, sys.argv[1:4])
CODE = os.path.join(HERE, "..", "..", "examples", "guard", "clients")
FILES = {"redis-py": "rows.py", "hiredis": "rows.c", "node-redis": "rows.mjs", "jedis": "Rows.java"}
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>
<version>1</version><dependencies><dependency><groupId>redis.clients</groupId>
<artifactId>jedis</artifactId><version>5.2.0</version></dependency></dependencies></project>"""


def command(client, path, port):
    name, _, program = client.partition("=")
    directory = os.path.join(DIRECTORY, name)
    if name == "redis-py":
        return ["/usr/bin/python3", os.path.join(CODE, "rows.py"), path]
    if name == "hiredis":
        return [program, path]
    os.makedirs(directory, exist_ok=True)
    if name == "node-redis":
        shutil.copy(os.path.join(CODE, "rows.mjs"), directory)
        if not os.path.exists(os.path.join(directory, "node_modules", "redis")):
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix",
                            directory, "redis@5"], check=True)
        return ["node", os.path.join(directory, "rows.mjs"), path]
    with open(os.path.join(directory, "pom.xml"), "w", encoding="utf-8") as file:
        file.write(POM)
    jars = os.path.join(directory, "jars")
    if not os.path.exists(jars):
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=" + jars],
                       cwd=directory, check=True)
    subprocess.run(["javac", "-cp", jars + "/*", "-d", directory, os.path.join(CODE, "Rows.java")],
                   check=True)
    return ["java", "-cp", jars + "/*:" + directory, "Rows", "127.0.0.1", str(port)]


def refuses_no_row(client):
    port = free_port()
    with Server(MODULE, port=port) as server:
        ask = Application(command(client, server.path, port))
        try:
            steps(server, ask)
        finally:
            ask.end()


def steps(server, ask):
    redis = server.client()

    def answers(line, *right):
        got = ask(line)
        assert got in right, (line, got)

    # Without a filter: the database has the answers, and rows are committed.
    answers("look_up 1", "none asked")
    answers("insert 1", "none spared", "row spared")
    answers("look_up 1", "row asked")
    assert isinstance(redis("TAMIS.REBUILD", "items", "START", "0.0001", "100"), int)
    answers("insert 2", "none spared", "row spared")
    assert redis("TAMIS.REBUILD", "items", "ADD", "1") == 1
    assert redis("TAMIS.REBUILD", "items", "COMMIT") == "OK"
    for row in ("1", "2"):
        answers(f"look_up {row}", "row asked")
    answers("look_up absent", "none spared")
    # Erased keys are those of deleted rows; not when another filter has come in between, which each program's own
    # generation tells and the tests of the commands show.
    answers("delete 2", "none spared", "row spared")
    answers("look_up 2", "none spared")
    assert redis("TAMIS.CHECK", "items", "1") == [1]
    # A delete that finds no row erases nothing: the key belongs to another program's insert.
    assert redis("TAMIS.ADD", "items", "8") == [1]
    answers("delete 8", "none spared", "row spared")
    assert redis("TAMIS.CHECK", "items", "8") == [1]
    # A server that gives no answer, or none in time.
    os.kill(server.process.pid, signal.SIGSTOP)
    answers("look_up 1", "row asked")
    answers("look_up absent", "none asked")
    answers("insert 3", "failed spared")
    answers("delete 1", "none spared", "row spared")
    os.kill(server.process.pid, signal.SIGCONT)
    answers("look_up 1", "none asked", "none spared")
    assert redis("PING") == "PONG"
    redis("TAMIS.ADD", "items", "5")
    while ask("look_up gone") != "none spared":
        pass  # until it has a connection again
    answers("insert 5", "none spared", "row spared")
    # A filter that is full.
    redis("DEL", "items")
    # With this seed none of the keys below is a false positive.
    assert redis("TAMIS.RESERVE", "items", "0.01", "1", "TYPE", "cuckoo", "SEED", "1") == "OK"
    key = 1000
    while redis("TAMIS.ADD", "items", str(key)) != [-1]:
        key += 1
    answers(f"insert {key}", "failed spared")
    for row in (key, 5):  # neither was added, and the filter was not made with GUARD
        answers(f"look_up {row}", "none spared")
    redis("DEL", "items")
    # A server that is gone, and comes back with nothing.
    server.kill()
    answers("look_up 5", "row asked")
    answers("insert 7", "failed spared")
    answers("delete 5", "none spared", "row spared")
    answers("look_up 7", "none asked")
    server.start()
    answers("look_up 7", "none asked")


def page_has_the_code(name):
    with open(os.path.join(CODE, FILES[name]), encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index("as docs/GUARD.md has it"), text.rindex("--- end ---")
    code = text[text.index("\n", begin) + 1:text.rindex("\n", 0, end)]
    lines = code.rstrip("\n").split("\n")
    least = min(len(line) - len(line.lstrip()) for line in lines if line)
    code = "\n".join(line[least:] for line in lines)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin = page.index(f"<!-- code {name} -->\n") + len(f"<!-- code {name} -->\n")
    end = page.index("<!-- end -->", begin)
    language = {"py": "python", "c": "c", "mjs": "js", "java": "java"}[FILES[name].rsplit(".", 1)[1]]
    block = f"```{language}\n{code}\n```\n"
    if page[begin:end] == block:
        return
    if "--write" not in sys.argv:
        sys.exit(f"{PAGE}: the code of {name} is not that of {FILES[name]}; clients_test.py --write")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page[:begin] + block + page[end:])


def main():
    for client in sys.argv[4:]:
        if client == "--write":
            continue
        page_has_the_code(client.partition("=")[0])
        refuses_no_row(client)
        print(f"{client}: well")


if __name__ == "__main__":
    main()
