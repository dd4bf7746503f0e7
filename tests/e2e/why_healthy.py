#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 3600 s: 100
# tests: slow, at most 900 s: dmesg
# tests: not svm, host
"""why_healthy.py KVMPROF SCRATCH [N | dmesg]: `kvmprof why` finds nothing wrong in N (100) guests that are well: idle, busy in programs, in
system calls, in forks and with locks, with programs that fork, compute and write as a compiler's do, under memory pressure, while they boot, and after a pause.

dmesg: `kvmprof dmesg` equals what the guest prints of its own log, byte for byte, with kernels from the oldest to the newest."""

import json
import os
import random
import re
import time

import e2e
import plant
from e2e import check, say

KERNELS = ["6.1", "smp-fp"]
KINDS = ["idle", "busy", "busy-calls", "busy-forks", "busy-locks", "compiling", "pressure", "booting", "continued"]
DMESG = ["tiny", "smp-fp", "5.10", "6.1", "6.12", "6.18", "7.3"]


def is_well(kind, seed, kernel):
    """One guest, asked at a moment that is drawn."""
    draw = random.Random("%s %d" % (kind, seed))
    words = "plant.do=%s plant.delay=0" % kind
    q = (plant.booted if kind == "booting" else plant.restored)("healthy", kernel, words)
    try:
        if kind == "booting":
            q.wait_for("Linux version", 60)
            time.sleep(draw.uniform(0, 1.5))
        else:
            time.sleep(draw.uniform(0.2, 3))
        if kind == "continued":
            os.kill(q.pid, 19)
            time.sleep(draw.uniform(1, 4))
            os.kill(q.pid, 18)
            time.sleep(0.2)
        p = e2e.kvmprof("why", "--gdb", q.stub, "--json", timeout=180)
        try:
            reply = json.loads(p.out)
        except ValueError:
            reply = None
        # Before there is a kernel in memory there is nothing to look at.
        early = kind == "booting" and p.status == 1
        text = (reply or {}).get("verdict") or p.err.strip()[-300:]
        say("%s %d: status %d, %s" % (kind, seed, p.status, text))
        return check(early or p.status == 0, "%s %d: status %d: %s %s" % (kind, seed, p.status, text, (reply or {}).get("causes") or "\n" + q.console()[-1000:]))
    finally:
        q.end()


def healthy(n):
    kernels = [plant.kernel(name) for name in KERNELS]
    good = sum(is_well(KINDS[i % len(KINDS)], i, kernels[i // len(KINDS) % len(kernels)]) for i in range(n))
    e2e.finish("%d of %d healthy guests are said to be well" % (good, n))


def same_log(name):
    q = plant.booted("log", plant.kernel(name), "plant.do=dmesg", append="loglevel=1", module=False)
    try:
        if not q.wait_for("plant: dmesg end", 120):
            return False
        text = q.console().replace("\r\n", "\n")
        m = re.search(r"^plant: dmesg (\d+)\n(.*?)plant: dmesg end", text, re.M | re.S)
        p = e2e.kvmprof("dmesg", "--gdb", q.stub, timeout=60)
        if not check(p.status == 0, "%s: dmesg: status %d: %s" % (name, p.status, p.err)):
            return False
        with open("log.guest", "w", encoding="utf-8") as f:
            f.write(m[2])
        with open("log.ours", "w", encoding="utf-8") as f:
            f.write(p.out)
        ours, own = p.out.splitlines(), m[2].splitlines()
        at = next((i for i, (a, b) in enumerate(zip(ours, own)) if a != b), min(len(ours), len(own)))
        say("%s: %d bytes, %d lines" % (name, len(m[2]), len(own)))
        return check(p.out == m[2], "%s: %d and %d lines, the first that differs is %d: %r, in the guest %r" %
                     (name, len(ours), len(own), at, ours[at:at + 1], own[at:at + 1]))
    finally:
        q.end()


e2e.need_tool("qemu-system-x86_64")
if "dmesg" in e2e.EXTRA:
    names = [a for a in e2e.EXTRA if a != "dmesg"] or DMESG
    same = [name for name in names if same_log(name)]
    e2e.finish("the log is the guest's own, byte for byte: " + ", ".join(same))
healthy(int(e2e.EXTRA[0]) if e2e.EXTRA else 100)
