#!/usr/bin/env python3
"""tamis guard follow: each change of a feed is applied exactly once, whatever breaks on the way.

usage: follow_test.py TAMIS MODULE [--seed N]
"""

import collections
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "redis"))

from postgres import Postgres, binaries
from redis_server import Error, Server

TAMIS, MODULE = sys.argv[1:3]
SEED = int(sys.argv[4]) if sys.argv[3:4] == ["--seed"] else random.randrange(10**6)
FEED = os.path.join(HERE, "..", "..", "examples", "guard", "change_feed.py")


class Proxy:
    """Stands before the server and cuts the connection at an EXEC, before the server hears of it or
    when it has answered, so that the client cannot know which."""

    def __init__(self, server, directory, rng):
        self.server, self.rng = server, rng
        self.path = os.path.join(directory, "proxy")
        self.cuts = collections.Counter()
        self.first_cuts = rng.sample(("before", "behind"), 2)  # then as it comes
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        try:
            self.carry_until_cut(client)
        except OSError:
            pass
        client.close()

    def carry_until_cut(self, client):
        """Bytes to the server; a cut in every other MULTI, and in the first two."""
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server.path)
            answers = threading.Thread(target=self.answer, args=(server, client), daemon=True)
            answers.start()
            held = b""
            while data := client.recv(1 << 16):
                held += data
                if b"MULTI" in held and not held.endswith(b"\r\nEXEC\r\n"):
                    continue
                cut = "no"
                if b"MULTI" in held:
                    cut = (self.first_cuts.pop() if self.first_cuts else
                           self.rng.choice(("before", "behind", "no", "no")))
                    self.cuts[cut] += 1
                if cut == "before":
                    server.sendall(held[:self.rng.randrange(len(held))])
                    return
                if cut == "behind":
                    # The answer goes elsewhere; the server has carried it out when this one ends.
                    with socket.socket(socket.AF_UNIX) as other:
                        other.connect(self.server.path)
                        other.sendall(held)
                        other.shutdown(socket.SHUT_WR)
                        while other.recv(1 << 16):
                            pass
                    return
                server.sendall(held)
                held = b""
            server.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def answer(server, client):
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            pass


