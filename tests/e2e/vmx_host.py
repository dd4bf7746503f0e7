#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
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
from e2e import check, say

HZ = 199
WORK, WARM_UP = 30, 2
# That host's serial line is slow: of these only the summary comes here.
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
    "attach": "kvmprof run -q -F 1 -o /tmp/a.data --append seconds=8 >/tmp/console 2>&1 &\n"
              "sleep 2; kvmprof attach $! --image /demo.elf -F 97 --duration 2 -o /out/attach.data; s=$?; wait; exit $s",
}


for name in ("mark", "stop", "restored"):
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
    for name in ("mark", "stop", "save", "restore"):
        check(done[name].status == 0, "%s: status %d:\n%s" % (name, done[name].status, done[name].out))
    check(reached(host, "mark.data") == WARM_UP + WORK, "reached %d times of %d" %
          (reached(host, "mark.data"), WARM_UP + WORK))
    check(e2e.summary(os.path.join(host.out, "stop.data"))["end"] == "stop marker reached", "--stop-at")
    # Out of a snapshot no page of the guest is mapped yet. An EPT violation sets RF in the flags that
    # are saved (SDM vol. 3, 27.3.3); Bochs 2.7 leaves it clear (VMexitSaveGuestState in cpu/vmx.cc), so
    # that the first instruction, whose stack, code and page tables are missing, stops once more for
    # each page. Without such pages (mark) the number is exact.
    twice = reached(host, "restored.data") - WARM_UP - WORK
    faults = e2e.summary(os.path.join(host.out, "restored.data"))["stat"]["counters"]["kvm:pf_taken"]["sum"]
    check(0 <= twice < faults, "after the snapshot: reached %d times too often, with %d page faults" % (twice, faults))
    say("out of the snapshot: reached %d times too often, with %d page faults" % (twice, faults))
    check(rest(done["restore"].out) == rest(done["mark"].out) != [], "after the snapshot:\n" + done["restore"].out)


def main():
    host = emulated.Host("--vmx", limit=200)
    done = host.steps(STEPS, "--file", "demo.elf=" + os.path.join(e2e.BUILD, "guest", "demo.elf"))
    out = done["check"].out
    check(done["check"].status == 0 and "VMX (kvm_intel)" in out and "runs natively" in out and
          "enters ring 0" in out, "check:\n" + out)
    check_triple(done["triple"])
    figures = check_demo(host, done["demo"])
    check_breakpoints(host, done)
    text = next((l for l in done["stat"].out.split("\n") if l.startswith("{")), None)
    if check(done["stat"].status == 0 and text, "stat: " + done["stat"].out):
        c = {name: v["sum"] for name, v in json.loads(text)["counters"].items() if v}
        check(0 < c["exit:io"] <= c["kvm:exits"], "stat: %s" % c)
    if check(done["attach"].status == 0, "attach: " + done["attach"].out):
        s = e2e.summary(os.path.join(host.out, "attach.data"))
        check(s["samples"] > 97, "attach: %d samples in 2 s" % s["samples"])
        stacks = e2e.kvmprof("script", "-i", os.path.join(host.out, "attach.data")).out
        check("demo_main" in stacks or s["user_ns"], "attach: no stack of the demo")
    say(done["attach"].out)
    e2e.finish(figures)


main()
