#!/usr/bin/env python3
"""Data in the formats of earlier versions is read as it was written (see make_data).

usage: compatibility_test.py TAMIS MODULE
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "redis"))
from redis_server import Server  # noqa: E402

TAMIS, MODULE = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
ARCHIVES = sorted(HERE.glob("formats-*.tar.gz"))


class CompatibilityTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = pathlib.Path(directory.name)

    def each(self):
        """The unpacked archives, one after the other."""
        self.assertTrue(ARCHIVES)
        for path in ARCHIVES:
            with self.subTest(path.name):
                target = self.work / path.name
                with tarfile.open(path) as archive:
                    archive.extractall(target)
                yield target

    def tamis(self, *words, expect=0, **options):
        done = subprocess.run([TAMIS, *map(str, words)], capture_output=True, text=True, check=False, **options)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def sql(self, store, statement):
        return json.loads(self.tamis("--store", store, "sql", "--format", "json", statement))

    def expect_people(self, store, name):
        self.assertEqual(self.sql(store, "SELECT count(*) AS n FROM people")[0]["n"], 290)
        self.assertEqual(self.sql(store, "SELECT name, born, height, alive, worth, hex(photo) AS photo FROM people "
                                         "WHERE id = 1"),
                         [{"name": name, "born": "1901-03-04 05:06:07", "height": 0.125, "alive": 1, "worth": 1.25,
                           "photo": "00000001"}])
        found = self.sql(store, "SELECT id FROM people WHERE name = 'name 57' ORDER BY id")
        self.assertEqual([row["id"] for row in found], [57, 157, 257])
        self.assertEqual(len(self.sql(store, "SELECT id FROM people WHERE name IS NULL")), 29)
        self.assertIn("missing entries 0, foreign entries 0, missing in filters 0",
                      self.tamis("--store", store, "check", "people"))

    def test_a_store_that_was_closed_and_one_that_was_killed(self):
        for data in self.each():
            for name, value in (("closed", "name 1"), ("killed", "changed")):
                self.expect_people(f"rocks:{data / name}?mode=ro", value)
                self.expect_people(data / name, value)
                self.tamis("--store", data / name, "sql", "UPDATE people SET name = 'name 57' WHERE id = 1")
                self.assertEqual(len(self.sql(data / name, "SELECT id FROM people WHERE name = 'name 57'")), 4)

    def test_key_files_of_a_rocksdb(self):
        for data in self.each():
            self.assertIn("4", self.tamis("lsm", "inspect", data / "keys"))
            self.tamis("lsm", "verify", data / "keys")

    def test_filters_of_every_type(self):
        keys = "".join(f"key{i}\n" for i in range(500))
        for data in self.each():
            filters = sorted(data.glob("*.filter"))
            self.assertGreaterEqual(len(filters), 14)
            for path in filters:
                self.assertEqual(self.tamis("filter", "query", path, input=keys), keys, path)

    def test_an_rdb_file_of_the_module(self):
        items = [f"item{i}" for i in range(200)]
        for data in self.each():
            with Server(MODULE, words=("tamis-trust-after-restart", "yes")) as server:
                server.client()("PING")
                server.kill()
                shutil.copy(data / "dump.rdb", os.path.join(server.directory, "dump.rdb"))
                server.start()
                client = server.client()
                self.assertEqual(client("BF.MEXISTS", "bloom", *items), [1] * 200)
                self.assertEqual(client("CF.MEXISTS", "cuckoo", *items), [1] * 200)
                self.assertEqual(client("TAMIS.CHECK", "guard", *items, "absent"), [1] * 200 + [0])


unittest.main()
