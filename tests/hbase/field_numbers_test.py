"""Checks that the messages of tamis/hbase/wire.proto match HBase's own: each field has the number and the kind of
the field with the same name in the .proto files in HBase's jar.

usage: field_numbers_test.py HBASE_LOCAL DIRECTORY WIRE_PROTO
"""

import re
import subprocess
import sys
import zipfile

TOOL, DIRECTORY, WIRE = sys.argv[1:]

# Names in wire.proto that stand for several identical messages of HBase.
SAME = {"EnableTableRequest": ["EnableTableRequest", "DisableTableRequest", "DeleteTableRequest"],
        "CreateTableResponse": ["CreateTableResponse", "ModifyTableResponse", "EnableTableResponse",
                                "DisableTableResponse", "DeleteTableResponse", "SplitTableRegionResponse",
                                "MergeTableRegionsResponse", "CreateNamespaceResponse",
                                "DeleteNamespaceResponse"]}
# The wire encodes an enum like an int32, and a string like bytes.
WIRE_KIND = {"bool": "varint", "int32": "varint", "int64": "varint", "uint32": "varint",
             "uint64": "varint", "double": "fixed64", "string": "length", "bytes": "length"}


def definitions(text):
    """(messages, enums): message -> field name -> (number, label, type); enum -> value -> number."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    # The wire encodes a map as repeated messages.
    text = re.sub(r"\bmap\s*<\s*(\w+)\s*,\s*(\w+)\s*>", r"repeated map_of_\1_and_\2", text)
    messages, enums = {}, {}

    def read(body, path):
        at = 0
        for match in re.finditer(r"\b(message|enum|oneof|service|extend)\s+(\w+)\s*{", body):
            if match.start() < at:
                continue
            depth, end = 1, match.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(body[end], 0)
                end += 1
            at, inner = end, body[match.end():end - 1]
            name = match.group(2)
            if match.group(1) == "enum":
                # Several messages contain an enum of the same name.
                enums.setdefault(name, []).append(
                    {value: int(number) for value, number in
                     re.findall(r"(\w+)\s*=\s*(-?\d+)\s*(?:\[[^]]*\])?;", inner)})
            elif match.group(1) == "message":
                own = re.sub(r"\b(?:message|enum)\s+\w+\s*{[^{}]*(?:{[^{}]*}[^{}]*)*}", "", inner)
                messages[name] = {
                    field: (int(number), label, kind) for label, kind, field, number in
                    re.findall(r"\b(required|optional|repeated)\s+([\w.]+)\s+(\w+)\s*=\s*(\d+)", own)}
                read(inner, path + [name])

    read(text, [])
    return messages, enums


def kind(name, definition):
    name = name.split(".")[-1]
    messages, enums = definition
    return WIRE_KIND.get(name, "varint" if name in enums and name not in messages else "length")


def faults(ours, theirs):
    (our_messages, our_enums), (their_messages, their_enums) = ours, theirs
    for name, fields in our_messages.items():
        for other in SAME.get(name, [name]):
            if other not in their_messages:
                yield "%s: HBase has no such message" % other
                continue
            for field, (number, label, type_name) in fields.items():
                if field not in their_messages[other]:
                    yield "%s.%s: HBase has no such field" % (other, field)
                    continue
                their_number, their_label, their_type = their_messages[other][field]
                if number != their_number:
                    yield "%s.%s: %d, but HBase's is %d" % (other, field, number, their_number)
                if (label == "repeated") != (their_label == "repeated"):
                    yield "%s.%s: %s, but HBase's is %s" % (other, field, label, their_label)
                if label == "required" and their_label != "required":
                    yield "%s.%s: required, but HBase may leave it out" % (other, field)
                if kind(type_name, ours) != kind(their_type, theirs):
                    yield "%s.%s: %s, but HBase's is %s" % (other, field, type_name, their_type)
    for name, enums in our_enums.items():
        for values in enums:
            if not any(values.items() <= others.items() for others in their_enums.get(name, [])):
                yield "enum %s %r is not HBase's" % (name, values)


def main():
    class_path = subprocess.run([TOOL, "--directory", DIRECTORY, "classpath"], stdout=subprocess.PIPE,
                                text=True, check=True).stdout.splitlines()[-1]
    # Coprocessors of HBase, such as the one for tokens, have their messages in the older jar.
    texts = []
    for folder, wanted in (("hbase-protocol-shaded", ".proto"), ("hbase-protocol", "Authentication.proto")):
        jar, = [path for path in class_path.split(":") if "/%s/" % folder in path]
        with zipfile.ZipFile(jar) as archive:
            texts += [archive.read(name).decode() for name in archive.namelist()
                      if name.endswith(wanted) and "/" not in name]
    theirs = definitions("\n".join(texts))
    with open(WIRE, encoding="utf-8") as file:
        text = file.read()
    found = list(faults(definitions(text), theirs))
    for fault in found:
        print(fault)
    fields = sum(len(message) for message in definitions(text)[0].values())
    if found:
        sys.exit("%d faults in %d fields" % (len(found), fields))
    if fields < 250:
        sys.exit("only %d fields were read: this test is broken" % fields)
    # The test itself finds planted faults.
    for right, wrong in (("uint64 next_call_seq = 6", "uint64 next_call_seq = 7"),
                         ("repeated Cell cell = 1", "optional Cell cell = 1"),
                         ("optional uint64 scanner_id = 3", "optional bytes scanner_id = 3"),
                         ("headers = 3", "headers = 2"),
                         ("STREAM = 1", "STREAM = 3")):
        if right not in text or not list(faults(definitions(text.replace(right, wrong)), theirs)):
            sys.exit("a planted fault was not found: " + wrong)
    print("%d fields are HBase's" % fields)


main()
