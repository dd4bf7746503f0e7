#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 20 s
# tests: not svm, disk
"""A kernel that its own decompressor puts at a random address, to user space and to /init's end,
with its names at the right places; what cannot be booted so is refused in one line."""

import json
import os
import re

import e2e
from e2e import check, say


def refused(*options, **want):
    p = e2e.kvmprof("run", "--boot=bzimage", "-o", "refused.data", *options, timeout=30)
    check(p.status == want["status"] and not p.out and p.err.count("\n") == 1 and
          want["text"] in p.err, "--boot=bzimage %s: status %d, %r, expected %d and one line with %r"
          % (" ".join(options), p.status, p.err, want["status"], want["text"]))
    check(not os.path.exists("refused.data"), "a profile of nothing was written")


e2e.need_kvm()
tiny = e2e.built_kernel("tiny")
bz = os.path.join(tiny, "bzImage")

refused(status=2, text="needs a bzImage")
refused(os.path.join(tiny, "vmlinux"), status=1, text="--boot=bzimage needs a bzImage")
refused(bz, "-m", "16M", status=1, text="give at least ")

b = e2e.Boot(bz, "--boot=bzimage", "--initrd", e2e.INITRAMFS, "-m", "128M", "-o", "kaslr.data",
             "--append", "earlyprintk=ttyS0").wait(600)
ok = check(b.status == 0, "status %d: %s" % (b.status, b.err))
kernel, start = b.seen("Linux version "), b.seen("kvmprof-init: start")
ok &= check(kernel is not None, "the kernel said nothing")
ok &= check(start is not None, "/init did not start")
ok &= check("kvmprof-init: done" in b.text(), "/init did not come to its end")
ok &= check("KASLR disabled" not in b.text(), "the kernel was not put at a random address")
ok &= check("kvmprof: guest " in b.err, "the guest did not end by itself: " + b.err)
if not ok:
    say("\n".join(b.text().split("\n")[-30:]))
    e2e.finish()
s = e2e.check_lost("kaslr.data")

# Where it is follows from two or more pieces of evidence that agree.
k = s["guest"]["slide"]
slide = int(k["slide"], 16)
check(k["status"] == "solved" and len(k["evidence"]) >= 2 and
      set(k["evidence"].values()) == {k["slide"]}, "the slide: %s" % k)
check(slide % 0x200000 == 0 and slide < 0x40000000, "no slide of KASLR's: %x" % slide)

with open(os.path.join(tiny, "System.map")) as f:
    places = {(int(a, 16), n) for a, _, n in (line.split() for line in f)}
names = {n for _, n in places}
with open(os.path.join("kaslr.data", "kcore_dir", "kallsyms")) as f:
    moved = [line.split() for line in f if not line.rstrip().endswith("]")]
wrong = [n for a, _, n in moved if n != "_text" and (int(a, 16) - slide, n) not in places]
check(len(moved) > 5000 and not wrong, "%d names, wrong: %s" % (len(moved), wrong[:5]))

report = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "--order", "self", "-i",
                                "kaslr.data").out)
ours = [r["symbol"] for r in report["symbols"] if r["dso"] == "[kernel.kallsyms]"]
check(len(ours) > 100 and set(ours) <= names, "names that System.map does not have: %s" %
      (set(ours) - names))
check(s["unsymbolized"] * 1000 <= s["samples"], "%d of %d samples without a name" %
      (s["unsymbolized"], s["samples"]))
ends = s["kernel_stack_end"]
whole, total = ends["root"] + ends["user-entry"], sum(ends.values()) - ends["no-text"]
check(whole * 1000 >= total * 995, "%d of %d kernel stacks are complete" % (whole, total))

if e2e.has_tool("perf"):
    p = e2e.run("perf", "report", "-i", "kaslr.data", "--stdio", "-g", "none", "--no-children",
                "--percent-limit", "0", timeout=300)
    shown = re.findall(r"\[kernel.kallsyms\] +\[k\] (\S+)", p.out)
    check(p.status == 0 and shown[:10] and set(shown) <= names,
          "perf report shows other names: %s" % [n for n in shown if n not in names][:5])
    check(set(ours[:5]) <= set(shown[:20]), "perf shows %s, we %s" % (shown[:20], ours[:5]))

e2e.finish("start to the kernel's first line %.1f s, to /init's marker %.1f s; slide %#x by %s; "
           "%d samples, lost %d, kernel stacks %.2f %% complete" %
           (kernel, start, slide, " ".join(sorted(k["evidence"])), s["samples"], s["lost"],
            100.0 * whole / total))
