#!/usr/bin/env python3
"""tamis guard load: no row that was committed is refused, whatever goes on beside it.

Each interleaving runs on a real PostgreSQL and a real redis-server. Where a rule keeps a row from
being refused, the same is done without the rule, and then the row is refused.
usage: load_test.py TAMIS MODULE
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis"))

from postgres import Postgres
from redis_server import Server

TAMIS, MODULE = sys.argv[1:3]
ROWS = 2000
QUERY = "SELECT id FROM items"
GONE = 4000


class Guard:
    """`tamis guard` on one key."""

    def __init__(self, server, key="rows"):
        self.server, self.key = server, key

    def start(self, command, *arguments, stdin=subprocess.DEVNULL):
        return subprocess.Popen(
            [TAMIS, "guard", command, "--redis", "unix://" + self.server.path, "--key", self.key,
             *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, command, *arguments, stdin="", expect=0):
        """What it printed; of what fails, its message."""
        process = self.start(command, *arguments, stdin=subprocess.PIPE)
        output, errors = process.communicate(stdin, timeout=120)
        assert process.returncode == expect, (process.returncode, output, errors)
        return output if expect == 0 else errors


def copy(postgres, query="SELECT id FROM items"):
    return "psql -X " + shlex.quote(postgres.dsn) + " -c " + shlex.quote(f"COPY ({query}) TO STDOUT")


def finish(process, expect=0):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == expect, (process.returncode, output, errors)
    return errors


def line_with(process, text):
    """Reads on until a line of it; that is how far it is then."""
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"it ended without \"{text}\"")


def check(client, *items, key="rows"):
    return client("TAMIS.CHECK", key, *items)


def add(client, *items):
    assert all(reply >= 0 for reply in client("TAMIS.ADD", "rows", *items))


def rebuild_state(client, key="rows"):
    reply = client("TAMIS.INFO", key)
    return dict(zip(reply[::2], reply[1::2]))["Rebuild"]


class Gate:
    """A command that says that it has begun and waits until it is let go.

    The test holds both ends of the pipe that the command waits at: a load that has noticed its fault already has ended
    the command, and opening a pipe that nobody reads would block."""

    def __init__(self, directory, name):
        self.reached = os.path.join(directory, name + "-reached")
        self.go = os.path.join(directory, name + "-go")
        os.mkfifo(self.reached)
        os.mkfifo(self.go)
        self.held = os.open(self.go, os.O_RDWR | os.O_CLOEXEC)

    def before(self, command):
        return f"echo >{self.reached}; read x <{self.go}; {command}"

    def behind(self, command):
        return f"{command} && echo >{self.reached} && read x <{self.go}"

    def wait(self):
        with open(self.reached, encoding="utf-8") as file:
            file.read()

    def open(self):
        os.write(self.held, b"\n")


class Fixture:
    def __init__(self, postgres, directory):
        self.postgres, self.directory, self.gates = postgres, directory, 0

    def gate(self):
        self.gates += 1
        return Gate(self.directory, f"gate{self.gates}")

    def empty(self):
        self.postgres.run("TRUNCATE items", f"INSERT INTO items SELECT generate_series(1, {ROWS})")

    def load(self, guard, *more, command=None, capacity=20000, expect=0):
        how = ("--command", command, "--unproved") if command else ("--query", QUERY)
        return guard("load", *how, "--database", self.postgres.dsn, "--capacity", str(capacity), *more,
                     expect=expect)

    def verified(self, guard):
        assert guard("verify", "--command", copy(self.postgres)) == ""


def loads_and_verifies(fixture):
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        # Without a filter nothing is refused, and nothing is known.
        assert guard("verify", "--command", copy(fixture.postgres)) == ""
        assert "not found" in guard("status", expect=1)
        fixture.load(guard, "--mark", "m1")
        fixture.verified(guard)
        assert check(client, "1", ROWS, "absent") == [1, 1, 0]
        assert "trusted" in guard("status") and guard("status", "--mark") == "m1\n"
        # Another one of the same size, without a word about it.
        guard("load", "--query", QUERY, "--database", fixture.postgres.dsn)
        assert guard("status", "--mark") == "\n", "the mark was that of the other one"
        assert "20000" in guard("status")
        # A row is refused, is named, and is the failure.
        generation = client("TAMIS.GENERATION", "rows")
        assert client("TAMIS.DELIF", "rows", generation, "7", "9") == [1, 1]
        process = guard.start("verify", "--command", copy(fixture.postgres))
        output, _ = process.communicate(timeout=120)
        assert sorted(output.split()) == ["7", "9"] and process.returncode == 1
        # Rows that go while it reads are refused by right.
        flag = os.path.join(fixture.directory, "flag")
        command = f"if [ -e {flag} ]; then echo 1; else touch {flag}; printf '1\\n7\\n9\\n'; fi"
        assert guard("verify", "--command", command) == ""


def add_before_start(fixture, waits):
    """The transaction added before START, and commits when the snapshot was taken."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        writer = fixture.postgres.connect()
        cursor = writer.cursor()
        cursor.execute("INSERT INTO items VALUES (1000001)")
        add(client, "1000001")
        how = ("--database", fixture.postgres.dsn, "--query", QUERY) if waits else ("--settle", "0")
        loader = guard.start("load", "--command", copy(fixture.postgres), *how)
        if waits:
            line_with(loader, "waiting for 1 transactions")
            writer.commit()
        finish(loader)
        writer.commit()
        writer.close()
        return check(client, "1000001")


