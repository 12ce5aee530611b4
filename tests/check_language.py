#!/usr/bin/env python3
"""Checks the language of comments and test names, and the length of lines.

usage: check_language.py ROOT [PATH...]

A comment, a sentence in it, and the name of a test begin with what they speak of. This check fails on those that begin
with a word of OPENINGS, which leave the reader to guess the noun (a comment after code also where that word is in lower
case), and on lines of more than 100 columns in C++ and 120
in Java. PATHs name the files to check; without them it checks all sources. Before that it proves on a small text
with planted faults that it finds each of them.
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
LANGUAGES = (".c", ".cc", ".h", ".java", ".py")
COLUMNS = {".cc": 100, ".h": 100, ".java": 120}

LINE_COMMENT = re.compile(r"^\s*(?://+!?|\*(?!/)|/\*+)\s?(.*)$")
TAIL_COMMENT = re.compile(r"[;{}),]\s+// (.*)$")
PYTHON_COMMENT = re.compile(r"^\s*#(?!!)\s?(.*)$")
CPP_TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)")
JAVA_TEST = re.compile(r"^\s*(?:public )?void (\w+)\(")
PYTHON_TEST = re.compile(r"^\s*def test_(\w+)\(")


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


def faults_of_comment(number, block, is_tail):
    text = " ".join(block)
    if text.startswith(EXCEPTIONS):
        return
    if is_tail and re.match(OPENINGS.lower(), text):
        yield number, f"a comment after code begins with \"{text.split()[0]}\": {text[:50]}"
    # A sentence ends with a full stop after a word, not after an abbreviation or a number.
    for match in re.finditer(r"(?:^|(?<=[a-z)\"'`][.?!:] ))" + OPENINGS, text):
        shown = text[match.start():match.start() + 50]
        if shown.startswith(EXCEPTIONS):
            continue
        yield number, f"begins with \"{match.group(0)}\": {shown}"


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
    for number, block, is_tail in comments_of(path, lines):
        yield from faults_of_comment(number, block, is_tail)
    for number, name in tests_of(path, lines):
        words = re.sub(r"[A-Z]", lambda letter: " " + letter.group(0).lower(), name).replace("_", " ").split()
        if words and re.match(OPENINGS, words[0].capitalize()):
            yield number, f"a test begins with \"{words[0]}\": {name}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS.get(path.suffix, len(line)):
            yield number, f"{len(line)} columns; at most {COLUMNS[path.suffix]}"


PLANTED = """// Of text, as there.
int a;  // what it is; Who reads it. Nobody does
// A cut value. As above.
int b;  // of the filter
TEST(Filter, WhatIsErasedIsGone) {}
TEST(Filter, ErasedKeyIsGone) {}
"""


def prove():
    found = [number for number, _ in faults_of(pathlib.Path("planted.cc"), PLANTED + "x" * 101 + "\n")]
    if found != [1, 2, 2, 3, 4, 5, 7]:
        sys.exit(f"the check does not find what was planted: it found lines {found}")


def files_of(root):
    """The sources, without what builds leave beside them."""
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
