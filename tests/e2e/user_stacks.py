#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: not svm, disk
"""Stacks of programs of this machine, stopped at random, against libdwfl: no frame is wrong, and
those that lie in the copied bytes are found, down to _start. The long form is
tests/bench/bench_user_stacks.py, from which the programs are."""

import os
import sys

import compiled
import e2e
from e2e import check, say

sys.path.insert(1, os.path.join(e2e.TOP, "tests", "bench"))
import bench_user_stacks as bench

STACKS = 40
PROGRAMS = ("sort", "perl", "bash", "signals", "go", "go-stripped", "go-alone", "sframe")

program = compiled.tool("bench/bench_user_stacks.c")
frames = found = stacks = 0
for name, make in bench.programs(e2e.SCRATCH):
    argv = make() if name in PROGRAMS else None
    if not argv:
        continue
    n = bench.measure(program, e2e.SCRATCH, STACKS, name, argv)
    say("%s: %s" % (name, n))
    check(n["wrong"] == 0, "%s: %d frames that libdwfl does not have" % (name, n["wrong"]))
    if name == "go-alone":    # nobody knows the truth of its frames
        continue
    check(n["found"] + n["cut"] >= 0.99 * n["frames"], "%s: %d of %d frames found, %d not copied" %
          (name, n["found"], n["frames"], n["cut"]))
    check(n["whole"] >= 0.9 * n["stacks"], "%s: %d of %d stacks are whole" %
          (name, n["whole"], n["stacks"]))
    frames, found, stacks = frames + n["frames"], found + n["found"], stacks + n["stacks"]
if not stacks:
    e2e.skip("none of these programs is here: " + " ".join(PROGRAMS))
e2e.finish("%d of %d frames of %d stacks" % (found, frames, stacks))
