#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_why.

    tests/fuzz/make-corpus-why.py        (from anywhere)

The numbers are those of tests/why_guest.h.
"""
import os
import struct

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_why")
IDLE, OPEN, MOVES, DISK, RING, POOL = 1, 2, 4, 8, 16, 32
MEMBER, TASK, SMALL, NEGATIVE, HIGH, SELF, GONE, STATE, RUN, STACK, SP, FRAME, ADDRESS, VCPU, PERCPU, TEXT = range(16)


def put(name, flags, *changes):
    with open(os.path.join(DIR, name), "wb") as f:
        f.write(bytes([flags]) + b"".join(struct.pack("<BHH", *c) for c in changes))


def slot(offset, word=0):
    """The place of a member, by its distance from the start of memory."""
    return offset // 64 << 1 | word


def obj(i, member=0, word=0):
    return slot(0x40000 + 0x1000 * i + 64 * member, word)


def main():
    os.makedirs(DIR, exist_ok=True)
    for flags in range(0, 256, 5):
        put("plain-%d" % flags, flags)
    put("owner-in-a-ring", RING | IDLE | OPEN | MOVES, (TASK, obj(4), 2))
    put("list-of-itself", IDLE, (SELF, obj(4, 1), 0), (SELF, obj(5, 2), 0))
    put("list-elsewhere", IDLE, *[(MEMBER, obj(4, k, w), 0x1234) for k in range(3) for w in (0, 1)])
    put("endless-disk", IDLE | OPEN | DISK, (NEGATIVE, obj(12, 1), 0), (NEGATIVE, obj(14), 0))
    put("disk-names", IDLE | OPEN | DISK, (TEXT, obj(10), 0))
    put("disks-in-a-ring", IDLE | DISK, (SELF, obj(9, 2), 0), (SELF, obj(9, 0), 0))
    put("workers-in-a-ring", IDLE | POOL | MOVES, (SELF, obj(6), 0))
    put("gone", IDLE | DISK | POOL, *[(GONE, p, 0) for p in range(64, 90, 3)])
    put("stacks", IDLE, *[(STACK, 0x800 + 77 * i, i) for i in range(6)], *[(SP, 0x4000 + 99 * i, i) for i in range(6)])
    put("addresses", RING, *[(ADDRESS, 0x400, i) for i in range(6)])
    put("states", IDLE | MOVES, *[(STATE, i * 37, i) for i in range(6)], *[(RUN, i * 5, i) for i in range(6)])
    put("frames", MOVES, *[(FRAME, i * 9, i) for i in range(30)], *[(VCPU, i * 9, i) for i in range(12)])
    put("percpu", MOVES, (PERCPU, 7, 0), (PERCPU, 0xFFFF, 1))
    put("clocks", IDLE, *[(HIGH, slot(0x60800 + 64 * k), 0x7FFF) for k in range(4)])
    put("grace-period", IDLE | OPEN | MOVES, (NEGATIVE, obj(0, 1), 5), (HIGH, obj(0), 1))
    put("spinning", MOVES, (SMALL, obj(20), 1))


main()
