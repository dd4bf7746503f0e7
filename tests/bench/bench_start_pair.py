#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_start_pair.py KVMPROF SCRATCH [OTHER [RUNS]]: what a start costs in KVMPROF, against the program OTHER.

Runs both programs in turn, RUNS (100) times each, with a guest that resets the machine in its third instruction.
Prints the median with (lower quartile-upper quartile) of each figure, and the difference of the medians:

    to the first instruction   wall time from the fork of the process to the guest's first instruction
    processor time             user and system time of the whole run, of all its processes
    whole run                  wall time of the whole run

On a busy machine trust the processor time. Asserts nothing. Without OTHER it is skipped.
"""

import json
import os
import statistics
import struct
import sys
import time

import bench

OPTIONS = (("default", ()), ("--no-output", ("--no-output",)), ("--sandbox=off", ("--sandbox=off",)))


def guest(path):
    """Writes an ELF file whose code, at 16 MiB, is: cli; mov $0xfe, %al; out %al, $0x64; jmp to itself."""
    code = bytes.fromhex("fab0fee664ebfe")
    entry, at = 0x1000000, 64 + 56
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, at, entry, entry, len(code), len(code), 16)
    with open(path, "wb") as f:
        f.write(header + segment + code)


def one(program, options):
    """(ms to the first instruction, ms of processor time, ms of the whole run)"""
    argv = [program, "run", "-q", "--json", "-F", "1"]
    argv += ["-o", "x"] if "--no-output" not in options else []
    out = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    err = os.open("err", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    start = time.monotonic_ns()
    pid = os.posix_spawn(program, argv + list(options) + ["guest"], dict(os.environ, HOME=bench.SCRATCH),
                         file_actions=[(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)])
    _, status, usage = os.wait4(pid, 0)
    end = time.monotonic_ns()
    os.close(out)
    os.close(err)
    with open("out") as f:
        js = json.loads(f.read() or "{}")
    if "first_entry_ns" not in js:
        with open("err") as f:
            sys.exit("%s: %s: status %d: %s" % (bench.NAME, " ".join(argv), status, f.read()))
    return ((js["first_entry_ns"] - start) / 1e6, (usage.ru_utime + usage.ru_stime) * 1e3, (end - start) / 1e6)


def shown(values):
    low, median, high = statistics.quantiles(values, n=4)
    return "%7.2f (%.2f-%.2f)" % (median, low, high), median


other = bench.argument(0, "", str)
if not other:
    bench.skip("no other program to compare with was given")
bench.need_kvm()
other, runs = os.path.abspath(other), bench.argument(1, 100)
if not os.access(other, os.X_OK) or os.path.isdir(other):
    sys.exit("%s: %s: not a program that can be run: give the path of another build's kvmprof" % (bench.NAME, other))
os.chdir(bench.SCRATCH)
guest("guest")
for name, options in OPTIONS:
    found = ([], [])
    for i in range(runs):
        for which in (0, 1) if i % 2 else (1, 0):
            found[which].append(one((bench.KVMPROF, other)[which], options))
    print("%s: %d runs each, load of the machine %.1f" % (name, runs, os.getloadavg()[0]))
    for what, row in enumerate(("to the first instruction", "processor time", "whole run")):
        (a, x), (b, y) = (shown([values[what] for values in rows]) for rows in found)
        print("  %-26s ms %-22s other %-22s difference %+.2f" % (row, a, b, x - y))
