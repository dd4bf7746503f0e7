#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1500 s
# tests: not svm, threads
"""A machine with a shared directory and a network card, by virtio-mmio, is saved while a command runs in it,
and goes on from there twice: it reads and writes the directory as it is then, and gets a page over the
network. A file of the directory that the guest has open can't be kept, and the saving says which."""

import os

import e2e
import page_server
from e2e import check, say

PAGE = b"a page that comes after the snapshot\n"

e2e.need_kvm()
if not os.path.exists("/bin/busybox"):
    e2e.skip("busybox-static is not installed")
kernel = os.path.join(e2e.built_kernel("smp-fp"), "bzImage")
os.makedirs("shared", exist_ok=True)
with open("shared/in", "w") as f:
    f.write("as it was\n")
server = page_server.serve("127.0.0.1", PAGE)
get = "busybox wget -q -O - http://10.0.2.2:%d/" % server.server_address[1]
COMMON = ["-m", "128M", "-F", "97", "--virtio", "mmio", "--share", "shared:/data", "--cwd", "/data", "--snapshot-save"]


def run(script, *options):
    return e2e.kvmprof("run", kernel, *COMMON, *options, "--", "busybox", "sh", "-c", script, timeout=900)


p = run(get + "; echo MARK; busybox cat in; echo out > out; %s; exit 7" % get, "s.snap", "--snapshot-on", "^MARK",
        "--snapshot-continue", "--net", "user,host-loopback", "--append", "ip=dhcp", "-o", "save.data")
if not check(p.status == 7 and os.path.exists("s.snap") and p.out.count(PAGE.decode()) == 2 and "as it was" in p.out,
             "saving: status %d" % p.status):
    say(p.out + p.err)
    e2e.finish()
for i in range(2):
    os.unlink("shared/out")
    with open("shared/in", "w") as f:
        f.write("as it is now, %d\n" % i)
    # As it was saved, or as the file says.
    options = ["--share", "shared", "--net", "user,host-loopback"] if i else ["--snapshot-trust"]
    p = e2e.kvmprof("run", "--snapshot", "s.snap", "-o", "on.data", *options, timeout=900)
    ok = check(p.status == 7, "status %d" % p.status)
    ok &= check("as it is now, %d\n" % i in p.out and p.out.count(PAGE.decode()) == 1 and "MARK" not in p.out, "its output")
    ok &= check(os.path.exists("shared/out"), "what it wrote is not there")
    if not ok:
        say(p.out + p.err)
server.shutdown()
p = e2e.kvmprof("run", "--snapshot", "s.snap", "-o", "on.data")
check(p.status == 1 and "--share %s --net user,host-loopback" % os.path.realpath("shared") in p.err and
      p.err.count("\n") == 1, "not allowed: status %d: %s" % (p.status, p.err))

p = run("exec 3<in; echo MARK; busybox sleep 1; exit 0", "open.snap", "--snapshot-on", "^MARK", "-o", "open.data")
check(p.status == 1 and "the guest has 'in' of this share open" in p.err and not os.path.exists("open.snap"),
      "an open file: status %d: %s" % (p.status, p.err))
e2e.finish("2 times from one file")
