#!/usr/bin/env python3
"""Planted faults: `tamis check` finds each, says what and where, and `tamis index rebuild` makes it good.

usage: check_test.py TAMIS PLANT_FAULT
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PLANT_FAULT = sys.argv.pop()
TAMIS = sys.argv.pop()
ROWS = 1500


class CheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.sound = os.path.join(cls.directory.name, "sound")
        cls.store = os.path.join(cls.directory.name, "store")
        rows = "".join(f"k{i:06},group {i // 5},{i * 7919 % 1009}\n" for i in range(ROWS))
        subprocess.run([TAMIS, "--store", cls.sound, "import", "t", "-", "--format", "csv",
                        "--key", "id", "--column", "n:int64", "--index", "grp", "--index", "n,grp"],
                       input="id,grp,n\n" + rows, text=True, check=True, capture_output=True)
        # Region 1 keeps what lies before the key.
        for key in "k001200", "k000800", "k000300":
            subprocess.run([TAMIS, "--store", cls.sound, "region", "split", "1", key], check=True,
                           capture_output=True)
        # Waits until the entries of all daughters of splits stand.
        subprocess.run([TAMIS, "--store", cls.sound, "check", "t"], check=True, capture_output=True)
        # A daughter's filter may be too large for it, and is then counted again when the store is opened again, which
        # would mend one that a test has damaged: all filters are of their regions' size from here on.
        subprocess.run([TAMIS, "--store", cls.sound, "index", "rebuild", "t"], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self.sound, self.store)

    def run_tamis(self, *arguments, expect=0):
        done = subprocess.run([TAMIS, "--store", self.store, *arguments], text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def plant(self, fault, index="grp"):
        done = subprocess.run([PLANT_FAULT, self.store, "t", index, fault], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    # The index of grp does not have n, so that the rows themselves are read.
    def find(self, column, value, shown="id, n"):
        rows = json.loads(self.run_tamis("sql", "--format", "json",
                                         f"SELECT {shown} FROM t WHERE {column} = {value}"))
        return [row["id"] for row in rows]

    def assert_clean(self, rows=ROWS):
        report = self.run_tamis("check", "t")
        self.assertIn(f"compared {rows} rows", report)
        self.assertIn(f"{2 * rows} index entries", report)
        self.assertIn("missing entries 0, foreign entries 0, missing in filters 0", report)

    # The row that suffers, and its value of grp.
    def damage(self, fault, count):
        key = self.plant(fault)
        report = self.run_tamis("check", "t", expect=1)
        self.assertIn(count, report)
        self.assertIn('index "grp"', report)
        self.assertRegex(report, "region [0-9]+:")
        self.assertIn("tamis index rebuild t", report)
        return key, int(key[1:]) // 5, report

    def test_a_sound_store_is_clean(self):
        self.assertEqual(json.loads(self.run_tamis(
            "sql", "--format", "json", "SELECT count(*) AS n FROM tamis_regions('t')"))[0]["n"], 4)
        self.assert_clean()

    def test_missing_entry_is_found_and_added(self):
        key, group, report = self.damage("missing-entry", "missing entries 1, foreign entries 0")
        self.assertIn(f"lacks the entry of row {key}", report)
        self.assertNotIn(key, self.find("grp", f"'group {group}'"))
        self.run_tamis("index", "rebuild", "t", "grp")
        self.assertIn(key, self.find("grp", f"'group {group}'"))
        self.assert_clean()

    def test_foreign_entry_is_found_and_removed(self):
        key, group, report = self.damage("foreign-entry", "missing entries 0, foreign entries 1")
        self.assertIn(f"row {key}, which has another value", report)
        self.assertIn(key, self.find("grp", f"'group {group}'"))
        self.run_tamis("index", "rebuild", "t", "grp")
        self.assert_clean()

    def test_unreadable_entry_is_found(self):
        _, _, report = self.damage("unreadable-entry", "missing entries 0, foreign entries 1")
        self.assertIn("cannot be read", report)
        self.run_tamis("index", "rebuild", "t", "grp")
        self.assert_clean()

    def test_waiting_for_an_index_with_an_unreadable_entry_ends_and_says_why(self):
        self.plant("unreadable-entry")
        why = ("of 4 regions ready; region [0-9]+ on server rs[0-9]+ cannot complete it: an index entry cannot be "
               "read, so no filter is made .tamis index rebuild makes the index anew.: ")
        waited = self.run_tamis("index", "wait", "t", "grp", expect=1)
        self.assertRegex(waited, 'cannot wait for index "grp" of table "t" any longer, [0-3] ' + why)
        self.run_tamis("index", "wait", "t", "n_grp")
        self.run_tamis("index", "rebuild", "t", "grp")
        self.assertIn("t.grp: ready", self.run_tamis("index", "wait", "t"))

    def test_waiting_for_an_index_says_which_region_fails_to_build_it(self):
        self.plant("unreadable-row")
        self.run_tamis("index", "create", "t", "n", "n")
        with subprocess.Popen([TAMIS, "--store", self.store, "index", "wait", "t", "n"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
            line = waiting.stderr.readline()
            waiting.send_signal(signal.SIGINT)
            _, rest = waiting.communicate(timeout=120)
        why = "of 4 regions ready; region [0-9]+ on server rs[0-9]+ failed to complete it .[0-9]+ attempts?.: "
        self.assertRegex(line, '^tamis: waiting for index "n" of table "t", [0-3] ' + why)
        self.assertNotIn("tamis: waiting", rest)
        self.assertEqual(waiting.returncode, -signal.SIGINT)

    def test_lost_row_is_found(self):
        key, group, report = self.damage("lost-row", "missing entries 0, foreign entries 2")
        self.assertIn(f"row {key}, which is not there", report)
        self.assertIn('index "n_grp"', report)
        self.assertNotIn(key, self.find("grp", f"'group {group}'"))
        # The entry is believed where it has all that is asked for.
        self.assertIn(key, self.find("grp", f"'group {group}'", shown="id"))
        self.run_tamis("index", "rebuild", "t", "grp")
        self.assertNotIn(key, self.find("grp", f"'group {group}'", shown="id"))
        self.assertIn("foreign entries 1", self.run_tamis("check", "t", expect=1))
        self.run_tamis("index", "rebuild", "t")
        self.assert_clean(ROWS - 1)

    def test_value_missing_in_a_filter_is_found(self):
        key = self.plant("filter-bit")
        group = int(key[1:]) // 5
        report = self.run_tamis("check", "t", expect=1)
        self.assertRegex(report, "missing entries 0, foreign entries 0, missing in filters [1-9]")
        self.assertIn(f'the filter of index "grp" says no to row {key}', report)
        # Filters as they were saved, the wrong one too: the region is not asked.
        self.assertNotIn(key, self.explain_and_find(group))
        self.run_tamis("index", "rebuild", "t")
        self.assertIn(key, self.explain_and_find(group))
        self.assert_clean()

    # With --explain the program waits until filters are known.
    def explain_and_find(self, group):
        return self.run_tamis("sql", "--explain", "--format", "csv",
                              f"SELECT id FROM t WHERE grp = 'group {group}'")

    def test_saved_filters_are_not_believed_after_another_write(self):
        key = self.plant("filter-bit")
        self.plant("other-write")
        self.assertIn(key, self.find("grp", f"'group {int(key[1:]) // 5}'"))
        self.assert_clean()

    def test_missing_table_or_index_cannot_be_checked_or_rebuilt(self):
        self.assertIn("u", self.run_tamis("check", "u", expect=1))
        self.assertIn("section", self.run_tamis("index", "rebuild", "t", "section", expect=1))


unittest.main()
