#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, disk
"""A program closes a library and opens another at the same addresses, again and again. What
called into it says which of the two each stack is of: none may have the other's name."""

import os
import re
from collections import Counter

import e2e
from e2e import check

WANT = {"call_one": "turn_one", "call_two": "turn_two"}


def count(text):
    """How often a stack has the right name, the other's, or none."""
    seen = Counter()
    for s in e2e.parse_script(text):
        frames = s.stack.split(";")
        caller = next((f for f in frames if f in WANT), None)
        if s.comm != "w-turns" or not caller:
            continue
        names = set(frames) & set(WANT.values())
        seen["none" if not names else "right" if names == {WANT[caller]} else "wrong"] += 1
    return seen


e2e.need_kvm()
kernel = os.path.join(e2e.built_kernel("full"), "vmlinux")
worker = os.path.join(e2e.BUILD, "guest", "worker.cpio")
# On a busy host few turns fit into the time that is enough otherwise.
for seconds in (6, 24, 96):
    boot = e2e.Boot(kernel, "--initrd", worker, "--append", "worker.roles=w-turns worker.seconds=%d" % seconds,
                    "-o", "turns.data")
    boot.wait(900)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    m = re.search(r"worker: turns (\d+), at the same place (\d+)", boot.text())
    if not m:
        check(False, "the guest did not tell its turns:\n" + boot.text()[-2000:])
        e2e.finish()
    turns, same = int(m.group(1)), int(m.group(2))
    if turns >= 5:
        break
check(turns >= 5 and same > turns / 2, "%d of %d turns at the same place" % (same, turns))
seen = count(e2e.kvmprof("script", "-i", "turns.data").out)
check(seen["wrong"] == 0, "%(wrong)d stacks have the name of the other library" % seen)
# By time: of a busy host's periods most are missed, and a sample stands for several.
summary = e2e.summary("turns.data")
periods = 1 + summary["overruns"] / max(1, summary["samples"])
check(seen["right"] * periods > 500 and seen["right"] > 100,
      "only %d stacks in a library, each of which stands for %.1f periods" % (seen["right"], periods))
check(seen["right"] > 3 * seen["none"], "%(none)d stacks without a name, %(right)d with one" % seen)
g = e2e.check_lost("turns.data")["guest"]
# Each look between two libraries may also see neither.
check(turns / 2 < g["mappings_changed"] + 1, "%d mappings changed in %d turns" %
      (g["mappings_changed"], turns))
if e2e.has_tool("perf"):
    theirs = count(e2e.perf_script("turns.data"))
    check(theirs["wrong"] == 0, "perf script: %(wrong)d wrong names" % theirs)
e2e.finish("%d turns; %s; %d mappings changed, %d frames in doubt" %
           (turns, dict(seen), g["mappings_changed"], g["user_frames_doubtful"]))
