#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_attach.py KVMPROF SCRATCH [ROUNDS [PAIRS]]: what attaching costs, against QEMU's own interfaces.

One guest in QEMU under KVM turns a loop in ring 3, 20 calls deep, and counts its turns (the demo's
mode=gaps), in memory that is shared with us, so that its progress is seen from outside. For each way of
sampling in each round, PAIRS of windows alternate: in one nobody samples, in the next somebody does. They take
a quarter of a second; four times as long at 99 Hz, where a sample is little among them. Prints medians over
all pairs with (quarter to quarter), and ratios; asserts nothing.

  lost     guest time for each sample: by the gaps of more than 1.5 us between two looks of the guest at its
           clock, what there is more of them than in the windows before and after. Gaps of more than 5 ms are left
           out: then somebody else had the processor. QEMU holds the
           guest's clock while a machine is stopped, it seems: a gdbstub takes more than this tells
  slow     what the count lacks against those windows, in percent, without waiting for a processor: all that
           sampling costs the guest, caches too, and a busy machine's noise
  held     time in which the vCPU's thread neither ran nor waited for a processor: it stood. QEMU's
           monitor has that thread work for it instead, so this is not for comparisons
  CPU      of the profiler (with its Python where it is one), and of QEMU's main thread

Whole samples: registers and 16 KiB of stack
  attach      kvmprof attach PID: with names, into a profile; by BPF where the host can
  attach ptrace  with --technique ptrace: the thread is stopped
  --gdb       kvmprof attach --gdb: the same through the gdbstub
  monitor+    `info registers` and `memsave` by QEMU's monitor socket. The guest is not stopped between the two,
              as it would have to be for a stack that belongs to the registers: that would cost more
  gdbstub+    break, registers, stack, continue: no name
Registers alone
  attach regs kvmprof attach PID --stack-size 256: as little of the stack as it takes; also by ptrace
  monitor     `info registers` through QEMU's monitor socket, as a person types it (HMP)
  qmp         the same in QMP's human-monitor-command
  gdbstub     break, registers, continue
