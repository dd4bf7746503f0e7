#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 6 s
# tests: slow, at most 900 s: debian
# tests: svm, at most 120 s
"""Kernels that are not Linux: our own by each protocol, with its truth; or (debian) two of Debian's.

guest/mb says what its loader told it and how it spent its time: the profile must agree, in
names, stacks and shares. Xen (multiboot, compressed ELF32) and memtest86+ (a program that only
boots like Linux) must come to their own words on the
console, and Xen's functions must have names out of the file with its symbols.
"""

import os
import re
import subprocess
import e2e
import high_kernel
from e2e import check, say

POINTS = 3.0    # of 100, with some thousand samples


def host_memory():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(re.search(r"MemTotal: +(\d+) kB", f.read()).group(1)) >> 10


# Memory goes on at 4 GiB, where the host has so much.
MEMORY = "5G" if host_memory() > 5 << 10 else "1G"


def guest(name):
    return os.path.join(os.path.dirname(e2e.KVMPROF), "guest", name)


def samples(data):
    p = e2e.kvmprof("script", "-i", data)
    check(p.status == 0, "script: " + p.err)
    return e2e.parse_script(p.out)


def own_kernel(name, way, loader, options=()):
    module = os.path.abspath(__file__)
    text = open(module, "rb").read()
    # Multiboot 1 alone passes a module's name, too.
    want = "mb: module %d %d %s" % (len(text), sum(text) & 0xFFFFFFFF,
                                    os.path.basename(module) + " " if way == "multiboot" else "")
    data = "mb-%s-%s.data" % (name, way)
    p = e2e.kvmprof("run", guest(name), "--boot", way, "-o", data, "-m", MEMORY, "--append",
                    "seconds=3 a=b", "--module", module + "=hello world", *options)
    if not check(p.status == 0, "%s by %s: status %d: %s" % (name, way, p.status, p.err)):
        return
    lines = p.out.splitlines()
    check("mb: loader %s" % loader in lines, "%s: told %r" % (name, lines[:1]))
    check(want + "hello world" in lines, "%s by %s: no line %r in %r" % (name, way, want, lines))
    check(any(l.startswith("mb: command line") and l.endswith("seconds=3 a=b") for l in lines),
          "%s: command line: %r" % (name, lines[1:2]))
    check(MEMORY != "5G" or "mb: memory 0x100000000 0x80000000 1" in lines,
          "%s: memory above 4 GiB: %r" % (name, [l for l in lines if "memory" in l]))
    check(way != "multiboot2" or "mb: rsdp KVMPRF 2 0" in lines,
          "%s: ACPI: %r" % (name, [l for l in lines if "rsdp" in l]))
    truth = re.findall(r"^truth ([0-9.]+) kernel (\S+)$", p.out, re.M)
    if not check(len(truth) == 3, "%s: truth %r" % (name, truth)) or name == "mb.bin":
        return
    # Printing is outside of the truth.
    inside = [s for s in samples(data) if s.stack.startswith("mb_main;work;")]
    weight = sum(s.period for s in inside)
    for percent, stack in truth:
        got = 100.0 * sum(s.period for s in inside if s.stack == stack) / weight
        say("%s by %s: %s: %.1f %%, truth %s %%" % (name, way, stack, got, percent))
        check(abs(got - float(percent)) < POINTS, "%s: %s has %.1f %%, truth %s %%"
              % (name, stack, got, percent))


def multiboot2_alone():
    """A kernel that has no other header is entered by it without being told to."""
    for name in ("mb.elf", "mb.bin"):
        with open(guest(name), "rb") as f:
            image = f.read()
        # The multiboot 1 header, and the PVH note's owner.
        image = image.replace(b"\x02\xb0\xad\x1b", bytes(4)).replace(b"Xen\0", b"Zen\0")
        with open("mb2-" + name, "wb") as f:
            f.write(image)
        p = e2e.kvmprof("run", "mb2-" + name, "-o", "mb2.data", "--append", "seconds=1")
        check(p.status == 0 and "mb: loader kvmprof multiboot2" in p.out,
              "%s with multiboot2 alone: status %d: %r %s" % (name, p.status, p.out[:200], p.err))


def linked_high():
    """FreeBSD's shape: linked high, loaded low, a PVH note with a physical entry, e_entry virtual."""
    if not high_kernel.make("high.elf"):
        return
    p = e2e.kvmprof("run", "high.elf", "-o", "high.data", "-F", "997")
    check(p.status == 0, "a kernel linked high: status %d: %s" % (p.status, p.err))
    got = [s for s in samples("high.data") if s.stack.endswith("hot_loop")]
    check(len(got) > 5, "a kernel linked high: %d samples of hot_loop: %s" % (len(got), p.err))


