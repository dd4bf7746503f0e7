#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Apache Otava finds beside `kvmprof gate --history`: in the histories of bench_history.c, and in the series that people
annotated for the Turing change point dataset (TCPD), where doing nothing stands beside both.

    build/bench/bench_history --series > series.csv
    bench_history.py OTAVA series.csv
    bench_history.py OTAVA TCPD build/bench/bench_history

OTAVA and TCPD are directories with their sources; Otava needs numpy and scipy. Of a history a step counts from 2 % on, as in
bench_history; what is shown is how many histories have one for the worse, and one at most three entries from the true one. Otava has its
defaults, but for a least magnitude of 2 %. Of TCPD the series with one dimension and no gaps count, by the measures of TCPDBench: F1
with a margin of 5, and covering."""

import glob
import json
import os
import subprocess
import sys
from collections import defaultdict

sys.path.insert(0, sys.argv[1])
from otava.analysis import compute_change_points    # noqa: E402  # pylint: disable=import-error,wrong-import-position

THRESHOLD = 0.02
MARGIN = 5


# -- simulated histories ---------------------------------------------------------------------------

def simulated(path):
    rows = defaultdict(lambda: [0, 0, 0, True])
    with open(path, encoding="ascii") as f:
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


# -- TCPD ------------------------------------------------------------------------------------------

def met(truth, found):
    """Which true changes have a found one of their own, at most MARGIN away."""
    left, out = set(found), set()
    for at in truth:
        near = sorted((abs(at - x), x) for x in left if abs(at - x) <= MARGIN)
        if near:
            out.add(at)
            left.remove(near[0][1])
    return out


def f1(people, found):
    found = set(found) | {0}
    people = [set(x) | {0} for x in people]
    precision = len(met(set.union(*people), found)) / len(found)
    recall = sum(len(met(x, found)) / len(x) for x in people) / len(people)
    return 2 * precision * recall / (precision + recall)


def parts(changes, n):
    edges = [0] + sorted(set(changes) - {0}) + [n]
    return [set(range(a, b)) for a, b in zip(edges, edges[1:]) if b > a]


def covering(people, found, n):
    mine = parts(found, n)
    return sum(sum(len(r) * max(len(r & x) / len(r | x) for x in mine) for r in parts(person, n)) / n
               for person in people) / len(people)


def annotated(directory, bench):
    with open(os.path.join(directory, "annotations.json"), encoding="utf-8") as f:
        people = json.load(f)
    series = []
    for path in sorted(glob.glob(os.path.join(directory, "datasets", "*", "*.json"))):
        with open(path, encoding="utf-8") as f:
            d = json.load(f)
        values = d["series"][0]["raw"]
        if d["n_dim"] == 1 and d["name"] in people and None not in values:
            series.append((d["name"], [float(x) for x in values]))
    text = "".join(";".join("%.17g" % x for x in v) + "\n" for _, v in series)
    p = subprocess.run([bench, "--changes"], input=text, stdout=subprocess.PIPE, check=True, universal_newlines=True)
    ours = [[int(x) for x in line.split(";") if x] for line in p.stdout.split("\n")]
    scores = defaultdict(list)
    for (name, values), mine in zip(series, ours):
        otava = [p.index for p in compute_change_points(values)[0]]
        for who, found in (("kvmprof", mine), ("Otava", otava), ("nothing", [])):
            truth = list(people[name].values())
            scores[who].append((f1(truth, found), covering(truth, found, len(values))))
    print("%d series\n%-10s %6s %9s" % (len(series), "", "F1", "covering"))
    for who, x in scores.items():
        print("%-10s %6.3f %9.3f" % (who, sum(a for a, _ in x) / len(x), sum(b for _, b in x) / len(x)))


if os.path.isdir(sys.argv[2]):
    annotated(sys.argv[2], sys.argv[3])
else:
    simulated(sys.argv[2])
