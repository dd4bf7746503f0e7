#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_why.py KVMPROF SCRATCH [RUNS [KERNEL,...]]: how long `kvmprof why` takes from the return key to its verdict, and how long
it stops a vCPU.

A guest with busy programs, RUNS (5) times: the tiny kernel under KVM, by its PID, and Debian's 5.10, 6.1, 6.12, 6.18 and the
newest one in the cache without KVM, through QEMU's gdbstub, which stops the whole machine also while memory is read. Wall-clock
time, and CPU time of the process, which a busy machine changes less. Prints medians with (min-max); asserts nothing.
"""

import glob
import json
import os
import re
import resource
import shutil
import sys
import time

import bench
from bench import row

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "e2e"))
os.chdir(bench.SCRATCH)
import e2e    # noqa: E402
import plant    # noqa: E402

RUNS = bench.argument(0, 5)


def newest():
    """The series of the newest of Debian's kernels in the cache."""
    series = [tuple(map(int, m.groups())) for m in (re.search(r"/debian-(\d+)\.(\d+)\.\d+-[^/]*$", p) for p in glob.glob(bench.CACHE + "/debian-*")) if m]
    return "%d.%d" % max(series) if series else "7.3"


def one(*target):
    cpu, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    p = e2e.kvmprof("why", "--json", *target, timeout=120)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.status not in (0, 10, 11):
        sys.exit("why %s: status %d: %s" % (target, p.status, p.err))
    reply = json.loads(p.out)
    return {"verdict": seconds * 1e3, "cpu": (after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime) * 1e3,
            "longest": reply["longest_stop_ns"] / 1e6, "all": reply["stopped_ns"] / 1e6}


def measure(name, *target):
    made = [one(*target) for _ in range(RUNS)]
    for what, text in (("verdict", "return key to verdict"), ("cpu", "  CPU time of the process"),
                       ("longest", "  longest stop"), ("all", "  all stops of a vCPU")):
        row("%s: %s" % (name, text), "ms", [m[what] for m in made])


print("%d runs each, load of the machine %.1f" % (RUNS, os.getloadavg()[0]))
kernels = bench.argument(1, None, str)
if not kernels or "tiny" in kernels:
    bench.need_kvm()
    image = os.path.join(e2e.built_kernel("tiny"), "vmlinux")
    boot = e2e.Boot(image, "--initrd", plant.ram_disk("busy.cpio"), "-m", "64M", "-o", "busy.data", "-F", "1", "--append", "plant.do=busy")
    try:
        if not boot.wait_for("plant: ready", 600):
            sys.exit("the tiny kernel does not boot")
        measure("tiny, PID", boot.process.pid)
    finally:
        boot.process.kill()
        boot.wait(20)
if not shutil.which("qemu-system-x86_64"):
    bench.skip("no qemu-system-x86_64, which runs Debian's kernels without KVM")
for kernel in kernels.split(",") if kernels else ["5.10", "6.1", "6.12", "6.18", newest()]:
    if kernel == "tiny":
        continue
    m = plant.restored("why", plant.kernel(kernel), "plant.do=busy plant.delay=0")
    try:
        time.sleep(1)
        measure(kernel + ", gdbstub", "--gdb", m.stub)
    finally:
        m.end()
