#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_startup.py KVMPROF SCRATCH [RUNS]: how long until the guest's first instruction, and how
much memory beside the guest's.

The demo guest for 0.05 s, RUNS (20) times. Prints medians with (min-max); asserts nothing.
"""

import os
import time

import bench
from bench import row

bench.need_kvm()
runs = bench.argument(0, 20)


def one(*options):
    start = time.monotonic()    # the clock of first_entry_ns, too
    js = bench.run("--duration", "0.05", *options)
    js["from_spawn_ns"] = js["first_entry_ns"] - start * 1e9 - js["image_load_ns"]
    return js, time.monotonic() - start


for vcpus in (1, 2, 8):
    results = [one("--vcpus", str(vcpus)) for _ in range(runs)]
    js = [r[0] for r in results]
    print("%d vCPU%s, %d runs, load of the machine %.1f" %
          (vcpus, "s" if vcpus > 1 else "", runs, os.getloadavg()[0]))
    row("start to first guest instruction", "ms", [j["startup_ns"] / 1e6 for j in js],
        "; target < 10 ms")
    row("the same from the spawn of the process", "ms", [j["from_spawn_ns"] / 1e6 for j in js],
        "; with fork, exec, dynamic linking")
    row("  of which probing the host", "ms", [j["host"]["probe_ns"] / 1e6 for j in js])
    row("loading the image (not counted above)", "ms", [j["image_load_ns"] / 1e6 for j in js])
    row("resident beyond guest memory", "MiB",
        [j["rss_beyond_guest_bytes"] / 2**20 for j in js], "; target < 8 MiB")
    row("whole command, less the guest's time", "ms",
        [(r[1] - r[0]["run_seconds"]) * 1e3 for r in results])
