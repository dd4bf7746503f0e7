#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 18 s: quick
# tests: slow, at most 7200 s: all 10
# tests: not svm, host
"""why_causes.py KVMPROF SCRATCH [quick | all [N] | some CAUSE,... [N [KERNEL]] | one CAUSE SEED [KERNEL] | plant CAUSE SEED [KERNEL]]: `kvmprof why`
against guests in which a cause was planted (plant.py), each N times with other locks, tasks, processors and delays.

The judge knows the truth by the plan and the guest's console, which `why` does not read. A verdict is right where its cause is the planted one,
its proof has the lock, task or processor of the truth, and no check is bad that does not follow from it. "Not known" is
counted apart; another cause is wrong, and fails. Guests run under QEMU without KVM, with real timers and local APICs; what only
a host's KVM shows runs under that. one: the whole output of a single verdict; plant: the guest stays for ten minutes; quick: three causes, and two guests that are well."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter, namedtuple

import e2e
import microvm
import plant
from e2e import check, say

HANG = 2    # seconds after which what stands still is a hang
AT_LEAST = 20    # causes of 22 that are to be named in each run

# What else follows from a cause: tasks that wait also hang, a processor that is lost has no timer, and so on.
STANDS = {"soft-lockup", "rcu-stall", "workqueue", "lost-timer", "hung-task", "pending-interrupt", "user-loop"}
FOLLOWS = {
    "mutex": {"hung-task"}, "deadlock": {"mutex", "hung-task"}, "spinlock": STANDS | {"irqs-off"}, "irqs-off": STANDS, "halted-irqs-off": STANDS,
    "lost-timer": STANDS, "pending-interrupt": STANDS, "rcu-stall": {"hung-task"}, "workqueue": {"hung-task", "rcu-stall"}, "soft-lockup": STANDS,
    "irq-storm": STANDS, "out-of-memory": {"hung-task", "mutex"}, "disk": {"hung-task", "boot-wait", "mutex"}, "panic": STANDS | {"irqs-off", "halted-irqs-off"},
    "stack-overflow": STANDS | {"panic", "irqs-off", "halted-irqs-off"}, "boot-wait": {"hung-task"}, "user-loop": {"rcu-stall", "hung-task", "workqueue", "soft-lockup"},
    "not-scheduled": STANDS | {"vmm-thread"}, "paused": STANDS, "memory-absent": STANDS | {"vmm-thread"}, "vmm-thread": STANDS | {"paused"}}

Verdict = namedtuple("Verdict", "status reply err seconds")


def why(*target):
    p = e2e.kvmprof("why", *target, "--json", "--hang-after", str(HANG), timeout=180)
    try:
        return Verdict(p.status, json.loads(p.out), p.err, p.seconds)
    except ValueError:
        return Verdict(p.status, None, p.err + p.out[:300], p.seconds)


# -- guests ----------------------------------------------------------------------------

class Guest:
    """A guest in which a cause is planted: .target for `why`, .console(), .end()."""

    def __init__(self, target, console, end, pid=None):
        self.target, self.console, self.end, self.pid = target, console, end, pid


loaded = {}


def kernel_named(name):
    if name not in loaded:
        loaded[name] = plant.kernel(name)
    return loaded[name]


def interpreted(plan, name, own="guest"):
    """Under QEMU, without KVM. own: the machine's name, for its files."""
    kernel = kernel_named(name)
    if plan.cause == "boot-wait" and plan.bits & 1:
        m = plant.Machine(own, "-kernel", kernel.image, "-append", plant.APPEND + " root=/dev/vd%c rootwait" % "abcdefgh"[plan.bits >> 1 & 7])
        m.wait_for("Waiting for root device", 90)
    else:
        if plan.cause == "disk":
            m = plant.booted(own, kernel, plan.words(), *plant.disk(), module=False)
        else:
            m = plant.restored(own, kernel, plan.words())
        m.wait_for("plant: planted", 60)
        if plan.cause == "out-of-memory":
            until = time.monotonic() + 120    # it takes an interpreted guest long to fill its memory
            while m.console().count("Out of memory: Killed") < 2 and time.monotonic() < until:
                time.sleep(0.2)
    return Guest(["--gdb", m.stub], m.console, m.end, m.pid)


def under_kvm(plan, _):
    """Under KVM, where the host's side is what is planted: the process stands, or has no processor."""
    snapshot = ready_snapshot()
    boot = e2e.Boot("--snapshot", snapshot, "-o", "kvm.data", "-F", "19")
    hogs = []

    def end():
        for h in hogs:
            h.kill()
            h.wait()
        boot.process.send_signal(signal.SIGCONT)
        boot.process.kill()
        boot.wait(20)

    time.sleep(0.5 + plan.delay / 1000)
    if plan.cause == "paused":
        boot.process.send_signal(signal.SIGSTOP)
    else:
        cpu = {plan.cpu}
        for tid in os.listdir("/proc/%d/task" % boot.process.pid):
            os.sched_setaffinity(int(tid), cpu)
            os.sched_setscheduler(int(tid), os.SCHED_IDLE, os.sched_param(0))
        hogs += [subprocess.Popen(["taskset", "-c", str(plan.cpu), "sh", "-c", "while :; do :; done"]) for _ in range(2)]
    return Guest([str(boot.process.pid)], boot.text, end, boot.process.pid)


