#!/usr/bin/env python3
"""tamis_fdw against PostgreSQL: random statements over foreign tables and over ordinary tables with the same rows.

usage: random_queries_test.py TAMIS LIBRARY [--seed N] [--statements N]

Both must give the same rows, or both an error. Conditions, joins, aggregates, orders and limits are random, with NULL,
infinities, numeric scale, timestamps with time zone, and text under "C" and under a natural collation. The seed is
printed. A third of the statements is prepared with parameters, under a generic plan.
"""

import argparse
import collections
import contextlib
import os
import random
import sys

import psycopg2
import psycopg2.extensions

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402  pylint: disable=wrong-import-position

ITEMS = """id bigint NOT NULL, customer text COLLATE "C", title text COLLATE "en-x-icu", n bigint, d double precision,
    p numeric, t timestamp with time zone, f boolean, y bytea"""
PLACES = """region text COLLATE "C" NOT NULL, number bigint NOT NULL, n bigint, title text COLLATE "en-x-icu" """
TEXTS = ["", "a", "A", "b", "B", "ab", "aB", "abc", "a%", "a_c", "kim", "Kim", "lee", "zoë", "Zoe", "é", "É", "~", "0", "10",
         "010", "\U0001F600", "\uFFFD", "NULL", "it's", "\\", "\u07ff", "\ud7ff"]
INTEGERS = [0, 1, -1, 2, 3, 5, 10, 1 << 31, -(1 << 31) - 1, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)]
DOUBLES = ["0", "-0", "1", "1.5", "-1.5", "0.1", "1e300", "-1e300", "5e-324", "'Infinity'", "'-Infinity'", "9007199254740993"]
NUMERICS = ["0", "1", "1.10", "-1.1", "0.1", "100", "1e3", "12345678901234567890.5", "-12345678901234567890.5",
            "12345678901234567890.50000000000000000001", "9007199254740993", "9223372036854775808", "0.30000000000000004"]
TIMES = ["1969-12-31 23:59:59.999999+00", "1970-01-01 00:00:00+00", "2026-01-02 03:04:05+00", "2026-01-02 03:04:05.5+00",
         "2026-01-02 04:04:05+01", "2026-03-29 02:30:00+01", "0001-03-15 00:00:00+00 BC", "0001-01-01 00:00:00+00",
         "9999-12-31 23:59:59.999999+00", "2026-01-02 00:00:00+00"]
BYTES = ["", "00", "00ff", "61", "6162", "ff"]
COLUMNS = {"id": "bigint", "customer": "text", "title": "text", "n": "bigint", "d": "double precision", "p": "numeric",
           "t": "timestamp with time zone", "f": "boolean", "y": "bytea"}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


