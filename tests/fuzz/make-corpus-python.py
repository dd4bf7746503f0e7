#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_python.

    tests/fuzz/make-corpus-python.py        (from the top of the repository)

Everything is made here: the memory of a program with one interpreter, one thread and one frame, as
CPython 3.11, 3.12 and 3.13 lay it out, and such that lie.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_python")
BASE, FS = 0x10000, 0x7F0000001000
CODE = 0x900
LINES = bytes([0x80 | 10 << 3 | 1, 0, 3, 0x80 | 13 << 3 | 2, 10])

FORMS = {
    "3.11": dict(interp=40, threads=16, tid=152, current=56, cframe=8, code=32, previous=48, instr=56,
                 owner=69, first=72, start=184, ascii=48),
    "3.12": dict(interp=40, threads=72, tid=136, current=56, cframe=0, code=0, previous=8, instr=56,
                 owner=70, first=68, start=192, ascii=40),
    "3.13": dict(interp=632, threads=344, tid=152, current=72, cframe=None, code=0, previous=8, instr=56,
                 owner=70, first=68, start=200, ascii=40),
}
# Words of struct _Py_DebugOffsets, by their number.
OFFSETS = {5: "interp", 9: "threads", 21: 8, 22: 16, 23: "current", 24: "tid", 26: 232, 29: "previous",
           30: "code", 31: "instr", 32: 72, 33: "owner", 35: 112, 37: 128, 38: 136, 39: "first", 43: "start",
           45: 8, 47: 24, 65: 16, 66: 32, 67: 64, 68: 32, 69: 16, 70: "ascii"}


def memory(form, kind=1, length=None, loop=False):
    f = FORMS[form]
    m = bytearray(0x1000)

    def put(at, v, size="Q"):
        struct.pack_into("<" + size, m, at, v)

    def string(at, text):
        put(at + 8, BASE + 0xE00)
        put(at + 16, len(text) if length is None else length)
        put(at + 32, kind << 2 | 0x60, "I")
        m[at + f["ascii"]:at + f["ascii"] + len(text)] = text

    if form == "3.13":
        m[0:8] = b"xdebugpy"
        for i, v in OFFSETS.items():
            put(8 * i, f[v] if isinstance(v, str) else v)
    put(f["interp"], BASE + 0x400)
    put(0x400 + f["threads"], BASE + 0x600)
    put(0x600 + 8, BASE + 0x600 if loop else 0)
    put(0x600 + 16, BASE + 0x400)
    put(0x600 + f["tid"], FS)
    put(0x600 + f["current"], BASE + (0x800 if f["cframe"] is None else 0x7C0))
    if f["cframe"] is not None:
        put(0x7C0 + f["cframe"], BASE + 0x800)
    put(0x800 + f["code"], BASE + CODE)
    put(0x800 + f["instr"], BASE + CODE + f["start"] + 4)
    put(CODE + 8, BASE + 0xE80)
    put(CODE + f["first"], 7, "I")
    put(CODE + 112, BASE + 0xB00)
    put(CODE + 128, BASE + 0xC00)
    put(CODE + 136, BASE + 0xD00)
    string(0xB00, b"a.py")
    string(0xC00, b"fib")
    put(0xD00 + 8, BASE + 0xF00)
    put(0xD00 + 16, len(LINES))
    m[0xD20:0xD20 + len(LINES)] = LINES
    for at, name in ((0xE00, b"str"), (0xE80, b"code"), (0xF00, b"bytes")):
        put(at + 24, BASE + at + 0x40)
        m[at + 0x40:at + 0x40 + len(name)] = name
    return bytes(m)


SEEDS = {form: (CODE, memory(form)) for form in FORMS}
SEEDS.update({
    "wide": (CODE, memory("3.12", kind=4)),
    "long": (CODE, memory("3.12", length=1 << 40)),
    "threads-loop": (CODE, memory("3.11", loop=True)),
    "lines": (0, LINES * 20),
    "lines-endless": (0, bytes([0xE8]) + b"\x7f" * 100),
    "short": (CODE, memory("3.13")[:0x820]),
})
os.makedirs(TOP, exist_ok=True)
for name, (off, data) in SEEDS.items():
    fs = FS + (1 if "loop" in name else 0)
    with open(os.path.join(TOP, name), "wb") as out:
        out.write(struct.pack("<QH", fs, off) + data)
