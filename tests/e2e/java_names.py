#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 2700 s
# tests: not svm, disk
"""Methods of a Java program in a guest (Names.java): their names are those of the map that its JVM writes, their
stacks are whole, from the method to the thread's start, and each has the share of the time that the program says.

The guest is in a QEMU without KVM, attached to through its gdbstub: with frame pointers and without.
"""
import os
import re
import shutil
import subprocess
from collections import Counter

import e2e
import qemu
from e2e import check, say

MODULES = "java.base,java.management,jdk.management,jdk.jfr"
METHODS = {"one": "long Names.one(long)", "two": "long Names.two(long)", "three": "long Names.three(long)"}
HOT, MIDDLE = "long Names.hot(long)", "long Names.middle(long)"
# Outermost first, below what the JVM has in C++.
KNOWN = {(METHODS["one"], MIDDLE, HOT), (METHODS["two"], HOT), (METHODS["three"],)}
OPTIONS = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Names.*"]
FRAME = re.compile(r"^\s+[0-9a-f]+ (.*)\+0x[0-9a-f]+ \((.*)\)$")
BUSYBOX = "/bin/busybox"
SAMPLES = 500


def make_root(root):
    """A root directory with a Java runtime of a few modules, what it is linked to, and the program."""
    for argv in (["javac", "-d", root, os.path.join(e2e.TOP, "tests", "e2e", "Names.java")],
                 ["jlink", "--add-modules", MODULES, "--output", root + "/java", "--strip-debug", "--no-man-pages",
                  "--no-header-files"]):
        p = e2e.run(*argv, timeout=600)
        check(p.status == 0, "%s: status %d: %s%s" % (argv[0], p.status, p.out, p.err))
    shutil.rmtree(root + "/java/legal", ignore_errors=True)
    files = {os.path.join(at, f) for at, _, names in os.walk(root + "/java") for f in names
             if f.endswith(".so") or f == "java"}
    for name in files:
        out = e2e.run("ldd", name).out
        for to in re.findall(r"(/\S+) \(0x", out):
            if not to.startswith(root):
                os.makedirs(os.path.dirname(root + to), exist_ok=True)
                shutil.copy2(to, root + to)
    os.makedirs(root + "/tmp")


def interpreted_machine(root, name, *options):
    """A QEMU in which the program runs until it is ended, and where its gdbstub is."""
    with open(root + "/start.sh", "w", encoding="ascii") as f:
        f.write("/busybox mount -t proc proc /proc\n/java/bin/java %s -cp / Names 99999 dump\n" %
                " ".join(OPTIONS + list(options)))
    shutil.copy2(BUSYBOX, root + "/busybox")
    files = ["%s=%s" % (os.path.relpath(os.path.join(at, f), root), os.path.join(at, f))
             for at, _, names in os.walk(root) for f in names]
    p = e2e.run(os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), root + "/busybox", name + ".cpio", *files)
    check(p.status == 0, "mkinitramfs: " + p.err)
    return qemu.Qemu.with_stub_of(
        name, "-accel", "tcg", "-cpu", "max", "-M", "pc", "-m", "1024", "-kernel",
        os.path.join(e2e.built_kernel("full"), "bzImage"), "-initrd", name + ".cpio", "-append",
        "console=ttyS0 panic=-1 rdinit=/busybox -- sh /start.sh")


def stacks(data):
    """(weight, [(name, file)] outermost first) of each sample of the program's thread."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,tid,time,period,event,ip,sym,symoff,dso"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode(errors="replace")
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        head = re.match(r"java .*: +(\d+) +wall:", lines[0])
        if head:
            yield int(head.group(1)), [m.groups() for m in map(FRAME.match, lines[1:]) if m][::-1]


def told(console):
    """Seconds in one(), two() and three(), of the newest line."""
    lines = re.findall(r"^truth ([\d.]+) ([\d.]+) ([\d.]+)\s*$", console, re.M)
    return [float(x) for x in lines[-1]] if lines else None


def judge(name, data, truth):
    weight, squares = Counter(), 0
    whole, wrong = 0, Counter()
    for w, frames in stacks(data):
        names = tuple(n for n, _ in frames if n.startswith("long Names.") and n != "long[] Names.work(double)")
        if not names:
            continue
        # On its way into or out of a method.
        if not any(k[:len(names)] == names for k in KNOWN):
            wrong[";".join(n for n, _ in frames)] += 1
            continue
        whole += bool(frames) and frames[0][0] in ("clone3", "start_thread", "__clone3")
        weight[names[0]] += w
        squares += w * w
    total, n = sum(weight.values()), sum(1 for _ in stacks(data))
    for stack, count in wrong.most_common(5):
        say("%s: wrong, %d times: %s" % (name, count, stack))
    check(not wrong, "%s: %d stacks that the program never had" % (name, sum(wrong.values())))
    if not check(total, "%s: the methods are in none of %d samples" % (name, n)):
        return "none"
    seen = sum(1 for _, f in stacks(data) if any(x.startswith("long Names.") for x, _ in f))
    check(seen >= 50, "%s: only %d samples in the methods" % (name, seen))
    check(whole >= 0.9 * seen, "%s: %d of %d stacks lead to the thread's start" % (name, whole, seen))
    spread, worst = squares ** 0.5 / total, 0
    for i, method in enumerate(METHODS.values()):
        share, true = weight[method] / total, truth[i] / sum(truth)
        say("%s: %s: %.2f %%, in truth %.2f %%" % (name, method, 100 * share, 100 * true))
        check(abs(share - true) <= 0.01 + 4 * e2e.sigma(true, spread), "%s: %s has %.2f %%, it says %.2f %%, one sigma is "
              "%.2f" % (name, method, 100 * share, 100 * true, 100 * e2e.sigma(true, spread)))
        worst = max(worst, abs(share - true))
    return "%s: %d stacks, %d whole, shares within %.1f points" % (name, seen, whole, 100 * worst)


def attached(root, name, *options):
    machine, stub = interpreted_machine(root, name, *options)
    try:
        if not machine.wait_for("truth ", 900):
            return name + ": failed"
        p = e2e.kvmprof("attach", "--gdb", stub, "--samples", str(SAMPLES), "-o", name + ".data", timeout=900)
        check(p.status == 0, "attach: status %d: %s" % (p.status, p.err))
        say("\n".join(re.findall(r"^.*(?:stacks:|run time).*$", p.err, re.M)))
        return judge(name, name + ".data", told(machine.console()))
    finally:
        machine.end()


e2e.need_tool("perf")
for tool in ("jlink", "javac", "qemu-system-x86_64"):
    e2e.need_tool(tool)
if not os.path.exists(BUSYBOX):
    e2e.skip("busybox-static is not installed")
directory = os.path.abspath("root")
os.makedirs(directory)
make_root(directory)
figures = [attached(directory, "framed", "-XX:+PreserveFramePointer"), attached(directory, "plain")]
shutil.rmtree(directory)
e2e.finish("; ".join(figures))
