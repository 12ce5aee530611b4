"""For the tests of tamis_fdw: a PostgreSQL that has the extension, and a store that tamis serve answers for.

PostgreSQL looks for extensions beside its own program. So that nothing is installed on the machine, a directory gets
copies of the programs and links to the rest, and the extension's files.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "guard"))
import postgres  # noqa: E402  pylint: disable=wrong-import-position

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "postgres")


def link_all(source, target):
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        os.symlink(os.path.join(source, name), os.path.join(target, name))


def copy_of(home, target, library):
    """A PostgreSQL that stands in one directory, with the extension in it; returns the directory of its programs."""
    shutil.copytree(home, target, symlinks=True)
    said = subprocess.run([os.path.join(target, "bin", "pg_config"), "--pkglibdir", "--sharedir"], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    shutil.copy(library, os.path.join(said[0], "tamis_fdw.so"))
    for name in ("tamis_fdw.control", "tamis_fdw--0.1.sql"):
        shutil.copy(os.path.join(SOURCES, name), os.path.join(said[1], "extension"))
    return os.path.join(target, "bin")


class Installation:
    """A PostgreSQL with the extension: `binaries` is the directory of its programs. TAMIS_TEST_POSTGRES names the directory of
    another PostgreSQL than Debian's, which the library was built for."""

    def __init__(self, library):
        # Readable by the user that PostgreSQL runs as.
        self.directory = tempfile.mkdtemp(prefix="tamis-fdw-")
        os.chmod(self.directory, 0o755)
        if "TAMIS_TEST_POSTGRES" in os.environ:
            self.binaries = copy_of(os.environ["TAMIS_TEST_POSTGRES"], os.path.join(self.directory, "usr"), library)
            return
        home = os.path.dirname(postgres.binaries())
        version = os.path.basename(home)
        self.binaries = os.path.join(self.directory, "usr/lib/postgresql", version, "bin")
        libraries = os.path.join(self.directory, "usr/lib/postgresql", version, "lib")
        share = os.path.join(self.directory, "usr/share/postgresql", version)
        shutil.copytree(os.path.join(home, "bin"), self.binaries)
        link_all(os.path.join(home, "lib"), libraries)
        shutil.copy(library, os.path.join(libraries, "tamis_fdw.so"))
        link_all(os.path.join("/usr/share/postgresql", version), share)
        extensions = os.path.join(share, "extension")
        os.unlink(extensions)
        link_all(os.path.join("/usr/share/postgresql", version, "extension"), extensions)
        for name in ("tamis_fdw.control", "tamis_fdw--0.1.sql"):
            shutil.copy(os.path.join(SOURCES, name), extensions)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        shutil.rmtree(self.directory, ignore_errors=True)


class Store:
    """A store, and the tamis serve that answers for it; it can be killed and started again on its port."""

    def __init__(self, tamis, *options):
        self.tamis = tamis
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="tamis-served-")
        self.port = 0
        self.process = None

    def run(self, *arguments):
        done = subprocess.run([self.tamis, "--store", "shop", *arguments], cwd=self.directory, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *options):
        self.process = subprocess.Popen(
            [self.tamis, "--store", "shop", "serve", "--listen", f"127.0.0.1:{self.port}", *self.options, *options],
            cwd=self.directory, stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+),", self.process.stdout.readline()).group(1))
        return self

    def stop(self, number=15):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop(9)
        shutil.rmtree(self.directory, ignore_errors=True)
