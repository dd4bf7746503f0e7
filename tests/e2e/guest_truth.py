#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 85 s: full
# tests: slow, at most 1800 s: tiny
# tests: slow, at most 1200 s: smp
# tests: slow, at most 1800 s: bare
# tests: slow, at most 1200 s: lto
# tests: slow, at most 1200 s: kcfi
# tests: slow, at most 1200 s: fineibt
# tests: slow, at most 1200 s: {debian} svm
# tests: not svm, disk
"""A Linux guest with processes, threads, libraries, a vdso and a module, profiled from outside
with nothing but its kernel: names, mappings and stacks against what the guest prints of itself.

    guest_truth.py KVMPROF SCRATCH [tiny|full|smp|bare|lto|kcfi|fineibt|KERNEL] [svm]

full: a kernel with modules and type information (BTF); smp: the same on two vCPUs; lto, kcfi,
fineibt: such a one by clang; tiny: a kernel with neither, whose structures are found in its memory
once programs run; bare: one with modules, for several CPUs, that has no types and names no
variables; KERNEL: one of Debian's in tests/kernels.table (minutes, where KVM interprets ring 0). svm: on an
emulated host with SVM, and not this machine's KVM.
What stock perf makes of the profile is checked, not our own report alone."""

import json
import os
import re
from collections import Counter, defaultdict

import e2e
import emulated
import kernel_matrix
import worker_truth
from e2e import check, say

WHAT = e2e.EXTRA[0] if e2e.EXTRA else "full"
VCPUS = "2" if WHAT in ("smp", "bare") else "1"
MODULES = WHAT != "tiny"
DEBIAN = WHAT in kernel_matrix.kernels() and kernel_matrix.kernels()[WHAT].source.startswith("debian:")
CLANG = WHAT in ("lto", "kcfi", "fineibt")
ROLES = {"w-lib", "w-threads", "w-alpha", "w-beta", "w-vdso", "w-jit", "w-sys", "w-module",
         "w-short", "w-child"}


def ram_disk(kernel):
    """The worker's RAM disk, with the kernel's own module in it."""
    if not MODULES:
        return os.path.join(e2e.BUILD, "guest", "worker.cpio")
    out = os.path.abspath("worker.cpio")
    guest = os.path.join(e2e.BUILD, "guest")
    libc = e2e.run("gcc", "-print-file-name=libc.so.6").out.strip()
    ld = "/lib64/ld-linux-x86-64.so.2"
    p = e2e.run(os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"),
                os.path.join(guest, "worker"), out, "bin/worker=" + os.path.join(guest, "worker"),
                "lib/libhot.so=" + os.path.join(guest, "libhot.so"),
                "lib/x86_64-linux-gnu/libc.so.6=" + libc, "%s=%s" % (ld, ld),
                "lib/modules/configfs.ko=" + os.path.join(kernel, "modules", "configfs.ko"))
    if p.status:
        raise SystemExit("mkinitramfs.py: " + p.err)
    return out


def check_mappings(text, path):
    """Each mapping that perf knows of a worker's process is one that the process printed."""
    told = defaultdict(set)
    for m in re.finditer(r"worker: map (\d+) ([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) ?(.*)", text):
        told[int(m.group(1))].add((int(m.group(2), 16), int(m.group(3), 16), int(m.group(4), 16),
                                   m.group(5).strip()))
    p = e2e.run("perf", "script", "-i", path, "--show-mmap-events", "-F", "comm,pid", timeout=300)
    good, seen = 0, Counter()
    for m in re.finditer(r"^\s*(\S+)\s+\d+ PERF_RECORD_MMAP2 (\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ "
                         r"(0|0x[0-9a-f]+) <[0-9a-f]+>\]: \S+ (.*)$", p.out, re.M):
        comm, pid, start, size = m.group(1), int(m.group(2)), int(m.group(3), 16), int(m.group(4), 16)
        if pid not in told or not comm.startswith("w-") or "jit" in m.group(6) or "anonymous" in m.group(6):
            continue
        if m.group(6) == "[changed mapping]":  # says that nothing is known there for a moment
            continue
        what = (start, start + size, int(m.group(5), 16), m.group(6))
        good += check(what in told[pid], "pid %d has no mapping %x-%x @%x %s" % ((pid,) + what))
        seen[m.group(6)] += 1
    for name in ("/bin/worker", "/lib/libhot.so", "[vdso]"):
        check(seen[name], "no process has %s mapped" % name)
    return good


