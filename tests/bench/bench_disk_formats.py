#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of disk images by format, against a raw one: bench_disk_formats.py KVMPROF SCRATCH [ROUNDS [MS]]

guest/blk reads the disk from ring 3, as in bench_disk.py, from an image in the host's page cache, for MS
milliseconds of each workload. All formats run in turn within a round, and a ratio is that of one round. Above 1:
faster than raw. The last column is the time until the guest's first instruction: an image that is compressed as a
whole is unpacked before."""

import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
ROUNDS, MS = (int(a) for a in (sys.argv[3:5] + ["5", "300"][len(sys.argv[3:5]):]))
del sys.argv[3:]
sys.argv[2] = tempfile.mkdtemp(dir=os.path.abspath(os.path.dirname(sys.argv[2])), prefix="bench-formats-")

import blk_guest  # noqa: E402
import e2e  # noqa: E402

LIMIT = 120
SECTORS = 131072
CONVERT = {"qcow2": ["-O", "qcow2"], "qcow2, compressed": ["-c", "-O", "qcow2"], "vmdk": ["-O", "vmdk"],
           "vdi": ["-O", "vdi"], "vhdx": ["-O", "vhdx"]}


def images():
    made = {"raw": "disk.img"}
    for name, options in CONVERT.items():
        made[name] = name.replace(", ", "-")
        p = e2e.run("qemu-img", "convert", *options, "disk.img", made[name])
        if p.status:
            sys.exit(p.err)
    for tool in ("gzip", "xz", "zstd"):
        if e2e.has_tool(tool):
            made[tool] = "disk." + tool
            with open(made[tool], "wb") as f:
                subprocess.run([tool, "-1", "-c", "disk.img"], stdout=f, check=True)
    return made


def measure(image):
    """Requests a second by workload, and the seconds before the guest."""
    p = e2e.kvmprof("run", "-F", "0.1", "-o", "run.data", "-m", "64M", "--disk", image + ",readonly", "--append",
                    "transport=pci irq=1 ms=%d" % MS, blk_guest.ELF, timeout=LIMIT)
    found = blk_guest.figures(p.out, SUM)
    if p.status or not found:
        sys.exit("%s: %s" % (image, p.err))
    khz = blk_guest.khz(p.out)
    return ({w: f.requests / (f.cycles / khz / 1000) for w, f in found.items()},
            e2e.summary("run.data")["image_load_ns"] / 1e9)


e2e.need_kvm()
e2e.need_tool("qemu-img")
e2e.need_tool("qemu-nbd")
SUM = blk_guest.write_image("disk.img", SECTORS)
all_images = images()
seen = {name: [] for name in all_images}
order = list(all_images)
for i in range(ROUNDS):
    for name in order:
        seen[name].append(measure(all_images[name]))
    order = order[1:] + order[:1]
workloads = list(seen["raw"][0][0])
print("%-18s" % "median of %d" % ROUNDS + "".join("%24s" % w for w in workloads) + "%12s" % "before, s")
for name, rounds in seen.items():
    text = "%-18s" % name
    for w in workloads:
        unit, scale = ("MB/s", 0.131072) if w.startswith("seq") else ("reads/s", 1)
        rate = statistics.median(r[0][w] for r in rounds) * scale
        ratio = statistics.median(r[0][w] / b[0][w] for r, b in zip(rounds, seen["raw"]))
        text += "%10.0f %s (%.2f)" % (rate, unit.ljust(7), ratio)
    print(text + "%12.2f" % statistics.median(r[1] for r in rounds))
