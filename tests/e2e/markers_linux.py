#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 300 s: tiny
# tests: slow, at most 900 s: kaslr
# tests: not svm, breakpoints
"""Markers with a Linux guest: from the kernel's start of /init to a line that /init prints, with
system calls counted by breakpoints on the way. perf opens the profile and shows the markers.

    markers_linux.py KVMPROF SCRATCH [tiny|kaslr]

kaslr: it is moved by its decompressor, so that it must be found before anything in it
can be watched for, though nothing is collected yet."""

import json
import os
import re

import e2e
from e2e import check

WHAT = e2e.EXTRA[0] if e2e.EXTRA else "tiny"
e2e.need_kvm()
e2e.need_tool("perf")
kernel = e2e.built_kernel("tiny")
image = [os.path.join(kernel, "bzImage")] + (["--boot=bzimage"] if WHAT == "kaslr" else [])
with open(os.path.join(e2e.TOP, "guest", "init", "phases.c")) as f:
    source = f.read()


def constant(name):
    return int(re.search(r"#define %s (\d+)" % name, source).group(1))


p = e2e.kvmprof("run", *image, "--initrd", e2e.INITRAMFS, "-m", "128M", "-o", "m.data",
                "--start-at", "run_init_process", "--stop-on", "^kvmprof-init: done",
                "--mark-at", "__x64_sys_getpid", "--mark-at", "__x64_sys_fork",
                "--mark", "^kvmprof-init: phase fork", timeout=600)
check(p.status == 0, "status %d: %s\n%s" % (p.status, p.err, p.out[-2000:]))
if p.status:
    e2e.finish()
s = e2e.summary("m.data")
check(s["end"] == "stop marker reached", "ended by %s" % s["end"])
reached = {b["name"]: b["reached"] for b in s["breakpoints"]}
want = {"run_init_process": 1, "__x64_sys_getpid": constant("GETPID_CALLS"),
        "__x64_sys_fork": constant("FORKS")}
check(reached == want, "reached %r, the program did %r" % (reached, want))
kinds = [(m["kind"], m["name"]) for m in s["markers"]]
check(kinds[0] == ("start", "run_init_process") and kinds[-1] == ("stop", "kvmprof-init: done"),
      "markers %r ... %r" % (kinds[:2], kinds[-2:]))
fork = kinds.index(("console", "kvmprof-init: phase fork"))
check(all(k[1] != "__x64_sys_fork" for k in kinds[:fork]) and
      all(k[1] != "__x64_sys_getpid" for k in kinds[fork:]), "out of order: %r" % kinds)
# The part that was asked for is a small one of the boot: the rest was not sampled.
check(s["samples"] > 100 and s["uncollected_periods"] > s["samples"] / 10,
      "%(samples)d samples, %(uncollected_periods)d periods before" % s)
if WHAT == "kaslr":
    check(s["guest"]["slide"]["status"] == "solved", "slide %r" % s["guest"]["slide"])

p = e2e.run("perf", "script", "-i", "m.data", timeout=300)
check(p.status == 0 and not p.err.strip(), "perf script: " + p.err)
told = re.findall(r'BPF string: "(.*)"', p.out)
check(sorted(told) == sorted("%s: %s" % k for k in kinds), "perf has %d markers of %d" % (
    len(told), len(kinds)))
stack = re.search(r"marker: *\n((?:\s+[0-9a-f]+ .*\n)+)", p.out).group(1)
check("run_init_process" in stack.split("\n")[0] and "kernel_init" in stack, "its stack: " + stack)
forks = re.findall(r"marker: *\n\s+[0-9a-f]+ __x64_sys_fork\S* .*\n\s+[0-9a-f]+ (\S+)\+", p.out)
check(len(forks) == want["__x64_sys_fork"] and set(forks) <= {"do_syscall_64", "x64_sys_call"},
      "callers of fork: %r" % forks)

phases = json.loads(e2e.kvmprof("report", "--phase", "--json", "-i", "m.data").out)["phases"]
check(len(phases) == len(kinds) and sum(x["samples"] for x in phases) == s["samples"],
      "%d slices of %d markers, %d samples" % (len(phases), len(kinds), s["samples"]))
e2e.finish("%d samples, %d periods not collected; %s" % (
    s["samples"], s["uncollected_periods"],
    ", ".join("%s %d times" % x for x in sorted(reached.items()))))
