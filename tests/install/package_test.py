#!/usr/bin/env python3
"""The Debian packages: made, taken apart, and the program run from what lies in them.

usage: package_test.py BUILD_DIRECTORY
"""

import glob
import gzip
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv.pop(1)


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.work = directory.name
        run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", cls.work)

    def package(self, name):
        found = glob.glob(os.path.join(self.work, name + "_*.deb"))
        self.assertEqual(len(found), 1, os.listdir(self.work))
        return found[0]

    def unpacked(self, name):
        root = os.path.join(self.work, name)
        run("dpkg-deb", "-x", self.package(name), root)
        return root

    def test_the_program_runs_from_its_package_and_has_its_page_and_completion(self):
        root = self.unpacked("tamis")
        program = os.path.join(root, "usr/bin/tamis")
        version = run("dpkg-deb", "-f", self.package("tamis"), "Version").strip()
        self.assertEqual(run(program, "--version"), "tamis %s\n" % version.split("-")[0])
        store = os.path.join(self.work, "store")
        run(program, "--store", store, "sql",
            "CREATE VIRTUAL TABLE t USING tamis(k, n int64, key (k), index n (n));"
            "INSERT INTO t VALUES ('a', 1), ('b', 2)")
        self.assertEqual(run(program, "--store", store, "sql", "--format", "csv",
                             "SELECT k FROM t WHERE n = 2"), "k\nb\n")
        with gzip.open(os.path.join(root, "usr/share/man/man1/tamis.1.gz"), "rt") as page:
            self.assertIn(".TH tamis 1", page.read())
        for name in ("bash-completion/completions/tamis", "zsh/vendor-completions/_tamis"):
            with open(os.path.join(root, "usr/share", name), encoding="utf-8") as script:
                self.assertIn("_tamis", script.read())

    def test_the_service_is_sound_and_keeps_to_its_box(self):
        root = self.unpacked("tamis-server")
        program = os.path.join(self.unpacked("tamis"), "usr/bin/tamis")
        unit = os.path.join(root, "usr/lib/systemd/system/tamis-server.service")
        with open(unit, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("ExecStart=/usr/bin/tamis --config /etc/tamis/server.conf serve\n", text)
        with open(unit, "w", encoding="utf-8") as file:
            file.write(text.replace("/usr/bin/tamis", program))
        run("systemd-analyze", "verify", "--man=no", unit, os.path.join(os.path.dirname(unit), "tamis-server.socket"))
        # The exposure, of 100; systemd calls one up to 19 OK.
        run("systemd-analyze", "security", "--offline=yes", "--threshold=19", unit)
        run("systemd-sysusers", "--dry-run", os.path.join(root, "usr/lib/sysusers.d/tamis-server.conf"))
        control = os.path.join(self.work, "control")
        run("dpkg-deb", "-e", self.package("tamis-server"), control)
        with open(os.path.join(control, "conffiles"), encoding="utf-8") as file:
            conffile = file.read().strip()
        self.assertTrue(os.path.isfile(root + conffile), conffile)
        for script in ("postinst", "prerm", "postrm"):
            self.assertTrue(os.access(os.path.join(control, script), os.X_OK), script)
            run("sh", "-n", os.path.join(control, script))

    def test_the_packages_name_what_they_need(self):
        needs = run("dpkg-deb", "-f", self.package("tamis"), "Depends")
        for library in ("librocksdb", "libprotobuf", "libsqlite3-0"):
            self.assertIn(library, needs)
        needs = run("dpkg-deb", "-f", self.package("libtamis-engine-dev"), "Depends")
        for package in ("libtamis-engine0 (= ", "libtamis-filter-dev (= "):
            self.assertIn(package, needs)
        self.assertNotIn("librocksdb-dev", needs)
        self.assertIn("librocksdb", run("dpkg-deb", "-f", self.package("libtamis-engine0"), "Depends"))
        needs = run("dpkg-deb", "-f", self.package("tamis-redis"), "Depends")
        self.assertIn("libc6", needs)
        self.assertNotIn("librocksdb", needs)
        self.assertIn("libhwy-dev", run("dpkg-deb", "-f", self.package("libtamis-filter-dev"), "Depends"))

    def test_dependencies_are_there_for_a_machine_that_has_nothing(self):
        # Simulates a machine on which nothing is installed, with Debian's archive as apt knows it.
        bare = ["apt-get", "--simulate", "--no-install-recommends", "-o", "Dir::State::status=/dev/null", "install"]
        try:
            run(*bare, "libc6")
        except AssertionError as error:
            self.skipTest("apt knows no packages here; apt-get update brings their lists\n%s" % error)
        filters = ("libtamis-filter-dev", "libtamis-filter0")
        for name, others in (("tamis", ()), ("tamis-redis", ()), ("libtamis-filter-dev", filters[1:]),
                             ("libtamis-engine0", ()), ("libtamis-engine-dev", ("libtamis-engine0", *filters))):
            packages = [self.package(other) for other in (name, *others)]
            self.assertIn("Inst %s " % name, run(*bare, *packages))

    def test_the_libraries_and_the_module_are_in_packages_of_their_own(self):
        for name, library in (("libtamis-engine0", "libtamis_engine.so.0"), ("libtamis-filter0", "libtamis_filter.so.0")):
            files = glob.glob(os.path.join(self.unpacked(name), "usr/lib/**/*"), recursive=True)
            self.assertIn(library, map(os.path.basename, files))
            self.assertNotIn(library.removesuffix(".0"), map(os.path.basename, files))
        module = os.path.join(self.unpacked("tamis-redis"), "usr/lib/redis/modules/tamis_redis.so")
        with open(os.path.join(self.unpacked("tamis-redis"), "usr/share/tamis/tamis_redis.conf"), encoding="utf-8") as file:
            loaded = [line.split()[1] for line in file if line.startswith("loadmodule ")]
        self.assertEqual([os.path.join(self.unpacked("tamis-redis"), path[1:]) for path in loaded], [module])
        with tempfile.TemporaryDirectory() as directory:
            socket = os.path.join(directory, "socket")
            server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", directory,
                                       "--save", "", "--loadmodule", module], stdout=subprocess.DEVNULL)
            try:
                while subprocess.run(["redis-cli", "-s", socket, "PING"], capture_output=True, check=False).stdout != b"PONG\n":
                    self.assertIsNone(server.poll())
                self.assertEqual(run("redis-cli", "-s", socket, "BF.ADD", "k", "x"), "1\n")
            finally:
                server.kill()
                server.wait()

    def test_the_wrapper_for_postgresql_lies_where_postgresql_looks_for_it(self):
        if not os.path.exists(os.path.join(BUILD, "lib", "tamis_fdw.so")):
            self.skipTest("this build has no tamis_fdw: PostgreSQL's development files are not installed")
        found = glob.glob(os.path.join(self.work, "postgresql-*-tamis-fdw_*.deb"))
        self.assertEqual(len(found), 1, os.listdir(self.work))
        needs = run("dpkg-deb", "-f", found[0], "Depends")
        self.assertIn("libcurl4", needs)
        self.assertRegex(needs, r"postgresql-\d+")
        files = run("dpkg-deb", "-c", found[0])
        for pattern in (r"\./usr/lib/postgresql/\d+/lib/tamis_fdw\.so", r"\./usr/share/postgresql/\d+/extension/tamis_fdw\.control",
                        r"\./usr/share/postgresql/\d+/extension/tamis_fdw--0\.1\.sql"):
            self.assertRegex(files, pattern)

    def test_no_package_holds_what_another_holds(self):
        lists = [set(line.split()[-1] for line in run("dpkg-deb", "-c", self.package(name)).splitlines()
                     if not line.startswith("d")) for name in
                 ("tamis", "libtamis-filter-dev", "libtamis-engine-dev", "libtamis-engine0", "libtamis-filter0",
                  "tamis-redis")]
        self.assertEqual(sum(map(len, lists)), len(set().union(*lists)))
        self.assertIn("./usr/include/tamis/filter.h", lists[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
