#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 15 s
# tests: slow, at most 1800 s: linux
# tests: not svm, host
"""kvmprof diverge: two runs of the same part nowhere; one instruction that is another one, one byte of the
command line, an interrupt that comes earlier and one more system call are named, as objdump and nm name them;
what can't be run again is told in one line.

exact_diverge.py KVMPROF SCRATCH [linux]

linux: also two boots of a small Linux, one of which makes one more system call."""

import json
import os
import re
import shutil
import subprocess
import sys

import compiled
import e2e
import exact_engine
from e2e import check, say

GUEST = os.path.join(e2e.TOP, "tests", "e2e", "exact_diverge.S")
INIT = os.path.join(e2e.TOP, "tests", "e2e", "exact_init.c")


def run(out, *argv):
    p = e2e.kvmprof("run", "--engine", "exact", "-q", "--no-summary", "-o", out, *argv)
    check(p.status == 0, "run of %s: status %d: %s" % (out, p.status, p.err))
    return out


def diverge(a, b, status=1):
    p = e2e.kvmprof("diverge", "-q", "--json", a, b, timeout=900)
    check(p.status == status, "diverge %s %s: status %d: %s%s" % (a, b, p.status, p.out, p.err))
    return json.loads(p.out) if p.status in (0, 1) else p.err


def symbols(program):
    """Addresses by name, as nm has them."""
    return {line.split()[2]: int(line.split()[0], 16)
            for line in e2e.run("nm", program).out.splitlines() if len(line.split()) == 3}


def listed(program, address):
    """An instruction's bytes, as objdump has them."""
    text = e2e.run("objdump", "-d", "--start-address=%d" % address, "--stop-address=%d" % (address + 16),
                   program).out
    found = re.search(r"^\s*%x:\t((?:[0-9a-f]{2} )+)" % address, text, re.M)
    check(found, "objdump has nothing at %#x of %s" % (address, program))
    return found.group(1).replace(" ", "")


def at(insn):
    return int(insn["address"], 16)


# -- a guest of ours: where each thing happens is known -------------------------------------------

def build(name, *defines):
    compiled.cc("-m32", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-Ttext=0x100000",
                "-Wl,--no-warn-rwx-segments", *defines, "-o", name, GUEST)
    return name


def own_guest():
    where = symbols(build("guest.elf"))
    base = run("one.data", "guest.elf", "--append", "@1")
    same = diverge(base, run("again.data", "guest.elf", "--append", "@1"), 0)
    check(same["same"] and same["instructions"][0] == same["instructions"][1] and not same["inputs"] and
          same["control"] is None and same["value"] is None, "the same run: %s" % same)

    # It ends with a status, at once: QEMU would let it go on for a while, as long as it likes.
    build("status.elf", "-DSTATUS=3")
    ends = [e2e.kvmprof("run", "--engine", "exact", "-q", "-o", "status.data", "status.elf", "--append", "@1")
            for _ in range(3)]
    check([p.status for p in ends] == [3] * 3 and
          all("%d instructions" % same["instructions"][0] in p.err for p in ends),
          "three runs that end with status 3: %s" % [p.err for p in ends])

    # Another instruction at `count`.
    build("longer.elf", "-DLONGER")
    out = diverge(base, run("longer.data", "longer.elf", "--append", "@1"))
    control = out["control"]
    check(control["how"] == "code" and out["inputs"] == ["kernel_sha256"], "other code: %s" % out)
    for side, program in (("a", "guest.elf"), ("b", "longer.elf")):
        check(at(control[side]) == where["count"] and
              control[side]["bytes"] == listed(program, where["count"]), "count of %s: %s" %
              (program, control[side]))
    check(control["a"]["stack"][0]["symbol"] == "count+0x0", "its name: %s" % control["a"])
    check(not control["registers"] and out["value"] is None, "nothing else differs: %s" % out)

    # A byte of the command line, by which the PIT interrupts the guest sooner.
    out = diverge(base, run("two.data", "guest.elf", "--append", "@2"))
    control, value = out["control"], out["value"]
    check(control["how"] == "interrupt" and control["side"] == "a", "an interrupt: %s" % control)
    check(at(control["a"]) == where["tick"] and where["count"] <= at(control["b"]) < where["tick"], "where it comes: %s" % control)
    check(at(value["at"]) == where["digit"] and value["at"]["bytes"] ==
          listed("guest.elf", where["digit"]), "the first value: %s" % value)
    check([value[side]["value"] for side in "ab"] == [hex(ord("1")), hex(ord("2"))] and
          value["a"]["access"] == "read" and value["a"]["size"] == 1 and
          value["a"]["address"] == value["b"]["address"], "what is read: %s" % value)
    check(control["registers_since"]["instruction"] == value["at"]["instruction"] or
          control["registers_since"]["address"] == value["at"]["address"],
          "since when registers differ: %s" % control)
    # One instruction is 8 ns, the PIT's 2048 ticks are 1.716 ms: so many come between the two.
    between = control["a"]["instruction"] - value["at"]["instruction"]
    say("the interrupt comes %d instructions after the byte is read" % between)
    check(abs(between - 2048 / 1.193182 * 1000 / 8) < 1000, "%d instructions" % between)
    text = e2e.kvmprof("diverge", "-q", base, "two.data", timeout=900)
    check(text.status == 1 and "an interrupt or exception comes in A and not in B" in text.out and
          "reads 1 byte at %s: 0x31" % value["a"]["address"] in text.out and "digit+0x0" in text.out,
          "the text: %s%s" % (text.out, text.err))


