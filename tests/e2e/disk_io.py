#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1200 s
# tests: not svm, threads
"""A disk with ext4, which a guest mounts, reads and writes.

The image's bytes are the same afterwards, what the guest read is what mke2fs put there, what it
wrote it finds again; iosnoop's lines and each request's way, the profile, its trace, the disk's counters and the guest's own
/proc/diskstats say the same; the lines name the task."""

import hashlib
import json
import os

import e2e
import perfetto
from disk_sums import fnv, lines, sums as sums_of
from e2e import check, say


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


e2e.need_kvm()
e2e.need_tool("mke2fs")
kernel = e2e.built_kernel("smp-fp")

data = os.urandom(600000)
os.mkdir("root")
with open("root/data", "wb") as f:
    f.write(data)
p = e2e.run("mke2fs", "-q", "-t", "ext4", "-d", "root", "disk.img", "8M")
if not check(p.status == 0, "mke2fs: " + p.err):
    e2e.finish()
before = digest("disk.img")

p = e2e.kvmprof("iosnoop", "--json", "--stacks", "--breakdown", "-e", "io,io:latency,wall", "-o", "io.data", "-m", "64M",
                "--initrd", os.path.join(e2e.BUILD, "guest", "disk.cpio"), "--disk", "disk.img,serial=e2e",
                "--append", "mode=check quiet", os.path.join(kernel, "vmlinux"), timeout=800)
console = p.err
if not check(p.status == 0 and "disk: done" in console, "status %d:\n%s" % (p.status, console[-3000:])):
    e2e.finish()
check("disk: failed" not in console, console[-2000:])

# The file system's contents, and what was written over it.
sums = sums_of(console)
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
# An empty write that asks for a flush is a write to diskstats, and a flush to the disk.
check(stat[4] >= disk["write"]["requests"] + disk["zeroes"]["requests"] and
      stat[6] * 512 == disk["write"]["bytes"] + disk["zeroes"]["bytes"],
      "writes: diskstats %s, disk %s" % (stat, disk))
check(disk["errors"] == 0 and disk["flush"]["requests"] == stat[15] > 0, "errors, flushes: %s" % disk)

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
# What the task does that mounts, reads and writes comes from it, from the journal or from kblockd.
who = {r["comm"] for r in records}
say("tasks: %s" % who)
check("disk-test" in who, "tasks: %s" % who)

# The profile weighs the same requests.
total = sum(v["bytes"] for k, v in disk.items() if isinstance(v, dict))
events = {e["name"]: e for e in s["events"]}
say("events: %s" % events)
p = e2e.kvmprof("script", "-i", "io.data")
periods = sum(int(n) for n in e2e.re.findall(r"(\d+) io: *$", p.out, e2e.re.M))
check(periods == total == events["io"]["weight"], "%d bytes in the profile, %d by the disk" % (periods, total))
check(events["io:latency"]["weight"] == sum(r["latency_ns"] for r in records), "latency: %s" % events)

# The way of each: its moments are in order, and the parts add up to the whole.
STAGES = ("notified_ns", "taken_ns", "begun_ns", "done_ns", "raised_ns", "sign_ns")
sums, signs = {}, 0
for r in records:
    seen = [r["stages"][name] for name in STAGES if r["stages"][name] is not None]
    check(len(seen) >= 3 and seen == sorted(seen), "stages: %s" % r)
    check(r["stages"]["done_ns"] - r["stages"]["taken_ns"] == r["latency_ns"], "latency: %s" % r)
    # An MSI needs no access that could be seen: nothing may be said of it.
    check(r["stages"]["handled_ns"] is None, "an MSI was seen to be handled: %s" % r)
    signs += r["stages"]["sign_ns"] is not None
    for part, a, b in (("queue_ns", "notified_ns", "taken_ns"), ("thread_ns", "taken_ns", "begun_ns"),
                       ("host_ns", "begun_ns", "done_ns"), ("task_ns", "done_ns", "sign_ns"),
                       ("whole_ns", "notified_ns", "sign_ns")):
        if r["stages"][a] is not None and r["stages"][b] is not None:
            sums[part] = sums.get(part, 0) + r["stages"][b] - r["stages"][a]
found = last["breakdown"]
say("breakdown: %s" % found)
check(found["requests"] == len(records) and found["failed"] == 0, "breakdown: %s" % found)
check(found["interrupts"] == sum(r["stages"]["raised_ns"] is not None for r in records) > 0, "interrupts: %s" % found)
check(found["interrupt_ns"]["count"] == 0 and found["whole_ns"]["count"] == signs > len(records) / 2,
      "%d signs: %s" % (signs, found))
for part, ns in sums.items():
    h = found[part]
    check(h["sum"] == ns and h["p50"] <= h["p90"] <= h["p99"] and h["p50"] <= h["max"] <= ns, "%s: %d ns, %s" % (part, ns, h))

# The totals have the same, and so has a trace.
check([(r["sector"], r["type"], r["done_ns"], r["sign_ns"]) for r in s["requests"]] ==
      [(r["sector"], r["type"], r["stages"]["done_ns"], r["stages"]["sign_ns"]) for r in records] and
      s["requests_beyond"] == 0, "requests of the totals: %s" % s["requests"][:3])
directory, why = perfetto.processor()
if directory:
    p = e2e.kvmprof("export", "--format", "perfetto", "-i", "io.data", "-o", "io.pftrace")
    check(p.status == 0 and not p.err, "export: %s" % p.err)
    slices, per_event = perfetto.ask(directory, "io.pftrace", perfetto.SLICES,
                                     "select perf_session_id, count(*) n from perf_sample group by 1")
    mine = [x for x in slices if x["parent"] == "disks"]
    kinds = {"R": "read", "W": "write", "F": "flush", "D": "discard", "Z": "zeroes"}
    check({x["track"] for x in mine} == {"vda"}, "tracks: %s" % {x["track"] for x in mine})
    check(sorted((x["ts"], x["name"], x["dur"]) for x in mine if x["name"] in kinds.values()) ==
          sorted((r["stages"]["notified_ns"] or r["stages"]["taken_ns"], kinds[r["type"]],
                  (r["stages"]["sign_ns"] or r["stages"]["done_ns"]) -
                  (r["stages"]["notified_ns"] or r["stages"]["taken_ns"])) for r in records),
          "requests of the trace: %s" % mine[:5])
    for part in ("queue", "thread", "host", "task"):
        check(sum(x["dur"] for x in mine if x["name"] == part) == sums[part + "_ns"], "trace: " + part)
    check(sorted(x["n"] for x in per_event) == sorted(e["samples"] for e in events.values()),
          "samples by event: %s, %s" % (per_event, events))
    check({x["track"] for x in slices if x["parent"] == "vCPUs"} == {"vCPU 0"} and
          {x["name"] for x in slices if x["track"] == "boot"} >= {"start_kernel", "initcalls", "/init"},
          "tracks: %s" % {(x["parent"], x["track"]) for x in slices})
else:
    e2e.left_out(why)
e2e.finish("%d requests, %.1f MiB" % (len(records), total / 1048576))
