#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 15 s
# tests: not svm, disk
"""What `kvmprof mem` says of a Linux guest: a boot of the small kernel.

There is no truth to compare with, but what must be so of any boot: nearly all instructions are
understood and their addresses mapped, stacks, the image's data and the direct map are used,
the image's own memory is mapped with 2M pages, and what clear_bss writes is kernel data.
"""

import json
import os

import e2e
from e2e import check, say

e2e.need_kvm()
kernel = e2e.built_kernel("tiny")
run = e2e.Boot(os.path.join(kernel, "vmlinux"), "--mem", "--initrd", e2e.INITRAMFS, "-m", "64M",
               "-o", "tiny.data").wait(300)
check(run.status == 0, "run: status %d: %s" % (run.status, run.err))
check("kvmprof: memory: " in run.err, "no line in the summary: " + run.err)

p = e2e.kvmprof("mem", "-i", "tiny.data", "--json")
if not check(p.status == 0, "kvmprof mem: " + p.err):
    e2e.finish()
t = json.loads(p.out)
insns, addresses = t["instructions"], t["addresses"]
check(insns["not_known"] + insns["no_bytes"] + insns["vector_index"] < 0.5, "instructions: %s" % insns)
check(insns["with"] > 10, "instructions: %s" % insns)
check(addresses["mapped"] > 99, "addresses: %s" % addresses)

region = {r["region"]: r for r in t["regions"]}
for name in ("kernel stack", "kernel data", "direct map", "vmemmap"):
    check(region.get(name, {"share": 0})["share"] > 0.5, "%s: %s" % (name, region.get(name)))
strange = sum(r["share"] for n, r in region.items() if n in ("unknown", "other kernel", "other user"))
check(strange < 2, "regions that are not known: %.2f %%" % strange)
data = region["kernel data"]
check(data["2M"] > data["4K"], "kernel data in pages: %s" % data)
code = {r["guest"]: r["share"] for r in t["code_pages"]}
check(code.get("2M", 0) > 50, "code in pages: %s" % code)

clear = [r for r in t["symbols"] if r["symbol"] == "clear_bss"]
if check(len(clear) == 1, "clear_bss: %s" % clear):
    # rep stos
    check(clear[0]["write"] > 0.99 * clear[0]["share"] and clear[0]["read"] < 0.01 * clear[0]["share"],
          "clear_bss writes: %s" % clear)
node = {r["node"]: r["share"] for r in t["nodes"]}
say("regions %s\nnodes %s" % ({n: r["share"] for n, r in region.items()}, node))
e2e.finish("%d accesses, %.2f %% mapped, %.2f %% of instructions not understood" %
           (t["accesses"], addresses["mapped"], insns["not_known"] + insns["no_bytes"] + insns["vector_index"]))
