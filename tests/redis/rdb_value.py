"""The bytes of DUMP, for values that no server of today saves.

U, D and S are fields as a module saves them: an integer, a double, a string.
"""

import struct


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x95AC9329AC4BC9B5 if n & 1 else 0)
        table.append(n)
    return table


CRC = crc_table()


def sealed(body):
    """The bytes of a DUMP without its checksum, with the right one."""
    crc = 0
    for byte in body:
        crc = CRC[(crc ^ byte) & 255] ^ (crc >> 8)
    return body + struct.pack("<Q", crc)


def number(value):
    if value < 64:
        return bytes([value])
    if value < 1 << 14:
        return bytes([64 | value >> 8, value & 255])
    if value < 1 << 32:
        return b"\x80" + struct.pack(">I", value)
    return b"\x81" + struct.pack(">Q", value)


def U(value):
    return b"\x02" + number(value)


def D(value):
    return b"\x04" + struct.pack("<d", value)


def S(data):
    return b"\x05" + number(len(data)) + data


def payload(type_id, fields):
    return sealed(b"\x07" + type_id + b"".join(fields) + b"\x00" + struct.pack("<H", 10))


BLOOM = bytes.fromhex("813016e5a289bef804")  # of encoding 4, which the last byte says
