"""The committed page of published figures and its plots are what the program writes:
published_pages_test.py PATH_OF_PUBLISHED_FIGURES PATH_OF_DOCS"""

import difflib
import os
import subprocess
import sys
import tempfile


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def written(directory):
    """The files below the directory, by their paths."""
    for folder, _, names in os.walk(directory):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), directory)


def main():
    program, docs = sys.argv[1:]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program, "overflow"], stdout=full, stderr=subprocess.PIPE)
    if done.returncode != 2 or b"standard output: No space left on device" not in done.stderr:
        sys.exit(f"an output that is full: exit {done.returncode}, {done.stderr}")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, "tables", "-o", directory], check=True)
        differ = False
        names = sorted(written(directory))
        if "PAPERS.md" not in names:
            sys.exit("the program wrote no PAPERS.md")
        for name in names:
            committed = os.path.join(docs, name)
            old = read(committed) if os.path.exists(committed) else ""
            new = read(os.path.join(directory, name))
            differ |= old != new
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), "docs/" + name, "written/" + name))
    if differ:
        sys.exit("the pages under docs/ are not what the program writes; to write them anew:\n"
                 f"    {program} tables -o {docs}")


if __name__ == "__main__":
    main()
