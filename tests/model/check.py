#!/usr/bin/env python3
"""Checks routing.pml and clearing.pml with spin: the whole protocol has no counter-example, each rule is needed, but
for those that are said not to be: without these there is no counter-example either.

usage: check.py CONFIGURATION...      the named ones; `all` for every one
       check.py --list                the names
       check.py --story SWITCH        the shortest counter-example without that rule, step by step

The whole protocol is searched to the end, depth first with bitstate hashing (about 1 state in 10,000
may be missed; --exact keeps every state, in a few GiB). Without a rule the search is breadth first
and ends at the shortest counter-example. Exit status 1 when the whole protocol has a counter-example
or could not be searched to the end, or when the protocol without a rule that is needed has none.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY_BYTES = 2 << 30
EXACT_MEMORY_BYTES = 16 << 30
SEARCH_SECONDS = 600
DEPTH = 1_000_000

# For each configuration: its extent, the rules that can be seen to be needed in it, and those without which it is
# searched to the end in vain.
CONFIGURATIONS = {
    # One server: puts and deletes of both rows, filters replaced and given up.
    "writes": (
        "ROWS=2 DELETES=1 REBUILDS=1 L=2 S=2 WINDOW=3",
        "INCREMENT_LATE DECREMENT_EARLY NO_LEASE_WAIT NONFLIP_FREE COUNT_FROM_REPLY NO_PUBLISH_WAIT "
        "NO_RETREAT_WAIT NO_QUIET_POINT",
    ),
    # Replies overtake one another.
    "reordered": ("SLOTS=2 DELETES=1 REBUILDS=1", "OLD_PROJECTION"),
    # A server does not repeat what it has sent.
    "pipelined": (
        "PIPELINED=1 SLOTS=2 DELETES=1 REBUILDS=1",
        "NO_GAP_CHECK LEASE_UNAPPLIED",
    ),
    # A server dies and starts again.
    "restart": ("CRASHES=1 SLOTS=2 L=2 S=2", "NO_START_CODE"),
    # The region splits.
    "split": ("SPLITS=1 ROWS=2 DELETES=1 L=2 S=2", "NO_SPLIT_WAIT"),
    "split_restart": ("SPLITS=1 CRASHES=1 ROW=1", "NO_WAIT_HANDOVER"),
    # Two servers.
    "move": ("NS=2 MOVES=2 SYNCED=1", "NO_CLOSE_EVENT NO_CLOSE_WAIT"),
    "crash": ("NS=2 CRASHES=1 MOVES=1 SYNCED=1", "NO_OPEN_WAIT NO_WAIT_HANDOVER"),
    # A server is expelled and does not know it.
    "zombie": (
        "NS=2 ZOMBIES=1 SYNCED=1 S=2",
        "LEASE_BEYOND_PROOF SEARCH_BEYOND_PROOF STALE_PROOF NO_OPEN_WAIT SHORT_OPEN_WAIT",
    ),
    # The next owner closes the region before its wait is over.
    "zombie_move": ("NS=2 ZOMBIES=1 MOVES=1 SYNCED=1", "NO_WAIT_HANDOVER"),
    # Replies are cut.
    "cut": ("CUTS=1 DELETES=1 REBUILDS=1 SYNCED=1", "CUT_LEASE", "YOUNG_PROJECTION"),
    "cut_reordered": ("CUTS=1 DELETES=1 REBUILDS=1 SYNCED=1 SLOTS=2", "CUT_LEASE", "YOUNG_PROJECTION"),
    "split_move": ("NS=2 SPLITS=1 MOVES=1 ROW=1 SYNCED=1", "NO_SPLIT_WAIT NO_CLOSE_EVENT"),
    # Two coordinators.
    "coordinators": ("NC=2 ROWS=2 DELETES=1", "NO_LEASE_WAIT"),
    # Cells that removals have emptied: a model of its own.
    "clearing": (
        "",
        "LEAVE_EARLY UNKNOWN_LEAVES CLEAR_AMID_WRITES OLD_SNAPSHOT CLEAR_ANYWAY CLEAR_INCOMPLETE NONFLIP_FREE",
    ),
}


def model_of(name):
    return os.path.join(HERE, "clearing.pml" if name.split(",")[0] == "clearing" else "routing.pml")


class Failed(Exception):
    pass


def run(command, directory, seconds, memory_bytes=MEMORY_BYTES):
    def limit_memory():
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        return subprocess.run(command, cwd=directory, preexec_fn=limit_memory, timeout=seconds,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    except FileNotFoundError:
        raise Failed(f"cannot run {command[0]}: not found; install the packages of packages/test.txt")
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done after {seconds} s")


def search(model, flags, compile_options, options, directory, memory_bytes=MEMORY_BYTES):
    """Runs one search. Returns (errors, states, depth) or raises Failed."""
    defines = ["-D" + flag for flag in flags]
    output = run(["spin", *defines, "-a", model], directory, 60)
    if not os.path.exists(os.path.join(directory, "pan.c")):
        raise Failed(f"spin did not accept the model:\n{output}")
    output = run(["gcc", "-w", "-DSAFETY", "-DNOREDUCE", *compile_options, "-o", "pan", "pan.c"],
                 directory, 120)
    if not os.path.exists(os.path.join(directory, "pan")):
        raise Failed(f"cannot compile the verifier that spin made:\n{output}")
    output = run(["./pan", "-E", *options], directory, SEARCH_SECONDS, memory_bytes)
    found = re.search(r"depth reached (\d+), errors: (\d+)\s+(\d+) states, stored", output)
    if not found:
        raise Failed(f"the search did not end as it should:\n{output}")
    depth, errors, states = map(int, found.groups())
    if errors and "assertion violated" not in output:
        raise Failed(f"the search found a fault of the model itself:\n{output}")
    if not errors and ("max search depth too small" in output or "Search not completed" in output):
        raise Failed(f"the search did not reach the end:\n{output}")
    return errors, states, depth


def story(model, flags, directory):
    """The counter-example that the last search in the directory found: a list of steps."""
    defines = ["-D" + flag for flag in flags]
    trail = os.path.join(directory, os.path.basename(model) + ".trail")
    output = run(["spin", *defines, "-T", "-k", trail, model], directory, 60)
    return output[:output.index("spin:")].rstrip().split("\n")


def in_directory(function, *arguments):
    directory = tempfile.mkdtemp(prefix="routing_model.")
    try:
        return function(*arguments, directory)
    finally:
        shutil.rmtree(directory)


def check_whole(name, flags, exact, directory):
    if exact:
        result = search(model_of(name), flags, ["-O2"], [f"-m{DEPTH}", "-w24"], directory, EXACT_MEMORY_BYTES)
    else:
        result = search(model_of(name), flags, ["-O2", "-DBITSTATE"], [f"-m{DEPTH}", "-w30"], directory)
    errors, states, depth = result
    if errors:
        # Shorter is clearer: once more, breadth first, for the story.
        search(model_of(name), flags, ["-O1", "-DBFS"], ["-w22"], directory)
        raise Failed(f"{name}: the whole protocol has a counter-example:\n  "
                     + "\n  ".join(story(model_of(name), flags, directory)))
    print(f"{name}: the whole protocol holds: {states} states, depth {depth} "
          f"({' '.join(flags)})", flush=True)


def check_needless(name, flags, switch, exact, directory):
    """Not needed for the claim: the whole protocol holds without it."""
    check_whole(f"{name}, {switch}", flags + [switch], exact, directory)


def check_switch(name, flags, switch, directory):
    flags = flags + [switch]
    errors, states, _ = search(model_of(name), flags, ["-O0", "-DBFS"], ["-w20"], directory)
    if not errors:
        raise Failed(f"{name}: without the rule ({switch}) there is no counter-example, "
                     f"in {states} states")
    steps = story(model_of(name), flags, directory)
    print(f"{name}: {switch}: a missed row in {len(steps)} steps ({states} states)", flush=True)
    return steps


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("configurations", nargs="*", metavar="CONFIGURATION")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--story", metavar="SWITCH")
    parser.add_argument("--exact", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CONFIGURATIONS))
        return 0
    if arguments.story:
        for name, (flags, switches, *_) in CONFIGURATIONS.items():
            if arguments.story in switches.split():
                steps = in_directory(check_switch, name, flags.split(), arguments.story)
                print("  " + "\n  ".join(steps))
                return 0
        parser.error(f"no configuration shows {arguments.story}")
    names = arguments.configurations
    if names == ["all"]:
        names = list(CONFIGURATIONS)
    unknown = [name for name in names if name not in CONFIGURATIONS]
    if unknown or not names:
        parser.error("name configurations, of: all " + " ".join(CONFIGURATIONS))

    failures = 0
    for name in names:
        flags, switches, *needless = CONFIGURATIONS[name]
        checks = [(check_whole, name, flags.split(), arguments.exact)]
        checks += [(check_switch, name, flags.split(), switch) for switch in switches.split()]
        checks += [(check_needless, name, flags.split(), switch, arguments.exact)
                   for switch in " ".join(needless).split()]
        for function, *rest in checks:
            try:
                in_directory(function, *rest)
            except Failed as failure:
                failures += 1
                print(failure, file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
