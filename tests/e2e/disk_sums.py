# SPDX-License-Identifier: GPL-2.0-or-later
"""The sums that guest/disk prints of what it reads."""

import struct

MASK = (1 << 64) - 1


def fnv(data):
    """As guest/disk/disk.c sums: whole words of 64 bits."""
    h = 0xcbf29ce484222325
    for (word,) in struct.iter_unpack("<Q", data[:len(data) // 8 * 8]):
        h = (h ^ word) * 0x100000001b3 & MASK
    return h


def lines(text, word):
    return [l.split()[2:] for l in text.replace("\r", "").split("\n") if l.startswith("disk: " + word)]


def sums(text):
    """Of each name that it has read or written: bytes and sum."""
    return {w[0]: (int(w[1]), int(w[2])) for w in lines(text, "sum ")}
