#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What one sample costs the guest beyond the way out of it and back, in short: tests/bench/
bench_cost.c has the numbers, this fails when they are twice what is aimed at."""

import re

import compiled
import e2e
from e2e import check, say

e2e.need_kvm()
tool = compiled.tool("bench/bench_cost.c", "demo_blob.o")
for attempt in range(3):
    # Others' load comes and goes: one quiet stretch of 2 s shows what it costs.
    r = e2e.run(tool, "--quick", timeout=120)
    say(r.out + r.err)
    if r.status != 1 or r.err:
        break
check(r.status == 0, "status %d" % r.status)
m = re.search(r"beyond the round trip +(-?[\d.]+) us.*\n +that is +(-?[\d.]+) %", r.out)
e2e.finish("%s us beyond the round trip, %s %% of it" % m.groups() if m else "")
