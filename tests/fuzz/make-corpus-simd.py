#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_simd_form: each opcode of the maps that SSE and AVX have, by
each mandatory prefix, with a register and with two forms of memory, 15 bytes for each."""

import itertools
import os

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_simd_form")
# register; [rip + disp32]; gs: [rax + 4 * rcx + disp8] with REX or VEX bits set where there are any
OPERANDS = [(b"", b"\xc1"), (b"", b"\x05\x10\x00\x00\x00"), (b"\x65", b"\x44\x88\x20"),
            (b"", b"\x1c\x25\x00\x01\x00\x00")]
PREFIXES = [b"", b"\x66", b"\xf3", b"\xf2"]
MAPS = [b"\x0f", b"\x0f\x38", b"\x0f\x3a"]


def legacy():
    for which, escape in enumerate(MAPS):
        out = b""
        for prefix, op, (segment, rm) in itertools.product(PREFIXES, range(256), OPERANDS):
            if op % 4 == len(rm) % 4 or not rm[1:]:
                insn = segment + prefix + b"\x47" * (op % 2) + escape + bytes([op]) + rm
                out += (insn + b"\x07").ljust(15, b"\x90")
        yield "legacy-%d" % which, out


def vex():
    for m in (1, 2, 3):
        out = b""
        for pp, op, (segment, rm) in itertools.product(range(4), range(256), OPERANDS):
            if op % 4 == len(rm) % 4 or not rm[1:]:
                head = bytes([0xc4, 0xe0 ^ (op % 8 << 5) | m, (op % 2) << 7 | 0x68 | pp])
                out += (segment + head + bytes([op]) + rm + b"\x07").ljust(15, b"\x90")
        yield "vex-%d" % m, out


os.makedirs(OUT, exist_ok=True)
for name, data in itertools.chain(legacy(), vex()):
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
with open(os.path.join(OUT, "cut"), "wb") as f:
    f.write(b"\x66\x0f\x3a\x44")
