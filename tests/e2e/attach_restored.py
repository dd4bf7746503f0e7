#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 900 s
# tests: not svm, threads
"""`kvmprof attach` to a Linux guest that was restored from a file, most of whose pages are absent: nothing of it comes into memory
for attach, little is read of a kernel that is not known, and next to nothing of one that is. Where the file is on FUSE, as with a
page server no page is requested, and a known kernel is recognised by the code that is there.

    attach_restored.py KVMPROF SCRATCH

The VMM is `kvmprof run --snapshot`, which maps the file privately, as Firecracker does."""

import os
import re
import shutil
import subprocess
import time

import e2e
import fuse_memory
from e2e import check, say

MIB = 1 << 20


def resident(pid):
    """Bytes of the process in memory."""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10


def save(kernel):
    boot = e2e.Boot(os.path.join(kernel, "bzImage"), "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"), "-m", "256M",
                    "--sandbox=off", "-F", "1", "-o", "saved.data", "--no-buildid-cache", "--snapshot-save", "guest.snap",
                    "--at", "console:worker: steady", "--append", "worker.seconds=9999 worker.roles=w-lib,w-sys")
    boot.wait(600)
    return check(boot.status == 0 and os.path.exists("guest.snap"), "no snapshot: " + boot.err)


def restored(*argv, snapshot="guest.snap", fuse=None):
    """Attaches to a new guest of the snapshot. Returns its summary, what was printed, by how much its VMM grew, and who else read its file."""
    vmm = subprocess.Popen([e2e.KVMPROF, "run", "--snapshot", snapshot, "-q", "--sandbox=off", "-F", "1", "-o", "own.data",
                            "--no-buildid-cache", "--duration", "120"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        before = resident(vmm.pid)
        if fuse:
            fuse.tell("asked")
        p = e2e.kvmprof("attach", str(vmm.pid), "--no-status", "--duration", "2", "-o", "at.data", *argv, timeout=200)
        grew = resident(vmm.pid) - before
        others = fuse.asked_by_others(vmm.pid) if fuse else []
        if not check(p.status == 0, "attach: status %d: %s" % (p.status, p.err)):
            e2e.finish()
    finally:
        vmm.kill()
        vmm.wait()
    s = e2e.summary("at.data")
    subprocess.run(["rm", "-rf", "at.data", "own.data"], check=True)
    return s, p.err, grew, others


def checked(what, s, err, grew, _):
    a = s["attach"]
    check(s["samples"] > 0, "%s: no samples: %s" % (what, err))
    check(a["brought_into_memory_bytes"] <= MIB, "%s: %d bytes came into memory" % (what, a["brought_into_memory_bytes"]))
    check("MiB of the guest's memory resident by reading it" in err, "%s: not told: %s" % (what, err))
    return "%s: %.2f MiB came into memory, %.2f MiB were read from the file; the VMM grew by %.2f MiB" % (
        what, a["brought_into_memory_bytes"] / MIB, a["read_from_memory_file_bytes"] / MIB, grew / MIB)


def served(cache):
    """The snapshot comes page by page from a server, and 4 KiB at a time."""
    fuse = fuse_memory.FuseFile(os.path.getsize("guest.snap"))
    if fuse.why:
        e2e.left_out("no file system in user space: " + fuse.why)
        return []
    try:
        with open("guest.snap", "rb") as f, open(fuse.path, "r+b") as to:
            shutil.copyfileobj(f, to, 1 << 20)
            to.flush()
            os.fsync(to.fileno())
        told = []
        for what, argv in (("not known", ["--no-buildid-cache"]), ("known", cache)):
            with open(fuse.path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            s, err, grew, others = restored(*argv, snapshot=fuse.path, fuse=fuse)
            a, unnamed = s["attach"], s["unsymbolized"]
            check(not others, "page server, %s: other processes asked it: %s" % (what, others))
            check(a["brought_into_memory_bytes"] == 0, "page server, %s: %s" % (what, a))
            told.append("page server, %s: %d samples, %d frames without names, %d reads for names ended at absent pages, the VMM grew by %.2f MiB" % (
                what, s["samples"], unnamed, a["names_not_in_memory"], grew / MIB))
            say(told[-1])
        check(s["guest"]["linux"] and unnamed == 0, "page server: the known kernel is not recognised: %s; %s" % (told, err))
        return told
    finally:
        fuse.end()


e2e.need_kvm()
figures = []
if save(e2e.built_kernel("tiny")):
    os.mkdir("cache")
    cache = ["--buildid-dir", os.path.abspath("cache")]
    unknown = restored(*cache)
    figures.append(checked("not known", *unknown))
    stored = [os.path.join(d, f) for d, _, files in os.walk("cache") for f in files if f == "kvmprof"]
    check(len(stored) == 1, "the kernel is not stored: %s" % stored)
    known = restored(*cache)
    figures.append(checked("known", *known))
    # The kernel's tables are not read again. Its types are searched for in its data, as the image has none.
    read = [x[0]["attach"]["read_from_memory_file_bytes"] + x[0]["attach"]["brought_into_memory_bytes"] for x in (unknown, known)]
    check(read[0] > os.path.getsize(stored[0]) / 2, "not known: hardly anything was read: %s" % figures)
    check(read[1] <= 2 * MIB, "known: too much was read: %s" % figures)
    figures += served(cache)
e2e.finish("; ".join(figures))
