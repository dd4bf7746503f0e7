#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 25 s
# tests: not svm, load
"""Events other than wall-clock time, on real counters of the host's kernel.

* exit:io: as many as the guest made port writes, as the device counted, in the stacks that made
  them; with -c N the same sum from fewer samples.
* cpu, task-clock and cpu-clock find the demo's truth; in HLT they stand still, and wall does not.
* Several events in one profile: perf and kvmprof tell them apart, from directory, file and pipe.
* What the host refuses is named with its cause, before a guest runs; cpu stands in for cycles.
* A guest that halts for good ends the run, although only wall-clock time looks at it.
"""

import json
import os
import re
import struct

import e2e
from e2e import check

PORTS = 1500
POINTS = 3    # and four sigma: a busy host leaves few samples
TAKEN = 0.1   # of the CPU, by others

e2e.need_kvm()
e2e.need_tool("perf")


def run(*argv, prefix=(), status=0, timeout=120):
    p = e2e.run(*prefix, e2e.KVMPROF, "run", *argv, timeout=timeout)
    check(p.status == status, "run %s: status %d: %s" % (" ".join(argv), p.status, p.err))
    return p


def event(s, asked):
    return next((e for e in s["events"] if e["asked"] == asked), {})


def exits(s, port):
    return sum(d["exits"] for d in s["devices"] if d["ports"][0] <= port <= d["ports"][1])


def samples(path, name):
    """(weight, stack) of one event, as perf script shows it."""
    text = e2e.run("perf", "script", "-i", path, "-F", "comm,tid,cpu,time,period,event,ip,sym,dso").out
    found, head, frames = [], None, []
    for line in text.split("\n") + [""]:
        m = re.match(r"^\S.*\s(\d+)\s+(\S+?):\s*$", line)
        if m:
            head, frames = m.groups(), []
        elif line.strip() and head:
            frames.append(line.split()[1])
        elif not line.strip() and head:
            if head[1] == name:
                found.append((int(head[0]), ";".join(reversed(frames))))
            head = None
    return found


def perf_counts(path, stdin=None):
    """{event: samples} of perf script."""
    with open(stdin or os.devnull, "rb") as f:
        p = e2e.subprocess.run(["perf", "script", "-i", path, "-F", "event,tid"], stdin=f,
                               stdout=e2e.subprocess.PIPE, stderr=e2e.subprocess.PIPE)
    check(p.returncode == 0, "perf script -i %s: %s" % (path, p.stderr))
    names = re.findall(r"^\s*-?\d+\s+(\S+?):\s*$", p.stdout.decode(), re.M)
    return {n: names.count(n) for n in set(names)}


# -- exits -----------------------------------------------------------------------------

run("--append", "seconds=1 ports=%d" % PORTS, "-e", "exit:io", "-e", "exit", "-o", "io.data")
s = e2e.summary("io.data")
io, all_exits = event(s, "exit:io"), event(s, "exit")
total = sum(d["exits"] for d in s["devices"]) + s["unknown_io"]
check(io["weight"] == s["exits"]["2_IO"] == total,
      "exit:io weighs %d, KVM_RUN returned %d, the devices saw %d" % (io["weight"], s["exits"]["2_IO"], total))
check(exits(s, 0x80) == PORTS, "the device counted %d writes, the guest made %d" % (exits(s, 0x80), PORTS))
check(all(d["exits"] == d["accesses"] for d in s["devices"]), "exits and accesses: %s" % s["devices"])
check(all_exits["weight"] == sum(v for k, v in s["exits"].items() if k != "10_INTR"),
      "exit weighs %d of %s" % (all_exits["weight"], s["exits"]))
