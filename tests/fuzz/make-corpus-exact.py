#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_exact_counts: streams of blocks, and files of counts, whole and damaged.

usage: make-corpus-exact.py DIR
"""
import os
import random
import struct
import sys

MAGIC = 0x31544e43464d564b
STATS = 10


def counts(nodes, blocks, numbers):
    out = struct.pack("<QIIII", MAGIC, len(nodes), len(blocks), len(numbers), 0)
    out += struct.pack("<%dQ" % STATS, *range(STATS))
    for parent, kind, ret, entry, calls in nodes:
        out += struct.pack("<IIQQQ", parent, kind, ret, entry, calls)
    for pc, off in blocks:
        out += struct.pack("<QH%dH" % len(off), pc, len(off), *off)
    for node, block, times in numbers:
        out += struct.pack("<IIQ", node, block, times)
    return out


def main():
    where = sys.argv[1]
    os.makedirs(where, exist_ok=True)
    rng = random.Random(22)
    files = {"stream-%02d" % i: bytes(rng.randrange(256) for _ in range(200 + 100 * i))
             for i in range(12)}
    root = (0xffffffff, 0, 0, 0, 0)
    whole = counts([root, (0, 0, 0x1010, 0x2000, 3)], [(0x2000, [0, 4, 7]), (0x3000, [0])],
                   [(1, 0, 3), (0, 1, 9)])
    files["counts"] = whole
    files["counts-cut"] = whole[:-3]
    files["counts-longer"] = whole + b"\0"
    files["counts-parent"] = counts([root, (1, 0, 0, 1, 1)], [], [])
    files["counts-node"] = counts([root], [(1, [0])], [(7, 0, 1)])
    files["counts-many"] = struct.pack("<QIIII", MAGIC, 1 << 31, 1, 1, 0) + bytes(8 * STATS)
    for name, data in files.items():
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
