#!/usr/bin/env python3
"""Holds the tables of docs/REDIS.md against what the module itself says on a server, and the session that README.md shows against
its replies.

usage: page_test.py MODULE PAGE [--write]
"""

import os
import re
import sys

from redis_server import Server


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def syntax(arguments):
    words = []
    for flat in arguments:
        argument = pairs(flat)
        kind, flags = argument[b"type"], argument.get(b"flags", [])
        if kind == b"pure-token":
            word = argument[b"token"].decode()
        elif kind == b"block":
            word = syntax(argument[b"arguments"])
        elif kind == b"oneof":
            word = " / ".join(syntax([one]) for one in argument[b"arguments"])
            if "optional" not in flags:
                word = f"({word})"
        else:
            word = argument[b"name"].decode()
        if "multiple" in flags:
            word += "..."
        words.append(f"[{word}]" if "optional" in flags else word)
    return " ".join(words)


def command_table(client, prefix):
    names = sorted(name for name in client("COMMAND", "LIST") if name.startswith(prefix))
    rows = ["| command | flags | what it does |", "|---|---|---|"]
    for name in names:
        docs = pairs(client("COMMAND", "DOCS", name)[1])
        flags = [f for f in client("COMMAND", "INFO", name)[0][2] if f != "module"]
        words = f"{name.decode().upper()} {syntax(docs.get(b'arguments', []))}".rstrip()
        rows.append(f"| `{words}` | {' '.join(flags)} |"
                    f" {docs[b'summary'].decode()} |")
    return rows


def settings_table(client, page):
    """The settings with their defaults; the third column is the page's own and must not be empty."""
    rows = ["| setting | default | meaning, unit, range |", "|---|---|---|"]
    settings = pairs(client("CONFIG", "GET", "bf.*"))
    for name in sorted(settings):
        head = f"| `{name.decode()}` | {settings[name].decode()} |"
        meaning = re.search(rf"^\| `{re.escape(name.decode())}` \| [^|]* \| (.*) \|$", page, flags=re.MULTILINE)
        if meaning is None:
            sys.exit(f"the table of settings does not say what {name.decode()} means")
        rows.append(f"{head} {meaning.group(1)} |")
    return rows


def shown(reply):
    """A reply as redis-cli prints it."""
    if isinstance(reply, list):
        return [f"{i}) {line}" for i, one in enumerate(reply, 1) for line in shown(one)]
    return [f"(integer) {reply}" if isinstance(reply, int) else str(reply)]


def check_session(client, readme):
    """The lines "> COMMAND" of the README give the replies below them."""
    with open(readme, encoding="utf-8") as file:
        session = re.findall(r"^    > (.*)\n((?:    [^>$].*\n)*)", file.read(), flags=re.MULTILINE)
    if len(session) < 4:
        sys.exit(f"{readme} has no session with the module")
    for command, replies in session:
        expected = [line.strip() for line in replies.splitlines()]
        if shown(client(*command.split())) != expected:
            sys.exit(f"{readme}: the module does not answer \"{command}\" so: {expected}")


def main():
    module, page = sys.argv[1:3]
    with open(page, encoding="utf-8") as file:
        old = file.read()
    # The page shows the names of settings as that server has them.
    with Server(module, binary="redis-server") as server:
        client = server.client()
        tables = {"BF": command_table(client, b"bf."), "CF": command_table(client, b"cf."),
                  "TAMIS": command_table(client, b"tamis."), "settings": settings_table(client, old)}
        check_session(client, os.path.join(os.path.dirname(page), "../README.md"))
    new = old
    for name, rows in tables.items():
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->\n"
        if begin not in new:
            if len(rows) > 2:
                sys.exit(f"{page} has no table {name}")
            continue
        head, rest = new.split(begin)
        new = head + begin + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1]
    if "--write" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != old:
        sys.exit(f"{page} does not say what the module does; run {sys.argv[0]} MODULE PAGE --write")


if __name__ == "__main__":
    main()
