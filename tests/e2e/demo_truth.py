#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 23 s
# tests: svm, at most 240 s
"""The demo guest against its own truth: shares within a point, stacks exactly, nothing lost.

A sample whose innermost function is one of the truth table's leaves must have just
the stack that the table says. Other samples are what the demo calls "outside": its
set-up, its console, the prologues on the way to a leaf, the assembly around ring
changes and interrupts. Those are listed; each must hang on a known root or be
an interrupt's entry above a known stack, and all together must not be more than the guest says.
"""

import math
import demo_judge
import e2e
from e2e import check, say

WANTED = 20000
POINTS = 1.0


def record():
    """A profile of 20,000 samples or more. A busy host lets periods be missed, so the first
    run says how long is long enough. Where 90 s are too short, for that reason alone, there are
    fewer, and the shares are known less well."""
    seconds = 21
    while True:
        boot = e2e.Boot("-o", "demo.data", "--append", "seconds=%d" % seconds).wait(300)
        if not check(boot.status == 0, "status %d: %s" % (boot.status, boot.err)):
            e2e.finish()
        s = e2e.summary("demo.data")
        say("%d s: %d samples, %d lost, %d periods missed" % (seconds, s["samples"], s["lost"], s["overruns"]))
        if s["samples"] >= WANTED or seconds >= 90:
            # Where most periods were missed the thread that writes may have had to wait, too.
            most = s["samples"] / 50 if s["overruns"] > s["samples"] else 0
            check(s["lost"] <= most, "%d samples lost of %d" % (s["lost"], s["samples"]))
            check(s["samples"] + s["overruns"] >= WANTED and s["samples"] >= WANTED / 20,
                  "only %d samples in %d s, %d periods missed" % (s["samples"], seconds, s["overruns"]))
            return boot, s
        seconds = min(90, math.ceil(seconds * WANTED / s["samples"] * 1.1) + 1)


def main():
    e2e.need_kvm()
    e2e.prefer_us()
    boot, s = record()
    truth, outside = e2e.parse_truth(boot.text())
    if not check(truth, "the guest printed no truth table"):
        say(boot.text())
        e2e.finish()
    check(len(truth) >= 10, "a truth table of %d lines" % len(truth))

    # The leaf looks at RFLAGS.IF itself: judge() then sees that it is sampled like any other.
    off = [t for t in truth if t.stack.endswith(";irqoff_leaf")]
    check(len(off) == 1 and off[0].where == "irqoff" and off[0].percent > 10,
          "the share with interrupts off: %s" % off)

    p = e2e.kvmprof("script", "-i", "demo.data")
    check(p.status == 0, "kvmprof script: " + p.err)
    ours = e2e.parse_script(p.out)
    check(len(ours) == s["samples"], "%d of %d samples in kvmprof script" % (len(ours), s["samples"]))
    points = POINTS * max(1, math.sqrt(WANTED / len(ours)))
    worst = demo_judge.judge("kvmprof script", ours, truth, outside, points)

    figures = "%d samples, lost %d, worst share off by %.2f points" % (len(ours), s["lost"], worst)
    if e2e.has_tool("perf"):
        theirs = e2e.parse_script(e2e.perf_script("demo.data"))
        check(len(theirs) == len(ours), "perf script has %d samples" % len(theirs))
        worst = demo_judge.judge("perf script", theirs, truth, outside, points)
        figures += " (perf: %.2f)" % worst
    e2e.finish(figures)


main()
