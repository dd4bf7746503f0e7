#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_debuginfo.py KVMPROF SCRATCH [RUNS]: what a debug vmlinux of 600 MB adds to the start-up.

Debian's 6.1 kernel, RUNS (9) times each with names out of the image itself and with --symbols
VMLINUX, in turns. The time is that from the spawn of the process to the guest's first instruction,
loading of image and symbols included. The file is that of Debian's -dbg package, to which objcopy
adds a section that nobody reads where it is shorter than 600 MB. Once with the file in the page
cache and once without, which asks the disk, too. Prints medians with (min-max); asserts nothing.
"""

import glob
import os
import shutil
import statistics
import subprocess
import time

import bench

SIZE = 600 * 10**6

bench.need_kvm()
runs = bench.argument(0, 9)
debug = sorted(glob.glob(os.path.join(bench.CACHE, "debian-6.1.*", "dbg", "vmlinux-*")))
images = sorted(glob.glob(os.path.join(bench.CACHE, "debian-6.1.*", "vmlinuz-*")))
if not debug or not images:
    bench.skip("no debug vmlinux in the cache (scripts/fetch-debian-kernel.sh --dbg 6.1)")
if not shutil.which("objcopy"):
    bench.skip("no objcopy")
if shutil.disk_usage(bench.SCRATCH).free < 2 * 10**9:
    bench.skip("not 2 GB free in " + bench.SCRATCH)


def of_size(path):
    missing = SIZE - os.path.getsize(path)
    if missing <= 0:
        return path
    pad, out = os.path.join(bench.SCRATCH, "pad"), os.path.join(bench.SCRATCH, "vmlinux")
    with open(pad, "wb") as f:
        f.write(os.urandom(missing + 2**20))
    subprocess.run(["objcopy", "--add-section", ".comment.pad=" + pad, path, out], check=True)
    return out


def one(*options):
    start = time.monotonic()    # the clock of first_entry_ns, too
    js = bench.run(images[-1], "--duration", "0.05", *options)
    return (js["first_entry_ns"] / 1e9 - start) * 1e3


vmlinux = of_size(debug[-1])
without, cached, cold = [], [], []
for _ in range(runs):
    without.append(one())
    with open(vmlinux, "rb") as f:    # out of the page cache, then all of it in
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        cold.append(one("--symbols", vmlinux))
        while f.read(2**24):
            pass
    cached.append(one("--symbols", vmlinux))
size = "--symbols, %.0f MB, " % (os.path.getsize(vmlinux) / 1e6)
base = statistics.median(without)
for what, ms in (("names from the image", without), (size + "cached", cached),
                 (size + "not cached", cold)):
    print("spawn to first guest instruction, %-30s %6.0f ms (%.0f-%.0f)%s" %
          (what, statistics.median(ms), min(ms), max(ms), "" if ms is without else
           "; adds %.0f ms, target < 1000 ms" % (statistics.median(ms) - base)))
