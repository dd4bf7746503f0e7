#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 900 s
# tests: not svm, threads
"""A guest that kexecs or reboots: each sample has the names of the kernel of its time, and no other.

Debian's kernels, with KASLR, in QEMU (TCG) through its gdbstub, and in the exact engine. The judge knows nothing of how
kvmprof found a kernel: the symbols of each image, a command name that /init takes from uname(2), and arithmetic. All frames
of one kernel must lie by one and the same distance from the addresses that the image gives their names."""

import os
import sys

import compiled
import e2e
import qemu
from e2e import check
from epoch_judge import judge_all, symbols_of

e2e.need_tool("qemu-system-x86_64")


def initramfs(name, *files):
    p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "init", name, *files)
    check(p.status == 0, "mkinitramfs: " + p.err)
    return name


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
    p = e2e.kvmprof("run", "--engine", "exact", old, "--initrd", large, "-m", "512M", "--call-counts", "--append",
                    "work=1 next=kexec panic=-1", "--duration", "300", "--no-buildid-cache", "-o", "counts.data", timeout=400)
    check(p.status == 1 and "the guest ran 2 kernels" in p.err, "--call-counts: status %d: %s" % (p.status, p.err[-800:]))
e2e.finish("kexec and reboots of Debian's kernels: 0 wrong names")