def quoted(text):
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class Statements:
    """Random statements; "@" before a table is replaced by the kind of table that is asked."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.keys = 1000

    def pick(self, values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def value(self, kind, for_row=False):
        if self.chance(0.03 if not for_row else 0.15):
            return "NULL"
        if kind == "bigint":
            return f"({self.pick(INTEGERS) if self.chance(0.4) else self.random.randint(-5, 12)})"
        if kind == "text":
            return quoted(self.pick(TEXTS))
        if kind == "double precision":
            special = ["'NaN'"] if not for_row else []
            return self.pick(DOUBLES + special)
        if kind == "numeric":
            special = ["'NaN'", "'Infinity'", "'-Infinity'"] if not for_row else []
            return self.pick(NUMERICS + special + [f"{self.random.randint(-50, 50) / 10}"])
        if kind.startswith("timestamp"):
            special = ["infinity", "-infinity"] if not for_row else []
            return quoted(self.pick(TIMES + special))
        if kind == "boolean":
            return self.pick(["true", "false"])
        return f"'\\x{self.pick(BYTES)}'"

    def typed(self, kind):
        return f"{self.value(kind)}::{kind}"

    def comparison(self, alias):
        column, kind = self.pick(list(COLUMNS.items()))
        left = f"{alias}.{column}"
        form = self.random.randrange(14)
        if form == 0:
            return f"{left} IS {self.pick(['', 'NOT '])}NULL"
        if form == 1:
            values = ", ".join(self.typed(kind) for _ in range(self.random.randint(1, 5)))
            return f"{left} {self.pick(['IN', 'IN', 'NOT IN'])} ({values})"
        if form == 2:
            values = ", ".join(self.typed(kind) for _ in range(self.random.randint(0, 5)))
            return f"{left} {self.pick(['= ANY', '= ANY', '<> ALL'])} (ARRAY[{values}]::{kind}[])"
        if form == 3:
            return f"{left} BETWEEN {self.typed(kind)} AND {self.typed(kind)}"
        if form == 4:
            pattern = self.pick(["a%", "%b", "a_c", "ab", "", "\\_%", "é%", "z%", "\U0001F600%", "A%", "\u07ff%", "\ud7ff%"])
            return f"{alias}.{self.pick(['customer', 'title'])} {self.pick(['LIKE', 'LIKE', 'NOT LIKE'])} {quoted(pattern)}"
        if form == 5:
            return f"{alias}.f IS {self.pick(['', 'NOT '])}{self.pick(['TRUE', 'FALSE', 'UNKNOWN'])}"
        if form == 6:
            return self.pick([f"{alias}.f", f"abs({alias}.id) > 3", f"length({alias}.title) = 1", f"{alias}.n = {alias}.id",
                              f"{alias}.d > 1::numeric::double precision", f"{alias}.customer = {alias}.title COLLATE \"C\"",
                              f"{alias}.t > now() - interval '5 years'", f"({alias}.n = 5::int2 OR {alias}.n < 9::int4)",
                              f"starts_with({alias}.customer, 'a')", f"{alias}.customer ^@ 'a'"])
        if form == 7 and kind == "text":
            collation = self.pick(["C", "en-x-icu"])
            return f'{left} {self.pick(COMPARISONS)} {self.typed(kind)} COLLATE "{collation}"'
        if form == 8:
            return f"{self.typed(kind)} {self.pick(COMPARISONS)} {left}"
        return f"{left} {self.pick(COMPARISONS)} {self.typed(kind)}"

    def condition(self, alias, depth=2):
        form = self.random.randrange(6) if depth > 0 else 5
        if form < 2:
            words = [" AND ", " OR "]
            return "(" + words[form].join(self.condition(alias, depth - 1) for _ in range(self.random.randint(2, 3))) + ")"
        if form == 2:
            return f"NOT ({self.condition(alias, depth - 1)})"
        return self.comparison(alias)

    def where(self, alias):
        if self.chance(0.15):
            return ""
        return " WHERE " + " AND ".join(self.condition(alias) for _ in range(self.random.randint(1, 3)))

    def order(self, alias):
        terms = []
        for column in self.random.sample(list(COLUMNS), self.random.randint(0, 2)):
            terms.append(f"{alias}.{column}{self.pick(['', ' DESC'])}{self.pick(['', '', ' NULLS FIRST', ' NULLS LAST'])}")
        return " ORDER BY " + ", ".join([*terms, f"{alias}.id"])

    def rows(self):
        columns = ", ".join(f"a.{name}" for name in self.random.sample(list(COLUMNS), self.random.randint(1, 4)))
        text = f"SELECT {self.pick([columns, columns, 'a.*', 'a', 'count(*)'])} FROM @items a{self.where('a')}"
        if "count(*)" in text or self.chance(0.4):
            return text, False
        text += self.order("a")
        if self.chance(0.6):
            text += f" LIMIT {self.pick(['NULL', 'ALL', '0', '1', '3', '10', '1000'])}"
        if self.chance(0.3):
            text += f" OFFSET {self.pick(['NULL', '0', '1', '5', '1000'])}"
        return text, True

    def aggregate(self):
        totals = ["count(*)", "count(a.n)", "count(DISTINCT a.customer)", "count(DISTINCT a.title)", "sum(a.n)", "avg(a.n)",
                  "min(a.n)", "max(a.n)", "min(a.d)", "max(a.d)", "min(a.customer)", "max(a.customer)", "max(a.title)", "sum(a.p)",
                  "avg(a.p)", "min(a.t)", "max(a.t)", "min(a.p)", "bool_or(a.f)", "count(DISTINCT a.p)", "count(*) FILTER (WHERE a.f)",
                  "sum(a.id) + 1", "count(a.customer) * 2", "sum(DISTINCT a.n)", "max(a.id) - min(a.id)"]
        wanted = self.random.sample(totals, self.random.randint(1, 4))
        groups = self.random.sample(["a.customer", "a.title", "a.f", "a.p", "a.t", "a.d", "a.y", "a.n"], self.random.randint(0, 2))
        if self.chance(0.1):
            groups.append("a.id % 3")
        text = f"SELECT {', '.join([*groups, *wanted])} FROM @items a{self.where('a')}"
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
        if self.chance(0.25):
            text += f" HAVING {self.pick(['count(*) > 1', 'max(a.n) > 2', 'sum(a.id) < 100', 'count(*) BETWEEN 1 AND 3'])}"
        return text, False

    def join(self):
        kind = self.pick(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
        other, on = self.pick([("@places", "b.n = a.n"), ("@places", "b.region = a.customer"), ("places_l", "b.n = a.id"),
                               ("@places", "b.n = a.n AND b.number = a.id"), ("places_l", "b.region = a.customer AND b.n < a.n"),
                               ("@places", "b.title = a.title"), ("(VALUES (1::bigint), (2), (-1))", "b.column1 = a.id")])
        if kind == "FULL JOIN" and "<" in on:
            kind = "LEFT JOIN"
        first, second = (f"{other} b", "@items a") if self.chance(0.5) else ("@items a", f"{other} b")
        text = f"SELECT a.id, a.n, a.customer, b.* FROM {first} {kind} {second} ON {on}{self.where('a')}"
        return text, False

    def subquery(self):
        return self.pick([
            f"SELECT a.id FROM @items a WHERE a.n IN (SELECT b.n FROM @places b WHERE b.number < {self.value('bigint')})",
            f"SELECT a.id FROM @items a WHERE EXISTS (SELECT FROM @places b WHERE b.n = a.n AND {self.comparison('a')})",
            f"SELECT a.id, (SELECT max(b.number) FROM @places b WHERE b.n = a.n) FROM @items a{self.where('a')}",
            f"SELECT a.id FROM @items a WHERE a.n = (SELECT min(b.n) FROM @places b)",
            f"SELECT DISTINCT a.customer, a.f FROM @items a{self.where('a')}",
            f"SELECT a.id, x.n FROM @items a, LATERAL (SELECT b.n FROM @places b WHERE b.region = a.customer "
            f"ORDER BY b.region, b.number LIMIT 2) x{self.where('a')}",
            f"SELECT id, rank() OVER (ORDER BY n, id) FROM @items a{self.where('a')}",
            f"SELECT id FROM @items a{self.where('a')} UNION SELECT number FROM @places",
            f"SELECT id, customer FROM @items a{self.where('a')} UNION ALL SELECT id, title FROM @items a{self.where('a')} UNION ALL "
            "SELECT number, region FROM @places",
            f"SELECT count(*), max(n) FROM (SELECT n FROM @items a{self.where('a')} UNION ALL SELECT n FROM @places) u"]), False

    def statement(self):
        return self.pick([self.rows, self.rows, self.aggregate, self.join, self.subquery])()

    def row(self):
        self.keys += 1
        return "(" + ", ".join([str(self.keys), *(self.value(kind, True) for kind in list(COLUMNS.values())[1:])]) + ")"

    def insert(self):
        if self.chance(0.2):
            self.keys += 100
            text = f"INSERT INTO @items SELECT {self.keys} + b.number, b.region, b.title, b.n FROM @places b WHERE b.number < 20"
            self.keys += 100
            return text
        return f"INSERT INTO @items VALUES {', '.join(self.row() for _ in range(self.pick([1, 1, 3])))}"

    def change(self):
        kind = self.random.randrange(4)
        if kind == 0:
            return self.insert()
        # Some rows, so that there are others tomorrow.
        where = f"{self.where('a') or ' WHERE true'} AND a.id % 5 = {self.random.randrange(5)}"
        if kind == 1:
            return f"DELETE FROM @items a{where} AND a.id % 4 = 0"
        columns = self.random.sample(list(COLUMNS)[1:], self.random.randint(1, 3))
        values = [f"{name} = {self.value(COLUMNS[name], True)}" for name in columns]
        if self.chance(0.2):
            values = [self.pick(["n = a.n / 2", "customer = a.title", "d = -a.d", "p = trim_scale(a.p / 4)", "f = NOT a.f", "t = a.t",
                                 "y = a.y || '\\x00'"])]
        if self.chance(0.2):
            return (f"UPDATE @items a SET {', '.join(values)} FROM @places b{where} AND b.n = a.n AND b.number = "
                    f"(SELECT min(number) FROM @places c WHERE c.n = a.n)")
        return f"UPDATE @items a SET {', '.join(values)}{where}"

    def transaction(self):
        """The changes of a transaction: a statement that reads the table can only be the first."""
        statements = ["BEGIN", self.change()]
        for _ in range(self.random.randint(0, 4)):
            statements.append(self.pick([self.insert(), self.insert(), "SAVEPOINT s"]))
        if "SAVEPOINT s" in statements:
            statements += [self.pick(["ROLLBACK TO s", "RELEASE s"]), self.insert()]
        return statements + [self.pick(["COMMIT", "COMMIT", "ROLLBACK"])]

    def prepared(self):
        """A statement with parameters: its text, their types and values."""
        names = self.random.sample(list(COLUMNS), self.random.randint(1, 3))
        conditions, types, values = [], [], []
        for name in names:
            kind = COLUMNS[name]
            conditions.append(f"a.{name} {self.pick(COMPARISONS)} ${len(types) + 1}")
            if self.chance(0.3):
                conditions[-1] = f"a.{name} = ANY (${len(types) + 1})"
                kind += "[]"
                values.append(self.pick(["NULL", "ARRAY[" + ", ".join(
                    self.typed(kind[:-2]) for _ in range(self.random.randint(0, 4))) + f"]::{kind}"]))
            else:
                values.append(self.value(kind))
            types.append(kind)
        word = self.pick([" AND ", " OR "])
        text = f"SELECT a.id FROM @items a WHERE {word.join(conditions)} ORDER BY a.id"
        if self.chance(0.4):
            types.append("bigint")
            values.append(self.pick(["NULL", "0", "2", "100"]))
            text += f" LIMIT ${len(types)}"
        return text, types, values


class Test:
    def __init__(self, tamis, library, seed):
        self.statements = Statements(seed)
        with contextlib.ExitStack() as stack:
            self.installation = stack.enter_context(servers.Installation(library))
            self.store = stack.enter_context(servers.Store(tamis, "--write"))
            self.make_store()
            self.server = stack.enter_context(servers.postgres.Postgres(
                "plan_cache_mode=force_generic_plan", programs=self.installation.binaries))
            self.connect()
            self.close = stack.pop_all().close

    def connect(self):
        connection = self.server.connect(autocommit=True)
        connection.set_client_encoding("UTF8")
        # Python has no year 0 and no year 10000.
        psycopg2.extensions.register_type(
            psycopg2.extensions.new_type((1184,), "TIME", lambda text, _: text), connection)
        self.cursor = connection.cursor()
        self.make_tables()

    def make_store(self):
        self.store.run("table", "create", "items", "--column", "id:int64", "--column", "customer:text", "--column", "title:text",
                       "--column", "n:int64", "--column", "d:double", "--column", "p:decimal", "--column", "t:timestamp",
                       "--column", "f:bool", "--column", "y:bytes", "--key", "id", "--index", "customer", "--index", "n,id",
                       "--index", "p", "--index", "t", "--index", "d")
        self.store.run("table", "create", "places", "--column", "region:text", "--column", "number:int64", "--column", "n:int64",
                       "--column", "title:text", "--key", "region,number", "--index", "n")
        self.store.start()

    def make_tables(self):
        run = self.cursor.execute
        run("SET timezone = 'Europe/Oslo'")
        run("CREATE EXTENSION tamis_fdw")
        run(f"CREATE SERVER shop FOREIGN DATA WRAPPER tamis_fdw OPTIONS (url '{self.store.url}', startup_cost '5')")
        for name, columns in (("items", ITEMS), ("places", PLACES)):
            run(f"CREATE FOREIGN TABLE {name}_f ({columns}) SERVER shop OPTIONS (table_name '{name}')")
            run(f"CREATE TABLE {name}_l ({columns})")
        for number in range(120):
            row = [f"({number})", *(self.statements.value(kind, True) for kind in list(COLUMNS.values())[1:])]
            run(f"INSERT INTO items_f VALUES ({', '.join(row)})")
        rows = ", ".join(
            f"({quoted(self.statements.pick(TEXTS))}, {number}, {self.statements.value('bigint', True)}, "
            f"{self.statements.value('text', True)})" for number in range(40))
        run(f"INSERT INTO places_f VALUES {rows}")
        self.store.stop()
        for number in range(2):
            lines = self.store.run("region", "list", "items").splitlines()
            self.store.run("region", "split", [line.split()[0] for line in lines if line.split()[0].isdigit()][number])
        self.store.start()
        # The rows as they come back: a numeric has no zeros at its end.
        for name in ("items", "places"):
            run(f"INSERT INTO {name}_l SELECT * FROM {name}_f")
            run(f"ANALYZE {name}_l")
        run("ANALYZE places_f")

    def answer(self, text, ordered):
        try:
            self.cursor.execute(text)
            rows = [tuple(bytes(v) if isinstance(v, memoryview) else repr(v) for v in row) for row in self.cursor.fetchall()]
        except psycopg2.Error as error:
            return "error " + error.pgcode, str(error)
        return (rows if ordered else collections.Counter(rows)), ""

    def compare(self, text, ordered):
        wanted, _ = self.answer(text.replace("@items", "items_l").replace("@places", "places_l"), ordered)
        found, why = self.answer(text.replace("@items", "items_f").replace("@places", "places_f"), ordered)
        if found == wanted:
            return True
        self.cursor.execute("EXPLAIN (VERBOSE, COSTS OFF) " + text.replace("@items", "items_f").replace("@places", "places_f"))
        plan = "\n".join(row[0] for row in self.cursor.fetchall())
        print(f"differs: {text}\n  PostgreSQL: {wanted}\n  tamis_fdw:  {found} {why}\n{plan}")
        return False

    def compare_prepared(self):
        text, types, values = self.statements.prepared()
        answers = []
        for kind in ("l", "f"):
            self.cursor.execute(f"PREPARE asked ({', '.join(types)}) AS " + text.replace("@items", "items_" + kind))
            answers.append([self.answer(f"EXECUTE asked ({', '.join(values)})", True) for _ in range(2)])
            self.cursor.execute("DEALLOCATE asked")
        if [rows for rows, _ in answers[0]] == [rows for rows, _ in answers[1]]:
            return True
        print(f"differs: {text} with {values}\n  PostgreSQL: {answers[0]}\n  tamis_fdw:  {answers[1]}")
        return False

    def run(self, count):
        faults = 0
        pushed = collections.Counter()
        for number in range(count):
            if number % 3 == 0:
                faults += not self.compare_prepared()
                continue
            text, ordered = self.statements.statement()
            faults += not self.compare(text, ordered)
            self.note_pushed(text, pushed)
            if faults == 5:
                break
        print(f"{count} statements; sent to the server: {dict(pushed)}")
        # The comparison means nothing if PostgreSQL did the work.
        for word in ("WHERE", "ORDER BY", "LIMIT", "GROUP BY", "sum(", " OR ", " IN (", "NOT ("):
            assert pushed[word] > count / 1500, f"only {pushed[word]} statements sent {word}"
        assert faults == 0, f"{faults} statements differ"

    def both(self, text):
        """The number of rows that the statement has changed in each of the tables."""
        counts = []
        for kind in ("l", "f"):
            try:
                self.cursor.execute(text.replace("@items", "items_" + kind).replace("@places", "places_" + kind))
                counts.append(self.cursor.rowcount)
            except psycopg2.Error as error:
                raise AssertionError(f"{text} on items_{kind}") from error
        assert counts[0] == counts[1], f"{text}\n  PostgreSQL: {counts[0]}\n  tamis_fdw:  {counts[1]}"
        return counts[0]

    def run_transaction(self):
        """A transaction over the one table, then the same over the other."""
        statements = self.statements.transaction()
        for kind in ("l", "f"):
            for statement in statements:
                try:
                    self.cursor.execute(statement.replace("@items", "items_" + kind).replace("@places", "places_" + kind))
                except psycopg2.Error as error:
                    raise AssertionError(f"{statements}: {statement}") from error
        return statements

    def compare_changes(self, count):
        changed = 0
        rows = "SELECT id, customer, title, n, d + 0, trim_scale(p), t, f, y FROM @items a ORDER BY id"
        for number in range(count):
            if number % 4 == 0:
                what = self.run_transaction()
            else:
                what = self.statements.change()
                changed += self.both(what)
            if number % 3 == 0:
                assert self.compare(rows, True), what
        assert self.compare(rows, True)
        print(f"{count} changes; {changed} rows")
        assert changed > count, "hardly a row was changed"

    def note_pushed(self, text, pushed):
        try:
            self.cursor.execute("EXPLAIN (VERBOSE, COSTS OFF) " + text.replace("@items", "items_f").replace("@places", "places_f"))
        except psycopg2.Error:
            return
        plan = "\n".join(row[0] for row in self.cursor.fetchall() if "Remote SQL" in row[0])
        for word in ("WHERE", "ORDER BY", "LIMIT", "GROUP BY", "sum(", "count(", " OR ", " IN (", "NOT (", "= ?"):
            pushed[word] += word in plan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tamis")
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--statements", type=int, default=1500)
    arguments = parser.parse_args()
    print(f"--seed {arguments.seed}", flush=True)
    test = Test(os.path.abspath(arguments.tamis), os.path.abspath(arguments.library), arguments.seed)
    try:
        test.run(arguments.statements)
        test.compare_changes(arguments.statements // 5)
    finally:
        test.close()


main()
