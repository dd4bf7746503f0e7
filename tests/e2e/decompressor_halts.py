#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 1 s
# tests: not svm, disk
"""A kernel's own decompressor that halts for good is no success: exit status 1 and one line.
The image is a good one but for the first instructions at its 64-bit entry: cli, hlt."""

import os
import struct

import e2e
from e2e import check, say

e2e.need_kvm()
with open(os.path.join(e2e.built_kernel("tiny"), "bzImage"), "rb") as f:
    image = bytearray(f.read())
# Documentation/arch/x86/boot.rst: setup_sects, and the 64-bit entry 0x200 behind the setup code.
entry = ((image[0x1f1] or 4) + 1) * 512 + 0x200
image[entry:entry + 4] = b"\xfa\xf4\xeb\xfc"
with open("halts", "wb") as f:
    f.write(image)
check(struct.unpack_from("<I", image, 0x202)[0] == 0x53726448, "this is no bzImage")
p = e2e.kvmprof("run", "--boot=bzimage", "-o", "halts.data", "halts", timeout=60)
say(p.err)
lines = [x for x in p.err.split("\n") if "decompressor halted" in x]
check(p.status == 1, "status %d" % p.status)
check(len(lines) == 1 and "--boot=vmlinux" in lines[0] and "halts" in lines[0], "no line, or several: %s" % lines)
check(e2e.summary("halts.data")["end"] == "guest halted for good", "it ended as " + e2e.summary("halts.data")["end"])
e2e.finish()
