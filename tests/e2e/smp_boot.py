#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 35 s: 1
# tests: slow, at most 3600 s: 30
# tests: slow, at most 1200 s: 1 4
# tests: slow, at most 1800 s: 1 8
# tests: svm, at most 240 s: 1
"""smp_boot.py KVMPROF SCRATCH [BOOTS [VCPUS]]: a kernel with several CPUs, boot after boot.

Every boot has to come through all of /init to its end, with samples of each vCPU. The
kernel has frame pointers, so its stacks have to end at a root or at the way in from user space.
Those of /init, which has no caller to return to, are not counted: on a host with VMX or SVM they
are a third of all."""

import os

import e2e
from e2e import check, say

BOOTS = int(e2e.EXTRA[0]) if e2e.EXTRA else 3
VCPUS = int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 2

e2e.need_kvm()
image = os.path.join(e2e.built_kernel("smp-fp"), "vmlinux")
good, markers, whole, stacks = 0, [], 0, 0
for i in range(BOOTS):
    before = e2e.failures
    b = e2e.Boot(image, "--initrd", e2e.INITRAMFS, "-m", "64M", "--vcpus", VCPUS,
                 "-o", "smp.data").wait(600)
    check(b.status == 0, "boot %d: status %d: %s" % (i + 1, b.status, b.err))
    check("smp: Brought up 1 node, %d CPUs" % VCPUS in b.text(),
          "boot %d: not all of %d CPUs are online" % (i + 1, VCPUS))
    check("kvmprof-init: done" in b.text(), "boot %d: /init did not come to its end" % (i + 1))
    if e2e.failures > before:
        say("\n".join(b.text().split("\n")[-40:]))
        continue
    s = e2e.check_lost("smp.data")
    cpus = {}
    for x in e2e.parse_script(e2e.kvmprof("script", "-i", "smp.data").out):
        cpus[x.cpu] = cpus.get(x.cpu, 0) + 1
    # A vCPU that the guest never brought up cannot be sampled; it must be told apart.
    up = [c for c in range(VCPUS) if cpus.get(c, 0) > 10]
    if VCPUS == 2:
        check(len(up) == 2, "boot %d: samples by vCPU: %s" % (i + 1, cpus))
    ends = {k: v for k, v in s["kernel_stack_end"].items() if v}
    whole += ends.get("root", 0) + ends.get("user-entry", 0)
    stacks += sum(ends.values())
    markers.append(b.seen("kvmprof-init: start"))
    say("boot %d: /init after %.1f s, end after %.1f s; samples by vCPU %s; kernel stacks %s; "
        "%d system calls assisted, %d undone" %
        (i + 1, markers[-1], b.seconds, sorted(cpus.items()), ends,
         s["host"]["syscalls_assisted"], s["host"]["syscalls_undone"]))
    if e2e.failures == before:
        good += 1

say("%d of %d" % (good, BOOTS))
check(good == BOOTS, "%d of %d boots were good" % (good, BOOTS))
markers.sort()
share = 100 * whole / stacks if stacks else 0
# What is left are the first instructions of entries and of functions that have no frame.
check(share > 95, "only %.1f %% of the kernel stacks are whole" % share)
e2e.finish("%d of %d with %d vCPUs; /init's marker after %.1f s (median); %.1f %% of the kernel "
           "stacks whole" % (good, BOOTS, VCPUS, markers[len(markers) // 2] if markers else 0, share))
