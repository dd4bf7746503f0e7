#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make-corpus-fat.py [OUT]: writes tests/fuzz/corpus/fuzz_fat.

File systems of each kind by mkfs.vfat and mtools, as fuzz_fat wants them (sectors that are not
zero), and some that are changed: tables with circles, chains that lead out, lies in the first
sector."""

import os
import struct
import subprocess
import sys
import tempfile

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                         "corpus", "fuzz_fat")
os.makedirs(out, exist_ok=True)
os.environ["PATH"] += ":/sbin:/usr/sbin"
os.environ["MTOOLS_SKIP_CHECK"] = "1"


def make(bits, kib, sector=512):
    with tempfile.TemporaryDirectory() as d:
        image = os.path.join(d, "fat")
        subprocess.run(["mkfs.vfat", "-F", str(bits), "-S", str(sector), "-s", "1", "-f", "1",
                        "-i", "12345678", "--invariant", "-C", image, str(kib)],
                       check=True, stdout=subprocess.DEVNULL)
        tree = os.path.join(d, "loader")
        os.makedirs(os.path.join(tree, "entries"))
        for name, text in (("loader.conf", "default debian*\n"),
                           ("entries/debian-6.1.0-18-amd64.conf", "linux /vmlinuz\n" * 60),
                           ("entries/\u00e4\u20ac\U0001f600 long name.conf", "x\n")):
            with open(os.path.join(tree, name), "w") as f:
                f.write(text)
            os.utime(os.path.join(tree, name), (1700000000, 1700000000))
        os.utime(os.path.join(tree, "entries"), (1700000000, 1700000000))
        os.utime(tree, (1700000000, 1700000000))
        subprocess.run(["mcopy", "-s", "-m", "-i", image, tree, "::"], check=True)
        with open(image, "rb") as f:
            return bytearray(f.read())


def put(name, image):
    sectors = [image[i:i + 512] for i in range(0, len(image), 512)]
    with open(os.path.join(out, name), "wb") as f:
        f.write(struct.pack("<I", len(sectors)))
        for i, s in enumerate(sectors):
            if any(s):
                f.write(struct.pack("<I", i) + bytes(s).ljust(512, b"\0"))


def changed(image, at, form, value):
    copy = bytearray(image)
    struct.pack_into(form, copy, at, value)
    return copy


fat12, fat16, fat32 = make(12, 128), make(16, 4096), make(32, 34000)
for name, image in (("fat12", fat12), ("fat16", fat16), ("fat32", fat32)):
    put(name, image)
put("fat12-4k-sectors", make(12, 512, 4096))
table = struct.unpack_from("<H", fat16, 14)[0] * 512
put("fat16-circle",
    changed(changed(fat16, table + 2 * 2, "<H", 3), table + 2 * 3, "<H", 2))
put("fat16-out", changed(fat16, table + 2 * 2, "<H", 0xfff0))
put("fat32-root-out", changed(fat32, 44, "<I", 0x0ffffff0))
put("fat32-root-0", changed(fat32, 44, "<I", 0))
put("fat12-sector-0", changed(fat12, 11, "<H", 0))
put("fat12-cluster-3", changed(fat12, 13, "<B", 3))
put("fat12-too-many", changed(fat12, 19, "<H", 0xffff))
put("fat12-no-table", changed(fat12, 22, "<H", 0))
put("fat16-root-huge", changed(fat16, 17, "<H", 0xffff))
with open(os.path.join(out, "short"), "wb") as f:
    f.write(b"\1\0\0")
