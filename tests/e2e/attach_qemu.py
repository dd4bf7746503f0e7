#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 42 s
# tests: slow, at most 3600 s: 10000
# tests: not svm, threads
"""Attached to a real QEMU: true shares and stacks, and nothing of us stays behind.

The demo guest boots in an unmodified QEMU by PVH and tells what it spent its time on. It is
profiled from outside, by BPF where this host allows that, and by ptrace alone; then the profiler is killed many times at random moments, and comes and
goes many times more, while the guest works on: it ends as it should, and QEMU has as many
descriptors and threads as before, and no more memory.
"""

import os
import random
import re
import signal
import subprocess
import time
from collections import Counter

import demo_judge
import attached
import compiled
import e2e
import qemu
from e2e import check, say

POINTS = 1.5
SECONDS = 10
KILLS = 200 if e2e.EXTRA else 60
USER = 2  # SAMPLE_USER
CYCLES = int(e2e.EXTRA[0]) if e2e.EXTRA else 100

e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
e2e.prefer_us()
random.seed(7)


class Watched(qemu.Qemu):
    def state(self):
        """Descriptors, threads, and the letters of the threads' states."""
        tasks = os.listdir("/proc/%d/task" % self.pid)
        states = set()
        for t in tasks:
            try:
                with open("/proc/%d/task/%s/stat" % (self.pid, t), encoding="ascii") as f:
                    states.add(f.read().rsplit(")", 1)[1].split()[0])
            except FileNotFoundError:
                pass
        return len(os.listdir("/proc/%d/fd" % self.pid)), len(tasks), states

    def rss(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10


def build_probe():
    """The bare machinery, which prints what it saw."""
    compiled.tool("e2e/attach_probe.c")


def true_shares(technique):
    """The summary, and how far the shares are off."""
    doubt, (s, profile) = e2e.quietest(lambda _: profile_of(technique), demo_judge.BUSY)
    return s, demo_judge.judge("attached by " + technique, *profile, POINTS, doubt)


def profile_of(technique):
    """How much missed periods may shift the shares, the summary, and what judge() takes."""
    q = Watched(technique, *qemu.DEMO, "seconds=%d" % SECONDS)
    try:
        q.wait_for("demo: tsc", 30)
        before = q.state()
        attach = subprocess.Popen(
            [e2e.KVMPROF, "attach", str(q.pid), "--image",
             os.path.join(e2e.BUILD, "guest", "demo.elf"), "--technique", technique, "-o", "qemu.data"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        q.wait_for("truth ", SECONDS * 4)
        attach.send_signal(signal.SIGINT)
        err = attach.communicate(timeout=60)[1].decode()
        check(attach.returncode == 0, "attach: status %d\n%s" % (attach.returncode, err))
        q.wait_for("demo: done", 30)
        after = q.state()
        check(before[:2] == after[:2], "descriptors and threads: %s, then %s" % (before, after))
        check(not after[2] & {"t", "T"}, "stopped threads: %s" % (after,))
        truth, outside = e2e.parse_truth(q.console())
    finally:
        q.end()
    s = e2e.summary("qemu.data")
    say("%d samples, %d lost, stopped %s" % (s["samples"], s["lost"], s["stopped_ns"]))
    check(s["attach"]["proofs"] >= 3, "proofs: %s" % s["attach"])
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "qemu.data").out)
    doubt = demo_judge.doubt(samples, truth)
    attached.check_technique(s["attach"], technique, 100 if doubt <= demo_judge.BUSY else 1)
    check(s["samples"] > SECONDS * 100 or doubt > demo_judge.BUSY, "only %d samples" % s["samples"])
    check(s["lost"] <= s["samples"] / 100, "lost %d" % s["lost"])
    return doubt, (s, (samples, truth, outside))


def killed(q):
    for i in range(KILLS):
        p = subprocess.Popen(["./attach_probe", str(q.pid), "5000", "60000"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Each fourth one while it is still looking for threads and memory.
        time.sleep(random.uniform(0, 0.06 if i % 4 else 0.01))
        p.kill()
        p.wait()
        states = q.state()[2]
        if states & {"t", "T"}:
            time.sleep(0.2)  # the kernel is just letting it go
            check(not q.state()[2] & {"t", "T"}, "stopped after kill %d: %s" % (i, q.state()))
    # The pages still ask for registers, which costs nothing; the next one takes that back.
    p = e2e.run("./attach_probe", q.pid, 997, 300)
    check(p.status == 0, "no more attaching after the kills: " + p.err)


def cycles(q):
    before, rss, begin = q.state(), q.rss(), time.monotonic()
    p = e2e.run("./attach_probe", q.pid, 2000, 2, CYCLES, timeout=3000)
    check(p.status == 0, "cycles: " + p.err)
    after = q.state()
    check(before[:2] == after[:2], "after %d cycles: %s, then %s" % (CYCLES, before, after))
    say("%d cycles in %.0f s: QEMU's descriptors %d -> %d, threads %d -> %d, resident KiB %d -> %d" %
        (CYCLES, time.monotonic() - begin, before[0], after[0], before[1], after[1], rss >> 10, q.rss() >> 10))
    check(q.rss() - rss < 1 << 20, "memory grew by %d bytes" % (q.rss() - rss))
    return q.rss() - rss


def user_rips(q, technique):
    """How often each instruction of ring 3 was hit."""
    p = e2e.run("./attach_probe", q.pid, 4000, 500, 1, technique)
    check(p.status == 0, "attach_probe: " + p.err)
    return Counter(re.findall(r"^\d+ %d (0x[0-9a-f]+)$" % USER, p.out, re.M))


def same_instructions():
    """Both techniques see the same instructions, each as often: half of the sum of differences of shares.
    In ring 3 alone, and in turns: what the guest does changes with time."""
    if len(attached.techniques()) < 2:
        return "no BPF here"
    q = Watched("gaps", *qemu.DEMO, "mode=gaps")
    try:
        q.wait_for("gaps at", 60)
        a, b = Counter(), Counter()
        # On a busy host most samples find the guest waiting.
        for i in range(20):
            a += user_rips(q, "bpf")
            b += user_rips(q, "ptrace")
            if i >= 3 and min(sum(a.values()), sum(b.values())) > 400:
                break
    finally:
        q.end()
    na, nb = sum(a.values()), sum(b.values())
    if not check(na > 400 and nb > 400, "only %d and %d samples of ring 3" % (na, nb)):
        return "too few samples"
    apart = sum(abs(a[r] / na - b[r] / nb) for r in a.keys() | b.keys()) / 2
    only = sum(n for r, n in a.items() if r not in b) / na
    check(apart < 0.15, "instructions differ: distance %.2f\n%s\n%s" % (apart, a.most_common(12), b.most_common(12)))
    check(only < 0.02, "%.1f %% of the samples by BPF are at instructions that ptrace never sees" % (100 * only))
    return "%d and %d samples of ring 3 at %d instructions, distance %.3f" % (na, nb, len(a), apart)


build_probe()
shares = {technique: true_shares(technique) for technique in attached.techniques()}
instructions = same_instructions()
guest = Watched("long", *qemu.DEMO, "seconds=%d" % (600 + CYCLES // 2))
try:
    guest.wait_for("demo: start", 30)
    killed(guest)
    grown = cycles(guest)
    check(guest.process.poll() is None, "QEMU has ended")
    check("FAULT" not in guest.console().upper(), "the guest faulted: " + guest.console())
finally:
    guest.end()
e2e.finish("%s; %s; %d kills, %d cycles, QEMU's memory %+d KiB" % (
    "; ".join("%s: worst share off by %.2f points, stopped %.1f us (median), %d samples by BPF, %d by ptrace" % (
        technique, worst, s["stopped_ns"]["p50"] / 1e3, s["attach"]["samples_by_bpf"],
        s["attach"]["samples_by_ptrace"]) for technique, (s, worst) in shares.items()), instructions, KILLS, CYCLES, grown >> 10))
