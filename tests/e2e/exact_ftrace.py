#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, host
"""kvmprof run --engine exact --call-counts against Linux's own count: ftrace's function profile, in a guest
that works between two system calls, with one and with two vCPUs. What ftrace counts outside of them is taken
from a guest that does nothing in between. Each function that ftrace knows began as often as it says, and was
called as often unless it is jumped to, too. Needs neither KVM nor root."""

import os
import re
import sys
from collections import Counter

import compiled
import e2e
from e2e import check, say
from exact_engine import by_address, exact, find_qemu

START, STOP = "__x64_sys_getppid", "__x64_sys_getpgrp"
# Of functions: what compilers reach by jumps only is some of the rest.
CALLED = 0.75
NAME = 30  # characters of a name that ftrace prints


def entries():
    """By name: the addresses that functions of that name begin at."""
    out = {}
    with open(os.path.join(kernel, "System.map")) as f:
        for address, kind, name in (line.split() for line in f):
            if kind in "tTwW":
                out.setdefault(name[:NAME], []).append(int(address, 16))
    return out


def ftrace(console):
    hits = Counter()
    for part in re.findall(r"(?s)ftrace: begin.*?ftrace: end", console.replace("\r", "")):
        for name, n in re.findall(r"(?m)^\s*(\S+)\s+(\d+)\s*$", part):
            hits[name] += int(n)
    return hits


def work(turns, vcpus):
    """What ftrace says, how often functions began between the two calls, and how often they were called."""
    name = "turns%d" % turns
    compiled.cc("-O2", "-I" + e2e.TOP, "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie",
                "-fno-stack-protector", "-fcf-protection=none", "-DTURNS=%d" % turns, "-o", name,
                os.path.join(e2e.TOP, "tests", "e2e", "exact_ftrace_init.c"))
    e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), name, name + ".cpio")
    guest = ("--vcpus", str(vcpus), os.path.join(kernel, "bzImage"), "--initrd", name + ".cpio")
    p = exact("-c", "10000000", *guest, "--no-output", timeout=900)
    check(p.status == 0, "%d turns: %d %s" % (turns, p.status, p.err))
    hits = ftrace(p.out)
    p = exact("--call-counts", "-q", *guest, "--start-at", START, "--stop-at", STOP, "-o", "f.data", timeout=900)
    check(p.status == 0 and "no room" not in p.err, "%d turns, counts: %d %s" % (turns, p.status, p.err))
    executed, called = by_address("f.data", "insn-exec"), by_address("f.data", "calls")
    return (hits, Counter({f: sum(executed[a] for a in at) for f, at in begins.items()}),
            Counter({f: sum(called[a] for a in at) for f, at in begins.items()}))


def judge(vcpus):
    hits, began, calls = work(5, vcpus)
    hits0, began0, calls0 = work(0, vcpus)
    if not check(len(hits) > 300 and len(hits0) > 30, "ftrace knows %d functions, and %d" % (len(hits), len(hits0))):
        return
    known = {f for f in hits if hits[f] - hits0[f]}
    check(known <= set(begins), "no symbols: %s" % sorted(known - set(begins))[:10])
    for f in sorted(known):
        check(began[f] - began0[f] == hits[f] - hits0[f], "%d vCPUs: %s began %d times, ftrace says %d" %
              (vcpus, f, began[f] - began0[f], hits[f] - hits0[f]))
        check(calls[f] <= began[f], "%d vCPUs: %s was called %d times, and began %d times" %
              (vcpus, f, calls[f], began[f]))
    same = [f for f in known if calls[f] - calls0[f] == hits[f] - hits0[f]]
    check(len(same) >= CALLED * len(known), "only %d of %d functions were called as often" % (len(same), len(known)))
    said.append("%d vCPUs: %d functions began %d times, as ftrace says; %d of them were called as often" %
                (vcpus, len(known), sum(hits[f] - hits0[f] for f in known), len(same)))
    say(said[-1])


said = []
find_qemu()
e2e.need_tool("perf")
kernel = e2e.built_kernel("exact")
begins = entries()
judge(1)
judge(2)
e2e.finish("; ".join(said))
