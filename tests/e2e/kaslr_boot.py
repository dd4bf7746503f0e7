#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that its own decompressor puts at a random address, to user space and to /init's end;
what cannot be booted so is refused in one line."""

import os

import e2e
from e2e import check, say


def refused(*options, **want):
    p = e2e.kvmprof("run", "--boot=bzimage", "-o", "refused.data", *options, timeout=30)
    check(p.status == want["status"] and not p.out and p.err.count("\n") == 1 and
          want["text"] in p.err, "--boot=bzimage %s: status %d, %r, expected %d and one line with %r"
          % (" ".join(options), p.status, p.err, want["status"], want["text"]))
    check(not os.path.exists("refused.data"), "a profile of nothing was written")


e2e.need_kvm()
kaslr = e2e.built_kernel("kaslr")
bz = os.path.join(kaslr, "bzImage")

refused(status=2, text="needs a bzImage")
refused(os.path.join(kaslr, "vmlinux"), status=1, text="--boot=bzimage needs a bzImage")
refused(bz, "-m", "16M", status=1, text="give at least ")

b = e2e.Boot(bz, "--boot=bzimage", "--initrd", e2e.INITRAMFS, "-m", "128M", "-o", "kaslr.data",
             "--append", "earlyprintk=ttyS0").wait(600)
ok = check(b.status == 0, "status %d: %s" % (b.status, b.err))
kernel, start = b.seen("Linux version "), b.seen("kvmprof-init: start")
ok &= check(kernel is not None, "the kernel said nothing")
ok &= check(start is not None, "/init did not start")
ok &= check("kvmprof-init: done" in b.text(), "/init did not come to its end")
ok &= check("KASLR disabled" not in b.text(), "the kernel was not put at a random address")
ok &= check("kvmprof: guest " in b.err, "the guest did not end by itself: " + b.err)
if not ok:
    say("\n".join(b.text().split("\n")[-30:]))
    e2e.finish()
s = e2e.check_lost("kaslr.data")

e2e.finish("start to the kernel's first line %.1f s, to /init's marker %.1f s; %d samples, lost %d" %
           (kernel, start, s["samples"], s["lost"]))
