#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 6300 s
# tests: not svm, disk
"""debian_disk.py KVMPROF SCRATCH: a 2 GiB disk image with a stock Debian 12 (its cloud kernel, the
initrd that initramfs-tools makes by its defaults, sysvinit) boots to its init, says so and powers
off; the image is the same afterwards. Many minutes on a host that interprets the guest's ring 0."""

import hashlib
import json
import os
import subprocess

import e2e
from e2e import check, say

LIMIT = 6000

e2e.need_kvm()
os.environ["PATH"] += ":/sbin:/usr/sbin"
e2e.need_tool("mmdebstrap")
p = subprocess.run([os.path.join(e2e.TOP, "scripts", "make-debian-image.sh")],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
if p.returncode:
    e2e.skip(p.stderr.strip().split("\n")[-1] or "make-debian-image.sh failed")
image = p.stdout.strip()


def digest():
    h = hashlib.sha256()
    with open(image, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


before = digest()
check(os.path.getsize(image) == 2 << 30, "not 2 GiB")
p = e2e.kvmprof("inspect", "--json", image)
facts = json.loads(p.out)
boots = facts["disk"]["boots"]
check(p.status == 0 and boots["source"] == "link" and len(boots["initrd"]) == 1 and
      facts["disk"]["partitions"][0]["os"].startswith("Debian GNU/Linux 12"),
      "inspect: %s%s" % (p.err, p.out))
b = e2e.Boot(image, "-o", "debian.data").wait(LIMIT)
say(b.err)
init, up = b.seen("INIT: version"), b.seen("debian: up")
check(b.status == 0, "status %r" % b.status)
check(init is not None, "init was not reached")
check(up is not None and "on /dev/vda" in b.text(), "the start scripts did not end")
check("guest power-off after" in b.err, "no power-off: " + b.err[:200])
check(digest() == before, "the image has changed")
if e2e.failures:
    for when, line in b.lines[-60:]:
        say("%7.1f %s" % (when, line))
    e2e.finish()
e2e.finish("Debian 12 from its 2 GiB disk: init after %.0f s, up after %.0f s, off after %.0f s; "
           "the image unchanged" % (init, up, b.seconds))
