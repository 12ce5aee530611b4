#!/usr/bin/env python3
"""The programs of examples/extension, each in its language, on one store after the other.

usage: hosts_test.py EXTENSION EXAMPLES LANGUAGE...
"""

import os
import subprocess
import sys
import tempfile

EXTENSION, EXAMPLES, *LANGUAGES = sys.argv[1:]

# With Debian's packages: sqlite-jdbc, go-sqlite3, node-sqlite3.
COMMANDS = {
    "python": ["/usr/bin/python3", "query.py"],
    "java": ["java", "-cp", "/usr/share/java/sqlite-jdbc.jar", "Query.java"],
    "go": ["/usr/lib/go/bin/go", "run", "query.go"],
    "node": ["node", "query.js"],
}

with tempfile.TemporaryDirectory() as directory:
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "",
                   "GOCACHE": os.path.join(directory, "go")}
    store = os.path.join(directory, "store")
    # The first finds no table, the last one that all before it have written to.
    for language in LANGUAGES + LANGUAGES[:1]:
        *program, source = COMMANDS[language]
        done = subprocess.run([*program, os.path.join(EXAMPLES, source), EXTENSION, store], text=True,
                              capture_output=True, timeout=280, env=environment, check=False)
        if done.returncode != 0 or done.stdout != "ada 1815\n":
            sys.exit(f"{language} ended with {done.returncode} and printed {done.stdout!r}\n{done.stderr}"
                     "What it needs is in packages/test.txt and packages/hosts.txt")
        print(f"{language}: as expected")
