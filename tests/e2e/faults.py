#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 16 s
# tests: slow, at most 3600 s: all
# tests: not svm, files
"""One system call fails: no crash, no hang, no profile that can't be read after a success, no wrong
result without a word, and no temporary file.

    faults.py KVMPROF SCRATCH              some calls of each command, spread over all
    faults.py KVMPROF SCRATCH all          all of them, but of those that are made very often
    faults.py KVMPROF SCRATCH run 3        the third part of the calls of one command, of 8

After each call of `attach` that fails, the QEMU that it attached to goes on, and no thread of it is stopped or traced.
faults_inject.c makes the calls fail. Storms are calls that are interrupted at random, and runs that are
stopped and go on."""

import atexit
import errno
import os
import random
import shutil
import signal
import subprocess
import time

import e2e
from e2e import check, say

import compiled
import qemu

SAMPLE = 14        # calls of a command in the quick form
OFTEN = 12         # of a name: beyond that its first, its last, and some between
LIMIT = 120    # a verifier that goes through a BPF program without types takes seconds
ATTACH_ROUNDS = 6
REPORT = "report.txt"
PARTS = 8


QEMU = None     # whom `attach` attaches to; None: there is none here
DEMO_ELF = os.path.join(e2e.BUILD, "guest", "demo.elf")
RECORDS = ("run", "attach")


def clean():
    for f in os.listdir("."):
        if f.startswith(("out", "new")):
            shutil.rmtree(f) if os.path.isdir(f) else os.remove(f)


def commands():
    """Name, arguments, and whether the output is the same each time."""
    found = {
        "report": (["report", "-i", "ref.data"], True),
        "script": (["script", "-i", "ref.data"], True),
        "flamegraph": (["flamegraph", "-i", "ref.data", "-o", "out.svg"], True),
        "diff": (["diff", "ref.data", "ref2.data"], True),
        "run": (["run", "-q", "-o", "new.data", "--no-buildid-cache", "--duration", "0.1"], False),
        "attach": (["attach", str(QEMU.pid) if QEMU else "0", "--image", DEMO_ELF, "-o", "new.data", "--no-buildid-cache", "--duration", "0.2"], False),
    }
    if not QEMU:
        del found["attach"]
    return found


class Outcome:
    def __init__(self, plan, argv):
        clean()
        try:
            p = e2e.run(INJECT, REPORT, plan, e2e.KVMPROF, *argv, timeout=LIMIT)
            self.status, self.out, self.err = p.status, p.out, p.err
        except subprocess.TimeoutExpired:
            self.status, self.out, self.err = None, "", ""
        with open(REPORT) as f:
            lines = [line.split() for line in f]
        self.hit = int(lines[-1][1])
        self.calls = [(w[0], int(w[1]), [int(x) for x in w[2].split(",")] if len(w) > 2 else [])
                      for w in lines[:-1]]
        if os.path.exists("out.svg"):
            with open("out.svg") as f:
                self.out += f.read()
        self.left = sorted(os.listdir("."))


