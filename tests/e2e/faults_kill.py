#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are killed at any moment, from their first instruction to behind their end: what was written
is read, lacks a second at most, and lies in the one file that docs/perf-data.md names; nothing else is left.

    faults_kill.py KVMPROF SCRATCH [RUNS]"""

import json
import os
import random
import shutil
import time

import e2e
from e2e import check, say

RUNS = int(e2e.EXTRA[0]) if e2e.EXTRA else 8
MOST_S = 2.5     # behind it the guest has ended
GUEST_S = 1.5
WAYS = ([], ["--single-file", "--buildid-dir", "ids"], ["--disk", "disk.img,overlay=over"])


def what_is_left(out):
    """The profile, complete or not, and its report; None where there is none."""
    left = sorted(f for f in os.listdir(".") if f.startswith(out))
    check(len(left) <= 1 and all(f == out or f.startswith(out + ".tmp-") for f in left), "left: %s" % left)
    if not left:
        return None, None
    p = e2e.kvmprof("report", "--json", "-i", left[0])
    if not check(p.status == 0, "%s can't be read: %s" % (left, p.err)):
        return left[0], None
    return left[0], json.loads(p.out)


def clean():
    for f in os.listdir("."):
        if f.startswith(("p", "over", "ids")):
            shutil.rmtree(f) if os.path.isdir(f) else os.remove(f)


def killed(moment, way):
    """Which of the cases it was."""
    clean()
    before, temporary = set(os.listdir(".")), set(os.listdir(os.environ["TMPDIR"]))
    boot = e2e.Boot("-o", "p", *way, *([] if "--single-file" in way else ["--no-buildid-cache"]),
                    "--append", "seconds=%d" % (GUEST_S + 1))
    while time.monotonic() - boot.start < moment and boot.process.poll() is None:
        time.sleep(0.005)
    ran = boot.process.poll() is None
    boot.process.kill()
    at = time.monotonic() - boot.start
    boot.wait(20)
    name, r = what_is_left("p")
    new = set(os.listdir(".")) - before - {name, "over", "ids"}
    check(not new, "%.2f s: there are %s, too" % (moment, new))
    check(set(os.listdir(os.environ["TMPDIR"])) == temporary, "%.2f s: something is left in TMPDIR" % moment)
    if not ran:
        check(name == "p" and r and not r["partial"], "%.2f s: it had ended, and left %s" % (moment, name))
        return "ended"
    started = boot.seen("demo: start")
    if name is None:
        check(started is None or at - started < 2, "%.2f s: nothing is left" % moment)
        return "nothing"
    if r and started is not None:
        # A second is promised; another one is for a host under load.
        span = (r["last_ns"] - r["first_ns"]) / 1e9 if r["samples"] else 0
        check(span > at - started - 2, "%.2f s: samples of %.2f s, %.2f s after the guest's start" % (
            moment, span, at - started))
    # Between its last byte and its name a file is whole already, but only behind the guest's end.
    check(name == "p" or (r and r["partial"]) or boot.seen("demo: done") is not None,
          "%.2f s: %s does not say that it is not whole" % (moment, name))
    return "cut"


e2e.need_kvm()
os.makedirs("tmp", exist_ok=True)
os.environ["TMPDIR"] = os.path.abspath("tmp")
with open("disk.img", "wb") as f:
    f.truncate(1 << 20)
rng = random.Random(3)
seen = {}
for i in range(RUNS):
    # One in three at the beginning, where files are made.
    case = killed(rng.random() * (0.3 if i % 3 == 0 else MOST_S), WAYS[i % len(WAYS)])
    seen[case] = seen.get(case, 0) + 1
clean()
check(seen.get("cut"), "no run was killed while it wrote: %s" % seen)
say("%s" % seen)
e2e.finish("%d runs: %s" % (RUNS, ", ".join("%d %s" % (n, c) for c, n in sorted(seen.items()))))
