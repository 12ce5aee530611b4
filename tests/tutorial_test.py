#!/usr/bin/env python3
"""The commands of docs/TUTORIAL.md print what the page shows.

Each command of the first two sections runs on a store that this test makes, with a small catalogue in place of
Debian's, and its output is compared line by line. Numbers may differ, and with them the width of columns, except in the section
that makes its own table.

usage: tutorial_test.py TAMIS EXTENSION PROJECT_DIRECTORY
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TAMIS, EXTENSION, PROJECT = map(os.path.abspath, sys.argv[1:4])
del sys.argv[1:4]
RARE = "Abhijith PA <abhijith@disroot.org>"
SECTIONS = ("games", "kernel", "embedded", "hamradio", "electronics")
TITLES = ("Games", "Linux kernels", "Embedded systems", "Amateur radio", "Electronics")
# How many packages each section has.
SHARES = {"kernel": 228, "electronics": 198, "hamradio": 137, "embedded": 23, "games": 1108, "doc": 8000}


def sections_of(text):
    """Title and lines of each section of the page."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return {parts[i]: parts[i + 1] for i in range(1, len(parts), 2)}


def examples_of(section):
    """Commands with the lines that they print, from the indented blocks."""
    examples = []
    for block in re.findall(r"(?:^    .*\n)+", section, flags=re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        at = 0
        while at < len(lines):
            if not lines[at].startswith("$ "):
                at += 1
                continue
            command = lines[at][2:]
            at += 1
            # A backslash or an open quote goes on in the next line.
            while command.endswith("\\") or command.count('"') % 2:
                command += "\n" + lines[at]
                at += 1
            output = []
            while at < len(lines) and not lines[at].startswith("$ "):
                output.append(lines[at])
                at += 1
            examples.append((command, output))
    return examples


def without_numbers(lines):
    return [re.sub(r" {2,}", "  ", re.sub(r"-{2,}", "--", re.sub(r"\d+(\.\d+)?", "#", line))).strip()
            for line in lines]


class TutorialTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.work = directory.name
        with open(os.path.join(PROJECT, "docs/TUTORIAL.md"), encoding="utf-8") as file:
            cls.sections = sections_of(file.read())
        os.makedirs(os.path.join(cls.work, "build/release/bin"))
        os.makedirs(os.path.join(cls.work, "build/release/lib"))
        os.symlink(TAMIS, os.path.join(cls.work, "build/release/bin/tamis"))
        shutil.copy(EXTENSION, os.path.join(cls.work, "build/release/lib/tamis.so"))
        cls.fill()

    @classmethod
    def fill(cls):
        """What ./run leaves, but smaller."""
        store = ["--store", os.path.join(cls.work, "build/debian.db"), "--split-bytes", "20KB"]
        rows = []
        for section, share in SHARES.items():
            # The first letters spread a section over all regions.
            rows += [(f"{i * 7919 % 1000:03}-{section}{i}", section, f"Team {section} {i % 7}") for i in range(share)]
        rows.append(("libmail", "perl", RARE))
        records = "".join(
            f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: {maintainer}\nSection: {section}\n"
            f"Priority: optional\nInstalled-Size: {i}\nSize: {i}\nHomepage: h\nDepends: d\nDescription: {'d' * 50}\n"
            f"Source: {name}\n\n" for i, (name, section, maintainer) in enumerate(rows))
        subprocess.run(
            [TAMIS, *store, "import", "packages", "-", "--format", "deb822", "--key", "package,version,architecture",
             "--column", "installed_size:int64", "--column", "size:int64", "--index", "maintainer", "--index",
             "section", "--index", "source", "--index", "installed_size", "--index", "section,priority"],
            input=records, text=True, check=True, stdout=subprocess.DEVNULL)
        areas = "".join(json.dumps({"section": section, "title": title, "serious": section != "games"}) + "\n"
                        for section, title in zip(SECTIONS, TITLES))
        subprocess.run([TAMIS, *store, "import", "areas", "-", "--format", "jsonl", "--key", "section", "--column",
                        "serious:bool"], input=areas, text=True, check=True, stdout=subprocess.DEVNULL)

    def run_command(self, command):
        environment = {**os.environ, "TAMIS_STORE": "build/debian.db",
                       "PATH": os.path.join(self.work, "build/release/bin") + ":" + os.environ["PATH"]}
        done = subprocess.run(["bash", "-c", command], cwd=self.work, env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, command + "\n" + done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_commands_print_what_the_page_shows(self):
        examples = [example for title in ("The catalogue", "A table of your own")
                    for example in examples_of(self.sections[title])]
        self.assertGreater(len(examples), 8)
        for command, shown in examples:
            with self.subTest(command):
                printed = self.run_command(command)
                self.assertEqual(without_numbers(printed), without_numbers(shown))
                if "cities" in command and "import" not in command:
                    self.assertEqual(printed, shown)

    def test_a_build_without_a_terminal_shows_its_progress(self):
        scripts = os.path.join(self.work, "scripts")
        os.mkdir(scripts)
        shutil.copy(os.path.join(PROJECT, "scripts/setup.sh"), scripts)
        lines = self.run_command("set -euo pipefail; source scripts/setup.sh; seq 200 | sed 's/$/ 200/' | show_progress")
        self.assertEqual(len(lines), 10)
        self.assertEqual([lines[0], lines[-1]], ["    10 % (20 of 200 steps)", "    100 % (200 of 200 steps)"])


unittest.main()
