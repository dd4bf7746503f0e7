#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 35 s
# tests: slow, at most 900 s: all
# tests: svm, at most 600 s: large
"""Domains of a real libvirtd: listed, attached to by name, UUID and id, and their ends.

    attach_libvirt.py KVMPROF SCRATCH [all | large]

all: more samples, and a daemon that is away for longer than is waited for at other times.
large: a domain with memory on both sides of the hole below 4 GiB, and nothing else.
The daemon is the test's own (libvirt_host.py). The domains run the demo guest, which tells
the truth about itself on its serial port.
"""

import json
import os
import signal
import subprocess
import time
import uuid

import attached
import demo_judge
import e2e
import libvirt_host
from e2e import check, say
from libvirt_host import put, read, virsh

LARGE_MIB = 4608
POINTS = 2.5    # the host runs a whole PC's devices beside the guest; attach_qemu.py is strict
SECONDS = 20 if e2e.EXTRA == ["all"] else 10
DEMO = os.path.join(e2e.BUILD, "guest", "demo.elf")
NAME = "demo, the first"    # a comma is doubled on QEMU's command line

e2e.need_kvm()
libvirt_host.need()
e2e.prefer_us()


def console(name):
    return os.path.join(e2e.SCRATCH, name.split(",")[0] + ".console")


def start(name, seconds, until="demo: start", mib=128):
    """Defines a domain and waits until its guest has said this."""
    virsh("undefine", name)
    if os.path.exists(console(name)):
        os.unlink(console(name))
    ident = str(uuid.uuid4())
    put("domain.xml", libvirt_host.domain_xml(name, DEMO, "seconds=%d" % seconds, console(name),
                                              uuid=ident, mib=mib))
    # virsh start takes seconds after the guest's first instruction; resume does not.
    for argv in (("define", "domain.xml"), ("start", name, "--paused"), ("resume", name)):
        p = virsh(*argv)
        check(p.status == 0, "virsh %s: %s" % (argv, p.err.strip()))
    wait_for(name, until, 120)
    return ident


