#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 8 s: quick
# tests: slow, at most 1200 s
# tests: not svm, threads
"""Through the gdbstub of a real QEMU: names, stacks and shares are right, and it runs on.

A Linux that is interpreted (TCG: no KVM) is attached to without an image: names come out of
its memory, its stacks are whole, and its console goes on afterwards. Where there is KVM, the
demo guest's shares are held against what it tells of itself; then the profiler is killed at
random moments, in which the machine stands or not: it runs afterwards.

quick: the demo guest alone, for a shorter time, and three kills.
"""

import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time

import demo_judge
import e2e
import qemu
from e2e import check, say

# Some thousand samples, and the truth counts time in which the machine stood.
POINTS = 4
SECONDS = 20
KILLS = 25
QUICK = "quick" in e2e.EXTRA
if QUICK:
    POINTS, SECONDS, KILLS = 8, 4, 3

e2e.need_tool("qemu-system-x86_64")
random.seed(6)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Debugged(qemu.Qemu):
    def __init__(self, name, *args):
        self.mon = os.path.abspath(name + ".monitor")
        self.gdb = "127.0.0.1:%d" % free_port()
        super().__init__(name, "-gdb", "tcp:" + self.gdb, "-monitor",
                         "unix:%s,server=on,wait=off" % self.mon, *args)

    def status(self):
        """What QEMU's own monitor says: running, paused."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(self.mon)
            got = b""
            s.sendall(b"info status\n")
            while b"VM status: " not in got or b"\n" not in got.split(b"VM status: ", 1)[1]:
                part = s.recv(4096)
                if not part:
                    break
                got += part
        return got.rsplit(b"VM status: ", 1)[-1].split(b"\n")[0].decode().strip()

    def is_running_within(self, seconds):
        until = time.monotonic() + seconds
        while self.status() != "running":
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True


def attach(q, *args):
    return e2e.kvmprof("attach", "--gdb", q.gdb, "--no-buildid-cache", *args, timeout=200)


def usage():
    nobody = "127.0.0.1:%d" % free_port()
    for args, status, text in (
            (["--gdb", nobody, "1"], 2, "give one of a PID, a domain and --gdb"),
            (["--gdb", nobody], 1, "cannot connect"),
            (["--gdb", "nonsense"], 1, "HOST:PORT"),
            (["--gdb"], 2, "--gdb")):
        p = e2e.kvmprof("attach", *args)
        check(p.status == status and text in p.err and p.err.count("\n") == 1,
              "attach %s: status %d: %s" % (args, p.status, p.err))


def linked_high_only(vmlinux, path):
    """A copy whose p_paddr is p_vaddr, as vmlinux-to-elf writes it: no loader could place it, but its names are right."""
    with open(vmlinux, "rb") as f:
        elf = bytearray(f.read())
    at, n = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    for phdr in range(at, at + 56 * n, 56):
        elf[phdr + 24:phdr + 32] = elf[phdr + 16:phdr + 24]
    with open(path, "wb") as f:
        f.write(elf)
    return path


def memory_mode(q):
    """What the next debugger's reads are of: "0": virtual addresses."""
    host, port = q.gdb.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 10) as s:
        for text in (b"qqemu.PhyMemMode", b"D"):
            s.sendall(b"$%s#%02x" % (text, sum(text) & 255))
            answer = b""
            while not re.search(rb"\$[^#]*#..", answer):
                answer += s.recv(4096)
            s.sendall(b"+")
            if text != b"D":
                mode = re.search(rb"\$([^#]*)#", answer)[1].decode()
    return mode


