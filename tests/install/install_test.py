"""What is installed, as others use it, out of this tree: found, built against, run.

usage: install_test.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER [COMPILER FLAG...]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, CC, CXX, *FLAGS = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
CONSUMER = os.path.join(HERE, "consumer")
ANSWER = "members 1000, others few\n"


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.work = directory.name
        cls.prefix = os.path.join(cls.work, "moved")
        installed = os.path.join(cls.work, "installed")
        run("cmake", "--install", BUILD, "--component", "filter", "--prefix", installed)
        filters = os.path.join(cls.work, "filters alone")
        shutil.copytree(installed, filters, symlinks=True)
        run("cmake", "--install", BUILD, "--component", "engine", "--prefix", installed)
        os.rename(installed, cls.prefix)  # what is installed must not know where it was
        cls.lib = os.path.dirname(cls.find("libtamis_filter.so"))

    @classmethod
    def files(cls):
        return sorted(os.path.relpath(os.path.join(directory, name), cls.prefix)
                      for directory, _, names in os.walk(cls.prefix) for name in names)

    @classmethod
    def find(cls, name):
        found = [path for path in cls.files() if os.path.basename(path) == name]
        assert len(found) == 1, "%s in %s" % (name, cls.files())
        return os.path.join(cls.prefix, found[0])

    def pkg_config(self, *arguments):
        return run("pkg-config", *arguments,
                   PKG_CONFIG_PATH=os.path.dirname(self.find("tamis-filter.pc"))).split()

    def configure(self, directory, version="0.1", project=CONSUMER, prefix=None, **environment):
        return subprocess.run(
            ["cmake", "-S", project, "-B", os.path.join(self.work, directory), "-G", "Ninja",
             "-DCMAKE_PREFIX_PATH=" + (prefix or self.prefix), "-DTAMIS_VERSION=" + version,
             "-DCMAKE_C_COMPILER=" + CC, "-DCMAKE_CXX_COMPILER=" + CXX,
             "-DCMAKE_C_FLAGS=" + " ".join(FLAGS), "-DCMAKE_CXX_FLAGS=" + " ".join(FLAGS)],
            capture_output=True, text=True, env={**os.environ, **environment}, check=False)

    def test_find_package_finds_the_filter_library(self):
        done = self.configure("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        build = os.path.join(self.work, "build")
        run("cmake", "--build", build)
        for program in ("cpp", "c"):
            self.assertEqual(run(os.path.join(build, program)), ANSWER)

    def test_find_package_for_c_needs_no_other_development_package(self):
        nothing = {"PKG_CONFIG_LIBDIR": self.work, "PKG_CONFIG_PATH": ""}  # no .pc file is there
        done = self.configure("c-build", project=os.path.join(HERE, "c_consumer"), **nothing)
        self.assertEqual(done.returncode, 0, done.stderr)
        build = os.path.join(self.work, "c-build")
        run("cmake", "--build", build)
        self.assertEqual(run(os.path.join(build, "c")), ANSWER)
        for_cpp = self.configure("cpp-build", **nothing)
        self.assertNotEqual(for_cpp.returncode, 0)
        self.assertIn("tamis::filter needs Highway", for_cpp.stderr)

    def test_find_package_of_the_engine_needs_no_other_development_package(self):
        nothing = {"PKG_CONFIG_LIBDIR": self.work, "PKG_CONFIG_PATH": ""}  # no .pc file is there
        project = os.path.join(HERE, "engine_consumer")
        done = self.configure("engine-build", project=project, **nothing)
        self.assertEqual(done.returncode, 0, done.stderr)
        build = os.path.join(self.work, "engine-build")
        run("cmake", "--build", build)
        self.assert_asks_its_store(os.path.join(build, "embedded"), "engine-store")

    def test_find_package_says_that_the_engine_is_not_there(self):
        done = self.configure("no-engine", project=os.path.join(HERE, "engine_consumer"),
                              prefix=os.path.join(self.work, "filters alone"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tamis::engine is not installed", done.stderr)

    def test_the_compile_lines_of_the_tutorial_work(self):
        with open(os.path.join(HERE, "../../docs/TUTORIAL.md"), encoding="utf-8") as file:
            lines = re.findall(r"^    \$ (g\+\+|gcc)( .*)$", file.read(), re.MULTILINE)
        self.assertGreater(len(lines), 5)
        place = os.path.join(self.work, "tutorial")
        os.mkdir(place)
        for name in ("examples", "tests"):
            os.symlink(os.path.join(HERE, "../..", name), os.path.join(place, name))
        for compiler, line in lines:
            with self.subTest(line):
                command = " ".join([CXX if compiler == "g++" else CC, *FLAGS]) + line
                run("bash", "-c", f"cd '{place}' && {command}", LD_LIBRARY_PATH=self.lib,
                    PKG_CONFIG_PATH=os.path.dirname(self.find("tamis-filter.pc")))

    def test_pkg_config_of_the_engine(self):
        program = os.path.join(self.work, "embedded")
        run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", *FLAGS,
            os.path.join(HERE, "../../examples/embedded.cc"), "-o", program,
            *self.pkg_config("--cflags", "--libs", "tamis-engine"))
        self.assert_asks_its_store(program, "pkg-config-store", LD_LIBRARY_PATH=self.lib)

    def assert_asks_its_store(self, program, store, **environment):
        printed = run(program, os.path.join(self.work, store), **environment).splitlines()
        self.assertEqual(printed[:2], ["Kano: 4103000", "Lagos: 15388000"])
        self.assertRegex(printed[2], "^index country: 1 of 1 servers, 1 of 1 regions asked")

    def test_find_package_of_another_version_fails(self):
        done = self.configure("newer", "0.2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('requested version "0.2"', done.stderr)

    def test_pkg_config(self):
        program = os.path.join(self.work, "cpp")
        run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", *FLAGS, CONSUMER + "/cpp.cc",
            "-o", program, *self.pkg_config("--cflags", "--libs", "tamis-filter"))
        self.assertEqual(run(program), ANSWER)
        self.assertNotIn("libtamis_filter.so", run("readelf", "-d", program))

    def test_pkg_config_for_c(self):
        program = os.path.join(self.work, "c")
        run(CC, "-std=c99", "-Wall", "-Wextra", "-Werror", *FLAGS, CONSUMER + "/c.c", "-o", program,
            *self.pkg_config("--cflags", "--libs", "tamis-filter-c"))
        self.assertEqual(run(program, LD_LIBRARY_PATH=self.lib), ANSWER)

    def test_every_header_stands_alone(self):
        headers = [path for path in self.files() if path.startswith("include/")]
        self.assertGreater(len(headers), 20)
        include = "-I" + os.path.join(self.prefix, "include")
        for header in headers:
            source = os.path.join(self.work, "header.cc")
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include "%s"\n' % os.path.relpath(header, "include"))
            run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", include, source)
        run(CC, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            os.path.join(self.prefix, "include/tamis/filter.h"))

    def test_nothing_else_is_installed(self):
        lib = os.path.relpath(self.lib, self.prefix)
        for path in self.files():
            self.assertRegex(path, "^(include/tamis/(filter|[a-z]+/(internal/)?[a-z_]+)[.]h|"
                             + lib + "/(libtamis_(filter|base)[.]a|libtamis_(filter|engine)[.]so[.0-9]*|"
                             "pkgconfig/tamis-(engine|filter(-c)?)[.]pc|cmake/tamis/tamis-[a-z-]+[.]cmake))$")
            self.assertNotIn("test", path)

    def test_the_shared_library_shows_the_c_api_and_needs_little(self):
        library = os.path.join(self.lib, "libtamis_filter.so")
        symbols = {line.split()[-1].split("@")[0] for line in
                   run("nm", "-D", "--defined-only", library).splitlines()
                   if " A " not in line}
        with open(self.find("filter.h"), encoding="utf-8") as file:
            declared = set(re.findall(r"^TAMIS_API [^(]*?(tamis_\w+)\(", file.read(), re.MULTILINE))
        self.assertGreater(len(declared), 15)
        self.assertEqual(symbols, declared)
        dynamic = run("readelf", "-d", library)
        self.assertIn("soname: [libtamis_filter.so.0]", dynamic)
        needed = re.findall(r"NEEDED.*\[(\w+)", dynamic)
        self.assertLessEqual(set(needed), {"libhwy", "libstdc", "libm", "libgcc_s", "libc", "ld",
                                           "libasan", "libubsan", "libtsan"})

    def test_the_engine_shows_names_of_its_own_only_and_its_headers_none_of_others(self):
        names = run("nm", "-DC", "--defined-only", os.path.join(self.lib, "libtamis_engine.so"))
        shown = {line.split(" ", 2)[2] for line in names.splitlines() if " A " not in line}
        self.assertIn("tamis::OpenedStore::Open(", "\n".join(shown))
        for name in shown:
            self.assertRegex(name, r"\btamis::")
        for path in self.files():
            if path.startswith("include/"):
                with open(os.path.join(self.prefix, path), encoding="utf-8") as header:
                    self.assertNotRegex(header.read(), r"#include.*(pb[.]h|google/|rocksdb/)", path)

    def test_the_hbase_client(self):
        prefix = os.path.join(self.work, "hbase")
        run("cmake", "--install", BUILD, "--component", "hbase", "--prefix", prefix)
        files = sorted(os.path.relpath(os.path.join(directory, name), prefix)
                       for directory, _, names in os.walk(prefix) for name in names)
        for path in files:
            self.assertRegex(path, "^(include/tamis/(base|hbase)/[a-z_]+[.]h|"
                             "lib[^ ]*/(libtamis_(base|hbase)[.]a|cmake/tamis/tamis-[a-z-]+[.]cmake))$")
        headers = [path for path in files if path.startswith("include/tamis/hbase/")]
        self.assertIn("include/tamis/hbase/client.h", headers)
        include = os.path.join(prefix, "include")
        source = os.path.join(self.work, "hbase_headers.cc")
        for header in headers:
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include "%s"\n' % os.path.relpath(header, "include"))
            run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I" + include, source)
        done = self.configure("hbase-build", project=os.path.join(HERE, "hbase_consumer"),
                              prefix=prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        build = os.path.join(self.work, "hbase-build")
        run("cmake", "--build", build)
        # No server listens there, and the program says so; tests/hbase shows that it works with one.
        asked = subprocess.run([os.path.join(build, "rows"), "nowhere"], capture_output=True, text=True,
                               check=False)
        self.assertEqual(asked.returncode, 1)
        self.assertIn("write host:port", asked.stderr)

    def test_the_filter_for_a_rocksdb(self):
        prefix = os.path.join(self.work, "lsm")
        run("cmake", "--install", BUILD, "--component", "lsm", "--prefix", prefix)
        files = sorted(os.path.relpath(os.path.join(directory, name), prefix)
                       for directory, _, names in os.walk(prefix) for name in names)
        self.assertEqual([path for path in files if path.endswith(".h")],
                         ["include/tamis/lsm/%s.h" % name
                          for name in ("database_filter", "filtered_db", "ingestion", "rocksdb_version")])
        alone = self.configure("lsm-alone", project=os.path.join(HERE, "lsm_consumer"), prefix=prefix)
        self.assertNotEqual(alone.returncode, 0)
        self.assertIn("tamis::lsm needs tamis::filter", alone.stderr)
        run("cmake", "--install", BUILD, "--component", "filter", "--prefix", prefix)
        done = self.configure("lsm-build", project=os.path.join(HERE, "lsm_consumer"), prefix=prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        build = os.path.join(self.work, "lsm-build")
        run("cmake", "--build", build)
        printed = run(os.path.join(build, "absent_keys"), os.path.join(self.work, "database")).splitlines()
        self.assertEqual(printed[0], "100000 keys: found 100000, and 0 that were never put")
        self.assertEqual(printed[1], "nearly all of the others were denied at once: yes")
        self.assertEqual(printed[-1], "without the filter: the same answers")

    def test_the_filter_for_a_rocksdb_of_c_functions(self):
        prefix = os.path.join(self.work, "lsm-c")
        run("cmake", "--install", BUILD, "--component", "lsm_c", "--prefix", prefix)
        lib = os.path.join(prefix, os.path.relpath(self.lib, self.prefix))
        program = os.path.join(self.work, "rocksdb_filter")
        source = os.path.join(HERE, "..", "..", "examples", "rocksdb_filter.c")
        run(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-I" + os.path.join(prefix, "include"), "-L" + lib,
            "-ltamis_lsm", "-lrocksdb", *FLAGS, "-o", program)
        printed = run(program, os.path.join(self.work, "rocksdb-c"), LD_LIBRARY_PATH=lib)
        self.assertEqual(printed, "1000 of 1000 keys found, 0 of 2000 absent ones; the filter excluded nearly all of "
                         "these\n")

    def test_the_program_and_the_sqlite_extension(self):
        prefix = os.path.join(self.work, "program")
        run("cmake", "--install", BUILD, "--component", "program", "--prefix", prefix)
        self.assertEqual(os.listdir(os.path.join(prefix, "bin")), ["tamis"])
        self.assertEqual(os.listdir(os.path.join(prefix, "share/man/man1")), ["tamis.1.gz"])
        self.assertEqual(run(os.path.join(prefix, "bin/tamis"), "--version"), "tamis 0.1.0\n")
        lib = os.path.join(prefix, os.path.relpath(self.lib, self.prefix))
        self.assertEqual(os.listdir(lib), ["tamis.so"])
        if not FLAGS:  # the shell knows nothing of the sanitizers' libraries
            self.assertEqual(run("sqlite3", "-batch", "-bail", ":memory:", "-cmd", ".load tamis",
                                 "SELECT tamis_open('%s') <> ''" % os.path.join(self.work, "store"),
                                 LD_LIBRARY_PATH=lib), "1\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