def add_before_the_first_write(fixture):
    """So far the transaction only read: it has no number that a snapshot's xmin could show."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        writer = fixture.postgres.connect()
        cursor = writer.cursor()
        cursor.execute("SELECT count(*) FROM items")
        add(client, "1000002")
        with fixture.postgres.connect() as other, other.cursor() as looking:
            looking.execute("SELECT pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() s")
            assert looking.fetchone() == (True,), "xmin shows it: this is no test"
        other.close()
        loader = guard.start("load", "--query", QUERY, "--database", fixture.postgres.dsn)
        line_with(loader, "waiting for 1 transactions")
        cursor.execute("INSERT INTO items VALUES (1000002)")
        writer.commit()
        finish(loader)
        writer.close()
        assert check(client, "1000002") == [1]


def prepared_transactions(fixture):
    """One was prepared before START, one is while the loader waits for it."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        writers = [fixture.postgres.connect() for _ in range(2)]
        for i, writer in enumerate(writers):
            writer.tpc_begin(f"tpc{i}")
            writer.cursor().execute(f"INSERT INTO items VALUES ({1000010 + i})")
            add(client, 1000010 + i)
        writers[0].tpc_prepare()
        loader = guard.start("load", "--query", QUERY, "--database", fixture.postgres.dsn)
        line_with(loader, "waiting for 2 transactions")
        writers[1].tpc_prepare()
        writers[0].tpc_commit()
        line_with(loader, "prepared transaction 'tpc1'")
        writers[1].tpc_commit()
        finish(loader)
        for writer in writers:
            writer.close()
        assert check(client, 1000010, 1000011) == [1, 1]


def writers_after_start(fixture):
    """The load does not wait for transactions that began after its start: their adds go to the new filter, too."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        before, behind = fixture.gate(), fixture.gate()
        command = behind.behind(before.before(copy(fixture.postgres)))
        loader = guard.start("load", "--command", command, "--database", fixture.postgres.dsn, "--query", QUERY)
        before.wait()
        writer, other = fixture.postgres.connect(), fixture.postgres.connect()
        writer.cursor().execute("INSERT INTO items VALUES (1000003)")
        add(client, "1000003")
        before.open()
        behind.wait()  # the rows were read
        other.cursor().execute("INSERT INTO items VALUES (1000004)")
        add(client, "1000004")
        behind.open()
        finish(loader)
        writer.commit()
        other.commit()
        writer.close()
        other.close()
        assert check(client, "1000003", "1000004") == [1, 1]
        fixture.verified(guard)


def erases_of_rows_that_the_snapshot_lacks(fixture, words):
    """The rows went before the snapshot, their erases arrive when the new filter is in its place. Its
    tags are short, so that each of them would take away another row's sooner or later."""
    fixture.empty()
    postgres = fixture.postgres
    postgres.run(f"INSERT INTO items SELECT generate_series(2000001, 2000000 + {GONE})")
    gone = [2000001 + i for i in range(GONE)]
    with Server(MODULE, words=words) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        generation = client("TAMIS.GENERATION", "rows")
        postgres.run("DELETE FROM items WHERE id > 2000000")
        fixture.load(guard, "--fpr", "0.3", capacity=ROWS)
        client("TAMIS.DELIF", "rows", generation, *gone)
        answer = client("TAMIS.CHECK", "rows", *range(1, ROWS + 1)).count(0)
        if not words:  # who does not say the generation is not obeyed for a while
            assert client("TAMIS.DEL", "rows", *gone) == [-1] * GONE
            fixture.verified(guard)
            # A row deleted now is erased.
            generation = client("TAMIS.GENERATION", "rows")
            postgres.run("DELETE FROM items WHERE id = 5")
            assert client("TAMIS.DELIF", "rows", generation, 5) == [1]
            fixture.verified(guard)
        return answer


