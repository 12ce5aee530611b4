"""Makes a PNG picture small: at most 256 colours, which suffice for a page of text and cells."""

import collections
import struct
import zlib


def rows_of(png):
    """Width, height, and the rows of an RGB picture of 8 bits a channel, as a browser writes it."""
    width, height, depth, colours = struct.unpack(">IIBB", png[16:26])
    if (depth, colours) != (8, 2):
        raise ValueError("the picture is not RGB with 8 bits a channel")
    data, at = b"", 8
    while at < len(png):
        size, = struct.unpack(">I", png[at:at + 4])
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    data = zlib.decompress(data)
    stride = 3 * width
    rows, above = [], bytes(stride)
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            left, up, corner = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
            if kind == 4:
                base = left + up - corner
                near = min((abs(base - left), 0, left), (abs(base - up), 1, up), (abs(base - corner), 2, corner))[2]
            else:
                near = (0, left, up, (left + up) // 2)[kind]
            row[i] = (row[i] + near) & 255
        rows.append(bytes(row))
        above = rows[-1]
    return width, height, rows


def with_palette(png):
    width, height, rows = rows_of(png)
    pixels = [list(zip(*[iter(row)] * 3)) for row in rows]
    counts = collections.Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in counts.most_common(256)]
    numbers = {colour: i for i, colour in enumerate(palette)}
    for colour in counts:
        if colour not in numbers:
            numbers[colour] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], colour)))
    data = b"".join(b"\0" + bytes(numbers[pixel] for pixel in row) for row in pixels)

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(value for colour in palette for value in colour)) +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))
