#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What drivers of a virtio disk do, good and bad ones, for fuzz_virtio_blk:
make-corpus-blk.py [DIR]"""

import os
import random
import struct
import sys

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                        "corpus", "fuzz_virtio_blk")
DESC, DATA_DESC, PUT, HEADER, AVAIL, NOTIFY, DATA, CONFIG, STATUS, DRAIN = range(10)
IN, OUT_T, FLUSH, GET_ID, DISCARD, ZEROES = 0, 1, 4, 8, 11, 13
NEXT, WRITE, INDIRECT = 1, 2, 4


def step(what, q=0, a=0, b=0, c=0):
    return struct.pack("<BBHIQ", what, q, a & 0xffff, b & 0xffffffff, c & (1 << 64) - 1)


def put(k, kind, sector, sectors, q=0):
    return step(PUT, q, k | sectors << 4, kind, sector)


def notify(q=0):
    return step(NOTIFY, q, q)


def desc(i, addr, length, flags, q=0):
    """Flags in the upper byte of a; the next one follows from a, too."""
    return step(DESC, q, i | flags << 8, length, addr)


def segment(sector, sectors, flags=0, at=0):
    return step(DATA, 0, at, 0, sector) + step(DATA, 0, at + 8, 0, sectors | flags << 32)


rng = random.Random(6)
FILES = {
    "read-write": b"".join(put(k, OUT_T if k % 2 else IN, 8 * k, 4, k % 2) + notify(k % 2)
                           for k in range(16)) + step(DRAIN),
    "batch": b"".join(put(k, OUT_T, k, 2) for k in range(16)) + notify() + put(0, FLUSH, 0, 0) +
             notify(),
    "past-the-end": put(0, IN, 256, 1) + put(1, OUT_T, 255, 2) + put(2, IN, 255, 1) + notify(),
    "types": b"".join(put(k, k, 0, 1) for k in range(16)) + notify(),
    "get-id": put(0, GET_ID, 0, 1) + put(1, GET_ID, 0, 0) + notify(),
    "discard": segment(8, 8) + segment(100, 1 << 22, 0, 16) + step(STATUS, 0, 1 | 1 << 4, 3) +
               notify() + step(STATUS, 0, 1 | 2 << 4, 3) + notify(),
    "zeroes": segment(8, 8, 1) + put(0, ZEROES, 0, 0) + notify(),
    "short-header": put(0, IN, 0, 1) + desc(0, 0x16000, 3, NEXT) + notify(),
    "loop": put(0, IN, 0, 1) + step(DATA_DESC, 0, 1 | NEXT << 8, 64, 0) +
            step(DATA_DESC, 0, 2 | NEXT << 8, 64, 0) + desc(3, 0x200000, 64, NEXT) + notify(),
    "outside": put(0, IN, 0, 1) + desc(1, 0xffffffff0000, 512, NEXT | WRITE) + notify(),
    "wraps": put(0, IN, 0, 1) + desc(1, (1 << 64) - 8, 4096, NEXT | WRITE) + notify(),
    "onto-itself": put(0, IN, 0, 1) + desc(1, 0x10000, 512, NEXT | WRITE) + notify() + notify(),
    "indirect": put(0, IN, 0, 1) + desc(0, 0x200000, 32, INDIRECT) + notify(),
    "index-jumps": put(0, IN, 0, 1) + step(AVAIL, 0, 0, 0, 0x8000) + notify() + notify(1),
    "config": b"".join(step(CONFIG, 0, a, a, 0xffffffffffffffff) for a in range(0, 70, 3)),
    "resets": put(0, IN, 0, 64) + notify() + step(STATUS, 0, 4, 0) + notify() +
              step(STATUS, 0, 4, 15) + notify(),
    "random": b"".join(rng.randbytes(16) for _ in range(200)),
}
os.makedirs(OUT, exist_ok=True)
for name, data in FILES.items():
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
