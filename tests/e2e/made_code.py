#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, disk
"""made_code.py KVMPROF SCRATCH: code that a kernel makes while it runs, in a profile.

guest/made has its kernel run a BPF program at each system call, trace three functions with the
function graph tracer and with the function tracer, and probe one of them and its return. Stacks through all of
that must lead into the program, and samples in it have the names of /proc/kallsyms. Some minutes,
on a host whose KVM interprets the guest's ring 0."""

import os
import re
import struct
from collections import Counter

import e2e
from e2e import check, say

PARTS = ("plain", "bpf", "graph", "function", "kprobe", "kretprobe")
TRACED = ("ksys_read", "vfs_read", "read_zero")
OUTERMOST = {"entry_SYSCALL_64", "entry_SYSCALL_64_after_hwframe"}


def symbols(directory):
    with open(os.path.join(directory, "System.map")) as f:
        return {line.split()[2]: int(line.split()[0], 16) for line in f}


def linked_bytes(elf, start, end):
    """What an ELF64 has at these addresses."""
    at, n = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    for i in range(n):
        kind, _, off, va, _, size = struct.unpack_from("<IIQQQQ", elf, at + 56 * i)
        if kind == 1 and va <= start and end <= va + size:
            return elf[off + start - va:off + end - va]
    raise ValueError("nothing is linked at 0x%x" % start)


def numbers(directory, names):
    """Numbers of functions in available_filter_functions: the calls of the tracer, by address."""
    where = symbols(directory)
    with open(os.path.join(directory, "vmlinux"), "rb") as f:
        table = linked_bytes(f.read(), where["__start_mcount_loc"], where["__stop_mcount_loc"])
    calls = sorted(x for x in struct.unpack("<%dQ" % (len(table) // 8), table) if x)
    return [1 + calls.index(where[x]) for x in names]


def frames_of(samples, part):
    """Stacks of samples in the kernel: its own code and modules are in brackets, programs have paths."""
    return [x.stack.split(";") for x in samples if x.comm == "m-" + part and x.dsos.split(";")[-1][:1] != "/"]


def check_ends(part, stacks):
    """Nearly all of a program's kernel stacks lead to its system call and into it."""
    below = [s for s in stacks if OUTERMOST & set(s)]
    check(len(below) > 200, "m-%s: only %d of %d stacks are below a system call" %
          (part, len(below), len(stacks)))
    check(len(below) >= 0.97 * len(stacks), "m-%s: %d of %d stacks end before the system call: %s" %
          (part, len(stacks) - len(below), len(stacks),
           Counter(s[0] for s in stacks if not OUTERMOST & set(s)).most_common(8)))


def check_chain(part, stacks, chain, least):
    """So many stacks have these frames one below the other."""
    text = ";" + ";".join(chain) + ";"
    n = sum(text in ";" + ";".join(s) + ";" for s in stacks)
    check(n >= least, "m-%s: only %d stacks have %s; there are %s" %
          (part, n, text, Counter(";".join(s[-5:]) for s in stacks).most_common(5)))
    return n


def check_replaced(part, stacks, by):
    """No traced function has the tracer's address in the place of its caller."""
    wrong = [s for s in stacks if any(x == by and y in TRACED for x, y in zip(s, s[1:]))]
    check(not wrong, "m-%s: %d stacks show %s instead of a caller: %s" % (part, len(wrong), by, wrong[:2]))


e2e.need_kvm()
directory = e2e.built_kernel("trace")
words = "made.seconds=3 made.traced=%s made.probe=0x%x" % (
    ",".join(map(str, numbers(directory, TRACED))), symbols(directory)["vfs_read"])
boot = e2e.Boot(os.path.join(directory, "vmlinux"), "--initrd", os.path.join(e2e.BUILD, "guest", "made.cpio"),
                "--append", words, "-o", "made.data")
boot.wait(800)
check(boot.status == 0 and boot.seen("made: done"), "status %d: %s\n%s" %
      (boot.status, boot.err, "\n".join(line for _, line in boot.lines[-15:])))
for part in PARTS:
    check(boot.seen("made: %s ready" % part), "%s was not made: %s" %
          (part, re.findall(r"made: %s.*" % part, boot.text())))
if e2e.failures:
    e2e.finish()
samples = e2e.parse_script(e2e.kvmprof("script", "-i", "made.data").out)
program = re.search(r"made: program (\w+) (\d+) (bpf_prog_\w+)", boot.text())
parts = {x: frames_of(samples, x) for x in PARTS}
for part, stacks in parts.items():
    say("m-%s: %d stacks" % (part, len(stacks)))
    check_ends(part, stacks)

name = program.group(3)
inner = sum(s[-1] == name for s in parts["bpf"])
check(inner > 10, "only %d samples in the BPF program itself" % inner)
called = check_chain("bpf", parts["bpf"], ("bpf_trace_run2", name, "bpf_ktime_get_ns"), 5)
away = [x for x in samples if name in x.stack.split(";") and x.comm not in ("m-bpf", "init")]
check(not away, "the BPF program is in stacks of others: %s" % away[:2])

traced = check_chain("graph", parts["graph"], TRACED, 50)
check_replaced("graph", parts["graph"], "return_to_handler")
trampoline = sum("ftrace_trampoline" in s for s in parts["function"])
check(trampoline > 10, "only %d stacks through the trampoline of the function tracer" % trampoline)
check_chain("function", parts["function"], TRACED, 50)
probe = sum("ftrace_trampoline" in s and "kprobe_ftrace_handler" in s for s in parts["kprobe"])
check(probe > 5, "only %d stacks through the kprobe: %s" % (
    probe, Counter(";".join(s[-4:]) for s in parts["kprobe"]).most_common(8)))
returns = check_chain("kretprobe", parts["kretprobe"], TRACED, 50)
check_replaced("kretprobe", parts["kretprobe"], "arch_rethook_trampoline")
s = e2e.check_lost("made.data")["guest"]
check(s["made_code"] >= 3 and not s["made_code_without_names"] and not s["made_code_not_believed"],
      "made code: %s" % {x: s[x] for x in s if x.startswith("made_code")})
check("code made at run time: " in boot.err, "nothing of made code is told: " + boot.err)
if e2e.has_tool("perf"):
    theirs = e2e.perf_script("made.data")
    n = sum(name in x.stack.split(";") for x in e2e.parse_script(theirs))
    check(n >= inner, "perf script names the BPF program in %d stacks" % n)
e2e.finish("BPF: %d in the program, %d in what it calls; graph: %d; trampoline: %d; kprobe: %d, "
           "of returns: %d" % (inner, called, traced, trampoline, probe, returns))
