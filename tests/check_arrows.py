#!/usr/bin/env python3
"""Checks that the folders know of one another only what ARROWS allows.

usage: check_arrows.py [ROOT]

Looks at every #include of tamis/, tests/ and bench/, at the DEPS of every tamis_library, and at the imports of the
jar's packages. A fault is an arrow that is not in the tables, one that the tables of docs/ARCHITECTURE.md lack or have
besides, one to the internal/ of another folder, an include of a file that
does not exist, files that include one another in a circle, a header of ours in angle brackets, and two
types of one name in one namespace, defined in two files: the linker keeps one of their members for both
and says nothing. So is a loop over what a pointer points to that a call has just returned: C++20 keeps
what is walked, not who owns it. Before that the check proves on a small tree with planted faults that it
finds each of them.
"""

import os
import re
import sys
import tempfile

# The folders that each folder may include. `executor` is a part of tamis/base with a target of its own, so that code
# that must not depend on threads does not.
ARROWS = {
    "base": "",
    "executor": "base",
    "filter": "base",
    "table": "base",
    "lsm": "base filter",
    "import": "base",
    "hbase": "base",
    "redis": "base filter",
    "guard": "base",
    "cluster": "base executor table",
    "feed": "base executor filter table cluster",
    "routing": "base executor filter table cluster",
    "rocks": "base executor filter table cluster feed",
    "hbase_cluster": "base executor table cluster hbase",
    "query": "base executor table cluster routing",
    "remote": "base executor table cluster query",
    "store": "base executor table cluster rocks hbase hbase_cluster query remote",
    "sql": "base executor table cluster query",
    "server": "base executor table cluster query remote sql store",
    "cli": "base filter table import cluster query store sql server guard lsm",
}
# The packages of the jar, tamis.NAME, that each of them may import. tamis.pb and tamis.shaded are generated.
JAVA = "coprocessor/server/src/main/java/tamis"
JAVA_ARROWS = {
    "table": "",
    "filter": "table",
    "base": "table",
    "feed": "base filter table",
    "compat": "base",
    "region": "base feed table",
    "index": "base compat feed region table",
    "search": "base compat feed index region table",
    "server": "base feed index region search table",
    "hbase": "base compat feed index region server table",
}
GENERATED = {"pb", "shaded"}
EXECUTOR = {"answers", "answers_test", "executor", "executor_test", "manual_executor", "sim_executor", "thread_executor"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)
LIBRARY = re.compile(r"^tamis_library\(\s*(\w+)([^)]*)\)", re.MULTILINE)


def part_of(path):
    """The name in ARROWS of what a path belongs to; None for tests, bench and the rest."""
    steps = path.split("/")
    if path in ("tamis/filter.h", "tamis/lsm.h"):  # the C APIs
        return steps[1].removesuffix(".h")
    if steps[0] != "tamis" or len(steps) < 3:
        return None
    if steps[1] == "base" and os.path.splitext(steps[-1])[0] in EXECUTOR:
        return "executor"
    return steps[1]


def may_know(part, other):
    return part is None or part == other or other in ARROWS[part].split()


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def files(root, suffixes):
    for top in ("tamis", "papers", "tests", "bench"):
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(directory, name), root)


def exists(root, path):
    if path.endswith(".pb.h"):
        path = path[:-len("pb.h")] + "proto"
    return os.path.isfile(os.path.join(root, path))


def check_includes(root):
    faults, graph = [], {}
    for path in sorted(files(root, (".h", ".cc"))):
        part = part_of(path)
        if part is not None and part not in ARROWS:
            faults.append(f"{path}: the folder tamis/{part} is not in ARROWS of tests/check_arrows.py")
            continue
        graph[path] = []
        for bracket, included in INCLUDE.findall(read(root, path)):
            if bracket == "<":
                if included.startswith("tamis/"):
                    faults.append(f"{path}: includes <{included}>; write it in quotes")
                continue
            if not exists(root, included):
                faults.append(f"{path}: includes \"{included}\", which does not exist"
                              " (paths start at the top of the tree)")
                continue
            graph[path].append(included)
            other = part_of(included)
            if other is None and part is not None:
                faults.append(f"{path}: includes \"{included}\", which is outside tamis/")
            elif part not in (None, other) and "/internal/" in included:
                faults.append(f"{path}: includes \"{included}\", which is for {other} alone")
            elif not may_know(part, other):
                faults.append(f"{path}: includes \"{included}\", but {part} may only know:"
                              f" {ARROWS[part] or 'nothing of ours'}")
    return faults + circles(graph)