def erases_while_it_is_filled(fixture):
    """Before and behind the snapshot: the new filter gets none of them, and is not harmed."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        before, behind = fixture.gate(), fixture.gate()
        loader = guard.start("load", "--command", behind.behind(before.before(copy(fixture.postgres))),
                             "--database", fixture.postgres.dsn, "--query", QUERY, "--fpr", "0.3")
        before.wait()
        for gate, first in ((before, 1), (behind, 201)):
            generation = client("TAMIS.GENERATION", "rows")
            fixture.postgres.run(f"DELETE FROM items WHERE id BETWEEN {first} AND {first + 199}")
            assert client("TAMIS.DELIF", "rows", generation, *range(first, first + 200)) == [1] * 200
            gate.open()
            if gate is before:
                behind.wait()
        finish(loader)
        fixture.verified(guard)


def failures_leave_the_old_filter(fixture):
    fixture.empty()
    postgres = fixture.postgres
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)

        def unharmed():
            assert rebuild_state(client) == b"none"
            assert check(client, "1", ROWS, "absent") == [1, 1, 0]

        half = copy(postgres, f"SELECT 1000000 / ({ROWS} - id) FROM items ORDER BY id")
        for command, why in ((half, "exit status 1"), (half + " | cat", "exit status 1"),
                             ("echo 1; exit 3", "exit status 3"), ("echo 1; kill -9 $$", "signal 9"),
                             ("printf '1\\n2'", "cut off"), ("true", "at least 1"),
                             ("no-such-program", "exit status 127"),
                             ("echo 'a\\b'", "--format"), ("seq 1 30000", "full; say a greater --capacity"),
                             ("for i in {1..3}; do seq 1 10000; done", "67 % of the keys were read before: the column is not unique"),
                             (copy(postgres, "SELECT id, id FROM items"), "two columns")):
            more = ["--format", "copy"] if "columns" in why else []
            message = fixture.load(guard, *more, command=command, expect=1)
            assert why in message and "stays as it was" in message, message
            unharmed()
        assert "at least 3000" in fixture.load(guard, "--at-least", "3000", expect=1)
        unharmed()
        assert "cannot ask PostgreSQL" in guard("load", "--command", copy(postgres), "--database",
                                                "host=/nonexistent", "--unproved", expect=1)
        unharmed()
        assert "--settle" in guard("load", "--command", copy(postgres), expect=1)
        fixture.load(guard, "--at-least", "0", command="true")
        assert check(client, "1") == [0], "--at-least 0 says that the table may be empty"


# Each prints the same rows, but no bare key a line.
FRAMES = {
    "psql, aligned": "psql -X {dsn} -c {query}",
    "psql, unaligned": "psql -XA {dsn} -c {query}",
    "psql, expanded": "psql -Xx {dsn} -c {query}",
    "psql, without head and footer": "psql -Xt {dsn} -c {query}",
    "psql, expanded and bare": "psql -XxAt {dsn} -c {query}",
    "psql, a border and no head": "psql -Xt -P border=2 {dsn} -c {query}",
    "psql, numbers by the locale": "psql -XAt -P numericlocale {dsn} -c {query} | sed -E 's/([0-9])([0-9]{{3}})$/\\1,\\2/'",
    "two columns": "psql -XAt {dsn} -c {query} | sed 's/$/|x/'",
    "floating point": "psql -XAt {dsn} -c {query} | sed 's/$/.0/'",
    "CSV with quotes": "psql -X {dsn} -c \"COPY (SELECT id FROM items) TO STDOUT (FORMAT csv, FORCE_QUOTE *)\"",
    "lines of Windows": "psql -XAt {dsn} -c {query} | sed 's/$/\\r/'",
    "a separator behind": "psql -XAt {dsn} -c {query} | sed 's/$/;/'",
    "a byte order mark": "printf '\\357\\273\\277'; psql -XAt {dsn} -c {query}",
    "UTF-16": "psql -XAt {dsn} -c {query} | iconv -t UTF-16LE",
}
# Errors that the keys alone cannot show.
OTHER_KEYS = {
    "leading zeros": "SELECT to_char(id, 'FM000000') FROM items",
    "a prefix": "SELECT 'items:' || id FROM items",
    "another column": "SELECT id + 5000 FROM items",
    "half of the rows": f"SELECT id FROM items WHERE id <= {ROWS // 2}",
}


def frames_are_refused(fixture):
    fixture.empty()
    dsn = shlex.quote(fixture.postgres.dsn)
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        for name, frame in FRAMES.items():
            command = frame.format(dsn=dsn, query=shlex.quote(QUERY))
            # key_shape_test has each frame in each format.
            for form in ("plain", "lines", "copy", "null") if name in ("psql, aligned", "lines of Windows") else ("plain", "copy"):
                if form == "null":
                    command = f"({command}) | tr '\\n' '\\0'"
                load = ("load", "--settle", "0", "--capacity", "20000")
                for words in (load, ("verify",)) if form == "plain" else (load,):
                    message = guard(*words, "--format", form, "--command", command, expect=1)
                    # A line that COPY printed is never read with a carriage return after it.
                    assert "--as-is" in message or (form == "copy" and "carriage return" in message), (name, form, message)
                assert check(client, "1", ROWS, "absent") == [1, 1, 0], (name, form)
                assert rebuild_state(client) == b"none"
        # It may be meant.
        guard("load", "--settle", "0", "--as-is", "--format", "lines", "--command", "printf '\"a\"\\n\"b\"\\n'")
        assert check(client, '"a"', "a") == [1, 0]


def printed(*keys):
    """A command that prints the keys, one a line."""
    return "printf '%s\\n' " + " ".join(map(shlex.quote, keys))


def a_proof_settles_what_belongs_to_the_keys(_):
    """Keys with text in common: refused alone, loaded when a second command prints them as well."""
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        for keys in (("Doe, J", "Roe, K", "Poe, E"), ("/item?id=1", "/item?id=2", "/item?id=3"), ("8.0", "9.0", "10.0")):
            for form in ("plain", "lines"):
                load = ("load", "--settle", "0", "--capacity", "100", "--format", form, "--command", printed(*keys))
                assert "--as-is" in guard(*load, expect=1)
                if form == "plain":
                    assert "--as-is" in guard(*load, "--proof", printed(*keys), expect=1)
                else:
                    assert "are not among" in guard(*load, "--proof", printed("Doe"), expect=1)
                    guard(*load, "--proof", printed(*keys))
                    assert check(client, *keys, "absent") == [1, 1, 1, 0]
                    # A check with this command has no proof.
                    assert "--as-is" in guard("verify", "--format", form, "--command", printed(*keys), expect=1)
                    assert guard("verify", "--format", form, "--as-is", "--command", printed(*keys)) == ""
        # Lines of Windows are no keys, proved or not.
        windows = printed("1\r", "2\r", "3\r")
        assert "--as-is" in guard("load", "--settle", "0", "--capacity", "100", "--format", "lines", "--command", windows,
                                  "--proof", windows, expect=1)


def keys_of_mysql(_):
    """mysql --batch escapes a backslash, a line's end, a tab and a zero byte, and nothing else."""
    load = ("load", "--settle", "0", "--capacity", "100", "--format", "copy", "--command")
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        binary = r"printf '\376\\\\\n\377\\nx\r\n\001\\0\200\n'"
        message = guard(*load, binary, expect=1)
        assert "--as-is" in message and "--format lines" not in message, message
        guard(*load, binary, "--as-is")
        assert check(client, b"\xfe\\", b"\xff\nx\r", b"\x01\0\x80", b"\xfe\\\\") == [1, 1, 1, 0]
        text = r"printf 'a\nb\r\n'"
        assert "--as-is" in guard(*load, text, expect=1)
        guard(*load, text, "--as-is")
        assert check(client, "a", "b\r", "b") == [1, 1, 0]
        assert "zero byte" in guard(*load, r"printf 'a\\012\n'", "--as-is", expect=1)