"""

import glob
import json
import mmap
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH [ROUNDS [PAIRS]]" % sys.argv[0])
kvmprof = os.path.abspath(sys.argv[1])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
pairs = int(sys.argv[4]) if len(sys.argv) > 4 else 12
SECONDS = {99: 1.0, 997: 0.25}
try:
    os.setpriority(os.PRIO_PROCESS, 0, -15)  # for QEMU and profilers alike: others disturb less
except PermissionError:
    pass
if not os.access("/dev/kvm", os.R_OK | os.W_OK) or not shutil.which("qemu-system-x86_64"):
    print("bench_attach: skipped: no access to /dev/kvm, or no qemu-system-x86_64")
    sys.exit(0)
os.makedirs(sys.argv[2], exist_ok=True)
scratch = tempfile.mkdtemp(prefix="bench_attach.", dir=sys.argv[2])
demo = os.path.join(os.path.dirname(kvmprof), "guest", "demo.elf")

RAM = 128 << 20
STACK = 16384  # bytes of a whole sample, as attach copies them
# In union user_box of guest/demo/demo.h: cycles from which on a gap is noted, turns, number of gaps, the last of them.
THRESHOLD, ITERATIONS, GAPS, GAP, KEPT = 24, 40, 48, 56, 512
SHORT, LONG = 1.5, 5000  # us, of gaps


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Monitor:
    """info registers, through the monitor that people use: it echoes each letter."""

    def __init__(self):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(os.path.join(scratch, "monitor"))
        self.prompt()

    def prompt(self):
        got = b""
        while not got.endswith(b"(qemu) "):
            part = self.s.recv(65536)
            assert part, "the monitor has gone"
            got += part
        return got

    def sample(self):
        self.s.sendall(b"info registers\n")
        got = self.prompt()
        assert b"RIP=" in got
        return got

    def close(self):
        self.s.close()


class MonitorWhole(Monitor):
    """And a stack, by the cheapest way that there is: to a file, which is read."""

    def sample(self):
        rsp = int(re.search(rb"RSP=([0-9a-f]+)", super().sample()).group(1), 16)
        path = os.path.join(scratch, "stack")
        self.s.sendall(b"memsave 0x%x %d \"%s\"\n" % (rsp, STACK, path.encode()))
        self.prompt()
        with open(path, "rb") as f:
            assert len(f.read()) == STACK


class Qmp:
    """The same, by QMP."""

    def __init__(self):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(os.path.join(scratch, "qmp"))
        self.f = self.s.makefile("rb")
        self.f.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.s.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self.f.readline())
            if "return" in answer:
                return answer["return"]

    def sample(self):
        assert "RIP=" in self.ask("human-monitor-command", **{"command-line": "info registers"})

    def close(self):
        self.f.close()
        self.s.close()


class Gdb:
    """Break, registers, continue."""

    def __init__(self):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""
        self.tell("qSupported:xmlRegisters=i386")
        while b"PacketSize" not in self.packet():
            pass
        self.tell("vCont;c")

    def tell(self, command):
        self.s.sendall(b"+$%s#%02x" % (command.encode(), sum(command.encode()) & 255))

    def packet(self):
        while True:
            begin = self.left.find(b"$")
            end = self.left.find(b"#", begin) if begin >= 0 else -1
            if end >= 0 and len(self.left) >= end + 3:
                data, self.left = self.left[begin + 1:end], self.left[end + 3:]
                return data
            part = self.s.recv(65536)
            assert part, "the gdbstub has gone"
            self.left += part

    def more(self, registers):
        pass

    def sample(self):
        self.s.sendall(b"\x03")
        assert self.packet()[:1] == b"T"
        self.tell("g")
        registers = self.packet()
        assert len(registers) > 300
        self.more(registers)
        self.tell("vCont;c")

    def close(self):
        self.s.sendall(b"\x03")
        self.packet()
        self.tell("D")
        self.packet()
        self.s.close()


class GdbWhole(Gdb):
    """And the stack at RSP, the eighth register, in pieces that its packets have room for."""

    def more(self, registers):
        rsp, = struct.unpack("<Q", bytes.fromhex(registers[7 * 16:8 * 16].decode()))
        for off in range(0, STACK, 1024):
            self.tell("m%x,400" % (rsp + off))
            assert len(self.packet()) == 2048


class Poll:
    """One of these at a rate, from this process."""

    def __init__(self, way, hz):
        self.way, self.hz, self.n, self.stop = way(), hz, 0, False
        self.on, self.idle = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        due = time.monotonic()
        while not self.stop:
            if not self.on.is_set():
                self.idle.set()
                self.on.wait()
                due = time.monotonic()
                continue
            due = max(due + 1 / self.hz, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
            self.way.sample()
            self.n += 1

    def switch(self, on):
        if on:
            self.idle.clear()
            self.on.set()
        else:
            self.on.clear()
            self.idle.wait()

    def samples(self):
        return self.n

    def cpu(self):
        return time.process_time()

    def end(self):
        self.stop = True
        self.on.set()
        self.thread.join()
        self.way.close()


def on_cpu(pattern):
    total = 0
    for path in glob.glob(pattern):
        try:
            with open(path, encoding="ascii") as f:
                total += int(f.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


class Attach:
    def __init__(self, hz, *target):
        self.socket = os.path.join(scratch, "ctl")
        self.p = subprocess.Popen(
            [kvmprof, "attach", "--image", demo, "-F", str(hz), "--no-buildid-cache", "--control",
             self.socket, "-o", os.path.join(scratch, "perf.data"), *target],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=dict(os.environ, HOME=scratch))
        until = time.monotonic() + 30
        while not os.path.exists(self.socket) or not self.samples():
            assert time.monotonic() < until and self.p.poll() is None, self.p.communicate()[1]
            time.sleep(0.05)
        self.switch(False)

    def ask(self, *command):
        for _ in range(20):
            p = subprocess.run([kvmprof, "ctl", "--control", self.socket, "--json", *command],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if p.returncode == 0:
                return json.loads(p.stdout)
            time.sleep(0.1)  # busy, or about to listen
        raise SystemExit("bench_attach: ctl %s: %s" % (command, p.stderr))

    def switch(self, on):
        self.ask("arm" if on else "disarm", "wall")

    def samples(self):
        s = self.ask("status")
        return s["samples"]

    def cpu(self):
        return on_cpu("/proc/%d/task/*/schedstat" % self.p.pid)

    def end(self):
        self.p.send_signal(signal.SIGINT)
        self.p.communicate(timeout=60)


ram = os.path.join(scratch, "ram")
console = os.path.join(scratch, "console")
port = free_port()
qemu = subprocess.Popen(
    ["qemu-system-x86_64", "-name", "bench,debug-threads=on", "-accel", "kvm", "-cpu", "host,-arch-capabilities",
     "-object", "memory-backend-file,id=ram,size=%d,mem-path=%s,share=on" % (RAM, ram),
     "-M", "microvm,acpi=off,memory-backend=ram", "-m", str(RAM >> 20), "-display", "none",
     "-nodefaults", "-no-reboot", "-serial", "file:" + console, "-kernel", demo, "-append", "mode=gaps",
     "-qmp", "unix:%s,server=on,wait=off" % os.path.join(scratch, "qmp"),
     "-monitor", "unix:%s,server=on,wait=off" % os.path.join(scratch, "monitor"),
     "-gdb", "tcp:127.0.0.1:%d" % port], stdin=subprocess.DEVNULL)

WAYS = {}
for hz in (99, 997):
    for name, begin in {
            "attach": lambda hz: Attach(hz, str(qemu.pid)),
            "attach ptrace": lambda hz: Attach(hz, "--technique", "ptrace", str(qemu.pid)),
            "monitor+": lambda hz: Poll(MonitorWhole, hz),
            "gdbstub+": lambda hz: Poll(GdbWhole, hz),
            "attach regs": lambda hz: Attach(hz, "--stack-size", "256", str(qemu.pid)),
            "attach regs ptrace": lambda hz: Attach(hz, "--stack-size", "256", "--technique", "ptrace", str(qemu.pid)),
            "monitor": lambda hz: Poll(Monitor, hz),
            "qmp": lambda hz: Poll(Qmp, hz),
            "gdbstub": lambda hz: Poll(Gdb, hz)}.items():
        WAYS["%s, %d Hz" % (name, hz)] = hz, lambda begin=begin, hz=hz: begin(hz)
WAYS["--gdb, 99 Hz"] = 99, lambda: Attach(99, "--gdb", "127.0.0.1:%d" % port)


def vcpu_times():
    """Seconds that its thread has run, and has waited for a processor."""
    for path in glob.glob("/proc/%d/task/*/comm" % qemu.pid):
        with open(path, encoding="ascii") as f:
            if not f.read().startswith("CPU 0/"):
                continue
        with open(os.path.join(os.path.dirname(path), "schedstat"), encoding="ascii") as f:
            run, wait = f.read().split()[:2]
        return int(run) / 1e9, int(wait) / 1e9
    raise SystemExit("bench_attach: QEMU has no thread of that name")


class Guest:
    """What the guest notes in its memory."""

    def __init__(self, memory):
        self.memory = memory
        until = time.monotonic() + 60
        while not re.search(r"gaps at (\d+)\s", self.said()):
            assert time.monotonic() < until and qemu.poll() is None, "the guest does not start"
            time.sleep(0.1)
        self.at = int(re.search(r"gaps at (\d+)\s", self.said()).group(1))
        self.cycles_us = int(re.search(r"tsc (\d+) kHz", self.said()).group(1)) / 1000
        struct.pack_into("<Q", memory, self.at + THRESHOLD, int(SHORT * self.cycles_us))
        while not self.turns():
            time.sleep(0.1)

    @staticmethod
    def said():
        try:
            with open(console, encoding="ascii", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def turns(self):
        return struct.unpack_from("<Q", self.memory, self.at + ITERATIONS)[0]

    def gaps(self):
        return struct.unpack_from("<Q", self.memory, self.at + GAPS)[0]

    def gap_time(self, first, end):
        """Seconds that these took, of those that are still there."""
        total = 0
        for i in range(max(first, end - KEPT + 1), end):
            us = struct.unpack_from("<I", self.memory, self.at + GAP + 8 * (i % KEPT) + 4)[0] / self.cycles_us
            total += us if us < LONG else 0
        return total / 1e6


def window(guest, seconds):
    """Turns, seconds on a processor, seconds not waiting for one, seconds in gaps."""
    t0, (r0, w0), n0 = time.monotonic(), vcpu_times(), guest.turns()
    gap, seen = 0, guest.gaps()
    while time.monotonic() < t0 + seconds:
        time.sleep(0.05)
        now = guest.gaps()
        gap += guest.gap_time(seen, now)
        seen = now
    n1, (r1, w1), t1 = guest.turns(), vcpu_times(), time.monotonic()
    return n1 - n0, r1 - r0, t1 - t0 - (w1 - w0), gap / (r1 - r0)


def measure(guest, hz, begin):
    seconds = SECONDS[hz]
    main = "/proc/%d/task/%d/schedstat" % (qemu.pid, qemu.pid)
    way, rows = begin(), []
    try:
        n0, run0, _, gap0 = window(guest, seconds)
        for _ in range(pairs):
            before = way.samples()
            cpu, vmm = way.cpu(), on_cpu(main)
            way.switch(True)
            count, run, could, gap = window(guest, seconds)
            way.switch(False)
            cpu, vmm = way.cpu() - cpu, on_cpu(main) - vmm
            samples = way.samples() - before
            n1, run1, _, gap1 = window(guest, seconds)
            pace, n0, run0 = (run0 + run1) / ((n0 + n1) or 1), n1, run1
            usual, gap0 = (gap0 + gap1) / 2, gap1
            if not samples or not pace:
                continue
            lost = (gap - usual) * run
            slow = could - count * pace
            rows.append({"held": (could - run) / samples * 1e6, "lost": lost / samples * 1e6,
                         "slow": 100 * slow / could, "n": samples,
                         "cpu": cpu / samples * 1e6, "vmm": vmm / samples * 1e6})
    finally:
        way.end()
    return rows


def spread(values, form):
    q = statistics.quantiles(values, n=4)
    return (form + " (" + form + " to " + form + ")") % (statistics.median(values), q[0], q[2])


try:
    until = time.monotonic() + 60
    while not os.path.exists(ram) or os.path.getsize(ram) < RAM:
        assert time.monotonic() < until and qemu.poll() is None, "QEMU does not start"
        time.sleep(0.1)
    with open(ram, "r+b") as f, mmap.mmap(f.fileno(), RAM) as memory:
        guest = Guest(memory)
        got = {name: [] for name in WAYS}
        for _ in range(rounds):
            for name, (hz, begin) in WAYS.items():
                got[name].append(measure(guest, hz, begin))
finally:
    qemu.kill()
    qemu.wait()
    shutil.rmtree(scratch)

def median(name, what, which=None):
    rows = [r for i, rs in enumerate(got[name]) for r in rs if which is None or i == which]
    return statistics.median(r[what] for r in rows)


print("a guest that counts in ring 3, %d rounds of %d pairs of windows of %s s, load of the machine %.1f" %
      (rounds, pairs, ", ".join("%g (%d Hz)" % (s, hz) for hz, s in SECONDS.items()), os.getloadavg()[0]))
print("  %-26s %7s  %-26s %-24s %-24s %s" % ("", "samples", "guest time lost, us", "slow-down, %",
                                            "held, us", "CPU: ours, QEMU's, us"))
for name, rounds_of in got.items():
    rows = [r for rs in rounds_of for r in rs]
    if len(rows) < 2:
        print("  %-26s nothing to be said" % name)
        continue
    print("  %-26s %7d  %-26s %-24s %-24s %.0f, %.0f" % (
        name, sum(r["n"] for r in rows), spread([r["lost"] for r in rows], "%.1f"),
        spread([r["slow"] for r in rows], "%.2f"), spread([r["held"] for r in rows], "%.0f"),
        median(name, "cpu"), median(name, "vmm")))


def ratio(a, b, what):
    """How many times what b costs; '-' where that is less than nothing, which is noise."""
    def one(which):
        try:
            x, y = median(a, what, which), median(b, what, which)
        except statistics.StatisticsError:
            return "-"
        return "%.1f" % (x / y) if x > 0 and y > 0 else "-"
    return "%s (rounds: %s)" % (one(None), ", ".join(one(i) for i in range(rounds)))


for rows in (r for rounds_of in got.values() for rs in rounds_of for r in rs):
    rows["all_cpu"] = rows["cpu"] + rows["vmm"]
for what, ours, others in (("whole samples", "attach", ("monitor+", "gdbstub+", "--gdb", "attach ptrace")),
                           ("registers alone", "attach regs", ("monitor", "qmp", "gdbstub", "attach regs ptrace")),
                           ("registers, and attach's whole sample,", "attach", ("monitor", "qmp", "gdbstub"))):
    for hz in ("99 Hz", "997 Hz"):
        for other in others:
            a, b = "%s, %s" % (other, hz), "%s, %s" % (ours, hz)
            if a in got:
                print("  %s at %-6s by %-8s cost, in times one of %s: the guest %s; processors of others %s" % (
                    what, hz, other, ours, ratio(a, b, "lost"), ratio(a, b, "all_cpu")))