def circles(graph):
    """Circles of includes, each reported once."""
    faults, done = [], set()

    def visit(path, trail):
        if path in trail:
            circle = trail[trail.index(path):] + [path]
            faults.append(f"{path}: includes itself: {' -> '.join(circle)}")
        elif path not in done:
            for included in graph.get(path, []):
                visit(included, trail + [path])
            done.add(path)

    for path in sorted(graph):
        visit(path, [])
    return faults


def check_libraries(root):
    faults, part_of_library, libraries = [], {}, []
    for path in sorted(files(root, ("CMakeLists.txt",))):
        folder = part_of(path)
        if folder is None:
            continue
        for name, body in LIBRARY.findall(read(root, path)):
            part = "executor" if name == "executor" else folder
            words = re.sub(r"#.*", "", body).split()
            dependencies = []
            if "DEPS" in words:
                for word in words[words.index("DEPS") + 1:]:
                    if word.isupper():
                        break
                    dependencies.append(word)
            part_of_library[name] = part
            libraries.append((path, name, part, dependencies))
    for path, name, part, dependencies in libraries:
        for dependency in dependencies:
            other = part_of_library.get(dependency, dependency.removesuffix("_proto"))
            if part in ARROWS and not may_know(part, other):
                faults.append(f"{path}: {name} has DEPS {dependency}, but {part} may only know:"
                              f" {ARROWS[part] or 'nothing of ours'}")
    return faults


# A class of ours by its full name, imported or in the text.
JAVA_NAME = re.compile(r"\btamis\.(\w+)\.[A-Z]")


def check_java(root):
    faults, top = [], os.path.join(root, JAVA)
    for package in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        if package not in JAVA_ARROWS:
            faults.append(f"{JAVA}/{package}: the package is not in JAVA_ARROWS of tests/check_arrows.py")
            continue
        may = set(JAVA_ARROWS[package].split()) | GENERATED | {package}
        for name in sorted(os.listdir(os.path.join(top, package))):
            path = f"{JAVA}/{package}/{name}"
            text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', "", read(root, path), flags=re.DOTALL)
            for other in sorted(set(JAVA_NAME.findall(text)) - may):
                faults.append(f"{path}: knows tamis.{other}, but {package} may only know:"
                              f" {JAVA_ARROWS[package] or 'nothing of ours'}")
    return faults


