#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""disk_boot.py KVMPROF SCRATCH: a disk image with a GUID partition table, a kernel in its ext4 and
a GRUB menu boots to its init and powers off. Two runs have the image at the same time, each
writes to it and reads that back, and the image is the same afterwards."""

import hashlib
import os
import threading

import disk_fixture as disk
import e2e
from e2e import check

e2e.need_kvm()
disk.need_tools()
kernel = e2e.built_kernel("virtio")
HERE = os.path.dirname(os.path.abspath(__file__))
disk.call("gcc", "-static", "-nostdlib", "-ffreestanding", "-O2", "-o", "init",
          os.path.join(HERE, "disk_init.c"))


def read(path):
    with open(path, "rb") as f:
        return f.read()


a, b = disk.disk("disk.img", 64, "gpt", [(48, "linux", "root"), (8, "uefi", "esp")])
disk.vfat("disk.img", {"/EFI/BOOT/BOOTX64.EFI": b"MZ"}, 8, b)
disk.ext4("disk.img", {
    "/dev": None, "/sbin/init": read("init"), "/etc/marker": "hello from the disk",
    "/boot/vmlinuz-6.1": read(os.path.join(kernel, "bzImage")),
    "/boot/grub/grub.cfg": "menuentry 'Test' {\nsearch --fs-uuid --set=root %s\n"
                           "linux /boot/vmlinuz-6.1 root=UUID=%s rw quiet\n}\n" %
                           (disk.uuid(1), disk.uuid(1))}, 1, 48, a)
before = hashlib.sha256(read("disk.img")).hexdigest()

boots = [e2e.Boot("disk.img", "--virtio", way, "-o", way + ".data") for way in ("mmio", "pci")]
waits = [threading.Thread(target=boot.wait, args=(600,)) for boot in boots]
for t in waits:
    t.start()
for t in waits:
    t.join()
for boot in boots:
    text = boot.text()
    ok = check(boot.status == 0, "status %r: %s" % (boot.status, boot.err))
    for line in ("disk-init: /etc/marker says hello from the disk",
                 "disk-init: /written says what was written", "disk-init: done"):
        ok = check(line in text, "not on the console: " + line) and ok
    if not ok:
        e2e.say(text[-4000:])
check(hashlib.sha256(read("disk.img")).hexdigest() == before, "the image has changed")
s = [e2e.summary(d) for d in ("mmio.data", "pci.data") if os.path.exists(d)]
check(len(s) == 2 and all(x["samples"] > 100 for x in s), "samples: %r" % [x["samples"] for x in s])
e2e.finish("two machines from one disk image, to their inits in %.0f and %.0f s, the image unchanged" %
           tuple(boot.seen("disk-init: done") or -1 for boot in boots))
