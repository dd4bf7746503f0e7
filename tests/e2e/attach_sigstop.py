#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 12 s
# tests: slow, at most 3600 s: 100
# tests: not svm, threads
"""SIGSTOP and SIGCONT at random, to `kvmprof attach` or to the machine that it is attached to: nothing hangs,
attach ends well with samples that are read, and the machine goes on, free, to an end of its own.

    attach_sigstop.py KVMPROF SCRATCH [ROUNDS]

The machine is a run of kvmprof, and QEMU where there is one. While attach is stopped a vCPU may be held
(docs/attach.md): it has no notice of SIGSTOP."""

import os
import random
import signal
import subprocess
import time

import e2e
import qemu
from e2e import check

TARGETS = (True, False)    # attach itself, the machine
ROUNDS = int(e2e.EXTRA[0]) if e2e.EXTRA else 2
LIMIT_S = 60
RUN_S, STOP_S = 0.06, 0.03    # at most, between two signals
DEMO_ELF = os.path.join(e2e.BUILD, "guest", "demo.elf")


def attached(what, pid, to_attach, technique, rng):
    """Stops so far."""
    p = subprocess.Popen([e2e.KVMPROF, "attach", str(pid), "--image", DEMO_ELF, "--technique", technique, "--no-status",
                          "--no-buildid-cache", "--duration", "1", "-o", "at.data"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    stopped, stops, until = p.pid if to_attach else pid, 0, time.monotonic() + LIMIT_S
    while p.poll() is None and time.monotonic() < until:
        time.sleep(rng.random() * RUN_S)
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(rng.random() * STOP_S)
        os.kill(stopped, signal.SIGCONT)
        stops += 1
    try:
        err = p.communicate(timeout=LIMIT_S)[1]
    except subprocess.TimeoutExpired:
        p.kill()
        err = "no end: " + p.communicate()[1]
    qemu.goes_on(pid, what)
    if check(p.returncode == 0, "%s: status %s: %s" % (what, p.returncode, err)):
        q = e2e.kvmprof("report", "-i", "at.data", "-n", "1")
        check(q.status == 0 and e2e.summary("at.data")["samples"] > 0, "%s: no samples are read: %s" % (what, q.err))
    return stops


def each(machine, pid, rng):
    stops = 0
    for i in range(ROUNDS):
        for to_attach in TARGETS:
            technique = "ptrace" if i % 2 else "auto"
            what = "%s, %s, %s is stopped, round %d" % (machine, technique, "attach" if to_attach else "the machine", i)
            stops += attached(what, pid, to_attach, technique, rng)
    return stops


e2e.need_kvm()
rng = random.Random(8)
boot = e2e.Boot("-o", "run.data", "--no-buildid-cache", "--append", "seconds=86400")
if not check(boot.wait_for("demo: start", 60), "the guest did not start: " + boot.err):
    e2e.finish()
attaches = ROUNDS * len(TARGETS)
total = each("a run of kvmprof", boot.process.pid, rng)
boot.process.send_signal(signal.SIGINT)
boot.wait(LIMIT_S)
check(boot.status == 0 and "FAULT" not in boot.text().upper(), "the run: status %s: %s" % (boot.status, boot.err))
check(e2e.summary("run.data")["samples"] > 0, "the run has no samples")
if e2e.has_tool("qemu-system-x86_64"):
    q = qemu.Qemu("stopped", *qemu.DEMO, "seconds=86400")
    try:
        q.wait_for("demo: start", 60)
        total += each("QEMU", q.pid, rng)
        attaches *= 2
        check(q.process.poll() is None and "FAULT" not in q.console().upper(), "QEMU has ended, or its guest faulted: " + q.console())
    finally:
        q.end()
else:
    e2e.left_out("qemu-system-x86_64 is not installed")
e2e.finish("%d stops of %d attaches" % (total, attaches))
