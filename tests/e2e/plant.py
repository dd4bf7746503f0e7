# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that stand still on purpose: plant_module.c and plant_init.c, built for a kernel and a plan.

The module is made without headers. Its functions' addresses are those of the kernel's image (the guest boots with
nokaslr), the rest comes from another module of that kernel: vermagic, versions, the size of struct module, and where that has init and exit.
A kernel boots once: its snapshot is taken while plant_init asks what to do.
"""

import glob
import os
import random
import re
import socket
import struct
import subprocess
import time

import compiled
import e2e
import qemu

CAUSES = ["mutex", "deadlock", "spinlock", "irqs-off", "halted-irqs-off", "lost-timer", "pending-interrupt", "rcu-stall",
          "hung-task", "workqueue", "soft-lockup", "irq-storm", "out-of-memory", "disk", "panic", "stack-overflow",
          "boot-wait", "not-scheduled", "paused", "memory-absent", "vmm-thread", "user-loop"]
IN_MODULE = set(CAUSES[:12]) | {"panic", "stack-overflow", "boot-wait"}
SOURCES = os.path.join(e2e.TOP, "tests", "e2e")


class Plan:
    """What is planted, drawn from a seed: which lock, how many threads, on which processor, after how many milliseconds."""

    def __init__(self, cause, seed, cpus):
        draw = random.Random("%s %d" % (cause, seed))
        self.cause, self.seed = cause, seed
        self.cpu = draw.randrange(cpus)
        self.threads = draw.randint(2, 4)
        self.delay = draw.randint(20, 700)
        self.kind = draw.randrange(1 << 16)
        if cause in ("mutex", "deadlock"):
            # Each lock's kind, four bits: mutex, rwsem that is taken to write, or to read.
            self.kind = sum(draw.randrange(3) << 4 * i for i in range(4))
        elif cause == "spinlock":
            # Taken how, and why it is never released: the owner loops, two wait for each other, or the owner has gone.
            self.kind = draw.choice((0, 1, 2)) | draw.choice((0, 4, 8) if cpus > 1 else (8,))
        elif cause == "lost-timer":
            self.kind = self.kind & 1 | (2 if cpus == 1 else 0)
        self.bits = draw.randrange(1 << 30)

    def words(self):
        """What plant_init is told."""
        words = ["plant.do=" + ("module" if self.cause in IN_MODULE else self.cause)]
        words += ["plant.%s=%d" % x for x in (
            ("cause", CAUSES.index(self.cause) + 1), ("kind", self.kind), ("cpu", self.cpu), ("threads", self.threads),
            ("delay", self.delay), ("bits", self.bits))]
        if self.cause == "panic":
            words.append("plant.oops=%d" % (self.bits & 1))
        return " ".join(words)

    def __str__(self):
        return "%s (seed %d: kind %#x, CPU %d, %d threads, after %d ms)" % (
            self.cause, self.seed, self.kind, self.cpu, self.threads, self.delay)


class Kernel:
    """An image with a module of it: its release, its names."""

    def __init__(self, name, image, modules):
        self.name, self.image = name, image
        self.template = next((p for p in sorted(glob.glob(os.path.join(modules, "*.ko"))) if init_at(p)), None)
        p = e2e.kvmprof("symbols", image)
        if p.status:
            raise SystemExit("symbols %s: %s" % (image, p.err))
        self.names = {}
        for line in p.out.splitlines():
            words = line.split()
            if len(words) == 3:
                self.names.setdefault(words[2], int(words[0], 16))

    def address(self, name):
        """Of a function of the module's; what had another name in other kernels is looked for by that."""
        for other in {"cond_resched": ("__cond_resched", "_cond_resched"), "panic": ("panic",)}.get(name, ()) + (name,):
            if other in self.names:
                return self.names[other]
        return 0

    def module(self):
        """plant.ko for this kernel."""
        out = "plant-%s.ko" % self.name
        if os.path.exists(out):
            return out
        compiled.cc("-c", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-mcmodel=kernel", "-fno-pic", "-fno-pie",
                    "-ffreestanding", "-mno-red-zone", "-mgeneral-regs-only", "-fno-omit-frame-pointer",
                    "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls", "-fno-stack-protector",
                    "-fcf-protection=none", "-fno-jump-tables", "-fno-asynchronous-unwind-tables", "-Wno-infinite-recursion",
                    "-fno-builtin", "-o", out + ".o", os.path.join(SOURCES, "plant_module.c"))
        with open(out + ".S", "w", encoding="ascii") as f:
            f.write(this_module(self.template))
        compiled.cc("-c", "-o", out + ".this.o", out + ".S")
        needs = [line.split()[1] for line in e2e.run("nm", "-u", out + ".o").out.splitlines()]
        p = e2e.run("ld", "-r", "-o", out, *("--defsym=%s=%#x" % (n, self.address(n)) for n in needs), out + ".o", out + ".this.o")
        if p.status:
            raise SystemExit("the module does not link: " + p.err)
        return out


