#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 92 s
# tests: without_kvm, 200 s: suite check_command guest_memory lockstep pvclock stat_command vmm_frames demo_idle demo_truth disk_guest
# tests: slow, at most 2700 s: repeat
# tests: slow, at most 1800 s: kernels
# tests: slow, at most 7200 s: suite
# tests: not svm, host
"""svm_host.py KVMPROF SCRATCH [suite [NAME...] | repeat [N] | kernels]: kvmprof on a host with SVM (kvm_amd).

The host is emulated, see emulated.py: its time is a count of instructions, so these figures
do not depend on how busy this machine is. Without an argument: check, the demo against its
truth, a triple fault, exits, an instruction that KVM cannot emulate, stat, a snapshot, attach.
suite [NAME...]: tests of this directory, those that say so (tiers.py), run on that host as they are.
repeat: N (20) runs of the same, and as many with all CPUs of this machine busy, give the same
samples, byte for byte.
kernels: check, attach and the demo on hosts of the oldest and the newest kernels.
"""

import hashlib
import json
import os
import re
import subprocess

import compiled
import demo_judge
import e2e
import emulated
import features
import tiers
import where_judge
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
    "fnsave": "kvmprof run -q -o /tmp/x.data /g-fnsave",
    "nested": "kvmprof run -F 1 -o /tmp/n.data --append 'mode=nested seconds=1'",
    "memory": "kvmprof run -q --json -o /tmp/m.data --append seconds=1",
    "stat": "kvmprof stat --json --append 'seconds=1 mode=serial'",
    "save": "kvmprof run -q -m 64M -o /tmp/s.data --append seconds=1 --snapshot-save /tmp/s.snap "
            "--snapshot-on 'demo: start'",
    "restore": "kvmprof run --snapshot /tmp/s.snap -o /tmp/r.data --mark '^truth '" + KEEP % "r",
    "tsc": "kvmprof run -m 64M -o /tmp/c.data /g-tsc --snapshot-save /tmp/c.snap --snapshot-on T",
    "tsc-restore": "kvmprof run --snapshot /tmp/c.snap -o /tmp/c2.data",
    "attach": "kvmprof run -q -F 1 -o /tmp/a.data --append seconds=3 >/tmp/console 2>&1 &\n"
              "sleep 0.5; kvmprof attach $! --image /demo.elf -F 199 --duration 1.5 -o /out/attach.data; s=$?; wait; exit $s",
    "host": "kvmprof run -e host -F 499 -o /tmp/w.data --append 'seconds=4 mode=where'" + KEEP % "w",
    "attach-host": "kvmprof run -F 1 -o /tmp/a.data --append 'seconds=6 mode=where' >/tmp/console 2>&1 &\n"
                   "sleep 1; kvmprof attach -e host $! --image /demo.elf -F 499 -o /tmp/v.data; s=$?; wait; cat /tmp/console\n"
                   "cp -r /tmp/v.data /out; exit $s",
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


def check_nested(done):
    """6.1's KVM does not say when a nested guest runs: the guest must not see SVM."""
    check(done.status == 0 and "nested: none" in done.out, "a guest of this host sees SVM:\n" + done.out)


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


def check_memory(done):
    """What a run of the demo guest takes beside the guest's memory; libraries count."""
    m = re.search(r'"rss_beyond_guest_bytes":(\d+)', done.out)
    if check(done.status == 0 and m, "memory: status %d:\n%s" % (done.status, done.out)):
        say("resident beyond the guest: %.2f MiB" % (int(m[1]) / 2**20))
        check(int(m[1]) < 8 << 20, "%s bytes are resident beyond the guest" % m[1])


def check_internal(done):
    """KVM emulates what touches a device, and not all instructions: which one it was is told."""
    check(done.status == 1, "fnsave: status %d:\n%s" % (done.status, done.out))
    m = re.search(r"^kvmprof: vCPU 0: KVM internal error 1 \(an instruction that KVM cannot emulate\) "
                  r"at rip (0x[0-9a-f]+), bytes((?: [0-9a-f]{2})+)$", done.out, re.M)
    if check(m, "no line with the instruction:\n" + done.out):
        check(m[2].startswith(" dd 33"), "fnsave (%%rbx) is:%s" % m[2])


def check_throttle(host, done):
    """The kernel's own throttling, which other machines' settings must not be changed for."""
    check(done.status == 0, "throttle: status %d:\n%s" % (done.status, done.out))
    e = e2e.summary(os.path.join(host.out, "h.data"))["events"][0]
    check(e["throttled"] > e["samples"] / 20 and e["samples"] > 500, "throttling was not noticed: %s" % e)
    check("throttled it %d times" % e["throttled"] in done.out, "throttling was not told:\n" + done.out)
    # It is started again by each sample, so it counts all the same.
    check(abs(e["weight"] - e["enabled_ns"]) < 5 * e["period"] and e["running_ns"] == e["enabled_ns"],
          "throttling left something out: %s" % e)