def other_keys_are_refused(fixture):
    """The proof: keys that the database gives in another way are among those that were loaded."""
    fixture.empty()
    database = ("--database", fixture.postgres.dsn)
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        right = copy(fixture.postgres)
        assert "--query" in guard("load", *database, "--command", right, expect=1)
        for name, query in OTHER_KEYS.items():
            wrong = copy(fixture.postgres, query)
            for proof in ((*database, "--query", QUERY), ("--settle", "0", "--proof", right)):
                as_is = ["--as-is"] if name == "leading zeros" else []  # else the load ends before its proof
                message = guard("load", *proof, "--command", wrong, *as_is, expect=1)
                assert "are not among those that were loaded" in message, (name, message)
                assert check(client, "1", ROWS, "absent") == [1, 1, 0], name
        # Without a proof rows are refused: that is the reason for it.
        fixture.load(guard, command=wrong)
        assert check(client, ROWS) == [0]
        # A proof that proves nothing.
        assert "gave no key" in guard("load", *database, "--command", right, "--query", QUERY + " WHERE false", expect=1)
        assert "failed" in guard("load", *database, "--command", right, "--query", "SELECT nothing", expect=1)
        assert "failed" in guard("load", "--settle", "0", "--command", right, "--proof", "echo 1; exit 3", expect=1)
        assert "--as-is" in guard("load", "--settle", "0", "--command", right, "--proof", "echo ' 1'", expect=1)
        assert "not proved" in finish(guard.start("load", "--settle", "0", "--command", right))
        # Rows after a mark are in neither.
        fixture.postgres.run("INSERT INTO items VALUES (1000020)")
        old = copy(fixture.postgres, QUERY + " WHERE id < 1000020")
        guard("load", *database, "--query", QUERY, "--mark", "m", "--command", old)
        assert "are not among" in guard("load", *database, "--query", QUERY, "--mark", "m", "--command", "seq 5000 6000",
                                        expect=1)
        assert "--mark-first" in guard("load", *database, "--query", QUERY, "--mark-first", expect=1)
        # Keys given with --id are proved as well.
        fixture.empty()
        rebuild = guard("start", *database).strip()
        lines = "".join(f"{i}\n" for i in range(1, ROWS + 1)) + "\\.\n"
        guard("load", "--id", rebuild, *database, "--query", QUERY, stdin=lines)
        fixture.verified(guard)


