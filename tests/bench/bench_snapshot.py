#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_snapshot.py KVMPROF SCRATCH [RUNS [SNAPSHOT]]: how long from `kvmprof run --snapshot` to the
guest's first instruction, beside a boot of the same kernel, and how long saving takes.

A demo guest with 512 MB (or what SNAPSHOT has), RUNS (20) times, boot and snapshot in turn.
Wall-clock time, and CPU time of the whole process, which a busy machine changes less. Prints
medians with (min-max); asserts nothing.
"""

import os
import re
import resource
import time

import bench
from bench import row

bench.need_kvm()
runs, given = bench.argument(0, 20), bench.argument(1, None, os.path.abspath)


def one(*options):
    cpu, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    js = bench.run("--duration", "0.001", "-F", "10", *options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"spawn": js["first_entry_ns"] / 1e6 - start * 1e3,
            "main": (js["startup_ns"] + js["image_load_ns"]) / 1e6,
            "cpu": (after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime) * 1e3}


def save():
    err = bench.command("run", "-m", "512M", "-q", "-o", "x", "--snapshot-save", "s", "--at", "console:^demo: start")[1]
    return float(re.search(r"saved s in (\d+) ms", err).group(1))


saves = [save() for _ in range(3)]
boots, restores = [], []
for _ in range(runs):
    boots.append(one("-m", "512M"))
    restores.append(one("--snapshot", given or "s"))
print("%s, %d runs each, load of the machine %.1f" %
      (os.path.basename(given) if given else "demo guest, 512 MB", runs, os.getloadavg()[0]))
for what, name in (("spawn", "from the spawn of the process"), ("main", "from main()")):
    row("snapshot: first guest instruction, " + name, "ms", [r[what] for r in restores],
        "; target < 50 ms")
    row("boot of the demo: the same", "ms", [b[what] for b in boots])
    row("  ratio", "  ", [r[what] / b[what] for r, b in zip(restores, boots)])
row("CPU time of the whole command, snapshot", "ms", [r["cpu"] for r in restores])
row("  boot of the demo", "ms", [b["cpu"] for b in boots])
row("saving, the machine stands", "ms", saves)
row("  bytes on disk", "MB", [os.stat(os.path.join(bench.SCRATCH, "s")).st_blocks * 512 / 1e6])
