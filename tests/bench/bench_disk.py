#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of a virtio disk a second, under kvmprof and under QEMU: bench_disk.py KVMPROF SCRATCH [ROUNDS [MS]]

guest/blk reads the disk from ring 3, which every KVM runs natively, so that it is the virtual
machines' devices that are compared and not how the host runs ring 0. Both get the same kernel, by
its PVH entry, the same image from the host's page cache, one vCPU, and no pinning; MS milliseconds
of each workload. The guest looks at each sector that it reads, and its sum of the whole disk has
to be the image's.

QEMU runs with each of its ways to read from the page cache, and the one that is best at a workload
counts; kvmprof with its default sampling, and as good as without. All run in turn within a round,
and a ratio is that of one round. Above 1: kvmprof is faster."""

import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
ROUNDS, MS = (int(a) for a in (sys.argv[3:5] + ["5", "300"][len(sys.argv[3:5]):]))
del sys.argv[3:]
sys.argv[2] = tempfile.mkdtemp(dir=os.path.abspath(os.path.dirname(sys.argv[2])), prefix="bench-disk-")

import blk_guest  # noqa: E402
import e2e  # noqa: E402
import qemu  # noqa: E402

LIMIT = 120
SECTORS = 131072
# What the guest is told, QEMU's machine and device; its microvm has no firmware to interpret.
LEGS = {
    "virtio-mmio": ("transport=mmio", ["-M", "microvm,acpi=off,rtc=off", "-global", "virtio-mmio.force-legacy=false"],
                    "virtio-blk-device"),
    "virtio-pci": ("transport=pci", ["-M", "microvm,pcie=on,rtc=off"], "virtio-blk-pci,disable-legacy=on"),
    "virtio-pci, MSI-X": ("transport=pci irq=1", ["-M", "microvm,pcie=on,rtc=off"], "virtio-blk-pci,disable-legacy=on"),
}
SAMPLED, QUIET = "kvmprof", "kvmprof -F 0.1"
OURS = (SAMPLED, QUIET)
THEIRS = {"QEMU aio=%s%s" % (aio, ", iothread" if thread else ""): (aio, thread)
          for thread in (False, True) for aio in ("threads", "io_uring")}


def figures(who, console):
    """Requests a second and how many of them took a notification, by workload."""
    found = blk_guest.figures(console, SUM)
    if not found:
        sys.exit("%s: the guest did not come to its end, or read other bytes:\n%s" % (who, console[-2000:]))
    return {w: (f.requests / (f.cycles / KHZ / 1000), f.kicks / f.requests) for w, f in found.items()}


def ours(who, leg):
    words = LEGS[leg][0]
    p = e2e.kvmprof("run", *(["-F", "0.1"] if who == QUIET else []), "-o", "run.data", "-m", "64M", "--virtio",
                    "mmio" if leg == "virtio-mmio" else "pci", "--disk", "disk.img,readonly", "--append",
                    "%s ms=%d" % (words, MS), blk_guest.ELF, timeout=LIMIT)
    if p.status:
        sys.exit("%s: %s" % (who, p.err))
    return p.out


def theirs(who, leg):
    words, machine, device = LEGS[leg]
    aio, thread = THEIRS[who]
    q = qemu.Qemu("qemu", "-accel", "kvm", "-cpu", "host,-arch-capabilities", *machine, "-m", "64", "-kernel", blk_guest.ELF,
                  "-drive", "id=d,file=disk.img,format=raw,if=none,readonly=on,cache=writeback,aio=" + aio,
                  *(["-object", "iothread,id=t"] if thread else []),
                  "-device", device + ",drive=d" + (",iothread=t" if thread else ""),
                  "-append", "%s ms=%d tsc_khz=%d" % (words, MS, KHZ))
    try:
        if not q.wait_for("blk: done", LIMIT):
            sys.exit("%s, %s: no end" % (who, leg))
        return q.console()
    finally:
        q.end()


def spread(values, form):
    return "%s (%s to %s)" % tuple(form % v for v in (statistics.median(values), min(values), max(values)))


def table(leg, seen):
    """seen: of each machine, of each round, of each workload"""
    print("%s:" % leg)
    for w in seen[SAMPLED][0]:
        rate = {who: [r[w][0] for r in rounds] for who, rounds in seen.items()}
        best = max(THEIRS, key=lambda who: statistics.median(rate[who]))
        unit, scale = ("MB/s", 0.131072) if w.startswith("seq") else ("reads/s", 1)
        print("  %-10s %s" % (w, unit))
        for who in (*OURS, best):
            print("    %-28s %s, %.2f notifications a request" % (
                who, spread([v * scale for v in rate[who]], "%.0f"), statistics.median(r[w][1] for r in seen[who])))
        for who in OURS:
            ratio = [a / b for a, b in zip(rate[who], rate[best])]
            print("    %-28s %s times QEMU's best" % (who, spread(ratio, "%.2f")))
            worst.append((statistics.median(ratio), "%s of %s, %s" % (who, leg, w)))


e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
SUM = blk_guest.write_image("disk.img", SECTORS)
KHZ = blk_guest.khz(ours(QUIET, "virtio-mmio"))
worst = []
for leg in LEGS:
    order = [*OURS, *THEIRS]
    seen = {who: [] for who in order}
    for i in range(ROUNDS):
        for who in order:
            seen[who].append(figures(who, (ours if who in OURS else theirs)(who, leg)))
        order = order[1:] + order[:1]
    table(leg, seen)
print("least ratio: %.2f (%s)" % min(worst))
