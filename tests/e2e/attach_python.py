#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, disk
"""Functions, files and lines of Python in a guest of another process's machine: what `attach --python`
shows, read by stock perf, are stacks that the guest's program has had, and the shares are its own.

The VMM is a `kvmprof run` (docs/attach.md says why). Of the program's two processes (python_program.py) one tells its
stacks, and one how much time it spends in each of three functions. Then it is in a QEMU without KVM, through
the gdbstub: the stacks again.
"""
import os
import re
import shutil
import signal
import subprocess
from collections import Counter

import e2e
import python_root
import python_truth
import qemu
from e2e import check, say

SECONDS = 10
NAMES = ("one", "two", "three")
PYTHON = os.path.realpath("/usr/bin/python3")


def usage():
    p = e2e.kvmprof("attach", "--python", "--technique", "bpf", "1")
    check(p.status == 2 and "--python" in p.err and "--technique bpf" in p.err and p.err.count("\n") == 1,
          "--python --technique bpf: status %d: %s" % (p.status, p.err))


def told(console):
    """Seconds in each of the functions, of the newest line."""
    lines = re.findall(r"^shares ([\d.]+) ([\d.]+) ([\d.]+)$", console, re.M)
    return [float(x) for x in lines[-1]] if lines else None


def check_shares(data, truth):
    """Percentage points by which they differ. Time of a late sample is one draw, however long it is."""
    weight, squares = Counter(), 0
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,tid,time,period,event,ip,sym,symoff,dso"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode(errors="replace")
    for block in text.split("\n\n"):
        head = re.search(r": +(\d+) +wall:", block)
        found = head and re.findall(r" py::(one|two|three):/program.py\+", block)
        if found:
            check(len(found) == 1, "these call each other: %s" % found)
            weight[found[0]] += int(head.group(1))
            squares += int(head.group(1)) ** 2
    total = sum(weight.values())
    if not check(total, "no sample in one(), two() and three()"):
        return 0
    spread, worst = squares ** 0.5 / total, 0
    for name, seconds in zip(NAMES, truth):
        share, true = weight[name] / total, seconds / sum(truth)
        say("%s: %.2f %%, in truth %.2f %%" % (name, 100 * share, 100 * true))
        # And a point for what it does between two of them.
        check(abs(share - true) <= 0.01 + 4 * e2e.sigma(true, spread), "%s(): %.2f %% of the time, it says %.2f %%, "
              "one sigma is %.2f" % (name, 100 * share, 100 * true, 100 * e2e.sigma(true, spread)))
        worst = max(worst, abs(share - true))
    return 100 * worst


def attach(boot):
    before = told(boot.text())
    p = e2e.kvmprof("attach", str(boot.process.pid), "--python", "--duration", str(SECONDS), "-o",
                    "attached.data", timeout=400)
    check(p.status == 0, "attach: status %d: %s" % (p.status, p.err))
    for line in re.findall(r"^.*Python.*$", p.err, re.M):
        say(line)
    s = e2e.summary("attached.data")
    check(s["attach"]["technique"] == "ptrace" and not s["attach"]["samples_by_bpf"], "not by ptrace: %s" % s["attach"])
    check(s["guest"]["python_programs"] == 2, "programs: %s" % s["guest"]["python_programs"])
    after = told(boot.text())
    return [b - a for a, b in zip(before, after)]


def through_gdbstub(python):
    """python is the guest's /init."""
    if not e2e.has_tool("qemu-system-x86_64"):
        return
    files = ["%s=%s" % (os.path.relpath(os.path.join(at, f), root), os.path.join(at, f))
             for at, _, names in os.walk(root) for f in names]
    p = e2e.run(os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), root + python, "python.cpio", *files)
    check(p.status == 0, "mkinitramfs: " + p.err)
    machine, stub = qemu.Qemu.with_stub_of(
        "python", "-accel", "tcg", "-cpu", "max", "-M", "pc", "-m", "1024", "-kernel",
        os.path.join(e2e.built_kernel("full"), "bzImage"), "-initrd", "python.cpio", "-append",
        "console=ttyS0 panic=-1 PYTHONHASHSEED=0 rdinit=%s -- /program.py 99999" % python)
    try:
        if machine.wait_for("end of truth", 600):
            p = e2e.kvmprof("attach", "--gdb", stub, "--python", "--samples", "600", "-o", "gdb.data", timeout=600)
            check(p.status == 0, "attach --gdb: status %d: %s" % (p.status, p.err))
            python_truth.judge("through a gdbstub", "gdb.data", machine.console(), (60, 15, ("deep",)))
    finally:
        machine.end()


e2e.need_kvm()
e2e.need_tool("perf")
e2e.prefer_us()
usage()
root = os.path.abspath("root")
if re.search(r"3\.1[1-3]$", PYTHON):
    python = PYTHON
    python_root.make_root(python, root)
else:
    there = python_truth.debian13()
    if not there:
        e2e.skip("Debian 13's Python cannot be fetched")
    python = "/usr/bin/python3.13"
    shutil.copytree(there, root, symlinks=True)
    shutil.copy2(python_root.PROGRAM, root + "/program.py")
machine = e2e.Boot(os.path.join(e2e.built_kernel("full"), "vmlinux"), "-m", "1G", "-F", "19", "--rootfs", root, "--cwd", "/",
                   "-o", "run.data", "--", python, "/program.py", "99999", "shares")
figures = ""
try:
    if check(machine.wait_for("shares ", 900), "the guest's program does not run:\n" + machine.text()[-1500:]):
        shares = attach(machine)
        python_truth.judge("attached", "attached.data", machine.text())
        figures = "shares within %.2f points of the program's own" % check_shares("attached.data", shares)
finally:
    machine.process.send_signal(signal.SIGINT)
    machine.wait(120)
through_gdbstub(python)
shutil.rmtree(root)
e2e.finish(figures)
