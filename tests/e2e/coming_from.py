#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 600 s
# tests: slow, at most 3600 s: lab
# tests: not svm, files
"""docs/coming-from.md: each kvmprof command of its tables is run, taken from the page itself.

Also what the page says of other systems: kernels with the place in memory and the way to be entered
of Akaros and of Redox are booted and profiled. With the argument `lab` the rows of the kernel
profiling lab are run, on a Linux kernel, and what they are meant to show is checked.
"""

import json
import os
import re
import shutil
import subprocess

import compiled
import doc_examples
import e2e
import exact_engine
import microvm
from e2e import check, say

PAGE = os.path.join(e2e.TOP, "docs", "coming-from.md")
LAB = "## The kernel profiling lab"
ROWS_AT_LEAST = 70     # so that a page whose form has changed is noticed


def commands(text):
    """The commands of the tables' last column."""
    found = []
    for line in text.split("\n"):
        if not re.match(r"\| .* \|$", line):
            continue
        last = re.split(r"(?<!\\)\|", line)[-2]
        for code in re.findall(r"`([^`]+)`", last):
            if code.startswith("kvmprof ") and code != "kvmprof trace":
                found.append(code.replace("\\|", "|"))
    return found


# -- the tables ------------------------------------------------------------------------------

def tables(text):
    doc_examples.make_fixtures()
    os.chdir("fixtures")
    microvm.build()
    lines = commands(text)
    check(len(lines) >= ROWS_AT_LEAST, "only %d commands were found in the page" % len(lines))
    kernel = e2e.kvmprof("run", "-q", "vmlinux", "--append", "seconds=1", "-o", "vm.data")
    check(kernel.status == 0, "run: " + kernel.err)
    with microvm.MicroVM() as vm:
        check(vm.wait_for("demo"), "the machine to attach to does not run: " + vm.text())
        for command in lines:
            for made in ("db", "db-pid"):
                shutil.rmtree(made, ignore_errors=True)
            p = subprocess.run(["bash", "-o", "pipefail", "-c", doc_examples.shortened(command)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=120,
                               env=dict(os.environ, PID=str(vm.pid)), check=False)
            check(p.returncode == 0, "`%s`: status %d: %s" % (command, p.returncode, p.stderr[-600:]))
            writes = re.search(r" -o (\S+)", command)
            check(os.path.exists(writes.group(1)) if writes else p.stdout.strip(), "`%s` says nothing" % command)
    say("%d commands of the page" % len(lines))
    figures()


def report(*argv):
    return json.loads(e2e.kvmprof("report", "--json", "-n", "0", *argv).out)


def figures():
    """Where perf has the same option, it has the same figures."""
    if not shutil.which("perf"):
        e2e.left_out("no perf to compare with")
        return
    for ours, theirs in ((("-S", "left_leaf,right_leaf"), ("-S", "left_leaf,right_leaf")),
                         (("-d", "[kernel.kallsyms]"), ("--dsos", "[kernel.kallsyms]")),
                         (("-C", "0"), ("-C", "0")), (("--user-only",), ("--dsos", "demo-user")),
                         (("--time", "10%-50%"), ("--time", "10%-50%"))):
        want = {}
        p = e2e.run("perf", "report", "-i", "demo.data", "--stdio", "--no-children", "-g", "none", "-F", "sample,sym", *theirs)
        for line in p.out.split("\n"):
            m = re.match(r" +(\d+) +\[[k.]\] (\S+)", line)
            if m:
                want[m.group(2)] = want.get(m.group(2), 0) + int(m.group(1))
        got = {}
        for row in report("-i", "demo.data", "--no-children", *ours)["symbols"]:
            if row["self_samples"]:
                got[row["symbol"]] = got.get(row["symbol"], 0) + row["self_samples"]
        check(want and got == want, "%s: ours %s, perf %s" % (ours, got, want))


# -- kernels of other systems -----------------------------------------------------------------

WORK = r"""
	.type main, @function
	.globl main
main:	push %rbp
	mov %rsp, %rbp
	mov $3000000, %ecx
	call hot_loop
	mov $0x2000 | 5 << 10, %eax
	mov $0x604, %edx
	out %ax, %dx		/* ours powers off */
	hlt
	.size main, . - main
	.type hot_loop, @function
hot_loop: push %rbp
	mov %rsp, %rbp
1:	dec %rcx
	jnz 1b
	pop %rbp
	ret
	.size hot_loop, . - hot_loop
"""

# Akaros: a multiboot header and 32-bit code at 1 MiB; the kernel is linked at KERN_LOAD_ADDR and lies 32 MiB above the
# start of physical memory (kern/arch/x86/kernel64.ld).
AKAROS = r"""
	.set HIGH, 0xffffffffc0000000
	.section .boot, "awx"
	.code32
	.balign 4
	.long 0x1badb002, 3, -(0x1badb002 + 3)
	.globl _start
_start:	mov $boot_stack, %esp
	movl $pdpt + 3, tables
	movl $pdpt + 3, tables + 511 * 8
	movl $pd + 3, pdpt
	movl $pd + 3, pdpt + 511 * 8
	mov $pd, %edi
	mov $0x83, %eax
1:	mov %eax, (%edi)
	add $8, %edi
	add $0x200000, %eax
	cmp $pd + 64 * 8, %edi
	jb 1b
	mov $tables, %eax
	mov %eax, %cr3
	mov %cr4, %eax
	or $0x20, %eax
	mov %eax, %cr4
	mov $0xc0000080, %ecx
	rdmsr
	or $0x100, %eax
	wrmsr
	mov %cr0, %eax
	or $0x80000001, %eax
	mov %eax, %cr0
	lgdt gdtr
	ljmp $8, $wide
	.code64
wide:	movabs $kernel_stack, %rsp
	movabs $main, %rax
	jmp *%rax
	.balign 8
gdt:	.quad 0, 0x00af9b000000ffff
gdtr:	.word 15
	.long gdt
	.balign 4096
tables:	.skip 4096
pdpt:	.skip 4096
pd:	.skip 4096
	.skip 4096
boot_stack:
	.text
	.code64
""" + WORK + r"""
	.bss
	.balign 16
	.skip 4096
kernel_stack:
"""
AKAROS_SCRIPT = """
ENTRY(_start)
HIGH = 0xffffffffc0000000;
SECTIONS {
	. = 0x100000;
	.boot : { *(.boot) }
	. = HIGH + 0x2000000;
	.text : AT(ADDR(.text) - HIGH) { *(.text) }
	.bss : AT(ADDR(.bss) - HIGH) { *(.bss) }
	/DISCARD/ : { *(.note.*) }
}
"""

# Redox: linked at KERNEL_OFFSET and entered in 64-bit mode at kstart (linkers/x86_64.ld). Its boot loader maps the kernel;
# here the kernel does that itself.
REDOX = r"""
	.text
	.code64
	.globl kstart
	.type kstart, @function
kstart:	lea tables(%rip), %rax
	lea pdpt(%rip), %rbx
	lea pd(%rip), %rcx
	lea 3(%rbx), %rdx
	mov %rdx, (%rax)
	mov %rdx, 511 * 8(%rax)
	lea 3(%rcx), %rdx
	mov %rdx, (%rbx)
	mov %rdx, 510 * 8(%rbx)
	mov $0x83, %edx
	lea 64 * 8(%rcx), %rdi
1:	mov %rdx, (%rcx)
	add $8, %rcx
	add $0x200000, %rdx
	cmp %rdi, %rcx
	jb 1b
	mov %rax, %cr3
	movabs $kernel_stack, %rsp
	movabs $main, %rax
	jmp *%rax
	.size kstart, . - kstart
""" + WORK + r"""
	.bss
	.balign 4096
tables:	.skip 4096
pdpt:	.skip 4096
pd:	.skip 4096
	.skip 4096
kernel_stack:
"""
REDOX_SCRIPT = """
ENTRY(kstart)
HIGH = 0xffffffff80000000;
SECTIONS {
	. = HIGH + 0x200000;
	.text ALIGN(4K) : AT(ADDR(.text) - HIGH) { *(.text) }
	.bss ALIGN(4K) : AT(ADDR(.bss) - HIGH) { *(.bss) }
	/DISCARD/ : { *(.note*) }
}
"""


def link(path, source, script):
    for name, text in (path + ".s", source), (path + ".lds", script):
        with open(name, "w", encoding="ascii") as f:
            f.write(text)
    subprocess.run(["gcc", "-c", "-o", path + ".o", path + ".s"], check=True)
    subprocess.run(["ld", "-z", "max-page-size=0x1000", "--no-warn-rwx-segments", "-T", path + ".lds", "-o", path, path + ".o"], check=True)


def other_systems():
    if not shutil.which("gcc") or not shutil.which("ld"):
        e2e.left_out("no gcc or ld for kernels of other systems")
        return
    for name, source, script, base, way in (("akaros", AKAROS, AKAROS_SCRIPT, 0xffffffffc0000000, ("--boot", "multiboot")),
                                            ("redox", REDOX, REDOX_SCRIPT, 0xffffffff80000000, ("--boot", "vmlinux"))):
        link(name + ".elf", source, script)
        p = e2e.kvmprof("run", name + ".elf", *way, "-F", "997", "-o", name + ".data", timeout=200)
        if not check(p.status == 0, "%s: status %d: %s" % (name, p.status, p.err)):
            continue
        rows = {r["symbol"]: r for r in report("-i", name + ".data")["symbols"]}
        check({"main", "hot_loop"} <= set(rows), "%s: functions %s" % (name, sorted(rows)))
        hot, main = rows.get("hot_loop", {}), rows.get("main", {})
        check(hot.get("self_samples", 0) > 5 and main.get("children_samples", 0) >= hot.get("self_samples", 0),
              "%s: %s %s" % (name, hot, main))
        check(int(hot.get("address", "0"), 16) >= base, "%s: hot_loop is at %s" % (name, hot.get("address")))
        p = e2e.kvmprof("annotate", "-i", name + ".data", "--children", "main")
        check(re.search(r"^ +\d+\.\d\d +[1-9]\d* .*call.*hot_loop", p.out, re.M), "%s: annotate: %s" % (name, p.out + p.err))
        say("%s: %d samples of hot_loop" % (name, hot.get("self_samples", 0)))


# -- the lab ----------------------------------------------------------------------------------

def lab(text):
    kernel = e2e.built_kernel("smp-fp")
    exact_engine.find_qemu()
    compiled.cc("-O2", "-static", "-pthread", "-o", "lab", os.path.join(e2e.TOP, "tests", "e2e", "lab_programs.c"))
    os.symlink(os.path.join(kernel, "bzImage"), "bzImage")
    with open("disk.img", "wb") as f:
        f.truncate(4 << 20)
    out = []
    for command in commands(text):
        p = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, errors="replace", timeout=900, check=False)
        verdict = command.startswith("kvmprof bench")
        check(p.returncode in ((0, 1) if verdict else (0,)), "`%s`: status %d: %s" % (command, p.returncode, p.stderr[-1500:]))
        check("lab: " not in p.stdout + p.stderr or "failed" not in p.stdout + p.stderr, command + ": " + p.stdout + p.stderr)
        out.append((command, p.stdout))
        say(command)

    def of(part):
        return next((o for c, o in out if part in c), "")

    # The demo: one block again and again, here at sector 128.
    blocks = re.findall(r"^[\d.]+ +\S+ +\S+ +\S+ +R +(\d+) +4096 ", of("lab io"), re.M)
    check(blocks.count("128") >= 100, "iosnoop: sectors %s" % sorted(set(blocks))[:9])
    # 1: the exits come from one function, through the program's system call.
    total = report("-i", "ports.data")["samples"]
    mine = report("-i", "ports.data", "-p", "^write_port$")["samples"]
    check(total > 5000 and mine > 0.9 * total and "write_port" in of("report -i ports.data"),
          "%d of %d exits are below write_port" % (mine, total))
    # 2, 3: instructions, the same in each run; the page's base is the slow side.
    for base, call in (("processes", "__x64_sys_clone"), ("copy", "__x64_sys_read")):
        m = re.search(r"# head does ([\d.]+) % less work from /init on", of("lab %s" % base))
        check(m and float(m.group(1)) > 30 and call in of("lab %s" % base), "lab %s: %s" % (base, of("lab %s" % base)[:2000]))
        say("lab %s: the other way does %s %% less" % (base, m.group(1) if m else "not"))
    # 4: the writers wait for the disk.
    rows = report("-i", "waits.data", "--event", "off-cpu", "--sort", "comm,sym", "-c", "lab")["symbols"]
    check(any("blk" in r["symbol"] or "io_schedule" in r["symbol"] or "wait" in r["symbol"] for r in rows),
          "what lab waits for: %s" % rows[:8])


def main():
    e2e.need_kvm()
    os.mkdir("bin")
    os.symlink(e2e.KVMPROF, "bin/kvmprof")
    os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
    text = doc_examples.read(PAGE)
    before, _, after = text.partition(LAB)
    if not check(after, "the page has no section of the lab"):
        e2e.finish()
    if e2e.EXTRA[:1] == ["lab"]:
        lab(after)
    else:
        other_systems()
        tables(before)
    e2e.finish()


main()