# -- Linux: one more system call --------------------------------------------------------------------

def init(name, *defines):
    compiled.cc("-O2", "-I" + e2e.TOP, "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie",
                "-fno-stack-protector", "-fcf-protection=none", *defines, "-o", name, INIT)
    e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), name, name + ".cpio")
    return run(name + ".data", kernel, "--initrd", name + ".cpio")


def linux():
    a, b = init("base"), init("ppid", "-DPPIDS=11")
    out = diverge(a, b)
    where = symbols("base")
    control = out["control"]
    check(out["inputs"] == ["initrd_sha256"] and control["how"] == "jump", "a system call: %s" % out)
    # The loop that asks ends in A, and goes round once more in B: the next call is another one.
    check(where["_start"] <= at(control["last"]) < where["_start"] + 256 and
          listed("base", at(control["last"])) == control["last"]["bytes"], "where they part: %s" % control)
    check(control["a"]["comm"] == "init" and control["a"]["pid"] == 1, "who: %s" % control["a"])
    since = control["registers_since"]
    check(int(since["a"]["address"], 16) == where["ppids"] and int(since["a"]["value"], 16) == 10 and
          int(since["b"]["value"], 16) == 11, "registers differ by `ppids`: %s" % since)
    # The files differ before that, where the kernel unpacks them.
    stack = [f["symbol"].split("+")[0] for f in out["value"]["at"]["stack"]]
    check("unpack_to_rootfs" in stack, "the first value that differs: %s" % stack)
    check(out["value"]["at"]["instruction"] < since["instruction"], "its order: %s" % out["value"])
    check(stack[-1] == "ret_from_fork", "a whole stack: %s" % stack)


# -- what can't be run again ------------------------------------------------------------------------

def refused():
    def told(what, a, b):
        p = e2e.kvmprof("diverge", "-q", a, b)
        lines = p.err.splitlines()
        check(p.status == 2 and len(lines) == 1 and what in lines[0] and not p.out,
              "%s: status %d: %s%s" % (what, p.status, p.out, p.err))

    told("none.data: there is no profile", "none.data", "one.data")
    p = e2e.kvmprof("diverge", "one.data")
    check(p.status == 2 and "give two profiles" in p.err, "one profile: %s" % p.err)
    with open("stacks.folded", "w", encoding="utf-8") as f:
        f.write("task;main 12\n")
    p = e2e.kvmprof("import", "stacks.folded", "-o", "other.data")
    check(p.status == 0, "import: " + p.err)
    told("not a profile of `kvmprof run --engine exact`", "other.data", "one.data")
    os.rename("guest.elf", "kept.elf")
    told("guest.elf: cannot open", "one.data", "longer.data")
    shutil.copy("longer.elf", "guest.elf")
    told("its kernel is another one now", "one.data", "longer.data")
    os.rename("kept.elf", "guest.elf")
    with open("/dev/full", "wb") as full:
        p = subprocess.run([e2e.KVMPROF, "diverge", "-q", "one.data", "one.data"], stdout=full, stderr=subprocess.PIPE)
    check(p.returncode == 2 and b"standard output: cannot write" in p.stderr, "a full disk: %s" % p)
    env = dict(os.environ, TMPDIR="/none")
    p = e2e.kvmprof("diverge", "-q", "one.data", "longer.data", env=env)
    check(p.status == 2 and "/none: cannot make a directory" in p.err, "no directory: %s" % p.err)


for tool in ("gcc", "nm", "objdump"):
    e2e.need_tool(tool)
exact_engine.find_qemu()
own_guest()
refused()
if e2e.EXTRA == ["linux"]:
    kernel = os.path.join(e2e.built_kernel("tiny"), "bzImage")
    linux()
e2e.finish()
