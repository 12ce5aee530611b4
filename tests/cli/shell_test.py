#!/usr/bin/env python3
"""`tamis sql` at a terminal: typed characters arrive, Ctrl-C drops a line, the history is kept.

usage: shell_test.py TAMIS
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TAMIS = sys.argv.pop(1)
PATIENCE_S = 20
WORD = "São Paulo 日本 \U0001f41f"


class Shell:
    """`tamis sql` on a new pseudo-terminal."""

    def __init__(self, home, **environment):
        for name in ("LANG", "LC_ALL", "LC_CTYPE", "LANGUAGE"):
            environment.setdefault(name, None)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            for name, value in environment.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            os.environ.update(HOME=home, TERM="xterm")
            os.execv(TAMIS, [TAMIS, "--store", os.path.join(home, "store"), "--servers", "1", "sql"])
        self.seen = b""
        self.await_prompt()

    def await_output(self, wanted):
        """The output up to and including `wanted`."""
        while wanted not in self.seen:
            if not select.select([self.terminal], [], [], PATIENCE_S)[0]:
                raise AssertionError(f"{wanted} was not printed after {self.seen}")
            self.seen += os.read(self.terminal, 4096)
        end = self.seen.index(wanted) + len(wanted)
        seen, self.seen = self.seen[:end], self.seen[end:]
        return seen

    def await_prompt(self):
        return self.await_output(b"tamis> ")

    def type(self, text):
        # Until the shell edits, the terminal would take control characters for itself.
        until = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(self.terminal)[3] & termios.ICANON:
            if time.monotonic() > until:
                raise AssertionError(f"the shell does not read from the terminal; it printed {self.seen}")
        os.write(self.terminal, text if isinstance(text, bytes) else text.encode())

    def interrupt(self):
        """Sends the signal of Ctrl-C once the shell waits for a key. A typed Ctrl-C makes the terminal
        discard output."""
        with open(f"/proc/{self.process}/stat") as file:
            while file.read().rpartition(")")[2].split()[0] != "S":
                file.seek(0)
        os.kill(self.process, signal.SIGINT)

    def run(self, line):
        self.type((line if isinstance(line, bytes) else line.encode()) + b"\n")
        return self.await_prompt()

    def leave(self):
        self.type(".quit\n")
        return self.wait()

    def kill(self, number):
        os.kill(self.process, number)
        return self.wait()

    def wait(self):
        try:  # unread output would keep the process from ending
            while os.read(self.terminal, 4096):
                pass
        except OSError:
            pass
        return self.close(None)

    def close(self, number=signal.SIGKILL):
        if self.process == 0:
            return 0
        if number:
            os.kill(self.process, number)
        status = os.waitpid(self.process, 0)[1]
        os.close(self.terminal)
        self.process = 0
        return status


class ShellTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        done = subprocess.run([TAMIS, "--store", os.path.join(self.directory.name, "store"), "table", "create",
                               "cities", "--column", "people:int64", "--column", "city", "--key", "city"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def start(self, home=None, **environment):
        shell = Shell(home or self.directory.name, **environment)
        self.addCleanup(shell.close)
        return shell

    def history(self):
        with open(os.path.join(self.directory.name, ".tamis_history"), "rb") as file:
            return file.read()

    def test_characters_that_are_not_ascii_arrive_whatever_the_locale(self):
        for environment in ({}, {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}, {"LANG": "POSIX"},
                            {"LANG": "xx_YY.UTF-8"}):
            with self.subTest(environment):
                shell = self.start(**environment)
                shown = shell.run(f"SELECT '<' || hex('{WORD}') || '>' AS h;")
                self.assertIn(b"<" + WORD.encode().hex().upper().encode() + b">", shown)
                self.assertEqual(shell.leave(), 0)

    def test_characters_that_are_not_ascii_come_back_from_the_history(self):
        shell = self.start()
        shell.run(f"SELECT '{WORD}' AS first;")
        shell.leave()
        shell = self.start(LC_ALL="C")
        shell.type("\x10\x10\n")  # Ctrl-P twice: the line before .quit
        shown = shell.await_output(b"(1 row)")
        self.assertIn(WORD.encode(), shown)
        shell.leave()

    def test_ctrl_c_drops_a_line_that_is_being_typed(self):
        shell = self.start()
        shell.type("SELECT 'dropped'")
        shell.await_output(b"dropped'")
        shell.interrupt()
        shell.await_prompt()
        self.assertIn(b"kept", shell.run("SELECT 'kept' AS k;"))
        self.assertEqual(shell.leave(), 0)
        self.assertNotIn(b"dropped", self.history())

    def test_ctrl_c_that_is_typed_does_not_end_the_shell(self):
        shell = self.start()
        shell.type("SELECT 1,\n")
        shell.await_output(b"...> ")
        shell.type("\x03")
        # The terminal may discard the new prompt, and may hand on "2;" first.
        shell.type("\n2;\nSELECT 'typed ' || 'on' AS t;\n")
        shell.await_output(b"typed on")
        self.assertEqual(shell.leave(), 0)

    def test_ctrl_c_drops_a_statement_of_several_lines_and_an_open_quote(self):
        shell = self.start()
        for lines in (["SELECT 1,", "2"], ["SELECT 'open"]):
            for line in lines:
                shell.type(line + "\n")
                shell.await_output(b"...> ")
            shell.interrupt()
            shell.await_prompt()
        self.assertIn(b"(1 row)", shell.run("SELECT 3 AS n;"))
        self.assertEqual(shell.leave(), 0)

    def test_ctrl_c_at_an_empty_prompt_and_many_times_is_harmless(self):
        shell = self.start()
        for _ in range(5):
            shell.interrupt()
            shell.await_prompt()
        self.assertEqual(shell.leave(), 0)

    def test_the_history_is_kept_however_the_shell_ends(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            shell = self.start()
            shell.run(f"SELECT {number.value} AS n,\n 'more';".replace("\n", " "))
            self.assertNotEqual(shell.kill(number), 0)
        shell = self.start()
        shell.type("SELECT 'unfinished',\n")
        shell.await_output(b"...> ")
        shell.type(b"\x04")  # Ctrl-D
        self.assertEqual(shell.wait(), 0)
        kept = self.history().decode()
        for text in ("_HiStOrY_V2_\n", *(f"SELECT\\040{n}\\040AS" for n in (15, 1, 9)), "unfinished"):
            self.assertEqual(kept.count(text), 1, kept)

    def test_ctrl_c_stops_a_statement_and_keeps_its_history(self):
        shell = self.start()
        # At once: the signal comes before or while the statement runs.
        for _ in range(10):
            shell.type("WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i) SELECT count(*) FROM i;\n")
            shell.await_output(b"FROM i;\r\n")
            os.kill(shell.process, signal.SIGINT)
            self.assertIn(b"interrupted", shell.await_prompt())
        shell.leave()
        self.assertEqual(self.history().count(b"RECURSIVE"), 10)

    def test_the_history_is_for_its_owner_alone(self):
        shell = self.start()
        shell.run("SELECT 1;")
        shell.leave()
        mode = os.stat(os.path.join(self.directory.name, ".tamis_history")).st_mode
        self.assertEqual(mode & 0o777, 0o600)

    def test_commands_that_begin_with_a_dot_are_completed(self):
        shell = self.start()
        # libedit prints the characters that it adds.
        for typed, added in ((".he\t", b"lp "), (".format js\t", b"on"), (".schema ci\t", b"ties "),
                             (".explain of\t", b"f "), (".kill r\t", b"s1 "), ("SELECT peop\t", b"le ")):
            shell.type(typed[:-1])
            shell.await_output(typed[:-1].encode())
            shell.type(typed[-1])
            shell.await_output(added)
            shell.type("\x15\n")  # Ctrl-U
            shell.await_prompt()
        # Inside of a statement they are nothing.
        shell.type("SELECT\n")
        shell.await_output(b"...> ")
        shell.type(".he\t;")
        self.assertNotIn(b"lp", shell.await_output(b";"))
        shell.interrupt()
        shell.await_prompt()
        self.assertEqual(shell.leave(), 0)

    def test_every_command_of_the_help_is_completed_and_known(self):
        shell = self.start()
        commands = re.findall(rb"^(\.[a-z]+) ", shell.run(".help").replace(b"\r", b""), re.MULTILINE)
        self.assertGreater(len(commands), 8)
        for command in commands:
            shell.type(command[:-1])
            shell.await_output(command[:-1])
            shell.type("\t")
            shell.await_output(command[-1:] + b" ")
            shell.type("\x15\n")
            shell.await_prompt()
        self.assertEqual(shell.leave(), 0)

    def test_a_store_that_is_not_there_is_made_by_the_first_table(self):
        home = os.path.join(self.directory.name, "other")
        os.mkdir(home)
        shell = self.start(home)
        for line, shown in (("SELECT 1 + 1 AS n;", b"(1 row)"), (".tables", b"there is no store"),
                            (".servers", b"there is no store"), (".kill rs1", b"there is no store"),
                            ("SELECT * FROM t;", b"no such table"), ("INSERT INTO t VALUES (1);", b"no such table"),
                            ("DROP TABLE t;", b"no such table"), ("CREATE INDEX i ON t(a);", b"no such table"),
                            ("DROP INDEX i;", b"no such index"),
                            (".schema t", b"there is no store"), (".format line", b""), (".kill \tx", b"no store")):
            self.assertIn(shown, shell.run(line), line)
            self.assertFalse(os.path.exists(os.path.join(home, "store")), line)
        shell.run("CREATE TABLE t(a TEXT PRIMARY KEY);")
        shell.run("INSERT INTO t VALUES ('kept');")
        self.assertIn(b"a = kept", shell.run("SELECT * FROM t;"))
        self.assertIn(b"t\r\n", shell.run(".tables"))
        self.assertEqual(shell.leave(), 0)
        shell = self.start(home)
        self.assertIn(b"was kept", shell.run("SELECT 'was ' || a AS v FROM t;"))
        self.assertEqual(shell.leave(), 0)

    def test_typed_statements_with_bytes_that_are_not_utf8_or_zero_are_refused(self):
        for bad in (b"caf\xe9", b"\xff", b"a\x00b", b"\xe9\xc3\xa9", b"\xf0\x9f\x90", b"\xc0\x80"):
            with self.subTest(bad):
                shell = self.start()
                self.assertIn(b"UTF-8", shell.run(b"SELECT 'ran ' || '" + bad + b"';"))
                # So is the whole of a statement of several lines.
                shell.type(b"SELECT '" + bad + b"',\n")
                shell.await_output(b"...> ")
                shown = shell.run("'more' || 1;")
                self.assertIn(b"UTF-8", shown)
                self.assertNotIn(b"more1", shown)
                # The next statement runs, and so does one whose wrong bytes were deleted.
                self.assertIn(b"next2", shell.run("SELECT 'next' || 2;"))
                shell.type(b"\xff")
                shell.await_output("\ufffd".encode())
                self.assertIn(b"deleted3", shell.run(b"\x7fSELECT 'deleted' || 3;"))
                self.assertIn("\ufffd4".encode(), shell.run("SELECT '\ufffd' || 4;"))
                self.assertEqual(shell.leave(), 0)
                self.assertNotIn(b"more", self.history())

    def test_keys_work_after_the_window_has_changed_its_size(self):
        shell = self.start()
        for width in (60, 100, 40):
            shell.type("SELECT 'size ' ||")
            shell.await_output(b"||")
            for more in range(3):
                fcntl.ioctl(shell.terminal, termios.TIOCSWINSZ, struct.pack("4H", 30, width + more, 0, 0))
            self.assertIn(b"size %d" % width, shell.run(f" {width};"))
        shell.type("SELECT 'dropped'")
        shell.await_output(b"dropped'")
        shell.interrupt()
        shell.await_prompt()
        self.assertEqual(shell.leave(), 0)

    def test_a_session_that_ends_in_a_transaction_fails(self):
        shell = self.start()
        shell.run("BEGIN;")
        shell.run("INSERT INTO cities(city) VALUES ('lost');")
        self.assertEqual(os.waitstatus_to_exitcode(shell.leave()), 1)
        shell = self.start()
        self.assertIn(b"(0 rows)", shell.run("SELECT * FROM cities;"))
        # A statement that failed before does not make the session fail.
        self.assertIn(b"no such table", shell.run("SELECT * FROM nowhere;"))
        self.assertEqual(shell.leave(), 0)

    def test_statements_that_are_not_utf8_are_refused(self):
        for statement in (b"SELECT '\xe9';", "SELECT 1;".encode("utf-16-le")):
            done = subprocess.run([TAMIS, "--store", os.path.join(self.directory.name, "store"), "sql"],
                                  input=statement, capture_output=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"UTF-8", done.stderr)
            self.assertEqual(done.stdout, b"")


unittest.main()
