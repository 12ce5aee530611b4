#!/usr/bin/env python3
"""Keeps the figures of benchmarks, and writes docs/BENCHMARKS.md from them.

usage: page.py record RESULTS COMMIT DATE LOAD BENCHMARK [ARGUMENT...]   reads the output of one benchmark
       page.py write RESULTS PEERS PAGE                                  writes the page
       page.py check RESULTS PEERS PAGE                                  fails if the page is another one

RESULTS is a JSON file with an object for each benchmark that was measured, under its command: the commit, the date, the
load of the machine before it, the machine, and the figures. `record` replaces the object of its benchmark by the lines
"figure: WORK | BESIDE | NOW | RATIO | GOAL" of the output, which bench/figures.h and bench/figures.py print. PEERS is a
text for the end of the page.
"""

import json
import os
import re
import shlex
import subprocess
import sys

PREFIX = "figure: "
FIELDS = ("work", "beside", "now", "ratio", "goal")
# The sections of the page, with the benchmarks of each.
SECTIONS = (
    ("Embedded cluster", ("cluster_benchmark", "plan_benchmark", "query_power_benchmark", "import_benchmark")),
    ("Coordinator", ("routing_scale_benchmark", "filter_matrix_benchmark", "cell_matrix_benchmark")),
    ("HBase", ("hbase_local_benchmark",)),
    ("Server and PostgreSQL", ("server_benchmark", "postgres_benchmark")),
    ("RocksDB", ("lsm_benchmark", "lsm_release_benchmark")),
    ("Redis and the guard", ("redis_benchmark", "guard_load_benchmark")),
    ("Filter library", ("filter_benchmark", "filter_command_benchmark", "spill_rules_benchmark",
                        "published_times_benchmark")),
)
HEAD = """# Benchmarks

Each benchmark measures a work and a real alternative to it in the same run, and verifies the answers. The ratio is what
carries over to another machine; "x" is the time, or what is named, of Tamis divided by that of the other one, or the
reverse where the goal asks for at least so much. `bench/run` builds the benchmarks, runs them and writes this page from
`bench/results.json`; `bench/run BENCHMARK` runs one and prints its whole log. Where figures of one run are compared with a
goal, the goal is in the table; a missed one is said.
"""


def number(text):
    """The first number of a text, such as 1.13 of "1.13x" or 0.04 of "<= 1/25"; None: there is none."""
    match = re.search(r"(\d+(?:\.\d+)?|\.\d+)(?:/(\d+(?:\.\d+)?))?", text)
    if not match:
        return None
    return float(match.group(1)) / float(match.group(2) or 1)


def missed(figure):
    bound, value = number(figure["goal"]), number(figure["ratio"])
    if bound is None or value is None:
        return False
    return value > bound if figure["goal"].startswith("<=") else value < bound


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = re.findall(r"model name\s*: (.*)", file.read()) or [os.uname().machine]
    with open("/proc/meminfo", encoding="utf-8") as file:
        kibibytes = int(re.search(r"MemTotal:\s*(\d+)", file.read()).group(1))
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{names[0]}, {os.cpu_count()} cores, {kibibytes / 2**20:.0f} GiB, {compiler}, Linux {os.uname().release}"


def figures_of(output):
    for line in output:
        if not line.startswith(PREFIX):
            continue
        fields = [field.strip() for field in line[len(PREFIX):].split("|")]
        if len(fields) != len(FIELDS) or not fields[0]:
            sys.exit(f"page.py: not a figure: {line.rstrip()}")
        yield dict(zip(FIELDS, fields))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def record(path, commit, date, busy, *command):
    figures = list(figures_of(sys.stdin))
    if not figures:
        sys.exit(f"page.py: {' '.join(command)} printed no figure")
    results = load(path) if os.path.exists(path) else {}
    results[shlex.join(command)] = {"commit": commit, "date": date, "load": busy, "machine": machine(), "figures": figures}
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, ensure_ascii=False, sort_keys=True)
        file.write("\n")
    os.replace(path + ".new", path)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def section(title, commands, results, only_machine):
    lines = [f"\n## {title}\n", row(("work", "compared with", "measured", "ratio", "goal", "by")), "|" + "---|" * 6]
    sources = []
    for letter, command in zip("abcdefghijklmnopqrstuvwxyz", commands):
        result = results[command]
        on = "" if only_machine else "; " + result["machine"]
        for figure in result["figures"]:
            goal = figure["goal"] + (", **missed**" if missed(figure) else "")
            lines.append(row((figure["work"], figure["beside"], figure["now"], figure["ratio"], goal, letter)))
        sources.append(f"* {letter}: `bench/run {command}`, commit {result['commit']}, {result['date']}, "
                       f"load before the start {result['load']}{on}")
    return lines + [""] + sources


def page(results, peers):
    lines = HEAD.rstrip("\n").split("\n")
    machines = {result["machine"] for result in results.values()}
    if len(machines) == 1:
        lines.append("All were measured on one machine: " + "".join(machines) + ".")
    known = set()
    for title, benchmarks in SECTIONS:
        commands = [command for benchmark in benchmarks for command in results if command.split()[0] == benchmark]
        known.update(commands)
        if commands:
            lines += section(title, commands, results, len(machines) == 1)
    if unknown := sorted(set(results) - known):
        sys.exit(f"page.py: SECTIONS has no place for {', '.join(unknown)}")
    return "\n".join(lines) + "\n\n" + peers


def main():
    if len(sys.argv) > 6 and sys.argv[1] == "record":
        record(*sys.argv[2:])
        return
    if len(sys.argv) != 5 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    results, peers, path = sys.argv[2:]
    with open(peers, encoding="utf-8") as file:
        text = page(load(results), file.read())
    if sys.argv[1] == "check":
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{path} is not what {results} gives; bench/page.py write {results} {peers} {path} writes it")
        return
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
