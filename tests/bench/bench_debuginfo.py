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
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 600 * 10**6

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH [RUNS]" % sys.argv[0])
kvmprof, runs = os.path.abspath(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 9
cache = os.environ.get("KVMPROF_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvmprof")
debug = sorted(glob.glob(os.path.join(cache, "debian-6.1.*", "dbg", "vmlinux-*")))
images = sorted(glob.glob(os.path.join(cache, "debian-6.1.*", "vmlinuz-*")))
reason = ("no access to /dev/kvm" if not os.access("/dev/kvm", os.R_OK | os.W_OK) else
          "no debug vmlinux in the cache (scripts/fetch-debian-kernel.sh --dbg 6.1)"
          if not debug or not images else
          "no objcopy" if not shutil.which("objcopy") else
          "not 2 GB free in " + sys.argv[2]
          if os.makedirs(sys.argv[2], exist_ok=True) or shutil.disk_usage(sys.argv[2]).free < 2 * 10**9
          else "")
if reason:
    print("bench_debuginfo: skipped: " + reason)
    sys.exit(0)
scratch = tempfile.mkdtemp(prefix="bench_debuginfo.", dir=sys.argv[2])


def of_size(path):
    missing = SIZE - os.path.getsize(path)
    if missing <= 0:
        return path
    pad, out = os.path.join(scratch, "pad"), os.path.join(scratch, "vmlinux")
    with open(pad, "wb") as f:
        f.write(os.urandom(missing + 2**20))
    subprocess.run(["objcopy", "--add-section", ".comment.pad=" + pad, path, out], check=True)
    return out


def one(*options):
    start = time.monotonic()    # the clock of first_entry_ns, too
    p = subprocess.run([kvmprof, "run", images[-1], "--duration", "0.05", "--json", "-o",
                        os.path.join(scratch, "x"), *options], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                       universal_newlines=True, env=dict(os.environ, HOME=scratch))
    if p.returncode:
        sys.exit("bench_debuginfo: kvmprof: " + p.stderr)
    return (json.loads(p.stdout)["first_entry_ns"] / 1e9 - start) * 1e3


try:
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
finally:
    shutil.rmtree(scratch, ignore_errors=True)
