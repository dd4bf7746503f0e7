#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_lost.py KVMPROF SCRATCH [SECONDS [RUNS]]: what is lost, and how long a sample stops the guest.

The demo guest on 1 vCPU for SECONDS (5), and the 2-CPU Linux of scripts/build-guest-kernel.sh, if it is
there, from its boot to its end, RUNS (3) times; at 997 Hz, and the demo at ten times that. Prints medians with
(min-max); asserts nothing. The time of a missed period is added to a sample, so no time is lost.
"""

import glob
import os
import statistics

import bench
from bench import row

bench.need_kvm()
seconds, runs = bench.argument(0, 5), bench.argument(1, 3)


def measure(title, freq, options):
    js = [bench.run("-F", str(freq), *options, timeout=300 + seconds) for _ in range(runs)]
    print("%s at %d Hz, %d runs of %.0f s, load of the machine %.1f" %
          (title, freq, runs, statistics.median(j["run_seconds"] for j in js), os.getloadavg()[0]))
    row("samples", "", [j["samples"] for j in js])
    row("lost", "", [j["lost"] for j in js])
    row("periods missed", "%", [100 * j["overruns"] / max(1, j["overruns"] + j["samples"]) for j in js])
    row("guest stopped per sample, p50", "us", [j["stopped_ns"]["p50"] / 1e3 for j in js])
    row("guest stopped per sample, p99", "us", [j["stopped_ns"]["p99"] / 1e3 for j in js])
    row("kick latency, p50", "us", [j["kick_latency_ns"]["p50"] / 1e3 for j in js])


smp = sorted(glob.glob(os.path.join(glob.escape(bench.CACHE), "kernel-smp-fp-*", "vmlinux")))
initramfs = os.path.join(os.path.dirname(bench.KVMPROF), "guest", "initramfs.cpio")
for hz in (997, 9973):
    measure("demo, 1 vCPU", hz, ["--append", "seconds=600", "--duration", str(seconds)])
    if smp and hz < 1000:
        measure("Linux, 2 vCPUs", hz,
                [smp[-1], "--initrd", initramfs, "-m", "64M", "--vcpus", "2"])
if not smp:
    print("2 vCPUs: skipped: no kernel yet; scripts/build-guest-kernel.sh smp-fp makes it")
