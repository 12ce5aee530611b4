#!/usr/bin/env python3
"""Random SELECT statements over tables of a store and over the same tables of SQLite's own.

usage: random_joins_test.py [--serve TAMIS] EXTENSION [SEED [STATEMENTS]]

With --serve the store is behind a server.

The statements are joins of every kind whose ON and WHERE clauses hold every operator, over columns
of every type, with operands of every storage class and affinity, as literals, parameters and
columns. SQLite derives constraints of its own from such clauses (a range from LIKE, the two halves
of BETWEEN, an IN from an OR) and leaves out tests that a table promises to make. The answers must
be those of plain SQLite. Three rounds: with SQLite's own LIKE and GLOB, with
PRAGMA case_sensitive_like, and with like() and glob() of the application.
"""

import os
import random
import sqlite3
import sys
import tempfile

from served_store import ServedStore, take_serve

TYPES = {"k": "int64", "i": "int64", "d": "double", "b": "bytes", "o": "bool", "c": "decimal",
         "s": "text", "ts": "timestamp"}
DECLARED = {"int64": "INTEGER", "double": "REAL", "bytes": "BLOB", "bool": "BOOLEAN",
            "decimal": "DECIMAL", "text": "TEXT", "timestamp": "TIMESTAMP TEXT"}
VALUES = {
    "int64": [-(2**63), -7, -1, 0, 1, 2, 5, 10, 12, 2**53 + 1, 2**63 - 1, None],
    "double": [-1e300, -2.5, -0.5, 0.0, 0.1, 0.5, 1.0, 2.0, 12.0, 1e18, 1e300, float("inf"),
               float("-inf"), None],
    "bytes": [b"", b"x", b"xy", b"xyz", b"1", b"\x00", b"\xff", None],
    "bool": [0, 1, None],
    "decimal": [-12.25, -1, -0.5, 0, 0.25, 1.5, 2, 12, 100, None],
    "text": ["", "1", "12", "010", " 1", "1.0", "xy", "XY", "xyz", "Xyzzy", "xz", "x", "a_b",
             "2026-01", "2026-01-02", "é", "É", "~", "[x", "_x", "@x", "xy ", "5%", None],
    "timestamp": ["2026-01-01 00:00:00", "2026-01-02 03:04:05", "2026-01-02 03:04:05.25",
                  "2026-01-12 00:00:00", "2025-12-31 23:59:59", "0000-01-01 00:00:00",
                  "9999-12-31 23:59:59.999999", None],
}
NUMBERS = [-7, -1, -0.5, 0, 0.1, 0.5, 1, 1.0, 1.5, 2, 2.5, 5, 12, 100, 2**53 + 1, 2**63 - 1, 1e19,
           1e300, float("inf"), float("-inf")]
TEXTS = ["1", " 1 ", "+1", "1.", ".5", "1e0", "1e400", "-1e400", "0x1", "12abc", "nan", "inf",
         "Inf", "I", "2026", "2026-01-0", "2026-01-", "2026-01-02 0", "2026-01-02T03:04:05Z",
         "2026-01-02 03:04:05.2", "2026-1-2", "2026-13", "soon", "9223372036854775807",
         "9223372036854775808", "10000", ":", "\u00e9t\u00e9"]
ALL_TEXTS = TEXTS + [v for v in VALUES["text"] + VALUES["timestamp"] if v is not None]
# p's columns by affinity. A column of numbers with text in it compares in a way that is a limit of
# docs/SQL.md.
P = {"k": "INTEGER", "n": "NUMERIC", "r": "REAL", "t": "TEXT", "u": "", "z": "BLOB"}
ROWS = 14
PATTERNS = ["xy%", "XY%", "x%", "1%", "12%", "2026-01-0%", "2026-01-%", "2026-01-02 0%", "%", "",
            "x_", "_%", "\u00e9%", "a!_%", "5!%%", "I%", "i%", "-%", "[x%", "@x%", "true%", "2026%",
            "xy", "1", "!x%", "soon%"]
GLOBS = ["xy*", "XY*", "x*", "1*", "12*", "2026-01-0*", "2026-01-*", "*", "", "x?", "[xX]y*",
         "\u00e9*", "I*", "-*", "[[]x*", "@x*", "2026*", "xy", "1"]
RIGHT_JOINS = sqlite3.sqlite_version_info >= (3, 39)


def like(pattern, text):
    """An application's own: the text holds the pattern's letters, whatever their case."""
    if pattern is None or text is None:
        return None
    return str(pattern).strip("%*").casefold() in str(text).casefold()


