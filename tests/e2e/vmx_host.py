#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, host
"""vmx_host.py KVMPROF SCRATCH: kvmprof on a host with VMX (kvm_intel), which Bochs emulates.

What the emulated SVM cannot show: hardware breakpoints stop this host's guests, and a triple
fault leaves the registers. Slow, so samples are few: shares are compared within what so many
samples can tell. Bochs delivers interrupts late after code that had them off, so that such
samples show the caller.
"""

import json
import math
import os
import re

import e2e
import emulated
import features
import where_judge
from e2e import check, say

HZ = 199
WORK, WARM_UP = 30, 2
PORTS, PERIOD = 700, 7
# That host's serial line is slow: of these only the summary comes here.
WHERE = ("; s=$?; kvmprof report -i /tmp/%s.data --sort where --no-children -n 0; "
         "kvmprof export -F folded -i /tmp/%s.data -o - | head -200; exit $s")
SUMMARY = "; s=$?; mkdir /out/%s.data; cp /tmp/%s.data/kvmprof.json /out/%s.data; exit $s"

STEPS = {
    "check": "kvmprof check",
    "triple": "kvmprof run -F %d -o /tmp/t.data --append 'seconds=2 crash=triple'" % HZ,
    "demo": "kvmprof run -F %d -o /out/demo.data --append seconds=3" % HZ,
    # Each round calls each leaf's function once, and the demo's warm-up twice before them.
    "mark": "kvmprof run -F %d -o /tmp/mark.data --append work=%d --mark-at tree_enter_left" % (HZ, WORK),
    "stop": "kvmprof run -F %d -o /tmp/stop.data --append work=%d --start-at tree_enter_right "
            "--stop-at tree_enter_left" % (HZ, WORK),
    "save": "kvmprof run -m 64M -F %d -o /tmp/s.data --append work=%d --snapshot-save /tmp/s.snap "
            "--snapshot-at tree_enter_left" % (HZ, WORK),
    "restore": "kvmprof run --snapshot /tmp/s.snap -F %d -o /tmp/restored.data --mark-at tree_enter_left" % HZ,
    "stat": "kvmprof stat --json --append 'seconds=1 mode=serial'",
    "exits": "kvmprof run -q -e exit:io -c %d -o /out/io.data --append 'work=1 ports=%d'" % (PERIOD, PORTS),
    "clock": "kvmprof run -q -e task-clock -F %d -o /tmp/clock.data --append seconds=1" % HZ,
    "line": "kvmprof run -q -F %d -o /tmp/line.data --append work=%d --start-on 'demo: start' --mark '^truth '"
            % (HZ, WORK),
    "host": "kvmprof run -e host -F %d -o /tmp/w.data --append 'seconds=2 mode=where'" % HZ + WHERE % ("w", "w"),
    "attach-host": "rm -f /tmp/console; kvmprof run -F 1 -o /tmp/a.data --append 'seconds=6 mode=where' >/tmp/console 2>&1 &\n"
                   "until grep -qs 'demo: start' /tmp/console || ! kill -0 $!; do sleep 0.2; done; "
                   "kvmprof attach -e host $! --image /demo.elf -F %d -o /tmp/v.data; s=$?; wait; cat /tmp/console; (exit $s)" % HZ +
                   WHERE % ("v", "v"),
    "attach": "rm -f /tmp/console; kvmprof run -F 1 -o /tmp/a.data --append seconds=8 >/tmp/console 2>&1 &\n"
              "until grep -qs 'demo: start' /tmp/console || ! kill -0 $!; do sleep 0.2; done; kvmprof attach $! --image /demo.elf -F 97 --duration 2 -o /out/attach.data; s=$?; wait; exit $s",
}


for name in ("mark", "stop", "restored", "clock", "line"):
    step = "restore" if name == "restored" else name
    STEPS[step] += SUMMARY % (name, name, name)


