#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel finds our virtio devices by either transport, and uses each: random numbers, hvc0 in
both directions, and a network by libslirp (DHCP, a page from the host, a connection to the guest).
It also has KVM's clock, and knows how long it was kept waiting for a processor."""

import glob
import os
import pty
import re
import socket
import threading

import e2e
import page_server
from e2e import check, say

PAGE = b"a page that the guest gets over HTTP\n" * 500


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def boot(name, *options):
    devices = os.path.join(e2e.BUILD, "guest", "devices.cpio")
    b = e2e.Boot(os.path.join(kernel, "vmlinux"), "--initrd", devices, "-m", "128M", "--rng",
                 "--virtio-console", "-o", name + ".data", *options, stdin=slave)
    b.follower = threading.Thread(target=follow, args=[b], daemon=True)
    b.follower.start()
    return b


def follow(b):
    """How long the host kept the vCPU waiting when the guest told what it knows of that, seconds."""
    b.waited = None
    if b.wait_for("devices: steal", 600):
        delays = []
        for path in glob.glob("/proc/%d/task/*/schedstat" % b.process.pid):
            with open(path) as f:
                delays.append(int(f.read().split()[1]) / 1e9)
        b.waited = max(delays, default=None)


def check_time(name, b, clock):
    found = re.search(r"devices: clock (\S+) of (.*)", b.text())
    check(found and "kvm-clock" in found[2].split() and clock in (None, found[1]), "%s: %s" % (name, found and found[0]))
    stolen = re.search(r"devices: steal (\d+)", b.text())
    b.follower.join()
    if check(stolen, name + ": no stolen time") and b.waited is not None:
        stolen = int(stolen[1]) / 100
        say("%s: waited for %.2f s, %.2f s of it counted as stolen" % (name, b.waited, stolen))
        # Not the time before the guest asked for it, nor what came after it was told.
        check(abs(stolen - b.waited) < 0.5 + b.waited / 4, "%s: %.2f s stolen, %.2f s waited" % (name, stolen, b.waited))


def used(name, b):
    """What both boots have in common; the random bytes."""
    b.wait(600)
    text = b.text()
    check(b.status == 0 and "devices: done" in text, "%s: status %d: %s" % (name, b.status, b.err))
    found = re.findall(r"devices: virtio virtio\d+ (\d+) (\w+)", text)
    check(sorted(found) == [("1", name), ("3", name), ("4", name)], "%s: found %s" % (name, found))
    random = re.search(r"devices: hwrng 16 ([0-9a-f]{32})\b", text)
    check(random and random.group(1) != "0" * 32, name + ": no random numbers")
    check("devices: this is hvc0" in text, name + ": hvc0 does not speak")
    check("devices: http HTTP/1.0 200 fine, %d bytes, sum %d" % (len(PAGE), sum(PAGE)) in text,
          name + ": the page did not come")
    if e2e.failures:
        say("\n".join(text.split("\n")[-40:]))
    return random and random.group(1)


e2e.need_kvm()
kernel = e2e.built_kernel("virtio")
server = page_server.serve("127.0.0.1", PAGE)
page = "devices.http=10.0.2.2:%d" % server.server_address[1]
port = free_port()
slave = e2e.subprocess.DEVNULL
pci = boot("pci", "--net", "user,host-loopback,hostfwd=tcp:%d-:80" % port, "--append", "ip=dhcp devices.serve=80 " + page)
keyboard, slave = pty.openpty()
mmio = boot("mmio", "--virtio", "mmio", "--net", "user,host-loopback", "--append",
            "clocksource=kvm-clock ip=10.0.2.15::10.0.2.2:255.255.255.0::eth0:off devices.type " + page)

# Wait for the one, then for the other: whichever comes first, they keep what they need.
if check(mmio.wait_for("devices: this is hvc0", 600), "mmio: hvc0 does not speak"):
    os.write(keyboard, b"typed text\n")
if check(pci.wait_for("devices: serving", 600), "pci: the guest does not listen"):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.settimeout(60)
        said = b""
        while True:
            more = s.recv(4096)
            if not more:
                break
            said += more
    check(said == b"hello from the guest\n", "the guest said %r" % said)
first, second = used("pci", pci), used("mmio", mmio)
check_time("pci", pci, None)
check_time("mmio", mmio, "kvm-clock")
check(first != second, "the same random numbers twice")
check("devices: hvc0 said typed text" in mmio.text(), "what was typed did not come to hvc0")
for name in ("pci", "mmio"):
    e2e.check_lost(name + ".data")
    script = e2e.kvmprof("script", "-i", name + ".data")
    check(script.status == 0 and any("virtio" in s.stack or "serial8250" in s.stack or "start_kernel" in s.stack
                                     for s in e2e.parse_script(script.out)), name + ": no stack of a driver or of the boot")

# Wrong usage is said in one line.
for options, word in ((("--virtio", "usb"), "--virtio usb"), (("--net", "wifi"), "--net wifi"),
                      (("--net", "user,hostfwd=tcp:80"), "hostfwd"),
                      (("--net", "user,hostfwd=tcp:0-:80"), "hostfwd"),
                      (("--net", "tap=averyverylongname"), "tap=NAME"),
                      (("--net", "user", "--net", "user"), "one network card")):
    p = e2e.kvmprof("run", *options)
    check(p.status == 2 and p.err.count("\n") == 1 and word in p.err, "%s: %d %s" % (options, p.status, p.err))
p = e2e.kvmprof("run", "--net", "user,hostfwd=tcp:%d-:80" % server.server_address[1])
check(p.status == 1 and p.err.count("\n") == 1 and "cannot listen" in p.err, "a port in use: " + p.err)
server.shutdown()
e2e.finish("end after %.1f s by PCI, %.1f s by MMIO, both at a time" % (pci.seconds, mmio.seconds))
