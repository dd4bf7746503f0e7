#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Overlays of disks and their parts of snapshots, whole and damaged, for fuzz_disk_overlay:
make-corpus-overlay.py [DIR]. Layouts: vmm/dev/disk_overlay.h, disk_state.h."""

import os
import struct
import sys

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                        "corpus", "fuzz_disk_overlay")
SIZE, STAMP, DATA = 65536, 10**9, 65536
END, BYTES, ZEROS = 0, 1, 2


def overlay(size=SIZE, stamp=STAMP, data=DATA, version=1, bitmap=b"\x09", sector=b"s" * 512):
    head = b"kvmp-ovl" + struct.pack("<IIQQQ", version, 512, size, stamp, data)
    return b"\0" + head.ljust(4096, b"\0") + bitmap.ljust(DATA - 4096, b"\0") + sector


def record(kind, off, length, data=b""):
    return struct.pack("<QQQ", kind, off, length) + data


def state(*records, size=SIZE, stamp=STAMP, version=1):
    return b"\1" + b"kvmp-dov" + struct.pack("<IIQQ", version, 0, size, stamp) + b"".join(records)


END_RECORD = record(END, 0, 0)
FILES = {
    "overlay": overlay(),
    "overlay-empty": b"\0",
    "overlay-short": overlay()[:5000],
    "overlay-beyond": overlay(bitmap=b"\xff" * 200),
    "overlay-size": overlay(size=SIZE * 2),
    "overlay-data": overlay(data=1 << 63),
    "overlay-stamp": overlay(stamp=3),
    "overlay-version": overlay(version=9),
    "overlay-foreign": b"\0" + b"#!/bin/sh\n" * 10,
    "state": state(record(BYTES, 512, 1024, b"d" * 1024), record(ZEROS, 4096, 512), END_RECORD),
    "state-cut": state(record(BYTES, 512, 1024, b"d" * 100)),
    "state-no-end": state(record(ZEROS, 0, 512)),
    "state-past": state(record(BYTES, SIZE, 512, b"d" * 512), END_RECORD),
    "state-wraps": state(record(ZEROS, (1 << 64) - 512, 1024), END_RECORD),
    "state-odd": state(record(ZEROS, 1, 511), END_RECORD),
    "state-back": state(record(ZEROS, 1024, 512), record(ZEROS, 0, 512), END_RECORD),
    "state-kind": state(record(7, 0, 512), END_RECORD),
    "state-size": state(END_RECORD, size=1),
    "state-version": state(END_RECORD, version=2),
}
os.makedirs(OUT, exist_ok=True)
for name, data in FILES.items():
    if name.startswith("overlay") and name not in ("overlay", "overlay-beyond"):
        data = data[:4200]
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
