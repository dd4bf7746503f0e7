#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""svm_host.py KVMPROF SCRATCH [suite [NAME...] | repeat [N]]: kvmprof on a host with SVM (kvm_amd).

The host is emulated, see emulated.py: its time is a count of instructions, so these figures
do not depend on how busy this machine is. Without an argument: check, the demo against its
truth, a triple fault, exits, stat. suite [NAME...]: tests of this directory
run on that host as they are. repeat: N (20) runs of the same, with all CPUs of this machine
busy, give the same samples, byte for byte.
"""

import hashlib
import json
import os
import re
import subprocess

import demo_judge
import e2e
import emulated
from e2e import check, say

POINTS = 1.0
PORTS, PERIOD = 2800, 7    # writes to a port, and of how many exits each is sampled

THROTTLED_HZ = 5000
KEEP = "; s=$?; cp -r /tmp/%s.data /out; exit $s"

QUICK = {
    "check": "kvmprof check",
    "demo": "kvmprof run -o /tmp/demo.data --append seconds=4" + KEEP % "demo",
    "triple": "kvmprof run -o /tmp/t.data --append 'seconds=3 crash=triple'" + KEEP % "t",
    "exits": "kvmprof run -e exit:io -c %d -o /out/io.data --append 'work=1 ports=%d'" % (PERIOD, PORTS),
    "stat": "kvmprof stat --json --append 'seconds=1 mode=serial'",
    # 1000 a second are 4 in each tick of this kernel.
    "throttle": "echo 1000 >/proc/sys/kernel/perf_event_max_sample_rate\n"
                "kvmprof run -q -e task-clock -F %d -o /tmp/h.data --append 'seconds=1' %s" % (THROTTLED_HZ, KEEP % "h"),
}


def check_check(done):
    check(done.status == 0, "check: status %d" % done.status)
    check("SVM (kvm_amd)" in done.out, "not the back end that was to be tested:\n" + done.out)
    speed = re.search(r"guest ring 0 +runs natively: ([0-9.]+) ns an instruction", done.out)
    # An instruction takes 2 ns there, by the definition of that host's time.
    if check(speed, "ring 0 is not said to run natively:\n" + done.out):
        check(abs(float(speed[1]) - 2) < 0.5, "an instruction takes %s ns" % speed[1])
    check("enters ring 0" in done.out, "SYSCALL:\n" + done.out)
    check("never return" not in done.out and "has gaps" not in done.out, "quirks:\n" + done.out)


def check_demo(host, done):
    check(done.status == 0, "demo: status %d:\n%s" % (done.status, done.out))
    truth, outside = e2e.parse_truth(done.out)
    if not check(truth, "the guest printed no truth table:\n" + done.out):
        return "no truth"
    directory = os.path.join(host.out, "demo.data")
    s = e2e.check_lost(directory)
    check(s["host"]["interpreted"] is False and not s["host"]["tuned"], "host: %s" % s["host"])
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", directory).out)
    check(len(samples) == s["samples"] > 3000, "%d samples" % len(samples))
    worst = demo_judge.judge("demo", samples, truth, outside, POINTS)
    p = e2e.kvmprof("report", "-i", directory)
    check(p.status == 0 and "left_leaf" in p.out, "report: " + p.err)
    return "%d samples, worst share off by %.2f points" % (len(samples), worst)


def check_triple(host, done):
    check(done.status == 1, "triple fault: status %d" % done.status)
    check("vCPU 0: triple fault\n" in done.out, "no line says triple fault:\n" + done.out)
    check("resets a vCPU before it reports a triple fault" in done.out, "not why:\n" + done.out)
    check(not re.search(r"\b(0x)?0*fff0\b", done.out), "registers of the reset:\n" + done.out)
    m = re.search(r"last sample of this vCPU, ([0-9.]+) ms before:\n((?:  [0-9a-f]{16} \S.*\n)+)", done.out)
    if check(m, "no last sample:\n" + done.out):
        check(float(m[1]) < 20, "the last sample is %s ms old" % m[1])
        check("demo_main" in m[2].split("\n")[-2] and " ?\n" not in m[2], "its stack:\n" + m[2])
    s = e2e.check_lost(os.path.join(host.out, "t.data"))
    check(s["samples"] > 900, "%d samples kept of a second's work" % s["samples"])
    # A second of work, at the rate of the profile: none was added at the fault.
    stacks = e2e.parse_script(e2e.kvmprof("script", "-i", os.path.join(host.out, "t.data")).out)
    check(all(x.stack for x in stacks) and len(stacks) == s["samples"], "samples without a stack")


def check_exits(host, done):
    """Registers are fetched for a sample alone: they must be those of its exit."""
    check(done.status == 0, "exits: status %d:\n%s" % (done.status, done.out))
    p = e2e.kvmprof("script", "-i", os.path.join(host.out, "io.data"))
    samples = e2e.parse_script(p.out)
    for side, want in (("a", PORTS // 4), ("b", PORTS - PORTS // 4)):
        got = sum(x.period for x in samples if x.stack == "demo_main;ports_write;ports_%s;ports_leaf" % side)
        check(abs(got - want) <= PERIOD, "ports_%s: %d exits, in truth %d" % (side, got, want))
    # The others are those of the console and the timer's set-up.
    odd = {x.stack for x in samples if "ports_leaf" in x.stack and not
           re.fullmatch(r"demo_main;ports_write;ports_[ab];ports_leaf", x.stack)}
    check(not odd, "stacks of exits: %s" % odd)


def check_stat(done):
    text = next((l for l in done.out.split("\n") if l.startswith("{")), None)
    if not check(done.status == 0 and text, "stat: " + done.out):
        return
    t = json.loads(text)
    c = {name: v["sum"] for name, v in t["counters"].items() if v}
    check(c["exit:io"] == sum(n for name, n in c.items()
                              if name.startswith("vmm:") and not name.endswith(":time")),
          "exit:io %s of %s" % (c["exit:io"], c))
    check(c["exit:io"] <= c["kvm:exits"], "more exits to us than KVM had: %s" % c)
    check(c["time:guest"] > 0.2 * t["elapsed_ns"], "time:guest %s" % c)


def check_throttle(host, done):
    """The kernel's own throttling, which other machines' settings must not be changed for."""
    check(done.status == 0, "throttle: status %d:\n%s" % (done.status, done.out))
    e = e2e.summary(os.path.join(host.out, "h.data"))["events"][0]
    check(e["throttled"] > e["samples"] / 20 and e["samples"] > 500, "throttling was not noticed: %s" % e)
    check("throttled it %d times" % e["throttled"] in done.out, "throttling was not told:\n" + done.out)
    # It is started again by each sample, so it counts all the same.
    check(abs(e["weight"] - e["enabled_ns"]) < 5 * e["period"] and e["running_ns"] == e["enabled_ns"],
          "throttling left something out: %s" % e)


def quick():
    host = emulated.Host()
    done = host.steps(QUICK)
    check_check(done["check"])
    figures = check_demo(host, done["demo"])
    check_triple(host, done["triple"])
    check_exits(host, done["exits"])
    check_stat(done["stat"])
    check_throttle(host, done["throttle"])
    e2e.finish(figures)


# -- repeat ---------------------------------------------------------------------------------

def repeat(times):
    """With this machine's CPUs busy: nothing of it may be seen in there."""
    host = emulated.Host()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        found = set()
        for i in range(times):
            done = host.run("kvmprof run -o /tmp/d.data --append seconds=2\nkvmprof script -i /tmp/d.data\n")
            check(done.status == 0, "run %d: %s" % (i, done.out[:2000]))
            found.add(hashlib.sha256(done.out.encode()).hexdigest())
    finally:
        for p in busy:
            p.kill()
            p.wait()
    check(len(found) == 1, "%d runs had %d results" % (times, len(found)))
    e2e.finish("%d runs under load, all the same" % times)


