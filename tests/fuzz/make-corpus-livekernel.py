#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_livekernel.

    tests/fuzz/make-corpus-livekernel.py        (from the top of the repository)

Each layout of tests/unit/kallsyms_fixture.h with ORC tables, BTF and notes in a row, then with
pages that are missing, tables that are none, and memory that is mapped everywhere.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_livekernel")
SHAPES = 15
ENTRIES = 40


def put(name, data):
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(data)


def changes(at, data):
    return b"".join(struct.pack("<HBB", at + i, 0, b) for i, b in enumerate(data))


def tables():
    """The distances between the symbols, in units of two bytes, and what lies there."""
    ip, unwind = 0x2c00, 0x2c00 + 4 * ENTRIES
    btf = unwind + 6 * ENTRIES
    notes = btf + 32
    gaps = bytes([0, 2 * ENTRIES, 0, 3 * ENTRIES, 0, 16, 0, 18])
    ips = b"".join(struct.pack("<i", 64 * i - (ip + 4 * i)) for i in range(ENTRIES))
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    return gaps, (changes(ip, ips) + changes(unwind, bytes([8, 0, 0, 0, 5, 2]) * ENTRIES) +
                  changes(btf, struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, 0, 0, 8)) +
                  changes(notes, note))


def main():
    gaps, data = tables()
    for i in range(SHAPES):
        put("layout-%02d" % i, bytes([i]) + gaps + data)
    put("hole-text", bytes([3]) + gaps + data + struct.pack("<HBB", 0x1000, 4, 0))
    put("hole-first", bytes([3]) + gaps + data + struct.pack("<HBB", 0, 4, 0))
    put("hole-names", bytes([3]) + gaps + data + struct.pack("<HBB", 0x5000, 4, 0))
    put("no-entries", bytes([3]) + gaps)
    put("gaps-zero", bytes([3]) + bytes(8) + data)
    put("gaps-wide", bytes([3]) + b"\xff" * 8 + data)
    put("cut-entries", bytes([3]) + bytes([0, 80, 0, 119, 0, 16, 0, 18]) + data)
    put("empty", b"")


main()
