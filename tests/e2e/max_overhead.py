#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 8 s
# tests: svm, at most 240 s
"""run --max-overhead: the rate goes down until the bound is kept, it is said once, weights still
add up to the time that passed, and shares stay right."""

import re

import e2e
from e2e import check, say

HZ = 50000
LIMIT = 0.5
SECONDS = 6


def main():
    e2e.need_kvm()
    boot = e2e.Boot("-F", HZ, "--max-overhead", LIMIT, "-o", "x.data",
                    "--append", "seconds=%d" % SECONDS).wait(120)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    s = e2e.summary("x.data")
    o = s["max_overhead"]
    say("at first %.1f %%, at the end %.3f %%, %d changes, period %.3f ms" %
        (o["first_percent"], o["last_percent"], o["changes"], o["periods"][0] / 1e6))
    check(o["limit_percent"] == LIMIT and o["changes"] >= 1, "max_overhead: %s" % o)
    check(o["first_percent"] > LIMIT, "50,000 a second cost %s" % o["first_percent"])
    # The last look may have found too much once more, and changed the rate again: then by how much it
    # was over tells nothing, but each change lowers it.
    check(o["last_percent"] < 2 * LIMIT, "not kept: %s" % o)
    check(o["periods"][0] > 10 * 1e9 / HZ, "the period is only %d ns" % o["periods"][0])
    said = re.findall(r"more than --max-overhead %g: from now on" % LIMIT, boot.err)
    check(len(said) == 1, "said %d times: %s" % (len(said), boot.err))
    check("rate was lowered for --max-overhead" in boot.err, "the summary: " + boot.err)

    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "x.data").out)
    weight = sum(x.period for x in samples) / 1e9
    # At most the last period is missing, and the set-up before the first.
    check(abs(weight - s["run_seconds"]) < 0.02 * s["run_seconds"] + 5 * o["periods"][0] / 1e9,
          "weights add up to %.3f s of %.3f s" % (weight, s["run_seconds"]))
    check(len({x.period for x in samples}) > 1, "all samples weigh the same")
    kernel = sum(x.period for x in samples if x.stack.startswith("demo_main"))
    user = sum(x.period for x in samples if x.stack.startswith("user_main"))
    share = 100 * user / (user + kernel)
    # Few samples are left, of different weights: as many draws as their squares say.
    sigma = 100 * (0.2 * 0.8) ** 0.5 * sum(x.period ** 2 for x in samples) ** 0.5 / sum(x.period for x in samples)
    truth = sum(t.percent for t in e2e.parse_truth(boot.text())[0] if t.where == "user")
    say("ring 3: %.2f %%, the truth is %.2f %%, sigma %.2f" % (share, truth, sigma))
    check(abs(share - truth) < 1 + 4 * sigma, "ring 3 has %.1f %%, the truth is %.1f %%" % (share, truth))

    boot = e2e.Boot("-q", "--max-overhead", "90", "-o", "y.data", "--append", "seconds=1").wait(60)
    check("--max-overhead" not in boot.err and e2e.summary("y.data")["max_overhead"]["changes"] == 0,
          "a bound that is kept: " + boot.err)
    e2e.finish("from %.0f to %.0f samples a second, %.1f %% to %.2f %%" %
               (HZ, 1e9 / o["periods"][0], o["first_percent"], o["last_percent"]))


main()
