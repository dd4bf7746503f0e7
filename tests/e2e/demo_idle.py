#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 11 s
# tests: svm, at most 240 s
"""A guest that halts half of the time: that half is there, and is called idle."""

import e2e
from e2e import check

POINTS = 1.5


def measure(i):
    """Nothing is sampled while the vCPU waits for a processor, and the guest counts that time where it was."""
    path = "idle%d.data" % i
    boot = e2e.Boot("-o", path, "--append", "seconds=10 mode=idle").wait(120)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    s = e2e.check_lost(path)
    return e2e.waited(s["stat"]), (path, boot, s)


e2e.need_kvm()
e2e.prefer_us()
_, (path, boot, s) = e2e.quietest(measure, e2e.WAITED)
truth, outside = e2e.parse_truth(boot.text())
if not check(truth, "the guest printed no truth table"):
    e2e.finish()
idle = next(t for t in truth if t.where == "idle")

samples = e2e.parse_script(e2e.kvmprof("script", "-i", path).out)
total = sum(x.period for x in samples)
labelled = [x for x in samples if x.comm == "swapper"]
share = 100 * sum(x.period for x in labelled) / total
check(abs(share - idle.percent) <= POINTS,
      "%.2f %% labelled idle, the truth is %.2f %%" % (share, idle.percent))
for stack in {x.stack for x in labelled}:
    check(stack == idle.stack, "labelled idle: " + stack)
mode = 100 * s["idle_ns"] / (s["idle_ns"] + s["kernel_ns"] + s["user_ns"])
check(abs(mode - share) < 0.1, "the summary says %.2f %% idle, the samples %.2f %%" % (mode, share))

# The rest keeps its truth beside the idle time.
for t in truth:
    got = 100 * sum(x.period for x in samples if x.stack == t.stack) / total
    check(abs(got - t.percent) <= POINTS, "%s: %.2f %%, the truth is %.2f %%" % (t.stack, got, t.percent))

p = e2e.kvmprof("report", "-i", path)
check("idle_wait" in p.out and " idle " in p.out, "kvmprof report does not show idle time")
if e2e.has_tool("perf"):
    p = e2e.run("perf", "report", "-i", path, "--stdio", "--no-children", "-g", "none")
    check("swapper" in p.out, "perf report shows no idle time")
e2e.finish("%.2f %% idle, the truth is %.2f %%; %d samples" % (share, idle.percent, len(samples)))
