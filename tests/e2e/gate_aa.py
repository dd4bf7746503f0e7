#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 3600 s
# tests: not svm, files
"""gate_aa.py KVMPROF SCRATCH: 2,000 whole gates of identical code, 10 runs a side, three rules and
40 functions: how many fail, with the interval of that rate. error-rate promises 1 % at most.

tests/unit/profile/compare/gate/test_gate_aa.c makes the gates; here parts of them run on all processors."""

import math
import os
import re
import subprocess

import e2e
from e2e import check

GATES, RUNS, PARTS, PROMISE = 2000, 10, 4, 0.01


def wilson(k, n, z):
    p = k / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


parts = [subprocess.Popen([os.path.join(e2e.BUILD, "unit", "profile", "compare", "gate", "test_gate_aa"), str(GATES // PARTS), str(RUNS),
                           str(1000 + i)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) for i in range(PARTS)]
failed = 0
for p in parts:
    out = p.communicate()[0]
    m = re.search(r"^(\d+) of (\d+) gates", out, re.M)
    if check(m and p.returncode == 0 and int(m.group(2)) == GATES // PARTS, "status %d: %s" % (p.returncode, out)):
        failed += int(m.group(1))
low, high = wilson(failed, GATES, 1.96)
# A change of the code may move the count; this bound is passed by chance once in a thousand times.
check(wilson(failed, GATES, 3.29)[0] <= PROMISE, "%d of %d gates of identical code failed" % (failed, GATES))
# Chance does decide here: rules that can never fail would prove nothing.
check(failed > 0, "no gate failed")
e2e.finish("%d of %d gates of identical code failed: %.2f %%, 95 %% interval %.2f to %.2f %%" %
           (failed, GATES, 100 * failed / GATES, 100 * low, 100 * high))