def plans(calls):
    """Each call that may fail, with each of its errors."""
    for name, count, errors in calls:
        if count <= OFTEN:
            some = range(1, count + 1)
        else:
            some = sorted({1, 2, 3, count, count - 1} | {1 + count * i // OFTEN for i in range(OFTEN)})
        for nth in some:
            for error in errors:
                yield "fail:%s:%d:%d" % (name, nth, error)


def spread(found, n):
    random.Random(7).shuffle(found)
    # One of each name before a second one of any.
    by_name = {}
    for p in found:
        by_name.setdefault(p.split(":")[1], []).append(p)
    order = sorted(found, key=lambda p: by_name[p.split(":")[1]].index(p))
    return order[:n]


def words(plan):
    w = plan.split(":")
    return "%s %s fails with %s" % (w[1], w[2], errno.errorcode[int(w[3])]) if w[0] == "fail" else plan


def judge(command, plan, ref, o):
    what = "%s, %s" % (command, words(plan))
    if command == "attach":
        if check(QEMU.process.poll() is None, "%s: QEMU has ended" % what):
            qemu.goes_on(QEMU.pid, what)
    if not check(o.status is not None, "%s: no end after %d s" % (what, LIMIT)):
        return
    if not check(o.status < 124, "%s: status %d: %s" % (what, o.status, o.err[-400:])):
        return
    # A profile that is complete but could not get its name is told of.
    left = [f for f in o.left if ".tmp" in f or f.startswith("core")]
    check(not left or (o.status and "the profile is %s" % left[0] in o.err), "%s: left: %s" % (what, left))
    if o.status:
        check(o.err.strip(), "%s: status %d without a word" % (what, o.status))
    elif command in RECORDS:
        p = e2e.kvmprof("report", "-i", "new.data", "-n", "1")
        check(p.status == 0 and "samples" in p.out, "%s: status 0, and report says %s" % (what, p.err))
    else:
        new = o.err.strip() != ref.err.strip()
        check(o.out == ref.out or new, "%s: another result, without a word" % what)
    if o.status and command in RECORDS and os.path.exists("new.data"):
        p = e2e.kvmprof("report", "-i", "new.data", "-n", "1")
        check(p.status == 0 or "there are no samples in it" in p.err,
              "%s: status %d, and report of what was left says %s" % (what, o.status, p.err))


def inject(command, part=None, quick=False):
    """How many calls failed; each once."""
    argv, same = commands()[command]
    ref = Outcome("count", argv)
    if ref.status == 125:
        e2e.skip("no seccomp notification on this kernel: " + ref.err.strip())
    check(ref.status == 0, "%s: %s" % (command, ref.err))
    again = Outcome("count", argv)
    check(not same or again.out == ref.out, "%s: its output is not the same each time" % command)
    found = list(plans(ref.calls))
    if quick:
        # Each thread's filter goes through a file in memory; what cannot be made must not cost the profile.
        filters = [p for p in found if p.startswith("fail:memfd_create:")]
        found = filters + spread([p for p in found if p not in filters], SAMPLE)
    elif part is not None:
        found = found[part::PARTS]
    hits, failed = 0, 0
    for plan in found:
        o = Outcome(plan, argv)
        hits += o.hit
        failed += bool(o.status)
        judge(command, plan, ref, o)
    say("%s: %d calls failed, %d times the command did" % (command, hits, failed))
    check(hits * 10 >= len(found) * 7, "%s: of %d calls only %d were made" % (command, len(found), hits))
    return hits


def interrupt(rounds):
    """Calls that can be interrupted are, one in three: all goes on as if nothing was."""
    for command, (argv, same) in commands().items():
        ref = Outcome("count", argv)
        # attach looks for threads and memory until it has them: what is lost there is seen in some rounds only.
        for seed in range(max(rounds, ATTACH_ROUNDS) if command == "attach" else rounds):
            plan = "storm:%d:33" % (seed + 1)
            # Its lists are written to a memory file, of which no call can be interrupted.
            o = Outcome(plan, argv + ["--sandbox=off"] if command in RECORDS else argv)
            check(o.status == 0, "%s, %s: status %s: %s" % (command, plan, o.status, o.err[-300:]))
            check(not same or o.out == ref.out, "%s, %s: another result" % (command, plan))
            judge(command, plan, ref, o)


def stop_and_continue(rounds):
    """A run that is stopped and goes on at random, as by a shell."""
    rng = random.Random(5)
    for _ in range(rounds):
        clean()
        p = subprocess.Popen([e2e.KVMPROF, *commands()["run"][0][:-1], "0.6"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while p.poll() is None:
            time.sleep(rng.random() * 0.05)
            p.send_signal(signal.SIGSTOP)
            time.sleep(rng.random() * 0.02)
            p.send_signal(signal.SIGCONT)
        err = p.stderr.read().decode()
        q = e2e.kvmprof("report", "-i", "new.data", "-n", "1")
        check(p.returncode == 0 and q.status == 0, "stopped: status %s: %s %s" % (p.returncode, err, q.err))


e2e.need_kvm()
INJECT = os.path.abspath("faults_inject")
compiled.cc("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", INJECT, os.path.join(e2e.TOP, "tests", "e2e", "faults_inject.c"))
for name in ("ref.data", "ref2.data"):
    p = e2e.kvmprof("run", "-q", "-o", name, "--no-buildid-cache", "--duration", "0.5")
    check(p.status == 0, "%s: %s" % (name, p.err))
if e2e.has_tool("qemu-system-x86_64"):
    QEMU = qemu.Qemu("attached", *qemu.DEMO, "seconds=86400")
    atexit.register(QEMU.end)
    QEMU.wait_for("demo: start", 60)
if e2e.EXTRA[:1] == ["all"]:
    total = sum(inject(c) for c in commands())
    interrupt(10)
    stop_and_continue(5)
elif e2e.EXTRA:
    total = inject(e2e.EXTRA[0], int(e2e.EXTRA[1]) if e2e.EXTRA[1:] else None)
else:
    total = sum(inject(c, quick=True) for c in commands())
    interrupt(1)
    stop_and_continue(1)
clean()
if QEMU:
    check("FAULT" not in QEMU.console().upper(), "the guest faulted: " + QEMU.console())
e2e.finish("%d calls failed" % total)
