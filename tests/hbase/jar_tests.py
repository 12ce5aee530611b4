"""Runs the jar's own tests against another version of HBase than the one that it was compiled with.

usage: jar_tests.py HBASE_LOCAL COPROCESSOR DIRECTORY VERSION

COPROCESSOR is the module's directory, packaged. DIRECTORY keeps the list of the version's jars, which Maven brings.
"""

import glob
import os
import re
import subprocess
import sys

TOOL, MODULE, DIRECTORY = (os.path.abspath(path) for path in sys.argv[1:4])
VERSION = sys.argv[4]
JUNIT = "1.10.2"  # as in coprocessor/server/pom.xml


def flags():
    """What Maven gives to the tests' Java."""
    with open(os.path.join(MODULE, "pom.xml"), encoding="utf-8") as file:
        return re.search(r"<test.flags>(.*?)</test.flags>", file.read(), re.DOTALL).group(1).split()


def console():
    jar = os.path.join(DIRECTORY, "junit-platform-console-standalone-%s.jar" % JUNIT)
    if not os.path.exists(jar):
        subprocess.run(["mvn", "-B", "-q", "dependency:copy", "-DoutputDirectory=" + DIRECTORY,
                        "-Dartifact=org.junit.platform:junit-platform-console-standalone:" + JUNIT],
                       check=True, stdin=subprocess.DEVNULL)
    return jar


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    target = os.path.join(MODULE, "server-hbase3" if VERSION.startswith("3.") else "server", "target")
    jar, = glob.glob(os.path.join(target, "tamis-coprocessor*-[0-9]*.jar"))
    classes = os.path.join(target, "test-classes")
    done = subprocess.run([TOOL, "--directory", DIRECTORY, "classpath", "--version", VERSION], check=True, text=True,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    hbase = done.stdout.split()[-1]
    sys.exit(subprocess.run(
        ["java", *flags(), "-Dtamis.root=" + os.path.dirname(MODULE), "-cp",
         ":".join([classes, jar, console(), hbase]), "org.junit.platform.console.ConsoleLauncher", "execute",
         "--scan-classpath", classes, "--details=summary", "--disable-banner", "--fail-if-no-tests"],
        stdin=subprocess.DEVNULL, cwd=DIRECTORY, check=False).returncode)


if __name__ == "__main__":
    main()
