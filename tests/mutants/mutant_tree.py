"""The copy of the tree in which mutants are built, in build/mutants: the user's own build stays as it is."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build" / "mutants"
TREE = WORK / "tree"
BUILD = TREE / "build" / "dev"


def copy_tree():
    """Files of the tree as they are now, new ones too; unchanged ones keep their times."""
    TREE.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    for name in names:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        data = source.read_bytes()
        if target.is_file() and target.read_bytes() == data:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(source.stat().st_mode)
    subprocess.run(["cmake", "--preset", "dev"], cwd=TREE, check=True, capture_output=True)


def build(targets, jobs):
    return subprocess.run(["ninja", "-C", str(BUILD), f"-j{jobs}", *targets], capture_output=True, text=True,
                          check=False)