def package(name):
    """The directory of an unpacked Debian package, kept for the next time; None without apt."""
    cache = os.path.join(os.environ["KVMPROF_CACHE"], "packages")
    target = os.path.join(cache, name)
    if os.path.isdir(target):
        return target
    os.makedirs(cache, exist_ok=True)
    work = os.path.join(os.getcwd(), "fetch-" + name)
    os.makedirs(work)
    p = subprocess.run(["apt-get", "download", name], cwd=work, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL) if e2e.shutil.which("apt-get") else None
    debs = [f for f in os.listdir(work) if f.endswith(".deb")]
    if not p or p.returncode or not debs:
        e2e.left_out("Debian's package %s cannot be fetched" % name)
        return None
    subprocess.run(["dpkg-deb", "-x", os.path.join(work, debs[0]), os.path.join(work, "root")],
                   check=True)
    os.rename(os.path.join(work, "root"), target)
    return target


def xen():
    image, debug = package("xen-hypervisor-4.17-amd64"), package("xen-hypervisor-4.17-amd64-dbg")
    if not image or not debug:
        return
    p = e2e.kvmprof("run", os.path.join(image, "boot", "xen-4.17-amd64.gz"), "-o", "xen.data",
                    "--symbols", os.path.join(debug, "usr/lib/debug/boot/xen-syms-4.17-amd64"),
                    "--append", "com1=115200,8n1 console=com1", timeout=200)
    check(p.status == 0 and "guest reset" in p.err, "Xen: status %d: %s" % (p.status, p.err))
    check("(XEN) Bootloader: kvmprof" in p.out and "dom0 kernel not specified" in p.out,
          "Xen: " + p.out)
    leaves = [s.stack.split(";")[-1] for s in samples("xen.data") if "[vmm]" not in s.stack]
    known = [f for f in leaves if f != "[unknown]"]
    say("Xen: %d samples, %d with names, of %d functions"
        % (len(leaves), len(known), len(set(known))))
    check(len(known) > 0.9 * len(leaves), "Xen: only %d of %d samples have names"
          % (len(known), len(leaves)))
    check({"memset", "serial_puts", "__udelay"} & set(known), "Xen: %r" % sorted(set(known)))


def memtest():
    d = package("memtest86+")
    if not d:
        return
    # The 32-bit one needs x87 instructions in ring 0, which not every KVM can do.
    for name in ("memtest86+x64.bin", "memtest86+ia32.bin"):
        p = e2e.kvmprof("run", os.path.join(d, "boot", name), "-o", "memtest.data", "--append",
                        "console=ttyS0,115200", "--stop-on", "Testing", "--duration", "60",
                        timeout=200)
        if "ia32" in name and "cannot run `f" in p.err:
            say("%s: %s" % (name, p.err.splitlines()[0]))
            continue
        check(p.status == 0 and "stop marker" in p.err, "%s: status %d: %s"
              % (name, p.status, p.err))
        check("Memtest86+ v6.10" in p.out, "%s: %r" % (name, p.out[-500:]))
        say("%s: %s" % (name, [l for l in p.err.splitlines() if "samples at" in l]))


def refused(text, *argv):
    p = e2e.kvmprof("run", "-o", "refused.data", *argv)
    check(p.status in (1, 2) and text in p.err and p.err.count("\n") == 1,
          "%s: status %d, %r, expected one line with %r" % (argv, p.status, p.err, text))


def main():
    e2e.need_kvm()
    if e2e.EXTRA[:1] == ["debian"]:
        xen()
        memtest()
        e2e.finish()
    own_kernel("mb.elf", "multiboot", "kvmprof multiboot")
    own_kernel("mb.elf", "pvh", "? pvh")
    own_kernel("mb.bin", "multiboot", "kvmprof multiboot")
    own_kernel("mb.elf", "multiboot2", "kvmprof multiboot2")
    multiboot2_alone()
    linked_high()
    refused("can be entered by", guest("mb.bin"), "--boot", "pvh")
    refused("--boot=linux32 needs", guest("demo.elf"), "--boot", "linux32")
    refused("modules are for multiboot", guest("demo.elf"), "--boot=vmlinux",
            "--module", guest("mb.bin"))
    refused("cannot open", guest("mb.elf"), "--module", "/none=x")
    refused("0x100000", guest("demo.elf"), "--entry", "here")
    refused("the entry 0x10 ", guest("demo.elf"), "--boot=vmlinux", "--entry", "0x10")
    e2e.finish()


main()
