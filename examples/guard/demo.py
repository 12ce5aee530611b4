#!/usr/bin/env python3
"""`./run --redis`: what a filter in Redis spares a PostgreSQL, and what becomes of it in trouble.

A PostgreSQL and redis-servers of its own; 95 % of the lookups are for rows that are not there, and rows
come and go throughout. First the same traffic through a cache alone, a cache that notes what is not
there, a Bloom filter (BF.EXISTS) and a filter that erases (TAMIS.CHECK); then the two filters in
trouble. Each row that stands in the table and is refused is counted: with TAMIS.CHECK there is none.

usage: demo.py TAMIS MODULE GUARD_TRAFFIC DIRECTORY [--quick]
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("guard", "redis"):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", folder))

from postgres import Postgres
from redis_server import Server

MIB = 1 << 20
QUERY = "SELECT id FROM items"
CACHE = ("maxmemory", "128mb", "maxmemory-policy", "volatile-lru")  # evicts rows, not the filter
MODES = {  # what it is called
    "cache": "cache alone",
    "null": "cache that notes what is not there",
    "null+few": "the same, 20,000 absent ids that come again",
    "bf": "Bloom filter, BF.EXISTS",
    "guard": "filter that erases, TAMIS.CHECK",
}


def say(text):
    print(text, flush=True)


class Cpu:
    """Of PostgreSQL: the server's process, its children, and those that have ended."""

    def __init__(self, pid):
        self.pid = pid

    def seconds(self):
        ticks = sum(self.stat(self.pid)[11:15])
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    stat = self.stat(name)
                except OSError:
                    continue
                if stat[1] == self.pid:
                    ticks += stat[11] + stat[12]
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def stat(pid):
        """From the state on; numbers but for that."""
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return [words[0], *map(int, words[1:16])]


