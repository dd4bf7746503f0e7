#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_sframe.

    tests/fuzz/make-corpus-sframe.py        (from the top of the repository)

Everything is made here: sections of each version as assemblers and linkers write them, and such that lie.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_sframe")
BASE, CODE = 0x10000, 0x11000
ENTRY = {1: 17, 2: 20, 3: 16}
RSP, RBP = 1, 0


def row(at, by, *words, begin="B", word="b"):
    return struct.pack("<" + begin + "B", at, by | len(words) << 1 | "bhi".index(word.lower()) << 5) + struct.pack(
        "<%d%s" % (len(words), word), *words)


FRAMED = [row(0, RSP, 8), row(1, RSP, 16, -16), row(4, RBP, 16, -16), row(31, RSP, 8)]
LARGE = [row(0, RSP, 8, begin="H"), row(0x234, RSP, 0x410, -16, begin="H", word="h"),
         row(0x400, RBP, 0x20000, -0x20010, begin="H", word="i")]
PLT = [row(0, RSP, 8), row(11, RSP, 16)]
# Control words: a register's number from bit 3 on, 2: what is saved there, 1: by a register.
DRAP = [row(0, RSP, 10 << 3 | 1, 0), row(8, RSP, 6 << 3 | 3, -8, 0, 6 << 3 | 3, 0),
        row(16, RSP, 7 << 3 | 1, 8, 1 << 3 | 1, 0, 2, 16)]
FUNCS = [(CODE, 32, 0, 0, FRAMED), (CODE + 32, 0x1000, 1, 0, LARGE), (CODE + 0x2000, 64, 0x10, 0, PLT)]


def section(version, flags, of_code, **lies):
    table, rows, count = b"", b"", 0
    for i, (start, size, form, kind, of) in enumerate(of_code):
        at = 28 + i * ENTRY[version]
        off = start - BASE - (at if flags & 4 else 0)
        if version == 3:
            table += struct.pack("<qII", off, size, len(rows))
            rows += struct.pack("<HBBB", len(of), form, kind, 16)
        else:
            table += struct.pack("<iIIIB", off, size, len(rows), len(of), form) + (b"\x10\0\0" if version == 2 else b"")
        rows += b"".join(of)
        count += len(of)
    head = {"magic": 0xDEE2, "abi": 3, "rbp": 0, "rip": -8, "more": 0, "funcs": len(of_code), "rows": count,
            "bytes": len(rows), "table": 0, "from": len(table), **lies}
    return struct.pack("<HBBBbbBIIIII", head["magic"], version, flags, *[head[k] for k in (
        "abi", "rbp", "rip", "more", "funcs", "rows", "bytes", "table", "from")]) + table + rows


def bad(form=0, size=32, rows=None, kind=0):
    return [(CODE, size, form, kind, FRAMED if rows is None else rows)]


SEEDS = {"flags-%d-version-%d" % (f, v): section(v, f, FUNCS) for v in (1, 2, 3) for f in (0, 1, 5)}
SEEDS.update({
    "backwards": section(2, 0, FUNCS[::-1]),
    "not-sorted": section(2, 1, FUNCS[::-1]),
    "overlap": section(2, 1, [FUNCS[0], (CODE + 4, 8, 0, 0, PLT), FUNCS[2]]),
    "empty": section(2, 1, [(CODE, 0, 0, 0, PLT)] * 5 + FUNCS),
    "no-functions": section(2, 0, []),
    "no-caller": section(2, 1, bad(rows=[row(0, RSP)])),
    "no-caller-1": section(1, 1, bad(rows=[row(0, RSP)])),
    "flexible": section(3, 5, bad(kind=1, rows=DRAP)),
    "signal": section(3, 5, bad(form=0x80, kind=1, rows=[
        row(0, RSP, 7 << 3 | 3, 160, 7 << 3 | 3, 168, 7 << 3 | 3, 120, word="h")])),
    "flexible-short": section(3, 5, bad(kind=1, rows=[row(0, RSP, 7 << 3 | 1)])),
    "fixed-rbp": section(2, 1, FUNCS, rbp=-16),
    "more-header": section(2, 1, FUNCS, more=8, table=0),
    "many": section(2, 1, FUNCS, funcs=1 << 22),
    "many-not-sorted": section(2, 0, FUNCS, funcs=1 << 20),
    "other-machine": section(2, 1, FUNCS, abi=2),
    "version-4": section(2, 1, FUNCS).replace(b"\xe2\xde\2", b"\xe2\xde\4"),
    "big-endian": section(2, 1, FUNCS, magic=0xE2DE),
    "beyond": section(2, 1, FUNCS, **{"from": 0xFFFFFFF0}),
    "rows-back": section(2, 1, bad(rows=FRAMED[::-1])),
    "begin-size": section(2, 1, bad(form=3)),
    "word-size": section(2, 1, bad(rows=[b"\0\x63" + b"\x08" * 8])),
    "words": section(2, 1, bad(rows=[row(0, RSP, *range(15))])),
    "end-of-memory": section(3, 1, [(BASE - 16, 32, 0, 0, FRAMED)]),
})

os.makedirs(TOP, exist_ok=True)
for seed, data in SEEDS.items():
    with open(os.path.join(TOP, seed), "wb") as f:
        f.write(struct.pack("<QB", CODE, 0) + data)
with open(os.path.join(TOP, "short"), "wb") as f:
    f.write(struct.pack("<QB", CODE + 0x2000, 6) + SEEDS["flags-1-version-2"])
