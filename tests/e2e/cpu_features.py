#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 18 s
# tests: not svm, disk
"""What a guest is told of its processor agrees with what it can run. On a host whose KVM runs
LZCNT and TZCNT as BSR and BSF no guest hears of them, neither its kernel (/proc/cpuinfo) nor a
program (CPUID): zstd would go by that and unpack nonsense. Elsewhere nothing is hidden. Where such a
host's processor cannot trap CPUID in ring 3 (no cpuid_fault) a program sees what the processor has;
it runs there natively, where the results are right."""

import os
import re

import e2e
from e2e import check, say

PROGRAM = r"""
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
	unsigned a, b, c, d, x[3] = { 0 };
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) { x[0] = b >> 3 & 1; x[1] = b >> 8 & 1; }
	if (__get_cpuid(0x80000001, &a, &b, &c, &d)) x[2] = c >> 5 & 1;
	printf("cpuid bmi1=%u bmi2=%u lzcnt=%u\n", x[0], x[1], x[2]);
	return 0;
}
"""

e2e.need_kvm()
with open("cpuid.c", "w") as f:
    f.write(PROGRAM)
p = e2e.run("gcc", "-O1", "-static", "-o", "cpuid", "cpuid.c")
if p.status:
    e2e.skip("no C compiler for the program: " + p.err[-200:])
host = set(re.search(r"^flags\s*:(.*)$", open("/proc/cpuinfo").read(), re.M)[1].split())
os.makedirs("root/bin", exist_ok=True)
for name, source in (("busybox", "/bin/busybox"), ("sh", "/bin/busybox"), ("cpuid", "cpuid")):
    e2e.shutil.copy(source, "root/bin/" + name)
kernel = os.path.join(e2e.built_kernel("tiny"), "bzImage")
p = e2e.kvmprof("run", kernel, "-m", "96M", "--rootfs", "root", "-F", "99", "-o", "features.data",
                "--exec", "cpuid; busybox cat /proc/cpuinfo", timeout=300)
check(p.status == 0, "status %d: %s" % (p.status, p.err))
said = re.search(r"cpuid bmi1=(\d) bmi2=(\d) lzcnt=(\d)", p.out)
flags = re.search(r"^flags\s*:(.*)$", p.out, re.M)
if not check(said and flags, "the guest said nothing of its processor: " + p.out[-500:]):
    e2e.finish()
wrong = e2e.summary("features.data")["host"]["zero_counts_wrong"]
guest = set(flags[1].split())
say("LZCNT and TZCNT %s; a program sees %s" % ("are wrong" if wrong else "are right", said[0]))
for bit, name in zip(said.groups(), ("bmi1", "bmi2", "abm")):
    want = name in host and not wrong
    untrapped = wrong and "cpuid_fault" not in host and int(bit) == (name in host)
    check(bool(int(bit)) == want or untrapped, "CPUID %s of %s" % ("lacks" if want else "tells", name))
    check((name in guest) == want, "/proc/cpuinfo %s %s" % ("lacks" if want else "has", name))
check("popcnt" not in guest or not e2e.summary("features.data")["host"]["interpreted"],
      "clearcpuid= did nothing: /proc/cpuinfo has popcnt")
e2e.finish()
