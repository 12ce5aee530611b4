#!/usr/bin/env python3
"""What shells complete, by the shells themselves, ours too, and the manual page, as man(1) reads it.

usage: completion_test.py TAMIS
"""

import os
import pty
import select
import subprocess
import sys
import tempfile
import unittest

TAMIS = sys.argv.pop(1)

# Completes the last of the words that are given; prints what can stand there, one a line.
BASH = r"""
source <("$1" completion bash)
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tamis
printf '%s\n' "${COMPREPLY[@]}"
"""

# The functions of zsh that take what was found, made to print it.
ZSH = r"""
compadd() { while [[ $1 == -* && $1 != -- ]]; do shift; done; shift; print -rl -- "$@"; }
_describe() { print -rl -- ${(P)2}; }
_files() { print -r -- FILES; }
complete_words() { _tamis; }
script=$("$1" completion zsh) || exit 1
shift
words=("$@")
CURRENT=$#
eval "$script"
"""


def output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=60).stdout


def bash(*words):
    return output("bash", "-c", BASH, "bash", TAMIS, "tamis", *words).split()


def zsh(*words):
    return output("zsh", "-f", "-c", ZSH, "zsh", TAMIS, "tamis", *words).splitlines()


class CompletionTest(unittest.TestCase):
    def test_bash_completes_commands_of_each_level(self):
        self.assertIn("filter", bash("fil"))
        self.assertEqual(bash("filter", "que"), ["query"])
        self.assertEqual(bash("--store", "index", "table", "descr"), ["describe"])

    def test_bash_completes_options_of_the_command_and_of_the_program(self):
        found = bash("filter", "build", "--")
        self.assertIn("--capacity", found)
        self.assertIn("--store", found)
        self.assertNotIn("--invert", found)

    def test_bash_completes_values(self):
        self.assertEqual(bash("scan", "--format", ""), ["table", "csv", "json", "jsonl", "line"])
        self.assertEqual(bash("completion", "--help", "z"), [])

    def test_bash_completes_files_elsewhere(self):
        self.assertIn("/etc/passwd", bash("import", "people", "/etc/pass"))
        self.assertIn("/etc/passwd", bash("--store", "/etc/pass"))

    def test_zsh_completes_commands_with_their_help(self):
        self.assertIn("query:Print the lines that may be in the filter; exit status as grep's",
                      zsh("filter", ""))

    def test_zsh_completes_options_and_values(self):
        self.assertIn("--capacity", zsh("filter", "build", "--"))
        self.assertEqual(zsh("scan", "--format", ""), ["table", "csv", "json", "jsonl", "line"])
        self.assertEqual(zsh("--store", ""), ["FILES"])
        self.assertEqual(zsh("import", "people", ""), ["FILES"])

    def test_our_own_shell_completes_the_keywords_of_sqlite(self):
        with tempfile.TemporaryDirectory() as directory:
            process, terminal = pty.fork()
            if process == 0:
                os.environ.update(HOME=directory, TERM="xterm")
                os.execv(TAMIS, [TAMIS, "--store", os.path.join(directory, "store"), "sql"])
            seen = b""

            def await_output(wanted):
                nonlocal seen
                while wanted not in seen:
                    self.assertTrue(select.select([terminal], [], [], 60)[0], seen)
                    seen += os.read(terminal, 4096)

            try:
                await_output(b"tamis> ")
                os.write(terminal, b"EXCLUS\t")
                await_output(b"IVE ")  # what is added
                os.write(terminal, b"\x15.quit\n")
                self.assertEqual(os.waitpid(process, 0)[1], 0)
                process = 0
            finally:
                if process:
                    os.kill(process, 9)
                    os.waitpid(process, 0)
                os.close(terminal)

    def test_every_command_is_in_the_manual_page_which_man_reads_without_a_warning(self):
        page = output(TAMIS, "man")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-"], input=page, text=True,
                              capture_output=True, check=True, timeout=60, env={"MANWIDTH": "100", "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stderr, "")
        text = done.stdout
        for command in ("tamis sql", "tamis filter build", "tamis region split", "tamis man"):
            self.assertIn(command, text)
        self.assertIn("--split-bytes", text)


if __name__ == "__main__":
    unittest.main()