SVM = "svm" in e2e.EXTRA
if not SVM:
    e2e.need_kvm()
e2e.need_tool("perf")
if DEBIAN:
    # Debian keeps an older kernel's image for longer than its modules.
    image, why = e2e.fetched_kernel(WHAT, "--modules")
    if not image:
        e2e.left_out("modules: " + why)
        MODULES = False
        image = e2e.debian_kernel(WHAT)
    kernel = os.path.dirname(image)
elif CLANG:
    try:
        image = kernel_matrix.image(kernel_matrix.kernels()[WHAT])
    except kernel_matrix.Missing as why:
        e2e.skip(str(why))
    kernel = os.path.dirname(image)
else:
    kernel = e2e.built_kernel("full" if WHAT == "smp" else WHAT)
    # The ELF of a build has all names; the image has what the kernel has.
    image = os.path.join(kernel, "bzImage" if WHAT == "bare" else "vmlinux")
boot = (emulated.Boot if SVM else e2e.Boot)(image, "--initrd", ram_disk(kernel), "-m", "256M",
                "--vcpus", VCPUS, "-o", "guest.data", "--append",
                "worker.seconds=%d%s" % (60 if DEBIAN and not SVM else 30 if VCPUS == "2" else 15,
                                         " cfi=fineibt" if WHAT == "fineibt" else "")).wait(2400)
text = boot.text()
ok = check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
ok &= check("worker: done" in text, "the guest's program did not end")
ok &= check("worker: failed" not in text, "the guest's program failed: " +
            " ".join(re.findall(r"worker: failed.*", text)))
ok &= check("worker: module configfs" in text or not MODULES, "no module was loaded")
if not ok:
    say("\n".join(text.split("\n")[-30:]))
    e2e.finish()
s = e2e.check_lost("guest.data")
g = s["guest"]

truth = worker_truth.told(text)
check(len(truth) >= 6, "only %d threads told what they do" % len(truth))

samples = list(worker_truth.perf_samples("guest.data"))
names = Counter(c for c, _, _, _ in samples)
missing = (ROLES - {"w-threads", "w-short"}) - set(names)
check(not missing, "no sample of " + " ".join(sorted(missing)))
strange = [c for c in names if c.startswith(":")]
check(not strange, "processes without a name: " + " ".join(strange))
for tid, (pid, comm, _) in truth.items():
    mine = [(c, p) for c, p, t, _ in samples if t == tid and c.startswith("w-")]
    check(mine, "no sample of thread %d (%s)" % (tid, comm))
    check(all(p == pid for _, p in mine), "thread %d is not always of process %d" % (tid, pid))
    # A thread has its process's name until it takes its own, a process that of init before exec.
    check({c for c, _ in mine} <= {comm, "w-threads"}, "thread %d is called %s, not %s" %
          (tid, sorted({c for c, _ in mine}), comm))

maps = check_mappings(text, "guest.data")
good, short, bad = worker_truth.check_stacks(truth, samples, 300)
below = sum(1 for c, _, _, f in samples if c == "w-sys" and any("kernel" in d for _, d in f)
            and any(x == "call_kernel" for x, _ in f))
check(below > 50, "only %d system calls show the program's stack below them" % below)

module = Counter(x for _, _, _, f in samples for x, d in f if d == "[configfs]")
if MODULES:
    check(sum(module.values()) > 5, "no frame in the module")
    nm = e2e.run("nm", os.path.join(kernel, "modules", "configfs.ko")).out.split()
    check(set(module) <= set(nm), "names that the module does not have: %s" % (set(module) - set(nm)))
