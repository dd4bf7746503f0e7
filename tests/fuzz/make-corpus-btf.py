#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_btf.

    tests/fuzz/make-corpus-btf.py        (from the top of the repository)

One BTF with every kind of type, the same with each record's info word changed, headers that lie,
and types that hold themselves.
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_btf")
(INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR,
 DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64) = range(1, 20)


class Btf:
    def __init__(self):
        self.types, self.strings = [], b"\0"

    def name(self, s):
        if not s:
            return 0
        at = len(self.strings)
        self.strings += s.encode() + b"\0"
        return at

    def add(self, kind, name, size_or_type, *items, flag=0, vlen=None):
        """items: tuples of numbers, a string stands for its offset."""
        words = [w if isinstance(w, int) else self.name(w) for item in items for w in item]
        vlen = len(items) if vlen is None else vlen
        head = struct.pack("<III", self.name(name), vlen | kind << 24 | flag << 31, size_or_type)
        self.types.append(head + struct.pack("<%dI" % len(words), *words))
        return len(self.types)

    def bytes(self, **lies):
        types = b"".join(self.types)
        h = dict(magic=0xeb9f, version=1, flags=0, hdr=24, type_off=0, type_len=len(types),
                 str_off=len(types), str_len=len(self.strings))
        h.update(lies)
        return struct.pack("<HBBIIIII", *h.values()) + types + self.strings


def kernel():
    b = Btf()
    b.add(INT, "int", 4, (32,), vlen=0)
    b.add(INT, "bits", 4, (3 | 2 << 16,), vlen=0)
    b.add(PTR, "", 4)
    b.add(STRUCT, "list", 16, ("next", 3, 0), ("prev", 3, 64))
    b.add(ARRAY, "", 0, (4, 1, 3), vlen=0)
    b.add(UNION, "", 8, ("number", 1, 0), ("old", 2, 32))
    b.add(STRUCT, "task", 64, ("lists", 5, 0), ("", 6, 3 * 128), ("low", 1, 3 << 24 | 450), flag=1)
    for kind in (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG):
        b.add(kind, "name%d" % kind if kind in (TYPEDEF, TYPE_TAG) else "", len(b.types))
    b.add(STRUCT, "task", 64, ("other", len(b.types), 0))
    b.add(ENUM, "sign", 4, ("MINUS", 0xffffffff), ("PLUS", 1), flag=1)
    b.add(ENUM64, "wide", 8, ("WIDE", 1, 2))
    b.add(FWD, "unknown", 0)
    b.add(FLOAT, "double", 8)
    b.add(FUNC_PROTO, "", 1, ("argument", 1))
    b.add(FUNC, "function", len(b.types), vlen=1)
    b.add(VAR, "variable", 1, (1,), vlen=0)
    b.add(DATASEC, ".data", 4, (len(b.types), 0, 4))
    b.add(DECL_TAG, "tag", 4, (0xffffffff,), vlen=0)
    return b


def put(name, data):
    os.makedirs(TOP, exist_ok=True)
    with open(os.path.join(TOP, name), "wb") as f:
        f.write(data)


def main():
    put("kernel", kernel().bytes())
    for name, lies in (("big-endian", {"magic": 0x9feb}), ("version", {"version": 2}),
                       ("header-long", {"hdr": 0xfffffff0}), ("types-long", {"type_len": 0xffffffff}),
                       ("strings-long", {"str_len": 0xffffffff}), ("strings-none", {"str_len": 0}),
                       ("types-odd", {"type_off": 2}), ("module", {"str_off": 0})):
        put(name, kernel().bytes(**lies))
    count = len(kernel().types)
    for i in range(count):
        b = kernel()
        t = bytearray(b.types[i])
        t[4] += 1
        b.types[i] = bytes(t)
        put("one-more-%02d" % i, b.bytes())
        t[4] -= 1
        t[8:12] = struct.pack("<I", count + 1)
        b.types[i] = bytes(t)
        put("refers-beyond-%02d" % i, b.bytes())
    for name, kind in (("holds-itself-struct", STRUCT), ("holds-itself-union", UNION)):
        b = Btf()
        b.add(kind, "x", 8, ("x", 1, 0), ("", 1, 0))
        put(name, b.bytes())
    b = Btf()
    b.add(TYPEDEF, "x", 2)
    b.add(CONST, "", 1)
    put("holds-itself-typedef", b.bytes())
    b = Btf()
    for i in range(63):
        b.add(STRUCT, "nest", 4, ("", i, 0), ("", i, 0))
    put("deep", b.bytes())
    b = Btf()
    b.add(INT, "int", 4, (32,), vlen=0)
    b.add(ARRAY, "", 0, (1, 1, 0xffffffff), vlen=0)
    b.add(ARRAY, "", 0, (2, 1, 0xffffffff), vlen=0)
    b.add(STRUCT, "huge", 4, ("all", 3, 0))
    put("huge", b.bytes())
    put("empty", b"")


main()
