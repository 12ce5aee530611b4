#!/usr/bin/env python3
"""Checks the jars that HBase loads: they contain only classes of Tamis, that refer only to allowed classes. The jar for
HBase 2 is for Java 8, the one for HBase 3 for Java 17.

usage: jar_content_test.py COPROCESSOR
"""

import glob
import io
import os
import struct
import sys
import unittest
import zipfile

MODULE = sys.argv.pop(1)

JAVA_8 = 52
JAVA_17 = 61
# Prefixes that a class may refer to: Java, HBase and the libraries it ships, and the jar itself.
ALL_MAY_NAME = ("java/", "javax/", "sun/misc/", "sun/nio/ch/", "tamis/")
HBASE_MAY_NAME = ("org/apache/hadoop/", "org/apache/zookeeper/", "org/slf4j/")
# Packages of the jar that may refer to HBase.
KNOW_HBASE = ("base", "compat", "region", "index", "search", "server", "hbase")
# HBase's endpoints use its own protobuf, which HBase 3 has under another name; other packages must not.
PROTOBUF_2 = "com/google/protobuf/"
PROTOBUF_3 = "org/apache/hbase/thirdparty/com/google/protobuf/"
KNOW_ENDPOINTS = ("server", "hbase")
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}


def read_class(data):
    """Returns the class file's major version and the classes that its constant pool names."""
    magic, _, major, count = struct.unpack_from(">IHHH", data)
    if magic != 0xCAFEBABE:
        raise ValueError("not a class file")
    texts, classes = {}, []
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == 1:
            size, = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3:at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            if tag == 7:
                classes.append(struct.unpack_from(">H", data, at + 1)[0])
            at += 1 + SIZES[tag]
        number += 2 if tag in (5, 6) else 1
    names = (texts[index].lstrip("[") for index in classes)
    return major, {name[1:].rstrip(";") if name.endswith(";") else name for name in names if len(name) > 1}


def may_name(where, protobuf):
    folder = where.split("/")[1] if where.startswith("tamis/") else ""
    allowed = ALL_MAY_NAME
    if folder in KNOW_HBASE:
        allowed += HBASE_MAY_NAME
    if folder in KNOW_ENDPOINTS:
        allowed += (protobuf,)
    return allowed


def faults(jar, java=JAVA_8, protobuf=PROTOBUF_2):
    found = []
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        for name in names:
            if name.endswith("/"):
                continue
            if not name.startswith(("tamis/", "META-INF/MANIFEST.MF", "META-INF/maven/tamis/")):
                found.append("%s is not ours" % name)
            if not name.endswith(".class"):
                continue
            major, named = read_class(archive.read(name))
            if major > java:
                found.append("%s is for Java %d" % (name, major - 44))
            for other in sorted(named):
                if not other.startswith(may_name(name, protobuf)):
                    found.append("%s names %s" % (name, other))
                elif other.startswith("tamis/") and other + ".class" not in names:
                    found.append("%s names %s, which is not in the jar" % (name, other))
        if len(set(names)) != len(names):
            found.append("some files are in it twice")
    return found


def class_file(major, *named):
    """The smallest class file that read_class can parse."""
    pool = b""
    for i, name in enumerate(named):
        pool += struct.pack(">BH", 1, len(name)) + name.encode() + struct.pack(">BH", 7, 2 * i + 1)
    return struct.pack(">IHHH", 0xCAFEBABE, 0, major, 2 * len(named) + 1) + pool


def jar_with(name, data):
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(name, data)
    return jar


class JarContentTest(unittest.TestCase):
    def test_jars_hold_only_own_classes(self):
        for name, rules in (("server/target/tamis-coprocessor-[0-9]*.jar", (JAVA_8, PROTOBUF_2)),
                            ("server-hbase3/target/tamis-coprocessor-hbase3-[0-9]*.jar", (JAVA_17, PROTOBUF_3))):
            with self.subTest(name):
                self.check(glob.glob(os.path.join(MODULE, name)), rules)

    def check(self, jars, rules):
        self.assertEqual(len(jars), 1, jars)
        self.assertEqual(faults(jars[0], *rules), [])
        with zipfile.ZipFile(jars[0]) as archive:
            names = archive.namelist()
        for there in ("tamis/hbase/IndexObserver.class", "tamis/hbase/SchemaGuard.class",
                      "tamis/hbase/ServerReport.class", "tamis/hbase/IndexSplitPolicy.class",
                      "tamis/shaded/protobuf/MessageLite.class",
                      "tamis/shaded/openhft/hashing/LongHashFunction.class"):
            self.assertIn(there, names)

    def test_foreign_content_is_found(self):
        self.assertEqual(faults(jar_with("tamis/table/A.class", class_file(52, "java/lang/Object"))), [])
        for name, data, why in (
                ("tamis/table/A.class", class_file(55), "is for Java 11"),
                ("com/google/protobuf/A.class", class_file(52), "is not ours"),
                ("org/apache/hadoop/hbase/A.class", class_file(52), "is not ours"),
                ("net/openhft/hashing/A.class", class_file(52), "is not ours"),
                ("META-INF/services/javax.Any", b"", "is not ours"),
                ("tamis/pb/A.class", class_file(52, "com/google/protobuf/MessageLite"), "names com/google"),
                ("tamis/table/A.class", class_file(52, "org/apache/hadoop/hbase/Cell"), "names org/apache"),
                ("tamis/hbase/A.class", class_file(52, "[Lcom/google/common/B;"), "names com/google/common/B"),
                ("tamis/hbase/A.class", class_file(52, "tamis/table/B"), "not in the jar")):
            found = faults(jar_with(name, data))
            self.assertEqual(len(found), 1, found)
            self.assertIn(why, found[0])


if __name__ == "__main__":
    unittest.main()
