#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 60 s
# tests: not svm, network
"""A kernel finds our virtio devices by either transport, and uses each: random numbers, hvc0 in
both directions, and a network by libslirp (DHCP, a page from the host, a connection to the guest).
It also has KVM's clock, and knows how long it was kept waiting for a processor. Each packet is on the profile's clock, with
the task that sent it: held against what the card, the guest's driver and the event have counted."""

import glob
import os
import pty
import re
import socket
import threading

import e2e
import page_server
import perfetto
from e2e import check, say

PAGE = b"a page that the guest gets over HTTP\n" * 500


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def boot(name, *options):
    devices = os.path.join(e2e.BUILD, "guest", "devices.cpio")
    b = e2e.Boot(os.path.join(kernel, "vmlinux"), "--initrd", devices, "-m", "128M", "--rng",
                 "--virtio-console", "-e", "wall,net", "--mark", "told=^devices: clock", "-o", name + ".data", *options, stdin=slave)
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


TIMES = ("notified_ns", "taken_ns", "done_ns", "raised_ns")


def check_packets(name, b):
    """What was sent and received, by the profile, the card's counters, the guest's driver and the event's weight."""
    s = e2e.summary(name + ".data")
    net, packets = s["network"], s["packets"]
    for way in ("sent", "received"):
        mine = [p for p in packets if p["way"] == way and p["ok"]]
        check(net[way] == {"packets": len(mine), "bytes": sum(p["bytes"] for p in mine),
                           "lost": sum(p["way"] == way and not p["ok"] for p in packets)} and mine,
              "%s: %s %d packets, %s" % (name, way, len(mine), net))
    check(net["records"] == len(packets) and net["lost_records"] == 0 and s["packets_beyond"] == 0, "%s: %s" % (name, net))
    # The page came in frames of at least 54 bytes of headers each.
    payload = sum(p["bytes"] - 54 for p in packets if p["way"] == "received" and p["bytes"] > 54)
    check(len(PAGE) < payload < 2 * len(PAGE), "%s: %d bytes of frames for a page of %d" % (name, payload, len(PAGE)))
    # The guest's driver told its count between two lines; what came after the first one it may not have seen yet.
    told = [m["mono_ns"] for m in s["markers"] if m["name"] == "told"]
    found = re.search(r"devices: eth0 received (\d+) packets, (\d+) bytes", b.text())
    if check(found and told, "%s: markers %s" % (name, s["markers"])):
        late = [p for p in packets if p["way"] == "received" and p["taken_ns"] > told[0]]
        got = net["received"]
        check(got["packets"] - len(late) <= int(found[1]) <= got["packets"] and
              got["bytes"] - sum(p["bytes"] for p in late) <= int(found[2]) <= got["bytes"],
              "%s: the driver says %s, the card %s, %d late" % (name, found[0], got, len(late)))
    # Moments are in order, and within the run; a packet that was sent is its task's, once it is known where the kernel keeps those.
    for p in packets:
        seen = [p[t] for t in TIMES if p[t] is not None]
        check(seen == sorted(seen) and p["taken_ns"] > s["first_entry_ns"], "%s: times of %s" % (name, p))
        check((p["notified_ns"] is None) == (p["way"] == "received"), "%s: who told of %s" % (name, p))
    known = [p["taken_ns"] for p in packets if "comm" in p]
    whose = [p for p in packets if p["way"] == "sent" and known and p["taken_ns"] >= min(known)]
    check(whose and all("comm" in p for p in whose) and len(whose) == len(known), "%s: %d of %d have a task" % (name, len(known), len(whose)))
    check("init" in {p.get("comm") for p in packets}, "%s: tasks %s" % (name, {p.get("comm") for p in packets}))
    event, = [e for e in s["events"] if e["name"] == "net"]
    check(event["weight"] == net["sent"]["bytes"] and event["samples"] == net["sent"]["packets"] and net["unknown"] == 0,
          "%s: %s, %s" % (name, event, net))
    p = e2e.kvmprof("export", "-F", "folded", "--event", "net", "-i", name + ".data", "-o", name + ".folded")
    with open(name + ".folded") as f:
        check("start_xmit" in f.read(), "%s: no stack of the driver's transmission; %s" % (name, p.err))
    return packets


def check_trace(name, packets):
    directory, why = perfetto.processor()
    if not directory:
        e2e.left_out(why)
        return
    p = e2e.kvmprof("export", "-F", "perfetto", "-i", name + ".data", "-o", name + ".pftrace")
    slices, = perfetto.ask(directory, name + ".pftrace", perfetto.SLICES)
    mine = [x for x in slices if x["parent"] == "network"]
    check(p.status == 0 and {x["track"] for x in mine} == {"net0"}, "%s: %s tracks %s" % (name, p.err, {x["track"] for x in mine}))
    whole = []
    for k in packets:
        seen = [k[t] for t in TIMES if k[t] is not None]
        whole.append((seen[0], k["way"], seen[-1] - seen[0]))
    check(sorted((x["ts"], x["name"], x["dur"]) for x in mine if x["name"] in ("sent", "received")) == sorted(whole),
          "%s: packets of the trace: %s, not %s" % (name, mine[:3], whole[:3]))
    parts = {x["name"] for x in mine} - {"sent", "received"}
    check(parts == {"queue", "host", "interrupt"}, "%s: parts %s" % (name, parts))


e2e.need_kvm()
kernel = e2e.built_kernel("smp-fp")
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
for name, b in (("pci", pci), ("mmio", mmio)):
    check_trace(name, check_packets(name, b))
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
for event, options, word in (("net", (), "--net"), ("net:u", ("--net", "user"), "net:u")):
    p = e2e.kvmprof("run", "-e", event, *options)
    check(p.status in (1, 2) and p.err.count("\n") == 1 and word in p.err, "-e %s: %d %s" % (event, p.status, p.err))
p = e2e.kvmprof("run", "--net", "user,hostfwd=tcp:%d-:80" % server.server_address[1])
check(p.status == 1 and p.err.count("\n") == 1 and "cannot listen" in p.err, "a port in use: " + p.err)
server.shutdown()
e2e.finish("end after %.1f s by PCI, %.1f s by MMIO, both at a time" % (pci.seconds, mmio.seconds))
