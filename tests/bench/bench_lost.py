#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_lost.py KVMPROF SCRATCH [SECONDS [RUNS]]: what is lost, and how long a sample stops the guest.

The demo guest on 1 vCPU for SECONDS, and the 2-CPU Linux of scripts/build-guest-kernel.sh, if
it is there, from its boot to its end; at 997 Hz, and the demo at ten times that. Prints medians with (min-max); asserts nothing. "Unseen" are
periods in which the host did not run us: their time is added to a sample, so no time is lost.
"""

import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH [SECONDS [RUNS]]" % sys.argv[0])
kvmprof = os.path.abspath(sys.argv[1])
seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 3
if not os.access("/dev/kvm", os.R_OK | os.W_OK):
    print("bench_lost: skipped: no access to /dev/kvm")
    sys.exit(0)
os.makedirs(sys.argv[2], exist_ok=True)
scratch = tempfile.mkdtemp(prefix="bench_lost.", dir=sys.argv[2])
cache = os.environ.get("KVMPROF_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvmprof")


def one(freq, options):
    p = subprocess.run([kvmprof, "run", "--json", "-F", str(freq), "-o", os.path.join(scratch, "x"),
                        *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=300 + seconds, check=True,
                       env=dict(os.environ, HOME=scratch))
    return json.loads(p.stdout)


def row(name, unit, values):
    print("  %-36s %10.1f %s (%.1f-%.1f)" % (name, statistics.median(values), unit, min(values), max(values)))


def measure(title, freq, options):
    js = [one(freq, options) for _ in range(runs)]
    print("%s at %d Hz, %d runs of %.0f s, load of the machine %.1f" %
          (title, freq, runs, statistics.median(j["run_seconds"] for j in js), os.getloadavg()[0]))
    row("samples", "", [j["samples"] for j in js])
    row("lost", "", [j["lost"] for j in js])
    row("periods missed", "%", [100 * j["overruns"] / max(1, j["overruns"] + j["samples"]) for j in js])
    row("guest stopped per sample, p50", "us", [j["stopped_ns"]["p50"] / 1e3 for j in js])
    row("guest stopped per sample, p99", "us", [j["stopped_ns"]["p99"] / 1e3 for j in js])
    row("kick latency, p50", "us", [j["kick_latency_ns"]["p50"] / 1e3 for j in js])


try:
    smp = sorted(glob.glob(os.path.join(glob.escape(cache), "kernel-smp-fp-*", "vmlinux")))
    initramfs = os.path.join(os.path.dirname(kvmprof), "guest", "initramfs.cpio")
    for hz in (997, 9973):
        measure("demo, 1 vCPU", hz, ["--append", "seconds=600", "--duration", str(seconds)])
        if smp and hz < 1000:
            measure("Linux, 2 vCPUs", hz,
                    [smp[-1], "--initrd", initramfs, "-m", "64M", "--vcpus", "2"])
    if not smp:
        print("2 vCPUs: skipped: no kernel yet; scripts/build-guest-kernel.sh smp-fp makes it")
finally:
    shutil.rmtree(scratch, ignore_errors=True)