def filter_without_guard(fixture):
    """It would be believed after a restart that lost adds, loaded or not."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        assert client("TAMIS.RESERVE", "rows", "0.001", "20000") == "OK"
        for capacity in ((), ("--capacity", "5000")):
            message = guard("load", "--query", QUERY, "--database", fixture.postgres.dsn, *capacity, expect=1)
            assert "without GUARD" in message and "UNLINK" in message, message
            assert rebuild_state(client) == b"none"
        assert "without GUARD" in guard("follow", "--after", "", expect=1)
        assert client("UNLINK", "rows") == 1
        fixture.load(guard)
        assert check(client, "1", "absent") == [1, 0]


def filter_with_window(fixture):
    """A load does not advise to drop the window."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        for words, told in ((), "UNLINK it and make it by TAMIS.RESERVE with both"), (("GUARD",), "by TAMIS.ADD alone"):
            assert client("TAMIS.RESERVE", "rows", "0.001", "20000", "WINDOW", "60", *words) == "OK"
            for command in ("load", "start"):
                how = ("--query", QUERY) if command == "load" else ()
                message = guard(command, "--database", fixture.postgres.dsn, *how, expect=1)
                assert "with WINDOW" in message and told in message and "TAMIS.TRUST" in message, message
                assert "load makes one" not in message, message
            assert "made with WINDOW" in guard("follow", "--after", "", expect=1)
            assert client("UNLINK", "rows") == 1


def verify_of_no_row(_):
    """A command that prints nothing proves nothing."""
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        assert client("TAMIS.RESERVE", "rows", "0.01", "100") == "OK"
        assert client("TAMIS.ADD", "rows", "a", "b") == [1, 1]
        assert "0 rows were read, but at least 1" in guard("verify", "--command", "true", expect=1)
        assert "0 rows were read, but at least 1" in guard("verify", stdin="", expect=1)
        assert "2 rows were read, but at least 3" in guard("verify", "--at-least", "3", stdin="a\nb\n", expect=1)
        assert guard("verify", "--at-least", "0", "--command", "true") == ""
        assert guard("verify", stdin="a\nb\n") == ""


