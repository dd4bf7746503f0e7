#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 30 s
# tests: svm, at most 240 s
"""A small Linux to user space and through all of /init to its end, from vmlinux and from the
bzImage in a unified kernel image, with that one's RAM disk and command line; names from the image
and from System.map; foreign symbols refused."""

import json
import os

import e2e
import uki_fixture
from e2e import check, say

PHASES = ("cpu", "getpid", "null-write", "files", "page-faults", "fork", "sleep")


def boot(image, output, *options):
    b = e2e.Boot(image, "-m", "64M", "-o", output, *options).wait(300)
    text = b.text()
    ok = check(b.status == 0, "%s: status %d: %s" % (output, b.status, b.err))
    ok &= check("kvmprof-init: start" in text, output + ": /init did not start")
    for phase in PHASES:
        ok &= check("kvmprof-init: phase " + phase in text, "%s: no phase %s" % (output, phase))
    ok &= check("kvmprof-init: failures" not in text, output + ": /init counts failures")
    ok &= check("kvmprof-init: done" in text, output + ": /init did not come to its end")
    ok &= check("kvmprof: guest " in b.err, output + ": the guest did not end by itself: " + b.err)
    if not ok:
        say("\n".join(text.split("\n")[-30:]))
        e2e.finish()
    s = e2e.check_lost(output)
    t = b.seen("kvmprof-init: start")
    say("%s: /init after %.1f s, end after %.1f s, %d samples" % (output, t, b.seconds, s["samples"]))
    return t, s, text


def top_names(path, n):
    r = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "-i", path).out)
    rows = sorted(r["symbols"], key=lambda x: -x["self"])
    # What lies behind _einittext are pieces of functions that have no names of their own
    # (.altinstr_aux): how they are shown depends on whether symbols have sizes.
    return [x["symbol"] for x in rows
            if "kernel.kallsyms" in x["dso"] and x["symbol"] != "_einittext"][:n]


e2e.need_kvm()
tiny = e2e.built_kernel("tiny")
with open(os.path.join(tiny, "System.map")) as f:
    known = {line.split()[2] for line in f}

t, s, _ = boot(os.path.join(tiny, "vmlinux"), "vmlinux.data", "--initrd", e2e.INITRAMFS)
names = top_names("vmlinux.data", 40)
check(len(names) == 40 and set(names) <= known,
      "names that System.map does not have: %s" % (set(names) - known))
check(s["unsymbolized"] * 1000 <= s["samples"], "%d of %d samples without a name" % (s["unsymbolized"], s["samples"]))
check(s["user_ns"] > 0, "no sample in user space")
if e2e.shutil.which("perf"):
    p = e2e.run("perf", "report", "-i", "vmlinux.data", "--stdio", "-g", "none", "--percent-limit", "0")
    check(p.status == 0, "perf report: " + p.err)
    for name in names[:10]:
        check(name in p.out, "perf report lacks " + name)

# The bzImage has no symbols of its own; with System.map it has the same names.
bz, system_map = os.path.join(tiny, "bzImage"), os.path.join(tiny, "System.map")
# An archive without files as its microcode; the RAM disk behind it begins at a multiple of 4.
ucode = "070701" + "%08x" * 13 % (0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11, 0) + "TRAILER!!!\0"
with open(bz, "rb") as kernel, open(e2e.INITRAMFS, "rb") as initrd, open("tiny.efi", "wb") as efi:
    efi.write(uki_fixture.uki(kernel.read(), initrd.read(), "uki.says=hello \n", "ID=test\n", "6.1", ucode))
t_bz, _, text = boot("tiny.efi", "bzimage.data", "--symbols", system_map, "--append", "uki.more=1")
check("ommand line: uki.says=hello console=ttyS0 " in text and " uki.more=1" in text,
      "not the image's command line and what was added: " + text[:2000])
again = top_names("bzimage.data", 40)
say("most time, vmlinux: " + " ".join(names[:8]))
say("most time, UKI: " + " ".join(again[:8]))
check(set(names[:5]) <= set(again) and set(again[:5]) <= set(names),
      "the bzImage with System.map has other names than the vmlinux")

# Another kernel's symbols would give wrong names: both are named, and nothing runs.
other = e2e.built_kernel("smp-fp")
for wrong in ("System.map", "vmlinux"):
    wrong = os.path.join(other, wrong)
    p = e2e.kvmprof("run", bz, "--symbols", wrong, "-o", "wrong.data", timeout=30)
    check(p.status == 1 and not p.out, "%s was taken for the tiny kernel's symbols" % wrong)
    check(p.err.count("\n") == 1 and wrong in p.err and bz in p.err, "not both identities: " + p.err)
    check(not os.path.exists("wrong.data"), "a profile with wrong names was written")

e2e.finish("start to /init's marker %.1f s (vmlinux), %.1f s (UKI); %d samples, lost %d" %
           (t, t_bz, s["samples"], s["lost"]))
