#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_snapshot.py KVMPROF SCRATCH [RUNS [SNAPSHOT]]: how long from `kvmprof run --snapshot` to the
guest's first instruction, beside a boot of the same kernel, and how long saving takes.

A demo guest with 512 MB (or what SNAPSHOT has), RUNS (20) times, boot and snapshot in turn.
Wall-clock time, and CPU time of the whole process, which a busy machine changes less. Prints
medians with (min-max); asserts nothing.
"""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH [RUNS [SNAPSHOT]]" % sys.argv[0])
kvmprof, runs = os.path.abspath(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 20
given = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
if not os.access("/dev/kvm", os.R_OK | os.W_OK):
    print("bench_snapshot: skipped: no access to /dev/kvm")
    sys.exit(0)
os.makedirs(sys.argv[2], exist_ok=True)
scratch = tempfile.mkdtemp(prefix="bench_snapshot.", dir=sys.argv[2])
os.chdir(scratch)
env = dict(os.environ, HOME=scratch)


def one(*options):
    cpu, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    p = subprocess.run([kvmprof, "run", "--duration", "0.001", "-F", "10", "--json", "-o", "x",
                        *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=300, check=True, env=env)
    js = json.loads(p.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"spawn": js["first_entry_ns"] / 1e6 - start * 1e3,
            "main": (js["startup_ns"] + js["image_load_ns"]) / 1e6,
            "cpu": (after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime) * 1e3}


def row(name, unit, values, note=""):
    print("%-52s %8.2f %s (%.2f-%.2f)%s" %
          (name, statistics.median(values), unit, min(values), max(values), note))


def save():
    p = subprocess.run([kvmprof, "run", "-m", "512M", "-q", "-o", "x", "--snapshot-save", "s",
                        "--at", "console:^demo: start"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                       timeout=300, check=True, env=env)
    return float(re.search(r"saved s in (\d+) ms", p.stderr).group(1))


try:
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
    row("  bytes on disk", "MB", [os.stat("s").st_blocks * 512 / 1e6])
finally:
    os.chdir("/")
    shutil.rmtree(scratch, ignore_errors=True)
