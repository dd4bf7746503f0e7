#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 12 s
# tests: not svm, host
"""kvmprof run --engine exact --start-at, --stop-at and --mark-at, and exact counts between them: the demo
guest is run from one function to another instruction by instruction, by QEMU's gdbstub (no timer's interrupt
comes in so short a time), and what was seen there is what was counted: all instructions, each instruction, each function's, each call. Samples begin and
end at these functions' first instructions. Needs neither KVM nor root."""

import json
import os
import re
import struct
from collections import Counter

import e2e
import gdb_steps
from e2e import check, say
from exact_engine import by_address, exact, find_qemu, hash_of, one_line

START, STOP = "job_pick", "ports_write"
OPTIONS = ("-q", "--append", "work=1")
NS = 8  # of virtual time, each instruction


def symbols(elf):
    """Functions: (address, name), by address."""
    out = e2e.run("nm", "-n", elf).out
    return [(int(w[0], 16), w[2]) for w in (line.split() for line in out.split("\n"))
            if len(w) == 3 and w[1] in "tT" and not re.match(r"_(user_)?e?text|_stext", w[2])]


class Code:
    def __init__(self, elf):
        with open(elf, "rb") as f:
            self.bytes = f.read()
        off, n = struct.unpack_from("<Q", self.bytes, 32)[0], struct.unpack_from("<H", self.bytes, 56)[0]
        self.parts = [struct.unpack_from("<IIQQQQQQ", self.bytes, off + 56 * i) for i in range(n)]
        self.symbols = symbols(elf)

    def is_call(self, pc):
        """CALL rel32, or CALL r/m64 (SDM volume 2)."""
        at = next(o + pc - va for kind, _, o, va, _, size, _, _ in self.parts if kind == 1 and va <= pc < va + size)
        b = self.bytes[at:at + 3]
        b = b[1:] if 0x40 <= b[0] < 0x50 else b
        return b[0] == 0xe8 or (b[0] == 0xff and b[1] >> 3 & 7 == 2)

    def address(self, pc):
        for kind, _, off, va, _, size, _, _ in self.parts:
            if kind == 1 and off <= pc < off + size:
                return va + pc - off
        return pc

    def function(self, pc):
        name = None
        for address, symbol in self.symbols:
            if address > pc:
                break
            name = symbol
        return name


def stepped(elf, code):
    """What is executed between the two: counts by address, and calls by address of what was called."""
    address = {name: at for at, name in code.symbols}
    engine = e2e.summary("a.data")["engine"]
    guest = gdb_steps.Guest(
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-machine", "pc,hpet=off", "-accel",
        "tcg,thread=single", "-cpu", engine["cpu"], "-m", "%dM" % (engine["memory_bytes"] >> 20), "-icount",
        "shift=3,sleep=off,align=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1", "-serial", "file:console",
        "-device", "isa-debug-exit,iobase=0x501,iosize=2", "-kernel", elf, "-append", engine["cmdline"])
    guest.run_to(address[START])
    trail = guest.steps_to(address[STOP])
    guest.end()
    calls = Counter([trail[0]] + [b for a, b in zip(trail, trail[1:]) if code.is_call(a)])
    return Counter(trail), calls


def counted(profile, event, code):
    """As in exact_engine; of a program perf tells where an address is in its file."""
    return Counter({code.address(pc): times for pc, times in by_address(profile, event).items()})


def windows():
    """Samples and markers: from one first instruction to the other, the same each time."""
    for name in ("a.data", "b.data"):
        p = exact(*OPTIONS, "-c", "100", "--start-at", START, "--stop-at", STOP, "-o", name)
        check(p.status == 0 and "stop marker reached" in p.err, "%s: %d %s" % (name, p.status, p.err))
    check(hash_of("a.data") == hash_of("b.data"), "two runs from marker to marker differ")
    d = e2e.kvmprof("diverge", "a.data", "b.data", timeout=300)
    check(d.status == 0, "diverge: %d %s%s" % (d.status, d.out[:500], d.err))
    s = e2e.summary("a.data")
    n = s["engine"]["instructions"] - s["engine"]["begun"]
    check(s["samples"] == n // 100, "%d samples of 100 in %d instructions" % (s["samples"], n))
    check([m["name"] for m in s["markers"]] == [START, STOP], "markers: %s" % s["markers"])

    p = exact(*OPTIONS, "--mark-at", START, "--mark-at", STOP, "--mark-at", "put_number+0x4", "-o", "m.data")
    marks = e2e.summary("m.data")["markers"]
    times = {m["name"]: m["time_ns"] for m in reversed(marks)}  # of the first one each
    check(p.status == 0 and set(times) == {START, STOP, "put_number+0x4"}, "marks: %s %s" % (marks, p.err))
    check(times[STOP] - times[START] == NS * n, "%d ns between markers of %d instructions" %
          (times[STOP] - times[START], n))
    rows = json.loads(e2e.kvmprof("report", "-i", "m.data", "-n", "0", "--event", "marker", "--json").out)["symbols"]
    own = {r["symbol"]: r["self"] for r in rows if r["self"]}
    names = Counter(m["name"].split("+")[0] for m in marks)
    check(own == names, "innermost functions of markers are %s, of %s" % (own, names))
    return n


def refused():
    one_line("no such function", exact(*OPTIONS, "--start-at", "nowhere", "-o", "x"), "nowhere", "no symbol")
    p = exact(*OPTIONS, "--start-at", "crash_now", "-o", "x.data")
    check(p.status == 1 and "--start-at 'crash_now' was never reached" in p.err, "never: %d %s" % (p.status, p.err))


def counts(code, elf, n):
    """The same between the same functions, counted; and seen."""
    for name in ("c.data", "d.data"):
        p = exact(*OPTIONS, "--call-counts", "-c", "1000", "--start-at", START, "--stop-at", STOP, "-o", name)
        check(p.status == 0 and ": %d instructions counted" % n in p.err, "%s: %d %s" % (name, p.status, p.err))
    check(hash_of("c.data") == hash_of("d.data"), "two runs with counts differ")
    trail, calls = stepped(elf, code)
    check(sum(trail.values()) == n, "%d steps, %d instructions were counted" % (sum(trail.values()), n))
    each = counted("c.data", "insn-exec", code)
    check(each == trail, "instructions: counted more %s, less %s" %
          (sorted((each - trail).items())[:5], sorted((trail - each).items())[:5]))
    functions, seen = Counter(), Counter()
    for pc, times in counted("c.data", "instructions", code).items():
        functions[code.function(pc)] += times
    for pc, times in trail.items():
        seen[code.function(pc)] += times
    check(functions == seen, "functions: %s and %s" % (functions - seen, seen - functions))
    # Where an interrupt or a program's system call leads is counted as called, too.
    called = counted("c.data", "calls", code)
    entries = Counter({pc: called.pop(pc) for pc in list(called) if pc not in calls})
    check(all(trail[pc] == times for pc, times in entries.items()),
          "entries: %s" % [(hex(pc), times, trail[pc]) for pc, times in entries.items()])
    check(called == calls, "calls: counted more %s, less %s" % (called - calls, calls - called))
    say("%d instructions at %d addresses in %d functions, %d calls of %d functions, as seen step by step; "
        "%d entries" % (n, len(trail), len(seen), sum(calls.values()), len(calls), len(entries)))


find_qemu()
e2e.need_tool("nm")
e2e.need_tool("perf")
demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
between = windows()
refused()
counts(Code(demo), demo, between)
e2e.finish("%d instructions from %s to %s, as single steps have it" % (between, START, STOP))
