#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: svm, at most 120 s
"""KVM's paravirtual clock and stolen time, in two guests that share one processor.

The guest is offered what KVM offers (less what needs hypercalls, where these hang). Its clock
shows what the host's does, at the same rate as the host's and the TSC; of the time that passed,
what is not stolen is not more than one processor had. Ticks of the timer that came with interrupts
off are lost, but for one."""

import array
import fcntl
import os
import re
import struct
import time

import e2e
from e2e import check, say

SECONDS = 4
KVM_GET_SUPPORTED_CPUID = 0xc008ae05
WITHOUT_HYPERCALLS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 24
CLOCKSOURCE2, STEAL_TIME = 1 << 3, 1 << 5
ENTRY = 40


def offered():
    """CPUID 0x40000001 EAX that KVM supports: struct kvm_cpuid2, 40 bytes an entry."""
    n = 256
    buf = array.array("B", struct.pack("<II", n, 0) + bytes(n * ENTRY))
    fd = os.open("/dev/kvm", os.O_RDWR)
    fcntl.ioctl(fd, KVM_GET_SUPPORTED_CPUID, buf)
    os.close(fd)
    for i in range(struct.unpack_from("<I", buf)[0]):
        function, _, _, eax = struct.unpack_from("<IIII", buf, 8 + i * ENTRY)
        if function == 0x40000001:
            return eax
    return 0


def readings(b):
    """(arrival, now, tsc, steal or None), ns, for each line."""
    zero = time.time() - time.monotonic() + b.start
    found = []
    for t, line in b.lines:
        m = re.match(r"pvclock: now (\d+) tsc (\d+) steal (\d+|-)$", line)
        if m:
            found.append((int((zero + t) * 1e9), int(m[1]), int(m[2]), None if m[3] == "-" else int(m[3])))
    return found


def check_clock(name, r, started):
    late = [arrival - now for arrival, now, _, _ in r]
    passed = r[-1][1] - r[0][1]
    check(r[0][1] >= started - 5000000 and min(late) >= -5000000,
          "%s: the clock says %.3f s before the start, or %.3f s too much" % (
              name, (started - r[0][1]) / 1e9, -min(late) / 1e9))
    drift = min(late[len(late) // 2:]) - min(late[:len(late) // 2])
    check(abs(drift) < passed / 10, "%s: %.3f s off in %.3f s" % (name, drift / 1e9, passed / 1e9))
    check(abs(r[-1][2] - r[0][2] - passed) < passed / 100, "%s: kvm-clock %d ns, TSC %d ns" % (
        name, passed, r[-1][2] - r[0][2]))


def check_late_ticks():
    """The timer's ticks of half a second that had interrupts off: one waits, the others are lost."""
    b = e2e.Boot("-o", "ticks.data", "--append", "mode=ticks").wait(120)
    m = re.search(r"late ticks (\d+)", b.text())
    if check(b.status == 0 and m, "ticks: status %d: %s %s" % (b.status, b.text(), b.err)):
        say("%s ticks within two periods after ten without interrupts" % m[1])
        check(1 <= int(m[1]) <= 4, "lost ticks are made up for: %s" % m[1])


e2e.need_kvm()
check_late_ticks()
kvm = offered()
if not kvm & CLOCKSOURCE2:
    e2e.skip("this KVM has no clock for its guests: features 0x%x" % kvm)
cpu = str(min(os.sched_getaffinity(0)))
started = int(time.time() * 1e9)
both = [e2e.Boot("--pin", cpu, "-o", name + ".data", "--append", "mode=pvclock seconds=%d" % SECONDS)
        for name in ("a", "b")]
got = [readings(b.wait(120)) for b in both]
for b, r, name in zip(both, got, "ab"):
    if not check(b.status == 0 and len(r) == 9, "%s: status %d: %s %s" % (name, b.status, b.text(), b.err)):
        e2e.finish()
    check_clock(name, r, started)
    features = int(re.search(r"pvclock: features 0x(\w+)", b.text()).group(1), 16)
    hang = e2e.summary(name + ".data")["host"]["hypercalls_hang"]
    want = kvm & WITHOUT_HYPERCALLS if hang else kvm
    check(features == want, "features 0x%x, should be 0x%x of 0x%x" % (features, want, kvm))
if not kvm & STEAL_TIME:
    e2e.skip("this KVM does not tell of stolen time: features 0x%x" % kvm)

# The first reading is older than what KVM wrote when the guest asked for it.
parts = [(r[1], r[-1]) for r in got]
window = max(end[1] for _, end in parts) - min(begin[1] for begin, _ in parts)
together = min(end[1] for _, end in parts) - max(begin[1] for begin, _ in parts)
ran = [end[1] - begin[1] - (end[3] - begin[3]) for begin, end in parts]
stolen = [(end[3] - begin[3]) / (end[1] - begin[1]) * 100 for begin, end in parts]
say("together for %.2f of %.2f s; stolen %.1f and %.1f %%; ran %.2f and %.2f s" % (
    together / 1e9, window / 1e9, *stolen, *(n / 1e9 for n in ran)))
check(together > window / 3, "the two guests did not run together")
check(sum(ran) < window * 1.1, "one processor had more time than there was")
check(min(ran) > -window / 20, "more was stolen than passed")
e2e.finish("stolen %.0f %% and %.0f %%" % tuple(stolen))
