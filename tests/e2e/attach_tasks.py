#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 35 s
# tests: not svm, threads
"""Attached to a Linux guest: its programs have the same names and tasks by BPF as by ptrace.

Three threads of two programs take turns in a guest of a `kvmprof run`, and print in which stack each spins. It is attached to
by one technique and then by the other. Nearly all samples of programs are of the right task, in the right stack.
"""

import os
import re
import time
from collections import Counter

import attached
import e2e
from e2e import check, say

SECONDS = 5
BUSY = 0.05    # of e2e.doubt(): a task may have had no processor in all that time

e2e.need_kvm()
why = attached.why_no_bpf()
if why:
    e2e.skip("no BPF on this host: " + why)
kernel = e2e.built_kernel("tiny")
boot = e2e.Boot(os.path.join(kernel, "vmlinux"), "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"),
                "-F", "19", "-o", "run.data", "--append",
                "worker.seconds=600 worker.roles=w-lib,w-threads")
said = []
try:
    until = time.monotonic() + 300
    while boot.text().count("worker: truth") < 3 and time.monotonic() < until and boot.process.poll() is None:
        time.sleep(0.1)
    for technique in attached.techniques():
        data = technique + ".data"
        p = e2e.kvmprof("attach", str(boot.process.pid), "--technique", technique, "--duration", str(SECONDS),
                        "--no-buildid-cache", "-o", data, timeout=120)
        check(p.status == 0, "attach: " + p.err)
        s = e2e.summary(data)
        attached.check_technique(s["attach"], technique, 200)
        truth = {m.group(1): m.group(2).split(";") for m in
                 re.finditer(r"worker: truth \d+ \d+ (\S+) (\S+)", boot.text())}
        # Until a vCPU was seen in the kernel for the first time, its programs have no task, which takes
        # longer on a busy machine; nor have they another's name.
        p = e2e.kvmprof("export", "-F", "folded", "-i", data, "-o", "-", "--time", ",1")
        check(p.status == 0 and not re.search(r"^swapper;\[unknown\]", p.out, re.M), "programs of the idle task:\n" + p.out)
        p = e2e.kvmprof("export", "-F", "folded", "-i", data, "-o", "-", "--time", "1,")
        check(p.status == 0, "export: " + p.err)
        of, good, wrong = Counter(), Counter(), Counter()
        for line in p.out.splitlines():
            stack, weight = line.rsplit(" ", 1)
            frames = stack.split(";")
            if any(f.endswith("_[k]") for f in frames):
                continue
            of[frames[0]] += int(weight)
            want = truth.get(frames[0])
            ok = want and ";".join(want[1:]) in stack
            (good if ok else wrong)[stack] += int(weight)
        total = sum(of.values()) or 1
        known = sum(of[c] for c in truth) / total
        share = sum(good.values()) / total
        for stack, weight in wrong.most_common(5):
            say("%s: %5.2f %% %s" % (technique, 100 * weight / total, stack))
        check(len(truth) == 3, "three roles: %s" % list(truth))
        missed = e2e.doubt(e2e.parse_script(e2e.kvmprof("script", "-i", data).out))
        if missed <= BUSY:
            check(all(of[c] for c in truth), "tasks seen: %s, of %s" % (of, list(truth)))
        elif not all(of[c] for c in truth):
            e2e.left_out("the host kept the vCPU waiting (doubt %.2f): not all tasks had a processor" % missed)
        check(known > 0.97, "%s: only %.1f %% are of a known task" % (technique, 100 * known))
        check(share > 0.9, "%s: only %.1f %% are in the stack they should be in" % (technique, 100 * share))
        said.append("%s: %.1f %% of the right task, %.1f %% in the right stack (%d samples by BPF, %d by ptrace)" % (
            technique, 100 * known, 100 * share, s["attach"]["samples_by_bpf"], s["attach"]["samples_by_ptrace"]))
    # A machine's tasks without samples, as its programs know them.
    for options in (["--json"], ["--json", "--stacks", "--interval", "0.2"]):
        p = e2e.kvmprof("ps", str(boot.process.pid), *options, timeout=120)
        if check(p.status == 0, "ps %s: %s" % (options, p.err)):
            comms = set(re.findall(r'"comm": *"([^"]*)"', p.out))
            check(set(truth) <= comms, "ps %s: %s of the tasks %s" % (options, sorted(comms), sorted(truth)))
finally:
    boot.process.kill()
    boot.wait(60)
e2e.finish("; ".join(said))