def wait_for(name, text, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.path.exists(console(name)) and text in read(console(name)):
            return True
        time.sleep(0.05)
    return check(False, "%s: no '%s' on the console" % (name, text))


class Attach:
    """Runs beside us until it is stopped or ends."""

    def __init__(self, data, *argv):
        self.data = data
        self.process = subprocess.Popen(
            [e2e.KVMPROF, "attach", "--image", DEMO, "-o", data] + [str(a) for a in argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def work(self, seconds):
        """Lets it sample so long: the profile appears when all is found."""
        until = time.monotonic() + 60
        while not any(f.startswith(self.data + ".tmp") for f in os.listdir(".")):
            if self.process.poll() is not None or time.monotonic() > until:
                break
            time.sleep(0.02)
        time.sleep(seconds)

    def end(self, sig=None):
        """Exit status and what it said."""
        if sig:
            self.process.send_signal(sig)
        try:
            out = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out = self.process.communicate()
            check(False, "attach does not end")
        return self.process.returncode, out[1].decode()


def attach_briefly(what, *argv):
    p = e2e.kvmprof("attach", "--image", DEMO, "--samples", 50, "-o", "brief.data", *argv)
    if not check(p.status == 0, "attach by %s: status %d: %s" % (what, p.status, p.err)):
        return {}
    s = e2e.summary("brief.data")
    check(s["samples"] >= 50, "by %s: %d samples" % (what, s["samples"]))
    return s


def tainted(name):
    """libvirt tells it in the log of the machine alone."""
    return "custom-monitor" in read("/var/log/libvirt/qemu/%s.log" % name)


def by_name_uuid_and_id(ident):
    number = virsh("domid", NAME).out.strip()
    pid = int(read("/run/libvirt/qemu/%s.pid" % NAME))
    for what, argv in (("name", [NAME]), ("UUID", [ident]), ("id", [number]),
                       ("--domain", ["--domain", NAME]), ("URI and id", ["-c", "qemu:///system", number])):
        s = attach_briefly(what, *argv)
        if s:
            check(s["attach"]["pid"] == pid, "by %s: process %s, not %d" % (what, s["attach"], pid))
            check(s["domain"]["uuid"] == ident and s["domain"]["uri"] == "qemu:///system",
                  "by %s: %s" % (what, s["domain"]))
    for argv in ([pid], ["--pid", pid]):
        s = attach_briefly("PID", *argv)
        check(s and "domain" not in s, "a PID is no domain")
    check(not tainted(NAME), "the domain is tainted although nobody asked for that")

    # Without the file (another runtime directory, say) the processes are looked at; and one
    # that belongs to another machine is not believed.
    path = "/run/libvirt/qemu/%s.pid" % NAME
    os.rename(path, path + ".away")
    s = attach_briefly("the processes", NAME)
    check(s and s["attach"]["pid"] == pid, "not found among the processes")
    put(path, str(os.getpid()))
    s = attach_briefly("a stale file", NAME)
    check(s and s["attach"]["pid"] == pid, "a stale PID file was believed")
    os.rename(path + ".away", path)

    s = attach_briefly("the monitor", "--monitor", NAME)
    check(s and s["attach"]["pid"] == pid, "QEMU's answer was not understood")
    check(tainted(NAME), "this test can't see whether a domain is tainted")


def true_shares(_):
    """How much missed periods may shift the shares, and what judge() takes."""
    # Before its work begins: what is missed then is missing in the shares.
    start(NAME, SECONDS, "demo: tsc")
    a = Attach("shares.data", NAME)
    wait_for(NAME, "truth-end", SECONDS * 10)
    status, err = a.end(signal.SIGINT)
    check(status == 0, "attach: status %d: %s" % (status, err))
    truth, outside = e2e.parse_truth(read(console(NAME)))
    check(truth, "the guest tells no truth:\n" + read(console(NAME))[-2000:])
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "shares.data").out)
    doubt = demo_judge.doubt(samples, truth)
    check(len(samples) > SECONDS * 100 or doubt > demo_judge.BUSY, "only %d samples" % len(samples))
    virsh("destroy", NAME)
    return doubt, (samples, truth, outside)


def listed(ident):
    put("off.xml", libvirt_host.domain_xml("switched-off", DEMO, "", console("off")))
    check(virsh("define", "off.xml").status == 0, "define")
    p = e2e.kvmprof("list", "--domains", "--json")
    check(p.status == 0, "list --domains --json: " + p.err)
    rows = {d["name"]: d for d in json.loads(p.out)["domains"]}
    on, off = rows.get(NAME), rows.get("switched-off")
    check(on and on["state"] == "running" and on["uuid"] == ident and on["attachable"] is True and
          on["pid"] == int(read("/run/libvirt/qemu/%s.pid" % NAME)) and on["vcpus"] == 1 and
          on["memory"] == 128 << 20, "list: %s" % on)
    check(off and off["state"] == "shut off" and off["attachable"] is False and off["why"] and
          off["pid"] is None and off["id"] is None, "list: %s" % off)
    text = e2e.kvmprof("list", "--domains", "-c", "qemu:///system").out
    check(NAME in text and "switched-off" in text and str(on["pid"]) in text, "list:\n" + text)
    say(text)


def ends():
    """What ends the machine's run ends the profile, which says so and is whole."""
    for event, text, argv in (("paused", "the domain was paused", ["suspend"]),
                              ("destroyed", "the domain was destroyed", ["destroy"])):
        a = Attach(event + ".data", "--freq", 500, NAME)
        a.work(1.5)
        check(a.process.poll() is None, "attach has ended before")
        p = virsh(*argv, NAME)
        check(p.status == 0, "virsh %s: %s" % (argv, p.err))
        status, err = a.end()
        check(status == 0 and text in err, "%s: status %d: %s" % (event, status, err))
        if status == 0:
            s = e2e.summary(event + ".data")
            check(s["end"] == text and s["domain"]["event"] == event, "%s: %s" % (s["end"], s["domain"]))
            check(s["samples"] > 100, "%s: %d samples" % (event, s["samples"]))
            check(e2e.kvmprof("report", "-i", event + ".data").status == 0, "report")
        if event == "paused":
            refused("is paused: resume it first", NAME)
            virsh("resume", NAME)
            attach_briefly("name after resume", NAME)
    refused("does not run (shut off)", NAME)

    # Saved to a file: it is paused for that, and its process ends.
    start("kept", 600)
    a = Attach("saved.data", "kept")
    a.work(1)
    p = virsh("save", "kept", os.path.abspath("kept.state"))
    check(p.status == 0, "virsh save: " + p.err)
    status, err = a.end()
    check(status == 0 and ("the domain was paused" in err or "the domain was saved" in err),
          "save: status %d: %s" % (status, err))
    check(status or e2e.summary("saved.data")["samples"] > 20, "save: few samples")
    check(e2e.kvmprof("report", "-i", "saved.data").status == 0, "report of saved.data")

    # A guest that ends by itself, and a VMM that is killed.
    for event, text, seconds in (("shutdown", "the domain was shut down", 4),
                                 ("failed", "the domain's VMM has failed", 600)):
        start("other", seconds)
        a = Attach(event + ".data", "other")
        a.work(1)
        if event == "failed":
            os.kill(int(read("/run/libvirt/qemu/other.pid")), signal.SIGKILL)
        began = time.monotonic()
        status, err = a.end()
        # On failure: did libvirt's word come late, or not at all?
        check(status == 0 and text in err, "%s: status %d: %s; ended after %.1f s, libvirt says now: %s" %
              (event, status, err, time.monotonic() - began, virsh("domstate", "--reason", "other").out.strip()))
        check(status or e2e.summary(event + ".data")["domain"]["event"] == event, "event " + event)
        virsh("destroy", "other")


def refused(text, *argv, status=1):
    p = e2e.kvmprof("attach", "-o", "refused.data", *argv)
    lines = p.err.strip().split("\n")
    check(p.status == status and len(lines) == 1 and text in lines[0] and not p.out,
          "attach %s: status %d: %s" % (argv, p.status, p.err.strip()))
    check(not os.path.exists("refused.data"), "a profile of nothing")


def wrong():
    refused("has none of that name, UUID or id", "no-such-domain")
    refused("has none of that name, UUID or id", str(uuid.uuid4()))
    refused("nor has a libvirt domain this id or name", "999999")
    refused("has none of that name", "-c", "qemu:///system", "999999")
    refused("expected a PID", "--pid", NAME)
    refused("another machine's: run kvmprof there", "-c", "qemu+ssh://root@example.org/system", NAME)
    refused("another machine's: run kvmprof there", "-c", "qemu://example.org/system", NAME)
    refused("libvirt: ", "-c", "nonsense:///x", NAME)
    refused("give one machine only", "--pid", "1", "--domain", NAME, status=2)
    p = e2e.kvmprof("list", "--domains", "-c", "qemu+ssh://example.org/system")
    check(p.status == 1 and "run kvmprof there" in p.err, "list: %s" % p.err)


def definitions():
    """kvmprof's own machine from a definition: its kernel, its disks, and what it lacks."""
    for name in ("first,1.img", "second.img"):
        with open(name, "wb") as f:
            f.truncate(1 << 20)
    here = os.getcwd()
    extra = ("<interface type='user'/>"
             "<disk type='file'><source file='%s/second.img'/><target dev='vdb' bus='virtio'/>"
             "<readonly/></disk>"
             "<disk type='file'><source file='%s/first,1.img'/><target dev='vda' bus='virtio'/>"
             "<serial>S1</serial></disk>"
             "<disk type='file'><driver name='qemu' type='dmg'/><source file='/none.dmg'/>"
             "<target dev='vdc' bus='virtio'/></disk>"
             "<disk type='file' device='cdrom'><target dev='hda' bus='ide'/><readonly/></disk>" %
             (here, here))
    put("own.xml", libvirt_host.domain_xml("own", DEMO, "seconds=1", console("own"), extra=extra))
    check(virsh("define", "own.xml").status == 0, "define own.xml")
    for argv in (["--domain", "own.xml"], ["--domain", "own", "--connect", "qemu:///system"]):
        p = e2e.kvmprof("run", "-o", "own.data", *argv)
        check(p.status == 0 and "seconds 1" in p.out, "run %s: status %d: %s" % (argv, p.status, p.err))
        for part in ("disk vdc (dmg /none.dmg: an unknown format)", "disk hda", "interface (user)",
                     "cpu (host-passthrough)", "disk vda (what is written stays in memory)"):
            check(part in p.err, "run %s: %s is not listed:\n%s" % (argv, part, p.err))
        check("disk vdb (" not in p.err, "a disk that it has is listed:\n" + p.err)
        disks = [d["path"] for d in e2e.summary("own.data")["disks"]]
        check(disks == [here + "/first,1.img", here + "/second.img"], "its disks: %s" % disks)
    check(virsh("undefine", "own").status == 0, "undefine")


def lost_daemon(host):
    """libvirtd restarts now and then; the machine and the profile go on."""
    a = Attach("daemon.data", "--freq", 500, NAME)
    a.work(1)
    host.restart_daemon()
    time.sleep(1)
    check(a.process.poll() is None, "the profile has ended with the daemon")
    status, err = a.end(signal.SIGINT)
    check(status == 0 and "connection to libvirt's daemon was lost" in err, "status %d: %s" % (status, err))


def late_daemon(host):
    """What became of the machine is known in the end, however long the daemon was away."""
    start("other", 600)
    a = Attach("late.data", "other")
    a.work(1)
    daemon = host.daemons[-1]
    daemon.send_signal(signal.SIGSTOP)
    try:
        os.kill(int(read("/run/libvirt/qemu/other.pid")), signal.SIGKILL)
        time.sleep(13)
    finally:
        daemon.send_signal(signal.SIGCONT)
    status, err = a.end()
    check(status == 0 and "the domain's VMM has failed" in err, "a late daemon: status %d: %s" % (status, err))
    check(status or e2e.summary("late.data")["domain"]["event"] == "failed", "a late daemon: event")


def large():
    """Where KVM can be asked all of it is known; else what is above 2 GiB is said to be unknown."""
    start(NAME, 600, mib=LARGE_MIB)
    s = attach_briefly("name", NAME)
    if not s:
        return "no profile"
    a = s["attach"]
    told = attached.takes_programs()
    check(a["memory_from"] == ("kvm" if told else "page-tables") and a["memory_partial"] is not told,
          "memory: %s" % a)
    check(a["memory"] >= (LARGE_MIB if told else 2048) << 20, "%d bytes are known" % a["memory"])
    return "%d MiB of a domain of %d MiB, from %s" % (a["memory"] >> 20, LARGE_MIB, a["memory_from"])


if e2e.EXTRA[:1] == ["large"]:
    with libvirt_host.Host():
        figures = large()
    e2e.finish(figures)
with libvirt_host.Host() as host:
    doubt, profile = e2e.quietest(true_shares, demo_judge.BUSY)
    worst = demo_judge.judge("libvirt", *profile, POINTS, doubt)
    ident = start(NAME, 600)
    by_name_uuid_and_id(ident)
    listed(ident)
    wrong()
    definitions()
    lost_daemon(host)
    if e2e.EXTRA == ["all"]:
        late_daemon(host)
    ends()
    check("FAULT" not in read(console(NAME)).upper(), "the guest faulted")
e2e.finish("worst share off by %.2f points" % worst)
