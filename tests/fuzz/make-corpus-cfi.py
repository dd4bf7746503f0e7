#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_cfi.

    tests/fuzz/make-corpus-cfi.py        (from the top of the repository)

Everything is made here, byte by byte: tables as linkers write them, and such that loop,
overlap, never end, or say more than there is. expression-bad and empty were found by fuzzing
and are kept as they were: an expression that is refused, and no bytes at all.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_cfi")
BASE, CODE = 0x10000, 0x20000
INSNS = bytes.fromhex("410e108602430d060a410c0708c6410b")


def leb(n):
    out = b""
    while True:
        out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
        n >>= 7
        if not n:
            return out


def entry(body):
    body += bytes(-(len(body) + 4) % 8)
    return struct.pack("<I", len(body)) + body


def cie(letters=b"zR", data=b"\x1b", version=1, insns=b"\x0c\x07\x08\x90\x01"):
    out = struct.pack("<IB", 0, version) + letters + b"\0" + b"\x01\x78\x10"
    if letters[:1] == b"z":
        out += leb(len(data)) + data
    return entry(out + insns)


def fde(at, start, length, insns, back=None, augmentation=b"\0"):
    """at: its offset; back: offset of its CIE."""
    head = struct.pack("<IiI", at + 4 - (back or 0), start - (BASE + at + 8), length)
    return entry(head + augmentation + insns)


def section(*insns, **kw):
    out = cie(**kw)
    for i, code in enumerate(insns):
        out += fde(len(out), CODE + 64 * i, 64, code)
    return out + bytes(4)


def header(n, count=None, frame=None):
    """A header with its table, then the section that it is about."""
    size = 12 + 8 * n
    size += -size % 8
    out = cie()
    table = b""
    for i in range(n):
        at = size + len(out)
        table += struct.pack("<ii", CODE + 64 * i - BASE, at)
        out += fde(at, CODE + 64 * i, 48, INSNS, back=size)
    head = b"\x01\x1b\x03\x3b" + struct.pack("<iI", frame if frame is not None else size - 4,
                                             n if count is None else count)
    return (head + table).ljust(size, b"\0") + out


def put(name, flags, va, data):
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(struct.pack("<BQ", flags, va) + data)


def main():
    put("header", 1, CODE + 70, header(5))
    put("header-count", 1, CODE + 70, header(5, count=0xFFFFFFFF))
    put("section", 0, CODE + 7, section(INSNS, INSNS))
    put("overlapping", 0, CODE + 7, cie() + b"".join(
        fde(len(cie()) + 40 * i, CODE + i, 64, INSNS) for i in range(4)))
    put("signal", 0, CODE + 1, section(
        b"\x0f\x04\x77\xa0\x01\x06" + b"".join(bytes([0x10, r, 2, 0x77, 8 * r]) for r in range(17)),
        letters=b"zRS"))
    put("linkage-table", 0, CODE + 11, section(bytes.fromhex("0e10460e184a0f0b770880003f1a3b2a332422")))
    put("expression-loops", 0, CODE + 1, section(b"\x0f\x04\x30\x2f\xfc\xff"))
    put("expression-grows", 0, CODE + 1, section(b"\x0f\x05\x30\x12\x2f\xfc\xff"))
    put("expressions-beyond", 0, CODE + 1, section(b"".join(
        bytes([0x10, r, 100]) + bytes(100) for r in range(4))))
    put("remembered", 0, CODE + 1, section(b"\x0a" * 40))
    put("recalled", 0, CODE + 1, section(b"\x0b"))
    put("augmentation", 0, CODE + 1, cie() + fde(len(cie()), CODE, 64, INSNS, augmentation=b"\xff\xff\xff\x7f"))
    put("letters", 0, CODE + 1, section(INSNS, letters=b"zPLR", data=b"\x9b\0\0\0\0\x1b\x1b"))
    put("cie-is-fde", 0, CODE + 1, cie() + fde(24, CODE, 64, INSNS, back=24))
    put("endless", 0, CODE + 1, struct.pack("<I", 0xFFFFFFFF) + struct.pack("<Q", 1 << 63) + bytes(32))
    debug = entry(struct.pack("<IB", 0xFFFFFFFF, 4) + b"\0\x08\x00\x01\x78\x10\x0c\x07\x08\x90\x01")
    debug += entry(struct.pack("<IQQ", BASE, CODE, 64) + INSNS)
    put("debug-frame", 2, CODE + 5, debug)


main()
