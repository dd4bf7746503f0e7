#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, disk
"""Code that a guest's program makes while it runs has the names of its /tmp/perf-PID.map, which
is read out of the guest's memory. One in --guest-root, which may be an older one, stands
behind it, and the host's file of that name, which belongs to somebody else, is used by nobody."""

import contextlib
import os
import re
import time

import e2e
from e2e import check, say

NAME = "jit_loop at line 7"
WRONG = "somebody_elses_function"
OLDER = "of_the_root_directory"


def jit_line(boot, timeout=300):
    """PID, START, SIZE as the guest's console tells them."""
    end = time.monotonic() + timeout
    while time.monotonic() < end and boot.process.poll() is None:
        m = re.search(r"worker: jit (\d+) ([0-9a-f]+) ([0-9a-f]+) " + NAME, boot.text())
        if m:
            return int(m.group(1)), int(m.group(2), 16), int(m.group(3), 16)
        time.sleep(0.05)
    return None


def write_map(path, lines):
    """A new file: what is there already is somebody's."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as f:
        f.write("".join("%x %x %s\n" % x for x in lines))


def user_samples(text):
    return [s for s in e2e.parse_script(text) if s.comm == "w-jit" and "kernel.kallsyms" not in s.dsos]


def leaf(sample):
    return sample.stack.split(";")[-1]


def named_share(text):
    samples = user_samples(text)
    check(WRONG not in text, "a name of the host's /tmp/perf-PID.map was used")
    check(OLDER not in text, "a name of --guest-root's map was used, not the guest's own")
    return sum(leaf(s) == NAME for s in samples) / max(1, len(samples)), len(samples)


e2e.need_kvm()
kernel = os.path.join(e2e.built_kernel("full"), "vmlinux")
worker = os.path.join(e2e.BUILD, "guest", "worker.cpio")
os.makedirs("root/tmp")
boot = e2e.Boot(kernel, "--initrd", worker, "--append", "worker.roles=w-jit worker.seconds=8",
                "--guest-root", "root", "-o", "jit.data")
found = jit_line(boot)
if not found:
    boot.wait(5)
    check(False, "the guest did not say where its code is:\n%s\n%s" % (boot.text()[-2000:], boot.err))
    e2e.finish()
pid, start, size = found
trap = "/tmp/perf-%d.map" % pid
write_map("root" + trap, [(start, size, OLDER)])
try:
    write_map(trap, [(start - 64, 0x1000, WRONG)])
except FileExistsError:
    with open(trap, errors="replace") as f:    # left by a test that was killed: it will do
        if WRONG not in f.read():
            e2e.skip("%s is in use" % trap)
try:
    boot.wait(120)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    s = e2e.check_lost("jit.data")["guest"]
    check((s["jit_regions"], s["jit_regions_named"], s["jit_regions_without_map"],
           s["jit_maps_from_memory"]) == (1, 1, 0, 1),
          "the summary counts %s" % {k: v for k, v in s.items() if "jit" in k})
    check("made at run time: 1 regions, 1 with names" in boot.err, "no word of the code in the summary")

    share, n = named_share(e2e.kvmprof("script", "-i", "jit.data").out)
    check(n > 200, "only %d samples of w-jit in user mode" % n)
    check(share > 0.95, "kvmprof script: %.1f %% of w-jit are called %s" % (100 * share, NAME))
    dso = "[jit:%d]" % pid
    p = e2e.kvmprof("report", "-i", "jit.data", "--sort", "comm,dso,sym", "-n", "0")
    row = r"^ *[\d.]+%% +[\d.]+%% +\d+ +w-jit +%s +%s$" % (re.escape(dso), NAME)
    check(re.search(row, p.out, re.M), "kvmprof report lacks %s of %s:\n%s" % (NAME, dso, p.out[:1500]))
    check("nowhere" not in p.out, "kvmprof report: a name for code that there is not")

    if e2e.has_tool("perf"):
        theirs, _ = named_share(e2e.perf_script("jit.data"))
        check(theirs == share, "perf script: %.1f %% of w-jit are called %s" % (100 * theirs, NAME))
        p = e2e.run("perf", "report", "-i", "jit.data", "--stdio", "-g", "none", "--sort", "comm,dso,sym")
        row = r"w-jit +%s +\[\.\] %s *$" % (re.escape(dso), NAME)
        check(re.search(row, p.out, re.M), "perf report lacks %s of %s:\n%s" % (NAME, dso, p.out[:1500]))
        # On another machine perf has no names of programs, but it does not take wrong ones.
        e2e.new_home()
        p = e2e.run("perf", "script", "-i", "jit.data")
        check(WRONG not in p.out and NAME not in p.out, "perf without a cache: names from elsewhere")
        p = e2e.kvmprof("script", "-i", "jit.data")
        check(named_share(p.out)[0] == share, "kvmprof lost the names without a cache")
    say("\n".join(boot.err.split("\n")[:12]))
finally:
    with contextlib.suppress(FileNotFoundError):  # another run of this test had the same, and has ended
        os.unlink(trap)
e2e.finish("%.2f %% of %d samples in user mode have the name that the JIT gave" % (100 * share, n))
