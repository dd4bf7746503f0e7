#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_python.py KVMPROF SCRATCH [SECONDS [RUNS]]: what `--python` costs the guest and the consumer, by sample.

A Linux guest whose only program is Python's (tests/e2e/python_program.py), for SECONDS (5), RUNS (5) times with
and without --python in turn, at 997 Hz. Prints medians with (min-max); asserts nothing. The consumer's time is
its thread's processor time, without the guest's boot.
"""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time

import bench
from bench import row

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from python_root import make_root  # noqa: E402



def consumer_seconds(pid):
    """Of its thread, None: it is not there."""
    for task in glob.glob("/proc/%d/task/*" % pid):
        try:
            with open(task + "/schedstat", encoding="ascii") as f, open(task + "/comm", encoding="ascii") as c:
                if c.read().strip() == "consumer":
                    return int(f.read().split()[0]) / 1e9
        except OSError:
            pass
    return None


def run(*options):
    """Its summary, with "consumer_ns" for each sample of the time in which the program ran."""
    argv = [bench.KVMPROF, "run", "--json", "-o", "x", "-F", "997", "-m", "1G", "--rootfs", "root", "--cwd", "/", *options,
            "--", python, "/program.py", str(seconds)]
    with subprocess.Popen(argv, cwd=bench.SCRATCH, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True) as p:
        last = 0.
        while p.poll() is None:
            last = consumer_seconds(p.pid) or last
            time.sleep(0.05)
        out, err = p.stdout.read(), p.stderr.read()
    if p.returncode:
        sys.exit("%s: status %d: %s" % (bench.NAME, p.returncode, err[-1000:]))
    summary = json.loads(out[out.index("\n{") if "\n{" in out else out.index("{"):])
    summary["consumer_ns"] = 1e9 * last / max(1, summary["samples"])
    told = re.search(r"(\d+) samples with (\d+) frames", err)
    summary["frames"] = int(told.group(2)) / int(told.group(1)) if told else 0.
    return summary


bench.need_kvm()
seconds, runs = bench.argument(0, 5), bench.argument(1, 5)
python = os.path.realpath("/usr/bin/python3")
kernels = sorted(glob.glob(os.path.join(glob.escape(bench.CACHE), "kernel-full-*", "vmlinux")))
if not kernels:
    bench.skip("no kernel yet; scripts/build-guest-kernel.sh full makes it")
make_root(python, os.path.join(bench.SCRATCH, "root"))
plain, with_python = [], []
for _ in range(runs):
    plain.append(run(kernels[-1]))
    with_python.append(run(kernels[-1], "--python"))
print("Python's program at 997 Hz, %d runs of %d s each, load of the machine %.1f" % (runs, seconds, os.getloadavg()[0]))
row("frames of Python, each sample that has some", "", [j["frames"] for j in with_python])
for title, value in (("guest stopped per sample, p50", lambda j: j["stopped_ns"]["p50"] / 1e3),
                     ("guest stopped per sample, p99", lambda j: j["stopped_ns"]["p99"] / 1e3),
                     ("consumer per sample", lambda j: j["consumer_ns"] / 1e3)):
    a, b = [value(j) for j in plain], [value(j) for j in with_python]
    row(title, "us", a)
    row(title + ", --python", "us", b, ": %.2f times" % (statistics.median(b) / statistics.median(a)))
