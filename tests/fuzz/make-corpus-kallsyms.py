#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_kallsyms.

    tests/fuzz/make-corpus-kallsyms.py        (from the top of the repository)

One for each layout of tests/unit/kallsyms_fixture.h, with its kernel's extent known and
unknown, some with changes (see fuzz_kallsyms.c), and memory that only begins like tables.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_kallsyms")
SHAPES = 15


def put(name, data):
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(data)


def token_tables():
    """What the search looks for first, alone: every byte that may be a character is one."""
    token = [bytes([c]) if 0x30 <= c < 0x7f else b"" for c in range(256)]
    table = b"".join(t + b"\0" for t in token)
    table += bytes(-len(table) % 8)
    index, at = b"", 0
    for t in token:
        index += struct.pack("<H", at)
        at += len(t) + 1
    return table + index


def main():
    for i in range(SHAPES):
        put("layout-%02d" % i, bytes([i]))
        put("layout-%02d-unknown" % i, bytes([0x40 | i]))
        put("layout-%02d-changed" % i, bytes([i]) + struct.pack("<HBB", 0x500 + 97 * i, 1, 1))
        put("layout-%02d-cut" % i, bytes([i]) + struct.pack("<HBB", 0x2000 + 100 * i, 4, 0))
    put("memory-tokens", b"\x81" + bytes(64) + token_tables())
    put("memory-markers", b"\x81" + struct.pack("<I", 300) + bytes(4) + b"\x02Ta" * 300 + bytes(4) +
        struct.pack("<II", 0, 768) + token_tables() + struct.pack("<300i", *range(300)) +
        struct.pack("<Q", 0xffffffff81000000))
    put("memory-empty", b"\x80")


main()
