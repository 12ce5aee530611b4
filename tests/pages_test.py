#!/usr/bin/env python3
"""README.md and docs/*.md: links and anchors lead somewhere, README.md stays short, every page begins with a summary,
the messages in the sections "Troubleshooting" are messages of the programs, and the metrics in docs/HBASE.md are those
that the jar exports.

usage: pages_test.py PROJECT_DIRECTORY
"""

import pathlib
import re
import sys
import unittest

PROJECT = pathlib.Path(sys.argv[1]).resolve()
del sys.argv[1:2]
SOURCES = ("tamis", "coprocessor", "postgres", "tools", "tests")
SUFFIXES = {".c", ".cc", ".h", ".java", ".proto", ".py", ""}
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
# A piece of a message that is text of the program and no example: at least two words.
WORDS = re.compile(r"[^\s]+ .*[^\s]")


def sources(folders):
    for folder in folders:
        for path in sorted((PROJECT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and not {"target", "build"}.intersection(path.parts):
                yield path


def anchors_of(path):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def messages_of(page):
    """The code in the first column of the table in the section "Troubleshooting"."""
    section = page.partition("\n## Troubleshooting\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \|", section, flags=re.MULTILINE)
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row)]


def pieces_of(message):
    """The text of a message without what differs from case to case: "..." and quoted names."""
    return [piece.strip(" :;,") for piece in re.split(r"\.\.\.|\"[^\"]*\"", message)]


def literals_of(text):
    """The string literals of a source; neighbours are one text."""
    text = re.sub(r"\"\s*(?:\+\s*)?\"", "", text)
    return " ".join(re.findall(r"\"((?:[^\"\\\n]|\\.)*)\"", text)).replace("\\", "")


class PagesTest(unittest.TestCase):
    def test_the_readme_is_short(self):
        self.assertLessEqual(PAGES[0].read_text(encoding="utf-8").count("\n"), 150)

    def test_every_page_begins_with_a_title_and_a_summary(self):
        for page in PAGES:
            lines = page.read_text(encoding="utf-8").splitlines()
            self.assertRegex(lines[0], r"^# \w", page)
            self.assertRegex(lines[2], r"^[`\w*]", f"{page} has no summary below its title")

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
                if link.startswith(("http:", "https:")):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                self.assertTrue(target.exists(), f"{page} links to {link}")
                if anchor and target.suffix == ".md":
                    self.assertIn(anchor, anchors_of(target), f"{page} links to {link}")

    def test_anchors_in_sources_lead_somewhere(self):
        count = 0
        for path in sources(SOURCES):
            text = path.read_text(encoding="utf-8", errors="ignore")
            for name, anchor in re.findall(r"docs/([A-Z]+\.md)#([a-z0-9-]+)", text):
                self.assertIn(anchor, anchors_of(PROJECT / "docs" / name), f"{path} names {name}#{anchor}")
                count += 1
        self.assertGreater(count, 20)

    def test_messages_of_troubleshooting_are_messages_of_the_programs(self):
        programs = [path for path in sources(SOURCES[:4]) if "_test" not in path.name and "testing" not in path.parts]
        literals = " ".join(literals_of(path.read_text(encoding="utf-8", errors="ignore")) for path in programs)
        count = 0
        for page in PAGES:
            for message in messages_of(page.read_text(encoding="utf-8")):
                for piece in pieces_of(message):
                    if not WORDS.fullmatch(piece) or re.match(r"[A-Z_]{3,}|tamis ", piece):
                        continue
                    with self.subTest(page=page.name, message=message):
                        self.assertIn(piece, literals)
                        count += 1
        self.assertGreater(count, 20)

    def test_the_metrics_of_region_servers_are_those_that_the_page_explains(self):
        source = PROJECT / "coprocessor/server/src/main/java/tamis/server/ServerMetricsSource.java"
        exported = re.findall(r"(?:counter|gauge)\(\"(\w+)\"", source.read_text(encoding="utf-8"))
        page = (PROJECT / "docs/HBASE.md").read_text(encoding="utf-8")
        table = page.partition("\n| metric | meaning |")[2].partition("\n\n")[0]
        names = [name for row in re.findall(r"^\| (.*?) \|", table, flags=re.MULTILINE)
                 for name in re.findall(r"`(\w+)`", row)]
        self.assertEqual(sorted(names), sorted(exported))


unittest.main()
