#!/usr/bin/env python3
"""page-picture.py PAGE OUT: the top of a page that weir report --html wrote, as Chromium shows it: a PNG of few
colours, which is half as large as Chromium's own."""
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../../tests/page'))
import browser  # noqa: E402

WIDTH, HEIGHT = 1480, 1420


def chunks(png):
    at = 8
    while at < len(png):
        size = int.from_bytes(png[at:at + 4], 'big')
        yield png[at + 4:at + 8], png[at + 8:at + 8 + size]
        at += 12 + size


def rows(png):
    """The pixels of an 8-bit RGB or RGBA picture, a row of (r, g, b) at a time."""
    header = next(body for kind, body in chunks(png) if kind == b'IHDR')
    width, height, depth, kind = struct.unpack('>IIBB', header[:10])
    assert depth == 8 and kind in (2, 6)
    size = 3 if kind == 2 else 4
    data = zlib.decompress(b''.join(body for kind, body in chunks(png) if kind == b'IDAT'))
    before = bytearray(width * size)
    for y in range(height):
        begin = y * (width * size + 1)
        how, row = data[begin], bytearray(data[begin + 1:begin + 1 + width * size])
        for i in range(len(row)):
            left, up, corner = (row[i - size] if i >= size else 0), before[i], (before[i - size] if i >= size else 0)
            guess = left + up - corner
            paeth = min((abs(guess - v), n, v) for n, v in enumerate((left, up, corner)))[2]
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[how]) & 255
        before = row
        yield [(row[i], row[i + 1], row[i + 2]) for i in range(0, len(row), size)]


def few_colors(png):
    """The same with a palette: the commonest colours, and for each other one the nearest of these."""
    picture = list(rows(png))
    counts = {}
    for row in picture:
        for color in row:
            counts[color] = counts.get(color, 0) + 1
    palette = sorted(counts, key=counts.get, reverse=True)[:128]
    nearest = {c: min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], c))) for c in counts}
    data = b''.join(b'\0' + bytes(nearest[c] for c in row) for row in picture)

    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))

    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', len(picture[0]), len(picture), 8, 3, 0, 0, 0))
            + chunk(b'PLTE', b''.join(bytes(c) for c in palette)) + chunk(b'IDAT', zlib.compress(data, 9)) + chunk(b'IEND', b''))


def main():
    page, out = sys.argv[1:]
    b = browser.Browser(browser.find(), WIDTH, HEIGHT)
    try:
        b.open(page)
        b.js('weirPage.ready')
        b.js('weirPage.all()')
        b.picture(out)
    finally:
        b.close()
    with open(out, 'rb') as f:
        png = f.read()
    with open(out, 'wb') as f:
        f.write(few_colors(png))


main()