vdso = Counter(x for c, _, _, f in samples if c == "w-vdso" for x, d in f if d == "[vdso]")
check(vdso and vdso.most_common(1)[0][0].endswith("clock_gettime"), "the vdso's names: %s" % vdso)

ends = s["kernel_stack_end"]
whole = ends["root"] + ends["user-entry"]
total = sum(ends.values())
check(whole * 1000 >= total * (990 if DEBIAN else 995), "%d of %d kernel stacks are complete" % (whole, total))
# Where programs' stacks end, by name: what counts as whole is, and what is whole counts.
ends = s["user_stack_end"]
outer = Counter(user[-1] for user in ([x for x, d in f if "kernel.kallsyms" not in d and d != "[configfs]"]
                                      for _, _, _, f in samples) if user)
roots = sum(outer[x] for x in ("_start", "clone3", "__clone3", "__clone", "clone", "_dl_start_user"))
below_roots = sum(outer[x] for x in ("__libc_start_call_main", "start_thread"))
# A program's first frames, in the dynamic loader before its mapping is known, are roots without a name.
unmapped = sum(user[-1] == ("[unknown]", "[unknown]") for user in
               ([x for x in f if "kernel.kallsyms" not in x[1]] for _, _, _, f in samples) if user)
check(ends["root"] - roots <= min(unmapped, 0.005 * sum(ends.values())),
      "%d stacks end at a root, by name only %d, in no mapping %d" % (ends["root"], roots, unmapped))
# By call frame information, which all these programs and libraries have. While execve replaces a
# program its stack is gone.
named = sum(n for x, n in outer.items() if x not in ("[unknown]", "execve", "__execve") and not x.startswith("[vmm]"))
check(roots >= 0.97 * named, "only %d of %d user stacks reach a root: others end at %s" %
      (roots, named, outer.most_common(10)))
if below_roots:  # a C library whose own functions have names
    if not check(ends["root"] + ends["start-code"] >= 0.98 * (roots + below_roots),
                 "%d stacks end in start code by name, counted are %s" % (roots + below_roots, ends)):
        ended = Counter((c, user[-1]) for c, user in (
            (c, [x for x, d in f if "kernel.kallsyms" not in d]) for c, _, _, f in samples) if user)
        for (c, last), n in ended.most_common(30):
            say("%6d stacks of %s end at %s" % (n, c, last))
    check(ends["start-code"] <= 1.02 * below_roots + outer["main"],
          "%d stacks end in start code, by name only %d" % (ends["start-code"], below_roots))
# Until the kernel's structures are found nothing of its first program is mapped; how long that takes differs.
user = [[x for x in f if "kernel.kallsyms" not in x[1] and not x[0].startswith("[vmm]")] for _, _, _, f in samples]
first = next((i for i, u in enumerate(user) if any(d != "[unknown]" for _, d in u)), len(user))
frames, lost = sum(map(len, user[first:])), sum(d == "[unknown]" for u in user[first:] for _, d in u)
say("%d user frames in no mapping, %d of them of the %d since the first one" % (g["user_frames_unmapped"], lost, frames))
check(frames >= 0.8 * g["user_frames"] and lost * 200 <= frames, "%d of %d user frames in no mapping since the first one" %
      (lost, frames))
check(g["files_named"] >= 4 and g["files_named"] >= g["files"] - 1, "%d of %d files have names" %
      (g["files_named"], g["files"]))

# Our own report says the same of the processes.
report = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "--sort", "comm", "-i",
                                "guest.data").out)
ours = {r["comm"]: r["self_samples"] if "self_samples" in r else r["samples"]
        for r in report["symbols"]}
differ = {c: (n, ours.get(c)) for c, n in names.items() if ours.get(c) != n}
check(not differ, "kvmprof report and perf disagree: %s" % differ)

e2e.finish("%d tasks, %d mappings as printed, %d user stacks equal, %d shorter, %d wrong, %d "
           "system calls with the program below, %d module frames, kernel stacks %.2f %% complete" %
           (g["tasks"], maps, good, short, bad, below, sum(module.values()),
            100.0 * whole / total))
