#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Apache Otava finds in the histories of bench_history.c, beside `kvmprof gate --history`.

    build/bench/bench_history --series > series.csv
    bench_history.py OTAVA series.csv

OTAVA is a directory with Otava's sources; it needs numpy and scipy. A step counts from 2 % on, as there; what is shown is how
many histories have one for the worse, and one at most three entries from the true one. Otava has its defaults, but for
a least magnitude of 2 %."""

import sys
from collections import defaultdict

sys.path.insert(0, sys.argv[1])
from otava.analysis import compute_change_points    # noqa: E402  # pylint: disable=import-error,wrong-import-position

THRESHOLD = 0.02


def main():
    rows = defaultdict(lambda: [0, 0, 0, True])
    with open(sys.argv[2], encoding="ascii") as f:
        for line in f:
            name, at, *values = line.strip().split(";")
            at, values = int(at), [float(x) for x in values]
            points, _ = compute_change_points(values, min_magnitude=THRESHOLD)
            steps = [(p.index, p.stats.forward_rel_change()) for p in points]
            steps = [(i, by) for i, by in steps if abs(by) >= THRESHOLD]
            row = rows[name]
            row[3] = at == -1
            row[0] += 1
            row[1] += any(at == -1 or by > 0 for _, by in steps)
            row[2] += any(by > 0 and (at == -2 or abs(i - at) <= 3) for i, by in steps)
    print("%-40s %5s %9s %9s" % ("history", "times", "worse", "near"))
    for name, (n, worse, near, still) in rows.items():
        print("%-40s %5d %7.1f %% %9s" % (name, n, 100 * worse / n, "" if still else "%.1f %%" % (100 * near / n)))


main()
