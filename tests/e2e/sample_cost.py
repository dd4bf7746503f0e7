#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What one sample costs the guest beyond the way out of it and back, in short: tests/bench/
bench_cost.c has the numbers, this fails when they are twice what is aimed at."""

import os
import re
import subprocess

import e2e
from e2e import check, say

e2e.need_kvm()
tool = os.path.abspath("bench_cost")
p = subprocess.run([os.environ.get("CC") or "gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE",
                    "-I" + e2e.TOP, "-o", tool,
                    os.path.join(e2e.TOP, "tests", "bench", "bench_cost.c"),
                    os.path.join(e2e.BUILD, "obj", "demo_blob.o"),
                    os.path.join(e2e.BUILD, "libkvmprof.a")] +
                   os.environ.get("LIBS", "-lcapstone -ldw -lelf -liberty -lzstd -llzma -llz4 "
                                  "-lbz2 -lz -lm -pthread").split(),
                   stderr=subprocess.PIPE, universal_newlines=True)
if p.returncode:
    raise SystemExit("bench_cost does not compile:\n" + p.stderr)
for attempt in range(3):
    # Others' load comes and goes: one quiet stretch of 2 s shows what it costs.
    r = e2e.run(tool, "--quick", timeout=120)
    say(r.out + r.err)
    if r.status != 1 or r.err:
        break
check(r.status == 0, "status %d" % r.status)
m = re.search(r"beyond the round trip +(-?[\d.]+) us.*\n +that is +(-?[\d.]+) %", r.out)
e2e.finish("%s us beyond the round trip, %s %% of it" % m.groups() if m else "")