def follower(path, after="", key="rows"):
    return subprocess.Popen(
        [TAMIS, "guard", "follow", "--redis", "unix://" + path, "--key", key, "--after", after],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def follow(path, feed, after="", expect=0, key="rows"):
    process = follower(path, after, key)
    _, errors = process.communicate(feed, timeout=120)
    assert process.returncode == expect, (process.returncode, errors)
    return errors


def info(client, key="rows"):
    reply = client("TAMIS.INFO", key)
    assert not isinstance(reply, Error), reply
    return dict(zip(reply[::2], reply[1::2]))


def empty_filter(client, capacity=100000, mark=None):
    """Trusted, as one that was loaded from an empty table."""
    assert isinstance(client("TAMIS.REBUILD", "rows", "START", "0.0001", capacity), int)
    more = ("MARK", mark) if mark else ()
    assert client("TAMIS.REBUILD", "rows", "COMMIT", *more) == "OK"


def escape(key):
    return key.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def random_feed(rng, transactions):
    """A feed, the rows at its end, and how many marks it has."""
    rows, lines = set(), []
    for number in range(1, transactions + 1):
        for _ in range(rng.choice((0, 1, 1, 2, 5, 40, 700))):
            if rows and rng.random() < 0.4:
                key = rng.choice(sorted(rows)) if len(rows) < 50 else rows.pop()
                rows.discard(key)
                lines.append("-" + escape(key))
            else:
                key = f"{rng.randrange(10**9)}{rng.choice(('', chr(92), chr(10), chr(13), ' ü'))}"
                if key not in rows:
                    rows.add(key)
                    lines.append("+" + escape(key))
        lines.append(f"={number}")
    return lines, rows


def exactly_once(rng):
    """Through a line that breaks; and the program ends and begins again between two marks."""
    with Server(MODULE) as server, tempfile.TemporaryDirectory() as directory:
        client = server.client()
        empty_filter(client)
        proxy = Proxy(server, directory, rng)
        lines, rows = random_feed(rng, 120)
        # Pieces that end anywhere: what no mark follows comes again.
        after = ""
        while after != "120":
            at = lines.index("=" + after) + 1 if after else 0
            piece = lines[at:at + rng.randrange(1, 4000)]
            follow(proxy.path, "".join(line + "\n" for line in piece), after)
            after = info(client)["Mark"].decode()
        told = info(client)
        assert told["Items"] == len(rows), (told["Items"], len(rows))
        assert client("TAMIS.CHECK", "rows", *rows).count(1) == len(rows)
        assert proxy.cuts["before"] > 0 and proxy.cuts["behind"] > 0, proxy.cuts


def other_places_are_refused():
    with Server(MODULE) as server:
        client = server.client()
        assert "not found" in follow(server.path, "", expect=1)
        empty_filter(client, mark="5")
        assert "is at \"5\"" in follow(server.path, "+a\n=6\n", "4", expect=1)
        assert client("TAMIS.CHECK", "rows", "a") == [0]
        follow(server.path, "+a\n=6\n", "5")
        assert client("TAMIS.CHECK", "rows", "a") == [1]
        assert "line 1 of the feed" in follow(server.path, "a\n", "6", expect=1)
        client("DEL", "rows")
        assert client("TAMIS.RESERVE", "rows", "0.01", "100", "WINDOW", "60", "GUARD") == "OK"
        assert "made with WINDOW" in follow(server.path, "+a\n=6\n", "5", expect=1)


def a_rebuild_comes_between(fault):
    """Its snapshot lacks rows whose erases are still to come in the feed."""
    rows = [f"row{i}" for i in range(2000)]
    gone = [f"gone{i}" for i in range(4000)]
    words = ("tamis-fault", fault, "tamis-fault", "stray_erases_are_believed") if fault else ()
    with Server(MODULE, words=words) as server:
        client = server.client()
        empty_filter(client)
        process = follower(server.path)
        process.stdin.write("".join(f"+{key}\n" for key in rows + gone) + "=1\n")
        process.stdin.flush()
        while info(client)["Mark"] != b"1":
            assert process.poll() is None
        assert isinstance(client("TAMIS.REBUILD", "rows", "START", "0.3", "2000"), int)
        assert client("TAMIS.REBUILD", "rows", "ADD", *rows) == len(rows)
        assert client("TAMIS.REBUILD", "rows", "COMMIT", "MARK", "2") == "OK"
        process.stdin.write("+new\n" + "".join(f"-{key}\n" for key in gone) + "=2b\n")
        _, errors = process.communicate(timeout=60)
        refused = client("TAMIS.CHECK", "rows", *rows).count(0)
        if not fault:
            assert process.returncode == 1 and "was rebuilt and is at \"2\"" in errors, errors
            assert info(client)["Mark"] == b"2"
            follow(server.path, "+new\n=3\n", "2")
            assert client("TAMIS.CHECK", "rows", "new") == [1]
        return refused


def a_full_filter_opens_the_door():
    with Server(MODULE) as server:
        client = server.client()
        assert isinstance(client("TAMIS.REBUILD", "rows", "START", "0.01", "10", "TYPE", "cuckoo"), int)
        assert client("TAMIS.REBUILD", "rows", "COMMIT") == "OK"
        feed = "".join(f"+{i}\n" for i in range(500)) + "=1\n"
        assert "is full" in follow(server.path, feed, expect=1)
        assert set(client("TAMIS.CHECK", "rows", *range(500))) == {-1}


def a_restart_needs_the_end_of_the_feed():
    """The server comes back without its last second: the feed is told again from the mark that it has,
    and it is believed when that has caught up. What was erased meanwhile stays; nothing is refused."""
    with Server(MODULE, "appendonly", "yes", "appendfsync", "no") as server:
        client = server.client()
        empty_filter(client)
        follow(server.path, "+a\n+b\n=1\n")
        assert client("SAVE") == "OK"
        assert client("BGREWRITEAOF").startswith("Background")
        while info_of(client, "aof_rewrite_in_progress") != "0":
            pass
        server.kill()
        server.start()
        client = server.client()
        mark = info(client)["Mark"].decode()
        assert client("TAMIS.CHECK", "rows", "a", "b") == [-1, -1]
        feed = {"": "+a\n+b\n=1\n", "1": ""}[mark] + "-a\n+c\n=2\n"
        follow(server.path, feed, mark)
        assert client("TAMIS.CHECK", "rows", "a", "b", "c") == [-1, -1, -1]
        follow(server.path, "!\n", "2")
        assert client("TAMIS.CHECK", "rows", "b", "c", "absent") == [1, 1, 0]


class Pipeline:
    """pg_recvlogical's file | change_feed.py | tamis guard follow"""

    def __init__(self, server, log, table, column, after):
        self.tail = subprocess.Popen(["tail", "-n", "+1", "-F", log], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL)
        self.feed = subprocess.Popen(
            [sys.executable, FEED, "--table", table, "--column", column, "--after", after,
             "--caught-up", "now"], stdin=self.tail.stdout, stdout=subprocess.PIPE)
        self.follow = subprocess.Popen(
            [TAMIS, "guard", "follow", "--redis", "unix://" + server.path, "--key", "rows", "--after",
             after], stdin=self.feed.stdout, stderr=subprocess.PIPE, text=True)
        self.tail.stdout.close()
        self.feed.stdout.close()

    def wait_for(self, right):
        while not right():
            assert self.follow.poll() is None, self.follow.stderr.read()

    def stop(self):
        if self.follow.stderr.closed:
            return
        for process in (self.tail, self.feed, self.follow):
            process.kill()
            process.wait()
        self.follow.stderr.close()


def a_real_database(rng):
    """A table with keys of any text; transactions that are open around the snapshot, commit in another
    order than they began, roll back, and go on while the pipeline ends and begins again."""
    with Postgres() as postgres, Server(MODULE, "enable-debug-command", "yes") as server, \
            tempfile.TemporaryDirectory() as directory:
        client = server.client()
        postgres.run("CREATE TABLE items (id text PRIMARY KEY, note text)",
                     "CREATE TABLE others (id text PRIMARY KEY)")
        log = os.path.join(directory, "changes.log")
        receive = [os.path.join(binaries(), "pg_recvlogical"), "-d", postgres.dsn, "--slot", "guard"]
        subprocess.run([*receive, "--create-slot", "--plugin", "test_decoding"], check=True)
        receiver = subprocess.Popen([*receive, "--start", "--file", log])
        writers = [postgres.connect() for _ in range(4)]
        numbers = iter(range(10**9))

        def key():
            return f"{next(numbers)}{rng.choice(('', chr(92), chr(10), ' ü', chr(39), ']:', chr(13)))}"

        def step():
            writer = rng.choice(writers)
            cursor = writer.cursor()
            what = rng.random()
            if what < 0.4:
                cursor.execute("INSERT INTO items VALUES (%s, %s)", (key(), "a 'note' id[text]:'x'\n"))
            elif what < 0.5:
                cursor.execute("INSERT INTO others VALUES (%s)", (key(),))
            elif what < 0.7:
                cursor.execute("DELETE FROM items WHERE id = (SELECT id FROM items ORDER BY random() "
                               "LIMIT 1 FOR UPDATE SKIP LOCKED)")
            elif what < 0.75:
                cursor.execute("UPDATE items SET id = %s WHERE id = (SELECT id FROM items ORDER BY "
                               "random() LIMIT 1 FOR UPDATE SKIP LOCKED)", (key(),))
            elif what < 0.8:
                cursor.execute("UPDATE items SET note = note || 'x' WHERE id = (SELECT id FROM items "
                               "ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED)")
            elif what < 0.97:
                writer.commit()
            else:
                writer.rollback()

        def end():
            for writer in writers:
                writer.commit()
            postgres.run("SELECT pg_logical_emit_message(false, 'tamis', 'now')")

        def rows():
            with postgres.connect() as reader, reader.cursor() as cursor:
                cursor.execute("SELECT id FROM items")
                return [row[0] for row in cursor.fetchall()]

        def load():
            psql = f"psql -qAtX -v ON_ERROR_STOP=1 '{postgres.dsn}'"
            command = (f'{psql} -c "BEGIN ISOLATION LEVEL REPEATABLE READ" '
                       '-c "SELECT pg_current_snapshot()" -c "COPY (SELECT id FROM items) TO STDOUT" '
                       '-c COMMIT')
            subprocess.run([TAMIS, "guard", "load", "--quiet", "--redis", "unix://" + server.path,
                            "--key", "rows", "--capacity", "20000", "--fpr", "0.0001", "--settle", "0",
                            "--format", "copy", "--mark-first", "--at-least", "0", "--command",
                            command], check=True)

        def mark():
            return info(client)["Mark"].decode()

        pipeline = None
        try:
            for _ in range(300):
                step()
            load()  # with transactions that are open
            for _ in range(3):
                for _ in range(100):
                    step()
                pipeline = Pipeline(server, log, "public.items", "id", mark())
                for _ in range(100):
                    step()
                pipeline.stop()  # wherever it is
            # Nothing is believed until the feed has caught up.
            assert client("DEBUG", "RELOAD") == "OK"
            pipeline = Pipeline(server, log, "public.items", "id", mark())
            end()
            pipeline.wait_for(lambda: info(client)["State"] == b"trusted")
            there = rows()
            assert len(there) > 50
            assert client("TAMIS.CHECK", "rows", *there, "absent") == [1] * len(there) + [0]
            # Exactly once: what went while nothing was believed is what is too much.
            skipped = info(client)["Skipped erases"]
            assert info(client)["Items"] == len(there) + skipped, (info(client), len(there))
            # A rebuild while it follows: it ends, and begins again after the snapshot.
            load()
            for _ in range(100):
                step()
            end()
            assert pipeline.follow.wait(60) == 1
            pipeline.stop()
            pipeline = Pipeline(server, log, "public.items", "id", mark())
            # The mark of the last transaction, which is of the table.
            postgres.run("INSERT INTO items VALUES ('last', '')")
            pipeline.wait_for(lambda: client("TAMIS.CHECK", "rows", "last") == [1])
            there = rows()
            # Keys that the previous follower added while the new filter was filled are in it twice.
            assert info(client)["Items"] >= len(there), (info(client), len(there))
            assert client("TAMIS.CHECK", "rows", *there) == [1] * len(there)
            postgres.run("TRUNCATE items")
            assert pipeline.feed.wait(60) != 0, "a feed cannot tell that"
            pipeline.stop()
        finally:
            if pipeline:
                pipeline.stop()
            receiver.terminate()
            receiver.wait()


def info_of(client, field):
    for line in client("INFO").decode().splitlines():
        if line.startswith(field + ":"):
            return line.split(":")[1]
    raise AssertionError(field)


def main():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    exactly_once(rng)
    other_places_are_refused()
    assert a_rebuild_comes_between(None) == 0
    assert a_rebuild_comes_between("erases_of_other_generation") > 0
    a_full_filter_opens_the_door()
    a_restart_needs_the_end_of_the_feed()
    a_real_database(rng)


if __name__ == "__main__":
    main()
