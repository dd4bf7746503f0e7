#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 2400 s
# tests: not svm, threads
"""Two processors with a queue each write to a disk and read it at the same time, by either
transport: what they read is what they wrote, and what the image has then."""

import os
import re
import struct

import e2e
from e2e import check

MASK = (1 << 64) - 1
MIB = 1 << 20
CPUS = 2


def written(cpu):
    """What guest/disk writes on this processor, and its sum of that."""
    word, words, total = cpu, [], 0xcbf29ce484222325
    for _ in range(MIB // 8):
        word = (word * 6364136223846793005 + 1442695040888963407) & MASK
        words.append(word)
        total = (total ^ word) * 0x100000001b3 & MASK
    return struct.pack("<%dQ" % len(words), *words), total


e2e.need_kvm()
kernel = e2e.built_kernel("smp-fp")
expected = [written(cpu) for cpu in range(CPUS)]
seconds = []
for way in ("pci", "mmio"):
    with open("disk.img", "wb") as f:
        f.write(os.urandom(4 * MIB))
    p = e2e.kvmprof("run", "-o", way + ".data", "-m", "64M", "--vcpus", CPUS, "--virtio", way, "--initrd",
                    os.path.join(e2e.BUILD, "guest", "disk.cpio"), "--disk", "disk.img,writable", "--append",
                    "mode=cpus", os.path.join(kernel, "vmlinux"), timeout=1200)
    text = p.out.replace("\r", "")
    if not check(p.status == 0 and "disk: done" in text and "disk: failed" not in text,
                 "%s: status %d: %s %s" % (way, p.status, text[-3000:], p.err)):
        continue
    seconds.append(p.seconds)
    queues = re.search(r"disk: queues (\d+)", text)
    # By registers there is one interrupt for all queues, with which Linux uses as many.
    check(queues and int(queues[1]) == CPUS, "%s: %s" % (way, queues and queues[0]))
    for cpu, (data, total) in enumerate(expected):
        check("disk: sum cpu%02d %d %d" % (cpu, MIB, total) in text, "%s, processor %d: %s" % (way, cpu, text[-800:]))
        with open("disk.img", "rb") as f:
            f.seek(cpu * MIB)
            check(f.read(MIB) == data, "%s: the image has something else at %d MiB" % (way, cpu))
    disk = e2e.summary(way + ".data")["disks"][0]
    check(disk["errors"] == 0 and disk["write"]["bytes"] == CPUS * MIB <= disk["read"]["bytes"], "%s: %s" % (way, disk))
e2e.finish("%s s" % " and ".join("%.0f" % s for s in seconds))
