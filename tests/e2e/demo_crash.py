#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 2 s
# tests: svm, at most 120 s
"""A triple fault: said, with registers and stack; what was recorded until then is kept.

Where KVM resets a vCPU before it reports the fault (kvm_amd), that is said instead, with the
vCPU's last sample: there are no registers, and no crash with those of a reset.
"""

import os
import re

import e2e
from e2e import check, say

e2e.need_kvm()
boot = e2e.Boot("-o", "crash.data", "--append", "seconds=3 crash=triple").wait(60)
say(boot.err)
check(boot.status == 1, "status %d, expected 1" % boot.status)
check("demo: crashing" in boot.text(), "the guest did not come to its crash")
stack = re.findall(r"^  [0-9a-f]{16} (\S+)\+0x[0-9a-f]+$", boot.err, re.M)
is_reset = "resets a vCPU before it reports a triple fault" in boot.err
# Both known hosts are told by the module, so that neither can pass for the other.
check(is_reset or not os.path.exists("/sys/module/kvm_amd"), "kvm_amd: registers are shown")
check(not is_reset or not os.path.exists("/sys/module/kvm_intel"), "kvm_intel: no registers")
if is_reset:
    check(re.search(r"^kvmprof: vCPU 0: triple fault$", boot.err, re.M), "no line says triple fault")
    check(not re.search(r"\brip [0-9a-f]{4,}|fff0", boot.err), "registers of the reset are shown")
    age = re.search(r"last sample of this vCPU, ([0-9.]+) ms before:$", boot.err, re.M)
    check(age and float(age[1]) < 1000, "the last sample's age")
    check(stack and stack[-1] == "demo_main", "stack of the last sample: %s" % stack)
else:
    check(re.search(r"^kvmprof: .*triple fault at rip 0x[0-9a-f]{16}", boot.err, re.M), "no line says triple fault")
    for register in ("rip", "rflags", "rax", "rsp", "r15", "cr2", "cr3"):
        check(re.search(r"\b%s +[0-9a-f]{4,}" % register, boot.err), "register %s is not printed" % register)
    check(stack == ["crash_now", "crash_middle", "crash_outer", "demo_main"], "stack of the crash: %s" % stack)
check(not e2e.leftovers(), "temporary files are left: %s" % e2e.leftovers())

s = e2e.check_lost("crash.data")
check(s["samples"] > 100, "%d samples kept of a second's work" % s["samples"])
p = e2e.kvmprof("report", "-i", "crash.data")
check(p.status == 0 and "demo_main" in p.out, "kvmprof report of it: status %d" % p.status)
if e2e.has_tool("perf"):
    samples = e2e.parse_script(e2e.perf_script("crash.data"))
    check(len(samples) == s["samples"], "perf script shows %d of %d" % (len(samples), s["samples"]))
e2e.finish("%d samples kept" % s["samples"])
