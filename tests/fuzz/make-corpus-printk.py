#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_printk.

    tests/fuzz/make-corpus-printk.py        (from anywhere)

The numbers are those of tests/printk_guest.h.
"""
import os
import struct

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_printk")
OLD, TYPES, MOVES, CALLER = 1, 2, 4, 8
RING, DATA = 0x400 // 8, 16 * 4096 // 8
POINTER, HIGH, HALF, BYTE, GONE, VARIABLE, DESC, WORD = range(8)


def put(name, flags, records, *changes):
    with open(os.path.join(DIR, name), "wb") as f:
        f.write(bytes([flags, records]) + b"".join(struct.pack("<BHI", *c) for c in changes))


def main():
    os.makedirs(DIR, exist_ok=True)
    for bits in range(5):
        put("sound-%d" % bits, TYPES | bits << 4, 200)
    put("empty", TYPES, 0)
    put("no-types", 1 << 4, 100)
    put("two-records", 0, 2)
    put("moves", TYPES | MOVES, 150)
    put("gone-descs", TYPES, 90, (GONE, 1, 0))
    put("gone-infos", TYPES, 90, (GONE, 4, 0), (GONE, 5, 0))
    put("gone-text", TYPES | 4 << 4, 200, (GONE, 17, 0))
    put("many-descs", TYPES, 90, (VARIABLE, 0, 24))
    put("large-text", TYPES, 90, (VARIABLE, 6, 31))
    put("far-head", TYPES, 90, (VARIABLE, 3, 0xFFFFFFF0))
    put("far-tail", TYPES, 90, (VARIABLE, 4, 5))
    put("text-in-user-space", TYPES, 90, (WORD, RING + 7, 0x1000))
    put("block-beyond", TYPES, 90, *[(DESC, 3 * i + 2, 0x7FFFFFFF) for i in range(0, 60, 7)])
    put("block-backwards", TYPES, 90, *[(DESC, 3 * i + 1, 0x7FFFFFF0) for i in range(0, 60, 7)])
    put("states", TYPES, 90, *[(HIGH, 512 + 3 * i, i % 4 << 30) for i in range(20)])
    put("old", OLD, 60)
    put("old-wrapped", OLD, 250)
    put("old-callers", OLD | CALLER, 250)
    put("old-gone", OLD | 1 << 4, 100, (GONE, 17, 0))
    put("old-lengths", OLD, 100, *[(HALF, DATA + i * 5, 0x00100010) for i in range(20)])
    put("old-zeros", OLD, 100, *[(WORD, DATA + i * 5, 0) for i in range(40)])
    put("old-next", OLD, 100, (HALF | 4 << 3, 5, 4095))


main()
