#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 14 s
# tests: svm, at most 120 s
"""kvmprof stat: the counters agree with each other, with the guest and with KVM; all three forms
say the same; intervals add up; run's own summary carries the same counters."""

import json

import e2e
from e2e import check, say

TIMES = ("guest", "kvm", "vmm", "runnable", "halted", "stopped", "waiting", "untold")


def stat(*argv, **kw):
    p = e2e.kvmprof("stat", *argv, **kw)
    check(p.status == 0, "stat %s: status %d: %s" % (argv, p.status, p.err))
    return p


def value(counters, name):
    c = counters.get(name)
    return c["sum"] if c else None


def check_counts():
    p = stat("--json", "--append", "seconds=3 mode=serial")
    t = json.loads(p.out)
    c = t["counters"]
    console = len(p.err.replace("\r\n", "\n").replace("\n", "\r\n").encode())
    writes = value(c, "vmm:serial")
    # Each byte is one write, after one look at the line status; and the set-up.
    check(2 * console <= writes <= 2 * console + 50, "%d bytes on the console, %s accesses" %
          (console, writes))
    devices = sum(v["sum"] for n, v in c.items() if n.startswith("vmm:") and not n.endswith(":time"))
    check(value(c, "exit:io") == devices, "exit:io %s, accesses to devices %s" %
          (value(c, "exit:io"), devices))
    check(value(c, "exit:intr") == 0, "signals without sampling: %s" % c["exit:intr"])
    check(value(c, "time:stopped") == 0, "sampling without sampling")
    for n in TIMES:
        check("time:" + n in c, "no time:" + n)
    check(t["elapsed_ns"] > 2.9e9, "elapsed %s" % t["elapsed_ns"])
    return writes


def idle_run(_):
    """A halt whose end finds the processor taken goes on as a wait for it, and to the guest all of it is idle time."""
    p = stat("--json", "--append", "seconds=4 mode=idle", "--vcpus", "2")
    t = json.loads(p.out)
    return e2e.waited(t), (p, t)


def check_times():
    """Half of the time halted; user time as the guest says, whose ticks are coarse."""
    _, (p, t) = e2e.quietest(idle_run, e2e.WAITED)
    c = t["counters"]
    truth, _ = e2e.parse_truth(p.err)
    if not check(truth, "no truth on the console: " + p.err):
        return
    idle = sum(x.percent for x in truth if x.where == "idle")
    if c["time:halted"]:
        halted = 100 * c["time:halted"]["vcpu"][0] / t["elapsed_ns"]
        say("halted %.1f %%, the guest says %.1f %%" % (halted, idle))
        check(abs(halted - idle) < 5, "halted %.1f %%, the guest says %.1f %%" % (halted, idle))
    # The second vCPU is never started: it neither runs nor counts as KVM's work.
    for n in ("guest", "kvm", "vmm"):
        if c["time:" + n]:
            second = c["time:" + n]["vcpu"][1] / t["elapsed_ns"]
            check(second < 0.1, "vCPU 1 was in time:%s for %.1f %%" % (n, 100 * second))
    if c["time:waiting"]:
        check(c["time:waiting"]["vcpu"][1] > 0.5 * t["elapsed_ns"], "vCPU 1: %s" % c["time:waiting"])


def check_forms():
    p = stat("-q", "-x", ";", "-A", "--vcpus", "2", "--append", "seconds=1")
    rows = [line.split(";") for line in p.out.strip().split("\n")]
    check(all(len(r) == 6 and r[0] in ("CPU0", "CPU1") for r in rows), "fields: %s" % rows[:3])
    names = [r[3] for r in rows]
    check(names.count("exit:io") == 2 and names.count("time:guest") == 2, "rows: %s" % names)
    check(not p.err, "-q, but: " + p.err)
    p = stat("-q", "--append", "seconds=1")
    for name in ("time:guest", "time:kvm", "exit:io", "vmm:serial", "kvm:exits", "guest reset"):
        check(name in p.out, "no %s in %s" % (name, p.out))


def check_intervals():
    p = stat("-q", "--json", "--interval", "0.3", "--append", "seconds=2")
    lines = [json.loads(line) for line in p.out.strip().split("\n")]
    total, parts = lines[-1], lines[:-1]
    check(len(parts) >= 3 and "counters" in total, "%d intervals" % len(parts))
    for name in ("exit:io", "vmm:serial", "kvm:exits"):
        if total["counters"][name]:
            got = sum(x["stat"]["counters"][name]["sum"] for x in parts)
            check(got == total["counters"][name]["sum"], "%s: %d in parts, %d in all" %
                  (name, got, total["counters"][name]["sum"]))
    ends = [x["interval_end_seconds"] for x in parts]
    check(ends == sorted(ends), "ends of intervals: %s" % ends)


def check_cost():
    p = stat("-q", "-F", "2000", "--vcpus", "2", "--append", "seconds=1")
    check(p.out.count("periods missed; stopped p50") == 2, "no line on each vCPU's cost: " + p.out)
    run = e2e.kvmprof("run", "--json", "--vcpus", "2", "-o", "two.data", "--append", "seconds=1")
    js = json.loads(run.out)
    check(len(js["cost"]) == 2 and js["cost"][0]["stopped_ns"]["count"] > 0, "cost: %s" % js["cost"])
    check(sum(c["samples"] for c in js["cost"]) == js["samples"], "cost's samples: %s" % js["cost"])
    check(js["stat"]["counters"]["exit:io"]["sum"] > 0, "run's counters: %s" % js["stat"])
    check(e2e.summary("two.data")["cost"] == js["cost"], "the profile carries something else")
    check(run.err.count("periods missed; stopped p50") == 2, "the summary: " + run.err)
    p = e2e.kvmprof("report", "--header", "-n", "1", "-i", "two.data")
    line = next((x for x in p.out.split("\n") if x.startswith("# cost: ")), "")
    check(line and json.loads(line[len("# cost: "):]) == js["cost"], "report --header: " + p.out[:500])
    p = e2e.kvmprof("report", "--header", "--json", "-i", "two.data")
    check(p.status == 2 and p.err.count("\n") == 1, "report --header --json: %d %s" % (p.status, p.err))


def check_wrong():
    for argv in (["--interval", "0"], ["--interval", "x"], ["-I", "1"], ["-x", ""], ["-o", "f"],
                 ["--symbols", "f"], ["--json", "-x", ","], ["--max-overhead", "1"],
                 ["-F", "0"], ["a", "b"], ["-m", "1"], ["--max-overhead", "0", "-F", "10"]):
        p = e2e.kvmprof("stat", *argv)
        check(p.status == 2 and p.err.count("\n") == 1 and p.err.startswith("kvmprof stat: ") and
              not p.out, "stat %s: status %d: %s" % (argv, p.status, p.err))
    p = e2e.kvmprof("stat", "/nonexistent")
    check(p.status == 1 and p.err.count("\n") == 1, "no image: %d %s" % (p.status, p.err))
    p = e2e.kvmprof("stat", "-q", "--append", "crash=triple seconds=3")
    check(p.status == 1 and "triple fault" in p.err and "exit:shutdown" in p.out,
          "crash: %d %s" % (p.status, p.err))


e2e.need_kvm()
writes = check_counts()
check_times()
check_forms()
check_intervals()
check_cost()
check_wrong()
e2e.finish("%d accesses to the serial device, as many as the console's bytes need" % writes)
