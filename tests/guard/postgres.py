"""A PostgreSQL server of its own for a test, in a directory of its own, on a socket there."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

import psycopg2


def binaries():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not found:
        raise AssertionError("PostgreSQL is not installed: apt-get install postgresql")
    return found[-1]


class Postgres:
    """It refuses to run as root: then it runs as the user `postgres`, which Debian's package makes."""

    def __init__(self, *options, programs=None):
        self.binaries = programs or binaries()
        self.directory = tempfile.mkdtemp(prefix="tamis-postgres-")
        self.prefix = []
        # A sanitizer is for the programs that are tested.
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = os.path.join(self.directory, "data")
        subprocess.run([*self.prefix, os.path.join(self.binaries, "initdb"), "--pgdata", data,
                        "--username=tamis", "--auth=trust", "--no-sync", "--encoding=UTF8",
                        "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd=self.directory, env=environment)
        self.log_path = os.path.join(self.directory, "log")
        arguments = ["-D", data, "-k", self.directory]
        for option in ("listen_addresses=", "fsync=off", "wal_level=logical",
                       "max_prepared_transactions=10", "autovacuum=off", *options):
            arguments += ["-c", option]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, os.path.join(self.binaries, "postgres"), *arguments],
                stdout=log, stderr=log, cwd=self.directory, env=environment)
        self.dsn = f"host={self.directory} user=tamis dbname=postgres"
        while True:
            assert self.process.poll() is None, self.log()
            try:
                self.connect().close()
                return
            except psycopg2.OperationalError:
                try:
                    self.process.wait(0.02)
                except subprocess.TimeoutExpired:
                    pass

    def connect(self, autocommit=False):
        connection = psycopg2.connect(self.dsn)
        connection.autocommit = autocommit
        return connection

    def run(self, *statements):
        connection = self.connect(autocommit=True)
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        connection.close()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            # Its own quick end: clients are cut off.
            self.process.send_signal(2)
            self.process.wait(60)
        shutil.rmtree(self.directory, ignore_errors=True)
