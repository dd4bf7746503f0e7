#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes tests/fuzz/corpus/fuzz_memop and fuzz_memref: instructions of the table in
tests/unit/symbolizer/core/test_memop.c, 15 bytes each, and RAW fields with as many operands as there can be.

    tests/fuzz/make-corpus-memop.py
"""

import os
import re
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "unit", "symbolizer", "core", "test_memop.c")


def put(target, name, data):
    directory = os.path.join(HERE, "corpus", target)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def instructions():
    with open(TABLE) as f:
        text = f.read()
    rows = re.findall(r'ROW\("[^"]*",\s*"((?:\\x[0-9a-f]{2})+)"', text)
    more = ["\\xc4\\xe2\\x6d\\x90\\x04\\x8f", "\\x62\\xf2\\x7d\\x49\\xa0\\x04\\x8f", "\\xc7\\x05\\x34\\x12",
            "\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x66\\x90",
            "\\xf0\\xf3\\x64\\x67\\x66\\x48\\xa5", "\\xc8\\x10\\x00\\x1f", "\\x06"]
    return [bytes(int(x, 16) for x in re.findall(r"\\x(..)", r)) for r in rows + more]


def ref(va, shift, access, region, status=0, host=0, flags=0):
    return struct.pack("<QQHhBBBBBBB5x", va, va & 0xffffff, 8, 0, access, region, status, shift, 12, host, flags)


def raw(why, refs, version=1, size=32):
    return struct.pack("<IBBBBI", 0x4d454d4b, version, why, len(refs) - 1, size, 0) + b"".join(refs)


code = instructions()
assert len(code) > 100
for at in range(0, len(code), 16):
    put("fuzz_memop", "insns-%d" % (at // 16), b"".join(c.ljust(15, b"\x90") for c in code[at:at + 16]))
put("fuzz_memop", "cut", code[5][:3])
put("fuzz_memref", "none", raw(1, [ref(0x401000, 12, 0, 12)]))
put("fuzz_memref", "four", raw(0, [ref(0xffffffff81000000, 21, 0, 1)] +
                               [ref(0xffff888000001000 * (i + 1) % 2**64, 30, i % 4, i, i % 4, i % 5, i) for i in range(4)]))
put("fuzz_memref", "longer-refs", raw(0, [ref(1 << 40, 30, 0, 16) + b"\xff" * 8] * 2, size=40))
put("fuzz_memref", "cut", raw(0, [ref(0x401000, 12, 0, 12)] * 2)[:-1])
put("fuzz_memref", "other-version", raw(0, [ref(0x401000, 12, 0, 12)], version=2))
