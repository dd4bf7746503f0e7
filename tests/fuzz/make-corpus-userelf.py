#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_userelf.

    tests/fuzz/make-corpus-userelf.py        (from the top of the repository)

Everything is made here, byte by byte. An input is 8 bytes that say which pages
are missing, and a file.
"""
import lzma
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_userelf")
TEXT = 0x1000
NOTE = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
NAMES = ["", ".text", ".shstrtab", ".symtab", ".strtab", ".dynsym", ".dynstr", ".rela.plt",
         ".plt.sec", ".gnu_debugdata"]


def put(name, data, missing=0):
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(struct.pack("<Q", missing) + data)


def elf(sections=True, symbols=True, debugdata=None, gnu_hash=True, pad=0):
    shstr = b"".join(n.encode() + b"\0" for n in NAMES)
    strtab = b"\0main\0work@@V1\0label\0puts\0"
    syms = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", n, i, 0, 1, a, s)
        for n, i, a, s in [(1, 0x12, TEXT, 16), (6, 0x02, TEXT + 16, 16), (15, 0, TEXT + 32, 0)])
    dyn = bytes(24) + struct.pack("<IBBHQQ", 21, 0x12, 0, 0, 0, 0) + \
        struct.pack("<IBBHQQ", 1, 0x1A, 0, 1, TEXT, 16)
    plt = bytes.fromhex("f30f1efaf2ff25") + struct.pack("<i", 0x3000 - (TEXT + 64 + 11)) + bytes(5)
    rela = struct.pack("<QQq", 0x3000, 1 << 32 | 7, 0) + struct.pack("<QQq", 0x3008, 37, TEXT)
    body = bytearray(64 + 56 * 4)

    def add(b):
        body.extend(bytes(-len(body) % 16))
        at = len(body)
        body.extend(b)
        return at

    text = add(b"\x90" * 64 + plt)
    body.extend(bytes(pad))
    n, sh, st, sy, ds, re = add(NOTE), add(shstr), add(strtab), add(syms), add(dyn), add(rela)
    base = 0x10000      # the second segment: the file from its start
    table = struct.pack("<IIII", 1, 2, 1, 6) + bytes(8) + struct.pack("<II", 2, 1) if gnu_hash \
        else struct.pack("<III", 1, 3, 0)
    ha = add(table)
    tags = [(0x6FFFFEF5 if gnu_hash else 4, base + ha), (5, base + st), (6, base + ds),
            (10, len(strtab)), (11, 24), (0, 0)]
    dy = add(b"".join(struct.pack("<QQ", *t) for t in tags))
    dd = add(lzma.compress(debugdata)) if debugdata else 0
    dd_len = len(body) - dd if debugdata else 0

    def shdr(name, typ, flags, addr, at, size, link=0, ent=0):
        i = sum(len(x) + 1 for x in NAMES[:NAMES.index(name)])
        return struct.pack("<IIQQQQIIQQ", i, typ, flags, addr, at, size, link, 0, 1, ent)

    table = bytes(64) + shdr(".text", 1, 6, TEXT, text, 64) + shdr(".shstrtab", 3, 0, 0, sh, len(shstr))
    table += shdr(".strtab", 3, 0, 0, st, len(strtab))
    if symbols:
        table += shdr(".symtab", 2, 0, 0, sy, len(syms), 3, 24)
    table += shdr(".dynsym", 11, 2, base + ds, ds, len(dyn), 3, 24)
    table += shdr(".rela.plt", 4, 2, base + re, re, len(rela), 0, 24)
    table += shdr(".plt.sec", 1, 6, TEXT + 64, text + 64, len(plt), 0, 16)
    if debugdata:
        table += shdr(".gnu_debugdata", 1, 0, 0, dd, dd_len)
    shoff = add(table) if sections else 0
    size = len(body)
    body[:64] = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, TEXT, 64, shoff, 0, 64, 56, 4, 64,
        len(table) // 64 if sections else 0, 2 if sections else 0)
    ph = struct.pack("<IIQQQQQQ", 1, 5, text, TEXT, TEXT, 64 + len(plt), 0x1000, 16)
    ph += struct.pack("<IIQQQQQQ", 1, 4, 0, base, base, size, size, 16)
    ph += struct.pack("<IIQQQQQQ", 4, 4, n, base + n, 0, len(NOTE), len(NOTE), 4)
    ph += struct.pack("<IIQQQQQQ", 2, 4, dy, base + dy, 0, 96, 96, 8)
    return bytes(body[:64]) + ph + bytes(body[64 + len(ph):])


def main():
    put("full", elf())
    put("stripped", elf(symbols=False))
    put("no-sections-gnu-hash", elf(sections=False))
    put("no-sections-hash", elf(sections=False, gnu_hash=False))
    put("debugdata", elf(symbols=False, debugdata=elf()))
    put("debugdata-damaged", elf(symbols=False, debugdata=elf())[:-40])
    put("hole-in-text", elf(pad=8192), 2)
    put("hole-in-tables", elf(pad=4096), 2)
    put("no-first-page", elf(), 1)
    put("elf32", b"\x7fELF\x01\x01\x01" + bytes(60))
    put("short", b"\x7fELF")


main()
