"""docs/BENCHMARKS.md is what its results give, and results are kept as benchmarks print them:
benchmarks_page_test.py PATH_OF_PROJECT"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop())
PAGE = os.path.join(ROOT, "bench", "page.py")
PEERS = os.path.join(ROOT, "bench", "peers.md")
sys.path.insert(0, os.path.dirname(PAGE))
import figures  # noqa: E402  pylint: disable=wrong-import-position
import page  # noqa: E402  pylint: disable=wrong-import-position


def run(*arguments, text=""):
    return subprocess.run([sys.executable, PAGE, *arguments], input=text, capture_output=True, text=True, check=False)


class BenchmarksPageTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.results = os.path.join(directory.name, "results.json")
        self.page = os.path.join(directory.name, "page.md")

    def record(self, text, *command):
        return run("record", self.results, "abc123", "2026-01-02", "0.10", *command, text=text)

    def test_committed_page_is_what_the_committed_results_give(self):
        done = run("check", os.path.join(ROOT, "bench", "results.json"), PEERS, os.path.join(ROOT, "docs", "BENCHMARKS.md"),
                   os.path.join(ROOT, "bench", "summary.md"), os.path.join(ROOT, "README.md"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_summary_has_the_ratios_of_its_figures(self):
        self.record("figure: GET, 10 keys | SET | 1 us; 2 us | 16.9x the keys a second | \n", "redis_benchmark")
        summary, readme = self.page + ".summary", self.page + ".readme"
        page.keep(summary, "| GET | {redis_benchmark: GET, 10 keys} |\n")
        page.keep(readme, "before\n" + "old\n".join(page.MARKS) + "after\n")
        done = run("write", self.results, PEERS, self.page, summary, readme)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(page.read(readme), "before\n" + "| GET | 16.9x |\n".join(page.MARKS) + "after\n")
        page.keep(summary, "{redis_benchmark: GET, 11 keys}\n")
        done = run("write", self.results, PEERS, self.page, summary, readme)  # a benchmark that was not measured yet
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("stays as it is", done.stderr)
        self.assertIn("16.9x", page.read(readme))
        done = run("check", self.results, PEERS, self.page, summary, readme)
        self.assertIn('0 figures of redis_benchmark are called "GET, 11 keys"', done.stderr)

    def test_figures_of_a_log_replace_those_of_the_same_command(self):
        self.record("figure: old | a | b | 1x | \n", "redis_benchmark")
        done = self.record("100 keys\nfigure: GET, 10 keys | SET | 1 us; 2 us | 0.50x | <= 0.6x\nend\n", "redis_benchmark")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.record("figure: f | | | 1x | \n", "filter_benchmark", "1000", "blocked 1 %")
        with open(self.results, encoding="utf-8") as file:
            results = json.load(file)
        self.assertEqual(sorted(results), ["filter_benchmark 1000 'blocked 1 %'", "redis_benchmark"])
        self.assertEqual(results["redis_benchmark"]["figures"],
                         [{"work": "GET, 10 keys", "beside": "SET", "now": "1 us; 2 us", "ratio": "0.50x", "goal": "<= 0.6x"}])

        self.assertEqual(run("write", self.results, PEERS, self.page).returncode, 0)
        with open(self.page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("\n| GET, 10 keys | SET | 1 us; 2 us | 0.50x | <= 0.6x | a |\n", text)
        self.assertIn("`bench/run redis_benchmark`, commit abc123, 2026-01-02", text)
        self.assertEqual(run("check", self.results, PEERS, self.page).returncode, 0)
        with open(self.page, "a", encoding="utf-8") as file:
            file.write("by hand\n")
        self.assertNotEqual(run("check", self.results, PEERS, self.page).returncode, 0)

    def test_output_without_figures_and_damaged_figures_are_refused(self):
        self.assertIn("no figure", self.record("100 keys\n", "redis_benchmark").stderr)
        self.assertIn("not a figure", self.record("figure: a | b\n", "redis_benchmark").stderr)
        self.assertFalse(os.path.exists(self.results))
        self.assertRaises(AssertionError, figures.report, "a | b")

    def test_benchmark_that_no_section_knows_is_refused(self):
        self.record("figure: a | | | 1x | \n", "unknown_benchmark")
        self.assertIn("unknown_benchmark", run("write", self.results, PEERS, self.page).stderr)

    def test_missed_goals_are_found(self):
        for ratio, goal, missed in (("1.13x", "<= 1.6x", False), ("1.61x", "<= 1.6x", True), ("3x", ">= 4x", True),
                                    ("1/32", "<= 1/25", False), ("1/4.8", "<= 1/5", True), (".4x", "<= 0.4x", False),
                                    ("5.38", "", False), ("40", "<= 10", True), ("0.98 times", ">= 0.97x", False)):
            self.assertEqual(page.missed({"ratio": ratio, "goal": goal}), missed, (ratio, goal))


if __name__ == "__main__":
    unittest.main()
