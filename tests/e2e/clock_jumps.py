#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 20 s
# tests: slow, at most 900 s: all
# tests: not svm, files
"""The host's clocks jump while a guest is recorded: no crash, no hang, and a profile that can be read.

    clock_jumps.py KVMPROF SCRATCH [all]

After a suspend CLOCK_REALTIME is hours later; where the host is a machine that was paused CLOCK_MONOTONIC may be,
too. Somebody may set the time back. clock_jumps.c makes them do so, in kvmprof alone. Without `all` three jumps of `run' and two of `attach' are
tried."""

import json
import os
import signal
import subprocess

import compiled
import e2e
import qemu
from e2e import check, say

DAY = 86400
LIMIT = 60
# AFTER_MS EVERY_MS MONOTONIC_S REALTIME_S
JUMPS = {
    "a suspend of a day": "700 0 0 %d" % DAY,
    "the time is set back by a year": "700 0 0 %d" % (-365 * DAY),
    "a pause of an hour": "700 0 3600 3600",
    "a pause of ten years": "700 0 %d %d" % (3650 * DAY, 3650 * DAY),
    "one before anything begins": "0 0 3600 %d" % -DAY,
    "a second is two": "100 100 0 1",
    "pauses of a minute all the time": "300 50 60 60",
    "the time goes back all the time": "300 50 0 -60",
}
# Those of attach: its search begins at once.
ALL_THE_TIME = "pauses of a minute from the first look on"
ATTACHED = {name: JUMPS[name] for name in ("a suspend of a day", "a pause of an hour", "pauses of a minute all the time",
                                           "one before anything begins")}
ATTACHED[ALL_THE_TIME] = "0 5 60 60"
if e2e.EXTRA != ["all"]:
    JUMPS = {name: JUMPS[name] for name in ("a pause of an hour", "one before anything begins", "the time goes back all the time")}
    ATTACHED = {name: ATTACHED[name] for name in ("a pause of an hour", ALL_THE_TIME)}


def duration(plan, seconds):
    """The --duration that lasts so long, or a little longer, by a clock that did not jump: it is measured by the one that does."""
    _, every_ms, monotonic_s, _ = (int(n) for n in plan.split())
    return "%g" % (seconds + (seconds * 1000 / every_ms * monotonic_s if every_ms else 0))


def jumping(plan):
    return dict(os.environ, LD_PRELOAD=SHIM, CLOCK_JUMP=plan)


def kvmprof(what, plan, *argv):
    try:
        p = e2e.run(e2e.KVMPROF, *argv, env=jumping(plan), timeout=LIMIT)
    except subprocess.TimeoutExpired:
        check(False, "%s, %s: no end after %d s" % (argv[0], what, LIMIT))
        return None
    check(p.status == 0, "%s, %s: status %s: %s" % (argv[0], what, p.status, p.err[-500:]))
    return p


def readable(what, path, beside=()):
    """In order of time, which perf asks for, and with what the guest's functions are."""
    p = e2e.kvmprof("report", "--json", "-i", path)
    if not check(p.status == 0, "%s: report: %s" % (what, p.err)):
        return 0
    r = json.loads(p.out)
    check(not r["partial"] and r["samples"] > 0, "%s: %d samples: %s" % (what, r["samples"], r.get("message")))
    left = [f for f in e2e.leftovers() if not f.startswith(beside)]
    check(not left, "%s: left: %s" % (what, left))
    if e2e.has_tool("perf"):
        q = e2e.run("perf", "script", "-i", path)
        check(q.status == 0 and len(e2e.parse_script(q.out)) == r["samples"], "%s: perf: %s" % (what, q.err))
    return r["samples"]


def recorded(what, plan):
    p = kvmprof(what, plan, "run", "-q", "-o", "run.data", "--no-buildid-cache", "--append", "seconds=1")
    n = readable(what, "run.data") if p else 0
    # The guest's own clock did not jump; what ends with it has its samples.
    check(n > 50 or not p, "%s: only %d samples" % (what, n))
    p = kvmprof(what, plan, "run", "-q", "-o", "for.data", "--no-buildid-cache", "--duration", duration(plan, 1.5),
                "--append", "seconds=60")
    if p:
        readable(what, "for.data")
    kvmprof(what, plan, "stat", "--duration", duration(plan, 1.5), "--append", "seconds=60")
    return n


def attached(what, plan):
    """Its search for vCPUs and memory ends by time, too: the clock that jumps must not end it."""
    guest = e2e.Boot("-o", "guest.data", "--no-buildid-cache", "--append", "seconds=60")
    guest.wait_for("demo: start", 60)
    p = kvmprof(what, plan, "attach", str(guest.process.pid), "--image", os.path.join(e2e.BUILD, "guest", "demo.elf"),
                "--duration", duration(plan, 2), "-o", "at.data", "--no-buildid-cache")
    if p:
        readable(what, "at.data", beside=("guest.data",))
    guest.process.send_signal(signal.SIGINT)
    guest.wait(60)
    check(guest.status == 0 and e2e.summary("guest.data")["samples"] > 0, "%s: the guest that was attached to: %s %s" % (
        what, guest.status, guest.err))


def behind_a_gdbstub():
    """An answer is waited for by time, too."""
    if not e2e.has_tool("qemu-system-x86_64"):
        e2e.left_out("qemu-system-x86_64 is not installed")
        return
    q, stub = qemu.Qemu.with_stub("stub")
    try:
        for what in ("a pause of an hour", ALL_THE_TIME):
            kvmprof(what, ATTACHED[what], "attach", "--gdb", stub, "--image", os.path.join(e2e.BUILD, "guest", "demo.elf"),
                    "--duration", duration(ATTACHED[what], 2), "-F", "99", "-o", "gdb.data", "--no-buildid-cache")
            qemu.goes_on(q.pid, what)
    finally:
        q.end()


e2e.need_kvm()
SHIM = os.path.abspath("clock_jumps.so")
compiled.cc("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", SHIM,
            os.path.join(e2e.TOP, "tests", "e2e", "clock_jumps.c"))
# That it is there at all.
p = e2e.run("date", "+%s", env=jumping("0 0 0 %d" % (100 * DAY)))
check(int(p.out) > e2e.time.time() + 99 * DAY, "the clocks do not jump: " + p.out)
figures = []
for name, jump in JUMPS.items():
    samples = recorded(name, jump)
    say("%s: %d samples" % (name, samples))
    figures.append(samples)
for name, jump in ATTACHED.items():
    attached(name, jump)
behind_a_gdbstub()
e2e.finish("%d kinds of jumps, %d to %d samples" % (len(JUMPS), min(figures), max(figures)))
