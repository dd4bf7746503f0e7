#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the seeds of fuzz_uki.

    tests/fuzz/make-corpus-uki.py [DIR]    (default: tests/fuzz/corpus)

The output is the same on every run.
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
sys.dont_write_bytecode = True

import uki_fixture as uki

TOP = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus")
OSREL = 'NAME="Test OS"\nPRETTY_NAME="Test OS 12"\nID=test\nVERSION_ID=\'12\'\nIMAGE_ID=a\\b\n'
SMALL = dict(cmdline="root=/dev/vda2 quiet\n", osrel=OSREL, uname="6.1.0")
COFF, OPTIONAL, TABLE = uki.PE + 4, uki.PE + 24, uki.PE + 24 + 240


def change(data, at, form, *values):
    data = bytearray(data)
    struct.pack_into(form, data, at, *values)
    return bytes(data)


def section(i):
    return TABLE + 40 * i


def seeds():
    small = uki.uki(b"kernel", b"initrd", **SMALL)
    profiles = uki.image([
        (".linux", b"kernel"), (".osrel", OSREL.encode()), (".cmdline", b"base"),
        (".profile", b"ID=regular\nTITLE=Regular\n"), (".profile", b"ID=reset\n"),
        (".cmdline", b"reset")])
    first = uki.image([(".cmdline", b"base"), (".linux", b"kernel"), (".profile", b"ID=a\n"),
                       (".cmdline", b"of a"), (".initrd", b"of a"), (".profile", b"ID=b\n"),
                       (".initrd", b"of b"), (".initrd", b"twice")])
    return {
        "small": small,
        "microcode": uki.uki(b"kernel", b"initrd", ucode=b"070701"),
        "kernel-only": uki.uki(b"kernel"),
        "empty-texts": uki.uki(b"kernel", b"", "", "", ""),
        "odd-texts": uki.uki(b"k", None, "\0\1\2 \t\n", "=\n==\nID\n'ID='\nID=\"\\", "\xff\n6"),
        "profiles": profiles, "profile-overrides": first,
        "no-linux": uki.image([(".sbat", b"sbat,1")]),
        "empty-linux": uki.uki(b""),
        "twice": uki.image([(".linux", b"a"), (".cmdline", b"b"), (".linux", b"c")]),
        "arm64": uki.uki(b"kernel", machine=0xAA64),
        "pe32": uki.uki(b"kernel", magic=0x10B, machine=0x14C),
        "pe-outside": change(small, 0x3C, "<I", 0xFFFFFFF0),
        "pe-at-0": change(small, 0x3C, "<I", 0),
        "no-sections": change(small, COFF + 2, "<H", 0),
        "many-sections": change(small, COFF + 2, "<H", 0xFFFF),
        "more-sections": change(small, COFF + 2, "<H", 256),
        "long-optional": change(small, COFF + 16, "<H", 0xFFFF),
        "no-optional": change(small, COFF + 16, "<H", 0),
        "offset-outside": change(small, section(1) + 20, "<I", 0xFFFFFFFF),
        "length-outside": change(small, section(1) + 8, "<III", 0xFFFFFFFF, 0, 0xFFFFFFFF),
        "no-memory-length": change(small, section(1) + 8, "<I", 0),
        "long-text": change(small, section(3) + 8, "<III", 0x20000, 0, 0x20000),
        "cut-table": small[:section(2) + 7],
        "cut-coff": small[:COFF + 9],
        "cut-section": small[:-600],
        "zimg": b"MZ\0\0zimg".ljust(0x80, b"\0"),
    }


def main():
    path = os.path.join(TOP, "fuzz_uki")
    os.makedirs(path, exist_ok=True)
    for name, data in seeds().items():
        with open(os.path.join(path, name), "wb") as f:
            f.write(data)


main()
