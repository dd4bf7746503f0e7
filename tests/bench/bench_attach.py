#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_attach.py KVMPROF SCRATCH [ROUNDS [PAIRS]]: what attaching costs, against QEMU's own interfaces.

One guest in QEMU under KVM counts in ring 3 (the demo guest, one function of which is replaced by
a loop that increments a word). That word lies in memory shared with us, so its progress is seen
from outside. For each way of sampling in each round, PAIRS of short windows alternate: in one
nobody samples, in the other somebody does. Prints medians over all pairs with (quarter to quarter),
and ratios; asserts nothing.

  held     time in which the vCPU's thread neither ran nor waited for a processor: it stood. QEMU's
           monitor has that thread work for it instead, so this is not for comparisons
  lost     by the counter: what it lacks against the window before, without waiting for a processor;
           all that a sample costs the guest, and a busy machine's noise
  CPU      of the profiler (with its Python where it is one), and of QEMU's main thread

  attach      kvmprof attach PID: registers and stacks, with names, into a profile
  --gdb       kvmprof attach --gdb: the same through the gdbstub
  monitor     `info registers` through QEMU's monitor socket, as a person types it (HMP)
  qmp         the same in QMP's human-monitor-command
  gdbstub     break, registers, continue: no stack and no name
"""

import glob
import json
import mmap
import os
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
    sys.exit("usage: %s KVMPROF SCRATCH [ROUNDS [SECONDS]]" % sys.argv[0])
kvmprof = os.path.abspath(sys.argv[1])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
pairs = int(sys.argv[4]) if len(sys.argv) > 4 else 12
SECONDS = 0.25
if not os.access("/dev/kvm", os.R_OK | os.W_OK) or not shutil.which("qemu-system-x86_64"):
    print("bench_attach: skipped: no access to /dev/kvm, or no qemu-system-x86_64")
    sys.exit(0)
os.makedirs(sys.argv[2], exist_ok=True)
scratch = tempfile.mkdtemp(prefix="bench_attach.", dir=sys.argv[2])
demo = os.path.join(os.path.dirname(kvmprof), "guest", "demo.elf")

COUNTER = 0x404000  # the lowest word of its user stack, which nobody reaches
LOOP = b"\x48\xff\x04\x25" + struct.pack("<I", COUNTER) + b"\xeb\xf6"  # 1: incq COUNTER; jmp 1b
RAM = 128 << 20


def patched_guest(path):
    """The demo guest with that loop in user_leaf_long; returns the counter's physical address."""
    with open(demo, "rb") as f:
        data = bytearray(f.read())
    p = subprocess.run(["nm", demo], stdout=subprocess.PIPE, check=True, text=True)
    leaf = next(int(x.split()[0], 16) for x in p.stdout.split("\n") if x.endswith(" user_leaf_long"))
    phoff, = struct.unpack_from("<Q", data, 32)
    counter = None
    for i in range(struct.unpack_from("<H", data, 56)[0]):
        kind, _, off, va, pa, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)
        if kind == 1 and va <= leaf < va + filesz:
            data[off + leaf - va:off + leaf - va + len(LOOP)] = LOOP
        if kind == 1 and va <= COUNTER < va + memsz:
            counter = pa + COUNTER - va
    with open(path, "wb") as f:
        f.write(data)
    return counter


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
        assert b"RIP=" in self.prompt()

    def close(self):
        self.s.close()


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

    def sample(self):
        self.s.sendall(b"\x03")
        assert self.packet()[:1] == b"T"
        self.tell("g")
        assert len(self.packet()) > 300
        self.tell("vCont;c")

    def close(self):
        self.s.sendall(b"\x03")
        self.packet()
        self.tell("D")
        self.packet()
        self.s.close()


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
        p = subprocess.run([kvmprof, "ctl", "--control", self.socket, "--json", *command],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return json.loads(p.stdout) if p.returncode == 0 else None

    def switch(self, on):
        self.ask("arm" if on else "disarm", "wall")

    def samples(self):
        s = self.ask("status")
        return s and s["samples"]

    def cpu(self):
        return on_cpu("/proc/%d/task/*/schedstat" % self.p.pid)

    def end(self):
        self.p.send_signal(signal.SIGINT)
        self.p.communicate(timeout=60)


guest = os.path.join(scratch, "guest.elf")
at = patched_guest(guest)
ram = os.path.join(scratch, "ram")
port = free_port()
qemu = subprocess.Popen(
    ["qemu-system-x86_64", "-name", "bench,debug-threads=on", "-accel", "kvm", "-cpu", "host,-arch-capabilities",
     "-object", "memory-backend-file,id=ram,size=%d,mem-path=%s,share=on" % (RAM, ram),
     "-M", "microvm,acpi=off,memory-backend=ram", "-m", str(RAM >> 20), "-display", "none",
     "-nodefaults", "-no-reboot", "-serial", "null", "-kernel", guest, "-append", "seconds=80000",
     "-qmp", "unix:%s,server=on,wait=off" % os.path.join(scratch, "qmp"),
     "-monitor", "unix:%s,server=on,wait=off" % os.path.join(scratch, "monitor"),
     "-gdb", "tcp:127.0.0.1:%d" % port], stdin=subprocess.DEVNULL)

WAYS = {
    "attach, 99 Hz": lambda: Attach(99, str(qemu.pid)),
    "attach, 997 Hz": lambda: Attach(997, str(qemu.pid)),
    "monitor, 99 Hz": lambda: Poll(Monitor, 99),
    "monitor, 997 Hz": lambda: Poll(Monitor, 997),
    "qmp, 99 Hz": lambda: Poll(Qmp, 99),
    "qmp, 997 Hz": lambda: Poll(Qmp, 997),
    "gdbstub, 99 Hz": lambda: Poll(Gdb, 99),
    "gdbstub, 997 Hz": lambda: Poll(Gdb, 997),
    "--gdb, 99 Hz": lambda: Attach(99, "--gdb", "127.0.0.1:%d" % port),
}


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


def window(memory):
    """Increments, seconds on a processor, seconds not waiting for one."""
    t0, (r0, w0), n0 = time.monotonic(), vcpu_times(), struct.unpack_from("<Q", memory, at)[0]
    time.sleep(SECONDS)
    n1, (r1, w1), t1 = struct.unpack_from("<Q", memory, at)[0], vcpu_times(), time.monotonic()
    return n1 - n0, r1 - r0, t1 - t0 - (w1 - w0)


def measure(memory, begin):
    main = "/proc/%d/task/%d/schedstat" % (qemu.pid, qemu.pid)
    way, rows = begin(), []
    try:
        for _ in range(pairs):
            n0, run0, _ = window(memory)
            before = way.samples()
            cpu, vmm = way.cpu(), on_cpu(main)
            way.switch(True)
            count, run, could = window(memory)
            way.switch(False)
            cpu, vmm = way.cpu() - cpu, on_cpu(main) - vmm
            samples = way.samples() - before
            if not samples or not n0:
                continue
            lost = could - count * run0 / n0
            rows.append({"held": (could - run) / samples * 1e6, "lost": lost / samples * 1e6,
                         "slow": 100 * (could - run) / could, "n": samples,
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
    with open(ram, "rb") as f, mmap.mmap(f.fileno(), RAM, prot=mmap.PROT_READ) as memory:
        while not struct.unpack_from("<Q", memory, at)[0]:
            assert time.monotonic() < until and qemu.poll() is None, "the guest does not count"
            time.sleep(0.1)
        got = {name: [] for name in WAYS}
        for _ in range(rounds):
            for name, begin in WAYS.items():
                got[name].append(measure(memory, begin))
finally:
    qemu.kill()
    qemu.wait()
    shutil.rmtree(scratch)

def median(name, what, which=None):
    rows = [r for i, rs in enumerate(got[name]) for r in rs if which is None or i == which]
    return statistics.median(r[what] for r in rows)


print("a guest that counts in ring 3, %d rounds of %d pairs of windows of %g s, load of the machine %.1f" %
      (rounds, pairs, SECONDS, os.getloadavg()[0]))
print("  %-18s %7s  %-24s %-24s %-28s %s" % ("", "samples", "held a sample, us", "of the time, %",
                                            "lost by the counter, us", "CPU: ours, QEMU's, us"))
for name, rounds_of in got.items():
    rows = [r for rs in rounds_of for r in rs]
    print("  %-18s %7d  %-24s %-24s %-28s %.0f, %.0f" % (
        name, sum(r["n"] for r in rows), spread([r["held"] for r in rows], "%.0f"),
        spread([r["slow"] for r in rows], "%.2f"), spread([r["lost"] for r in rows], "%.0f"),
        median(name, "cpu"), median(name, "vmm")))


def ratio(a, b, what):
    """How many times what b costs; '-' where that is less than nothing, which is noise."""
    def one(which):
        x, y = median(a, what, which), median(b, what, which)
        return "%.1f" % (x / y) if x > 0 and y > 0 else "-"
    return "%s (rounds: %s)" % (one(None), ", ".join(one(i) for i in range(rounds)))


for rows in (r for rounds_of in got.values() for rs in rounds_of for r in rs):
    rows["all_cpu"] = rows["cpu"] + rows["vmm"]
print("  at 99 Hz  the same sample, with its stacks, through the gdbstub (--gdb) costs, in times one of attach: "
      "the guest %s; processors of others %s" % (ratio("--gdb, 99 Hz", "attach, 99 Hz", "lost"),
                                                ratio("--gdb, 99 Hz", "attach, 99 Hz", "all_cpu")))
for other in ("monitor", "qmp", "gdbstub"):
    for hz in ("99 Hz", "997 Hz"):
        a, b = "%s, %s" % (other, hz), "attach, " + hz
        print("  at %-6s registers alone by %-7s cost, in times one of attach: the guest %s; processors of others %s" % (
            hz, other, ratio(a, b, "lost"), ratio(a, b, "all_cpu")))
