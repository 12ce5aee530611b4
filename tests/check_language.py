#!/usr/bin/env python3
"""Checks the language of comments, test names, pages and texts of the programs, and the length of lines.

usage: check_language.py ROOT [PATH...]

A comment, a sentence in it, the name of a test, a heading and a sentence of a page (Markdown), and a text that a program
prints begin with what they speak of. This check fails on those that begin with a word of OPENINGS, which leave the reader
to guess the noun (a comment after code also where that word is in lower case), and on lines of more than 100 columns in
C++ and 120 in Java. Code in pages is not checked, nor are texts in tests. PATHs name the files to check; without them it
checks all sources and pages. Before that it proves on small texts with planted faults that it finds each of them.
"""

import pathlib
import re
import sys

OPENINGS = r"(?:Of|Who|Whoever|Whom|Whose|What|Whatever|Those|Nobody|As)\b"
# Comments that begin so for a reason: the text after the comment sign.
EXCEPTIONS = (
    "As is\" BASIS",  # a licence
)
FOLDERS = ("tamis", "postgres", "coprocessor", "tests", "bench", "examples", "tools")
LANGUAGES = (".c", ".cc", ".h", ".java", ".py", ".md")
PAGES = ("*.md", "docs/*.md")
COLUMNS = {".cc": 100, ".h": 100, ".java": 120}

LINE_COMMENT = re.compile(r"^\s*(?://+!?|\*(?!/)|/\*+)\s?(.*)$")
TAIL_COMMENT = re.compile(r"[;{}),]\s+// (.*)$")
PYTHON_COMMENT = re.compile(r"^\s*#(?!!)\s?(.*)$")
CPP_TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)")
JAVA_TEST = re.compile(r"^\s*(?:public )?void (\w+)\(")
PYTHON_TEST = re.compile(r"^\s*def test_(\w+)\(")
LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
TESTS = re.compile(r"_test\b|_fuzzer\b|/testing/|^tests/|^bench/|/src/test/")


def comments_of(path, lines):
    """(number of the line, lines of the text, whether it stands after code) of each comment."""
    block, start = [], 0
    for number, line in enumerate([*lines, ""], 1):
        match = (PYTHON_COMMENT if path.suffix == ".py" else LINE_COMMENT).match(line)
        # Code in a Java or C++ block comment never begins a line with *, but multiplication may.
        if match:
            if not block:
                start = number
            block.append(match.group(1).strip())
            continue
        if block:
            yield start, block, False
            block = []
        if path.suffix != ".py" and (tail := TAIL_COMMENT.search(line)):
            yield number, [tail.group(1)], True


def passages_of(lines):
    """(number of the line, text) of each heading, paragraph, item of a list and cell of a table of a page."""
    block, start, is_code = [], 0, False
    for number, line in enumerate([*lines, ""], 1):
        text = line.strip()
        if text.startswith("```"):
            is_code, text = not is_code, ""
        elif is_code:
            text = ""
        is_row = text.startswith("|")
        # Indented by four and not within a paragraph: code.
        is_block_of_code = line.startswith("    ") and not block
        begins = re.match(r"(?:#+|[*-]|\d+\.) +", text)
        if block and (not text or is_row or begins or text.startswith("<!--")):
            yield start, " ".join(block)
            block = []
        if is_row:
            yield from ((number, cell.strip()) for cell in text.strip("|").split(" | "))
        elif text and not is_block_of_code and not text.startswith("<!--"):
            if not block:
                start = number
            block.append(text[begins.end():] if begins else text)
        if begins and text.startswith("#"):
            yield start, " ".join(block)
            block = []


def faults_of_sentences(number, text):
    # A sentence ends with a full stop after a word, not after an abbreviation or a number.
    for match in re.finditer(r"(?:^|(?<=[a-z)\"'`][.?!:] ))" + OPENINGS, text):
        shown = text[match.start():match.start() + 50]
        if not shown.startswith(EXCEPTIONS):
            yield number, f"begins with \"{match.group(0)}\": {shown}"


