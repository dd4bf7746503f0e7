#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_gopclntab.

    tests/fuzz/make-corpus-go.py        (from the top of the repository)

Everything is made here: a table of two functions as Go's linker writes it, and such that lie.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_gopclntab")
PCSP = bytes([2, 4, 0x90, 1, 0x38, 0x8F, 1, 4, 0])


def table(magic=0xFFFFFFF1, count=2, pcsp=PCSP, offset=32, name=0, text=0x1000):
    head = struct.pack("<IBBBBQQQQQQQQ", magic, 0, 0, 1, 8, count, 0, text, 80, 0, 0, 100, 200)
    out = (head.ljust(80, b"\0") + b"a.one\0a.two\0").ljust(101, b"\0") + pcsp
    out = out.ljust(200, b"\0") + struct.pack("<IIIII", 0, offset, 0x40, 92, 0x80)
    for i in range(2):
        func = struct.pack("<IiIIIIIII", 0x40 * i, name + 6 * i, 0, 0, 1, 0, 0, 0, 0)
        out = out.ljust(232 + 60 * i, b"\0") + func + struct.pack("<IBBBB", 0, 0, i, 0, 0)
    return out.ljust(400, b"\0")


SEEDS = {
    "plain": table(),
    "go118": table(magic=0xFFFFFFF0),
    "relocated": table(text=0),
    "end-of-memory": table(text=(1 << 64) - 1),
    "many": table(count=1 << 20),
    "beyond": table(offset=0xFFFFFFF0, name=0x7FFFFFF0),
    "endless": table(pcsp=b"\xff" * 90),
    "no-code": table(pcsp=b"\x02\x00" * 40),
    "negative": table(pcsp=bytes([1, 4, 0xFF, 0xFF, 3, 0x38, 0])),
    "short": table()[:240],
}

os.makedirs(TOP, exist_ok=True)
for seed, data in SEEDS.items():
    with open(os.path.join(TOP, seed), "wb") as f:
        f.write(struct.pack("<Q", 0x1004) + data)
