#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 10 s
# tests: not svm, disk
"""What `kvmprof inspect` and `kvmprof symbols` say of a kernel's stacks is what a run then does:
with the kernel's ORC table, and with one that makes no sense."""

import json
import os
import re

import e2e
from e2e import check, say

e2e.need_kvm()
whole = os.path.join(e2e.built_kernel("tiny"), "vmlinux")
p = e2e.run("readelf", "-SW", whole)
found = re.search(r"\.orc_unwind\s+PROGBITS\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)", p.out)
if p.status or not found:
    e2e.skip("no .orc_unwind in %s, or no readelf" % whole)
with open(whole, "rb") as f:
    image = bytearray(f.read())
at, size = (int(x, 16) for x in found.groups())
image[at:at + size] = b"\xff" * size
with open("broken", "wb") as f:
    f.write(image)

for path, unwinding, text in ((whole, "orc", "by its ORC table"), ("broken", "search", "a search of the stack")):
    p = e2e.kvmprof("inspect", path)
    line = next((x for x in p.out.split("\n") if x.startswith("stacks")), "")
    say(line)
    check(p.status == 0 and text in line, "inspect %s: %s%s" % (path, line, p.err))
    k = json.loads(e2e.kvmprof("inspect", "--json", path).out)["kernel"]
    check(k.get("unwinding") == unwinding, "inspect --json: %s" % k.get("unwinding"))
    why = k.get("no_orc_because")
    check((why is None) == (unwinding == "orc"), "inspect --json: no ORC because %s" % why)
    check(why is None or why in p.out, "inspect does not say why: " + p.out)
    p = e2e.kvmprof("symbols", path)
    check(why is None or "ORC        a table, not used: " + why in p.err, "symbols: " + p.err)
    out = os.path.basename(path) + ".data"
    p = e2e.kvmprof("run", path, "-m", "64M", "--duration", "2", "-o", out, timeout=120)
    check(p.status == 0, "run: " + p.err)
    s = e2e.summary(out)
    ends = s["kernel_stack_end"]
    alone = ends["no-frame-pointers"]
    say("%s: %d samples, %d of them with the innermost frame alone" % (path, s["samples"], alone))
    check(s["samples"] > 100, "%d samples" % s["samples"])
    check(alone < s["samples"] / 2, "%d of %d samples have one frame" % (alone, s["samples"]))
    if unwinding == "search":
        check(ends["scanned"] > s["samples"] / 2 and not ends["root"], "ends of searched stacks: %s" % ends)
        check(why in p.err, "the run gives another reason: " + p.err)
e2e.finish()
