#!/usr/bin/env python3
"""Makes the feed of changes for `tamis guard follow` of what PostgreSQL's pg_recvlogical writes.

    pg_recvlogical -d shop --slot guard --create-slot --plugin test_decoding
    pg_recvlogical -d shop --slot guard --start --file changes.log &

    # All rows, and as the first line the snapshot that shows them: that is the mark.
    tamis guard load --key items --capacity 1000000 --database dbname=shop \
      --query 'SELECT id FROM items' --mark-first --command '
      psql -qAtX -v ON_ERROR_STOP=1 -d shop -c "BEGIN ISOLATION LEVEL REPEATABLE READ"
        -c "SELECT pg_current_snapshot()" -c "COPY (SELECT id FROM items) TO STDOUT" -c COMMIT'

    # From the mark on, whatever happened before.
    mark=$(tamis guard status --key items --mark)
    tail -n +1 -F changes.log | change_feed.py --table public.items --column id --after "$mark" |
      tamis guard follow --key items --after "$mark"

pg_recvlogical keeps the changes in a file and tells PostgreSQL how far they are on the disk; it does
not know how far the filter is, so the file is read from its beginning, and what the mark covers is left
out. A mark is SNAPSHOT or SNAPSHOT@XID: the transactions up to XID, in the order of their commits, and
those that the snapshot shows wherever they stand, are in the filter. The file may be cut where a mark
has been passed for long. --caught-up TEXT prints "!" where the database was made to say TEXT:

    psql -d shop -c "SELECT pg_logical_emit_message(false, 'tamis', 'TEXT')"

The column must be the primary key, or a part of the replica identity.
"""

import argparse
import re
import sys


class Snapshot:
    """What pg_current_snapshot() prints: xmin:xmax:xip,..."""

    def __init__(self, text):
        if not re.fullmatch(r"\d+:\d+:(\d+(,\d+)*)?", text):
            sys.exit(f"change_feed: \"{text}\" is no snapshot")
        xmin, xmax, running = text.split(":")
        self.xmin, self.xmax = int(xmin), int(xmax)
        self.running = {int(xid) for xid in running.split(",") if xid}

    def shows(self, xid):
        """xid as the log has it: the lower 32 bits."""
        near = xid + (self.xmax - xid + 2**31 >> 32 << 32)
        return near < self.xmax and near not in self.running


def messages(lines):
    """What the decoder wrote: a text within quotes may have line ends, and quotes come in pairs."""
    whole = ""
    for line in lines:
        whole += line
        if whole.count("'") % 2 == 0:
            yield whole.rstrip("\n")
            whole = ""


def columns(text):
    """The values of `name[type]:value ...`; null is None."""
    found = {}
    for name, quoted, bare in re.findall(
            r"""("(?:[^"]|"")*"|[^\s\[\]:]+)\[(?:[^\]\[]|\[\])*\]:(?:'((?:[^']|'')*)'|(\S+))""", text):
        name = name.strip('"').replace('""', '"')
        found[name] = None if bare == "null" else bare if bare else quoted.replace("''", "'")
    return found


class Table:
    def __init__(self, name, column):
        self.start, self.name, self.column = f"table {name}: ", name, column

    def key(self, text):
        values = columns(text)
        if self.column not in values:
            sys.exit(f"change_feed: a change of {self.name} does not tell {self.column}, which is no "
                     f"part of its replica identity: {text[:200]}")
        return values[self.column]

    def changes(self, message):
        """(sign, key) of each change in a message."""
        if not message.startswith(self.start):
            return
        what, _, rest = message[len(self.start):].partition(": ")
        if what == "INSERT":
            yield "+", self.key(rest)
        elif what == "DELETE":
            yield "-", self.key(rest)
        elif what == "UPDATE" and rest.startswith("old-key: "):
            old, _, new = rest[len("old-key: "):].partition(" new-tuple: ")
            if self.key(old) != self.key(new):
                yield "-", self.key(old)
                yield "+", self.key(new)
        elif what == "TRUNCATE":
            sys.exit(f"change_feed: {self.name} was truncated: load the filter anew")


def escape(key):
    return key.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", required=True, help="with its schema, as public.items")
    parser.add_argument("--column", required=True)
    parser.add_argument("--after", required=True, metavar="MARK")
    parser.add_argument("--caught-up", metavar="TEXT")
    arguments = parser.parse_args()
    snapshot_text, _, last = arguments.after.partition("@")
    snapshot, table = Snapshot(snapshot_text), Table(arguments.table, arguments.column)
    behind = last == ""  # the last transaction that was applied
    pending = []
    marker = f" prefix: tamis, sz: {len((arguments.caught_up or '').encode())} content:"
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    for message in messages(sys.stdin):
        if message.startswith("BEGIN "):
            pending = []
        elif message.startswith("COMMIT "):
            xid = message.split()[1]
            if behind and not snapshot.shows(int(xid)) and pending:
                print(*pending, f"={snapshot_text}@{xid}", sep="\n", flush=True)
            behind = behind or xid == last
        elif message.startswith("message: "):
            if behind and arguments.caught_up and message.endswith(marker + arguments.caught_up):
                print("!", flush=True)
        else:
            pending += [sign + escape(key) for sign, key in table.changes(message) if key is not None]
    if not behind:
        sys.exit(f"change_feed: the log ended before transaction {last}, which the mark names")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit("change_feed: nobody reads the feed any more")