found = samples("io.data", "exit:io")
check(sum(w for w, _ in found) == total, "perf sees %d of %d exits" % (sum(w for w, _ in found), total))
for side, want in (("a", PORTS // 4), ("b", PORTS - PORTS // 4)):
    stack = "demo_main;ports_write;ports_%s;ports_leaf" % side
    got = sum(w for w, st in found if st == stack)
    check(got == want, "%s: %d exits, the truth is %d" % (stack, got, want))

run("--append", "seconds=1 ports=%d" % PORTS, "-e", "exit:io", "-c", "10", "-o", "tenth.data")
s = e2e.summary("tenth.data")
io = event(s, "exit:io")
check(io["period"] == 10 and abs(io["weight"] - s["exits"]["2_IO"]) < 10,
      "every 10th: weight %d of %d" % (io["weight"], s["exits"]["2_IO"]))
check(io["samples"] * 8 < s["exits"]["2_IO"], "every 10th: %d samples" % io["samples"])

# -- CPU time ---------------------------------------------------------------------------

e2e.prefer_us()


def cpu_run(name):
    """The part of the time that the host gave to others, and the truth with the event's samples.
    The guest's truth is of time, the host's pauses included: on a busy host no truth of CPU time."""
    boot = e2e.Boot("--append", "seconds=4", "-e", name + ",wall", "-o", "cpu.data").wait(120)
    check(boot.status == 0, "%s: %s" % (name, boot.err))
    truth, _ = e2e.parse_truth(boot.text())
    found = samples("cpu.data", name)
    weight = sum(w for w, _ in found)
    s = e2e.summary("cpu.data")
    check(weight == event(s, name)["weight"] and len(found) > 50,
          "%s: %d samples of weight %d" % (name, len(found), weight))
    # Of the time that the host gave to the guest, which it may well take from others.
    wall = event(s, "wall")["weight"]
    check(weight <= wall * 1.01, "%s: %d ns in %d" % (name, weight, wall))
    return 1 - weight / max(wall, 1), (truth or [], found, weight)


for name in ("cpu", "task-clock", "cpu-clock"):
    taken, (truth, found, weight) = e2e.quietest(lambda _: cpu_run(name), TAKEN)
    stacks = [t.stack for t in truth]
    known = 100 * sum(w for w, st in found if st in stacks) / max(weight, 1)
    check(known > 80, "%s: %.1f %% in the guest's leaves" % (name, known))
    if taken > TAKEN:
        e2e.left_out("the host gave %d %% of a CPU: shares by %s are not compared" % (100 * (1 - taken), name))
        continue
    for t in truth:
        got = 100 * sum(w for w, st in found if st == t.stack) / max(weight, 1)
        sigma = 100 * (t.percent / 100 * (1 - t.percent / 100) / max(len(found), 1)) ** 0.5
        check(abs(got - t.percent) <= POINTS + 4 * sigma,
              "%s: %s: %.2f %%, the truth is %.2f %%" % (name, t.stack, got, t.percent))

run("--append", "seconds=4 mode=idle", "-e", "cpu,wall", "-o", "idle.data", "-q")
s = e2e.summary("idle.data")
ratio = {}
for name in ("cpu", "wall"):
    found = samples("idle.data", name)
    ratio[name] = 100 * sum(w for w, st in found if st.endswith("idle_wait")) / sum(w for w, _ in found)
check(ratio["wall"] > 30 and ratio["cpu"] < ratio["wall"] / 3,
      "halted: %.1f %% of wall, %.1f %% of cpu" % (ratio["wall"], ratio["cpu"]))
check(event(s, "cpu")["weight"] < event(s, "wall")["weight"] * 0.8, "cpu ticks in HLT: %s" % s["events"])

# -- a guest that halts for good: cli; 1: hlt; jmp 1b ------------------------------------

CODE = bytes.fromhex("faf4ebfd")
BASE, HEADERS = 0x1000000, 64 + 56
with open("halts.elf", "wb") as f:
    f.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0))
    f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, HEADERS + len(CODE), 4096, 4096) + CODE)
for name in ("wall", "cpu", "exit:io"):
    p = run("halts.elf", "-q", "-e", name, "-o", "halts.data", timeout=60)
    check("halted for good" in p.err, "%s: %s" % (name, p.err))

# -- several at once, through perf --------------------------------------------------------

LIST = "exit:io,cpu,wall,page-faults,context-switches"
GUEST = ["--append", "seconds=1 mode=idle ports=50", "-q", "-e", LIST]
run(*GUEST, "-o", "dir.data")
run(*GUEST, "-o", "one.data", "--single-file")
with open("pipe.data", "wb") as out:
    status = e2e.subprocess.run([e2e.KVMPROF, "run"] + GUEST + ["-o", "-"], stdout=out,
                                stderr=e2e.subprocess.PIPE).returncode
check(status == 0, "-o -: status %d" % status)
for path, stdin in (("dir.data", None), ("one.data", None), ("-", "pipe.data")):
    counts = perf_counts(path, stdin)
    if stdin is None and os.path.isdir(path):
        want = {e["name"]: e["samples"] for e in e2e.summary(path)["events"] if e["samples"]}
        check(counts == want, "%s: perf script has %s, the summary %s" % (path, counts, want))
    for name in ("exit:io", "cpu", "wall", "context-switches"):
        check(counts.get(name, 0) > 0, "%s: no samples of %s in %s" % (path, name, counts))
    with open(stdin or os.devnull, "rb") as f:
        report = e2e.subprocess.run(["perf", "report", "-i", path, "--stdio", "-g", "none"], stdin=f,
                                    stdout=e2e.subprocess.PIPE, stderr=e2e.subprocess.PIPE).stdout.decode()
    for name in ("exit:io", "cpu", "wall", "context-switches"):
        check("of event '%s'" % name in report, "%s: perf report does not show %s" % (path, name))
for path in ("dir.data", "one.data"):
    names = e2e.run("perf", "evlist", "-i", path).out.split()
    check(names == LIST.split(","), "perf evlist -i %s: %s" % (path, names))
# From a pipe perf evlist takes names of the attributes alone.
names = e2e.run("perf", "evlist", "-i", "pipe.data").out.strip().split("\n")
check(len(names) == len(LIST.split(",")), "perf evlist of a pipe: %s" % names)
for path in ("dir.data", "one.data", "pipe.data"):
    p = e2e.kvmprof("report", "-i", path, "--event", "exit:io")
    check("ports_" in p.out and "left_leaf" not in p.out, "report -i %s --event exit:io: %s" % (path, p.out))
    p = e2e.kvmprof("report", "-i", path, "--event", "cpu", "-n", "0")
    check("left_leaf" in p.out, "report -i %s --event cpu: %s" % (path, p.out))

