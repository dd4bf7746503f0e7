#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_orc.

    tests/fuzz/make-corpus-orc.py        (from anywhere)
"""
import os
import struct

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_orc")
TEXT = 0xFFFFFFFF81000000


def put(name, data):
    os.makedirs(DIR, exist_ok=True)
    with open(os.path.join(DIR, name), "wb") as f:
        f.write(data)


def table(call, regs, partial, end, flags=0):
    """Entries of 16 code bytes; one of each kind among plain calls; a stack that uses them."""
    e = [(8, 0, call | 0x05)] * 24
    e[1] = (24, -16, call | 0x15)
    e[2] = (16, -16, call | 0x14)
    e[3] = (8, 0, call | 0x09)
    e[4] = (0, 0, regs | 0x05)
    e[5] = (8, 0, partial | 0x05)
    e[6] = (0, 0, end)
    e[7] = (0, 0, 0)
    e[8] = (-8, 0, call | 0x08)
    e[9] = (0, 0, call | 0x06)
    b = struct.pack("<BBH", flags, 64, len(e))
    for i, (sp, bp, f) in enumerate(e):
        b += struct.pack("<BhhH", 16 if i else 0, sp, bp, f)
    ret = [(16 * i + 5) << 2 | 1 for i in range(24)]
    stack = [s << 2 for s in range(0, 512, 8)]
    regs16 = [stack[8]] * 16
    words = [ret[1], 0, stack[9], ret[2], stack[12], ret[3], stack[16], ret[4]] + [ret[6], stack[1]] * 28
    text = (b"\xe8\x0b\0\0\0" + b"\x90" * 11) * 24
    return b + struct.pack("<17H", (3 << 2) | 1, *regs16) + struct.pack("<64H", *words) + text


def image(n=1100):
    """No sections: text, then a table that is found by its content."""
    size = 16 * n
    off, data = 0x100, 0x100 + size
    base = TEXT + 0x100000
    ips = b"".join(struct.pack("<i", TEXT + 16 * i - (base + 4 * i)) for i in range(n))
    entries = struct.pack("<hhH", 8, 0, 0x205) * (n - 1) + struct.pack("<hhH", 0, 0, 0)
    ph = struct.pack("<IIQQQQQQ", 1, 5, off, TEXT, 0x1000000, size, size, 4096)
    ph += struct.pack("<IIQQQQQQ", 1, 6, data, base, 0x1100000, 10 * n, 10 * n, 4096)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    return (head + ph).ljust(off, b"\0") + b"\x90" * size + ips + entries


def main():
    put("4.14", table(0, 0x100, 0x200, 0))
    put("4.18", table(0, 0x100, 0x200, 0x400, 2))
    put("6.3", table(0, 0x500, 0x600, 0x800, 4))
    put("6.4", table(0x200, 0xB00, 0xC00, 0x100))
    put("modules", table(0x200, 0xB00, 0xC00, 0x100, 8))
    put("image", b"\1" + image())
    put("image-cut", b"\1" + image()[:-100])


main()
