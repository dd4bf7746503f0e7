#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cloud_boot.py KVMPROF SCRATCH 6.1|6.12: Debian's own cloud kernel to user space and to
its power-off. Minutes, on a host whose KVM interprets the guest's ring 0."""

import e2e
from e2e import check, say

e2e.need_kvm()
image = e2e.debian_kernel(e2e.EXTRA[0] if e2e.EXTRA else "6.1")
b = e2e.Boot(image, "--initrd", e2e.INITRAMFS, "-o", "cloud.data").wait(2400)
say(b.err)
t = b.seen("kvmprof-init: start")
check(b.status == 0, "status %d" % b.status)
check(t is not None, "user space was not reached")
check("kvmprof-init: done" in b.text(), "/init did not come to its end")
if e2e.failures:
    for when, line in b.lines[-40:]:
        say("%7.1f %s" % (when, line))
    e2e.finish()
s = e2e.check_lost("cloud.data")
p = e2e.kvmprof("report", "-i", "cloud.data")
check(p.status == 0, "kvmprof report: " + p.err)
e2e.finish("/init's marker after %.0f s, end after %.0f s; %d samples, lost %d" %
           (t, b.seconds, s["samples"], s["lost"]))