# -- what is refused ------------------------------------------------------------------------

listed = json.loads(e2e.kvmprof("list", "--json").out)["events"]
here = {e["name"]: e for e in listed}
text = e2e.kvmprof("list").out
for e in listed:
    check(e["name"] in text, "list does not show " + e["name"])
    check(e["available"] or e.get("why"), "list: %s is not available, without a reason" % e["name"])
check(all(here[n]["available"] for n in ("wall", "cpu", "exit", "exit:io", "exit:mmio")), "list: %s" % text)

if not here["cycles"]["available"]:
    p = run("--append", "seconds=1", "-q", "-e", "cycles,instructions", "-o", "cycles.data")
    s = e2e.summary("cycles.data")
    check(event(s, "cycles")["name"] == "cpu" and event(s, "cycles")["samples"] > 50, "cycles: %s" % s["events"])
    check("name" not in event(s, "instructions") and "left out" in event(s, "instructions")["why"],
          "instructions: %s" % s["events"])
    check(p.err.count("event cycles: ") == 2 and "cpu stands in" in p.err, "not told: " + p.err)
    check(e2e.run("perf", "evlist", "-i", "cycles.data").out.split() == ["cpu"], "evlist after the fallback")
    for argv in (["-e", "cycles", "--strict-event"], ["-e", "instructions"]):
        p = run(*argv, "-o", "none.data", status=1)
        check(p.err.count("\n") == 1 and "event " in p.err, "%s: %s" % (argv, p.err))
        check(not os.path.exists("none.data"), "%s left a profile" % argv)

# Without CAP_PERFMON and its like, where paranoid forbids: CPU time by the thread's timer.
with open("/proc/sys/kernel/perf_event_paranoid") as f:
    paranoid = int(f.read())
if os.geteuid() == 0 and paranoid >= 2 and e2e.shutil.which("setpriv"):
    p = run("--append", "seconds=2", "-q", "-e", "task-clock,page-faults", "-o", "timer.data",
            prefix=["setpriv", "--bounding-set", "-perfmon,-sys_admin"])
    s = e2e.summary("timer.data")
    check("perf_event_paranoid is %d" % paranoid in event(s, "task-clock")["why"], "task-clock: %s" % s["events"])
    timer = event(s, "task-clock")
    check(timer["name"] == "cpu" and timer["samples"] > 10 and timer["weight"] > 10 * timer["period"],
          "the thread's timer: %s" % timer)
    check(e2e.run("perf", "report", "-i", "timer.data", "--stdio").status == 0, "perf report timer.data")

# KVM's tracepoints, where they can be read: each port write is one, whoever handles it.
if here.get("kvm:kvm_pio", {}).get("available"):
    run("--append", "seconds=1 ports=200", "-q", "-e", "kvm:kvm_pio,exit:io", "-o", "pio.data")
    s = e2e.summary("pio.data")
    lost = s["lost"]
    check(event(s, "kvm:kvm_pio")["weight"] + lost >= event(s, "exit:io")["weight"] >= 200, "kvm_pio: %s" % s["events"])
    found = samples("pio.data", "kvm:kvm_pio")
    check(sum(w for w, st in found if st.endswith("ports_leaf")) >= 190 - lost, "kvm_pio: stacks: %s" % found[:5])
else:
    p = run("-e", "exit:hlt", status=1)
    check("kvmprof stat" in p.err and p.err.count("\n") == 1, "exit:hlt: " + p.err)

# Each signal brings about the event again: the guest may get nowhere, but the run can be ended.
if here.get("kvm:kvm_pio", {}).get("available"):
    p = run("--duration", "2", "-q", "-e", "raw_syscalls:sys_enter", "-o", "storm.data", timeout=60)
    check(event(e2e.summary("storm.data"), "raw_syscalls:sys_enter")["samples"] > 0, "a storm: " + p.err)
run("--duration", "3", "-q", "-e", "wall,cpu,task-clock,cpu-clock,page-faults,context-switches,exit,exit:io",
    "-F", "20000", "-o", "many.data", timeout=60)
check(sum(e["samples"] > 0 for e in e2e.summary("many.data")["events"]) >= 4, "eight events at once")

for argv, why in ((["-e", "nonsense"], "no such event"), (["-e", "exit:nonsense"], "no such kind"),
                  (["-e", "cycles:x"], "modifier"), (["-e", "wall,wall"], "twice"), (["-e", ","], "without a name"),
                  (["-c", "0"], "--count"), (["-e", "task-clock", "-c", "1000"], "20000")):
    p = run(*argv, status=2)
    check(why in p.err and p.err.count("\n") == 1, "%s: %s" % (argv, p.err))

e2e.finish("%d port writes exact; halted: %.1f %% of wall, %.1f %% of cpu"
           % (PORTS, ratio["wall"], ratio["cpu"]))