def check_snapshot(host, done):
    for name in ("save", "restore"):
        check(done[name].status == 0, "%s: status %d:\n%s" % (name, done[name].status, done[name].out))
    m = re.findall(r"^truth +([0-9.]+) +\S+ +(\S+)$", done["restore"].out.replace("\r", ""), re.M)
    check(len(m) == 10 and "demo: done" in done["restore"].out, "after the snapshot:\n" + done["restore"].out)
    s = e2e.summary(os.path.join(host.out, "r.data"))
    check(s["samples"] > 100 and s["lost"] == 0, "after the snapshot: %d samples" % s["samples"])


def check_tsc(done):
    """A guest that is saved in its first second: KVM before 6.8 takes a counter so low for another."""
    check(done["tsc"].status == 0 and "snapshot saved" in done["tsc"].out, "tsc: " + done["tsc"].out)
    out = done["tsc-restore"].out
    check(done["tsc-restore"].status == 0 and "back" not in out, "the guest's counter went back:\n" + out)
    took = re.search(r"guest reset after ([0-9.]+) s", out)
    check(took and 0.05 < float(took[1]) < 0.2, "the counter is not what it was:\n" + out)


def check_lines(host):
    """Markers are those of the run that the snapshot went on with."""
    kinds = [m["kind"] for m in e2e.summary(os.path.join(host.out, "r.data"))["markers"]]
    check(kinds == ["console"] * 10, "markers on the console: %s" % kinds)


def check_attach(host, done):
    """By ptrace, at the rate that a user would ask for."""
    if not check(done.status == 0, "attach: status %d:\n%s" % (done.status, done.out)):
        return
    s = e2e.summary(os.path.join(host.out, "attach.data"))
    check(s["samples"] > 100 and s["lost"] == 0, "attach: %d samples in 1.5 s" % s["samples"])
    check(s["attach"]["memory_from"] == "kvm", "attach: memory not as KVM has it: %s" % s["attach"])
    stacks = e2e.parse_script(e2e.kvmprof("script", "-i", os.path.join(host.out, "attach.data")).out)
    whole = sum(x.stack.startswith(("demo_main;", "user_main;")) for x in stacks)
    check(whole > 0.9 * len(stacks), "attach: %d of %d stacks are the demo's" % (whole, len(stacks)))


def check_where(host, done, name):
    """Where the time went, as the guest has measured it."""
    if not check(done.status == 0, "-e host: status %d:\n%s" % (done.status, done.out)):
        return None
    path = os.path.join(host.out, name)
    t = json.loads(e2e.kvmprof("report", "-i", path, "--sort", "where", "--no-children", "-n", "0", "--json").out)
    got = {r["where"]: 100 * r["self"] / t["weight"] for r in t["symbols"]}
    stacks = e2e.kvmprof("export", "-F", "folded", "--no-marks", "-i", path, "-o", "-").out
    figures = where_judge.judge(name, where_judge.truth(done.out), got, t["samples"], stacks)
    say("%s: %s" % (name, figures))
    return figures


def quick():
    host = emulated.Host()
    for name, what in (("fnsave", "-DFNSAVE"), ("tsc", "-DTSC=100000000")):
        compiled.cc("-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x1000000", "-Wl,--build-id=none", "-Wl,-n",
                    what, "-o", "g-" + name, os.path.join(e2e.TOP, "tests", "e2e", "exit_guest.S"))
    done = host.steps(QUICK, "--file", "g-fnsave=" + os.path.abspath("g-fnsave"),
                      "--file", "g-tsc=" + os.path.abspath("g-tsc"),
                      "--file", "demo.elf=" + os.path.join(e2e.BUILD, "guest", "demo.elf"))
    column = features.Column(host.name)
    column.judge("check", check_check, done["check"])
    figures = column.judge("demo against its truth", check_demo, host, done["demo"])
    column.judge("triple fault", check_triple, host, done["triple"])
    column.judge("exits as samples", check_exits, host, done["exits"])
    check_internal(done["fnsave"])
    check_memory(done["memory"])
    column.judge("stat", check_stat, done["stat"])
    check_nested(done["nested"])
    column.judge("software events", check_throttle, host, done["throttle"])
    column.judge("snapshot", check_snapshot, host, done)
    check_tsc(done)
    column.judge("markers on the console", check_lines, host)
    column.judge("attach", check_attach, host, done["attach"])
    column.judge("where time went", check_where, host, done["host"], "w.data")
    column.judge("where, attached", check_where, host, done["attach-host"], "v.data")
    column.cannot("breakpoints", "TCG's VMRUN does not look at DR7")
    column.cannot("hardware counters", "no PMU")
    column.show()
    e2e.finish(figures)


# -- repeat ---------------------------------------------------------------------------------

def repeat(times):
    """As this machine is, and with its CPUs busy: nothing of it may be seen in there."""
    host = emulated.Host()
    found, busy = set(), []
    try:
        for i in range(2 * times):
            if i == times:
                busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
            done = host.run("kvmprof run -o /tmp/d.data --append seconds=2\nkvmprof script -i /tmp/d.data\n")
            check(done.status == 0, "run %d: %s" % (i, done.out[:2000]))
            found.add(hashlib.sha256(done.out.encode()).hexdigest())
    finally:
        for p in busy:
            p.kill()
            p.wait()
    check(len(found) == 1, "%d runs had %d results" % (2 * times, len(found)))
    e2e.finish("%d runs, and %d under load, all the same" % (times, times))


