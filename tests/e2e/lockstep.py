#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 20 s
# tests: svm, at most 120 s
"""Jitter against aliasing: a guest that runs in step with the sampler.

The demo guest goes through eight functions in each sampling period, an eighth of it each, in
ring 3. Strictly periodic samples see one or two of them only. With jitter each deadline is drawn
uniformly from its period, so each function gets an eighth: the chi-square test of the counts
against the guest's own times must not reject that at 1e-5. The same test must reject the
strictly periodic run by far.

A host that keeps the vCPU waiting takes its samples late, wherever the guest was when it lost
the processor. Samples that stand for more than their period come from there and do not count;
where there are many of them the run is no measurement, and is tried again.
"""

import math
import re

import e2e
from e2e import check, say

PHASES = 8
HZ = 400
SECONDS = 8
TRIES = 4
# Of HZ * SECONDS periods.
LATE_MAX = 0.10
FALSE_ALARM = 1e-5


def chi_square_tail(x, df):
    """P(chi-square with df degrees of freedom > x): the regularized upper incomplete gamma
    function, by its series or its continued fraction (Abramowitz and Stegun 6.5.29, 6.5.31)."""
    a, x = df / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1 - front * total
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 10000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * h


def measure(name, *options):
    """The part of periods taken late, and the counts of the phases."""
    boot = e2e.Boot("-q", "-F", HZ, "-o", name, *options, "--append",
                    "mode=lockstep seconds=%d period_ns=%d" % (SECONDS, 1e9 / HZ))
    boot.wait(120)
    check(boot.status == 0, "%s: status %d: %s" % (name, boot.status, boot.err))
    p = e2e.kvmprof("script", "-i", name)
    check(p.status == 0, p.err)
    counts, late, period = [0] * PHASES, 0, 1e9 / HZ
    for s in e2e.parse_script(p.out):
        m = re.search(r";user_phase_(\d)$", s.stack)
        if s.period > 1.5 * period:
            late += s.period / period
        elif m:
            counts[int(m.group(1))] += 1
    late /= HZ * SECONDS
    say("%s: %s of %d, %.1f %% late" % (name, counts, sum(counts), 100 * late))
    return late, counts


def measure_in_quiet(name, *options):
    late, counts = e2e.quietest(lambda i: measure("%s%d.data" % (name, i), *options), LATE_MAX, TRIES)
    if late <= LATE_MAX:
        return counts
    e2e.skip("the host kept the vCPU waiting in more than %.0f %% of the periods" % (100 * LATE_MAX))


def chi_square(counts):
    expected = sum(counts) / PHASES
    return sum((n - expected) ** 2 / expected for n in counts)


def main():
    # Known values: a table's 5 % and 0.1 % points for 7 degrees of freedom.
    check(abs(chi_square_tail(14.067, 7) - 0.05) < 1e-4, "chi-square's tail is wrong")
    check(abs(chi_square_tail(24.322, 7) - 0.001) < 1e-5, "chi-square's tail is wrong")
    e2e.need_kvm()
    e2e.prefer_us()
    jitter = measure_in_quiet("jitter")
    periodic = measure_in_quiet("periodic", "--no-jitter")
    x, y = chi_square(jitter), chi_square(periodic)
    p = chi_square_tail(x, PHASES - 1)
    say("jitter: chi-square %.1f, p = %.3g; periodic: chi-square %.0f, p = %.3g" %
        (x, p, y, chi_square_tail(y, PHASES - 1)))
    check(sum(jitter) > HZ * SECONDS / 2, "only %d samples" % sum(jitter))
    check(p > FALSE_ALARM, "with jitter the phases are not equally likely: p = %.3g" % p)
    check(y > 1000 and y > 20 * x, "no bias without jitter: chi-square %.1f" % y)
    top = max(periodic) / sum(periodic)
    check(top > 0.4, "without jitter the hottest phase has only %.0f %%" % (100 * top))
    e2e.finish("chi-square (7 df): %.1f with jitter (p = %.2g), %.0f without; hottest phase %.0f %% "
               "instead of 12.5 %%" % (x, p, y, 100 * top))


main()
