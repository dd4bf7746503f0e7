#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes tests/fuzz/corpus/fuzz_p9: sessions of 9P2000.L as a guest has them, and worse ones.

    make-corpus-p9.py [DIRECTORY]
"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def s(text):
    raw = text.encode()
    return struct.pack("<H", len(raw)) + raw


def d(*values):
    return struct.pack("<%dI" % len(values), *values)


def q(*values):
    return struct.pack("<%dQ" % len(values), *values)


def message(kind, body=b"", size=None):
    return struct.pack("<IBH", len(body) + 7 if size is None else size, kind, 1) + body


def walk(fid, new, *names):
    return message(110, d(fid, new) + struct.pack("<H", len(names)) + b"".join(map(s, names)))


BEGIN = message(100, d(8192) + s("9P2000.L")) + message(104, d(0, 0xFFFFFFFF) + s("root") + s("") + d(0))

SESSIONS = {
    "read": walk(0, 1, "f") + message(24, d(1) + q(0x7FF)) + message(12, d(1, 0))
    + message(116, d(1) + q(0) + d(100)) + message(120, d(1)),
    "write": walk(0, 1, "f") + message(12, d(1, 2)) + message(118, d(1) + q(3) + d(4) + b"abcd")
    + message(50, d(1, 0)) + message(26, d(1, 0x1F9, 0o644, 0, 0) + q(2, 0, 0, 0, 0)),
    "list": walk(0, 1) + message(12, d(1, 0)) + message(40, d(1) + q(0) + d(4096))
    + message(40, d(1) + q(3) + d(30)) + message(8, d(1)),
    "make": walk(0, 1, "d") + message(14, d(1) + s("n") + d(0o102, 0o644, 0))
    + message(72, d(0) + s("m") + d(0o755, 0)) + message(16, d(0) + s("s") + s("../secret") + d(0))
    + message(74, d(0) + s("f") + d(0) + s("g")) + message(76, d(0) + s("m") + d(0x200))
    + message(52, d(1) + b"\1" + d(0) + q(0, 0) + d(1) + s("x"))
    + message(54, d(1) + b"\1" + q(0, 0) + d(1) + s("x")),
    "escape": walk(0, 1, "..", "secret") + walk(0, 2, "l") + message(12, d(2, 0)) + message(22, d(2))
    + walk(0, 3, "u") + walk(3, 4, "secret") + walk(0, 5, "u", "secret") + walk(0, 6, "../secret")
    + message(14, d(0) + s("l") + d(0o1102, 0o644, 0)) + message(74, d(3) + s("also") + d(0) + s("x"))
    + message(76, d(3) + s("secret") + d(0)) + message(26, d(2, 8, 0, 0, 0) + q(0, 0, 0, 0, 0)),
    "lengths": message(116, d(0) + q(2**64 - 1) + d(0xFFFFFFFF)) + message(118, d(0) + q(0) + d(0xFFFFFFFF))
    + message(110, d(0, 1) + b"\xff\xff") + message(100, d(0) + b"\xff\xff")
    + message(200) + message(100, b"", 6) + message(100, b"", 0xFFFFFFFF),
}


def main():
    to = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus", "fuzz_p9")
    os.makedirs(to, exist_ok=True)
    for name, body in SESSIONS.items():
        for flag, suffix in ((b"\0", ""), (b"\1", "-ro")):
            with open(os.path.join(to, name + suffix), "wb") as f:
                f.write(flag + BEGIN + body)


main()
