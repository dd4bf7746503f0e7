#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 300 s
# tests: not svm, threads
"""A restore from a snapshot, in the way of Firecracker and Cloud Hypervisor (tests/e2e/microvmm.c, "save"): a new
process whose memory is a private mapping of the snapshot's file, or comes page by page from a page server, and whose
vCPU goes on in the middle of the guest. It is profiled from its first KVM_RUN, with names from the first sample."""

import json
import os
import re
import shutil
import subprocess
import time

import e2e
import microvm
from e2e import check, say

NAME = "vm-restored"
ARGV = ("--image", microvm.DEMO, "--no-status", "--no-buildid-cache", "--json", "--duration", "1.5", "-F", "499")
SHAPES = {"private mapping": {}, "page server": {"memory": "uffd"}}
HOW = {"auto": (), "ptrace": ("--technique", "ptrace"), "host": ("-e", "host")}
COUNTS = {}
ROOTS = {"demo_main", "user_main"}      # the outermost functions of the guest while it works


def attach(*argv):
    shutil.rmtree("at.data", ignore_errors=True)
    return subprocess.Popen([e2e.KVMPROF, "attach", "-o", "at.data", *ARGV, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def stacks():
    """Functions of each sample in the order of time, innermost first."""
    text = e2e.kvmprof("script", "-i", "at.data").out
    return [re.findall(r"^\s+[0-9a-f]+ (\S+?)(?:\+0x[0-9a-f]+)? \(", x, re.M) for x in text.split("\n\n") if "]" in x.split("\n", 1)[0]]


def judge(name, p):
    p.wait(120)
    out, err = p.stdout.read(), p.stderr.read()
    if not check(p.returncode == 0, "%s: status %s: %s" % (name, p.returncode, err)):
        return
    facts = json.loads(out.splitlines()[-1])
    at, samples = facts["attach"], stacks()
    if "start" not in at and name.startswith("awaited"):
        say(name + ": the VMM ran before it was found")      # on a busy host
        return
    named = [x for x in samples if ROOTS & set(x)]
    say("%s: %d samples, %d from the guest's outermost function on; the first is %s; %.1f ms of set-up, held %.1f ms"
        % (name, len(samples), len(named), samples[:1], at["start"]["kvm_ns"] / 1e6, at["start"]["held_ns"] / 1e6))
    check(not samples or samples[0] and "[unknown]" not in samples[0], "%s: the first sample has no name: %s" % (name, samples[:1]))
    check("demo: start" not in err, "%s: the guest has booted: %s" % (name, err))
    check(at["memory"] == 64 << 20 and (at["memory_from"] == "kvm" or "ptrace" in name), "%s: memory: %s" % (name, at))
    check(at["start"]["guest_ns"] > 1e9, "%s: it does not begin with the first KVM_RUN: %s" % (name, at["start"]))
    COUNTS[name] = COUNTS.get(name, 0) + len(named)


def started(shape, options, how, argv):
    words = [x for k, v in options.items() for x in ("--" + k, v)]
    p = attach(*argv, "--", "./microvmm", "--restore", "snapshot", "--names", "cloud-hypervisor", "--filter", "cloud-hypervisor", *words)
    judge("%s, %s" % (how, shape), p)


def awaited(shape, options):
    p = attach("--timeout", "60", "--wait", NAME)
    time.sleep(1)
    with microvm.MicroVM(name=NAME, restore="snapshot", **options) as vm:
        judge("awaited, " + shape, p)
        check(vm.goes_on(), "awaited, %s: the VMM does not go on" % shape)
        stats = vm.stats()
    check(stats["asked_by_others"] == 0, "%s: attach has requested %d pages" % (shape, stats["asked_by_others"]))


e2e.need_kvm()
microvm.build()
os.mkdir("snapshot")
with microvm.MicroVM() as machine:
    check(machine.wait_for("demo: start"), "the guest does not start: " + machine.text())
    time.sleep(2)
    check(machine.tell("save snapshot") == "ok", "save")
    check(machine.goes_on(), "the machine does not go on after its snapshot")
for shape_name, more in SHAPES.items():
    for how_name, how_argv in HOW.items():
        started(shape_name, more, how_name, how_argv)
    # The kernel's own thread in the VMM is left alone, also if it is there when the VMM is found.
    for _ in range(4):
        awaited(shape_name, more)
for run, count in COUNTS.items():
    check(count > 0, "%s: no sample has the guest's outermost function" % run)
e2e.finish("restored from a file and by a page server: from the first KVM_RUN, with names")
