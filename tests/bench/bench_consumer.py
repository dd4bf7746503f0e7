#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples a second through the whole consumer, beside another commit's in one run.

    tests/bench/bench_consumer.py KVMPROF SCRATCH [--against BINARY] [--runs N] [OPTION of bench_consumer...]

BINARY is bench_consumer of another tree; the beginning of tests/bench/bench_consumer.c says how to
build it there. The two run in turn, N times (3), and each line has the medians of all runs and
their quotient. Without --against: this tree's alone.
"""
import os
import re
import statistics
import subprocess
import sys

LINE = re.compile(r"(\S.*?)  +(one core|two cores|drained) +(\d+) /s")


def measure(binary, scratch, options):
    p = subprocess.run([binary, *options], stdout=subprocess.PIPE, cwd=scratch, check=False, universal_newlines=True)
    if p.returncode:
        sys.exit("%s ended with %d" % (binary, p.returncode))
    return {(m.group(1), m.group(2)): int(m.group(3)) for m in map(LINE.match, p.stdout.splitlines()) if m}


def option(argv, name, default):
    if name not in argv:
        return default
    at = argv.index(name)
    value = argv[at + 1]
    del argv[at:at + 2]
    return value


def main():
    scratch = os.path.abspath(sys.argv[2])
    argv = sys.argv[3:]
    ours = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "bench", "bench_consumer")
    other = option(argv, "--against", None)
    runs = int(option(argv, "--runs", "3"))
    binaries = [ours] + ([os.path.abspath(other)] if other else [])
    found = [{} for _ in binaries]
    os.makedirs(scratch, exist_ok=True)
    for _ in range(runs):
        for binary, all_of_it in zip(binaries, found):
            for k, v in measure(binary, scratch, argv).items():
                all_of_it.setdefault(k, []).append(v)
    for (what, how), values in found[0].items():
        line = "%-30s %-9s %10d /s  (%d to %d)" % (what, how, statistics.median(values), min(values), max(values))
        # An older tree's build may have fewer lines.
        if other and (what, how) in found[1]:
            theirs = found[1][(what, how)]
            line += "  against %d /s  (%d to %d): %.2f times" % (
                statistics.median(theirs), min(theirs), max(theirs),
                statistics.median(values) / statistics.median(theirs))
        print(line, flush=True)


if __name__ == "__main__":
    main()
