#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a Linux guest reads of its disk in a second, under kvmprof and under QEMU: bench_disk_linux.py KVMPROF SCRATCH [ROUNDS [SEQ_MIB [RANDOM]]]

The same kernel, the same static program and the same image, both by virtio-mmio (QEMU's microvm,
which has no firmware to interpret) from the host's page cache; the program reads past its own page
cache, sums what it read in ring 3 and takes the time by its own clock. Rounds of the two follow
each other, and begin with each in turn. QEMU gets the words that kvmprof adds to the command line
on this host. A ratio above 1 says that kvmprof is faster."""

import os
import select
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
ROUNDS, SEQ, RANDOM = (int(a) for a in (sys.argv[3:6] + ["5", "64", "500"][len(sys.argv[3:6]):]))
del sys.argv[3:]
sys.argv[2] = tempfile.mkdtemp(dir=os.path.abspath(os.path.dirname(sys.argv[2])), prefix="bench-disk-")

import e2e  # noqa: E402
import qemu  # noqa: E402

LIMIT = 900
CPIO = os.path.join(e2e.BUILD, "guest", "disk.cpio")


def figures(console):
    """MB/s of the sequential part, reads a second of the other; and the sums."""
    found = {}
    for line in console.replace("\r", "").split("\n"):
        w = line.split()
        if len(w) == 5 and w[0] == "disk:" and w[1] in ("seq", "random"):
            found[w[1]] = (int(w[2]), int(w[3]), w[4])
    if len(found) != 2:
        sys.exit("no figures on the console:\n" + console[-2000:])
    seq, random = found["seq"], found["random"]
    return seq[0] / seq[1] * 1e3, random[0] / 4096 / random[1] * 1e9, (seq[2], random[2])


def ours():
    p = e2e.kvmprof("run", "-F", "0.1", "-o", "run.data", "-m", "64M", "--virtio", "mmio", "--initrd", CPIO,
                    "--disk", "disk.img,readonly", "--append", WORDS, KERNEL, timeout=LIMIT)
    if p.status:
        sys.exit("kvmprof: " + p.err)
    return figures(p.out), e2e.summary("run.data")["tuned"]


def theirs(tuned):
    q = qemu.Qemu("qemu", "-accel", "kvm", "-cpu", "host,-arch-capabilities", "-M",
                  "microvm,acpi=off,rtc=off,pit=on,pic=on", "-m", "64", "-kernel", KERNEL, "-initrd", CPIO,
                  "-drive", "id=d,file=disk.img,format=raw,if=none,readonly=on",
                  "-device", "virtio-blk-device,drive=d",
                  "-append", "console=ttyS0 reboot=t panic=-1 %s %s" % (tuned, WORDS))
    try:
        # QEMU says so on standard error, and then stands still.
        for _ in range(LIMIT):
            if q.process.poll() is not None:
                break
            if select.select([q.process.stderr], [], [], 1)[0]:
                line = os.read(q.process.stderr.fileno(), 4096).decode(errors="replace")
                if "KVM internal error" in line:
                    return None
            if "disk: done" in q.console():
                return figures(q.console())
        sys.exit("QEMU's guest does not come to its end:\n" + q.console()[-2000:])
    finally:
        q.end()


e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
KERNEL = os.path.join(e2e.built_kernel("smp-fp"), "vmlinux")
WORDS = "quiet mode=bench seq=%d random=%d" % (SEQ, RANDOM)
with open("disk.img", "wb") as f:
    for _ in range(SEQ):
        f.write(os.urandom(1 << 20))

ratio = {"seq": [], "random": []}
seen = {"kvmprof": ([], []), "qemu": ([], [])}
tuned = None
sums = set()
for i in range(ROUNDS):
    got = {}
    for who in (("kvmprof", "qemu") if i % 2 == 0 or tuned is None else ("qemu", "kvmprof")):
        if who == "kvmprof":
            (seq, random, s), tuned = ours()
        else:
            result = theirs(tuned)
            if not result:
                print("kvmprof alone: sequential %.1f MB/s, random %.0f reads/s. QEMU can't run this kernel "
                      "here: KVM refuses an instruction that kvmprof finishes (docs/hosts.md)" %
                      got["kvmprof"])
                sys.exit(0)
            seq, random, s = result
        sums.add(s)
        got[who] = (seq, random)
        seen[who][0].append(seq)
        seen[who][1].append(random)
    ratio["seq"].append(got["kvmprof"][0] / got["qemu"][0])
    ratio["random"].append(got["kvmprof"][1] / got["qemu"][1])
    print("round %d: sequential %.1f / %.1f MB/s, random %.0f / %.0f reads/s (kvmprof / QEMU)" % (
        i + 1, got["kvmprof"][0], got["qemu"][0], got["kvmprof"][1], got["qemu"][1]), flush=True)
if len(sums) != 1:
    sys.exit("they read different bytes: %s" % sums)
for k, (name, unit) in enumerate((("sequential, 1 MiB", "MB/s"), ("random, 4 KiB", "reads/s"))):
    r = ratio[("seq", "random")[k]]
    print("%-18s kvmprof %.1f (%.1f to %.1f) %s, QEMU %.1f (%.1f to %.1f): %.2f times (%.2f to %.2f)" % (
        name, statistics.median(seen["kvmprof"][k]), min(seen["kvmprof"][k]), max(seen["kvmprof"][k]),
        unit, statistics.median(seen["qemu"][k]), min(seen["qemu"][k]), max(seen["qemu"][k]),
        statistics.median(r), min(r), max(r)))
