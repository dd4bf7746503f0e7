#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_exact.py KVMPROF SCRATCH [ROUNDS]: Debian's cloud kernel to its end by QEMU's icount alone, and by
kvmprof run --engine exact with a sample each 100,000 and each 10,000 instructions, and with --call-counts, in turn.

Prints medians and spread of wall-clock and CPU seconds, and of the ratios to icount alone in the same round: what
else the machine does changes from round to round, and less within one. CPU seconds are those of all processes."""

import os
import resource
import statistics
import subprocess
import time

import bench

ROUNDS = bench.argument(0, 5)
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CMDLINE = "console=ttyS0 reboot=k panic=-1"


def script(name, *args):
    p = subprocess.run([os.path.join(TOP, "scripts", name), *args], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode:
        bench.skip("%s: %s" % (name, p.stderr.strip().split("\n")[-1]))
    return p.stdout.strip()


QEMU = os.path.join(script("fetch-qemu.sh"), "bin", "qemu-system-x86_64")
DEBIAN = script("fetch-debian-kernel.sh", "6.1")
KERNEL = next(os.path.join(DEBIAN, f) for f in os.listdir(DEBIAN) if f.startswith("vmlinuz"))
INITRD = os.path.join(os.path.dirname(bench.KVMPROF), "guest", "initramfs.cpio")
os.environ["KVMPROF_QEMU"] = QEMU


def exact(*options):
    return [bench.KVMPROF, "run", "--engine", "exact", "-q", "--no-summary", *options, "-o",
            os.path.join(bench.SCRATCH, "x.data"), KERNEL, "--initrd", INITRD, "--cmdline", CMDLINE]


# As vmm/exact/child.c has it, without plugin, shared memory and monitor.
ALONE = [QEMU, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-machine", "pc,hpet=off",
         "-accel", "tcg,thread=single", "-cpu", "qemu64,-rdrand", "-smp", "1", "-m", "256M", "-icount",
         "shift=3,sleep=off,align=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1", "-chardev",
         "file,id=c,path=" + os.path.join(bench.SCRATCH, "console"), "-serial", "chardev:c", "-kernel", KERNEL,
         "-initrd", INITRD, "-append", CMDLINE]
# With what it may cost at most, as times of icount alone.
WAYS = [("icount alone", ALONE, 1), ("exact, each 100,000", exact("-c", "100000"), 2),
        ("exact, each 10,000", exact("-c", "10000"), 2), ("exact, all counted", exact("--call-counts"), 4)]


def measure(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, HOME=bench.SCRATCH), timeout=600)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    seen = {name: [] for name, _, _ in WAYS}
    for _ in range(ROUNDS):
        for name, argv, _ in WAYS:
            seen[name].append(measure(argv))
    alone = seen[WAYS[0][0]]
    for name, _, limit in WAYS:
        for i, what in enumerate(("wall", "CPU")):
            v = [x[i] for x in seen[name]]
            ratio = [x[i] / base[i] for x, base in zip(seen[name], alone)]
            print("%-20s %-4s %6.2f s %s  %.2f times icount alone %s, at most %d" %
                  (name, what, statistics.median(v), bench.spread(v), statistics.median(ratio), bench.spread(ratio), limit))


main()
