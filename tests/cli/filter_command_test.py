"""tamis filter as people use it: filter_command_test.py PATH_OF_TAMIS"""

import os
import random
import re
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

TAMIS = os.path.abspath(sys.argv.pop(1))
TYPES = ["blocked", "bloom", "scalable-bloom", "blocked-quotient", "cuckoo", "quotient", "d-left",
         "blocked-counting", "projected", "counting", "dynamic-count", "split-counting", "scalable",
         "binary-fuse"]
ERASING = [name for name in TYPES if name not in ("blocked", "bloom", "scalable-bloom",
                                                       "binary-fuse")]


def lines(stream, count):
    return ["%s-%d" % (stream, i) for i in range(count)]


def text(values, end="\n"):
    return "".join(value + end for value in values).encode()


class FilterCommandTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_tamis(self, *arguments, stdin=b"", expect=0):
        done = subprocess.run([TAMIS, "filter", *arguments], input=stdin, capture_output=True,
                              cwd=self.directory.name)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done

    def build(self, name, values, *options):
        self.run_tamis("build", "-o", name, *options, stdin=text(values))

    def query(self, name, values, *options, expect=0):
        out = self.run_tamis("query", name, *options, stdin=text(values), expect=expect).stdout
        return out.decode().splitlines()

    def test_every_type_prints_what_was_built_and_little_else(self):
        held = lines("held", 5000)
        for kind in TYPES:
            with self.subTest(kind):
                self.build("f", held, "--type", kind)
                self.assertEqual(self.query("f", held), held)
                wrong = self.query("f", lines("absent", 5000))
                self.assertLess(len(wrong), 5000 * 0.02)
                self.assertGreater(len(wrong), 0)
                self.run_tamis("verify", "f", "--against", "-", stdin=text(held))

    def test_invert_and_count_and_exit_status_are_greps(self):
        self.build("f", ["a", "b"], "--fpr", "1e-6")
        self.assertEqual(self.query("f", ["a", "x", "b"], "--invert"), ["x"])
        self.assertEqual(self.query("f", ["a", "x", "b"], "--count"), ["2"])
        self.assertEqual(self.query("f", ["x"], expect=1), [])
        self.assertEqual(self.query("f", ["x"], "-c", expect=1), ["0"])
        self.assertEqual(self.query("f", [], expect=1), [])
        self.run_tamis("query", "absent", expect=2)
        self.run_tamis("query", expect=2)

    def test_lines_may_be_empty_long_unfinished_or_end_with_zero(self):
        long = "x" * 1_000_000
        values = ["", "a b", long, "\u00e9"]
        self.build("f", values, "--fpr", "1e-6")
        self.assertEqual(self.query("f", values), values)
        out = self.run_tamis("query", "f", stdin=("no\n" + long).encode()).stdout
        self.assertEqual(out, (long + "\n").encode())
        out = self.run_tamis("query", "-0", "f", stdin=text(["a b", "x\ny", ""], "\0")).stdout
        self.assertEqual(out, text(["a b", ""], "\0"))

    def test_files_and_input_are_read_in_order(self):
        for name in "pq":
            with open(self.path(name), "wb") as file:
                file.write(text([name]))
        self.run_tamis("build", "p", "-", "q", "-o", "f", stdin=b"r\n")
        self.assertEqual(self.query("f", ["q", "r", "p"]), ["q", "r", "p"])

    def test_add_and_remove_change_the_file_and_nothing_is_lost(self):
        held = lines("held", 2000)
        for kind in ERASING:
            with self.subTest(kind):
                self.build("f", held[:1000], "--type", kind, "--capacity", "2000", "--fpr", "1e-4")
                self.run_tamis("add", "f", stdin=text(held[1000:]))
                self.assertEqual(self.query("f", held), held)
                self.run_tamis("remove", "f", stdin=text(held[:1000]))
                self.assertEqual(self.query("f", held[1000:]), held[1000:])
                self.assertLess(len(self.query("f", held[:1000] + ["held-1500"])), 20)

    def test_a_filter_without_room_says_so_and_stays(self):
        self.build("f", ["a"], "--type", "cuckoo")
        before = self.read("f")
        done = self.run_tamis("add", "f", stdin=text(lines("more", 1000)), expect=2)
        self.assertIn("the filter is full", done.stderr.decode())
        self.assertEqual(self.read("f"), before)
        self.assertEqual(os.listdir(self.directory.name), ["f"])

    def test_more_lines_than_one_filter_holds_are_refused_at_once(self):
        held = text(lines("held", 1000))
        for command in (["build", "-o", "g", "--capacity", "2147483649"], ["build", "-o", "g", "--capacity", "2147483649", "--static"],
                        ["size", "--capacity", "9000000000"]):
            done = self.run_tamis(*command, stdin=held, expect=2).stderr.decode()
            self.assertIn("it must be from 1 to 2147483648 (2^31); divide the keys among several filters", done)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_lines_without_end_are_refused_where_they_are_too_many(self):
        endless = subprocess.Popen(["seq", "1", "inf"], stdout=subprocess.PIPE)
        done = subprocess.run([TAMIS, "filter", "build", "--capacity", "1000", "-o", self.path("f"), "-"],
                              stdin=endless.stdout, stderr=subprocess.PIPE, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        endless.stdout.close()
        endless.wait()
        self.assertEqual(done.returncode, 2)
        self.assertIn("distinct lines are more than the capacity 1000; leave --capacity out or raise it", done.stderr.decode())
        # Repeated lines are none of these, however many.
        self.build("f", ["a", "b"] * 2_000_000, "--capacity", "1000")

    def test_add_beyond_the_capacity_says_what_the_filter_is_worth(self):
        self.build("f", lines("held", 1000), "--capacity", "1000")
        done = self.run_tamis("add", "f", stdin=text(lines("few", 10))).stderr.decode()
        self.assertIn("10 lines added, 1010 in all", done)
        self.assertNotIn("build a larger one", done)
        done = self.run_tamis("add", "f", stdin=text(lines("many", 9000))).stderr.decode()
        self.assertIn("9000 lines added, 10010 in all", done)
        self.assertIn('"f" holds more lines than it was made for', done)
        self.assertIn("build a larger one", done)

    def test_type_without_erasure_says_how_to_get_one_that_erases(self):
        self.build("f", ["a"])
        done = self.run_tamis("remove", "f", stdin=b"a\n", expect=2)
        self.assertIn("--erase", done.stderr.decode())
        self.build("f", ["a"], "--erase")
        self.run_tamis("remove", "f", stdin=b"a\n")
        self.assertEqual(self.query("f", ["a"], expect=1), [])

    def test_a_static_filter_is_smallest_and_never_changed(self):
        held = lines("held", 100_000)
        sizes = {}
        for options in ([], ["--type", "bloom"], ["--static"]):
            self.build("f", held, "--fpr", "0.001", *options)
            self.assertEqual(self.query("f", held), held)
            sizes[" ".join(options)] = os.path.getsize(self.path("f"))
        self.assertEqual(min(sizes, key=sizes.get), "--static", sizes)
        before = self.read("f")
        for command, word in (("add", "never changed"), ("remove", "does not erase")):
            done = self.run_tamis(command, "f", stdin=b"more\n", expect=2)
            self.assertIn(word, done.stderr.decode())
        done = self.run_tamis("merge", "f", "f", "-o", "g", expect=2)
        self.assertIn("build one of the keys of both", done.stderr.decode())
        self.assertEqual(self.read("f"), before)
        self.run_tamis("build", "-o", "g", "--static", "--type", "bloom", expect=2)
        out = self.run_tamis("size", "--capacity", "1000", "--static").stdout.decode()
        self.assertIn("take binary-fuse", out)

    def test_merge_holds_both(self):
        options = ["--type", "cuckoo", "--capacity", "1000", "--seed", "7"]
        self.build("a", lines("a", 400), *options)
        self.build("b", lines("b", 400), *options)
        self.run_tamis("merge", "a", "b", "-o", "c")
        both = lines("a", 400) + lines("b", 400)
        self.assertEqual(self.query("c", both), both)
        self.build("d", ["d"])
        done = self.run_tamis("merge", "a", "d", "-o", "e", expect=2)
        self.assertIn("cannot merge a cuckoo filter with a blocked Bloom filter",
                      done.stderr.decode())

    def test_damaged_and_foreign_files_say_what_they_are(self):
        self.build("f", lines("x", 1000))
        whole = self.read("f")
        for damage, message in [(whole[:-8], "bytes of payload, there are"),
                                (whole[:50], "cut short"),
                                (whole[:500] + b"?" + whole[501:], "checksum"),
                                (b"\x89PNG....", "do not begin as a tamis filter"), (b"", "begin")]:
            with open(self.path("g"), "wb") as file:
                file.write(damage)
            for command in (["query", "g"], ["info", "g"], ["add", "g"],
                            ["verify", "g", "--against", "f"]):
                done = self.run_tamis(*command, stdin=b"x\n", expect=2)
                self.assertIn(message, done.stderr.decode())
                self.assertIn('"g"', done.stderr.decode())

    def test_verify_prints_what_is_missing(self):
        self.build("f", ["a"], "--fpr", "1e-6")
        done = self.run_tamis("verify", "f", "--against", "-", stdin=b"a\nb\n", expect=1)
        self.assertEqual(done.stdout, b"b\n")

    def test_dedupe_passes_each_line_once(self):
        values = lines("x", 3000) * 3
        random.Random(1).shuffle(values)
        first = list(dict.fromkeys(values))
        out = self.run_tamis("dedupe", "--fpr", "1e-6", stdin=text(values)).stdout
        self.assertEqual(out, text(first))

    def test_dedupe_with_a_window_forgets_what_is_long_gone(self):
        values = lines("x", 1000) + lines("x", 1000)
        out = self.run_tamis("dedupe", "--window", "100", "--fpr", "1e-6", stdin=text(values)).stdout
        self.assertEqual(out, text(values))
        near = [line for line in lines("y", 1000) for _ in range(2)]
        out = self.run_tamis("dedupe", "--window", "100", "--fpr", "1e-6", stdin=text(near)).stdout
        self.assertEqual(out, text(lines("y", 1000)))

    def test_size_recommends_and_info_tells(self):
        out = self.run_tamis("size", "--capacity", "1000000").stdout.decode()
        self.assertIn("take blocked", out)
        out = self.run_tamis("size", "--capacity", "1000000", "--fpr", "0.001", "--erase").stdout
        self.assertIn("take cuckoo", out.decode())
        # Alternatives are shown, and that a type in steps has a lower rate than asked for.
        self.assertRegex(out.decode(), r"\n  blocked-quotient would rank first, but takes \d+ % more\n")
        self.assertRegex(out.decode(), r"\nblocked-quotient +25\.60 +3\.05 MiB +1e-05 +yes")
        out = self.run_tamis("size", "--capacity", "1000000", "--count").stdout.decode()
        self.assertIn("take blocked-quotient", out)
        self.build("f", lines("x", 1000), "--seed", "0x10")
        out = self.run_tamis("info", "f").stdout.decode()
        self.assertRegex(out, r"type +blocked Bloom filter")
        self.assertRegex(out, r"keys +1000\n")
        self.assertRegex(out, r"seed +16\n")

    def test_lines_that_layers_cannot_tell_apart_stay_and_are_counted(self):
        held = lines("held", 300)
        self.build("f", held[:20], "--type", "scalable", "--fpr", "0.3")
        self.run_tamis("add", "f", stdin=text(held[20:]))
        done = self.run_tamis("remove", "f", stdin=text(held))
        removed, absent, stuck = map(int, re.fullmatch(
            r"f: (\d+) lines removed, (\d+) were not in it\n"
            r"f: (\d+) lines stay in it: .* build it again from the lines that it must hold\n",
            done.stderr.decode()).groups())
        self.assertEqual(absent, 0)
        self.assertEqual(removed + stuck, len(held))
        self.assertGreater(stuck, 0)

    def test_links_are_followed_and_devices_are_refused(self):
        os.mkdir(self.path("data"))
        os.symlink("data/1", self.path("current"))
        self.build("current", ["a"], "--erase", "--capacity", "100")
        self.run_tamis("add", "current", stdin=b"b\n")
        self.assertEqual(self.query("data/1", ["a", "b"]), ["a", "b"])
        self.assertTrue(os.path.islink(self.path("current")))
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["current", "data"])
        for name, word in (("/dev/null", "a device"), ("data", "a directory")):
            done = self.run_tamis("build", "-o", name, stdin=b"a\n", expect=2)
            self.assertIn(word + ", not a regular file", done.stderr.decode())
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_filter_goes_to_the_standard_output(self):
        self.build("a", ["x", "y"])
        done = self.run_tamis("build", "-o", "-", stdin=text(["x", "y"]))
        self.assertEqual(done.stdout, self.read("a"))
        self.assertEqual(self.run_tamis("merge", "a", "a", "-o", "-").stdout[:8], b"tamisflt")
        self.assertEqual(os.listdir(self.directory.name), ["a"])

    def test_an_output_that_is_full_says_so_and_is_trouble(self):
        self.build("f", ["a"])
        for command in (["query", "f"], ["query", "-c", "f"], ["info", "f"], ["dedupe"],
                        ["size", "--capacity", "1000"], ["build", "-o", "-"]):
            with self.subTest(command), open("/dev/full", "wb") as full:
                done = subprocess.run([TAMIS, "filter", *command], input=b"a\n", stdout=full,
                                      stderr=subprocess.PIPE, cwd=self.directory.name)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count(b"tamis: "), 1, done.stderr)
                self.assertIn(b"standard output: No space left on device", done.stderr)

    def test_too_little_memory_is_trouble_and_not_an_answer(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))

        try:  # not under a sanitizer
            subprocess.run([TAMIS, "--version"], preexec_fn=limit, capture_output=True, check=True)
        except subprocess.CalledProcessError:
            self.skipTest("the program needs more to begin with")
        self.build("f", ["a"])
        with open("/dev/zero", "rb") as endless:  # a line without an end
            done = subprocess.run([TAMIS, "filter", "query", "f"], stdin=endless,
                                  capture_output=True, preexec_fn=limit, cwd=self.directory.name)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"not enough memory", done.stderr)

    def test_a_rate_is_checked_before_it_is_used(self):
        for rate in ("0", "nan", "-1", "1e-12"):
            for options in ([], ["--erase"], ["--static"], ["--type", "cuckoo"]):
                done = self.run_tamis("build", "-o", "f", "--fpr", rate, *options, stdin=b"a\n",
                                      expect=2)
                self.assertIn("cannot make a filter: fpr is", done.stderr.decode())
            self.run_tamis("size", "--capacity", "10", "--fpr", rate, expect=2)

    def test_recommended_type_keeps_the_rate(self):
        for rate in ("0.3", "0.01", "0.001", "1e-5", "1e-7", "2e-9", "1e-9"):
            for need in ("--erase", "--static", "--count", "-q"):
                with self.subTest(rate=rate, need=need):
                    needs = [] if need == "-q" else [need]
                    out = self.run_tamis("size", "--capacity", "1000", "--fpr", rate, *needs)
                    table, advice = out.stdout.decode().split("\n\n")
                    rates = {line.split()[0]: float(line.split()[4])
                             for line in table.splitlines()[1:]}
                    taken = re.search("take ([a-z-]+):", advice).group(1)
                    self.assertLessEqual(rates[taken], 1.05 * float(rate))
                    for line in table.splitlines()[1:]:
                        above = rates[line.split()[0]] > 1.05 * float(rate)
                        self.assertEqual("does not keep the rate" in line, above, line)

    def test_bad_options_are_refused(self):
        for options in (["--fpr", "2"], ["--type", "xor"], ["--seed", "abc"], ["--seed", "-1"],
                        ["--type", "bloom", "--erase"], ["--capacity", "1"]):
            self.run_tamis("build", "-o", "f", *options, stdin=b"a\nb\n", expect=2)
            self.assertEqual(os.listdir(self.directory.name), [])

    def test_random_seeds_differ(self):
        for name in "ab":
            self.build(name, ["x"], "--seed", "random")
        self.assertNotEqual(self.read("a"), self.read("b"))


if __name__ == "__main__":
    unittest.main()
