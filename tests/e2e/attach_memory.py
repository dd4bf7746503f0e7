#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 15 s
# tests: svm, at most 600 s
"""Where attach finds the memory of a real QEMU: as KVM has it, where BPF may be used, and as the guest's
page tables prove it elsewhere.

Machines as people have them: one block of memory, two NUMA nodes with a block each, memory on both sides
of the hole below 4 GiB, a DIMM that was plugged in, a graphics card's memory. The truth is QEMU's own
map. Without BPF no more is claimed than is proven.

    attach_memory.py KVMPROF SCRATCH"""

import json
import os
import re
import socket

import attached
import e2e
from e2e import check, say
from qemu import Qemu

MIB = 1 << 20
DEMO = os.path.join(e2e.BUILD, "guest", "demo.elf")


def block(name, mib):
    return ["-object", "memory-backend-ram,id=%s,size=%dM" % (name, mib)]


MACHINES = {
    "one": ["-m", "256"],
    "nodes": ["-m", "256", *block("a", 64), *block("b", 192),
              "-numa", "node,nodeid=0,memdev=a,cpus=0", "-numa", "node,nodeid=1,memdev=b"],
    "hole": ["-m", "4608"],
    "dimm": ["-m", "256,slots=1,maxmem=1G", *block("d", 128), "-device", "pc-dimm,memdev=d"],
    "card": ["-m", "256", "-device", "VGA,vgamem_mb=32"],
}
# Without BPF: of these the page tables tell all, of the others a part.
PROVEN = {"one", "card"}
NO_BPF = ["setpriv", "--bounding-set=-sys_admin,-bpf,-perfmon", "--inh-caps=-sys_admin,-bpf,-perfmon"]

e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
e2e.need_tool("setpriv")


def ram_of(path):
    """Bytes of guest-physical memory that QEMU's map of the address space has as RAM or ROM."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        f = s.makefile("rw")
        f.readline()
        for command in ('{"execute":"qmp_capabilities"}',
                        '{"execute":"human-monitor-command","arguments":{"command-line":"info mtree -f"}}'):
            f.write(command + "\n")
            f.flush()
            while "return" not in (answer := json.loads(f.readline())):
                check("error" not in answer, "QMP: %s" % answer)
    views = answer["return"].split("FlatView #")
    view = next(v for v in views if "KVM-SMRAM" not in v and re.search(r'AS "memory"', v))
    return sum(int(b, 16) - int(a, 16) + 1
               for a, b in re.findall(r"^\s+([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, (?:ram|rom|romd)\)", view, re.M))


def attach(pid, *options, wrapper=()):
    p = e2e.run(*wrapper, e2e.KVMPROF, "attach", pid, "--image", DEMO, "--samples", 50, "-o", "m.data",
                "--no-buildid-cache", *options, timeout=120)
    check(p.status == 0, "attach: %s" % p.err)
    return e2e.summary("m.data")["attach"] if p.status == 0 else None


def loaded_before_seized(pid):
    """A seized thread waits for us at each of its signals, and loading a program takes its time."""
    p = e2e.run("strace", "-f", "-o", "calls", "-e", "trace=bpf,ptrace", e2e.KVMPROF, "attach", pid, "--image", DEMO,
                "--samples", 5, "-o", "s.data", "--no-buildid-cache", timeout=300)
    check(p.status == 0, "attach under strace: %s" % p.err)
    with open("calls", encoding="utf-8", errors="replace") as f:
        calls = [x.split(None, 1)[1] for x in f]
    loads = [i for i, x in enumerate(calls) if x.startswith("bpf(BPF_PROG_LOAD")]
    seized = [i for i, x in enumerate(calls) if x.startswith("ptrace(PTRACE_SEIZE")]
    check(loads and seized and loads[-1] < seized[0],
          "programs are loaded at %s, threads seized at %s of the calls" % (loads[-3:], seized[:3]))


def judge(name, options):
    qmp = name + ".qmp"
    q = Qemu(name, "-accel", "kvm", "-cpu", "host,-arch-capabilities", "-M", "pc", *options,
             "-kernel", DEMO, "-append", "seconds=600", "-qmp", "unix:%s,server=on,wait=off" % qmp)
    try:
        q.wait_for("demo: start", 120)
        ram = ram_of(qmp)
        told = None
        if bpf:
            told = attach(q.pid)
            if told:
                check(told["memory_from"] == "kvm", "%s: not as KVM has it: %s" % (name, told))
                check(told["memory"] == ram and not told["memory_partial"],
                      "%s: %d bytes in %d regions, QEMU's map has %d" % (name, told["memory"], told["regions"], ram))
                check(told["proofs"] >= 3, "%s: proofs: %s" % (name, told))
        without = attach(q.pid, "--technique", "ptrace")
        if without:
            check(without["memory_from"] == "page-tables" and "memory_why_not_kvm" not in without,
                  "%s: by ptrace: %s" % (name, without))
            check(without["memory"] <= ram, "%s: more memory than there is: %s" % (name, without))
            check(name not in PROVEN or without["memory"] >= 256 * MIB - 2 * MIB,
                  "%s: by ptrace: %s" % (name, without))
        if name == "one" and bpf and e2e.has_tool("strace"):
            loaded_before_seized(q.pid)
        if name == "one":
            refused = attach(q.pid, wrapper=NO_BPF)
            if refused:
                check(refused["memory_from"] == "page-tables" and refused.get("memory_why_not_kvm"),
                      "without the right to use BPF: %s" % refused)
        check(q.process.poll() is None, "%s: QEMU has ended" % name)
    finally:
        q.end()
    say("%s: QEMU's map %d KiB, as KVM has it %s, by page tables %s" % (
        name, ram >> 10, told and "%d in %d" % (told["memory"] >> 10, told["regions"]),
        without and "%d in %d" % (without["memory"] >> 10, without["regions"])))
    return told and without and "%s %d, %d" % (name, told["memory"] // MIB, without["memory"] // MIB)


bpf = attached.takes_programs()
if not bpf:
    e2e.left_out("no BPF on this host: memory by page tables only")
figures = [judge(name, options) for name, options in MACHINES.items()]
e2e.finish("MiB as KVM has them, and by page tables: %s" % "; ".join(f for f in figures if f))
