#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kernel_tables.py KVMPROF SCRATCH [all]: what is read out of Debian's kernels, without a guest.

For the images of some series (`all`: for each image in the cache) names, unwind tables and
types are loaded as for a run. Then (kernel_tables.c) the unwind table is held against the code
of all functions, the same table with its registers numbered at random must come out the same,
and stacks that are made up over real call sites must unwind whole. An image that cannot be
fetched is left out by name; without any the test is skipped."""

import glob
import os
import shutil
import subprocess

import compiled
import e2e
from e2e import check, say

SERIES = ["5.10", "6.1", "6.12", "6.18", "7"]
PERMUTATIONS = 3


def images():
    """({name: path}, [why one is missing])"""
    if e2e.EXTRA[:1] == ["all"]:
        found = sorted(glob.glob(os.path.join(os.environ["KVMPROF_CACHE"], "debian-*", "vmlinuz-*")))
        return {os.path.basename(f)[len("vmlinuz-"):]: f for f in found}, []
    found, missing = {}, []
    for series in SERIES:
        p = subprocess.run([os.path.join(e2e.TOP, "scripts", "fetch-debian-kernel.sh"), series],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if p.returncode:
            missing.append("%s: %s" % (series, p.stderr.strip().split("\n")[-1]))
            continue
        path = glob.glob(os.path.join(p.stdout.strip(), "vmlinuz-*"))[0]
        found[os.path.basename(path)[len("vmlinuz-"):]] = path
    return found, missing


def check_image(name, path):
    p = e2e.run("./kernel_tables", path)
    check(p.status == 0, "%s: status %d: %s" % (name, p.status, p.err))
    v, broken = {}, []
    for line in p.out.split("\n"):
        word, _, text = line.partition(" ")
        v[word] = int(text) if text.isdigit() else text
        if word in ("broken", "disagree", "permuted-refused"):
            broken.append(line)
    say("%s: %s names; ORC: %s entries, layout of %s, registers of %s; %s of %s instructions agree; "
        "%s of %s stacks whole" % (name, v.get("names"), v.get("orc"), v.get("layout"),
                                   v.get("registers"), v.get("agree"), v.get("instructions"),
                                   v.get("orc-whole"), v.get("orc-stacks")))
    before = e2e.failures
    check(v["names"] > 50000, "%s: %s names %s" % (name, v["names"], v.get("names-note")))
    check(v["orc"] > 100000, "%s: no ORC table: %s" % (name, v["orc-note"]))
    for part, note in ("tasks", "task"), ("mm", "mm"), ("file", "mm"), ("modules", "module"):
        check(v[part] == 1, "%s: %s not known: %s %s" % (name, part, v[note + "-note"], v["types-note"]))
    check(v["irq-stack"] == 1, name + ": the interrupt stack is not known")
    if e2e.failures > before:
        return
    check(v["outside"] * 1000 <= v["orc"], "%s: %d entries are outside of the text" % (name, v["outside"]))
    check(v["functions"] > 10000 and v["starts"] * 1000 >= v["functions"] * 999,
          "%s: at the start of only %d of %d functions the frame is at rsp + 8" % (name, v["starts"], v["functions"]))
    check(v["agree"] * 1000 >= v["instructions"] * 999, "%s: the table disagrees with the code: %d of %d" %
          (name, v["agree"], v["instructions"]))
    check(v["permuted-wrong"] == 0, "%s: with other numbers %d entries are another" % (name, v["permuted-wrong"]))
    check(v["permuted-lost"] * 1000 <= v["orc"] * PERMUTATIONS,
          "%s: with other numbers %d entries are lost" % (name, v["permuted-lost"]))
    check(v["orc-stacks"] >= 1000 and v["orc-whole"] * 1000 >= v["orc-stacks"] * 995 and v["orc-invented"] == 0,
          "%s: %d of %d stacks are whole, %d frames are invented" %
          (name, v["orc-whole"], v["orc-stacks"], v["orc-invented"]))
    # Without the table, by the code's way to its return: not all, but none that is not there.
    check(v["scan-right"] * 10 >= v["scan-frames"] * 9 and v["scan-invented"] * 1000 <= v["scan-frames"],
          "%s: without the table %d of %d frames are found, and %d that are not there" %
          (name, v["scan-right"], v["scan-frames"], v["scan-invented"]))
    if e2e.failures > before:
        say("\n".join(broken))


e2e.need_tool("gcc")
if not shutil.which("apt-get"):
    e2e.skip("no apt-get to fetch Debian's kernels with")
found, missing = images()
for text in missing:
    say("left out: " + text)
if not found:
    e2e.skip("none of Debian's kernels is there: " + "; ".join(missing))
compiled.tool("e2e/kernel_tables.c", "demo_blob.o")
for name, path in sorted(found.items()):
    check_image(name, path)
e2e.finish("%d kernels (%s)%s" % (len(found), ", ".join(sorted(found)),
                                  "; left out: " + "; ".join(missing) if missing else ""))
