#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_sandbox.py KVMPROF SCRATCH [RUNS [SECONDS]]: what --sandbox=on costs, against off.

The demo guest for SECONDS (1), RUNS (10) times each way in turn, so that what else the host does falls on
both. Prints medians with (min-max) and the ratio of medians; asserts nothing. A sample and an exit make system
calls that the filter looks at (KVM_RUN, timer_settime), start-up makes the filters and the files' rules.
"""

import os
import statistics

import bench

bench.need_kvm()
runs, seconds = bench.argument(0, 10), bench.argument(1, 1.0, float)


def one(mode):
    return bench.run("--sandbox=" + mode, "--duration", str(seconds), "--append", "seconds=60", timeout=60 + seconds)


def both(name, unit, figure):
    on, off = ([figure(j) for j in results[mode]] for mode in ("on", "off"))
    a, b = statistics.median(on), statistics.median(off)
    print("%-40s on %9.2f %s %s  off %9.2f %s %s  ratio %.3f" %
          (name, a, unit, bench.spread(on), b, unit, bench.spread(off), a / b if b else float("nan")))


results = {"on": [], "off": []}
for i in range(runs):
    for mode in ("on", "off") if i % 2 else ("off", "on"):
        results[mode].append(one(mode))
print("%d runs each of %g s, load of the machine %.1f" % (runs, seconds, os.getloadavg()[0]))
both("start to first guest instruction", "ms", lambda j: j["startup_ns"] / 1e6)
both("guest stopped per sample, median", "us", lambda j: j["stopped_ns"]["p50"] / 1e3)
both("guest stopped per sample, p99", "us", lambda j: j["stopped_ns"]["p99"] / 1e3)
both("resident beyond guest memory", "MiB", lambda j: j["rss_beyond_guest_bytes"] / 2**20)
