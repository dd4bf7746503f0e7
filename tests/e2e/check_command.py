#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: svm, at most 60 s
"""`kvmprof check`: what the host offers; each lack comes with how to mend it. Without KVM it
says that, and what can be done about it."""

import os
import re

import e2e
from e2e import check, say

TOPICS = ("host kernel", "KVM API", "irqchip", "PIT", "immediate_exit", "SYNC_REGS", "MP_STATE", "vCPUs",
          "guest debug", "ring 0", "SYSCALL", "TSC", "hardware PMU", "software perf events",
          "perf_event_paranoid", "sandbox of a run")
# Asked only of a KVM that interprets ring 0.
INTERPRETED = ("emulation", "LZCNT and TZCNT", "CPUID leaf 7", "hypercalls")

have_kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
p = e2e.kvmprof("check")
say(p.out)
check(p.status == (0 if have_kvm else 1), "status %d: %s" % (p.status, p.err))
for topic in TOPICS if have_kvm else ("KVM", "/dev/kvm"):
    check(topic in p.out, "not a word about " + topic)
if have_kvm:
    speed = re.search(r"guest ring 0 +(interpreted|runs natively): ([0-9.]+) ns an instruction", p.out)
    if check(speed, "no speed of ring 0"):
        check((speed[1] == "interpreted") == (float(speed[2]) > 50), "ring 0: " + speed[0])
        for topic in INTERPRETED:
            check((topic in p.out) == (speed[1] == "interpreted"), "%s on a host whose ring 0 %s" %
                  (topic, speed[1]))
    hardware = re.search(r"KVM back end +(VMX|SVM)", p.out)
    check(not (hardware and speed and speed[1] == "interpreted"), "interpreted by " + str(hardware))
lines = p.out.rstrip("\n").split("\n")
for here, below in zip(lines, lines[1:] + [""]):
    if re.match(r"(note|warn|lack|FAIL)", here):
        check(below.strip().startswith("->"), "no advice below: " + here)
if have_kvm:
    most = int(re.search(r"kvmprof uses up to (\d+)", p.out)[1])
    refused = e2e.kvmprof("run", "--vcpus", str(most + 1))
    check(refused.status == 2 and "from 1 to %d;" % most in refused.err, "vCPUs: " + refused.err)
check(("works on" if have_kvm else "does NOT work on") in lines[-1], "no verdict in the last line: " + lines[-1])
e2e.finish()
