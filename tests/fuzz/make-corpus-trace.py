#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_trace: heads of traces with two equally long halves of records, whole and
damaged.

usage: make-corpus-trace.py DIR
"""
import os
import struct
import sys

MAGIC = 0x31454341525456
REGS = 28


def head(used, step=0, nchecks=0):
    return struct.pack("<9Q", MAGIC, step, 100, 1, 2, nchecks, used, 0, 1)


def block(before, pc, insns, rax=0):
    """insns: the bytes of each."""
    code = b"".join(insns)
    out = struct.pack("<IHHQQ", 1, len(insns), len(code), before, pc)
    out += struct.pack("<%dQ" % REGS, rax, *[7] * (REGS - 1))
    out += bytes(len(i) for i in insns) + code
    return out + bytes(-len(out) % 8)


def access(kind, off, va, value):
    return struct.pack("<IHHQQQ", kind, off, 4, va, value, 0)


def trace(first, second):
    size = max(len(first), len(second))
    both = first.ljust(size, b"\0") + second.ljust(size, b"\0")
    return head(len(both)) + both


def main():
    where = sys.argv[1]
    os.makedirs(where, exist_ok=True)
    load, jump, ret = b"\x8b\x03", b"\x75\xfc", b"\xc3"
    start = block(0, 0x1000, [load, jump]) + access(2, 0, 0x2000, 5)
    other = block(0, 0x1000, [load, jump]) + access(2, 0, 0x2000, 6)
    back, on = block(2, 0x1000, [load, jump], 5), block(2, 0x1004, [load, jump], 6)
    files = {
        "same": trace(start + back, start + back),
        "jump": trace(start + back, other + on),
        "code": trace(start + back, start + block(2, 0x1000, [b"\x8b\x04", jump])),
        "interrupt": trace(start + back, start + block(2, 0x9000, [load, ret])),
        "cut": trace(start + back, start + back)[:-5],
        "kind": trace(start + struct.pack("<Q", 9), start),
        "length": trace(start, start[:start.index(load) - 2] + b"\0" + start[start.index(load) - 1:]),
        "size": trace(start + access(3, 0, 1, 2)[:6] + bytes(34), start),
        "checks": head(0, 100, 2) + struct.pack("<4Q", 1, 2, 3, 4),
        "checks-many": head(0, 100, 1 << 60),
        "used": head(1 << 62),
        "no-magic": bytes(80),
    }
    for name, data in files.items():
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
