#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_sandbox.py KVMPROF SCRATCH [RUNS [SECONDS]]: what --sandbox=on costs, against off.

The demo guest for SECONDS (1), RUNS (10) times each way in turn, so that what else the host does falls on
both. Prints medians with (min-max) and the ratio of medians; asserts nothing. A sample and an exit make system
calls that the filter looks at (KVM_RUN, timer_settime), start-up makes the filters and the files' rules.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH [RUNS [SECONDS]]" % sys.argv[0])
kvmprof = os.path.abspath(sys.argv[1])
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 1
if not os.access("/dev/kvm", os.R_OK | os.W_OK):
    print("bench_sandbox: skipped: no access to /dev/kvm")
    sys.exit(0)
os.makedirs(sys.argv[2], exist_ok=True)
scratch = tempfile.mkdtemp(prefix="bench_sandbox.", dir=sys.argv[2])


def one(mode):
    p = subprocess.run([kvmprof, "run", "--sandbox=" + mode, "--duration", str(seconds), "--json", "--append",
                        "seconds=60", "-o", os.path.join(scratch, "x")], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 + seconds, check=True,
                       env=dict(os.environ, HOME=scratch))
    return json.loads(p.stdout)


def row(name, unit, on, off):
    a, b = statistics.median(on), statistics.median(off)
    print("%-40s on %9.2f %s (%.2f-%.2f)  off %9.2f %s (%.2f-%.2f)  ratio %.3f" %
          (name, a, unit, min(on), max(on), b, unit, min(off), max(off), a / b if b else float("nan")))


try:
    results = {"on": [], "off": []}
    for i in range(runs):
        for mode in ("on", "off") if i % 2 else ("off", "on"):
            results[mode].append(one(mode))
    print("%d runs each of %g s, load of the machine %.1f" % (runs, seconds, os.getloadavg()[0]))

    def both(name, unit, figure):
        row(name, unit, [figure(j) for j in results["on"]], [figure(j) for j in results["off"]])

    both("start to first guest instruction", "ms", lambda j: j["startup_ns"] / 1e6)
    both("guest stopped per sample, median", "us", lambda j: j["stopped_ns"]["p50"] / 1e3)
    both("guest stopped per sample, p99", "us", lambda j: j["stopped_ns"]["p99"] / 1e3)
    both("resident beyond guest memory", "MiB", lambda j: j["rss_beyond_guest_bytes"] / 2**20)
finally:
    shutil.rmtree(scratch, ignore_errors=True)
