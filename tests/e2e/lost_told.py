#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 2 s
# tests: not svm, threads
"""lost_told.py KVMPROF SCRATCH: a run whose consumer gets hardly any processor loses samples, and says so.

While it happens: in the status line and in `ctl status`. At the end: in the summary. And what is lost
leaves its time to the samples that are kept: weights add up to the run's time.
"""

import json
import os
import pty
import re
import subprocess
import threading
import time

import e2e
from e2e import check

e2e.need_kvm()
SOCKET = "run.sock"
LOST = re.compile(r"\rkvmprof: [^\r\n]*, lost (\d+)")
ENOUGH = 200


class Terminal:
    """The run, on a terminal of its own."""

    def __init__(self, *options):
        self.master, slave = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen([e2e.KVMPROF, "run", "--control", SOCKET, *options], stdin=subprocess.DEVNULL,
                                        stdout=slave, stderr=slave, env=dict(os.environ, TERM="xterm", COLUMNS="100"))
        os.close(slave)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while True:
            try:
                got = os.read(self.master, 65536)
            except OSError:
                return
            if not got:
                return
            self.text += got.decode(errors="replace")

    def status(self):
        p = e2e.kvmprof("ctl", "--control", SOCKET, "--json", "status")
        return json.loads(p.out) if p.status == 0 else None

    def threads(self, name):
        task = "/proc/%d/task" % self.process.pid
        found = []
        for tid in os.listdir(task):
            with open("%s/%s/comm" % (task, tid)) as f:
                if f.read().startswith(name):
                    found.append(int(tid))
        return found


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.05)
    check(False, "after %d s: %s" % (seconds, what))
    return None


def starve(run):
    """The consumer gets what a busy vCPU leaves on one processor: next to nothing."""
    cpu = {min(os.sched_getaffinity(0))}
    for tid in run.threads("vcpu") + run.threads("consumer"):
        os.sched_setaffinity(tid, cpu)
    for tid in run.threads("consumer"):
        os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))


def feed(run):
    for tid in run.threads("vcpu") + run.threads("consumer"):
        os.sched_setaffinity(tid, os.sched_getaffinity(0))
    for tid in run.threads("consumer"):
        os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


def in_line(run):
    return max((int(n) for n in LOST.findall(run.text)), default=0)


run = Terminal("-F", "5000", "--ring-size", "256K", "-o", "lost.data", "--no-buildid-cache",
               "--append", "seconds=600")
until("no samples", lambda: (run.status() or {}).get("samples"))
starve(run)
until("nothing is lost", lambda: run.status()["lost"] >= ENOUGH)
until("the status line does not tell it", lambda: in_line(run) >= ENOUGH)
told = run.status()["lost"]
feed(run)
time.sleep(1)
e2e.kvmprof("ctl", "--control", SOCKET, "stop")
run.process.wait(60)
check(run.process.returncode == 0, "status %d: %s" % (run.process.returncode, run.text[-500:]))
s = e2e.summary("lost.data")
check(s["lost"] >= told, "%d lost at the end, %d were told" % (s["lost"], told))
weights, whole = s["kernel_ns"] + s["user_ns"] + s["idle_ns"], 1e9 * s["run_seconds"] * s["vcpus"]
check(abs(weights - whole) < 0.05 * whole, "weights of %.3f s in a run of %.3f s" % (weights / 1e9, whole / 1e9))
e2e.finish("%d of %d samples lost, weights %.2f %% of the time" %
           (s["lost"], s["lost"] + s["samples"], 100 * weights / whole))