def ready_snapshot():
    """The tiny kernel with busy programs: booted once."""
    if not os.path.exists("ready.snap"):
        tiny = e2e.built_kernel("tiny")
        p = e2e.kvmprof("run", os.path.join(tiny, "vmlinux"), "--initrd", plant.ram_disk("busy.cpio"), "-m", "64M", "-o", "save.data",
                        "--append", "plant.do=busy", "--snapshot-save", "ready.snap", "--at", "console:^plant: ready", timeout=600)
        if p.status:
            raise SystemExit("saving: " + p.err)
    return "ready.snap"


def small_vmm(plan, _):
    """A VMM as Firecracker is: memory that its page server does not send, or threads of vCPUs that wait in the VMM: all of up to three, or the last."""
    if not os.path.exists("microvmm"):
        microvm.build()
    absent = plan.cause == "memory-absent"
    vcpus = 1 if absent else 1 + plan.bits % 3
    m = microvm.MicroVM("seconds=600", memory="uffd" if absent else "anon", vcpus=vcpus)
    m.wait_for("demo: start")
    time.sleep(plan.delay / 1000)
    for command in ("dead", "drop") if absent else (("hold " if vcpus > 1 and plan.bits & 8 else "pause ") + ("futex", "poll", "epoll", "nanosleep")[plan.kind % 4],):
        m.tell(command)
    return Guest([str(m.pid), ], m.text, lambda: m.__exit__(), m.pid)


HOSTS = {"not-scheduled": under_kvm, "paused": under_kvm, "memory-absent": small_vmm, "vmm-thread": small_vmm}


def guest(plan, name):
    return HOSTS.get(plan.cause, interpreted)(plan, name)


# -- the judge -------------------------------------------------------------------------

