# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of the demo guest against the table of truth that it prints."""

from collections import Counter

import e2e
from e2e import check, say

# Beyond this doubt (e2e.doubt) a run is repeated: 4 sigma of a quarter are 3.5 points then.
BUSY = 0.02
SIGMAS = 4

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


def within(samples, truth):
    """The samples from the first to the last in a leaf: the guest's table is of that time only,
    and on a slow console what it says before and after takes long."""
    known = {t.stack for t in truth or []}
    at = [i for i, s in enumerate(samples) if s.stack in known]
    return samples[at[0]:at[-1] + 1] if at else []


def doubt(samples, truth, hz=e2e.HZ):
    """e2e.doubt() of a profile that another thread than the vCPU's took: it may have been late
    while the guest ran on. In a `kvmprof run` both are one thread, and the guest knows of each pause."""
    return e2e.doubt(within(samples, truth), hz)


def judge(title, samples, truth, outside, points, spread=0.0):
    """Compares; returns the largest difference in points. Differences may be as large as points
    says, and four sigma more where periods were missed: spread is the doubt() about the profile."""
    known = {t.stack: t for t in truth}
    everything, samples = samples, within(samples, truth)
    if not check(samples, title + ": no sample in a leaf"):
        return 100.0

    def allowed(percent):
        return points + SIGMAS * 100 * e2e.sigma(percent / 100, spread)

    leaves = {t.stack.split(";")[-1] for t in truth}
    prefixes = {";".join(t.stack.split(";")[:i]) for t in truth
                for i in range(1, t.stack.count(";") + 1)}
    weight, odd, odd_weight, total = Counter(), Counter(), 0, 0
    for s in samples:
        total += s.period
        if s.stack in known:
            weight[s.stack] += s.period
        else:
            odd_weight += s.period
    for s in everything:
        if s.stack not in known:
            odd[s.stack] += 1
            leaf = s.stack.split(";")[-1]
            check(leaf not in leaves, "%s: leaf with a wrong stack: %s" % (title, s.stack))
    say("%s: %d samples; %.2f points allowed for a quarter" % (title, len(everything), allowed(25)))
    if spread > 5 * BUSY:
        say("so many periods were missed that little is known of the shares; stacks are compared")
    say("    truth  measured  difference  stack")
    worst = 0
    for t in truth:
        share = 100 * weight[t.stack] / total
        worst = max(worst, abs(share - t.percent))
        frames = t.stack.split(";")
        name = t.stack if len(frames) < 6 else "%s;..(%d)..;%s" % (
            ";".join(frames[:2]), len(frames) - 3, frames[-1])
        say("   %6.2f    %6.2f      %+6.2f  %s" % (t.percent, share, share - t.percent, name))
        check(abs(share - t.percent) <= allowed(t.percent),
              "%s: %s has %.2f %%, the truth is %.2f %%" % (title, t.stack, share, t.percent))
    odd_share = 100 * odd_weight / total
    say("   %6.2f    %6.2f      %+6.2f  outside of the leaves, %d samples:" %
        (outside, odd_share, odd_share - outside, sum(odd.values())))
    for stack, n in odd.most_common():
        why = plausible(stack, known, prefixes)
        check(why, "%s: not a possible stack: %s" % (title, stack))
        say("      %6d  %s (%s)" % (n, stack, why))
    check(odd_share - outside <= allowed(max(odd_share, outside)),
          "%s: %.2f %% outside of the leaves, the truth is %.2f %%" % (title, odd_share, outside))
    return worst
