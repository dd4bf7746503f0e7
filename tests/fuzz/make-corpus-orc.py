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


# The numbers of 7.1 for those of 4.14.
OF_7_1 = [0, 8, 2, 5, 4, 3, 6, 7, 10, 9]


def renumber(flags):
    return flags & ~0xFF | OF_7_1[flags & 15] | OF_7_1[flags >> 4 & 15] << 4


def table(call, regs, partial, end, flags=0, number=lambda f: f):
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
        b += struct.pack("<BhhH", 16 if i else 0, sp, bp, number(f))
    ret = [(16 * i + 5) << 2 | 1 for i in range(24)]
    stack = [s << 2 for s in range(0, 512, 8)]
    regs16 = [stack[8]] * 16
    words = [ret[1], 0, stack[9], ret[2], stack[12], ret[3], stack[16], ret[4]] + [ret[6], stack[1]] * 28
    text = (b"\xe8\x0b\0\0\0" + b"\x90" * 11) * 24
    return b + struct.pack("<17H", (3 << 2) | 1, *regs16) + struct.pack("<64H", *words) + text


def code_image(numbers, n=1200):
    """Functions with frames, and what a table with other numbers (of SP, PREV_SP, BP) says of them."""
    sp, prev_sp, bp = numbers
    text, rows = b"", []
    for i in range(n // 4):
        at = 32 * i
        rows += [(at, 8, 0, sp), (at + 1, 16, -16, sp | prev_sp << 4),
                 (at + 4, 16, -16, bp | prev_sp << 4), (at + 5, 8, 0, sp)]
        text += b"\x55\x48\x89\xe5\x5d\xc3".ljust(32, b"\x90")
    return image(n, text, [(TEXT + at, struct.pack("<hhH", s, b, 0x200 | f)) for at, s, b, f in rows])


def image(n=1100, text=None, rows=None):
    """No sections: text, then a table that is found by its content."""
    text = text or b"\x90" * (16 * n)
    rows = rows or [(TEXT + 16 * i, struct.pack("<hhH", 8, 0, 0x205) if i < n - 1 else bytes(6))
                    for i in range(n)]
    size = len(text)
    off, data = 0x100, 0x100 + size
    base = TEXT + 0x100000
    ips = b"".join(struct.pack("<i", va - (base + 4 * i)) for i, (va, _) in enumerate(rows))
    entries = b"".join(e for _, e in rows)
    ph = struct.pack("<IIQQQQQQ", 1, 5, off, TEXT, 0x1000000, size, size, 4096)
    ph += struct.pack("<IIQQQQQQ", 1, 6, data, base, 0x1100000, 10 * n, 10 * n, 4096)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    return (head + ph).ljust(off, b"\0") + text + ips + entries


def main():
    put("4.14", table(0, 0x100, 0x200, 0))
    put("4.18", table(0, 0x100, 0x200, 0x400, 2))
    put("6.3", table(0, 0x500, 0x600, 0x800, 4))
    put("6.4", table(0x200, 0xB00, 0xC00, 0x100))
    put("modules", table(0x200, 0xB00, 0xC00, 0x100, 8))
    put("7.1", table(0x200, 0xB00, 0xC00, 0x100, 0, renumber))
    put("image-7.1", b"\1" + code_image((3, 8, 4)))
    put("image-other-numbers", b"\1" + code_image((14, 12, 3)))
    put("image", b"\1" + image())
    put("image-cut", b"\1" + image()[:-100])


main()
