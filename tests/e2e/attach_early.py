#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, threads
"""Short attaches to a Linux guest: samples from before its tasks are known get their task from a later list of all
tasks, and none gets another one. The guest says what its threads do (guest/worker), and each sample with such a
thread's name must have its stack."""

import os
import signal
from collections import Counter

import e2e
import worker_truth
from e2e import check, say

# Processes with one thread; w-child is forked by one of them.
ROLES = ["w-lib", "w-alpha", "w-sys"]
ATTACHES = 5
SECONDS = 0.5


def attach(pid, i):
    out = "early-%d.data" % i
    p = e2e.kvmprof("attach", str(pid), "--duration", str(SECONDS), "--no-buildid-cache", "-o", out, timeout=120)
    if not check(p.status == 0, "attach: status %d: %s" % (p.status, p.err)):
        e2e.finish()
    return out


e2e.need_kvm()
e2e.need_tool("perf")
e2e.prefer_us()
boot = e2e.Boot(os.path.join(e2e.built_kernel("tiny"), "bzImage"), "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"),
                "-o", "inside.data", "--append", "worker.seconds=9999 worker.roles=" + ",".join(ROLES))
if not check(boot.wait_for("worker: steady", 900), "the guest's program does not run"):
    boot.process.kill()
    e2e.finish()
truth = worker_truth.told(boot.text())
outs = [attach(boot.process.pid, i) for i in range(ATTACHES)]
boot.process.send_signal(signal.SIGINT)
boot.wait(120)
say("threads: %s" % sorted(comm for _, comm, _ in truth.values()))
names, late, unknown, samples = Counter(), 0, 0, []
for path in outs:
    s = e2e.summary(path)["guest"]
    mine = list(worker_truth.perf_samples(path))
    samples += mine
    late += s["samples_named_late"]
    unknown += s["samples_of_unknown_tasks"]
    names += Counter(comm for comm, _, _, _ in mine)
    first = next((i for i, x in enumerate(mine) if x[0] != "(unknown)"), len(mine))
    say("%s: %d samples, %d named late, %d unknown, the first named one is no. %d"
        % (path, len(mine), s["samples_named_late"], s["samples_of_unknown_tasks"], first))
    check(mine and first <= len(mine) / 20, "%s: the first %d of %d samples have no name" % (path, first, len(mine)))
check(late > 0, "no sample was named late: the test shows nothing")
check(unknown * 20 <= len(samples), "%d of %d samples are of unknown tasks" % (unknown, len(samples)))
good, short, bad = worker_truth.compare_stacks(truth, samples)
check(good > 50 and bad * 1000 <= good, "of %d user stacks %d are not what the guest says" % (good + bad, bad))
# Until the tables of its files are read, a program's stack may end early.
check(short * 8 <= good, "%d of %d user stacks end early" % (short, good + short))
e2e.finish("%d short attaches: %d samples, %d named late, %d unknown; %d stacks equal, %d shorter, %d wrong; %s"
           % (ATTACHES, len(samples), late, unknown, good, short, bad, dict(names.most_common(6))))