class Generator:
    def __init__(self, rand):
        self.rand = rand
        self.parameters = []

    def operand_value(self):
        r = self.rand
        pick = r.randrange(8)
        if pick < 3:
            return r.choice(ALL_TEXTS)
        if pick < 5:
            return r.choice(NUMBERS)
        if pick < 6:
            return r.choice([v for v in VALUES["bytes"] if v is not None])
        return r.choice([v for values in VALUES.values() for v in values])

    def constant(self, value):
        if self.rand.random() < 0.4 or isinstance(value, float):
            self.parameters.append(value)
            return "?"
        if value is None:
            return "NULL"
        if isinstance(value, bytes):
            return "x'" + value.hex() + "'"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value)

    def operand(self, others):
        if others and self.rand.random() < 0.4:
            return self.rand.choice(others)
        text = self.constant(self.operand_value())
        if self.rand.random() < 0.1:
            text = f"CAST({text} AS {self.rand.choice(['TEXT', 'INTEGER', 'REAL', 'BLOB'])})"
        return text

    def leaf(self, columns, others):
        r = self.rand
        column = r.choice(columns)
        collate = r.choice(["", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"])
        kind = r.randrange(13)
        if kind < 4:
            op = r.choice(["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"])
            return f"{column}{collate} {op} {self.operand(others)}"
        if kind == 4:
            return f"{self.operand(others)} {r.choice(['=', '<', '>='])} {column}{collate}"
        if kind == 5:
            low, high = self.operand(others), self.operand(others)
            return f"{column}{collate} {r.choice(['', 'NOT '])}BETWEEN {low} AND {high}"
        if kind == 6:
            values = ", ".join(self.constant(self.operand_value()) for _ in range(r.randrange(4)))
            return f"{column}{collate} {r.choice(['', 'NOT '])}IN ({values})"
        if kind == 7:
            return f"{column}{collate} IN (SELECT {r.choice(list(P))} FROM p)"
        if kind == 8:
            return f"{column} IS {r.choice(['', 'NOT '])}NULL"
        if kind == 9:
            return f"{column} {r.choice(['', 'NOT '])}GLOB {self.constant(r.choice(GLOBS))}"
        if kind == 10:
            return f"{column} {r.choice(['', 'NOT '])}LIKE {self.constant(r.choice(PATTERNS))}"
        if kind == 11:
            return f"{column} LIKE {self.constant(r.choice(PATTERNS))} ESCAPE '!'"
        second = r.choice(columns)
        left = (self.operand(others), self.operand(others))
        return f"({column}, {second}) {r.choice(['<', '>', '=', '>='])} ({left[0]}, {left[1]})"

    def condition(self, columns, others, depth=2):
        r = self.rand
        if depth == 0 or r.random() < 0.5:
            return self.leaf(columns, others)
        first = self.condition(columns, others, depth - 1)
        second = self.condition(columns, others, depth - 1)
        return f"({first} {r.choice(['AND', 'AND', 'OR'])} {second})"

    def statement(self):
        """SQL and its parameters."""
        self.parameters = []
        r = self.rand
        of_q = [f"q.{name}" for name in TYPES]
        of_p = [f"p.{name}" for name in P]
        if r.random() < 0.15:
            return (f"SELECT q.k FROM q WHERE {self.condition(of_q, [])} "
                    f"ORDER BY q.k{r.choice(['', ' LIMIT 2'])}"), self.parameters
        if r.random() < 0.25:
            return self.ordered(of_q), self.parameters
        kinds = ["JOIN", "LEFT JOIN", "LEFT JOIN"]
        if RIGHT_JOINS:
            kinds += ["RIGHT JOIN", "FULL JOIN"]
        if r.random() < 0.2:
            first, second, others = "q", "q AS o", [f"o.{name}" for name in TYPES]
        else:
            first, second, others = r.choice([("p", "q", of_p), ("q", "p", of_p)])
        other = second if first == "q" else first
        sql = (f"SELECT {other[-1]}.k, q.k FROM {first} {r.choice(kinds)} {second} "
               f"ON {self.condition(of_q, others)}")
        if r.random() < 0.3:
            sql += f" WHERE {self.condition(of_q, others, 1)}"
        sql += " ORDER BY 1, 2"
        if r.random() < 0.2:
            sql += f" LIMIT {r.randrange(5)}"
        return sql, self.parameters


    def ordered(self, columns):
        """Rows in an order, maybe the first ones only; or the ends of a column."""
        r = self.rand
        where = f" WHERE {self.condition(columns, [], 1)}" if r.random() < 0.6 else ""
        if r.random() < 0.2:
            return f"SELECT {r.choice(['min', 'max'])}({r.choice(columns)}) FROM q{where}"
        terms = r.sample(columns, r.randrange(1, 3))
        way = r.choice(["", " DESC"])
        order = ", ".join(term + (way if r.random() < 0.8 else r.choice(
            [" DESC", " COLLATE NOCASE", " NULLS LAST", " NULLS FIRST"])) for term in terms)
        # Rows that are equal in the order may come in any.
        shown = terms if "NOCASE" not in order else ["count(*) OVER ()"]
        sql = f"SELECT {', '.join(shown)} FROM q{where} ORDER BY {order}"
        if r.random() < 0.6:
            sql += f" LIMIT {r.randrange(6)}"
            if r.random() < 0.4:
                sql += f" OFFSET {r.randrange(4)}"
        return sql


def rows_of_q(rand):
    rows = []
    for k in range(ROWS):
        rows.append([k] + [rand.choice(VALUES[kind]) for kind in list(TYPES.values())[1:]])
    return rows


def rows_of_p(rand):
    for k in range(5):
        text = rand.choice(ALL_TEXTS)
        yield (k, rand.choice(NUMBERS), rand.choice(NUMBERS), text,
               rand.choice([rand.choice(ALL_TEXTS), rand.choice(NUMBERS), None, b"xy"]),
               rand.choice([rand.choice(ALL_TEXTS), rand.choice(NUMBERS), b"x"]))


def run(db, sql, parameters):
    try:
        return db.execute(sql, parameters).fetchall()
    except sqlite3.Error as error:
        return f"error: {error}"


def prepare(extension, store, rand):
    """(a connection with the tables of a store, one with SQLite's own)"""
    ours = sqlite3.connect(":memory:", isolation_level=None)
    ours.enable_load_extension(True)
    ours.load_extension(extension)
    ours.execute("SELECT tamis_open(?)", (store,)).fetchall()
    plain = sqlite3.connect(":memory:", isolation_level=None)
    indexes = "".join(f", index {name} ({name})" for name in list(TYPES)[1:] if rand.random() < 0.5)
    ours.execute("CREATE VIRTUAL TABLE q USING tamis("
                 + ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
                 + ", key (k)" + indexes + ")")
    plain.execute("CREATE TABLE q(" + ", ".join(f"{name} {DECLARED[kind]}"
                                               for name, kind in TYPES.items())
                  + ", PRIMARY KEY (k)) WITHOUT ROWID")
    q, p = rows_of_q(rand), list(rows_of_p(rand))
    for db in (ours, plain):
        db.execute("CREATE TABLE p(" + ", ".join(f"{n} {a}" for n, a in P.items()) + ")")
        db.executemany("INSERT INTO q VALUES (?,?,?,?,?,?,?,?)", q)
        db.executemany("INSERT INTO p VALUES (?,?,?,?,?,?)", p)
    return ours, plain


def main():
    tamis = take_serve(sys.argv)
    extension = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 700
    print(f"seed {seed}, {count} statements a round")
    rand = random.Random(seed)
    failed = answered = 0
    for name in ("SQLite's own LIKE", "PRAGMA case_sensitive_like", "like() of the application"):
        with tempfile.TemporaryDirectory() as directory:
            store = ServedStore(tamis, os.path.join(directory, "store"))
            ours, plain = prepare(extension, store.name, rand)
            for db in (ours, plain):
                if name.startswith("PRAGMA"):
                    db.execute(name + " = ON")
                elif name.startswith("like()"):
                    db.create_function("like", 2, like)
                    db.create_function("like", 3, lambda p, t, _: like(p, t))
                    db.create_function("glob", 2, like)
            generator = Generator(rand)
            for _ in range(count):
                sql, parameters = generator.statement()
                wanted, got = run(plain, sql, parameters), run(ours, sql, parameters)
                answered += bool(wanted)
                if got != wanted:
                    failed += 1
                    print(f"{name}: {sql}\n  with {parameters}\n  plain SQLite: {wanted}\n"
                          f"  the store: {got}")
            ours.close()
            store.close()
    print(f"{failed} answers differ; {answered} of {3 * count} have rows")
    sys.exit(1 if failed or answered < count else 0)


main()