def numbers(value):
    """All numbers in a proof."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [n for v in value for n in numbers(v)]
    if isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value):
        return [int(value, 16)]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def lacks(plan, proof, text):
    """What a proof should have and has not, by the truth; "" where it is complete."""
    truths = plant.truths(text)
    tids = {int(t["thread"]): int(t["tid"]) for t in truths if "thread" in t}
    locks = [int(t["address"], 16) for t in truths if "address" in t]
    have = {n & (1 << 64) - 1 for n in numbers(proof)}
    if plan.cause == "mutex":
        return "" if locks[0] in have and tids[0] in have else "lock %#x, owner %d" % (locks[0], tids[0])
    if plan.cause == "deadlock":
        missing = [t for i, t in tids.items() if i < plan.threads and t not in have]
        return "threads %s" % missing if missing else ""
    if plan.cause == "spinlock":
        return "" if locks[0] in have or plan.kind & 4 and have else "lock %#x" % locks[0]
    if plan.cause in ("disk", "user-loop"):
        tids = {0: int(next(t["tid"] for t in truths if "tid" in t))}
    if plan.cause in ("hung-task", "stack-overflow", "disk", "user-loop"):
        return "" if tids[0] in have else "task %d" % tids[0]
    if plan.cause in ("irqs-off", "halted-irqs-off", "soft-lockup", "lost-timer"):
        return "" if plan.cpu in (proof.get("vcpu"), proof.get("cpu")) else "vCPU %d" % plan.cpu
    return "" if have or any(proof.values()) else "anything"


def judge(plan, v, text):
    """("named" | "not known" | "wrong", why)"""
    if v.reply is None:
        return "not known", "status %d: %s" % (v.status, v.err.strip()[-200:])
    cause, causes = v.reply.get("cause"), v.reply.get("causes", [])
    if cause is None:
        return "not known", "%s: %s" % (v.status, v.reply.get("verdict"))
    if cause != plan.cause:
        return "wrong", "%s: %s" % (cause, v.reply.get("verdict"))
    more = [c for c in causes if c != cause and c not in FOLLOWS.get(plan.cause, ())]
    if more:
        return "wrong", "%s are bad, too" % more
    if v.status != 10:
        return "wrong", "status %d" % v.status
    missing = lacks(plan, next((c.get("proof") or {} for c in v.reply["checks"] if c["name"] == cause), {}), text)
    return ("wrong", "the proof has not " + missing) if missing else ("named", v.reply["verdict"])


def one(cause, seed, name):
    """Plants it, asks, and judges: (opinion, reason, seconds of why, longest stop in ms)."""
    plan = plant.Plan(cause, seed, 2)
    g = guest(plan, name)
    try:
        time.sleep(HANG + 2)
        v = why(*g.target)
        text = g.console()
        check("plant: failed" not in text, "%s: the guest: %s" % (plan, text[-500:]))
        opinion, reason = judge(plan, v, text)
        say("%-9s %s: %s" % (opinion, plan, reason))
        return opinion, v
    finally:
        g.end()


def show(cause, seed, name):
    plan = plant.Plan(cause, seed, 2)
    g = guest(plan, name)
    try:
        time.sleep(HANG + 2)
        say("%s\n%s" % (plan, "\n".join(l for l in g.console().splitlines() if "plant:" in l)))
        say("why " + " ".join(g.target))
        p = e2e.kvmprof("why", *g.target, "--hang-after", str(HANG), timeout=180)
        say("status %d\n%s%s" % (p.status, p.out, p.err))
        v = why(*g.target)
        say("%s" % (judge(plan, v, g.console()),))
    finally:
        g.end()


def stay(cause, seed, name):
    plan = plant.Plan(cause, seed, 2)
    g = guest(plan, name)
    try:
        say("%s\nwhy %s (10 minutes)" % (plan, " ".join(g.target)))
        time.sleep(600)
    finally:
        g.end()


def table(results):
    """A row for each cause."""
    say("%-18s %5s %9s %5s" % ("cause", "right", "not known", "wrong"))
    for cause, r in results.items():
        say("%-18s %5d %9d %5d" % (cause, r["named"], r["not known"], r["wrong"]))


def quick_cause(cause):
    """One cause of the quick form: its row, and what `why` said."""
    plan = plant.Plan(cause, len(cause), 2)
    g = interpreted(plan, "6.1", cause)
    try:
        time.sleep(HANG + 1)
        v = why(*g.target)
        opinion, reason = judge(plan, v, g.console())
    finally:
        g.end()
    check(opinion == "named", "%s: %s: %s" % (plan, opinion, reason))
    return cause, Counter([opinion]), v


def quick_well(what):
    """One guest of the quick form that is well."""
    m = plant.restored(what, kernel_named("6.1"), "plant.do=%s plant.delay=0" % what)
    try:
        time.sleep(0.5)
        v = why("--gdb", m.stub)
    finally:
        m.end()
    is_well = check(v.status == 0 and v.reply, "%s: status %d: %s" % (what, v.status, (v.reply or {}).get("verdict") or v.err))
    return what, Counter(["named" if is_well else "wrong"]), v


def quick():
    """Three causes and two guests that are well, at the same time."""
    plant.saved(kernel_named("6.1"))
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        rows = [pool.submit(quick_cause, c) for c in ("deadlock", "halted-irqs-off", "rcu-stall")]
        rows += [pool.submit(quick_well, w) for w in ("idle", "busy-calls")]
        rows = [r.result() for r in rows]
    table({what: counts for what, counts, _ in rows})
    e2e.finish("5 verdicts, the longest took %.2f s, and the longest stop %.1f ms" %
               (max(v.seconds for _, _, v in rows), max((v.reply or {}).get("longest_stop_ns", 0) for _, _, v in rows) / 1e6))


def many(causes, runs, name):
    results, seconds, stops = {c: Counter() for c in causes}, [], []
    for seed in range(runs):    # all causes in turn, so that a run which is cut short has seen each of them
        for cause in causes:
            opinion, v = one(cause, seed, name)
            results[cause][opinion] += 1
            seconds.append(v.seconds)
            stops.append((v.reply or {}).get("longest_stop_ns", 0))
    table(results)
    wrong = sum(r["wrong"] for r in results.values())
    always = sum(r["named"] == runs for r in results.values())
    check(wrong == 0, "%d wrong verdicts" % wrong)
    if len(causes) == len(plant.CAUSES):
        check(always >= AT_LEAST, "%d of %d causes were named in each run" % (always, len(causes)))
    else:
        check(always == len(causes), "%d of %d causes were named in each run" % (always, len(causes)))
    e2e.finish("%d of %d causes named in each of %d runs, %d wrong; a verdict took %.2f s at most, stopped %.1f ms at most" %
               (always, len(causes), runs, wrong, max(seconds), max(stops) / 1e6))


e2e.need_tool("qemu-system-x86_64")
WHAT = e2e.EXTRA[0] if e2e.EXTRA else "all"
if WHAT in ("one", "plant"):
    {"one": show, "plant": stay}[WHAT](e2e.EXTRA[1], int(e2e.EXTRA[2]), e2e.EXTRA[3] if len(e2e.EXTRA) > 3 else "6.1")
elif WHAT == "some":
    many(e2e.EXTRA[1].split(","), int(e2e.EXTRA[2]) if len(e2e.EXTRA) > 2 else 1, e2e.EXTRA[3] if len(e2e.EXTRA) > 3 else "6.1")
elif WHAT == "quick":
    quick()
else:
    many(plant.CAUSES, int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 10, "6.1")
