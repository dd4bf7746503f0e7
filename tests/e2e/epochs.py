#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 900 s
# tests: not svm, threads
"""A guest that kexecs or reboots: each sample has the names of the kernel of its time, and no other.

Debian's kernels, with KASLR, in QEMU (TCG) through its gdbstub, and in the exact engine. The judge knows nothing of how
kvmprof found a kernel: the symbols of each image, a command name that /init takes from uname(2), and arithmetic. All frames
of one kernel must lie by one and the same distance from the addresses that the image gives their names."""

import os
import re
import sys
from collections import Counter

import compiled
import e2e
import qemu
from e2e import check, say

FRAME = re.compile(r"^\t\s*([0-9a-f]+) (\S+?)(?:\+0x([0-9a-f]+))? \((.*)\)$")
HEAD = re.compile(r"^(.+?)\s+(-?\d+) \[")
HALF = 1 << 63
KERNEL = "[kernel.kallsyms]"

e2e.need_tool("qemu-system-x86_64")


def initramfs(name, *files):
    p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "init", name, *files)
    check(p.status == 0, "mkinitramfs: " + p.err)
    return name


def symbols_of(image):
    """Addresses of each name, as the image has them."""
    p = e2e.kvmprof("symbols", image)
    check(p.status == 0, "symbols: " + p.err)
    found = {}
    for line in p.out.split("\n"):
        words = line.split()
        if len(words) >= 3:
            found.setdefault(words[2], set()).add(int(words[0], 16))
    return found


def samples_of(profile, epoch):
    """(command, [(address, name or None, offset, DSO)]) of each sample."""
    p = e2e.kvmprof("script", "-i", profile, "--epoch", str(epoch))
    check(p.status == 0, "script --epoch %d: %s" % (epoch, p.err))
    out, comm = [], None
    for line in p.out.split("\n"):
        frame = FRAME.match(line)
        if frame and out:
            at, name, off, dso = frame.groups()
            named = name != "[unknown]"
            out[-1][1].append((int(at, 16), name if named else None, int(off or "0", 16), dso))
        elif HEAD.match(line):
            comm = HEAD.match(line).group(1).strip()
            out.append((comm, []))
    return out


def judge(profile, epoch, release, known):
    """Holds one kernel's samples against its image. Returns how many frames have a name, and how many there are."""
    wrong, named, frames, slides = [], 0, 0, Counter()
    for comm, stack in samples_of(profile, epoch):
        check(not re.match(r"\d+\.\d", comm) or comm == release[:15],
              "kernel %d, %s: a sample of the task %s" % (epoch, release, comm))
        for at, name, off, dso in stack:
            if at < HALF or (dso != KERNEL and dso.startswith("[") and name):
                continue
            frames += 1
            if not name:
                continue
            named += 1
            places = known.get(name)
            if not places:
                wrong.append(name)
            elif len(places) == 1:
                slides[at - off - next(iter(places))] += 1
    slide, most = slides.most_common(1)[0] if slides else (0, 0)
    check(not wrong, "%s: names that it does not have: %s" % (release, Counter(wrong).most_common(5)))
    check(most == sum(slides.values()), "%s: names at the wrong address: %s" % (release, slides.most_common(4)))
    check(most > 200, "%s: only %d frames to judge by" % (release, most))
    check(slide % 4096 == 0, "%s: slide %#x" % (release, slide))
    return named, frames, slide


def judge_all(what, profile, releases, known):
    count = 1
    while os.path.exists(os.path.join(profile, "epoch-%d" % (count + 1))):
        count += 1
    check(count == len(releases), "%s: %d kernels instead of %d" % (what, count, len(releases)))
    slides = []
    for i, release in enumerate(releases[:count]):
        named, frames, slide = judge(profile, i + 1, release, known[release])
        slides.append(slide)
        say("%s: kernel %d, %s: 0 wrong, %d of %d frames named, slide %#x" % (what, i + 1, release, named, frames, slide))
        check(named >= 0.99 * frames, "%s: kernel %d: %d of %d frames have a name" % (what, i + 1, named, frames))
    p = e2e.kvmprof("report", "-i", profile)
    for i, release in enumerate(releases):
        check("# kernel %d: Linux %s" % (i + 1, release) in p.out, "%s: the report does not list %s" % (what, release))
    return slides


