#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_attach.py KVMPROF SCRATCH [ROUNDS [SECONDS]]: what attaching costs, against QEMU's own interfaces.

One guest in QEMU under KVM counts in ring 3 (the demo guest, one function of which is replaced by
a loop that increments a word). That word lies in memory shared with us, so its progress is seen
from outside. Windows of SECONDS in which somebody samples alternate with others in which nobody
does, from which it is known how far the guest gets in a second of its vCPU thread. Time in which
that thread waits for a processor because of others is left out; the rest of a window in which the
counter did not go on is time that the guest lost. Each way of sampling has a window in each round.
Prints medians with (min-max), and ratios; asserts nothing.

  attach      kvmprof attach PID: registers and stacks, with names, into a profile
  --gdb       kvmprof attach --gdb: the same through the gdbstub
  info regs   `info registers` through QEMU's monitor (QMP's human-monitor-command)
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
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 1.5
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
    """info registers, as fast as asked for."""

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
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        due = time.monotonic()
        while not self.stop:
            due = max(due + 1 / self.hz, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
            self.way.sample()
            self.n += 1

    def samples(self):
        return self.n

    def cpu(self):
        return time.process_time()

    def end(self):
        self.stop = True
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
        self.out = os.path.join(scratch, "perf.data")
        self.p = subprocess.Popen(
            [kvmprof, "attach", "--image", demo, "-F", str(hz), "--json", "--no-buildid-cache",
             "-o", self.out, *target], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=scratch))
        self.rate = None

    def samples(self):
        return None

    def cpu(self):
        return on_cpu("/proc/%d/task/*/schedstat" % self.p.pid)

    def end(self):
        self.p.send_signal(signal.SIGINT)
        s = json.loads(self.p.communicate(timeout=60)[0])
        self.rate = s["samples"] / s["run_seconds"]


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
     "-gdb", "tcp:127.0.0.1:%d" % port], stdin=subprocess.DEVNULL)

WAYS = {
    "attach, 99 Hz": lambda: Attach(99, str(qemu.pid)),
    "attach, 997 Hz": lambda: Attach(997, str(qemu.pid)),
    "info regs, 99 Hz": lambda: Poll(Monitor, 99),
    "info regs, 997 Hz": lambda: Poll(Monitor, 997),
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
    """Increments, seconds on a processor, seconds not waiting for one, seconds."""
    t0, (r0, w0), n0 = time.monotonic(), vcpu_times(), struct.unpack_from("<Q", memory, at)[0]
    time.sleep(seconds)
    n1, (r1, w1), t1 = struct.unpack_from("<Q", memory, at)[0], vcpu_times(), time.monotonic()
    return n1 - n0, r1 - r0, t1 - t0 - (w1 - w0), t1 - t0


def measure(memory, begin):
    n0, run0, _, _ = window(memory)
    way = begin()
    time.sleep(1)
    main = "/proc/%d/task/%d/schedstat" % (qemu.pid, qemu.pid)
    cpu, vmm, n = way.cpu(), on_cpu(main), way.samples()
    count, _, could, length = window(memory)
    cpu, vmm = way.cpu() - cpu, on_cpu(main) - vmm
    done = way.samples()
    way.end()
    samples = way.rate * length if n is None else done - n
    time.sleep(0.2)
    n2, run2, _, _ = window(memory)
    lost = could - count * (run0 + run2) / (n0 + n2)
    return {"slow": 100 * lost / could, "lost": lost / samples * 1e6, "rate": samples / length,
            "cpu": cpu / samples * 1e6, "vmm": vmm / samples * 1e6}


def spread(values, form):
    return (form + " (" + form + " to " + form + ")") % (statistics.median(values), min(values), max(values))


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

print("a guest that counts in ring 3, %d rounds, windows of %g s, load of the machine %.1f" %
      (rounds, seconds, os.getloadavg()[0]))
print("  %-18s %8s  %-30s %-34s %-12s %s" % ("", "Hz", "guest slower by, %", "guest time lost a sample, us",
                                            "our CPU, us", "QEMU's main thread, us"))
median = {}
for name, rows in got.items():
    median[name] = {k: statistics.median(r[k] for r in rows) for k in rows[0]}
    print("  %-18s %8.0f  %-30s %-34s %-12.0f %.0f" % (
        name, median[name]["rate"], spread([r["slow"] for r in rows], "%.1f"),
        spread([r["lost"] for r in rows], "%.0f"), median[name]["cpu"], median[name]["vmm"]))
for other in ("info regs", "gdbstub"):
    for hz in ("99 Hz", "997 Hz"):
        pairs = zip(got["%s, %s" % (other, hz)], got["attach, " + hz])
        ratios = [a["lost"] / b["lost"] for a, b in pairs if b["lost"] > 0]
        if median["attach, " + hz]["lost"] <= 0:
            print("  at %-6s attach costs less than the noise: no ratio" % hz)
            continue
        print("  at %-6s a sample of %s costs the guest %.1f times that of attach (medians; rounds: %s)" % (
            hz, other, median["%s, %s" % (other, hz)]["lost"] / median["attach, " + hz]["lost"],
            ", ".join("%.1f" % r for r in ratios)))
