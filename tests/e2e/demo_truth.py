#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo guest against its own truth: shares within a point, stacks exactly, nothing lost.

A sample whose innermost function is one of the truth table's leaves must have just
the stack that the table says. Other samples are what the demo calls "outside": its
set-up, its console, the prologues on the way to a leaf, the assembly around ring
changes and interrupts. Those are listed; each must hang on a known root or be
an interrupt's entry above a known stack, and all together must not be more than the guest says.
"""

import math
from collections import Counter

import e2e
from e2e import check, say

WANTED = 20000
POINTS = 1.0

# Assembly has no frames of its own: start.S.
STUBS = ("irq0_entry", "irq0_spurious", "syscall_entry", "enter_user")


def record():
    """A profile of 20,000 samples or more. A busy host passes periods unseen, so the first
    run says how long is long enough."""
    seconds = 21
    while True:
        boot = e2e.Boot("-o", "demo.data", "--append", "seconds=%d" % seconds).wait(300)
        if not check(boot.status == 0, "status %d: %s" % (boot.status, boot.err)):
            e2e.finish()
        s = e2e.check_lost("demo.data")
        say("%d s: %d samples, %d periods unseen" % (seconds, s["samples"], s["overruns"]))
        if s["samples"] >= WANTED or seconds >= 90:
            check(s["samples"] >= WANTED, "only %d samples in %d s" % (s["samples"], seconds))
            return boot, s
        seconds = min(90, math.ceil(seconds * WANTED / s["samples"] * 1.1) + 1)


def plausible(stack, known, prefixes):
    """Why a stack outside of the leaves is a possible one, or None."""
    if stack in prefixes:
        return "on the way to a leaf"
    frames = stack.split(";")
    if frames[-1] in STUBS:
        below = ";".join(frames[:-1])
        if below in known or below in prefixes or len(frames) <= 2:
            return "assembly without a frame"
    if frames[0] in ("demo_main", "user_main"):
        return "set-up and console"
    # Before demo_main, or where the guest enters and leaves ring 3.
    if len(frames) == 1:
        return "no frame yet"
    return None


def judge(title, samples, truth, outside):
    """Compares; returns the largest difference in points."""
    known = {t.stack: t for t in truth}
    leaves = {t.stack.split(";")[-1] for t in truth}
    prefixes = {";".join(t.stack.split(";")[:i]) for t in truth
                for i in range(1, t.stack.count(";") + 1)}
    weight, odd, odd_weight, total = Counter(), Counter(), 0, 0
    for s in samples:
        total += s.period
        if s.stack in known:
            weight[s.stack] += s.period
            continue
        leaf = s.stack.split(";")[-1]
        check(leaf not in leaves, "%s: leaf with a wrong stack: %s" % (title, s.stack))
        odd[s.stack] += 1
        odd_weight += s.period

    say("%s: %d samples" % (title, len(samples)))
    say("    truth  measured  difference  stack")
    worst = 0
    for t in truth:
        share = 100 * weight[t.stack] / total
        worst = max(worst, abs(share - t.percent))
        frames = t.stack.split(";")
        name = t.stack if len(frames) < 6 else "%s;..(%d)..;%s" % (
            ";".join(frames[:2]), len(frames) - 3, frames[-1])
        say("   %6.2f    %6.2f      %+6.2f  %s" % (t.percent, share, share - t.percent, name))
        check(abs(share - t.percent) <= POINTS,
              "%s: %s has %.2f %%, the truth is %.2f %%" % (title, t.stack, share, t.percent))
    odd_share = 100 * odd_weight / total
    say("   %6.2f    %6.2f      %+6.2f  outside of the leaves, %d samples:" %
        (outside, odd_share, odd_share - outside, sum(odd.values())))
    for stack, n in odd.most_common():
        why = plausible(stack, known, prefixes)
        check(why, "%s: not a possible stack: %s" % (title, stack))
        say("      %6d  %s (%s)" % (n, stack, why))
    check(odd_share - outside <= POINTS, "%s: %.2f %% outside of the leaves" % (title, odd_share))
    return worst


def main():
    e2e.need_kvm()
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
    worst = judge("kvmprof script", ours, truth, outside)

    figures = "%d samples, lost %d, worst share off by %.2f points" % (len(ours), s["lost"], worst)
    if e2e.shutil.which("perf"):
        theirs = e2e.parse_script(e2e.perf_script("demo.data"))
        check(len(theirs) == len(ours), "perf script has %d samples" % len(theirs))
        worst = judge("perf script", theirs, truth, outside)
        figures += " (perf: %.2f)" % worst
    else:
        say("perf is not installed: its reading was not compared")
    e2e.finish(figures)


main()