# Tokens: text to skip, marks that open or end a scope, and words that name one.
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\b\d[\w']*|'(?:\\.|[^'\\\n])*'"""
    r"""|^[ \t]*\#(?:\\\n|[^\n])*"""
    r"""|(?P<opening>\b(?:inline\s+)?namespace)(?P<namespace>\s+[\w:]+)?\s*\{"""
    r"""|\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*)*"""
    r"""(?P<type>[\w:]+)\s*(?:final\s*)?(?::[^;{}()]*)?\{"""
    r"""|(?P<linkage>\bextern\s+"C"\s*\{)|[{}]""", re.MULTILINE | re.DOTALL)


def types_of(text):
    """The full names of the types that a file defines in namespaces that all files see."""
    found, scopes = set(), []  # a scope: its name, "" for one that hides nothing, None for one that does
    for token in TOKENS.finditer(text):
        word = token.group(0)
        if word == "}":
            if scopes:
                scopes.pop()
        elif word == "{":
            scopes.append(None)
        elif token.group("opening"):
            scopes.append(token.group("namespace").strip() if token.group("namespace") else None)
        elif token.group("linkage"):
            scopes.append("")
        elif token.group("type"):
            if None not in scopes:
                found.add("::".join([name for name in scopes if name] + [token.group("type")]))
            scopes.append(None)
    return found


def check_types(root):
    """One name, one type, among files that may be linked into one program."""
    faults, defined = [], {}
    for path in sorted(files(root, (".h", ".cc"))):
        for name in sorted(types_of(read(root, path))):
            defined.setdefault(name, []).append(path)
    for name, paths in sorted(defined.items()):
        if len(paths) > 1:
            faults.append(f"{paths[-1]}: {name} is defined in {' and '.join(paths[:-1])} too;"
                          " rename one, or put it into an unnamed namespace")
    return faults


# Messages give pointers to what is theirs.
LOOP = re.compile(r"\bfor\s*\([^;{}]*?[^:]:\s*(\*[\w.:>-]*?\b(?!mutable_)\w+\(\))\s*\)\s*[^)]")


def check_loops(root):
    return [f"{path}: for (... : {loop}): the loop keeps no owner of what it walks if {loop[1:]} returns a shared"
            " pointer; give that a name before the loop"
            for path in sorted(files(root, (".h", ".cc"))) for loop in LOOP.findall(read(root, path))]


PAGE = "docs/ARCHITECTURE.md"
# A row of a table of the page: the folder or package, and the last column.
ROW = re.compile(r"^\| `tamis([/.])(\w+)` \|.*\| ([^|]*) \|$", re.MULTILINE)


def check_page(root):
    """The tables of the page have the arrows of ARROWS and JAVA_ARROWS. `executor` is a part of tamis/base there."""
    faults, rows = [], {"/": {}, ".": {}}
    for sign, name, known in ROW.findall(read(root, PAGE)):
        names = [] if known == "nothing of ours" else known.replace("`", "").replace("tamis.", "").split(", ")
        rows[sign][name] = set(names)
    for sign, arrows in (("/", ARROWS), (".", JAVA_ARROWS)):
        wanted = {part: set(known.split()) - {"executor"} for part, known in arrows.items() if part != "executor"}
        for part in sorted(wanted.keys() | rows[sign].keys()):
            if part not in wanted or part not in rows[sign]:
                where = PAGE if part in wanted else "tests/check_arrows.py"
                faults.append(f"{PAGE}: the tables of {where} lack tamis{sign}{part}")
            elif wanted[part] != rows[sign][part]:
                faults.append(f"{PAGE}: by its table tamis{sign}{part} depends on {sorted(rows[sign][part])}, by"
                              f" tests/check_arrows.py on {sorted(wanted[part])}")
    return faults


def page():
    """A page with the arrows of this script."""
    rows = [f"| `tamis{sign}{part}` | a noun | {', '.join(set(known.split()) - {'executor'}) or 'nothing of ours'} |"
            for sign, arrows in (("/", ARROWS), (".", JAVA_ARROWS)) for part, known in arrows.items() if part != "executor"]
    return "\n".join(rows) + "\n"


def check(root):
    return check_page(root) + check_includes(root) + check_libraries(root) + check_types(root) + check_loops(root) + check_java(root)


def prove_that_faults_are_found():
    sound = {
        PAGE: page(),
        "tamis/base/status.h": "#pragma once\n#include <string>\n",
        "tamis/base/executor.h": '#include "tamis/base/status.h"\n',
        "tamis/base/testing/sim_executor.h": '#include "tamis/base/executor.h"\n',
        "tamis/filter/filter.h": '#include "tamis/base/status.h"\n',
        "tamis/filter/CMakeLists.txt": "tamis_library(filter\n  SOURCES a.cc\n  DEPS base\n  EXTERNAL X)\n",
        "tamis/filter/internal/words.h": "",
        "tamis/filter/filter_test.cc": '#include "tamis/filter/internal/words.h"\n',
        "bench/words.cc": '#include "tamis/filter/internal/words.h"\n',
        "tamis/table/table.proto": "",
        "tamis/routing/routing.cc": '#include "tamis/base/executor.h"\n#include "tamis/table/table.pb.h"\n',
        "tamis/routing/CMakeLists.txt": "tamis_library(matrix DEPS filter)\n"
                                        "tamis_library(routing DEPS matrix executor)\n",
        "tests/cluster_test.cc": '#include "tamis/filter/filter.h"\n',
        "tamis/table/loops.cc": "void F() {\n  for (auto& a : *m->mutable_all()) G(a);\n  for (auto& a : all()) G(a);\n"
                                "  for (auto& a : *all) G(*b());\n}\n",
        f"{JAVA}/feed/Feed.java": 'import tamis.base.Fault;\nclass Feed { tamis.pb.Event e; String s = "tamis.hbase.X"; }\n',
        # Types of one name that never meet.
        "tamis/table/plan.h": "namespace tamis {\nstruct Plan final : Base { struct Term {}; };\n"
                              "class Other;\nstruct Other* F() { struct Local {}; }\n}\n",
        "tamis/table/value.cc": "namespace tamis {\nnamespace {\nstruct Plan {};\n}\nstruct Term { int a{}; };\n"
                                'const char* t = "{"; // struct Plan {\n'
                                'const char* r = R"x({{ )" struct Plan { )x";\n'
                                "const char c = '{'; int n = 1'000;\n"
                                "namespace pb { struct Plan {}; }\nvoid G() { struct Local {}; }\n}\n",
    }
    planted = {
        "against an arrow": ("tamis/base/status.cc", '#include "tamis/filter/filter.h"\n'),
        "filter knows executor": ("tamis/filter/filter.cc", '#  include "tamis/base/executor.h"\n'),
        "internal": ("tamis/routing/words.cc", '#include "tamis/filter/internal/words.h"\n'),
        "no such file": ("tests/other_test.cc", '#include "tamis/base/gone.h"\n'),
        "no such message": ("tamis/table/row.cc", '#include "tamis/table/row.pb.h"\n'),
        "circle": ("tamis/base/executor.h", '#include "tamis/base/testing/sim_executor.h"\n'),
        "angle brackets": ("tamis/table/row.cc", "#include <tamis/base/status.h>\n"),
        "outside": ("tamis/table/row.cc", '#include "tests/cluster_test.cc"\n'),
        "unknown folder": ("tamis/misc/misc.h", "\n"),
        "one name, two types": ("tamis/base/plan.cc", "namespace tamis {\ntemplate <class T>\n"
                                                      "class Plan {\n};\n}\n"),
        "nested namespace": ("tamis/base/plan.cc", "namespace tamis::pb {\nenum class Plan : int { kA };\n}\n"),
        "behind a quote": ("tamis/base/plan.cc", "namespace tamis {\nint n = 1'000; char c = '\\'';\n"
                                                 'extern "C" {\nstruct alignas(8) Plan {};\n}\n}\n'),
        "loop": ("tamis/base/plan.cc", "void F() {\n  for (const auto& [a,\n      b] : *region->indexes()) {\n  }\n}\n"),
        "package against an arrow": (f"{JAVA}/feed/Filter.java", "import tamis.region.IndexedRegion;\n"),
        "full name against an arrow": (f"{JAVA}/table/Key.java", "class Key { tamis.base.Fault f; }\n"),
        "unknown package": (f"{JAVA}/misc/Misc.java", "\n"),
        "page lacks an arrow": (PAGE, page().replace("| `tamis/filter` | a noun | base |",
                                                     "| `tamis/filter` | a noun | nothing of ours |")),
        "page lacks a package": (PAGE, page().replace("| `tamis.filter` |", "| filter |")),
        "page has another folder": (PAGE, page() + "| `tamis/misc` | a noun | base |\n"),
        "library against an arrow": ("tamis/filter/CMakeLists.txt", "tamis_library(filter DEPS matrix)\n"),
    }
    cases = {"none": None, **planted}
    for name, fault in cases.items():
        with tempfile.TemporaryDirectory() as root:
            tree = dict(sound)
            if fault:
                tree[fault[0]] = fault[1]
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = check(root)
            if len(found) != (1 if fault else 0):
                sys.exit(f"check_arrows.py is broken: planted fault \"{name}\", found: {found}")


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    prove_that_faults_are_found()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    faults = check(root)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"{len(faults)} faults; the arrows are the table ARROWS in tests/check_arrows.py")
    print(f"{sum(1 for _ in files(root, ('.h', '.cc')))} files keep to the arrows")


if __name__ == "__main__":
    main()
