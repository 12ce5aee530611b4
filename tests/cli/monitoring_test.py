#!/usr/bin/env python3
"""The dashboard and the alerts of tools/monitoring: promtool reads them, and each metric in them is one of `tamis serve`.

usage: monitoring_test.py TAMIS DIRECTORY
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

TAMIS, DIRECTORY = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]


def expressions():
    """Each with its place: of the panels of the dashboard, then of the alerts."""
    with open(os.path.join(DIRECTORY, "dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
    # promtool has read the YAML; an expression is a line, or the block after "|".
    with open(os.path.join(DIRECTORY, "alerts.yml"), encoding="utf-8") as file:
        for name, rest in re.findall(r"alert: (\w+)\n\s+expr: (.*?)\n\s+for:", file.read(), flags=re.DOTALL):
            yield name, rest.lstrip("|")


class MonitoringTest(unittest.TestCase):
    def promtool(self, *arguments, cwd=DIRECTORY, stdin=None):
        done = subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, input=stdin, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def metrics(self):
        """What a server with a search and a write behind it says."""
        with tempfile.TemporaryDirectory() as work:
            def tamis(*arguments):
                subprocess.run([TAMIS, "--store", "shop", *arguments], cwd=work, check=True, capture_output=True)
            tamis("sql", "CREATE TABLE t(a INTEGER PRIMARY KEY)")
            with subprocess.Popen([TAMIS, "--store", "shop", "serve", "--write", "--listen", "127.0.0.1:0"], cwd=work,
                                  stdout=subprocess.PIPE, text=True) as process:
                address = re.search(r"http://\S+:\d+", process.stdout.readline()).group(0)
                for statement in ("INSERT INTO t VALUES (1), (2)", "SELECT * FROM t"):
                    with urllib.request.urlopen(address + "/v1/sql", json.dumps({"sql": statement}).encode()) as answer:
                        answer.read()
                with urllib.request.urlopen(address + "/metrics") as answer:
                    text = answer.read().decode()
                process.terminate()
        return text

    def test_promtool_accepts_the_alerts_and_their_tests(self):
        self.promtool("check", "rules", "alerts.yml")
        self.promtool("test", "rules", "alerts_test.yml")

    def test_each_alert_has_a_test_and_a_line_in_the_page(self):
        with open(os.path.join(DIRECTORY, "alerts.yml"), encoding="utf-8") as file:
            alerts = re.findall(r"alert: (\w+)", file.read())
        self.assertGreater(len(alerts), 5)
        for name in ("alerts_test.yml", "../../docs/SERVER.md"):
            with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
                text = file.read()
            for alert in alerts:
                self.assertIn(alert, text, name)

    def test_the_dashboard_is_laid_out_without_overlaps_and_its_queries_parse(self):
        with open(os.path.join(DIRECTORY, "dashboard.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        places = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & places, panel["title"])
            places |= cells
            self.assertTrue(panel["description"].endswith("."), panel["title"])
        with tempfile.TemporaryDirectory() as work:
            with open(os.path.join(work, "rules.yml"), "w", encoding="utf-8") as file:
                rules = [{"record": "r%d" % i, "expr": text} for i, (_, text) in enumerate(expressions())]
                json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)  # JSON is YAML
            self.promtool("check", "rules", "rules.yml", cwd=work)

    def test_each_metric_that_is_asked_for_is_there(self):
        text = self.metrics()
        there = set(re.findall(r"^(\w+)[ {]", text, flags=re.MULTILINE))
        for place, expression in expressions():
            for name in re.findall(r"\btamis_\w+", expression):
                self.assertIn(name, there, place)
        self.assertIn('tamis_writes_total{outcome="acknowledged"} 2\n', text)
        self.assertRegex(text, r'tamis_coordinator_polls_total\{outcome="answered"\} [1-9]')
        self.assertIn("tamis_write_batch_seconds_count 1\n", text)


if __name__ == "__main__":
    unittest.main()
