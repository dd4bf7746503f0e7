#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_linux_mm, fuzz_linux_file and fuzz_linux_tree.

    tests/fuzz/make-corpus-linux.py        (from the top of the repository)

Their formats are in the targets; places are words of the fixture's arena, see
tests/unit/linux_mm_fixture.h.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(target, name, data):
    os.makedirs(os.path.join(TOP, target), exist_ok=True)
    with open(os.path.join(TOP, target, name), "wb") as f:
        f.write(data)


def change(place, what, value):
    return struct.pack("<HBB", place & 0xffff, what, value)


def note(kind, name, desc):
    return struct.pack("<III", len(name), len(desc), kind) + name + bytes(-len(name) % 4) + desc


def elf(notes, sections_at):
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 2, 64, 2, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x300, 0x300, 4096)
    where = struct.pack("<IIQQQQQQ", 4, 4, 0x200, 0x200, 0x200, len(notes), len(notes), 4)
    b = head + load + where
    return b + bytes(0x200 - len(b)) + notes


def main():
    for kind in range(6):
        put("fuzz_linux_mm", "scene-%d" % kind, bytes([kind]))
        for i, what in enumerate((0, 1, 2, 4, 6, 6 + 8 * 3, 7)):
            first = bytes([kind])
            put("fuzz_linux_mm", "changed-%d-%d" % (kind, i),
                first + change(40 + 11 * i, what, 17 * i) + change(3600 + 97 * i, what, 3))
    for i, (off, n) in enumerate(((0, 100), (255, 40), (511, 4097), (1279, 200), (0, 65535))):
        put("fuzz_linux_file", "scene-%d" % i, struct.pack("<HHB", off, n, 0))
        for k, what in enumerate((0, 1, 2, 6, 7)):
            put("fuzz_linux_file", "changed-%d-%d" % (i, k), struct.pack("<HHB", off, n, 0) +
                change(30 + 7 * k + i, what, 60 * k) + change(0xff00 + 8 * k + i, what, 1 + k))
    for k, what in enumerate((0, 1, 2, 4, 6, 7)):
        put("fuzz_linux_file", "find-%d" % k, struct.pack("<HHB", 0, 9000, 2) +
            change(2000 + 97 * k, what, k) + change(0xff00 + 8 * k, what, 1 + k))
    put("fuzz_linux_file", "find", struct.pack("<HHB", 0, 9000, 2))
    for kind in range(2):
        put("fuzz_linux_tree", "scene-%d" % kind, bytes([kind]))
        for k, what in enumerate((0, 1, 2, 4, 6, 7)):
            put("fuzz_linux_tree", "changed-%d-%d" % (kind, k),
                bytes([kind]) + change(4 + 9 * k, what, 8 * k) + change(60 + 7 * k, what, 16))
    notes = note(5, b"GNU\0", bytes(16)) + note(3, b"GNU\0", bytes(range(20)))
    put("fuzz_linux_file", "image", struct.pack("<HHB", 0, 8192, 1) + elf(notes, 0x400))
    put("fuzz_linux_file", "image-long", struct.pack("<HHB", 0, 8192, 1) + elf(notes, 0x1f00))
    put("fuzz_linux_file", "image-cut", struct.pack("<HHB", 0, 0x210, 1) + elf(notes, 1 << 63))
    put("fuzz_linux_file", "image-no-notes", struct.pack("<HHB", 0, 8192, 1) + elf(b"", 0))


main()
