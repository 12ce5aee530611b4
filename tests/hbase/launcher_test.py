"""tools/hbase-local starts a real HBase, kills, cuts off and restarts its parts, and touches nothing else.

usage: launcher_test.py HBASE_LOCAL DIRECTORY
"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

TOOL, DIRECTORY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*words, directory=DIRECTORY):
    return subprocess.run([TOOL, "--directory", directory, *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)


def ask_registry(ip, port, seconds=10):
    """Returns the cluster's id, with which a server answers the preamble "Regist". Raises OSError if it does not."""
    with socket.create_connection((ip, port), timeout=seconds) as there:
        there.settimeout(seconds)
        there.sendall(b"Regist")
        with there.makefile("rb") as stream:
            size, = struct.unpack(">I", (stream.read(4) or b"\0\0\0\0").rjust(4, b"\0"))
            frame = stream.read(size)
    if not frame:
        raise ConnectionError("closed without an answer")
    return frame[-36:].decode()


class LauncherTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run("clean")
        cls.addClassCleanup(run, "clean")

    def expect(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refused(self, *words):
        done = run(*words)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def status(self):
        return {row["role"]: row for row in json.loads(self.expect("status", "--json"))}

    def states(self):
        return {role: row["state"] for role, row in self.status().items()}

    def test_life_cycle(self):
        said = self.expect("start", "2", "--hdfs", "--cuts")
        roles = ["wires", "namenode", "datanode", "zk", "master", "rs1", "rs2"]
        self.assertEqual(self.states(), dict.fromkeys(roles, "up"))
        ports = {role: row["port"] for role, row in self.status().items()}
        self.assertEqual(self.expect("addresses"), "localhost:%d,localhost:%d,localhost:%d\n"
                         % (ports["master"], ports["rs1"], ports["rs2"]))
        self.assertIn(self.expect("addresses").strip(), said)
        cluster = ask_registry("127.0.0.1", ports["rs1"])

        with self.subTest("running servers are not started again"):
            pids = {role: row["pid"] for role, row in self.status().items()}
            self.expect("start")
            self.assertEqual(pids, {role: row["pid"] for role, row in self.status().items()})

        with self.subTest("kill and start one server"):
            self.expect("kill", "rs2")
            self.assertEqual(self.states()["rs2"], "down")
            with self.assertRaises(OSError):
                ask_registry("127.0.0.1", ports["rs2"])
            self.assertIn("rs2 does not run", self.refused("pause", "rs2"))
            self.expect("start", "rs2")
            self.assertEqual(ask_registry("127.0.0.1", ports["rs2"]), cluster)

        with self.subTest("pause and resume"):
            self.expect("pause", "rs1")
            self.assertEqual(self.states()["rs1"], "paused")
            with self.assertRaises(OSError):
                ask_registry("127.0.0.1", ports["rs1"], seconds=0.5)
            self.expect("resume", "rs1")
            self.assertEqual(ask_registry("127.0.0.1", ports["rs1"]), cluster)

        with self.subTest("cut and heal: the master loses its connection, clients do not"):
            self.assertEqual(ask_registry("127.0.0.2", ports["rs1"]), cluster)
            self.expect("cut", "master", "rs1")
            with self.assertRaises(ConnectionError):
                ask_registry("127.0.0.2", ports["rs1"])
            self.assertEqual(ask_registry("127.0.0.1", ports["rs1"]), cluster)
            self.assertEqual(ask_registry("127.0.0.2", ports["rs2"]), cluster)
            self.expect("cut", "master", "rs1", "--silent")
            with self.assertRaises(TimeoutError):
                ask_registry("127.0.0.2", ports["rs1"], seconds=0.5)
            self.expect("heal", "rs1", "master")
            self.assertEqual(ask_registry("127.0.0.2", ports["rs1"]), cluster)
            self.assertIn("nothing to cut between rs1 and rs2", self.refused("cut", "rs1", "rs2"))

        with self.subTest("a pid reused by another process is left alone"):
            with subprocess.Popen(["sleep", "1000"]) as other:
                path = os.path.join(DIRECTORY, "state.json")
                with open(path, encoding="utf-8") as file:
                    state = json.load(file)
                self.expect("kill", "rs2")
                state["running"]["rs2"] = [other.pid, 1]
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(state, file)
                self.assertEqual(self.states()["rs2"], "down")
                self.assertIn("rs2 does not run", self.refused("kill", "rs2"))
                self.expect("stop")
                self.assertIsNone(other.poll())
                other.kill()
            self.assertEqual(self.states(), dict.fromkeys(roles, "down"))

        with self.subTest("the second start finds the data of the first"):
            self.expect("start")
            ports = {role: row["port"] for role, row in self.status().items()}
            self.assertEqual(ask_registry("127.0.0.1", ports["rs2"]), cluster)

        with self.subTest("clean leaves nothing"):
            self.expect("clean")
            self.assertEqual(sorted(os.listdir(DIRECTORY)), ["classpath.json", "lock"])

    def test_mistakes_are_explained(self):
        self.assertIn("it takes 1 to 64", self.refused("start", "0"))
        self.assertIn("not: 2 rs1", self.refused("start", "2", "rs1"))
        self.assertIn("there is no rs7", self.refused("kill", "rs7"))
        self.assertIn("a version is like 2.6.1", self.refused("start", "--version", "newest"))
        self.assertIn("-D NAME=VALUE", self.refused("start", "-D", "nonsense"))
        self.assertIn("no /nowhere.jar", self.refused("start", "--jar", "/nowhere.jar"))
        self.assertIn("one of authentication, integrity, privacy",
                      self.refused("start", "--kerberos", "privacy,secrecy"))
        self.assertIn("does not go with --cuts", self.refused("start", "--kerberos", "privacy", "--cuts"))
        self.assertIn("without --kerberos", self.refused("kadmin", "listprincs"))
        self.assertIn("without --cuts", self.refused("cut", "master", "rs1"))

    def test_version_is_kept(self):
        directory = DIRECTORY + ".version"
        self.addCleanup(run, "clean", directory=directory)
        done = run("start", "zk", "--version", "2.6.1", directory=directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        jars = {os.path.basename(path) for path in run("classpath", directory=directory).stdout.strip().split(":")}
        self.assertIn("hbase-server-2.6.1-hadoop3.jar", jars)
        self.assertNotIn("hbase-server-2.6.4-hadoop3.jar", jars)

    def test_foreign_directory_is_left_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            kept = os.path.join(directory, "log", "kept")
            os.mkdir(os.path.dirname(kept))
            with open(kept, "w", encoding="utf-8"):
                pass
            for words in (["clean"], ["start", "1"]):
                done = run(*words, directory=directory)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn("give another --directory", done.stderr)
            self.assertTrue(os.path.exists(kept))

    def test_clean_before_the_first_start(self):
        with tempfile.TemporaryDirectory() as parent:
            directory = os.path.join(parent, "cluster")
            self.assertEqual(run("clean", directory=directory).returncode, 0)
            self.assertNotEqual(run("start", "--jar", "/nowhere.jar", directory=directory).returncode, 0)
            done = run("clean", directory=directory)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(directory), ["lock"])

    def test_failed_start_names_the_log(self):
        directory = DIRECTORY + ".failing"
        done = run("start", "1", "-D", "hbase.zookeeper.property.dataDir=/dev/null/zk", directory=directory)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("zk ended with status", done.stderr)
        self.assertIn(os.path.join(directory, "log", "zk.log"), done.stderr)
        self.assertIn("/dev/null/zk", done.stderr)
        run("clean", directory=directory)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