def faults_of_comment(number, block, is_tail):
    text = " ".join(block)
    if text.startswith(EXCEPTIONS):
        return
    if is_tail and re.match(OPENINGS.lower(), text):
        yield number, f"a comment after code begins with \"{text.split()[0]}\": {text[:50]}"
    yield from faults_of_sentences(number, text)


def faults_of_page(lines):
    for number, text in passages_of(lines):
        # Bold text that begins a paragraph is its heading.
        yield from faults_of_sentences(number, text.replace("**", ""))


def tests_of(path, lines):
    pattern = {".cc": CPP_TEST, ".java": JAVA_TEST, ".py": PYTHON_TEST}.get(path.suffix)
    if pattern is None:
        return
    for number, line in enumerate(lines, 1):
        if path.suffix == ".java" and not any("@" in before for before in lines[max(0, number - 4):number - 1]):
            continue
        if match := pattern.match(line):
            yield number, match.group(1)


def faults_of(path, text):
    lines = text.splitlines()
    if path.suffix == ".md":
        yield from faults_of_page(lines)
        return
    for number, block, is_tail in comments_of(path, lines):
        yield from faults_of_comment(number, block, is_tail)
    for number, name in tests_of(path, lines):
        words = re.sub(r"[A-Z]", lambda letter: " " + letter.group(0).lower(), name).replace("_", " ").split()
        if words and re.match(OPENINGS, words[0].capitalize()):
            yield number, f"a test begins with \"{words[0]}\": {name}"
    is_program = path.suffix != ".py" and not TESTS.search(str(path))
    for number, line in enumerate(lines, 1):
        for literal in LITERAL.findall(line) if is_program and not LINE_COMMENT.match(line) else ():
            if " " in literal.strip():  # a text, or a part of one
                yield from faults_of_sentences(number, literal)
        if len(line) > COLUMNS.get(path.suffix, len(line)):
            yield number, f"{len(line)} columns; at most {COLUMNS[path.suffix]}"


PLANTED = """// Of text, as there.
int a;  // what it is; Who reads it. Nobody does
// A cut value. As above.
int b;  // of the filter
TEST(Filter, WhatIsErasedIsGone) {}
TEST(Filter, ErasedKeyIsGone) {}
app.AddFlag("--json", json, "As JSON");
app.AddFlag("--json", json, "Asks the servers. Of these the first");
"""
PLANTED_PAGE = """# What it is

**Who** asks is a client. Those that
write are, too. Of all, as
it is said. Nobody knows.

    As code this line is not read.

* A list:
  of words. As here.
| a cell | Whatever it is |
"""


def prove():
    for name, text, expected in (("planted.cc", PLANTED + "x" * 101 + "\n", [1, 2, 2, 3, 4, 5, 7, 8, 9]),
                                 ("planted.md", PLANTED_PAGE, [1, 3, 3, 3, 3, 9, 11])):
        found = [number for number, _ in faults_of(pathlib.Path(name), text)]
        if found != expected:
            sys.exit(f"the check does not find what was planted in {name}: it found lines {found}")


def files_of(root):
    """The sources, without what builds leave beside them, and the pages."""
    for pattern in PAGES:
        yield from (path.relative_to(root) for path in sorted(root.glob(pattern)))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if not {"target", "build", "node_modules"}.intersection(name.parts):
                yield name


def main():
    prove()
    root = pathlib.Path(sys.argv[1])
    count = 0
    for path in map(pathlib.Path, sys.argv[2:] or files_of(root)):
        if path.suffix not in LANGUAGES or not (root / path).is_file():
            continue
        for number, what in faults_of(path, (root / path).read_text()):
            print(f"{path}:{number}: {what}")
            count += 1
    sys.exit(f"{count} faults of language" if count else 0)


main()
