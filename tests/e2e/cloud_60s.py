#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 900 s
# tests: not svm, disk
"""Debian's own 6.1 cloud kernel from its bzImage, for the first 60 s of its boot."""

import e2e
from e2e import check, say

e2e.need_kvm()
image = e2e.debian_kernel("6.1")
b = e2e.Boot(image, "--initrd", e2e.INITRAMFS, "--duration", "60", "-o", "cloud.data").wait(150)
check(b.status == 0, "status %d" % b.status)
say(b.err)
s = e2e.check_lost("cloud.data")
ended = s["end"] != "duration reached"
say("console lines: %d, the last: %s" % (len(b.lines), b.lines[-1][1] if b.lines else "none"))
check(ended or s["run_seconds"] >= 60, "%.1f s of the guest's time" % s["run_seconds"])
# On a fast host this is enough for the whole way.
check(not ended or "kvmprof-init: done" in b.text(), "the guest ended early: " + s["end"])
check(s["kernel_ns"] > 0 and s["samples"] > 1000, "%d samples" % s["samples"])
# The names are the image's own.
check("has no symbols" not in b.err, "no names: " + b.err)
check(s["unsymbolized"] * 100 < s["samples"], "%d samples without a name" % s["unsymbolized"])

p = e2e.kvmprof("report", "-i", "cloud.data")
check(p.status == 0 and "[kernel.kallsyms]" in p.out, "kvmprof report: " + p.err)
if e2e.has_tool("perf"):
    p = e2e.run("perf", "report", "-i", "cloud.data", "--stdio", "-g", "none")
    check(p.status == 0 and "[k]" in p.out, "perf report: " + p.err)
    samples = e2e.parse_script(e2e.perf_script("cloud.data"))
    check(len(samples) == s["samples"], "perf script shows %d of %d samples" % (len(samples), s["samples"]))
e2e.finish("%d samples in %.0f s, lost %d" % (s["samples"], s["run_seconds"], s["lost"]))
