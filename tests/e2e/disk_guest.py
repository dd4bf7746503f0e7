#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: svm, at most 240 s
"""A driver that is not Linux's reads a disk from ring 3, by either transport, with interrupts and
without, with EVENT_IDX and without, one request at a time and many: it gets the disk's bytes, and
counts the requests that the disk counts. The event io gives each its stack."""

import e2e
from e2e import check, say

import blk_guest

SECTORS = 8192
WAYS = {
    "mmio": ["--virtio", "mmio"],
    "pci": [],
    "pci irq": [],
    "pci irq plain": [],
    "mmio io": ["--virtio", "mmio", "-e", "io"],
    "pci overlay": [],
}
WORDS = {"irq": "irq=1", "plain": "event_idx=0", "mmio": "transport=mmio", "pci": "transport=pci"}

e2e.need_kvm()
total = blk_guest.write_image("disk.img", SECTORS)
for way, options in WAYS.items():
    data = way.replace(" ", "-") + ".data"
    words = " ".join(WORDS[w] for w in way.split() if w in WORDS)
    disk = "disk.img" if "overlay" in way else "disk.img,readonly"
    p = e2e.kvmprof("run", "-o", data, "-m", "64M", "--disk", disk, "--append", "ms=40 " + words, *options,
                    blk_guest.ELF)
    found = blk_guest.figures(p.out, total)
    if not check(p.status == 0 and found and len(found) == 4, "%s: %s %s" % (way, p.out, p.err)):
        continue
    check("event_idx %d, irq %d" % ("plain" not in way, "irq" in way) in p.out, "%s: %s" % (way, p.out))
    s = e2e.summary(data)
    read = s["disks"][0]["read"]
    requests = sum(f.requests for f in found.values()) + SECTORS * 512 // blk_guest.WHOLE
    size = sum(f.requests * f.bytes for f in found.values()) + SECTORS * 512
    check(read == {"requests": requests, "bytes": size} and s["disks"][0]["errors"] == 0,
          "%s: the guest counts %d requests, %d bytes, the disk %s" % (way, requests, size, s["disks"][0]))
    for name, f in found.items():
        # A notification brings all that wait; an interrupt may stand for many requests.
        check(f.depth == 1 or f.kicks < f.requests, "%s, %s: %s" % (way, name, f))
        check((0 < f.interrupts <= f.requests) if "irq" in way else f.interrupts == 0, "%s, %s: %s" % (way, name, f))
        # Who brought a request is known at its notification: none may be left out.
        if "io" in way.split() and f.depth == 1:
            check(f.kicks == f.requests, "%s, %s: %s" % (way, name, f))
    say("%s: notifications a request: %s" % (way, ", ".join(
        "%s %.2f" % (name, f.kicks / f.requests) for name, f in found.items())))
    if "io" in way.split():
        check(s["io"]["records"] == requests and s["io"]["unknown"] == s["io"]["lost"] == 0, "io: %s" % s["io"])
        stacks = {sample.stack for sample in e2e.parse_script(e2e.kvmprof("script", "-i", data).out)}
        check(stacks and all(x.startswith("user_main;") or x == "user_main" for x in stacks), "stacks: %s" % stacks)
        say("stacks: %s" % sorted(stacks))
# A line for each request, as many as the guest counts, and each by its function.
p = e2e.kvmprof("iosnoop", "--breakdown", "-m", "64M", "--disk", "disk.img,readonly", "--append", "ms=40 " + WORDS["irq"], blk_guest.ELF)
found = blk_guest.figures(p.out + p.err, total)
lines = [x.split() for x in p.out.split("\n") if x.split()[3:4] == ["vda"]]
if check(p.status == 0 and found and lines, "iosnoop: %d %s %s" % (p.status, p.out[-1000:], p.err)):
    requests = sum(f.requests for f in found.values()) + SECTORS * 512 // blk_guest.WHOLE
    check(len(lines) == requests, "iosnoop: %d lines, the guest counts %d requests" % (len(lines), requests))
    parts = {m[0]: int(m[1]) for m in e2e.re.findall(r"^(queue|thread|host|interrupt|task|whole) +(\d+) ", p.out, e2e.re.M)}
    say("parts: %s" % parts)
    # Without Linux there is no task to be seen, and an MSI is not seen to be handled: that is said.
    check(parts == {"queue": parts.get("queue"), "thread": requests, "host": requests, "interrupt": 0, "task": 0, "whole": 0},
          "parts: %s" % parts)
    check("Of %d requests it is not known which task asked.\n" % requests in p.out, "tasks: %s" % p.out[-1500:])
    raised = e2e.re.search(r"^(\d+) interrupts were not seen", p.out, e2e.re.M)
    check(raised and int(raised.group(1)) >= sum(f.interrupts for f in found.values()), "interrupts: %s" % p.out[-1500:])
    say("iosnoop: %d lines, such as %s" % (len(lines), lines[0]))
e2e.finish("%d ways" % len(WAYS))
