#!/usr/bin/env python3
"""Full disks, damaged files, foreign directories: a clear error that says what and where, never a wrong
answer, and nothing that was acknowledged is lost.

usage: store_test.py TAMIS EXTENSION PLANT_FAULT SMALL_DISK
"""

import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SMALL_DISK = sys.argv.pop()
PLANT_FAULT = sys.argv.pop()
EXTENSION = sys.argv.pop()
TAMIS = sys.argv.pop()
ROWS = 2000


def row(i):
    return f"k{i:06},group {i // 5},{i * 7919 % 1009},{'filling ' * 5}\n"


CSV = "id,grp,n,note\n" + "".join(row(i) for i in range(ROWS))
IMPORT = ["import", "t", "-", "--format", "csv", "--key", "id", "--column", "n:int64", "--index", "grp"]
SUM = sum(i * 7919 % 1009 for i in range(ROWS))


ON_A_SMALL_DISK = """
import json, os, sqlite3, sys
extension, store, room = sys.argv[1:]
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension(extension)
db.execute("SELECT tamis_open(?)", (store,)).fetchall()
answers = []
def ask(statement):
    try:
        answers.append(db.execute(statement).fetchall())
    except sqlite3.Error as error:
        answers.append(str(error))
ask("SELECT count(*) FROM t WHERE id = 'k000000'")
with open(room, "w") as file:
    file.write("0")
ask("INSERT INTO t (id, grp, note) VALUES ('new', 'new', printf('%.*c', 100000, 'x'))")
ask("SELECT count(*) FROM t WHERE grp = 'group 77'")
ask("SELECT sum(n) FROM t WHERE id LIKE 'k%'")
ask("INSERT INTO t (id, grp) VALUES ('new 2', 'new')")
os.remove(room)
ask("INSERT INTO t (id, grp) VALUES ('new 3', 'new')")
ask("SELECT id FROM t WHERE grp = 'new' AND id = 'new 3'")
db.close()
print(json.dumps(answers))
"""


class StoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.sound = os.path.join(cls.directory.name, "sound")
        cls.store = os.path.join(cls.directory.name, "store")
        cls.room = os.path.join(cls.directory.name, "room")
        cls.start(["--store", cls.sound, *IMPORT], CSV)
        cls.start(["--store", cls.sound, "check", "t"])  # the rows stand in *.sst from now on

    @classmethod
    def start(cls, arguments, stdin=""):
        return subprocess.run([TAMIS, *arguments], input=stdin, text=True, check=True,
                              capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        for path in (self.store, self.room):
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.remove(path)

    def copy(self):
        shutil.copytree(self.sound, self.store)

    def run_tamis(self, *arguments, stdin="", env=None):
        return subprocess.run([TAMIS, "--store", self.store, *arguments], input=stdin, text=True,
                              errors="replace", capture_output=True, timeout=120, check=False, env=env)

    def succeed(self, *arguments, **options):
        done = self.run_tamis(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def fail_with(self, *arguments, says, **options):
        done = self.run_tamis(*arguments, **options)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for words in says:
            self.assertIn(words, done.stderr)
        return done

    def plant(self, fault, directory=None):
        subprocess.run([PLANT_FAULT, directory or self.store, "t", "grp", fault], check=True,
                       capture_output=True)

    # Each answer is right or an error that names a file; says which.
    def ask_everything(self):
        failed = []
        for statement, answer in (("SELECT count(*) AS a FROM t", ROWS), ("SELECT sum(n) AS a FROM t", SUM),
                                  ("SELECT count(*) AS a FROM t WHERE grp = 'group 77'", 5),
                                  ("SELECT count(*) AS a FROM t WHERE grp >= 'group 2'",
                                   sum(f"group {i // 5}" >= "group 2" for i in range(ROWS))),
                                  ("SELECT n AS a FROM t WHERE id = 'k001000'", 1000 * 7919 % 1009)):
            done = self.run_tamis("sql", "--format", "json", statement)
            if done.returncode == 0:
                self.assertEqual(json.loads(done.stdout), [{"a": answer}], statement)
            else:
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                failed.append(done.stderr)
        return failed

    # ---- Full disks

    def small_disk(self, room):
        with open(self.room, "w") as file:
            file.write(str(room))
        # The sanitizers want to be first among the libraries; they need not.
        return dict(os.environ, LD_PRELOAD=SMALL_DISK, SMALL_DISK=self.store, SMALL_DISK_ROOM=self.room,
                    ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

    def test_an_import_on_a_full_disk_says_where_it_stopped_and_goes_on_later(self):
        env = self.small_disk(120_000)
        done = self.fail_with(*IMPORT, stdin=CSV, env=env,
                              says=["No space left on device", self.store, "the disk is full: make room",
                                    "run the same command again to go on"])
        self.assertRegex(done.stderr, "line [0-9]+")
        written = int(re.search("t: ([0-9]+) rows put", done.stdout).group(1))
        self.assertLess(written, ROWS)
        # Acknowledged rows are there.
        count = json.loads(self.succeed("sql", "--format", "json", "SELECT count(*) AS n FROM t"))[0]["n"]
        self.assertGreaterEqual(count, written)
        self.assertIn("missing entries 0, foreign entries 0, missing in filters 0",
                      self.succeed("check", "t"))
        self.succeed(*IMPORT, stdin=CSV)
        self.assertEqual(self.ask_everything(), [])

    def test_a_store_goes_on_when_there_is_room_again(self):
        self.copy()
        # Debian's own Python: others may be built without loadable extensions.
        done = subprocess.run(["/usr/bin/python3", "-c", ON_A_SMALL_DISK, EXTENSION, self.store, self.room],
                              env=self.small_disk(10_000_000), text=True, capture_output=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        before, full, group, total, still_full, after, found = json.loads(done.stdout)
        self.assertEqual(before, [[1]])
        for message in (full, still_full):
            self.assertIn("No space left on device", message)
            self.assertIn("make room", message)
        self.assertEqual([group, total], [[[5]], [[SUM]]])  # reading goes on
        self.assertEqual(after, [])
        self.assertEqual(found, [["new 3"]])
        self.assertIn("missing entries 0, foreign entries 0, missing in filters 0",
                      self.succeed("check", "t"))
        self.assertIn("new 3\n", self.succeed("sql", "--format", "csv",
                                              "SELECT id FROM t WHERE grp = 'new'"))

    def test_a_store_is_not_opened_on_a_full_disk(self):
        self.copy()
        env = self.small_disk(0)
        self.fail_with("get", "t", "k000001", env=env, says=["No space left on device", self.store])
        self.assertEqual(self.ask_everything(), [])

    # ---- Damaged files

    def files(self, pattern):
        return sorted(glob.glob(os.path.join(self.store, pattern)), key=os.path.getsize)

    def flip(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 0x10]))

    def test_cut_or_missing_table_file_is_an_error(self):
        self.copy()
        largest = self.files("*.sst")[-1]
        os.truncate(largest, os.path.getsize(largest) // 2)
        self.fail_with("status", says=[self.store, os.path.basename(largest)[:-4], "backup"])
        os.remove(largest)
        self.fail_with("status", says=[self.store, os.path.basename(largest)[:-4], "backup"])

    def test_a_flipped_bit_in_a_table_file_gives_an_error_and_no_wrong_answer(self):
        rng = random.Random(20260101)
        self.copy()
        names = [os.path.basename(path) for path in self.files("*.sst")]
        failures = 0
        for name in names[-4:]:
            for _ in range(2):
                shutil.rmtree(self.store)
                self.copy()
                path = os.path.join(self.store, name)
                self.flip(path, rng.randrange(os.path.getsize(path) * 3 // 4))
                for message in self.ask_everything():
                    failures += 1
                    self.assertIn(name, message)
                    self.assertIn("backup", message)
        self.assertGreater(failures, 0)

    def test_flipped_bit_in_the_manifest_is_an_error(self):
        rng = random.Random(20260102)
        failures = 0
        for _ in range(5):
            shutil.rmtree(self.store, ignore_errors=True)
            self.copy()
            path = self.files("MANIFEST-*")[-1]
            self.flip(path, rng.randrange(os.path.getsize(path)))
            for message in self.ask_everything():
                failures += 1
                self.assertIn(self.store, message)
        self.assertGreater(failures, 0)

    def test_without_its_file_current_no_new_store_is_made(self):
        self.copy()
        os.remove(os.path.join(self.store, "CURRENT"))
        before = sorted(os.listdir(self.store))
        for command in (["status"], ["sql", "SELECT 1"], IMPORT):
            self.fail_with(*command, says=[self.store, "CURRENT is missing", "backup"])
        self.assertEqual(sorted(os.listdir(self.store)), before)

    # A process that is killed leaves a log with rows that stand in no other file.
    def leave_log(self):
        self.copy()
        process = subprocess.Popen([TAMIS, "--store", self.store, "sql", "--format", "csv"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write("".join(f"INSERT INTO t (id, n) VALUES ('new {i:02}', 0);\n"
                                    for i in range(20)) + "SELECT 'end';\n")
        process.stdin.flush()
        for line in process.stdout:
            if line == "end\n":
                break
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        return max(glob.glob(os.path.join(self.store, "*.log")), key=os.path.getmtime)

    def new_rows(self, *options):
        return len(self.succeed(*options, "sql", "--format", "csv",
                                "SELECT id FROM t WHERE id > 'l'").splitlines()[1:])

    def test_a_log_with_a_torn_end_is_opened(self):
        log = self.leave_log()
        os.truncate(log, os.path.getsize(log) - 3)
        self.assertEqual(self.new_rows(), 19)

    def test_a_log_that_is_damaged_before_its_end_loses_nothing_without_a_word(self):
        log = self.leave_log()
        with open(log, "rb") as file:
            self.flip(log, file.read().index(b"new 10"))
        self.fail_with("status", says=[self.store, "--salvage", "backup"])
        self.assertEqual(self.new_rows("--salvage"), 10)
        self.assertEqual(self.new_rows(), 10)
        self.succeed("index", "rebuild", "t")
        self.assertIn("missing entries 0, foreign entries 0, missing in filters 0",
                      self.succeed("check", "t"))

    # ---- What is not a store, or not ours to open

    def test_directory_with_other_files_is_refused(self):
        os.mkdir(self.store)
        with open(os.path.join(self.store, "notes.txt"), "w") as file:
            file.write("mine\n")
        for command in (["status"], ["sql", "SELECT 1"], IMPORT):
            self.fail_with(*command, says=[self.store, "holds other files"])
        self.assertEqual(os.listdir(self.store), ["notes.txt"])
        shutil.rmtree(self.store)
        self.plant("foreign-database")
        self.fail_with("sql", "SELECT 1", says=[self.store, "database of something else"])
        shutil.rmtree(self.store)
        with open(self.store, "w") as file:
            file.write("a file\n")
        self.fail_with("sql", "SELECT 1", says=[self.store, "not a directory"])
        self.store_is_missing()

    def store_is_missing(self):
        os.remove(self.store)
        self.fail_with("status", says=[self.store, "there is none"])
        self.assertFalse(os.path.exists(self.store))

    def test_an_empty_directory_becomes_a_store(self):
        os.mkdir(self.store)
        self.fail_with("status", says=[self.store, "there is none"])
        self.succeed(*IMPORT, stdin=CSV)
        self.assertEqual(self.ask_everything(), [])

    def test_newer_format_is_refused(self):
        self.copy()
        self.plant("newer-format")
        self.fail_with("status", says=[self.store, "format 99", "use the version of tamis that wrote it"])

    def test_unreadable_directory_is_an_error(self):
        self.copy()
        os.chmod(self.store, 0)
        options = {}
        program = TAMIS
        if os.geteuid() == 0:
            # File modes do not bind root, so the program runs as another user.
            program = os.path.join(self.directory.name, "tamis")
            shutil.copy(TAMIS, program)
            os.chmod(self.directory.name, 0o755)
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        done = subprocess.run([program, "--store", self.store, "status"], text=True, capture_output=True,
                              check=False, cwd="/", **options)
        os.chmod(self.store, 0o755)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(self.store, done.stderr)
        self.assertIn("Permission denied", done.stderr)

    def test_second_process_is_refused(self):
        self.copy()
        process = subprocess.Popen([TAMIS, "--store", self.store, "sql"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        process.stdin.write("SELECT 'ready';\n")
        process.stdin.flush()
        while "ready" not in process.stdout.readline():
            pass
        self.fail_with("status", says=[self.store, "another process has the store open"])
        process.stdin.close()
        process.wait()
        process.stdout.close()
        self.succeed("status")


unittest.main()
