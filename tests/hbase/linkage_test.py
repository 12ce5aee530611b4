"""Everything that the jar names in HBase is there, in each version of HBase that it is for.

usage: linkage_test.py HBASE_LOCAL COPROCESSOR DIRECTORY

COPROCESSOR is the module's directory, packaged. DIRECTORY keeps the jars of HBase's versions: Maven fetches them once,
about 25 MB a version. The libraries that HBase uses are those of the version that HBASE_LOCAL starts by default.
"""

import glob
import os
import subprocess
import sys
import unittest
from xml.sax.saxutils import escape

TOOL, MODULE, DIRECTORY = (os.path.abspath(path) for path in sys.argv[1:4])
HBASE_2 = ["2.5.%d-hadoop3" % patch for patch in (10, 11, 12, 13)] + ["2.6.%d-hadoop3" % patch for patch in (0, 1, 4)]
PARTS = ["server", "client", "common", "protocol-shaded", "zookeeper", "procedure", "http", "asyncfs", "replication",
         "hadoop-compat", "metrics", "metrics-api", "logging", "balancer"]
PARTS_2 = [part for part in PARTS if part != "balancer"] + ["protocol", "hadoop2-compat"]
ALPHA = dict.fromkeys(PARTS, "3.0.0-alpha-4")
# Maven Central has no complete set of jars of 3.0.0: the newest one of each part is taken.
BETA = dict(ALPHA, **dict.fromkeys(("server", "client", "common", "protocol-shaded", "hadoop-compat", "metrics",
                                    "metrics-api", "logging"), "3.0.0-beta-1"))
SETS = {version: dict.fromkeys(PARTS_2, version) for version in HBASE_2}
SETS |= {"3.0.0-alpha-4": ALPHA, "3.0.0-beta-1": BETA, "server of 3.0.0": dict(BETA, server="3.0.0")}


def jar(part, version):
    return os.path.join(DIRECTORY, "hbase-%s-%s.jar" % (part, version))


def fetch():
    wanted = sorted({(part, version) for parts in SETS.values() for part, version in parts.items()})
    items = "".join("<artifactItem><groupId>org.apache.hbase</groupId><artifactId>hbase-%s</artifactId>"
                    "<version>%s</version></artifactItem>" % (part, version)
                    for part, version in wanted if not os.path.exists(jar(part, version)))
    if not items:
        return
    os.makedirs(DIRECTORY, exist_ok=True)
    pom = os.path.join(DIRECTORY, "pom.xml")
    with open(pom, "w", encoding="utf-8") as file:
        file.write("<project><modelVersion>4.0.0</modelVersion><groupId>tamis</groupId><artifactId>linkage</artifactId>"
                   "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
                   "<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>"
                   "<version>3.6.1</version><configuration><outputDirectory>%s</outputDirectory>"
                   "<artifactItems>%s</artifactItems></configuration></plugin></plugins></build></project>"
                   % (escape(DIRECTORY), items))
    subprocess.run(["mvn", "-B", "-q", "-f", pom, "dependency:copy"], check=True, stdin=subprocess.DEVNULL)


def libraries():
    """The jars beside HBase's own."""
    out = subprocess.run([TOOL, "--directory", os.path.join(DIRECTORY, "default"), "classpath"], check=True, text=True,
                         capture_output=True, stdin=subprocess.DEVNULL).stdout.split()[-1]
    own = {"hbase-" + part for part in PARTS_2 + PARTS}
    return [path for path in out.split(":")
            if path.endswith(".jar") and not any(os.path.basename(path).startswith(name + "-2.") for name in own)]


def ours(name):
    found = glob.glob(os.path.join(MODULE, name, "target", "tamis-coprocessor*-[0-9]*.jar"))
    found = [path for path in found if not os.path.basename(path).startswith("original-")]
    if len(found) != 1:
        raise RuntimeError("one jar is expected in %s/%s/target: %s" % (MODULE, name, found))
    return found[0]


class LinkageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fetch()
        cls.libraries = libraries()

    def look(self, module, name):
        """Returns the jar's exit code and words on this set of HBase's jars."""
        path = [ours(module)] + [jar(part, version) for part, version in SETS[name].items()] + self.libraries
        done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(path),
                               "tamis.hbase.Linkage"], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              check=False)
        return done.returncode, done.stdout.strip() or done.stderr

    def test_jar_fits_each_hbase_2(self):
        for version in HBASE_2:
            with self.subTest(version):
                self.assertEqual(self.look("server", version), (0, "this jar fits HBase " + version))

    def test_jar_fits_each_hbase_3(self):
        for name, version in (("3.0.0-alpha-4", "3.0.0-alpha-4"), ("3.0.0-beta-1", "3.0.0-beta-1"),
                              ("server of 3.0.0", "3.0.0-beta-1")):
            with self.subTest(name):
                self.assertEqual(self.look("server-hbase3", name), (0, "this jar fits HBase " + version))

    def test_jar_for_another_hbase_says_which_one_fits(self):
        status, said = self.look("server", "3.0.0-alpha-4")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"does not fit HBase 3\.0\.0-alpha-4, which lacks .*CoprocessorRpcUtils.*"
                         r"; install tamis-coprocessor-hbase3-[0-9.]+\.jar there instead")
        status, said = self.look("server-hbase3", "2.6.4-hadoop3")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"does not fit HBase 2\.6\.4.*; install tamis-coprocessor-[0-9.]+\.jar there instead")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
