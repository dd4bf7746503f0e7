#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: slow, at most 3600 s: 100
# tests: not svm, disk
"""disk_boot.py KVMPROF SCRATCH [N]: a disk image with a GUID partition table, a unified kernel image
on its EFI system partition and a root in ext4 boots to its init and powers off. Two runs have the
image at the same time, each writes to it and reads that back, and the image is the same afterwards.
One of them is saved when its init is ready, and goes on from there N (2) times more: with what was
written before, each for itself, and without the time between."""

import os
import re
import threading
import time

import disk_fixture as disk
import e2e
from e2e import check

e2e.need_kvm()
disk.need_tools()
kernel = e2e.built_kernel("smp-fp")
N = int(e2e.EXTRA[0]) if e2e.EXTRA else 2
disk.boots_by_itself("disk.img", kernel)
before = disk.sha256("disk.img")

SAVE = ["--snapshot-save", "disk.snap", "--at", "console:^disk-init: ready", "--snapshot-continue"]
LINES = ["disk-init: /before says what was there before", "disk-init: /written says what was written",
         "disk-init: /etc/later says only read at the end", "disk-init: done"]
boots = [e2e.Boot("disk.img", "--virtio", way, "-F", "97", "-o", way + ".data", *(SAVE if way == "pci" else []))
         for way in ("mmio", "pci")]
waits = [threading.Thread(target=boot.wait, args=(800,)) for boot in boots]
for t in waits:
    t.start()
for t in waits:
    t.join()
for boot in boots:
    text = boot.text()
    ok = check(boot.status == 0, "status %r: %s" % (boot.status, boot.err))
    for line in ["disk-init: /etc/marker says hello from the disk"] + LINES:
        ok = check(line in text, "not on the console: " + line) and ok
    if not ok:
        e2e.say(text[-4000:])


def clock(text, what):
    m = re.search("disk-init: %s at (\\d+) ms" % what, text)
    return int(m.group(1)) / 1000 if m else None


def goes_on(*options):
    """The saved machine, to its end."""
    stored = time.time() - os.stat("disk.snap").st_mtime
    p = e2e.kvmprof("run", "--snapshot", "disk.snap", "-F", "97", "-o", "on.data", *options, timeout=800)
    ok = check(p.status == 0, "going on: status %r: %s" % (p.status, p.err))
    for line in LINES:
        ok = check(line in p.out, "going on, not on the console: " + line) and ok
    ok = check("the cache stays" not in p.out and "/etc/marker" not in p.out, "going on: odd") and ok
    # The time that it was stored is none of its own.
    before, after = clock(saved, "ready"), clock(p.out, "goes on")
    if ok and check(before is not None and after is not None, "no clock"):
        check(0 <= after - before < stored,
              "%.3f s have passed for the guest, it was stored for %.3f s" % (after - before, stored))
    if not ok:
        e2e.say(p.out[-4000:])
    return after - before if ok else 0


def refused(what, *options, status=1):
    p = e2e.kvmprof("run", "--snapshot", "disk.snap", "-o", "x.data", *options)
    check(p.status == status and p.err.count("\n") == 1 and what in p.err, "%s: %d %s" % (what, p.status, p.err))


saved, passed = boots[1].text(), []
if not e2e.failures:
    passed = [goes_on("--snapshot-trust") for _ in range(N - 2)] + [goes_on("--disk", "disk.img")]
    refused("--disk " + os.path.realpath("disk.img"))
    os.rename("disk.img", "moved.img")
    refused("--disk PATH", "--snapshot-trust")
    refused("1 disks", "--disk", "moved.img", "--disk", "moved.img")
    refused("only the place of an image", "--disk", "moved.img,writable")
    refused("has no network card", "--net", "user", "--snapshot-trust")
    passed.append(goes_on("--disk", "moved.img"))
    e2e.shutil.copy("moved.img", "disk.img")
    refused("was changed", "--disk", "disk.img")
    with open("disk.img", "ab") as f:
        f.truncate(65 << 20)
    refused("bytes", "--disk", "disk.img")
    os.rename("moved.img", "disk.img")
    p = e2e.kvmprof("run", "disk.img", "--writable", "-o", "x.data", "--snapshot-save", "w.snap", "--at", "console:x")
    check(p.status == 1 and "drop 'writable'" in p.err, "a writable disk: %d %s" % (p.status, p.err))
check(disk.sha256("disk.img") == before, "the image has changed")
s = [e2e.summary(d) for d in ("mmio.data", "pci.data") if os.path.exists(d)]
check(len(s) == 2 and all(x["samples"] > 50 for x in s), "samples: %r" % [x["samples"] for x in s])
e2e.finish("two machines from one disk image, to their inits in %.0f and %.0f s, one goes on %d times, "
           "%.3f s of its clock later at most; the image unchanged" %
           (*[boot.seen("disk-init: done") or -1 for boot in boots], len(passed), max(passed or [0])))
