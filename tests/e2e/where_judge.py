#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a vCPU's time went, judged by what the demo guest in mode=where has measured of itself.

    was = where_judge.truth(console)
    figures = where_judge.judge("SVM", was, got, samples, stacks)
"""

import math

from e2e import check

# The guest's rows, and ours of the same time.
ROWS = (("user", ("guest",)), ("ports", ("kvm", "vmm")), ("halted", ("halted",)))
STACKS = {"kvm": "where_port;[kvm];", "vmm": "[exit: io port 0x3ff]", "halted": "idle_wait;[halted]"}


def truth(console):
    """Percent by row, as the guest printed them."""
    lines = (line.split() for line in console.replace("\r", "").split("\n"))
    return {w[1]: float(w[2]) for w in lines if len(w) == 3 and w[0] == "where"}


def rest(shares, taken):
    """Of the time that others have left: they took more before sampling began, or less."""
    return {name: 100 * share / (100 - taken) for name, share in shares.items()}


def judge(what, was, got, samples, stacks):
    """got: percent by row of a profile of so many samples, on a host of one processor that all share; stacks: folded."""
    for row, part in STACKS.items():
        # Where accesses are emulated by KVM slowly, hardly a sample is in the VMM.
        check(part in stacks or got.get(row, 0) < 1, "%s: no stack with %s:\n%s" % (what, part, stacks[-3000:]))
    if not check(len(was) == 5 and samples > 0, "%s: no truth on the console: %s; %d samples" % (what, was, samples)):
        return None
    was, got = rest(was, was["stolen"]), rest(got, got.get("runnable", 0))
    # What is too short for the guest to see it, it takes for what it did there.
    unseen = sum(got.get(row, 0) for row in ("stopped", "waiting", "untold"))
    figures = []
    for want, have in ROWS:
        share = sum(got.get(row, 0) for row in have)
        # A point for the guest's own ticks; four standard deviations of so many draws.
        off = 1 + 400 * math.sqrt(was[want] / 100 * (1 - was[want] / 100) / samples)
        check(was[want] - unseen - off < share < was[want] + off, "%s: %s %.2f %%, off by over %.2f points: %s; the guest says %s" %
              (what, want, share, off, got, was))
        figures.append("%s %.1f %% for %.1f" % (" and ".join(have), share, was[want]))
    return ", ".join(figures)
