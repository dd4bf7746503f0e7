#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 2700 s: 6.12 bzimage
# tests: slow, at most 2700 s: {booted}
# tests: not svm, disk
"""cloud_boot.py KVMPROF SCRATCH KERNEL [bzimage | svm]: a kernel of tests/kernels.table to user space and
to its power-off, such as Debian's own 6.1; bzimage: through its own decompressor; svm: on an
emulated host with SVM, and not this machine's KVM. Minutes, where KVM interprets the guest's ring 0."""

import json
import os
import re

import e2e
import emulated
import kernel_matrix
from e2e import check, say


def check_names(system_map):
    """Each kernel name of the profile is a function of System.map, as people know it: without the
    number that ThinLTO appends, and none of the bytes in front of a function (kCFI)."""
    with open(system_map) as f:
        known = {re.sub(r"\.llvm\.[0-9a-f]+$", "", line.split()[2]) for line in f}
    r = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "-i", "cloud.data").out)
    names = {x["symbol"] for x in r["symbols"] if x["dso"] == "[kernel.kallsyms]"}
    bad = sorted(x for x in names if x not in known or x.startswith(("__cfi_", "__pfx_")))
    check(len(names) > 200 and not bad, "of %d names these are none: %s" % (len(names), bad))


SVM = "svm" in e2e.EXTRA
if not SVM:
    e2e.need_kvm()
kernel = kernel_matrix.kernels()[e2e.EXTRA[0] if e2e.EXTRA else "6.1"]
try:
    image = kernel_matrix.image(kernel)
except kernel_matrix.Missing as why:
    e2e.skip(str(why))
way = ["--boot=bzimage", "-m", "512M", "--append", "earlyprintk=ttyS0"] if "bzimage" in e2e.EXTRA else []
if kernel.name == "fineibt":
    way += ["--append", "cfi=fineibt"]
b = (emulated.Boot if SVM else e2e.Boot)(image, "--initrd", e2e.INITRAMFS, "-o", "cloud.data", *way).wait(2400)
say(b.err)
t = b.seen("kvmprof-init: start")
check(b.status == 0, "status %d" % b.status)
check(t is not None, "user space was not reached")
check("kvmprof-init: done" in b.text(), "/init did not come to its end")
said = [line for _, line in b.lines if "Clearing CPUID bits:" in line or "force-disabling CPU feature flag:" in line]
if kernel.name == "fineibt":
    check(any("Using FineIBT CFI" in line for _, line in b.lines), "the kernel does not use FineIBT")
if e2e.summary("cloud.data")["host"]["interpreted"]:
    check(any("popcnt" in line for line in said), "clearcpuid= cleared nothing: %s" % said)
if "bzimage" in e2e.EXTRA:
    slide = e2e.summary("cloud.data")["guest"]["slide"]
    check(slide["status"] == "solved", "where the kernel runs is not known: %s" % slide)
if e2e.failures:
    for when, line in b.lines[-40:]:
        say("%7.1f %s" % (when, line))
    e2e.finish()
s = e2e.check_lost("cloud.data")
p = e2e.kvmprof("report", "-i", "cloud.data")
check(p.status == 0, "kvmprof report: " + p.err)
if kernel.source.startswith("built:"):
    check_names(os.path.join(os.path.dirname(image), "System.map"))

# Where nothing tells of stacks they are searched, and none is called whole.
ends = s["kernel_stack_end"]
if kernel.stacks != "yes":
    check(ends["scanned"] > s["samples"] / 2 and not ends["root"], "ends of searched stacks: %s" % ends)
    e2e.finish("/init's marker after %.0f s, end after %.0f s; %d samples" % (t, b.seconds, s["samples"]))

# Stacks: nearly all of the kernel's reach a root or user space, and below system calls,
# faults and interrupts of the program they go on into it.
WHOLE, INTO_PROGRAMS = 99.5, 80
total = sum(ends.values())
whole = 100 * (ends["root"] + ends["user-entry"]) / max(total, 1)
for x in sorted(s["broken_stacks"], key=lambda x: -x["count"])[:15]:
    say("%6d %s at %s %s (innermost: %s)" % (x["count"], x["end"], x["ip"], x["symbol"], x["innermost"]))
check(total > 1000 and whole >= WHOLE, "only %.3f %% of %d kernel stacks are whole: %s" % (whole, total, ends))
script = e2e.kvmprof("script", "-i", "cloud.data", timeout=600).out
samples = e2e.parse_script(script)
if kernel.name == "randstruct":
    # Members are where nothing tells: no task has its name, number or process.
    say("no tasks: " + s["guest"]["no_tasks_because"])
    check(s["guest"]["no_tasks_because"] and not s["guest"]["tasks"], "tasks of shuffled structures: %s" % s["guest"])
    names = [x.comm for x in samples]
    check(set(names) == {"(unknown)", "swapper"}, "names of tasks: %s" % set(names))
    # Which task is the first one is known all the same: it boots and idles, on its own stack.
    # (__switch_to has the next task's stack and the last one's pointer.)
    other = [x.stack for x in samples if x.comm == "swapper" and x.stack.split(";")[0].startswith(("ret_from_fork", "entry_"))
             and not x.stack.endswith("__switch_to")]
    check(not other, "%d samples of other tasks are swapper's: %s" % (len(other), other[:3]))
below = [x.stack.split(";")[0] for x in samples
         if (kernel.name == "randstruct" or x.comm == "init") and "entry_SYSCALL_64_after_hwframe" in x.stack]
# Not while it exits and its memory goes away. Where ring 0 is not interpreted there are few.
into = 100 * sum(not name.startswith("entry_") for name in below) / max(len(below), 1)
check(len(below) > (10 if SVM else 100) and into >= INTO_PROGRAMS, "of %d stacks of /init's system calls only %.1f %% go on "
      "into the program" % (len(below), into))
e2e.finish("/init's marker after %.0f s, end after %.0f s; %d samples, lost %d; %.3f %% of the kernel's "
           "stacks whole" % (t, b.seconds, s["samples"], s["lost"], whole))
