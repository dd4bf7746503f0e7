#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 20 s
# tests: not svm, disk
"""A kernel about whose image nothing is known: names, unwind tables and types out of the running
guest's memory (--symbols live), equal to those of the image; also of a kernel that KASLR moved."""

import json
import os
import re

import e2e
from e2e import check, say


def system_map(kernel):
    with open(os.path.join(kernel, "System.map")) as f:
        return {m.group(2): int(m.group(1), 16) for m in
                (re.match(r"([0-9a-f]+) [tTwW] (\S+)$", line) for line in f) if m}


def kallsyms(path):
    """name -> address of the kernel's own functions, as the profile has them."""
    out = {}
    with open(os.path.join(path, "kcore_dir", "kallsyms")) as f:
        for line in f:
            m = re.match(r"([0-9a-f]+) \S (\S+)$", line)
            if m and int(m.group(1), 16) >> 63:
                out.setdefault(m.group(2), int(m.group(1), 16))
    return out


def boot(kernel, output, *options):
    b = e2e.Boot(os.path.join(kernel, "bzImage"), "--symbols", "live", "--initrd", e2e.INITRAMFS,
                 "-m", "128M", "-o", output, *options).wait(600)
    if not check(b.status == 0 and "kvmprof-init: done" in b.text(),
                 "%s: status %d: %s" % (output, b.status, b.err)):
        say("\n".join(b.text().split("\n")[-30:]))
        e2e.finish()
    return e2e.check_lost(output)


def check_names(kernel, path, s):
    """All functions are where System.map has them, but for one slide; stacks are whole."""
    want, have = system_map(kernel), kallsyms(path)
    common = [n for n in have if n in want]
    slides = {have[n] - want[n] for n in common if n == "_text" or n == "start_kernel"}
    check(len(common) > 5000, "only %d names" % len(common))
    check(len(slides) == 1, "no single slide: %s" % slides)
    slide = min(slides, default=0)
    with open(os.path.join(kernel, "System.map")) as f:
        places = {line.split()[2] + "@" + line.split()[0] for line in f if len(line.split()) == 3}
    wrong = [n for n in have if n != "_text" and
             "%s@%016x" % (n, have[n] - slide) not in places]
    check(not wrong, "%s: names at other places: %s" % (path, wrong[:5]))
    ends = s["kernel_stack_end"]
    whole, total = ends["root"] + ends["user-entry"], sum(ends.values())
    total -= ends["no-text"]  # before the kernel's own mappings
    check(whole * 1000 >= total * 995, "%s: %d of %d kernel stacks are complete" %
          (path, whole, total))
    check(s["unsymbolized"] * 100 <= s["samples"], "%s: %d samples without a name" %
          (path, s["unsymbolized"]))
    return slide, len(common), 100.0 * whole / max(total, 1)


e2e.need_kvm()
p = e2e.kvmprof("run", "--symbols", "live", "-o", "demo.data", timeout=30)
check(p.status == 1 and p.err.count("\n") == 1 and "Linux" in p.err,
      "the demo guest has no names in memory: " + p.err)
tiny = e2e.built_kernel("tiny")
s = boot(tiny, "tiny.data")
slide, names, whole = check_names(tiny, "tiny.data", s)
check(slide == 0, "the kernel moved by itself")
report = json.loads(e2e.kvmprof("report", "--json", "--sort", "comm", "-n", "0", "-i",
                                "tiny.data").out)
check({"init"} <= {r["comm"] for r in report["symbols"]}, "no sample of /init")

s = boot(tiny, "kaslr.data", "--boot=bzimage")
moved, kaslr_names, kaslr_whole = check_names(tiny, "kaslr.data", s)
check(moved % 0x200000 == 0 and moved < 0x40000000, "no slide of KASLR's: %#x" % moved)
e2e.finish("%d names, %.2f %% of kernel stacks complete; moved by %#x: %d names, %.2f %%" %
           (names, whole, moved, kaslr_names, kaslr_whole))
