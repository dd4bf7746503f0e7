#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make-corpus-initrd.py [OUT]: writes tests/fuzz/corpus/fuzz_initrd. Needs cpio and zstd."""

import os
import subprocess
import sys

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                         "corpus", "fuzz_initrd")
os.makedirs(out, exist_ok=True)


def entry(name, data):
    name = name.encode() + b"\0"
    head = "070701" + "".join("%08x" % v for v in
                              (1, 0o100644, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0))
    b = head.encode() + name
    b += b"\0" * (-len(b) % 4) + data
    return b + b"\0" * (-len(data) % 4)


def put(name, data):
    with open(os.path.join(out, name), "wb") as f:
        f.write(data)


cpio = entry("init", b"#!/bin/sh\n" * 9) + entry("TRAILER!!!", b"")
packed = subprocess.run(["zstd", "-19", "-c"], input=cpio, stdout=subprocess.PIPE, check=True).stdout
put("cpio", cpio)
put("zstd", packed)
put("early-zstd", cpio + b"\0" * (-len(cpio) % 512) + packed)
put("zstd-zstd-zeros", packed + packed + b"\0" * 9)
put("zstd-tail", packed + b"tail")
put("zstd-cut", packed[:-9])
put("gzip", b"\x1f\x8b\x08" + b"\0" * 30)
put("cpio-huge", cpio.replace(b"0000005a", b"ffffffff", 1))
put("cpio-no-end", cpio[:120])
