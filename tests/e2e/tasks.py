#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 30 s: tiny
# tests: slow, at most 1200 s: full
# tests: not svm, threads
"""Tasks seen from outside against what the guest's own kernel says of them.

    tasks.py KVMPROF SCRATCH [tiny|full]

The worker's processes wait in system calls that are known, and one of them prints
/proc/PID/stat and /proc/PID/wchan of all tasks. `kvmprof ps` is asked for the same at about
that time; the off-cpu event must add up to the time that each waited. tiny: a kernel without
types, which tells less but nothing wrong."""

import json
import os
import re
from collections import defaultdict

import e2e
from e2e import check, say

WHAT = e2e.EXTRA[0] if e2e.EXTRA else "full"
PERIOD = 0.05
WAITS = {"w-sleep": "hrtimer_nanosleep", "w-pipe": "pipe_read", "w-futex": "futex_wait",
         "w-wait": "do_wait"}
USER = {"w-sleep": "role_sleep", "w-pipe": "role_pipe", "w-futex": "role_futex", "w-wait": "role_wait"}


def proc_tasks(text):
    """{pid: (wchan, comm, state, ppid)} as the guest printed it."""
    found = {}
    for m in re.finditer(r"worker: proc (\d+) (\S+) \d+ \((.*)\) (\S) (\d+) ", text):
        found[int(m.group(1))] = (m.group(2), m.group(3)[:15], m.group(4), int(m.group(5)))
    return found


def check_list(tasks, truth):
    """Everybody is there, once, with the name, state, parent and place that the kernel tells."""
    mine = {t["tid"]: t for t in tasks}
    check(len(mine) == len(tasks), "a task is listed twice")
    same = compared = 0
    for pid, (wchan, comm, state, ppid) in truth.items():
        if comm in ("w-proc", "w-half", "init") or comm.startswith("kworker"):
            continue  # they move, or are renamed by /proc
        t = mine.get(pid)
        if not check(t is not None, "pid %d (%s) is not in the list" % (pid, comm)):
            continue
        check(comm.startswith(t["comm"]), "pid %d is %s, not %s" % (pid, comm, t["comm"]))
        check(t["ppid"] == ppid, "pid %d has parent %d, not %d" % (pid, ppid, t["ppid"]))
        if t.get("state") in "SDI" and wchan not in ("0", "-"):
            compared += 1
            if t.get("wchan") == wchan and t.get("state") == state:
                same += 1
            else:
                say("%s: %s in %s, the kernel says %s in %s" %
                    (comm, t.get("state"), t.get("wchan"), state, wchan))
    # Some run between the two looks.
    check(same >= 10 and same >= 0.8 * compared, "only %d of %d tasks wait where the kernel says" %
          (same, compared))
    for comm, where in WAITS.items():
        t = next((t for t in tasks if t["comm"] == comm), {})
        check(t.get("state") == "S", "%s is in state %s" % (comm, t.get("state")))
        check(t.get("wchan", "").startswith(where), "%s waits in %s" % (comm, t.get("wchan")))
        check(any(f.startswith(where) for f in t.get("stack", [])), "%s: its stack is %s" %
              (comm, t.get("stack")))
        check(t.get("stack_end") == "user-entry", "%s: its stack ends %s" % (comm, t.get("stack_end")))
    return same


def check_times(tasks, text):
    """CPU time as the kernel prints it, in hundredths of a second, some moments before."""
    for m in re.finditer(r"worker: proc (\d+) \S+ \d+ \((w-\S+)\) \S (.*)", text):
        pid, fields = int(m.group(1)), m.group(3).split()
        t = next((t for t in tasks if t["tid"] == pid), None)
        told = (int(fields[10]) + int(fields[11])) / 100
        if t and t["comm"] in WAITS:
            check(abs(t["cpu_ns"] / 1e9 - told) < 0.05,
                  "%s: CPU time %.2f s, the kernel says %.2f s" % (t["comm"], t["cpu_ns"] / 1e9, told))


def off_cpu(path):
    """Seconds by comm, and by comm and function of the whole stack."""
    p = e2e.kvmprof("export", "-F", "folded", "--no-marks", "--event", "off-cpu", "-i", path, "-o", "-")
    check(p.status == 0, "export: " + p.err)
    total, part = defaultdict(float), defaultdict(float)
    for line in p.out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")
        total[frames[0]] += int(weight) / 1e9
        for f in set(frames[1:]):
            part[frames[0], f] += int(weight) / 1e9
        # What else its role does, such as fork, waits for the processor, for longer on a busy machine.
        comm = frames[0]
        if comm in WAITS and USER[comm] in frames and any(f.startswith(WAITS[comm]) for f in frames):
            part[comm, "its wait"] += int(weight) / 1e9
    return total, part


def on_cpu(path, comm):
    p = e2e.kvmprof("export", "-F", "folded", "--comm", comm, "-i", path, "-o", "-")
    return sum(int(line.rsplit(" ", 1)[1]) for line in p.out.splitlines()) / 1e9


def looks_of(script):
    """{comm: [when it was seen waiting]}, of perf script's text."""
    looks = defaultdict(list)
    for comm, seconds in re.findall(r"^ *(\S+) +([0-9.]+): +off-cpu: *$", script, re.M):
        looks[comm].append(float(seconds))
    return looks


def longest_gap(looks):
    """Between two looks: a busy host makes it longer, and where in it a wait began or ended is not known."""
    times = sorted(t for seconds in looks.values() for t in seconds)
    return max((b - a for a, b in zip(times, times[1:])), default=0)


