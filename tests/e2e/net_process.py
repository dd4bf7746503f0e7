#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: not svm, network
"""net_process.py KVMPROF SCRATCH: libslirp runs in a process of its own, which has no file but a copy of the host's
resolv.conf, no descriptor of the run and no rights; its end is told in one line, and the guest runs on."""

import glob
import os
import signal
import time

import e2e
from e2e import check, say


def child_of(pid):
    """The process of the network, once it is bound."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            for child in map(int, f.read().split()):
                if status(child).get("Name") == "net-slirp" and status(child)["Seccomp"] == "2":
                    return child
        time.sleep(0.02)
    return None


def status(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def look_at(run, child):
    s = status(child)
    check(s["NoNewPrivs"] == "1" and int(s["CapEff"], 16) == int(s["CapPrm"], 16) == 0, "rights: %s" % s)
    files = {int(fd): os.readlink("/proc/%d/fd/%s" % (child, fd)) for fd in os.listdir("/proc/%d/fd" % child)}
    check(sorted(files) == [0, 1, 2, 3, 4] and files[3].startswith("socket:") and files[4].startswith("pipe:"),
          "descriptors: %s" % files)
    with open("/proc/%d/maps" % child, encoding="utf-8") as f:
        maps = f.read()
    check("libslirp" in maps and "kvm-vcpu" not in maps, "mappings: %s" % [x for x in maps.split("\n") if "kvm" in x or "slirp" in x])
    with open("/proc/%d/maps" % run, encoding="utf-8") as f:
        check("libslirp" not in f.read(), "the run has loaded libslirp")
    if "mount" not in e2e.kvmprof("check").out:
        e2e.left_out("no mount namespaces here")
        return
    root = "/proc/%d/root" % child
    found = [os.path.join(top, name)[len(root):] for top, dirs, names in os.walk(root) for name in dirs + names]
    wanted = ["/etc", "/etc/resolv.conf"] if os.path.exists("/etc/resolv.conf") else []
    check(sorted(found) == wanted, "files: %s" % found)
    if wanted:
        with open("/etc/resolv.conf", "rb") as f, open(root + "/etc/resolv.conf", "rb") as g:
            check(f.read() == g.read(), "another resolv.conf")


e2e.need_kvm()
if not glob.glob("/usr/lib/*/libslirp.so.0"):
    e2e.skip("no libslirp0 here")
boot = e2e.Boot("--net", "user", "-o", "net.data", "--append", "seconds=3")
child = child_of(boot.process.pid)
if check(child, "no process: " + boot.err) and check(boot.wait_for("demo: start", 60), "no guest: " + boot.err):
    look_at(boot.process.pid, child)
    os.kill(child, signal.SIGKILL)
boot.wait(60)
lines = [line for line in boot.err.split("\n") if "--net user" in line]
check(boot.status == 0 and len(lines) == 1 and "was ended by signal 9" in lines[0], "status %d: %s" % (boot.status, boot.err))
check(e2e.summary("net.data")["samples"] > 0, "no samples")
say(lines[0] if lines else "")
e2e.finish()