class Traffic:
    def __init__(self, program, postgres, server, mode, rows):
        self.process = subprocess.Popen(
            [program, postgres.dsn, "unix://" + server.path, mode, str(rows), "1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ticks, self.phases = [], []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            told = json.loads(line)
            (self.ticks if "tick" in told else self.phases).append(told)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def phase(self, name, seconds=0.0):
        self.say("phase " + name)
        time.sleep(seconds)

    def end(self):
        self.process.stdin.close()
        self.reader.join()
        self.process.wait()
        if self.process.returncode != 0:
            sys.exit("guard_traffic failed")

    def total(self, field):
        return sum(phase[field] for phase in self.phases)


class Demo:
    def __init__(self, tamis, module, program, directory, quick):
        self.tamis, self.module, self.program, self.directory = tamis, module, program, directory
        self.seconds = 1.0 if quick else 3.0
        self.sizes = (2000, 5000) if quick else (80_000, 1_000_000)
        self.postgres = Postgres("shared_buffers=256MB", "autovacuum=on")
        self.cpu = Cpu(self.postgres.process.pid)

    # --- servers and filters ---

    def make_table(self, rows):
        self.postgres.run(
            "DROP TABLE IF EXISTS items", "CREATE TABLE items (id bigint PRIMARY KEY, note text)",
            f"INSERT INTO items SELECT n, repeat('x', 100) FROM generate_series(0, {rows - 1}) n",
            "VACUUM ANALYZE items")

    def server(self):
        return Server(self.module, *CACHE, "repl-diskless-sync-delay", "0")

    def copy(self):
        return ["psql", "-X", self.postgres.dsn, "-c", f"COPY ({QUERY}) TO STDOUT"]

    def guard(self, server, command, *words):
        return subprocess.run(
            [self.tamis, "guard", command, "--redis", "unix://" + server.path, "--key", "items",
             *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def fill(self, server, mode, rows):
        """Returns what the program says of it."""
        capacity = rows * 5 // 4 + 20_000
        if mode == "guard":
            done = self.guard(server, "load", "--replace", "--query", QUERY, "--database", self.postgres.dsn,
                              "--capacity", str(capacity))
            if done.returncode != 0:
                sys.exit(done.stderr)
            return done.stderr.strip().splitlines()[-1]
        if mode != "bf":
            return ""
        # Beside the old one, then in its place: the best that can be done with it.
        client = server.client()
        client("DEL", "items:new")
        assert client("BF.RESERVE", "items:new", "0.01", capacity) == "OK"
        ids = subprocess.run(self.copy(), stdout=subprocess.PIPE, check=True).stdout.split()
        client.pipeline(["BF.MADD", "items:new", *ids[i:i + 500]] for i in range(0, len(ids), 500))
        assert client("RENAME", "items:new", "items") == "OK"
        return f"items: {len(ids)} rows"

    def scans(self):
        """Looks at the table by its key, as PostgreSQL counts them."""
        with self.postgres.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'items'")
            count = cursor.fetchone()[0]
        connection.close()
        return count

    # --- the same traffic through each ---

    def steady(self, mode, rows):
        with self.server() as server:
            client = server.client()
            self.postgres.run("DELETE FROM items WHERE id >= 4294967296")  # of the traffic before
            self.fill(server, mode.split("+")[0], rows)
            scans, cpu = self.scans(), self.cpu.seconds()
            traffic = Traffic(self.program, self.postgres, server, mode, rows)
            traffic.phase("warm", self.seconds / 2)
            traffic.phase("measured", self.seconds)
            traffic.end()
            memory = int(info(client, "used_memory"))
            filter_bytes = client("MEMORY", "USAGE", "items") or 0
        measured = traffic.phases[1]
        lookups = traffic.total("lookups")
        return {
            "mode": mode, "rows": rows,
            "queries": 1000 * (self.scans() - scans - traffic.total("deletes")) / lookups,
            "cpu": 1e6 * (self.cpu.seconds() - cpu) / lookups,
            "rate": measured["lookups"] / measured["seconds"],
            "p50": measured["p50_us"], "p99": measured["p99_us"], "memory": memory / MIB,
            "filter": filter_bytes / MIB, "refused": traffic.total("refused"),
        }

    # --- trouble ---

    def trouble(self, mode, rows):
        self.make_table(rows)
        pause = self.seconds / 2
        with self.server() as primary, self.server() as other:
            client = primary.client()
            self.fill(primary, mode, rows)
            traffic = Traffic(self.program, self.postgres, primary, mode, rows)
            traffic.phase("all is well", 2 * pause)

            client("DEL", "items")
            traffic.phase("the key is deleted", pause)
            traffic.phase("filled again")
            self.fill(primary, mode, rows)
            time.sleep(pause)

            client("SAVE")
            time.sleep(1)  # what comes in this second is lost
            primary.kill()
            traffic.phase("killed, its last second lost")
            primary.start()
            client = primary.client()
            time.sleep(pause)
            traffic.phase("filled again")
            self.fill(primary, mode, rows)
            time.sleep(pause)

            self.replicate(client, other)
            client("CONFIG", "SET", "port", "0")
            client("CLIENT", "KILL", "TYPE", "replica")
            time.sleep(1)  # the replica hears nothing of it
            primary.kill()
            traffic.phase("its replica is promoted")
            other.client()("REPLICAOF", "NO", "ONE")
            traffic.say("redis unix://" + other.path)
            time.sleep(pause)
            traffic.phase("filled again")
            self.fill(other, mode, rows)
            time.sleep(pause)

            traffic.phase("filled anew while all is well")
            told = self.fill(other, mode, rows)
            time.sleep(pause)
            traffic.end()
            verified = self.guard(other, "verify", "--query", QUERY, "--database", self.postgres.dsn)
        return traffic, told, verified

    @staticmethod
    def replicate(client, other):
        assert client("CONFIG", "SET", "port", str(free_port())) == "OK"
        reader = other.client()
        assert reader("REPLICAOF", "127.0.0.1", client("CONFIG", "GET", "port")[1].decode()) == "OK"
        while info(reader, "master_link_status") != "up":
            time.sleep(0.02)

    # --- all of it ---

    def plot(self, name, described):
        path = os.path.join(self.directory, name)
        subprocess.run([self.program, "--plot", path], input=json.dumps(described), text=True, check=True)
        say(f"    {path}")

    def run(self):
        steady = []
        for rows in self.sizes:
            self.make_table(rows)
            say(f"\n{rows:,} rows, 95 % of the lookups for rows that are not there\n")
            say(f"{'':46}PostgreSQL, a thousand    lookups  rows that exist    Redis   filter")
            say(f"{'':46}lookups: queries     CPU  a second  p50 us  p99 us     MiB      MiB  refused")
            for mode, name in MODES.items():
                one = self.steady(mode, rows)
                steady.append(one)
                say(f"{name:46}{one['queries']:16.1f} {one['cpu']:4.1f} ms {one['rate']:9,.0f}"
                    f" {one['p50']:7.0f} {one['p99']:7.0f} {one['memory']:7.1f} {one['filter']:8.2f}"
                    f" {one['refused']:8}")
        refused = {mode: sum(one["refused"] for one in steady if one["mode"] == mode) for mode in MODES}
        runs = {}
        for mode in ("guard", "bf"):
            rows = self.sizes[0]
            say(f"\nTrouble: {MODES[mode]}, {rows:,} rows\n")
            runs[mode], told, verified = self.trouble(mode, rows)
            say(f"{'':32}seconds  lookups  to the database  not known  p99 us  refused")
            for phase in runs[mode].phases:
                say(f"{phase['phase']:32}{phase['seconds']:7.1f} {phase['lookups']:8,} "
                    f"{phase['queries']:16,} {phase['unknown']:10,} {phase['p99_us']:7.0f} "
                    f"{phase['refused']:8,}")
            refused[mode] += runs[mode].total("refused")
            say(f"filled: {told}\nat last: {verified.stderr.strip()}")
        say("\nPlots:")
        self.plots(steady, runs)
        say(f"\nExisting rows refused: {refused['guard']} with TAMIS.CHECK, {refused['bf']:,} with "
            "BF.EXISTS")
        if refused["guard"] != 0 or refused["cache"] != 0:
            sys.exit("A row that exists was refused.")
        if refused["bf"] == 0:
            sys.exit("With BF.EXISTS no row was refused: the trouble was none.")

    def plots(self, steady, runs):
        longest = max(run.ticks[-1]["tick"] for run in runs.values())
        seconds = {"title": "seconds", "low": 0, "high": longest,
                   "ticks": [(s, str(s)) for s in range(0, int(longest) + 1, 5)]}
        marks = "; ".join(f"{p['at']:.0f} s: {p['phase']}" for p in runs["guard"].phases[1:]
                          if not p["phase"].startswith("filled"))

        def lines(value, least):
            return [{"name": MODES[mode], "points": [(tick["tick"], max(least, value(before, tick)))
                                                     for before, tick in zip(run.ticks, run.ticks[1:])]}
                    for mode, run in runs.items()]

        def axis(title, low, high):
            powers = [10**i for i in range(9) if low <= 10**i <= high]
            return {"title": title, "low": low, "high": high, "logarithmic": True,
                    "ticks": [(power, f"{power:,}") for power in powers]}

        def share(before, tick):
            return 1000 * (tick["queries"] - before["queries"]) / max(
                1, tick["lookups"] - before["lookups"])

        self.plot("trouble_queries.svg", {
            "title": "Lookups that reach PostgreSQL in trouble", "subtitle": marks, "x": seconds,
            "y": axis("of a thousand", 1, 1000), "series": lines(share, 1)})
        self.plot("trouble_refused.svg", {
            "title": "Existing rows refused in trouble", "subtitle": "so far; 1 = none", "x": seconds,
            "y": axis("rows", 1, 10**6), "series": lines(lambda before, tick: tick["refused"], 1)})
        modes = list(MODES)
        across = {"title": "", "low": -0.5, "high": len(modes) - 0.5,
                  "ticks": list(enumerate(modes))}
        for field, title, low, high in (("queries", "queries of PostgreSQL, a thousand lookups", 1, 1000),
                                        ("cpu", "ms of PostgreSQL's CPU, a thousand lookups", 0.1, 1000),
                                        ("rate", "lookups a second", 1000, 10**6),
                                        ("p99", "p99 of rows that exist, us", 10, 10**5),
                                        ("memory", "MiB of Redis", 1, 1000)):
            self.plot(f"steady_{field}.svg", {
                "title": title, "subtitle": "95 % of the lookups are for rows that are not there",
                "x": across, "y": axis(title, low, high),
                "series": [{"name": f"{rows:,} rows", "marks": True,
                            "points": [(modes.index(one["mode"]), max(low, one[field]))
                                       for one in steady if one["rows"] == rows]}
                           for rows in self.sizes]})


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def info(client, field):
    for line in client("INFO").decode().splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1]
    return ""


def main():
    words = [word for word in sys.argv[1:] if word != "--quick"]
    tamis, module, program, directory = words
    os.makedirs(directory, exist_ok=True)
    demo = Demo(tamis, module, program, directory, "--quick" in sys.argv)
    with demo.postgres:
        demo.run()


if __name__ == "__main__":
    main()
