#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes tests/fuzz/corpus/fuzz_serve: requests for guest memory at and beyond its borders, and orders whose first bytes are
set; vmm/attach/serve.h has the layouts, and the target fills an order that is too short with zeros.

    tests/fuzz/make-corpus-serve.py
"""

import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST, FIRST_SIZE, SECOND, MAX = 0x10000, 0x20000, 0xfffffffffff00000, 65536


def put(name, data):
    directory = os.path.join(HERE, "corpus", "fuzz_serve")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def memory(name, length, host):
    put("memory-" + name, b"\0" + struct.pack("<IIQ", 7, length, host))


def order(name, op, rest=b""):
    put("order-" + name, b"\1" + struct.pack("<II", op, 3) + rest)


memory("page", 4096, FIRST)
memory("most", MAX, FIRST + MAX)
memory("absent", 8, FIRST + 1)
memory("before", 1, FIRST - 1)
memory("across-end", 2, FIRST + FIRST_SIZE - 1)
memory("zero", 0, FIRST)
memory("too-long", MAX + 1, FIRST)
memory("wraps", MAX, 2**64 - 1)
memory("top", MAX, SECOND + 0x70000)
put("memory-short", b"\0" + bytes(15))
put("memory-long", b"\0" + bytes(17))
for i in range(13):
    order("op-%d" % i, i)
order("control", 6, struct.pack("<QQIBB", 3, 1000000, 4096, 1, 1))
order("control-fast", 6, struct.pack("<QQIBB", 3, 1, 4096, 1, 1))
order("control-deep", 6, struct.pack("<QQIBB", 3, 1000000, 2**32 - 8, 1, 1))
order("control-bool", 6, struct.pack("<QQIBB", 3, 1000000, 4096, 2, 1))
for op in (8, 9, 10):
    order("ones-%d" % op, op, b"\xff" * 400)
    order("small-%d" % op, op, b"\1\0\0\0" * 100)