def sections(path):
    """(name, type, offset, size, link, info) of each section of an ELF file, and its bytes."""
    with open(path, "rb") as f:
        elf = f.read()
    at, = struct.unpack_from("<Q", elf, 40)
    size, n, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size) for i in range(n)]

    def text(offset):
        return elf[offset:elf.index(b"\0", offset)].decode()
    return [(text(rows[names][4] + r[0]), r[1], r[4], r[5], r[6], r[7]) for r in rows], elf


def init_at(path):
    """{"init_module": its offset in struct module, "cleanup_module": ...}, of a module that has both; otherwise None."""
    rows, elf = sections(path)
    found = {}
    for name, _, offset, size, link, _ in rows:
        if name != ".rela.gnu.linkonce.this_module":
            continue
        for at in range(offset, offset + size, 24):
            where, info, _ = struct.unpack_from("<QQq", elf, at)
            word, = struct.unpack_from("<I", elf, rows[link][2] + 24 * (info >> 32))
            start = rows[rows[link][4]][2] + word
            found[elf[start:elf.index(b"\0", start)].decode()] = where
    return found if {"init_module", "cleanup_module"} <= set(found) else None


def this_module(template):
    """Assembly of what a module tells of itself, as the template has it."""
    if not template:
        raise SystemExit("no module of this kernel to take the shape from")
    rows, elf = sections(template)
    by_name = {r[0]: r for r in rows}
    size = by_name[".gnu.linkonce.this_module"][3]
    info = by_name[".modinfo"]
    vermagic = next(x for x in elf[info[2]:info[2] + info[3]].split(b"\0") if x.startswith(b"vermagic=")).decode()
    text = ['.section .modinfo,"a"', '.asciz "license=GPL"', '.asciz "name=plant"', '.asciz "retpoline=Y"', '.asciz "%s"' % vermagic]
    if "__versions" in by_name:
        _, _, offset, length, _, _ = by_name["__versions"]
        text += ['.section __versions,"a"', ".balign 32"]
        text += [".byte " + ",".join(map(str, elf[i:i + 32])) for i in range(offset, offset + length, 32)]
    at = init_at(template)
    words = {at["init_module"]: "init_module", at["cleanup_module"]: "cleanup_module"}
    text += ['.section .gnu.linkonce.this_module,"aw"', ".balign 64", ".globl __this_module", "__this_module:", ".zero 24",
             '.ascii "plant"', ".zero %d" % (min(words) - 29)]
    where = min(words)
    for offset in sorted(words):
        text += [".zero %d" % (offset - where), ".quad " + words[offset]]
        where = offset + 8
    text += [".zero %d" % (size - where), '.section .note.GNU-stack,"",@progbits', ""]
    return "\n".join(text)


def kernel(name):
    """One of scripts/build-guest-kernel.sh with modules, or a series of Debian's."""
    if name[0].isdigit():
        image = e2e.debian_kernel(name, "--host")
        return Kernel(name, image, os.path.join(os.path.dirname(image), "host"))
    directory = e2e.built_kernel(name)
    return Kernel(name, os.path.join(directory, "bzImage"), os.path.join(directory, "modules"))


