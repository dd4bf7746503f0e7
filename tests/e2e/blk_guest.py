# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk that guest/blk reads, and what it says of that."""

import array
import os
import re
import struct
from collections import namedtuple

import e2e

ELF = os.path.join(e2e.BUILD, "guest", "blk.elf")
WHOLE = 0x20000  # bytes of a request of the first pass, over the whole disk

Figures = namedtuple("Figures", "bytes depth requests cycles kicks waits interrupts")


def write_image(path, sectors):
    """Each sector begins with its number, and goes on with the same random bytes; the sum of its words."""
    rest = os.urandom(504)
    data = b"".join(struct.pack("<Q", s) + rest for s in range(sectors))
    with open(path, "wb") as f:
        f.write(data)
    return sum(array.array("Q", data)) & (1 << 64) - 1


def figures(console, total):
    """Of each workload, or None when the guest was not content, or read other bytes."""
    text = console.replace("\r", "")
    if "blk: done\n" not in text or "blk: sum %d\n" % total not in text:
        return None
    return {m[0]: Figures(*map(int, m[1:])) for m in
            re.findall(r"^blk: (\w+-\d+)" + r" (\d+)" * 7 + "$", text, re.M)}


def khz(console):
    return int(re.search(r"^blk: tsc (\d+) kHz", console, re.M).group(1))
