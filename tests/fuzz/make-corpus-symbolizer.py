#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_kimage, fuzz_symfile and fuzz_unwind.

    tests/fuzz/make-corpus-symbolizer.py        (from the top of the repository)

Everything is made here, byte by byte; nothing is copied from another program.
The inputs called *offset-without-bytes were found by fuzzing and are kept as
they were: a segment with no bytes in the file, at an offset beyond its end.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
TEXT = 0xFFFFFFFF81000000
FUNC = bytes.fromhex("55 48 89 e5 e8 07 00 00 00 5d c3 90 90 90 90 90")
BANNER = b"Linux version 6.1.0 (seed) #1 SMP\n\0"
NOTE = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))


def put(target, name, data):
    d = os.path.join(TOP, target)
    os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, name), "wb") as f:
        f.write(data)


def elf(symbols=True, note=True, orc=False, sections=True):
    text = FUNC * 16
    names = ["", ".text", ".shstrtab", ".symtab", ".strtab", ".notes", ".orc_unwind"]
    shstr = b"".join(n.encode() + b"\0" for n in names)
    strtab = b"\0_text\0f\0_end\0"
    syms = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", n, i, 0, 1, a, s)
        for n, i, a, s in [(1, 0x10, TEXT, 0), (7, 0x12, TEXT + 16, 16), (9, 0x10, TEXT + 4096, 0)])
    phnum = 3 if note else 2
    body, off = b"", 64 + 56 * phnum

    def add(b):
        nonlocal body
        at = off + len(body)
        body += b + bytes(-len(b) % 8)
        return at

    t, r, n = add(text), add(BANNER), add(NOTE)
    sh, st, sy = add(shstr), add(strtab), add(syms)
    ph = struct.pack("<IIQQQQQQ", 1, 5, t, TEXT, 0x1000000, len(text), len(text), 4096)
    ph += struct.pack("<IIQQQQQQ", 1, 6, r, TEXT + 0x400, 0x1000400, len(BANNER), 0xC00, 4096)
    if note:
        ph += struct.pack("<IIQQQQQQ", 4, 4, n, 0, 0, len(NOTE), len(NOTE), 4)

    def shdr(i, typ, flags, addr, at, size, link=0, ent=0):
        name = sum(len(x) + 1 for x in names[:i])
        return struct.pack("<IIQQQQIIQQ", name, typ, flags, addr, at, size, link, 0, 1, ent)

    table = bytes(64) + shdr(1, 1, 6, TEXT, t, len(text)) + shdr(2, 3, 0, 0, sh, len(shstr))
    if symbols:
        table += shdr(3, 2, 0, 0, sy, len(syms), 4, 24) + shdr(4, 3, 0, 0, st, len(strtab))
    if note:
        table += shdr(5, 7, 2, 0, n, len(NOTE))
    if orc:
        table += shdr(6, 1, 2, 0, r, 4)
    shoff = add(table) if sections else 0
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, shoff, 0, 64, 56, phnum,
        64 if sections else 0, len(table) // 64 if sections else 0, 2 if sections else 0)
    return head + ph + body


def unwind_seed(flags, regs, symbols, words, text, slices=1):
    b = struct.pack("<BBBB4x", flags, len(symbols), len(words), slices)
    b += struct.pack("<4H", *regs)
    for a, s in symbols if flags & 4 else []:
        b += struct.pack("<HB", a, s)
    return b + struct.pack("<%dH" % len(words), *words) + text


def stack_at(off):
    return off << 2


def text_at(off):
    return off << 2 | 1


def main():
    for name, kw in [("full", {}), ("stripped", {"symbols": False}), ("orc", {"orc": True}),
                     ("no-sections", {"sections": False}),
                     ("no-id", {"note": False})]:
        put("fuzz_kimage", name, elf(**kw))
        put("fuzz_symfile", "elf-" + name, elf(**kw))
    put("fuzz_kimage", "cut", elf()[:200])
    put("fuzz_symfile", "system-map", b"".join(
        b"%016x T f%d\n" % (TEXT + 16 * i, i) for i in range(16)) +
        b"%016x R linux_banner\n%016x T _text\n%016x B _end\n" % (TEXT + 256, TEXT, TEXT + 4096))
    put("fuzz_symfile", "kallsyms", b"0000000000000000 A zero\n%016x t init_one\t[e1000]\r\n" % TEXT)
    put("fuzz_symfile", "hidden", b"0000000000000000 T a\n0000000000000000 T b\n")
    put("fuzz_symfile", "nm-s", b"                 U undefined\n%016x 0000000000000010 T a(int, long)\n" % TEXT)
    put("fuzz_symfile", "placeholder", b"ffffffffffffffff B The real System.map is in the x-dbg package\n")
    put("fuzz_symfile", "garbage", b"hello world\n\0\xff")
    chain = [text_at(9), stack_at(32), text_at(25), stack_at(48), text_at(41), 3, text_at(57), 3]
    funcs = [(16 * i, 16) for i in range(8)]
    regs = (text_at(5), stack_at(0), stack_at(16), 3)
    words = [0, 0] + [stack_at(32), text_at(25), stack_at(48), text_at(41), 3, text_at(57)]
    put("fuzz_unwind", "chain", unwind_seed(4 | 128, regs, funcs, words, FUNC * 8))
    put("fuzz_unwind", "search", unwind_seed(2 | 4 | 128, regs, funcs, words, FUNC * 8))
    put("fuzz_unwind", "no-symbols", unwind_seed(128, regs, [], words, FUNC * 8))
    put("fuzz_unwind", "entry", unwind_seed(4 | 128, (text_at(16),) + regs[1:], funcs, chain, FUNC * 8))
    put("fuzz_unwind", "user", unwind_seed(1 | 16 | 128, regs, [], words, FUNC * 8))
    put("fuzz_unwind", "pt-regs", unwind_seed(4 | 128, (text_at(5), stack_at(0), stack_at(1) | 2, 3), funcs,
                                               [text_at(21)] * 40, FUNC * 8))
    iret = bytes.fromhex("50 55 e8 00 00 00 00 5d 58 48 cf 90 90 90 90 90")
    put("fuzz_unwind", "iret", unwind_seed(4 | 128, (text_at(5), stack_at(0), stack_at(16), 3),
                                            [(0, 16)], [text_at(5), 3, stack_at(64), 3] * 10, iret))


main()