def interpreted_linux():
    tiny = e2e.built_kernel("tiny")
    with open(os.path.join(tiny, "System.map"), encoding="ascii") as f:
        known = {line.split()[2] for line in f}
    q = Debugged("linux", "-accel", "tcg", "-M", "pc", "-m", "128",
             "-kernel", os.path.join(tiny, "bzImage"), "-initrd", e2e.INITRAMFS,
             "-append", "console=ttyS0 panic=-1 work=400")
    try:
        if not q.wait_for("phase getpid", 300):
            return
        p = attach(q, "--duration", "8", "-o", "linux.data")
        check(p.status == 0, "attach: status %d: %s" % (p.status, p.err))
        check("through a gdbstub" in p.err and "stops the whole machine" in p.err,
              "the summary does not say how slow this is: " + p.err)
        check(q.status() == "running", "after attach the machine is " + q.status())
        mode = memory_mode(q)
        check(mode == "0", "after attach a debugger's memory mode is " + mode)
        p = attach(q, "--duration", "2", "-o", "high.data", "--image",
                   linked_high_only(os.path.join(tiny, "vmlinux"), "high-vmlinux"))
        check(p.status == 0, "attach --image with p_paddr = p_vaddr: status %d: %s" % (p.status, p.err))
        before = len(q.console())
        until = time.monotonic() + 300
        while len(q.console()) == before and time.monotonic() < until:
            time.sleep(0.1)
        check(len(q.console()) > before, "the console does not go on")
        check("failures" not in q.console(), "/init counts failures: " + q.console()[-500:])
    finally:
        q.end()
    s = e2e.summary("linux.data")
    # What called rest_init() is code of the boot that the kernel has given back: below it
    # nothing can be checked. Such are the stacks of the idle task, and they only.
    idle = sum(b["count"] for b in s["broken_stacks"] if b["symbol"] == "rest_init")
    kernel = sum(s["kernel_stack_end"].values()) - idle
    whole = s["kernel_stack_end"].get("root", 0) + s["kernel_stack_end"].get("user-entry", 0)
    say("Linux under TCG: %d samples, %d of %d kernel stacks whole, %s" %
        (s["samples"], whole, kernel, s["attach"]))
    check(kernel >= 50, "only %d samples in the kernel" % kernel)
    check(whole >= 0.95 * kernel, "kernel stacks: %s" % s["kernel_stack_end"])
    check(s["unsymbolized"] == 0, "%d samples without a name" % s["unsymbolized"])
    check(s["freq_hz"] == 49, "by default %s Hz" % s["freq_hz"])
    check(s["attach"]["stops"] >= s["samples"], "stops: %s" % s["attach"])

    high = e2e.summary("high.data")
    check(high["samples"] > 10 and high["unsymbolized"] == 0 and
          high["kernel_stack_end"].get("root", 0) + high["kernel_stack_end"].get("user-entry", 0) > 0,
          "p_paddr = p_vaddr: %d samples, %d without a name, %s" %
          (high["samples"], high["unsymbolized"], high["kernel_stack_end"]))
    rows = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "-i", "linux.data").out)["symbols"]
    names = {x["symbol"] for x in rows if "kernel.kallsyms" in x["dso"]}
    check(len(names) > 20 and names <= known,
          "names that System.map does not have: %s" % sorted(names - known))


def demo(name, seconds):
    return Debugged(name, *qemu.DEMO, "seconds=%d" % seconds)


IMAGE = os.path.join(e2e.BUILD, "guest", "demo.elf")


def true_shares():
    q = demo("shares", SECONDS)
    try:
        q.wait_for("demo: tsc", 60)
        p = subprocess.Popen(
            [e2e.KVMPROF, "attach", "--gdb", q.gdb, "--image", IMAGE, "-F", "199",
             "--no-buildid-cache", "-o", "demo.data"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        q.wait_for("truth ", SECONDS * 6)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=60)[1].decode()
        check(p.returncode == 0, "attach: status %d\n%s" % (p.returncode, err))
        q.wait_for("demo: done", 60)
        truth, outside = e2e.parse_truth(q.console())
    finally:
        q.end()
    s = e2e.summary("demo.data")
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "demo.data").out)
    check(s["samples"] > SECONDS * 20, "only %d samples" % s["samples"])
    say("demo: %d samples, %s" % (s["samples"], s["attach"]))
    return demo_judge.judge("behind a gdbstub", samples, truth, outside, POINTS,
                            demo_judge.doubt(samples, truth, 199))


def killed():
    q = demo("killed", 600)
    try:
        q.wait_for("demo: start", 60)
        for i in range(KILLS):
            p = subprocess.Popen(
                [e2e.KVMPROF, "attach", "--gdb", q.gdb, "--image", IMAGE, "-F", "499",
                 "--no-buildid-cache", "-o", "killed.data"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.4))
            p.kill()
            p.wait()
            if not check(q.is_running_within(10), "kill %d: it is %s" % (i, q.status())):
                return
        # And it can be attached to as before.
        p = attach(q, "--image", IMAGE, "--duration", "1", "-o", "again.data")
        check(p.status == 0, "no more attaching after the kills: " + p.err)
        # It ends: so does the profile, in order.
        p = subprocess.Popen([e2e.KVMPROF, "attach", "--gdb", q.gdb, "--image", IMAGE,
                              "--no-buildid-cache", "-o", "stopped.data"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        time.sleep(1.5)
        q.process.kill()
        err = p.communicate(timeout=60)[1].decode()
        check(p.returncode == 0 and "the machine has ended" in err,
              "QEMU has gone: status %d: %s" % (p.returncode, err))
    finally:
        q.end()


usage()
if QUICK:
    e2e.need_kvm()
else:
    interpreted_linux()
worst = None
if os.access("/dev/kvm", os.R_OK | os.W_OK):
    worst = true_shares()
    killed()
e2e.finish("worst share off by %s points, %d kills" %
           ("-" if worst is None else "%.2f" % worst, KILLS if worst is not None else 0))
