#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_textstore: the format is in profile/format/perfdata/textstore.h."""

import os
import struct

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_textstore")
HEAD = b"KVMPTEXT" + struct.pack("<I", 1)


def diff(off, data):
    return struct.pack("<II", off, len(data)) + data


def text(addr, live, name=b"", diffs=None):
    d = b"".join(diff(*x) for x in diffs or [])
    return struct.pack("<QIIHH", addr, len(live), len(diffs or []), len(name) + 1,
                       diffs is not None) + name + b"\0" + live + d


loop = bytes.fromhex("0f1f4400005548 85ff740c488b0500100000ffcf75f090e8e40f00005dc3".replace(" ", ""))
files = {
    "empty": HEAD,
    "kernel": HEAD + text(0xffffffff81000000, loop, diffs=[(0, b"\xe8\xfb\x0f\0\0"), (0x12, b"\x0f\x1f\x44")]),
    "intel": HEAD + text(0xffffffff81000001, loop, diffs=[]),
    "module": HEAD + text(0xffffffffa0000000, loop * 3, b"ext4") + text(0xffffffffa0000010, b"\x06\x62\xc5", b"ext4"),
    "jumps": HEAD + text(0, b"".join(bytes([0x75, 46 - 3 * i]) for i in range(16)) + b"\x90" * 40),
    "cut": (HEAD + text(0x1000, loop, b"x", [(3, b"ab")]))[:-1],
    "overlap": HEAD + text(0x1000, loop, b"", [(4, b"ab"), (5, b"c")]),
    "wraps": HEAD + text(2 ** 64 - 4, loop),
    "huge": HEAD + struct.pack("<QIIHH", 0, 0xffffffff, 0xffffffff, 1, 1) + b"\0" * 64,
}
os.makedirs(OUT, exist_ok=True)
for name, data in files.items():
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