def other_kinds_are_named(_):
    """A key of another kind is refused with a sentence."""
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        for words in (("BF.ADD", "rows", "a"), ("CF.ADD", "rows", "a"), ("SET", "rows", "a"),
                      ("BF.INSERT", "rows", "SEED", "s" * 32, "ITEMS", "a")):
            client(*words)
            for command in (("status",), ("load", "--settle", "0", "--unproved", "--capacity", "9", "--command", "echo 1"),
                            ("follow", "--after", "")):
                assert "the key is no filter of `tamis guard load`" in guard(*command, expect=1), (words, command)
            client("DEL", "rows")


def rows_that_a_policy_hides(fixture):
    """PostgreSQL leaves them out in silence, unless it is told to fail."""
    fixture.empty()
    postgres = fixture.postgres
    postgres.run("CREATE ROLE reader LOGIN", "GRANT SELECT ON items TO reader",
                 "CREATE POLICY even ON items USING (id % 2 = 0)", "ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    reader = postgres.dsn.replace("user=tamis", "user=reader")
    assert reader != postgres.dsn
    try:
        with Server(MODULE) as server:
            guard, client = Guard(server), server.client()
            fixture.load(guard)  # the owner sees all
            load = ("load", "--database", reader, "--query", QUERY)
            for policy in ("id % 2 = 0", "true"):  # PostgreSQL does not tell whether it hides any
                postgres.run(f"ALTER POLICY even ON items USING ({policy})")
                for more in ((), ("--command", copy(postgres))):
                    message = guard(*load, *more, expect=1)
                    assert "affected by row-level security" in message and "stays as it was" in message, message
                    assert check(client, "1", ROWS, "absent") == [1, 1, 0]
    finally:
        postgres.run("ALTER TABLE items DISABLE ROW LEVEL SECURITY", "DROP POLICY even ON items",
                     "REVOKE ALL ON items FROM reader", "DROP ROLE reader")


def queries_of_any_column(fixture):
    """A query is read as the application asks with its keys; what has two forms is refused."""
    fixture.postgres.run(
        "DROP TABLE IF EXISTS columns",
        "CREATE TABLE columns (n int, t text, c char(5), u uuid, d timestamp, y bytea, f boolean)",
        "INSERT INTO columns VALUES (1, E'a\\\\b\\tc\\n\u00fc', 'x', gen_random_uuid(), now(), '\\x0061', true),"
        " (NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    with fixture.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT n::text, t, u::text, d::text, y::text FROM columns WHERE n = 1")
        expected = cursor.fetchone()
    connection.close()
    database = ("--database", fixture.postgres.dsn)
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        for column, key in zip("ntudy", expected):
            query = f"SELECT {column} FROM columns -- all rows\n;"
            guard("load", *database, "--capacity", "100", "--query", query)
            assert check(client, key, key + " ") == [1, 0], column
            assert guard("verify", *database, "--query", query) == ""
        for column in "cf":
            message = guard("load", *database, "--query", f"SELECT {column} FROM columns", expect=1)
            assert "are not among those that were loaded" in message, message
            guard("load", *database, "--query", f"SELECT {column}::text FROM columns")
        assert check(client, "true") == [1]
        assert "two columns" in guard("load", *database, "--query", "SELECT n, t FROM columns", expect=1)
        assert "--database" in guard("verify", "--query", QUERY, expect=1)


def keys_with_any_bytes(fixture):
    fixture.postgres.run("DROP TABLE IF EXISTS names", "CREATE TABLE names (name text)")
    names = ["a\\b", "tab\there", "line\nend", "\\.", "\\N", "ümlaut", "", " ", "'\"", "\r\x01\x7f"]
    with fixture.postgres.connect() as connection, connection.cursor() as cursor:
        for name in [*names, None]:
            cursor.execute("INSERT INTO names VALUES (%s)", (name,))
    connection.close()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        command = copy(fixture.postgres, "SELECT name FROM names")
        assert "--format copy" in fixture.load(guard, command=command, expect=1)
        fixture.load(guard, "--format", "copy", command=command)
        assert check(client, *names) == [1] * len(names)
        assert guard("verify", "--format", "copy", "--command", command) == ""
        fixture.load(guard, "--format", "null", command="printf 'a\\nb\\0c\\\\\\0'")
        assert check(client, "a\nb", "c\\", "a") == [1, 1, 0]
        # A first line that is the snapshot.
        fixture.load(guard, "--format", "lines", "--mark-first", command="printf 'm 5\\n\\\\.\\n'")
        assert check(client, "\\.", "m 5") == [1, 0] and guard("status", "--mark") == "m 5\n"


def lines_of_standard_input(fixture):
    """Who gives them may have read the rows before START; and may fail midway."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        assert "guard start" in guard("load", stdin="1\n\\.\n", expect=1)
        start = ("start", "--capacity", "100", "--settle", "0")
        rebuild = guard(*start).strip()
        assert "may have failed midway" in guard("load", "--id", rebuild, stdin="1\n2\n", expect=1)
        assert client("EXISTS", "rows") == 0
        rebuild = guard(*start).strip()
        guard("load", "--id", rebuild, stdin="1\n2\n\\.\n")
        assert check(client, "1", "3") == [1, 0]
        # Another program has taken over meanwhile: the first does not end its rebuild.
        first = guard(*start).strip()
        assert "guard abort" in guard(*start, expect=1)
        second = guard(*start, "--replace").strip()
        assert "is no more" in guard("load", "--id", first, stdin="1\n\\.\n", expect=1)
        guard("load", "--id", second, stdin="1\n4\n\\.\n")
        assert check(client, "1", "4", "2") == [1, 1, 0]
        guard(*start)
        guard("abort")
        assert "no rebuild" in guard("abort", expect=1)


def connection_lost_in_the_middle(fixture):
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        gate = fixture.gate()
        loader = guard.start("load", "--settle", "0", "--command",
                             f"seq 1 1000; {gate.before('seq 1001 2000')}")
        gate.wait()
        assert client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") >= 1
        gate.open()
        assert "stays as it was" in finish(loader, expect=1)
        assert rebuild_state(client) == b"none", "it was aborted over another connection"
        assert check(client, "1", ROWS, "absent") == [1, 1, 0]


def server_lost_in_the_middle(fixture):
    """It comes back without the last adds of both filters."""
    fixture.empty()
    with Server(MODULE, "appendonly", "yes", "appendfsync", "no") as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        gate = fixture.gate()
        loader = guard.start("load", "--settle", "0", "--command",
                             f"seq 1 1000; {gate.before('seq 1001 2000')}")
        gate.wait()
        server.kill()
        server.start()
        client = server.client()
        gate.open()
        finish(loader, expect=1)
        assert set(check(client, *range(1, ROWS))) == {-1}
        # The rebuild came back from the log: a timer's next load, with no word, takes over.
        assert rebuild_state(client) in (b"adds may be lost", b"none")
        fixture.load(guard)
        fixture.verified(guard)
        assert check(client, "absent") == [0]


def rebuild_of(client):
    reply = client("TAMIS.INFO", "rows")
    return dict(zip(reply[::2], reply[1::2]))[b"Rebuild id" if isinstance(reply[0], bytes) else "Rebuild id"]


def ended_by_a_signal(fixture):
    """A deploy, systemd, a terminal that is closed: the rebuild is ended. SIGKILL leaves one, which the
    next load takes over when its lease is over."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        for number in (signal.SIGTERM, signal.SIGHUP):
            gate = fixture.gate()
            loader = guard.start("load", "--settle", "0", "--command", gate.before("seq 1 10"))
            gate.wait()
            loader.send_signal(number)
            finish(loader, expect=130)
            assert rebuild_state(client) == b"none", number
            assert check(client, "1", "absent") == [1, 0]
        gate = fixture.gate()
        loader = guard.start("load", "--settle", "0", "--command", "seq 1 50; " + gate.before("true"))
        gate.wait()
        loader.kill()
        loader.wait()
        loader.stdout.close()
        loader.stderr.close()
        left = rebuild_of(client)
        assert rebuild_state(client) == b"under way"
        following = guard.start("load", "--query", QUERY, "--database", fixture.postgres.dsn)
        line_with(following, "is the program of rebuild")
        assert client("TAMIS.REBUILD", "rows", "KEEP", left, "0") == "OK"  # the lease is over
        line_with(following, "its program is no more")
        finish(following)
        fixture.verified(guard)
        gate.open()


def load_beside_a_load(fixture):
    """The second one fails and the first goes on; with --replace it is the other way round."""
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        gate = fixture.gate()
        command = gate.behind(copy(fixture.postgres))
        loader = guard.start("load", "--settle", "0", "--command", command)
        gate.wait()
        mine = rebuild_of(client)
        assert client("TAMIS.REBUILD", "rows", "KEEP", mine, "9") == "OK"
        # While it waits for its command, it renews its lease.
        message = fixture.load(guard, expect=1)
        assert "another program is filling rebuild" in message and "--replace" in message, message
        assert rebuild_of(client) == mine
        gate.open()
        finish(loader)
        fixture.verified(guard)
        # One that is replaced fills nothing of its successor's.
        gate = fixture.gate()
        loader = guard.start("load", "--settle", "0", "--command", gate.before("seq 1 50"))
        gate.wait()
        second = fixture.gate()
        successor = guard.start("load", "--settle", "0", "--replace", "--capacity", "60",
                                "--command", second.behind("seq 51 100"))
        second.wait()
        gate.open()
        errors = finish(loader, expect=1)
        assert "is no more" in errors and "could not be aborted" not in errors, errors
        assert rebuild_state(client) == b"under way"
        second.open()
        finish(successor)
        assert check(client, 51, 100) == [1, 1]
        assert client("TAMIS.COUNT", "rows") == 50


def start_without_a_load(fixture):
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        guard("start", "--capacity", "100", "--settle", "0")
        assert "guard abort" in fixture.load(guard, expect=1)
        guard("start", "--capacity", "100", "--settle", "0", "--hold", "0", "--replace")
        fixture.load(guard)
        fixture.verified(guard)
        assert check(client, "absent") == [0]


def stopped_by_a_person(fixture):
    fixture.empty()
    with Server(MODULE) as server:
        guard, client = Guard(server), server.client()
        fixture.load(guard)
        gate = fixture.gate()
        loader = guard.start("load", "--settle", "0", "--command", gate.before("seq 1 10"))
        gate.wait()
        loader.send_signal(signal.SIGINT)
        finish(loader, expect=130)
        assert rebuild_state(client) == b"none"
        assert check(client, "1", "absent") == [1, 0]
        # While it waits for others.
        writer = fixture.postgres.connect()
        writer.cursor().execute("SELECT 1")
        loader = guard.start("load", "--query", QUERY, "--database", fixture.postgres.dsn)
        line_with(loader, "waiting")
        loader.send_signal(signal.SIGINT)
        finish(loader, expect=130)
        writer.close()
        assert rebuild_state(client) == b"none"


def main():
    with Postgres() as postgres, tempfile.TemporaryDirectory() as directory:
        postgres.run("CREATE TABLE items (id bigint PRIMARY KEY)")
        fixture = Fixture(postgres, directory)
        loads_and_verifies(fixture)
        assert add_before_start(fixture, waits=True) == [1]
        replies = add_before_start(fixture, waits=False)
        assert replies == [0], f"without waiting no row is refused: {replies}"
        add_before_the_first_write(fixture)
        prepared_transactions(fixture)
        writers_after_start(fixture)
        assert erases_of_rows_that_the_snapshot_lacks(fixture, ()) == 0
        assert erases_of_rows_that_the_snapshot_lacks(
            fixture, ("tamis-fault", "erases_of_other_generation",
                      "tamis-fault", "stray_erases_are_believed")) > 0
        erases_while_it_is_filled(fixture)
        failures_leave_the_old_filter(fixture)
        frames_are_refused(fixture)
        a_proof_settles_what_belongs_to_the_keys(fixture)
        keys_of_mysql(fixture)
        other_keys_are_refused(fixture)
        filter_without_guard(fixture)
        filter_with_window(fixture)
        verify_of_no_row(fixture)
        other_kinds_are_named(fixture)
        rows_that_a_policy_hides(fixture)
        queries_of_any_column(fixture)
        keys_with_any_bytes(fixture)
        lines_of_standard_input(fixture)
        connection_lost_in_the_middle(fixture)
        server_lost_in_the_middle(fixture)
        stopped_by_a_person(fixture)
        ended_by_a_signal(fixture)
        load_beside_a_load(fixture)
        start_without_a_load(fixture)


if __name__ == "__main__":
    main()