# -- the other tests -------------------------------------------------------------------------

SUITE = (["check_command"], ["run_ends"], ["control"], ["events"], ["demo_crash"], ["demo_idle"],
         ["demo_truth"], ["pvclock"], ["mem_pages"], ["stat_command"], ["vmm_frames"], ["lockstep"],
         ["max_overhead"], ["snapshots"], ["disk_guest"], ["tiny_boot"], ["exec"], ["smp_boot", "1"])
# Not in there, and why:
#   markers, markers_linux, snapshots' --snapshot-at: hardware breakpoints never stop an SVM guest
#     of QEMU's (emulated.breakpoints_fire).
#   sample_cost, status_line, attach_*: they time this machine, or need a second CPU: QEMU counts
#     instructions for one CPU only.
#   disk_boot, debian_disk, cloud_boot, guest_truth 6.1: right, but hours over 9P.


def suite(patterns):
    """Unmodified, as on this machine; kernels come from its cache."""
    for variant in ("tiny", "smp-fp"):
        e2e.built_kernel(variant)
    tests = [t for t in SUITE if not patterns or t[0] in patterns]
    host = emulated.Host("--root", limit=3600)
    steps = {}
    for t in tests:
        steps["-".join(t)] = "cd %s; KVMPROF_CACHE=%s; export KVMPROF_CACHE\npython3 tests/e2e/%s.py %s /tmp/s-%s %s" % (
            e2e.TOP, os.environ["KVMPROF_CACHE"], t[0], e2e.KVMPROF, t[0], " ".join(t[1:]))
    done = host.steps(steps, "--memory", "3072")
    skipped = []
    for name, d in done.items():
        last = d.out.rstrip().split("\n")[-1]
        say("%-20s %4d  %s" % (name, d.status, last))
        if d.status == e2e.SKIP:
            skipped.append(name)
        elif not check(d.status == 0, "%s: status %d" % (name, d.status)):
            say(d.out)
    e2e.finish("%d tests; skipped there: %s" % (len(tests), " ".join(skipped) or "none"))


WHAT = e2e.EXTRA[0] if e2e.EXTRA else "quick"
if WHAT == "quick":
    quick()
elif WHAT == "suite":
    suite(e2e.EXTRA[1:])
elif WHAT == "repeat":
    repeat(int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 20)
else:
    e2e.sys.exit("svm_host.py: no such part: " + WHAT)
