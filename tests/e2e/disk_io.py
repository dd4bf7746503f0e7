#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk with ext4, which a guest mounts, reads and writes.

The image's bytes are the same afterwards, what the guest read is what mke2fs put there, what it
wrote it finds again; iosnoop's lines, the profile, the disk's counters and the guest's own
/proc/diskstats say the same; the task has its name where the kernel has type information."""

import hashlib
import json
import os
import struct

import e2e
from e2e import check, say

MASK = (1 << 64) - 1


def fnv(data):
    """As guest/disk/disk.c sums: whole words of 64 bits."""
    h = 0xcbf29ce484222325
    for (word,) in struct.iter_unpack("<Q", data[:len(data) // 8 * 8]):
        h = (h ^ word) * 0x100000001b3 & MASK
    return h


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def lines(text, word):
    return [l.split()[2:] for l in text.replace("\r", "").split("\n") if l.startswith("disk: " + word)]


e2e.need_kvm()
e2e.need_tool("mke2fs")
kernel = e2e.built_kernel("virtio")
with open(os.path.join(kernel, "config")) as f:
    btf = "CONFIG_DEBUG_INFO_BTF=y" in f.read()

data = os.urandom(600000)
os.mkdir("root")
with open("root/data", "wb") as f:
    f.write(data)
p = e2e.run("mke2fs", "-q", "-t", "ext4", "-d", "root", "disk.img", "8M")
if not check(p.status == 0, "mke2fs: " + p.err):
    e2e.finish()
before = digest("disk.img")

p = e2e.kvmprof("iosnoop", "--json", "--stacks", "-e", "io,io:latency", "-o", "io.data", "-m", "64M",
                "--initrd", os.path.join(e2e.BUILD, "guest", "disk.cpio"), "--disk", "disk.img,serial=e2e",
                "--append", "mode=check quiet", os.path.join(kernel, "vmlinux"), timeout=800)
console = p.err
if not check(p.status == 0 and "disk: done" in console, "status %d:\n%s" % (p.status, console[-3000:])):
    e2e.finish()
check("disk: failed" not in console, console[-2000:])

# The file system's contents, and what was written over it.
sums = {w[0]: (int(w[1]), int(w[2])) for w in lines(console, "sum ")}
check(sums.get("/mnt/data") == (len(data), fnv(data)), "read other bytes: %s" % sums)
check(sums.get("written") and sums["written"] == sums.get("/mnt/out"), "written, read back: %s" % sums)
check(digest("disk.img") == before, "the image was changed")

# The same numbers from all sides. /proc/diskstats: reads, merged, sectors, ms, writes, ...
s = e2e.summary("io.data")
disk = s["disks"][0]
stat = [int(w) for w in lines(console, "stat ")[-1][1:]] if lines(console, "stat ") else [0] * 17
say("diskstats %s, counters %s" % (stat, disk))
check(stat[0] == disk["read"]["requests"] and stat[2] * 512 == disk["read"]["bytes"],
      "reads: diskstats %s, disk %s" % (stat, disk))
check(stat[4] == disk["write"]["requests"] + disk["zeroes"]["requests"] and
      stat[6] * 512 == disk["write"]["bytes"] + disk["zeroes"]["bytes"],
      "writes: diskstats %s, disk %s" % (stat, disk))
check(disk["errors"] == 0 and disk["flush"]["requests"] > 0, "errors, flushes: %s" % disk)

records = [json.loads(l) for l in p.out.strip().split("\n")]
last, records = records[-1], records[:-1]
for letter, name in (("R", "read"), ("W", "write"), ("F", "flush")):
    mine = [r for r in records if r["type"] == letter]
    check(len(mine) == disk[name]["requests"] and
          sum(r["bytes"] for r in mine) == disk[name]["bytes"] and
          last["types"][letter] == disk[name], "%s: %d lines, %s, %s" % (name, len(mine), last, disk))
check(sum(b["count"] for b in last["histogram_us"]) == len(records), "histogram: %s" % last)
check(s["io"] == {"read_bytes": disk["read"]["bytes"],
                  "written_bytes": disk["write"]["bytes"] + disk["zeroes"]["bytes"], "records": len(records), "unknown": 0, "unknown_bytes": 0, "failed": 0, "lost": 0},
      "io: %s" % s["io"])
check(all(r["latency_ns"] > 0 for r in records), "a request took no time")

# The stacks are those of the block layer, and of what was asked of it.
text = "\n".join(";".join(r["stack"]) for r in records)
for name in ("virtio_queue_rq", "ext4_", "vfs_read", "fsync"):
    check(name in text, "no stack with %s:\n%s" % (name, text[:2000]))
if btf:
    who = {r["comm"] for r in records}
    check("disk-test" in who, "tasks: %s" % who)
else:
    say("the kernel has no type information: tasks have no names")

# The profile weighs the same requests.
total = sum(v["bytes"] for k, v in disk.items() if isinstance(v, dict))
events = {e["name"]: e for e in s["events"]}
say("events: %s" % events)
p = e2e.kvmprof("script", "-i", "io.data")
periods = {}
for l in p.out.split("\n"):
    m = e2e.re.search(r"(\d+) (io(?::latency)?): *$", l)
    if m:
        periods[m.group(2)] = periods.get(m.group(2), 0) + int(m.group(1))
check(periods.get("io") == total, "%s bytes in the profile, %d by the disk" % (periods.get("io"), total))
check(periods.get("io:latency") == sum(r["latency_ns"] for r in records), "latency: %s" % periods)
e2e.finish("%d requests, %.1f MiB" % (len(records), total / 1048576))
