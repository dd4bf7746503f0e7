#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1500 s
# tests: not svm, network
"""A network card on a tap interface of the host: the guest gets a page from the host over it, and
the host something from the guest. All of it in a network namespace of the test's own."""

import os
import socket
import sys

import e2e
import page_server
from e2e import check

PAGE = b"a page that goes over a tap interface\n" * 300
HOST, GUEST = "10.99.0.1", "10.99.0.2"
INSIDE = "KVMPROF_TEST_INSIDE"


def ip(*words):
    p = e2e.run("ip", *words)
    if p.status:
        e2e.skip("ip %s: %s" % (" ".join(words), p.err.strip()))


def ask_guest():
    with socket.create_connection((GUEST, 80), timeout=120) as s:
        s.settimeout(120)
        said = b""
        while True:
            more = s.recv(4096)
            if not more:
                return said
            said += more


e2e.need_kvm()
e2e.need_tool("ip")
e2e.need_tool("unshare")
if not os.environ.get(INSIDE):
    if e2e.run("unshare", "-n", "true").status:
        e2e.skip("no network namespace of one's own may be made here")
    os.chdir("/")
    os.execvpe("unshare", ["unshare", "-n", sys.executable, os.path.abspath(__file__), e2e.KVMPROF, e2e.SCRATCH],
               dict(os.environ, **{INSIDE: "1"}))
kernel = e2e.built_kernel("smp-fp")
ip("tuntap", "add", "dev", "kvmprof0", "mode", "tap")
ip("address", "add", HOST + "/24", "dev", "kvmprof0")
ip("link", "set", "kvmprof0", "up")
server = page_server.serve(HOST, PAGE)
b = e2e.Boot(os.path.join(kernel, "vmlinux"), "--initrd", os.path.join(e2e.BUILD, "guest", "devices.cpio"), "-m", "128M",
             "--net", "tap=kvmprof0", "-o", "tap.data", "--append",
             "ip=%s::%s:255.255.255.0::eth0:off devices.serve=80 devices.http=%s:%d" % (
                 GUEST, HOST, HOST, server.server_address[1]))
if check(b.wait_for("devices: serving", 900), "the guest does not listen"):
    said = ask_guest()
    check(said == b"hello from the guest\n", "the guest said %r" % said)
b.wait(300)
check(b.status == 0 and "devices: done" in b.text(), "status %d: %s" % (b.status, b.err))
check("devices: http HTTP/1.0 200 fine, %d bytes, sum %d" % (len(PAGE), sum(PAGE)) in b.text(),
      "the page did not come:\n" + b.text()[-2000:])
server.shutdown()

# An interface that somebody has already is not given twice, and one that can't be is named.
p = e2e.kvmprof("run", "-o", "none.data", "--net", "tap=lo")
check(p.status == 1 and p.err.count("\n") == 1 and "lo" in p.err, "tap=lo: %d %s" % (p.status, p.err))
e2e.finish("end after %.0f s" % b.seconds)
