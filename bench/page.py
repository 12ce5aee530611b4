#!/usr/bin/env python3
"""Keeps the figures of benchmarks, and writes docs/BENCHMARKS.md and the tables of README.md from them.

usage: page.py record RESULTS COMMIT DATE LOAD BENCHMARK [ARGUMENT...]   reads the output of one benchmark
       page.py write RESULTS PEERS PAGE [SUMMARY README]                 writes the page, and the tables of README
       page.py check RESULTS PEERS PAGE [SUMMARY README]                 fails if they are others

RESULTS is a JSON file with an object for each benchmark that was measured, under its command: the commit, the date, the
load of the machine before it, the machine, and the figures. `record` replaces the object of its benchmark by the lines
"figure: WORK | BESIDE | NOW | RATIO | GOAL" of the output, which bench/figures.h and bench/figures.py print. PEERS is a
text for the end of the page. SUMMARY is what README says between two marks; "{BENCHMARK: WORK}" stands for the ratio of
that figure.
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
MARKS = ("<!-- Written by bench/page.py from bench/summary.md. -->\n", "<!-- end -->\n")
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
    keep(path, json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


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


def summary(results, template):
    def ratio(match):
        command, work = match.group(1), match.group(2)
        found = [figure for figure in results.get(command, {"figures": []})["figures"] if figure["work"] == work]
        if len(found) != 1:
            raise LookupError(f"{len(found)} figures of {command} are called \"{work}\"; the summary needs one")
        return found[0]["ratio"].split()[0].removesuffix("x") + "x" + (" (goal missed)" if missed(found[0]) else "")

    return re.sub(r"\{([^:{}]+): ([^{}]+)\}", ratio, template)


def with_summary(readme, text):
    before, begin, rest = readme.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        sys.exit("page.py: README.md has no place for the summary, between " + " and ".join(map(str.strip, MARKS)))
    return before + begin + text + end + after


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def keep(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main():
    if len(sys.argv) > 6 and sys.argv[1] == "record":
        record(*sys.argv[2:])
        return
    if len(sys.argv) not in (5, 7) or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    results = load(sys.argv[2])
    written = {sys.argv[4]: page(results, read(sys.argv[3]))}
    if len(sys.argv) == 7:
        try:
            written[sys.argv[6]] = with_summary(read(sys.argv[6]), summary(results, read(sys.argv[5])))
        except LookupError as missing:
            if sys.argv[1] == "check":
                sys.exit(f"page.py: {missing}")
            print(f"page.py: {sys.argv[6]} stays as it is: {missing}", file=sys.stderr)
    for path, text in written.items():
        if sys.argv[1] == "write":
            keep(path, text)
        elif read(path) != text:
            sys.exit(f"{path} is not what {sys.argv[2]} gives; bench/page.py write {shlex.join(sys.argv[2:])} writes it")


if __name__ == "__main__":
    main()
