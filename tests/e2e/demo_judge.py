# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of the demo guest against the table of truth that it prints."""

from collections import Counter

from e2e import check, say

# Assembly has no frames of its own: start.S.
STUBS = ("irq0_entry", "irq0_spurious", "syscall_entry", "enter_user")


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


def judge(title, samples, truth, outside, points):
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
        check(abs(share - t.percent) <= points,
              "%s: %s has %.2f %%, the truth is %.2f %%" % (title, t.stack, share, t.percent))
    odd_share = 100 * odd_weight / total
    say("   %6.2f    %6.2f      %+6.2f  outside of the leaves, %d samples:" %
        (outside, odd_share, odd_share - outside, sum(odd.values())))
    for stack, n in odd.most_common():
        why = plausible(stack, known, prefixes)
        check(why, "%s: not a possible stack: %s" % (title, stack))
        say("      %6d  %s (%s)" % (n, stack, why))
    check(odd_share - outside <= points, "%s: %.2f %% outside of the leaves" % (title, odd_share))
    return worst
