#!/usr/bin/env python3
"""The Debian packages on a machine that has nothing: installed, used, removed.

usage: bare_machine_test.py BUILD_DIRECTORY

The machine is a directory that debootstrap fills with the smallest Debian of this one's release, from
$TAMIS_DEBIAN_MIRROR (http://deb.debian.org/debian). Root only. What was fetched stays in
BUILD_DIRECTORY/bare-machine for the next time.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MIRROR = os.environ.get("TAMIS_DEBIAN_MIRROR", "http://deb.debian.org/debian")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return dict(line.rstrip().split("=", 1) for line in file if "=" in line)["VERSION_CODENAME"]


class BareMachineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = os.path.join(BUILD, "bare-machine")
        os.makedirs(cache, exist_ok=True)
        directory = tempfile.TemporaryDirectory(prefix="tamis_bare_machine.")
        cls.addClassCleanup(directory.cleanup)
        cls.root = os.path.join(directory.name, "root")
        run("debootstrap", "--variant=minbase", "--cache-dir=" + os.path.abspath(cache), release(), cls.root, MIRROR)
        packages = os.path.join(directory.name, "packages")
        run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", packages)
        os.makedirs(os.path.join(cls.root, "packages"))
        for package in glob.glob(os.path.join(packages, "*.deb")):
            shutil.copy(package, os.path.join(cls.root, "packages"))

    def inside(self, *command):
        return run("chroot", self.root, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", *command)

    def install(self, *names):
        files = [glob.glob(os.path.join(self.root, "packages", name + "_*.deb")) for name in names]
        self.assertEqual([len(found) for found in files], [1] * len(names))
        self.inside("apt-get", "install", "-q", "-y", "--no-install-recommends",
                    *("/packages/" + os.path.basename(found) for found, in files))

    def test_the_program_is_installed_used_and_removed(self):
        self.install("tamis")
        self.assertRegex(self.inside("tamis", "--version"), "^tamis ")
        self.inside("tamis", "--store", "/store", "sql",
                    "CREATE VIRTUAL TABLE t USING tamis(k, n int64, key (k), index n (n));"
                    "INSERT INTO t VALUES ('a', 1), ('b', 2)")
        self.assertEqual(self.inside("tamis", "--store", "/store", "sql", "--format", "csv",
                                     "SELECT k FROM t WHERE n = 2"), "k\nb\n")
        self.assertIn("2 rows", self.inside("tamis", "--store", "/store", "check", "t"))
        self.inside("apt-get", "purge", "-q", "-y", "tamis")
        self.assertFalse(os.path.exists(os.path.join(self.root, "usr/bin/tamis")))

    def test_the_libraries_are_installed_with_what_a_program_needs(self):
        self.install("libtamis-filter0", "libtamis-filter-dev", "libtamis-engine0", "libtamis-engine-dev")
        self.assertTrue(os.path.exists(os.path.join(self.root, "usr/include/tamis/filter.h")))
        self.assertTrue(glob.glob(os.path.join(self.root, "usr/lib/**/libtamis_engine.so*"), recursive=True))
        for library in glob.glob(os.path.join(self.root, "usr/lib/**/libtamis_*.so"), recursive=True):
            needs = self.inside("ldd", library.removeprefix(self.root))
            self.assertNotIn("not found", needs)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("bare_machine_test.py needs root and debootstrap (packages/bare.txt)")
    # Mounts inside are private, and gone at the end, before the directory is removed.
    if os.environ.get("TAMIS_MOUNTS_ARE_PRIVATE") != "1":
        os.environ["TAMIS_MOUNTS_ARE_PRIVATE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    BUILD = sys.argv.pop(1)
    unittest.main()
