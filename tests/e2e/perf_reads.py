#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 11 s
# tests: not svm, files
"""A real profile of the demo in stock perf, with no flags: where it was recorded, from an
empty HOME, and moved elsewhere. And as flame graph scripts read it."""

import json
import os
import re
from collections import Counter

import e2e
from e2e import check

COMPLAINT = re.compile(r"warning|kptr|restricted|not found|failed|no symbols|out of order|corrupt|can't", re.I)


def perf(*argv):
    p = e2e.run("perf", *argv)
    what = "perf " + " ".join(argv)
    check(p.status == 0, "%s: status %d: %s" % (what, p.status, p.err))
    bad = [x for x in p.err.split("\n") if COMPLAINT.search(x)]
    check(not bad, "%s complains: %s" % (what, bad))
    return p.out


def reads(path, truth, user_names):
    leaves = {t.stack.split(";")[-1]: t.where for t in truth}
    names = [n for n, where in leaves.items() if where != "user" or user_names]

    out = perf("report", "-i", path, "--stdio")
    for n in names:
        check(n in out, "perf report -i %s: no %s" % (path, n))
    kernel = re.findall(r"\[k\] (\S+)", out)
    check(kernel and not [k for k in kernel if k.startswith("0x")],
          "perf report -i %s: kernel addresses without names" % path)

    samples = e2e.parse_script(perf("script", "-i", path))
    check(len(samples) == e2e.summary(path)["samples"], "perf script -i %s: %d samples" % (path, len(samples)))

    out = perf("annotate", "-i", path, "--stdio", "left_leaf")
    hot = [float(m) for m in re.findall(r"^ +([0-9.]+) +: +[0-9a-f]+:", out, re.M)]
    check(hot and 90 < sum(hot) < 110, "perf annotate -i %s left_leaf: lines sum up to %.1f %%" % (path, sum(hot)))

    if user_names:
        out = perf("annotate", "-i", path, "--stdio", "user_leaf_long")
        check(re.search(r"^ +[0-9.]+ +: +[0-9a-f]+:", out, re.M), "perf annotate -i %s user_leaf_long" % path)

    perf("data", "convert", "--force", "--to-json", "converted.json", "-i", path)
    with open("converted.json") as f:
        converted = json.load(f)["samples"]
    check([x["timestamp"] for x in converted[:3]] and len(converted) == len(samples),
          "perf data convert -i %s: %d samples" % (path, len(converted)))
    check("left_leaf" in {x["callchain"][0].get("symbol") for x in converted if x.get("callchain")},
          "perf data convert -i %s: no left_leaf" % path)

    out = perf("diff", path, path)
    for n in names:
        check(n in out, "perf diff %s: no %s" % (path, n))


def folds(path):
    """Both scripts, through the rules of stackcollapse-perf.pl, against our own parser."""
    ours, theirs = e2e.kvmprof("script", "-i", path).out, e2e.perf_script(path)
    want = Counter(s.comm + ";" + s.stack for s in e2e.parse_script(ours))
    got = e2e.fold(ours)
    check(got == want, "kvmprof script does not fold as it reads")
    check(e2e.fold(theirs) == got, "perf script folds differently from kvmprof script")
    check(any("deep_20" in s and s.count(";") == 21 for s in got), "no deep stack in the folded text")
    return len(got)


e2e.need_kvm()
e2e.need_tool("perf")
boot = e2e.Boot("-o", "perf.data", "--append", "seconds=6").wait(90)
check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
truth, _ = e2e.parse_truth(boot.text())
if not check(truth, "the guest printed no truth table"):
    e2e.finish()

reads("perf.data", truth, True)
stacks = folds("perf.data")

# Another machine: no cache, another place. What runs in ring 3 has its names in the
# cache only (perf looks nowhere else), the kernel's travel with the directory.
os.makedirs("elsewhere/deep")
os.rename("perf.data", "elsewhere/deep/renamed")
reads("elsewhere/deep/renamed", truth, True)
e2e.new_home()
reads("elsewhere/deep/renamed", truth, False)
p = e2e.kvmprof("report", "-n", "0", "-i", "elsewhere/deep/renamed")
check("user_leaf_long" in p.out, "kvmprof report lost the user's names on another machine")

p = e2e.kvmprof("run", "-q", "--single-file", "-o", "one.data", "--append", "seconds=3")
check(p.status == 0 and os.path.isfile("one.data"), "--single-file: " + p.err)
out = perf("report", "-i", "one.data", "--stdio")
check("left_leaf" in out and "user_leaf_long" in out, "perf report of a single file has no names")
e2e.finish("%d different stacks" % stacks)
