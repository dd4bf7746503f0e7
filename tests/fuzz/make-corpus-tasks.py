#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the seed inputs of fuzz_linux_task and fuzz_linux_module.

    tests/fuzz/make-corpus-tasks.py        (from anywhere)

The numbers are those of tests/linux_guest.h.
"""
import os
import struct

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
STRIDE = 0x800
TASKS, MM, PID, PARENT, COMM, NODE, SP = 560, 576, 696, 704, 1168, 880, 1984


def put(target, name, flags, *changes):
    path = os.path.join(DIR, target)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(bytes([flags]) + b"".join(struct.pack("<BHH", *c) for c in changes))


def task(i, off):
    return (i * STRIDE + off) // 8


def module(off):
    """A place counted from the list's head; the first module is at 0x1000, symbols at 0x2000."""
    return off // 4


def main():
    put("fuzz_linux_task", "sound", 0)
    put("fuzz_linux_task", "canary", 1)
    put("fuzz_linux_task", "types", 2)
    put("fuzz_linux_task", "loop", 2, (0, task(7, TASKS), task(2, TASKS)))
    put("fuzz_linux_task", "threads", 2, (0, task(8, NODE), task(1, NODE)))
    put("fuzz_linux_task", "two-names", 0, (5, task(0, 1296), 0), (4, task(2, 1296), 0))
    put("fuzz_linux_task", "same-task", 2, (6, 0, 3 | 4 << 4))
    put("fuzz_linux_task", "bad-parent", 0, (3, task(5, PARENT), 0xFFFF))
    put("fuzz_linux_task", "no-mm", 0, (7, task(1, MM), 0), (7, task(1, PID), 9))
    put("fuzz_linux_task", "bad-comm", 2, (7, task(3, COMM), 1))
    put("fuzz_linux_task", "sp-out", 2, (7, task(5, SP), 0), (0, task(4, SP), 9))
    put("fuzz_linux_task", "states", 2, (2, task(5, 24), 0x402), (2, task(4, 24), 0xFFFF),
        (2, task(3, 24), 0x80), (2, task(7, 1320), 0x20))
    put("fuzz_linux_task", "two-sps", 0, *[(1, task(i, 1400), i) for i in range(1, 6)])
    put("fuzz_linux_module", "sound", 0)
    put("fuzz_linux_module", "no-typetab", 1)
    put("fuzz_linux_module", "loop", 0, (0, module(0x1408), 0x1008 // 8))
    put("fuzz_linux_module", "overlap", 0, (1, module(0x1400 + 128), 0x800 // 8))
    put("fuzz_linux_module", "many-symbols", 0, (7, module(0x2008), 0xFFFF))
    put("fuzz_linux_module", "far-name", 0, (7, module(0x2100 + 48), 0x7FFF))
    put("fuzz_linux_module", "orc", 0, *[(6, i, 0x0BAD) for i in range(0, 90, 3)])
    put("fuzz_linux_module", "orc-ip", 0, *[(5, i, 0x8000) for i in range(0, 90, 5)])
    put("fuzz_linux_module", "many-orcs", 0, (7, module(0x1000 + 160), 3))
    put("fuzz_linux_module", "note", 2, (2, module(0x3200), 0x7FFF))
    put("fuzz_linux_module", "notes", 2)
    put("fuzz_linux_module", "third", 0, (4, 0, 2), (0, module(0x1408), 0x1808 // 8))


main()
