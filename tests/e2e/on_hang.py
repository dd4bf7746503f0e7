#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, host
"""on_hang.py KVMPROF SCRATCH: `run --on-hang` and `--on-panic`, `why --watch` and what a gate makes of a run that hung.

A guest loops with interrupts off, or panics, at a moment that a module draws. Each action is carried out: the verdict names the
cause, the run ends or continues, and the command has the verdict in its environment. `why --watch` ends by itself with the same
cause, and stops a guest that is well not at all. A gate fails for a head that hung, and is inconclusive for such a base."""

import json
import re
import time

import e2e
import plant
from e2e import check

APPEND = "nokaslr "
kernel = plant.kernel("smp-fp")


def saved(cause, seed):
    """A snapshot of a guest that is about to fail so."""
    plan = plant.Plan(cause, seed, 1)
    p = e2e.kvmprof("run", kernel.image, "--initrd", plant.ram_disk(cause + ".cpio", kernel.module()), "-m", "128M", "-o", "save.data", "-F", "19",
                    "--append", APPEND + plan.words(), "--snapshot-save", cause + ".snap", "--at", "console:^plant: ready", timeout=900)
    if p.status:
        raise SystemExit("saving: " + p.err)
    return cause + ".snap"


def run(snapshot, out, *argv, status):
    p = e2e.kvmprof("run", "--snapshot", snapshot, "-o", out, "-F", "97", "-q", "--no-summary", "--hang-after", "2", *argv, timeout=600)
    check(p.status == status, "%s: status %d, not %d: %s" % (argv, p.status, status, p.err[-2000:]))
    return p.err


spins, dies = saved("irqs-off", 1), saved("panic", 2)
VERDICT = r"vCPU 0 has run with interrupts off for [0-9.]+ s: .*\."

err = run(spins, "ends.data", "--on-hang", "end", "--duration", "500", status=10)
check(re.search("^kvmprof: the guest hangs: " + VERDICT, err, re.M) and "\nChecks:\n" in err, "end: " + err)
hang = e2e.summary("ends.data")["guest_hang"]
check(hang and hang["cause"] == "irqs-off" and re.fullmatch(VERDICT, hang["text"]), "kvmprof.json has %s" % hang)
check(e2e.summary("ends.data")["end"] == "guest hangs", "the end is said to be " + e2e.summary("ends.data")["end"])

err = run(spins, "goes.data", "--on-hang", 'exec:echo "$KVMPROF_EVENT,$KVMPROF_CAUSE,$KVMPROF_PID,$KVMPROF_VERDICT" >said; exit 3', "--duration", "60", status=10)
with open("said", encoding="utf-8") as f:
    said = f.read()
check(re.fullmatch(r"hang,irqs-off,\d+," + VERDICT + "\n", said), "the command saw " + said)
check("kvmprof: --on-hang: the command ended with status 3" in err, "a command that fails: " + err)
check(e2e.summary("goes.data")["end"] == "duration reached", "exec: the end is said to be " + e2e.summary("goes.data")["end"])

err = run(dies, "dies.data", "--on-panic", "exec:echo $KVMPROF_EVENT,$KVMPROF_CAUSE >said", "--on-hang", "end", "--duration", "120", status=4)
with open("said", encoding="utf-8") as f:
    said = f.read()
check(said == "panic,panic\n", "the command saw " + said)

err = run(spins, "well.data", "--on-hang", "end", "--duration", "1", status=0)
check("hangs" not in err and e2e.summary("well.data")["guest_hang"] is None, "a guest that is well: " + err)
for base, head, status, words in (("well.data", "ends.data", 1, "the head's guest hung: vCPU 0 has run"), ("ends.data", "well.data", 3, "the base's guest hung: vCPU 0 has run")):
    p = e2e.kvmprof("gate", "--base", base, "--head", head)
    check(p.status == status and words in p.out, "gate %s %s: status %d: %s" % (base, head, p.status, p.out[:800]))

boot = e2e.Boot("--snapshot", spins, "-o", "watched.data", "-F", "19", "--control", "sock")
try:
    time.sleep(1)
    p = e2e.kvmprof("dmesg", "--control", "sock", "--lines", "5", timeout=120)
    check(p.status == 0 and p.out.count("\n") == 5, "dmesg --control: status %d: %s%s" % (p.status, p.out, p.err))
    for _ in range(9):
        p = e2e.kvmprof("why", "--watch", "--json", "--hang-after", "2", boot.process.pid, timeout=300)
        reply = json.loads(p.out or "{}")
        if reply.get("cause") != "not-scheduled":    # which is true on a host with too much load
            break
    check(p.status == 10 and reply.get("cause") == "irqs-off", "--watch: status %d: %s" % (p.status, reply.get("verdict") or p.err))
finally:
    boot.process.kill()
    boot.wait(20)
e2e.finish("a guest that hangs is explained by --on-hang, --watch and the gate")
