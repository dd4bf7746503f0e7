#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the seeds of fuzz_kslide.

    tests/fuzz/make-corpus-kslide.py [DIR]    (default: tests/fuzz/corpus)

The commands are those that fuzz_kslide.c tells about, addresses those of
tests/unit/kslide_fixture.h. The output is the same on every run.
"""

import os
import struct
import sys

TOP = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
TEXT = 0xFFFFFFFF81000000
DATA, IDT, SYSCALL, EARLY = TEXT + 0x8000, TEXT + 0x9000, TEXT + 0x40, TEXT + 0x4000
NOTE_OFF = 0x8100
MIB2 = 2 << 20
VECTORS = [v for v in range(20) if v != 15]


def lstar(v):
    return b"L" + struct.pack("<Q", v % 2**64)


def idt_base(v):
    return b"I" + struct.pack("<Q", v % 2**64)


def kernel(n):
    return b"K" + struct.pack("<H", n)


def poke(off, value):
    return b"P" + struct.pack("<IB", off, value)


def gate(v, present=0x8E):
    return struct.pack("<HHBBHII", v & 0xFFFF, 0x10, 0, present, v >> 16 & 0xFFFF,
                       v >> 32 & 0xFFFFFFFF, 0)


def table(va, gates):
    """Up to 15 gates of 16 bytes in each piece of memory."""
    out = b""
    for i in range(0, len(gates), 15):
        bytes_ = b"".join(gates[i:i + 15])
        out += b"M" + struct.pack("<QB", va + 16 * i, len(bytes_)) + bytes_
    return out


def handlers(slide, skip=()):
    return [gate(TEXT + 0x1000 + 64 * v + slide) if v in VECTORS and v not in skip else bytes(16)
            for v in range(20)]


def booted(n):
    """The IDT is memory of its own: one region ends within it, so it is 15 gates that are read."""
    return (kernel(n) + lstar(SYSCALL + n * MIB2) + idt_base(IDT + n * MIB2) +
            table(IDT + n * MIB2, handlers(n * MIB2)))


def seeds():
    moved = booted(0xE2)
    wrong = handlers(3 * MIB2)
    wrong[4] = gate(TEXT + 0x1000)
    return {
        "nothing": b"",
        "slide-0": booted(0),
        "slide": moved,
        "slide-old-names": moved + b"?",
        "last-place": booted(0x1F7),
        "no-place": booted(0x1F8),
        "text-and-note": kernel(5),
        "twice": kernel(5) + kernel(9) + lstar(SYSCALL + 5 * MIB2),
        "lstar-elsewhere": kernel(5) + lstar(SYSCALL + 6 * MIB2),
        "lstar-odd": kernel(5) + lstar(SYSCALL + 5 * MIB2 + 1),
        "lstar-trampoline": kernel(5) + lstar(0xFFFFFE0000006000),
        "lstar-wraps": kernel(5) + lstar(2**64 - 1) + idt_base(2**64 - 8),
        "gates-disagree": kernel(3) + idt_base(IDT) + table(IDT, wrong),
        "gates-early": kernel(3) + idt_base(0x1000) +
                       table(0x1000, [gate(EARLY + 3 * MIB2 + 9 * v) for v in range(32)]),
        "gates-absent": kernel(3) + idt_base(0x1000) +
                        table(0x1000, [gate(TEXT + 64 * v, 0) for v in range(32)]),
        "gates-few": idt_base(0x1000) + table(0x1000, handlers(0)[:3]),
        "gates-low": idt_base(0x1000) + table(0x1000, [gate(0x1C00000 + v) for v in range(32)]),
        "note-differs": moved + poke(NOTE_OFF + 16, 0),
        "text-differs": moved + b"".join(poke(256 * i + j, 0xCC) for i in range(24)
                                         for j in range(0, 64, 2)),
        "file-without-text": b"F" + struct.pack("<HB", 64 + 32, 1) + moved,
        "file-note-elsewhere": b"F" + struct.pack("<HB", 64 + 2 * 56 + 16, 0) + moved,
        "file-one-window": b"F" + struct.pack("<HB", 64 + 33, 1) + moved,
    }


for name, data in seeds().items():
    path = os.path.join(TOP, "fuzz_kslide")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)
