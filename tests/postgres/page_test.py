#!/usr/bin/env python3
"""The examples of docs/POSTGRES.md print what the page shows.

usage: page_test.py TAMIS LIBRARY PAGE
"""

import contextlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402  pylint: disable=wrong-import-position

TAMIS, LIBRARY, PAGE = map(os.path.abspath, sys.argv[1:4])


def blocks():
    """The blocks of the part before the first heading of the second level, without their indentation."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read().split("\n## ")[0]
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, flags=re.MULTILINE):
        yield [line[4:] for line in block.strip("\n").splitlines()]


def run_commands(store, lines):
    while lines:
        command = lines.pop(0)
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0)
        command = command.removeprefix("$ ")
        if command.endswith("&"):
            store.start("--write")
        else:
            subprocess.run(["sh", "-ec", command.replace("tamis ", TAMIS + " ", 1)], cwd=store.directory, check=True,
                           stdout=subprocess.DEVNULL)


def run_statements(installation, server, store, lines):
    statements = 0
    while lines:
        statement = lines.pop(0)
        shown = []
        while lines and not re.match(r"[A-Z]+ .*;$", lines[0]):
            shown.append(lines.pop(0))
        asked = statement.replace("127.0.0.1:7470", store.url.removeprefix("http://"))
        done = subprocess.run([os.path.join(installation.binaries, "psql"), "--no-psqlrc", "--quiet", server.dsn, "--command", asked],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if [line.rstrip() for line in done.stdout.strip("\n").splitlines()] != [line.rstrip() for line in "\n".join(shown).strip("\n").splitlines()]:
            sys.exit(f"{statement}\nprints\n{done.stdout}and the page shows\n" + "\n".join(shown))
        statements += 1
    return statements


def main():
    with contextlib.ExitStack() as stack:
        installation = stack.enter_context(servers.Installation(LIBRARY))
        store = stack.enter_context(servers.Store(TAMIS))
        server = stack.enter_context(servers.postgres.Postgres(programs=installation.binaries))
        lines = [line for block in blocks() for line in block]
        first = next(i for i, line in enumerate(lines) if line.startswith("CREATE EXTENSION"))
        run_commands(store, [line for line in lines[:first] if line])
        count = run_statements(installation, server, store, lines[first:])
        assert count == 5, count
        print(f"{count} statements print what the page shows")


main()
