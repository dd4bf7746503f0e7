#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_unwind_user.

    tests/fuzz/make-corpus-unwind.py        (from the top of the repository)

Each is a whole stack by one of the ways that there are; nothing is copied from another program.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_unwind_user")
PLACE, PLACES = 64, 8
NO_TABLES, CHANGING, HALF_MAPPED, FRAME_TEXT, CUT = 1, 2, 4, 8, 16
IS_SIGNAL, HAS_RIP, SAVES_RBP, CFA_IS_EXPR = 1, 2, 4, 8
UNDEFINED, SAVED_EXPR = 2, 6
RBP, RSP = 6, 7    # numbers of DWARF
NUMBER = 3         # no address: 0
START = bytes.fromhex("f4")
RETURN = bytes.fromhex("48c7c00f0000000f05")    # mov $15,%rax; syscall


def stack(word):
    return word * 8 << 2


def text(place, at=32):
    return place * PLACE + at << 2 | 1


def code(*places):
    """The bytes at which a call of each place returns; to RETURN none does."""
    return b"".join((b"\xcc" * 30 + (b"\xcc\xcc" if p == RETURN else b"\xff\xd0") + p).ljust(PLACE, b"\xcc")
                    for p in places)


def row(flags, register, cfa, how=0, expression=b"", rip=0, rbp=-16):
    b = struct.pack("<BBBBh", flags, how, len(expression), register, cfa) + expression
    if not flags & HAS_RIP:
        b += struct.pack("b", rip)
    return b + (struct.pack("b", rbp) if flags & SAVES_RBP else b"")


def seed(name, flags, regs, rows, words, places, slices=1):
    b = struct.pack("<4B", flags, len(words), slices, len(rows)) + struct.pack("<6H", *regs)
    b += b"".join(rows) + struct.pack("<%dH" % len(words), *words) + code(*places)
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(b)


def regs(rip, rsp=0, rbp=NUMBER):
    return [rip, stack(rsp), rbp, NUMBER, NUMBER, NUMBER]


def main():
    leave, pop = bytes.fromhex("c9c3"), bytes.fromhex("4883c410c3")    # add $16,%rsp; ret
    # By rbp and by the code: handler, caller, start.
    chain = [NUMBER, stack(4), text(1), NUMBER, NUMBER, text(2), NUMBER]
    seed("code", NO_TABLES, regs(text(0), rbp=stack(1)), [], chain, [leave, pop, START])
    seed("frame-text", NO_TABLES | FRAME_TEXT, regs(text(0), rbp=stack(1)), [], chain, [leave, leave, START])
    # By tables: rsp + 16, rbp saved; then one without a caller. Places take these in turn, and no row twice.
    by_rsp, ends = row(HAS_RIP | SAVES_RBP, RSP, 16), row(0, RSP, 8, UNDEFINED)
    by_rbp = row(HAS_RIP | SAVES_RBP, RBP, 16)
    tables = [stack(4), text(1), NUMBER, NUMBER, NUMBER, text(2)]
    seed("tables", 0, regs(text(0)), [by_rsp, by_rbp, ends], tables, [leave, leave, leave])
    seed("tables-changing", CHANGING | HALF_MAPPED, regs(text(0)), [by_rsp, by_rbp, ends], tables, [leave] * 3)
    seed("tables-cut", CUT, regs(text(0)), [by_rsp, by_rbp, ends], tables, [leave] * 3, slices=2)
    # A signal: by the code that returns from it, by a table of it, and out of what has no caller.
    frame = [NUMBER] * 5 + [NUMBER] * 10 + [stack(30), NUMBER, NUMBER, NUMBER, NUMBER, stack(29), text(2)]
    signal = [NUMBER, text(1)] + frame + [NUMBER] * 5 + [NUMBER, text(3), NUMBER, NUMBER, text(4)]
    places = [leave, RETURN, bytes.fromhex("5dc3"), pop, START]
    seed("signal-code", NO_TABLES, regs(text(0), rbp=stack(0)), [], signal, places)
    seed("signal-there", NO_TABLES, regs(text(1), rsp=2), [], signal, places)
    seed("signal-ends", 0, regs(text(0)), [row(0, RSP, 16, UNDEFINED)], signal, places)
    # DW_OP_breg7 offset: where the kernel has put rsp and rip.
    saved = row(IS_SIGNAL | CFA_IS_EXPR, RSP, 0, SAVED_EXPR, bytes.fromhex("77a00106"))
    seed("signal-table", 0, regs(text(1), rsp=2), [by_rsp, saved, by_rsp], signal, places)
    # Of a function that changes stacks, which this very call has called: call place 0.
    call = bytes.fromhex("e8") + struct.pack("<i", -(PLACE + 32))
    own = bytearray(code(b"\x90" * 32, pop, START))
    own[:32], own[PLACE + 27:PLACE + 32] = b"\x90" * 32, call
    seed("own-call", 0, regs(text(0)), [ends], [text(1), NUMBER, NUMBER, text(2)], [])
    with open(os.path.join(TOP, "own-call"), "ab") as f:
        f.write(own)


main()