def check_triple(done):
    check(done.status == 1, "triple fault: status %d" % done.status)
    check(re.search(r"triple fault at rip 0x[0-9a-f]{16}", done.out), "triple fault:\n" + done.out)
    stack = re.findall(r"^  [0-9a-f]{16} (\S+)\+0x[0-9a-f]+$", done.out, re.M)
    check(stack == ["crash_now", "crash_middle", "crash_outer", "demo_main"], "its stack: %s" % stack)


def check_demo(host, done):
    truth, _ = e2e.parse_truth(done.out)
    if not check(done.status == 0 and truth, "demo: status %d:\n%s" % (done.status, done.out)):
        return "no truth"
    directory = os.path.join(host.out, "demo.data")
    s = e2e.check_lost(directory)
    if not isinstance(host, emulated.Here):
        check(s["host"]["interpreted"] is False and not s["host"]["tuned"], "host: %s" % s["host"])
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", directory).out)
    total = sum(x.period for x in samples)
    check(len(samples) > 2 * HZ, "%d samples" % len(samples))
    worst = 0
    for t in truth:
        stack = t.stack[:-len(";irqoff_leaf")] if t.where == "irqoff" else t.stack
        share = 100 * sum(x.period for x in samples if x.stack.startswith(stack)) / total
        # Four standard deviations of so many draws.
        off = 400 * math.sqrt(t.percent / 100 * (1 - t.percent / 100) / len(samples))
        worst = max(worst, abs(share - t.percent))
        check(abs(share - t.percent) < off, "%s: %.1f %%, in truth %.1f %%" % (stack, share, t.percent))
    return "%d samples, worst share off by %.1f points" % (len(samples), worst)


def reached(host, name):
    return e2e.summary(os.path.join(host.out, name))["breakpoints"][0]["reached"]


def rest(text):
    """What the guest says of its work; no two runs take the same time."""
    return [re.sub(r"[\d.]+ ms|\d+ timer|[\d.]+ (kernel|user|irqoff)|outside.*", "T", line)
            for line in text.replace("\r", "").split("\n")
            if re.match(r"truth|outside|demo: \d|demo: done", line)]


def check_breakpoints(host, done):
    for name in ("mark", "stop"):
        check(done[name].status == 0, "%s: status %d:\n%s" % (name, done[name].status, done[name].out))
    check(reached(host, "mark.data") == WARM_UP + WORK, "reached %d times of %d" %
          (reached(host, "mark.data"), WARM_UP + WORK))
    check(e2e.summary(os.path.join(host.out, "stop.data"))["end"] == "stop marker reached", "--stop-at")


