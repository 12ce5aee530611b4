"""The jar on a real cluster: schema changes; plain clients during splits, merges and moves, with a polling coordinator;
users with and without rights; servers that have lost their regions without noticing; many writers on few handlers.

usage: coprocessor_on_hbase_test.py HBASE_LOCAL COPROCESSOR DIRECTORY [SECONDS [SEED]]

COPROCESSOR is the module's directory, packaged. It prints its seed. $TAMIS_HBASE_VERSION names another version of HBase.
"""

import glob
import os
import random
import subprocess
import sys
import tempfile
import unittest

TOOL, MODULE, DIRECTORY = (os.path.abspath(path) for path in sys.argv[1:4])
SECONDS = sys.argv[4] if len(sys.argv) > 4 else "40"
SEED = sys.argv[5] if len(sys.argv) > 5 else str(random.randrange(1 << 31))
VERSION = os.environ.get("TAMIS_HBASE_VERSION", "")
TARGET = os.path.join(MODULE, "server-hbase3" if VERSION.startswith("3.") else "server", "target")
JAR, = glob.glob(os.path.join(TARGET, "tamis-coprocessor*-[0-9]*.jar"))
CLASSES = os.path.join(TARGET, "test-classes")
OPENED = ["java.io", "java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref", "java.lang.reflect", "java.util",
          "java.util.concurrent", "java.net"]
GUARD = "tamis.hbase.SchemaGuard"
ROW_MISSED = 3  # the exit code of a drive that missed a row, and of no other failure
FAILED = 2
# Time beyond SECONDS for a drive that waits in vain.
PATIENCE = 900
ACCESS = "org.apache.hadoop.hbase.security.access.AccessController"


def local(*words):
    if VERSION and words[0] == "start":
        words += ("--version", VERSION)
    done = subprocess.run([TOOL, "--directory", DIRECTORY, *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


class CoprocessorTest(unittest.TestCase):
    def setUp(self):
        local("clean")
        self.addCleanup(local, "clean")

    def drive(self, name, *words, expected=0):
        path = CLASSES + ":" + local("classpath").strip()
        command = (["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m"]
                   + ["--add-opens=java.base/%s=ALL-UNNAMED" % module for module in OPENED]
                   + ["-cp", path, "tamis.hbase." + name, *words])
        # With a file, the output before a timeout is kept, too.
        with tempfile.TemporaryFile("w+") as out:
            try:
                ended = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       timeout=PATIENCE + int(SECONDS), check=False).returncode
            except subprocess.TimeoutExpired as late:
                ended = str(late)
            out.seek(0)
            said = "\n".join(out.read().splitlines()[-60:])
        self.assertEqual(ended, expected, "seed %s\n%s" % (SEED, said))

    def test_definitions_and_plain_clients(self):
        local("start", "2", "--jar", JAR, "-D", "hbase.coprocessor.master.classes=" + GUARD)
        self.drive("DefinitionDrive", SEED)
        self.drive("ClusterDrive", SECONDS, SEED, "poll")

    def test_expelled_server_answers_and_acknowledges_nothing(self):
        """A server that has lost its regions without noticing. It reports to the master so rarely that it does not
        learn of the loss that way."""
        local("start", "3", "--hdfs", "--cuts", "--jar", JAR, "-D", "hbase.coprocessor.master.classes=" + GUARD,
              "-D", "hbase.regionserver.msginterval=20000")
        self.drive("ZombieDrive", TOOL, DIRECTORY, "pause")
        self.drive("ZombieDrive", TOOL, DIRECTORY, "cut")
        # Disable the fence of the log: the session is alive, but its proof of ownership is wrong.
        # The server's own report ends that state.
        servers = ["rs1", "rs2", "rs3"]
        local("stop", *servers)
        local("start", *servers, "-D", "tamis.faults=PROOF_WITHOUT_FENCE", "-D", "hbase.regionserver.msginterval=60000")
        self.drive("ZombieDrive", TOOL, DIRECTORY, "cut", expected=ROW_MISSED)

    @unittest.skipUnless(len(sys.argv) > 4, "takes as many SECONDS as it is given")
    def test_no_row_is_lost_while_servers_master_and_zookeeper_fail(self):
        """Plain clients, while servers, master and ZooKeeper fail, one after the other."""
        local("start", "3", "--hdfs", "--cuts", "--jar", JAR, "-D", "hbase.coprocessor.master.classes=" + GUARD)
        self.drive("ClusterDrive", SECONDS, SEED, "poll", TOOL, DIRECTORY)

    def test_many_writers_on_two_handlers_lose_no_row(self):
        """Fifty writers on two handlers, and the server's JMX metrics. If puts do not wait for coordinators,
        coordinators miss rows; if polls are answered that queue behind the puts, the drive sees that."""
        local("start", "1", "--jar", JAR, "-D", "hbase.coprocessor.master.classes=" + GUARD,
              "-D", "hbase.regionserver.handler.count=2", "-D", "hbase.regionserver.info.port=0",
              "-D", "hbase.regionserver.info.bindAddress=127.0.0.1")
        self.drive("HandlersDrive")
        local("stop", "rs1")
        local("start", "rs1", "-D", "tamis.faults=NO_WAIT")
        self.drive("HandlersDrive", expected=ROW_MISSED)
        local("stop", "rs1")
        local("start", "rs1", "-D", "tamis.faults=POLLS_OF_ANY_PRIORITY")
        self.drive("HandlersDrive", expected=FAILED)

    def test_jar_keeps_to_the_rights_of_hbase(self):
        local("start", "1", "--jar", JAR, "-D", "hbase.security.authorization=true",
              "-D", "hbase.coprocessor.master.classes=%s,%s" % (GUARD, ACCESS),
              "-D", "hbase.coprocessor.region.classes=" + ACCESS,
              "-D", "hbase.coprocessor.regionserver.classes=" + ACCESS)
        self.drive("RightsDrive")


if __name__ == "__main__":
    print("seed", SEED, flush=True)
    unittest.main(argv=sys.argv[:1])