# -- hosts of other kernels -----------------------------------------------------------------

def kernels():
    """Its own structures differ from kernel to kernel: memory slots are in an array before Linux 5.17."""
    figures = []
    for name in ("5.10", "6.12", "6.18", "7.3"):
        host = emulated.Host("--kernel", name, needed=False)
        if host.lacks:
            e2e.left_out("%s: %s" % (name, host.lacks))
            continue
        done = host.steps({"check": "kvmprof check", "attach": "uname -r\n" + QUICK["attach"], "demo": QUICK["demo"]},
                          "--file", "demo.elf=" + os.path.join(e2e.BUILD, "guest", "demo.elf"))
        say("== %s" % done["attach"].out)
        check(done["attach"].out.startswith(name + "."), "not the kernel that was asked for: " + done["attach"].out)
        check_check(done["check"])
        check_attach(host, done["attach"])
        check("does not keep all registers" in done["attach"].out, "BPF is not refused for its reason:\n" + done["attach"].out)
        figures.append("%s: %s" % (name, check_demo(host, done["demo"])))
    e2e.finish("; ".join(figures))


# -- the other tests -------------------------------------------------------------------------

# Each end is told at once; the log comes with the result, of a test that did not pass.
ONE = """echo "begin %(name)s" >/dev/ttyS2
a=$(cut -d. -f1 /proc/uptime)
timeout -s TERM -k 5 %(limit)d python3 tests/e2e/%(script)s.py %(kvmprof)s /tmp/s-%(name)s %(argv)s >/tmp/log 2>&1
s=$?
echo "end %(name)s $s $(($(cut -d. -f1 /proc/uptime) - a)) $(tail -n 1 /tmp/log)" >/dev/ttyS2
[ $s = 0 ] || [ $s = 77 ] || { echo "== %(name)s"; tail -n 60 /tmp/log; }
rm -rf /tmp/s-%(name)s
"""


class Ends:
    """What the suite's tests said as they ended; says so as it comes."""

    def __init__(self):
        self.status = {}
        self.begun = None

    def tell(self, line):
        w = line.split(None, 4)
        if w[:1] == ["begin"]:
            self.begun = w[1]
        elif w[:1] == ["end"]:
            self.begun = None
            self.status[w[1]] = int(w[2])
            what = {0: "ok", e2e.SKIP: "skip", 124: "no end", 137: "no end"}.get(int(w[2]), "FAIL")
            say("%-6s %-16s %5s s  %s" % (what, w[1], w[3], w[4] if len(w) > 4 else ""))


def kernels_of(scripts):
    """The kernels that these scripts build, so that they find them in the cache."""
    found = set()
    for script in scripts:
        with open(os.path.join(e2e.TOP, "tests", "e2e", script + ".py"), encoding="utf-8") as f:
            found |= set(re.findall(r'built_kernel\((?:"([\w-]+)"|\w)', f.read()))
    return sorted(found - {""}) if "" not in found else ["full", "smp-fp", "tiny"]


def suite(patterns):
    """Unmodified, as on this machine; kernels come from its cache."""
    tests = []
    for line in tiers.of_tier("svm"):
        script = os.path.splitext(line.script)[0]
        if not patterns or script in patterns:
            tests.append(("-".join([script, *line.arguments]), script, line.arguments, line.seconds))
    if not tests:
        e2e.sys.exit("svm_host.py: the suite has none of: " + " ".join(patterns))
    for variant in kernels_of({test for _, test, *_ in tests}):
        e2e.built_kernel(variant)
    # Its guests may be larger than it is, as they touch little of their memory.
    script = "echo 1 >/proc/sys/vm/overcommit_memory; cd %s; KVMPROF_CACHE=%s; export KVMPROF_CACHE\n" % (e2e.TOP, os.environ["KVMPROF_CACHE"])
    for name, test, argv, limit in tests:
        script += ONE % dict(name=name, script=test, argv=" ".join(argv), limit=limit, kvmprof=e2e.KVMPROF)
    host = emulated.Host("--root", limit=60 + sum(t[3] for t in tests))
    ends = Ends()
    done = host.run(script, "--memory", "3072", progress=ends.tell)
    say(done.out)
    for name, *_ in tests:
        check(ends.status.get(name) in (0, e2e.SKIP), "%s: %s" % (name, "status %d" % ends.status[name]
              if name in ends.status else "it did not come to its end"))
    skipped = [name for name, s in ends.status.items() if s == e2e.SKIP]
    e2e.finish("%d tests; skipped there: %s" % (len(tests), " ".join(skipped) or "none"))


WHAT = e2e.EXTRA[0] if e2e.EXTRA else "quick"
if WHAT == "quick":
    quick()
elif WHAT == "suite":
    suite(e2e.EXTRA[1:])
elif WHAT == "kernels":
    kernels()
elif WHAT == "repeat":
    repeat(int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 20)
else:
    e2e.sys.exit("svm_host.py: no such part: " + WHAT)