def check_exits(host, done):
    check(done.status == 0, "exits: status %d:\n%s" % (done.status, done.out))
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", os.path.join(host.out, "io.data")).out)
    for side, want in (("a", PORTS // 4), ("b", PORTS - PORTS // 4)):
        got = sum(x.period for x in samples if x.stack == "demo_main;ports_write;ports_%s;ports_leaf" % side)
        check(abs(got - want) <= PERIOD, "ports_%s: %d exits, in truth %d" % (side, got, want))


def check_check(host, done):
    back_end = r"page tables only|SVM|VMX" if isinstance(host, emulated.Here) else r"VMX \(kvm_intel\)"
    check(done.status == 0 and re.search("KVM back end +(%s)" % back_end, done.out), "check:\n" + done.out)
    if not isinstance(host, emulated.Here):
        check("runs natively" in done.out and "enters ring 0" in done.out, "check:\n" + done.out)


def check_stat(done):
    text = next((l for l in done.out.split("\n") if l.startswith("{")), None)
    if check(done.status == 0 and text, "stat: " + done.out):
        c = {name: v["sum"] for name, v in json.loads(text)["counters"].items() if v}
        check(0 < c["exit:io"] <= c["kvm:exits"], "stat: %s" % c)


def check_attach(host, done):
    """How many a busy machine leaves is not checked."""
    if not check(done.status == 0, "attach: " + done.out):
        return
    s = e2e.summary(os.path.join(host.out, "attach.data"))
    stacks = e2e.parse_script(e2e.kvmprof("script", "-i", os.path.join(host.out, "attach.data")).out)
    whole = sum(x.stack.startswith(("demo_main", "user_main")) for x in stacks)
    check(len(stacks) >= 5 and s["lost"] == 0, "attach: %d samples:\n%s" % (len(stacks), done.out))
    check(whole > 0.9 * len(stacks), "attach: %d of %d stacks are the demo's" % (whole, len(stacks)))


def check_where(host, done, name):
    """Where the time went, as the guest has measured it."""
    if not check(done.status == 0, "-e host: status %d:\n%s" % (done.status, done.out)):
        return None
    text = done.out.replace("\r", "")
    rows = re.findall(r"(?m)^ +([\d.]+)% +(\d+) +(\w+)$", text)
    check(";vmx_" in text or isinstance(host, emulated.Here), "no function of kvm_intel:\n" + text[-3000:])
    figures = where_judge.judge(name, where_judge.truth(text), {row: float(share) for share, _, row in rows},
                                sum(int(n) for _, n, _ in rows), text)
    say("%s: %s" % (name, figures))
    return figures


def check_clock(host, done):
    check(done.status == 0, "task-clock: status %d:\n%s" % (done.status, done.out))
    event = e2e.summary(os.path.join(host.out, "clock.data"))["events"][0]
    if check(event["name"] == "task-clock", "task-clock: %s" % event):
        check(event["samples"] > HZ / 4 and abs(event["weight"] - event["enabled_ns"]) < 5 * event["period"],
              "task-clock: %s" % event)


def check_line(host, done):
    check(done.status == 0, "markers on the console: status %d:\n%s" % (done.status, done.out))
    s = e2e.summary(os.path.join(host.out, "line.data"))
    kinds = [m["kind"] for m in s["markers"]]
    check(kinds == ["start"] + ["console"] * 10, "markers on the console: %s" % kinds)


def check_snapshot(host, done):
    for name in ("save", "restore"):
        check(done[name].status == 0, "%s: status %d:\n%s" % (name, done[name].status, done[name].out))
    # Out of a snapshot no page of the guest is mapped yet. An EPT violation sets RF in the flags that
    # are saved (SDM vol. 3, 27.3.3); Bochs 2.7 leaves it clear (VMexitSaveGuestState in cpu/vmx.cc), so
    # that the first instruction, whose stack, code and page tables are missing, stops once more for
    # each page. Without such pages (mark) the number is exact.
    twice = reached(host, "restored.data") - WARM_UP - WORK
    faults = e2e.summary(os.path.join(host.out, "restored.data"))["stat"]["counters"]["kvm:pf_taken"]["sum"]
    if isinstance(host, emulated.Here):
        faults = 1
    check(0 <= twice < faults, "after the snapshot: reached %d times too often, with %d page faults" % (twice, faults))
    if twice:
        say("out of the snapshot: reached %d times too often, with %d page faults" % (twice, faults))
    check(rest(done["restore"].out) == rest(done["mark"].out) != [], "after the snapshot:\n" + done["restore"].out)


def run(host):
    done = host.steps(STEPS, "--file", "demo.elf=" + os.path.join(e2e.BUILD, "guest", "demo.elf"))
    column = features.Column(host.name)
    column.judge("check", check_check, host, done["check"])
    column.judge("triple fault", check_triple, done["triple"])
    figures = column.judge("demo against its truth", check_demo, host, done["demo"])
    column.judge("breakpoints", check_breakpoints, host, done)
    column.judge("snapshot", check_snapshot, host, done)
    column.judge("exits as samples", check_exits, host, done["exits"])
    column.judge("stat", check_stat, done["stat"])
    column.judge("software events", check_clock, host, done["clock"])
    column.judge("markers on the console", check_line, host, done["line"])
    column.judge("where time went", check_where, host, done["host"], "run")
    column.judge("where, attached", check_where, host, done["attach-host"], "attach")
    column.judge("attach", check_attach, host, done["attach"])
    if "ENOENT" in done["check"].out:
        column.cannot("hardware counters", "no PMU")
    column.show()
    e2e.finish(figures)


if __name__ == "__main__":
    run(emulated.Host("--vmx", limit=200))