def ram_disk(out, module=None):
    """An initramfs with plant_init as /init."""
    if not os.path.exists("plant_init"):
        compiled.cc("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-I" + e2e.TOP, "-static", "-pthread",
                    "-o", "plant_init", os.path.join(SOURCES, "plant_init.c"))
    argv = [os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "plant_init", out] + (["plant.ko=" + module] if module else [])
    subprocess.run(argv, check=True)
    return out


APPEND = "console=ttyS0 no_timer_check nokaslr mitigations=off tsc=reliable panic=0"
MACHINE = ["-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-smp", "2", "-m", "256", "-no-user-config"]


class Machine(qemu.Qemu):
    """QEMU without KVM, with a gdbstub at .stub. Its console also reads a line, and its monitor takes commands."""

    def __init__(self, name, *args):
        self.tty, self.monitor = name + ".tty", name + ".monitor"
        for path in (self.tty, self.monitor):
            if os.path.exists(path):
                os.unlink(path)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.stub = "127.0.0.1:%d" % s.getsockname()[1]
        super().__init__(name, *MACHINE, *args, "-gdb", "tcp:" + self.stub, "-monitor", "unix:%s,server=on,wait=off" % self.monitor)

    def serial(self, _):
        return ["-chardev", "socket,id=tty,path=%s,server=on,wait=off,logfile=%s" % (self.tty, self.out), "-serial", "chardev:tty"]

    def answer(self, words):
        """Tells plant_init, which asks, what to do."""
        with connected(self.tty) as s:
            s.sendall(words.encode() + b"\n")
            return self.wait_for("plant: ready", 60)

    def command(self, line):
        """One command of the monitor; its answer is waited for."""
        with connected(self.monitor) as s:
            said = b""
            while said.count(b"(qemu)") < 2:
                piece = s.recv(4096)
                if not piece:
                    break
                if b"(qemu)" in piece and not said.count(b"(qemu)"):
                    s.sendall(line.encode() + b"\n")
                said += piece
            return said


def connected(path):
    """A socket to where QEMU listens, as soon as it does."""
    until = time.monotonic() + 20
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        try:
            s.connect(path)
            return s
        except OSError:
            s.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def disk():
    """An NVMe disk, whose driver is part of Debian's kernels. A machine with one cannot be saved."""
    with open("disk.img", "wb") as f:
        f.truncate(4 << 20)
    return ["-drive", "file=disk.img,if=none,id=d0,format=raw", "-device", "nvme,serial=1,drive=d0"]


def booted(name, kernel, words, *argv, append="", module=True):
    """A machine that boots; words: plant_init's."""
    return Machine(name, "-kernel", kernel.image, "-initrd", ram_disk(name + ".cpio", kernel.module() if module else None),
                   "-append", " ".join((APPEND, words, append)), *argv)


def saved(kernel):
    """A snapshot of a machine that has booted, in which plant_init asks what to do. It is made once."""
    path = "saved-%s.state" % kernel.name
    if os.path.exists(path):
        return path
    m = booted("saved-" + kernel.name, kernel, "plant.do=ask")
    try:
        if not m.wait_for("plant: asks", 120):
            raise SystemExit("%s does not boot" % kernel.name)
        m.command("stop")
        m.command('migrate "exec:cat > part.state"')
        os.rename("part.state", path)
    finally:
        m.end()
    return path


def restored(name, kernel, words):
    """A machine from that snapshot, and with what it is to do."""
    m = Machine(name, "-incoming", "exec:cat " + saved(kernel))
    until = time.monotonic() + 60
    while b"inmigrate" in m.command("info status") and time.monotonic() < until:
        time.sleep(0.02)
    m.command("cont")
    m.answer(words)
    return m


def truths(text):
    """The words of each line "plant: truth"."""
    return [dict(w.split("=", 1) for w in line.split() if "=" in w) for line in re.findall(r"plant: truth (.*)", text)]
