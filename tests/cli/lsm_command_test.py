"""tamis lsm as people use it, on databases that other programs have written:
lsm_command_test.py PATH_OF_TAMIS PATH_OF_MAKE_DATABASE"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

TAMIS = os.path.abspath(sys.argv.pop(1))
MAKE = os.path.abspath(sys.argv.pop(1))


class LsmCommandTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.db = os.path.join(self.directory.name, "db")
        self.keys = os.path.join(self.db, "tamis.keys")

    def make(self, kind):
        subprocess.run([MAKE, kind, self.db], check=True)

    def run_tamis(self, command, *arguments, expect=0):
        done = subprocess.run([TAMIS, "lsm", command, self.db, *arguments], capture_output=True,
                              text=True, timeout=240)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def as_json(self, command, *arguments):
        return json.loads(self.run_tamis(command, "--json", *arguments).stdout)

    def everything(self):
        found = {}
        for folder, _, names in os.walk(self.db):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.join(folder, name)] = file.read()
        return found

    def family(self, report, name):
        return next(one for one in report["families"] if one["name"] == name)

    def test_inspect_tells_what_is_there_and_changes_nothing(self):
        self.make("plain")
        before = self.everything()
        report = self.as_json("inspect")
        self.run_tamis("inspect")
        self.assertEqual(self.everything(), before)
        self.assertIsNone(report["open_in_process"])
        self.assertEqual(len(report["families"]), 1)
        one = self.family(report, "default")
        self.assertEqual(one["sorted_runs"], 5)
        self.assertEqual(one["entries"], 5 * 20000)
        self.assertEqual(one["deletions"], 4 * 2000)
        self.assertEqual(one["entries_in_log"], 20000)
        self.assertEqual(one["files_with_filter"], 5)
        self.assertEqual(one["filter_policy"], "bloomfilter")
        self.assertAlmostEqual(one["filter_bits_per_entry"], 10, delta=1)
        self.assertAlmostEqual(one["our_bits_per_entry"], 13.5, delta=1)
        self.assertEqual(one["key_files"], 0)
        self.assertEqual(one["passes_through"], "")
        self.assertEqual(one["merge_operator"], "their.Merge")

    def test_foreign_merge_operator_is_reported_and_ignored(self):
        self.make("plain")
        self.assertIn('by "their.Merge", which this program does not have',
                      self.run_tamis("inspect").stdout)
        report = self.as_json("verify")
        self.assertEqual(report["missed"], 0)
        self.assertGreater(self.family(report, "default")["keys"], 50000)

    def test_families_that_would_pass_through_are_listed_with_their_reason(self):
        self.make("families")
        report = self.as_json("inspect")
        self.assertEqual(self.family(report, "plain")["passes_through"], "")
        for name, reason in (("reverse", "its comparator is not bytewise"),
                             ("theirs", "its comparator is not bytewise"),
                             ("vector", "its memtables are not watched")):
            self.assertEqual(self.family(report, name)["passes_through"], reason)
        self.assertEqual([one["name"] for one in report["families"] if not one["opened"]],
                         ["theirs"])
        self.assertIn('this program has no comparator "their.Order"',
                      self.run_tamis("inspect").stdout)
        self.run_tamis("build")
        verified = self.as_json("verify")
        self.assertEqual(self.family(verified, "plain")["keys"], 1000)
        self.assertNotIn("keys", self.family(verified, "reverse"))

    def test_files_that_cannot_be_read_back_make_their_family_pass_through(self):
        self.make("tables")
        report = self.as_json("inspect")
        reason = "a file of it cannot be counted"
        self.assertEqual(self.family(report, "table")["passes_through"], reason)
        self.assertEqual(self.family(report, "block\x1b[2J")["passes_through"], "")
        self.run_tamis("build")
        verified = self.as_json("verify")
        self.assertEqual(self.family(verified, "table")["passes_through"], reason)
        self.assertEqual(self.family(verified, "block\x1b[2J")["keys"], 1000)

    def test_names_of_families_do_not_reach_the_terminal_as_they_are(self):
        self.make("tables")
        for command in (("inspect",), ("verify",), ("bench", "--family", "block\x1b[2J")):
            shown = self.run_tamis(*command).stdout
            self.assertIn("block?[2J", shown)
            self.assertNotIn("\x1b", shown)

    def test_an_empty_filter_deviates_from_nothing(self):
        self.make("log")
        self.assertIn("(+0.0 standard deviations)", self.run_tamis("verify").stdout)
        self.assertEqual(self.as_json("verify")["families"][0]["deviations"], 0)

    def test_files_in_other_directories_are_named_as_a_cause(self):
        self.make("paths")
        self.assertIn("db_paths", self.run_tamis("inspect", expect=1).stderr)

    def test_a_refused_rate_is_told(self):
        self.make("log")
        for command in ("inspect", "verify"):
            refused = self.run_tamis(command, "--fpr", "1e-30", expect=1).stderr
            self.assertIn("1e-30", refused)

    def test_a_database_in_an_order_of_its_own_is_refused_by_name(self):
        self.make("foreign")
        for command in ("inspect", "build", "verify", "bench"):
            self.assertIn('ordered by comparator "their.Order"',
                          self.run_tamis(command, expect=1).stderr)

    def test_a_database_that_is_open_elsewhere_is_only_looked_at(self):
        self.make("plain")
        holder = subprocess.Popen([MAKE, "hold", self.db], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.assertEqual(holder.stdout.readline(), "open\n")
        # The holder's RocksDB goes on writing its own log.
        log = os.path.join(self.db, "LOG")
        before = self.everything()
        before.pop(log)
        for command in ("build", "remove", "verify", "bench"):
            self.assertIn("is open in process %d;" % holder.pid,
                          self.run_tamis(command, expect=1).stderr)
        self.assertEqual(self.as_json("inspect")["open_in_process"], holder.pid)
        after = self.everything()
        after.pop(log)
        self.assertEqual(after, before)
        holder.communicate("")
        self.assertEqual(holder.returncode, 0)
        self.run_tamis("build")

    def test_build_makes_what_is_missing_and_remove_leaves_what_is_not_ours(self):
        self.make("plain")
        before = self.everything()
        made = self.as_json("build")
        self.assertEqual((made["key_files"], made["made"]), (5, 5))
        self.assertEqual(self.as_json("build")["made"], 0)
        self.assertEqual(self.family(self.as_json("inspect"), "default")["key_files"], 5)
        files = sorted(os.listdir(self.keys))
        with open(os.path.join(self.keys, files[0]), "r+b") as file:
            file.seek(100)
            was = file.read(1)[0]  # hashes differ from run to run: any fixed byte may be there
            file.seek(100)
            file.write(bytes([was ^ 1]))
        os.remove(os.path.join(self.keys, files[1]))
        self.assertEqual(self.as_json("build")["made"], 2)
        self.assertEqual(self.as_json("verify")["missed"], 0)
        with open(os.path.join(self.keys, "theirs"), "w") as file:
            file.write("theirs")
        self.assertEqual(self.as_json("remove"), {"removed": 5, "directory_removed": False})
        self.assertEqual(os.listdir(self.keys), ["theirs"])
        os.remove(os.path.join(self.keys, "theirs"))
        self.assertEqual(self.as_json("remove"), {"removed": 0, "directory_removed": True})
        self.assertEqual(self.as_json("remove"), {"removed": 0, "directory_removed": True})
        self.assertEqual(self.everything(), before)

    def test_verify_finds_a_key_that_is_denied(self):
        self.make("plain")
        self.run_tamis("build")
        before = self.everything()
        report = self.as_json("verify", "--random", "300000")
        self.assertEqual(self.everything(), before)
        one = self.family(report, "default")
        self.assertLess(one["false_positive_rate"], one["expected_rate"] + 0.003)
        self.assertGreater(one["false_positive_rate"], one["expected_rate"] / 3)
        subprocess.run([MAKE, "forge", self.db], check=True)
        done = self.run_tamis("verify", expect=1)
        self.assertIn('missed: key "key-', done.stderr)
        self.assertIn("were denied", done.stderr)

    def test_damaged_file_is_reported_with_its_family(self):
        self.make("plain")
        sst = next(name for name in sorted(os.listdir(self.db)) if name.endswith(".sst"))
        with open(os.path.join(self.db, sst), "r+b") as file:
            file.seek(2000)
            file.write(b"damaged")
        self.assertIn('cannot read all files of column family "default"',
                      self.run_tamis("build", expect=1).stderr)

    def test_bench_compares_and_its_answers_agree(self):
        self.make("plain")
        report = self.as_json("bench", "--lookups", "2000", "--rounds", "3")
        self.assertEqual(report["sorted_runs"], 5)
        self.assertEqual(report["entries"], 5 * 20000)
        self.assertEqual([one["what"] for one in report["times"]],
                         ["keys that are not, Get", "keys that are not, MultiGet of 32",
                          "neighbours that are not, Get", "neighbours that are not, MultiGet of 32",
                          "keys that are there, Get", "keys that are there, MultiGet of 32"])
        absent, neighbours, present = report["blocks"]
        self.assertEqual(absent["found"], 0)
        self.assertEqual(neighbours["found"], 0)
        self.assertEqual(neighbours["lookups"], 2000)
        self.assertEqual(present["found"], present["lookups"])
        self.assertLess(absent["filtered"], absent["stock"] / 3)
        self.assertLess(neighbours["filtered"], neighbours["stock"] / 3)
        keys = os.path.join(self.directory.name, "keys")
        with open(keys, "w") as file:
            file.write("key-000000007919\nabsent\n")
        report = self.as_json("bench", "--keys", keys, "--rounds", "3")
        self.assertEqual(report["blocks"][0]["lookups"], 2)
        self.assertIn("stock : filtered",
                      self.run_tamis("bench", "--keys", keys, "--rounds", "3").stdout)
        self.assertIn("has no column family \"none\"",
                      self.run_tamis("bench", "--family", "none", expect=1).stderr)
        self.assertIn("cannot read the keys",
                      self.run_tamis("bench", "--keys", "/nowhere/keys", expect=1).stderr)

    def test_interrupt_ends_the_command_at_once(self):
        self.make("plain")
        process = subprocess.Popen([TAMIS, "lsm", "bench", self.db, "--rounds", "1000000000"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Until it has taken the signal for its own.
        while True:
            with open("/proc/%d/status" % process.pid) as status:
                caught = next(line for line in status if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1:
                break
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 130)
        self.assertIn("was stopped", error)

    def test_directory_without_a_database_is_an_error(self):
        os.mkdir(self.db)
        for command in ("inspect", "build", "remove", "verify", "bench"):
            self.assertIn("it has no file CURRENT", self.run_tamis(command, expect=1).stderr)
        self.assertEqual(os.listdir(self.db), [])


if __name__ == "__main__":
    unittest.main()
