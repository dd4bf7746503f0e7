#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: slow, at most 1800 s: debian
# tests: not svm, host
"""kvmprof run --engine exact with disks: a Linux boots from a disk image by itself, writes to it and reads
that back; two runs give the same profile, and the image is the same afterwards. Other content is another
fact of the engine. What can't be is refused in one line. Needs neither KVM nor root.

exact_disks.py KVMPROF SCRATCH debian: the modules of Debian's 6.1, and a command that reads the disk."""

import os
import re

import disk_fixture as disk
import e2e
from e2e import check, say
from exact_engine import exact, find_qemu, one_line

DONE = ["disk-init: /etc/marker says hello from the disk", "disk-init: /before says what was there before",
        "disk-init: /written says what was written", "disk-init: /etc/later says only read at the end",
        "disk-init: done"]


def disks(profile):
    return e2e.summary(profile)["engine"]["disks"]


def boots():
    """By itself, twice."""
    disk.boots_by_itself("disk.img", kernel)
    before = disk.sha256("disk.img")
    p = exact("--repeat", "2", "disk.img", "-o", "a.data", timeout=600)
    if not check(p.status == 0 and "2 runs gave the same profile" in p.err, "%d: %s" % (p.status, p.err)):
        say(p.out[-3000:])
    for line in DONE:
        check(line in p.out, "not on the console: " + line)
    check(disk.sha256("disk.img") == before, "the image has changed")
    check(disks("a.data") == [{"bytes": 64 << 20, "read_only": False, "sha256": before}],
          "facts: %s" % disks("a.data"))
    rows = e2e.kvmprof("report", "-i", "a.data", "-n", "0").out
    check("ext4_" in rows and "pmem_" in rows, "neither ext4 nor pmem in the profile")
    return e2e.summary("a.data")["engine"]["instructions"]


def beside(instructions):
    """A second disk, read only, of odd size: another machine, and what is in it is told."""
    with open("odd.img", "wb") as f:
        f.write(os.urandom(3 * 512 + 100))
    p = exact("-q", "disk.img", "--disk", "odd.img,readonly", "-o", "b.data", timeout=600)
    check(p.status == 0 and "does not see its last 100 bytes" in p.err, "two disks: %d %s" % (p.status, p.err))
    with open("odd.img", "r+b") as f:
        f.truncate(3 * 512)
    check(disks("b.data")[1] == {"bytes": 3 * 512, "read_only": True, "sha256": disk.sha256("odd.img")},
          "facts: %s" % disks("b.data"))
    check(e2e.summary("b.data")["engine"]["instructions"] > instructions, "a second disk is no work")
    p = exact("--append", "root=/dev/pmem1 ro", "disk.img", "--disk", "odd.img,readonly", "-o", "c.data", timeout=600)
    check(re.search(r"VFS: (Cannot open root device|Unable to mount)", p.out),
          "root on the second disk: %s%s" % (p.out[-1000:], p.err))


def refused():
    with open("q.img", "wb") as f:
        f.write(b"QFI\xfb\0\0\0\3" + bytes(4 << 20))
    one_line("qcow2", exact("--disk", "q.img", "-o", "x"), "q.img", "qcow2 image is truncated or damaged")
    one_line("qcow2 as IMAGE", exact("q.img", "-o", "x"), "q.img", "qcow2 image is truncated or damaged")
    one_line("no image", exact("--disk", "nowhere", "-o", "x"), "nowhere", "No such file")
    one_line("no file", exact("--disk", "/dev/null", "-o", "x"), "/dev/null", "regular file")
    for setting, word in (("writable", "leave ,writable out"), ("overlay=o", "leave ,overlay= out"),
                          ("serial=1", "serial number")):
        one_line(setting, exact("--disk", "disk.img," + setting, "-o", "x"), "disk.img", word)
    one_line("--writable", exact("disk.img", "--writable", "-o", "x"), "--writable", "next run")
    for root, word in (("/dev/vda1", "/dev/pmem0p1"), ("/dev/vdb", "/dev/pmem1")):
        p = exact("disk.img", "--root", root, "-o", "x")
        check(p.status == 1 and "root=%s: " % root in p.err and "say root=%s\n" % word in p.err, root + ": " + p.err)
    with open("large.img", "wb") as f:
        f.truncate((1 << 30) + 512)
    one_line("too large to be copied", exact("--disk", "large.img", "-o", "x"), "large.img", "truncate -s %2M")
    check(not os.path.exists("x") and not os.path.exists("o"), "something was made")


def changed():
    """A run can be made again as long as its disk is the same."""
    with open("disk.img", "r+b") as f:
        f.seek(-512, 2)
        f.write(b"x")
    p = e2e.kvmprof("diverge", "a.data", "a.data", timeout=600)
    check(p.status == 2 and "a disk has changed since" in p.err, "diverge: %d %s" % (p.status, p.err))


def debian():
    kernel = e2e.debian_kernel("6.1", "--nvdimm")
    with open("data.img", "wb") as f:
        f.write(os.urandom(6 << 20))
    options = ("--disk", "data.img", "--modules", os.path.join(os.path.dirname(kernel), "nvdimm"),
               "--modprobe", "nd_btt,nfit,nd_pmem", kernel, "-o", "d.data")
    p = exact("--repeat", "2", *options, "--", "sha256sum", "/dev/pmem0", timeout=900)
    check(p.status == 0 and "2 runs gave the same profile" in p.err, "%d: %s" % (p.status, p.err))
    check(disk.sha256("data.img") + "  /dev/pmem0" in p.out, "the guest read something else: " + p.out[-500:])
    check("the guest has no disk" not in p.err and e2e.summary("d.data")["engine"]["disks_taken"] is True,
          "the disk that was read: " + p.err)
    p = exact("--disk", "data.img", kernel, "-o", "none.data", "--", "true", timeout=900)
    check(p.status == 0 and "warning: the guest has no disk" in p.err and "nd_pmem" in p.err and
          e2e.summary("none.data")["engine"]["disks_taken"] is False, "without drivers: %d %s" % (p.status, p.err))
    p = exact(*options, "--", "false", timeout=900)
    check(p.status == 1 and "status 1" in p.err, "a command's status: %d %s" % (p.status, p.err))
    return e2e.summary("d.data")["engine"]["instructions"]


find_qemu()
if e2e.EXTRA[:1] == ["debian"]:
    e2e.finish("Debian 6.1 reads a disk, twice the same: %d instructions" % debian())
disk.need_tools()
kernel = e2e.built_kernel("exact")
counted = boots()
if not e2e.failures:
    beside(counted)
    refused()
    changed()
e2e.finish("a Linux from its disk to its end: %d instructions, twice; the image unchanged" % counted)