def through_gdb(what, image, initrd, cmdline, *options):
    machine, stub = qemu.Qemu.with_stub_of(what, "-accel", "tcg", "-m", "512", "-kernel", image, "-initrd", initrd,
                                           "-append", "console=ttyS0 panic=-1 " + cmdline)
    try:
        check(machine.wait_for("Linux version", 120), "%s: the machine does not start" % what)
        p = e2e.kvmprof("attach", "--gdb", stub, "-F", "49", "--no-buildid-cache", "-o", what + ".data", *options,
                        timeout=300)
        check(p.status == 0, "%s: attach: status %d: %s\n%s" % (what, p.status, p.err, machine.console()[-800:]))
        check("kernels, one after the other" in p.err, "%s: the summary does not say it: %s" % (what, p.err))
        return machine.console()
    finally:
        machine.end()


def perf_reads(profile, epoch, release, known):
    """Stock perf, on one kernel's profile: it has no name of another kernel."""
    if not e2e.has_tool("perf"):
        return
    path = profile if epoch == 1 else os.path.join(profile, "epoch-%d" % epoch)
    p = e2e.run("perf", "script", "-i", path, "-F", "ip,sym", timeout=120)
    check(p.status == 0, "perf script: " + p.err)
    names = {line.split()[1] for line in p.out.split("\n") if len(line.split()) == 2 and line.split()[0][:4] == "ffff"}
    other = [n for n in names if n != "[unknown]" and n not in known[release]]
    check(names and not other, "perf, kernel %d of %s: names that %s does not have: %s" % (epoch, profile, release, other[:5]))


old, new = e2e.debian_kernel("6.1"), e2e.debian_kernel("6.12")
known = {os.path.basename(k)[len("vmlinuz-"):]: symbols_of(k) for k in (old, new)}
first, second = known
compiled.cc("-O1", "-static", "-o", "init", os.path.join(e2e.TOP, "tests", "e2e", "epochs_init.c"))
small = initramfs("small.cpio")
large = initramfs("large.cpio", "next=" + new, "initrd=" + small)

console = through_gdb("kexec", old, large, "work=3 next=kexec", "--duration", "200")
check("epoch: Linux " + second in console, "the guest did not kexec: " + console[-800:])
judge_all("kexec, gdbstub", "kexec.data", [first, second], known)
for n, r in enumerate((first, second)):
    perf_reads("kexec.data", n + 1, r, known)

# QEMU resets the machine: KASLR gives each boot another place.
qemu.NO_REBOOT.clear()
console = through_gdb("reboot", new, small, "work=2 next=reboot", "--duration", "75")
boots = console.count("epoch: Linux " + second)
check(boots >= 2, "the guest booted %d times: %s" % (boots, console[-800:]))
# The last one may have begun without a sample in the kernel.
seen = len([d for d in os.listdir("reboot.data") if d.startswith("epoch-")]) + 1
check(boots <= seen + 1 and seen <= boots + 1, "%d boots, %d kernels in the profile" % (boots, seen))
slides = judge_all("reboot, gdbstub", "reboot.data", [second] * seen, known)
rows = e2e.kvmprof("report", "-i", "reboot.data", "--sort", "sym").out.split("\n")
rows = [row.split()[-1] for row in rows if row and row[0] != "#"]
check(rows.count("do_syscall_64") == 1, "the boots of one kernel have %d rows of a function" % rows.count("do_syscall_64"))
check(len(set(slides)) == len(slides), "the kernels were at the same place: %s" % slides)

p = e2e.kvmprof("run", "--engine", "exact", new, "--initrd", small, "-m", "256M", "--reboot", "--append",
                "work=1 next=reboot", "--duration", "60", "--no-buildid-cache", "-o", "resets.data", timeout=400)
if "not here" not in p.err and "needs QEMU" not in p.err:
    boots = p.out.count("epoch: Linux " + second)
    check(p.status == 0 and boots >= 2, "exact --reboot: status %d, %d boots: %s" % (p.status, boots, p.err))
    judge_all("reboot, exact", "resets.data", [second] * boots, known)

p = e2e.kvmprof("run", "--engine", "exact", old, "--initrd", large, "-m", "512M", "--append", "work=1 next=kexec panic=-1",
                "--duration", "300", "--no-buildid-cache", "-o", "exact.data", timeout=400)
if "not here" in p.err or "needs QEMU" in p.err:
    e2e.left_out("the exact engine is not here")
else:
    check(p.status == 0 and "epoch: end" in p.out, "exact: status %d: %s %s" % (p.status, p.err, p.out[-800:]))
    judge_all("kexec, exact", "exact.data", [first, second], known)
e2e.finish("kexec and reboots of Debian's kernels: 0 wrong names")