def check_all_time(looks, there):
    """Waiting and running make up all the time, of threads that stay, from their first look on."""
    last = max((max(seconds) for seconds in looks.values()), default=0)
    stay = {"rcu_gp", "oom_reaper", "kswapd0", "kthreadd"} & there & set(looks)
    check(stay, "no thread of the kernel to compare")
    for comm in stay:
        span = last - min(looks[comm]) + PERIOD
        both = total[comm] + on_cpu("tasks.data", comm)
        check(abs(both - span) < 0.02 * span + 2 * PERIOD, "%s waited and ran %.2f s of %.2f s" % (comm, both, span))


def run(seconds):
    """The machine, what ps says of it as JSON and as a table, and whether the tasks still waited then."""
    boot = e2e.Boot(os.path.join(kernel, "vmlinux"), "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"),
                    "--control", "sock", "--off-cpu", "--off-cpu-period", str(PERIOD * 1000), "--ps-at-end",
                    "-o", "tasks.data", "--append",
                    "worker.seconds=%d worker.roles=w-sleep,w-pipe,w-futex,w-wait,w-half,w-proc" % seconds)
    boot.wait_for("worker: proc end", 600)
    p = e2e.kvmprof("ps", "--control", "sock", "--stacks", "--json", "--interval", "0.2")
    text = e2e.kvmprof("ps", "--control", "sock", "--stacks", "--sort", "comm", "--no-kernel", "--interval", "0")
    in_time = "worker: waited" not in boot.text()
    boot.wait(900)
    return boot, p, text, in_time


e2e.need_kvm()
e2e.prefer_us()
kernel = e2e.built_kernel(WHAT)
# On a busy host the guest may come to the end of its list when its time is over.
for SECONDS in (8, 40):
    boot, p, text, in_time = run(SECONDS)
    if in_time:
        break
    say("ps came when %d s of the guest's were over" % SECONDS)
if not check(boot.status == 0 and p.status == 0, "status %d, ps %d: %s %s" %
             (boot.status, p.status, boot.err, p.err)):
    e2e.finish()
reply = json.loads(p.out)
same = check_list(reply["tasks"], proc_tasks(boot.text()))
if WHAT == "full":
    check_times(reply["tasks"], boot.text())
    half = next(t for t in reply["tasks"] if t["comm"] == "w-half")
    check("cpu_percent" in half, "no share of a CPU")
else:
    check(not any("cpu_ns" in t for t in reply["tasks"]), "CPU times, of a kernel without types")
check(re.search(r"^ +\d+ +\d+ +1 \S+ +S .* w-pipe +pipe_read$", text.out, re.M), "the table:\n" + text.out)
check("        [<0>] pipe_read+0x" in text.out, "its stacks:\n" + text.out)
check("kthreadd" not in text.out, "--no-kernel:\n" + text.out)
check(re.search(r"PID +TID +PPID +USER +S", boot.err), "--ps-at-end printed no list:\n" + boot.err)

s = e2e.summary("tasks.data")
look = s["off_cpu"]
check(look["looks"] > 10 and look["samples"] > 100, "looks: %s" % look)
check(look["changed"] <= 0.01 * look["tasks"], "too many tasks moved: %s" % look)
total, part = off_cpu("tasks.data")
told = {m.group(2): int(m.group(1)) for m in re.finditer(r"worker: truth (\d+) \d+ (\S+) ", boot.text())}
error, gap = 0, PERIOD
if e2e.shutil.which("perf"):
    p = e2e.run("perf", "script", "-i", "tasks.data", "-F", "comm,time,event,ip,sym", timeout=300)
    check("[S]" in p.out and "pipe_read" in p.out, "perf script: " + p.err[:300])
    check("out of order" not in p.err, "perf script: " + p.err[:300])
    looks = looks_of(p.out)
    check_all_time(looks, {comm for _, comm, _, _ in proc_tasks(boot.text()).values()})
    gap = max(PERIOD, longest_gap(looks))
for comm, where in WAITS.items():
    waited = part[comm, "its wait"]
    # By the console: on a busy host the guest's seconds are longer, and who ends a wait may be late.
    begun, ended = boot.seen(" %s main;" % comm), boot.seen("worker: waited " + comm)
    if not check(begun and ended, "%s does not say when it waited" % comm):
        continue
    error = max(error, abs(waited - (ended - begun)))
    check(abs(waited - (ended - begun)) < 0.05 * SECONDS + 2 * gap,
          "%s waited %.2f s below %s, of %.2f s" % (comm, waited, USER[comm], ended - begun))
    there = sum(v for (c, f), v in part.items() if c == comm and f.startswith(where))
    check(there > 0.9 * waited, "%s: %.2f s of %.2f s in %s" % (comm, there, waited, where))
    check(part[comm, "[S]"] > 0.9 * waited, "%s: %.2f s are [S]" % (comm, part[comm, "[S]"]))
p = e2e.kvmprof("flamegraph", "--event", "off-cpu", "-i", "tasks.data", "-o", "off.svg")
check(p.status == 0 and "off-cpu" in open("off.svg").read(), "flamegraph: " + p.err)
p = e2e.kvmprof("report", "--event", "off-cpu", "-i", "tasks.data", "--json")
check(p.status == 0 and json.loads(p.out)["event"] == "off-cpu", "report: " + p.err)
e2e.finish("%d tasks, %d where the kernel says; waits within %.2f s, looks %.2f s apart at most; a look p50 %.2f ms, p99 %.2f ms" %
           (len(reply["tasks"]), same, error, gap, look["look_ns"]["p50"] / 1e6, look["look_ns"]["p99"] / 1e6))
