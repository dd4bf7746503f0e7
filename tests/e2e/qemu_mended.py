#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 1 s
# tests: not svm, files
"""qemu_mended.py KVMPROF SCRATCH: scripts/mend-qemu.py takes out the store that it is for, and nothing else.

On a program with functions of those names, whose store is seen in its output. That the QEMU which tests run
is mended, and what for, is shown by guests that hung: attach_kvm and cloud_boot 7.1 on emulated hosts."""

import os

import compiled
import e2e
from e2e import check

MEND = os.path.join(e2e.TOP, "scripts", "mend-qemu.py")

# cpu[] is the CPUState, %rbx in it where QEMU has the registers: 0x2d0 is exception_index, 0x2bc0 + 0x3400 error_code.
PROGRAM = r"""
#include <stdio.h>
char cpu[0x8000];
void helper_vmrun(void), cpu_loop_exit_noexc(void *);
__asm__(".text\n.globl helper_vmrun, do_interrupt_x86_hardirq, cpu_loop_exit_noexc\n"
	".type helper_vmrun, @function\n.type do_interrupt_x86_hardirq, @function\n.type cpu_loop_exit_noexc, @function\n"
	"do_interrupt_x86_hardirq: ret\n.size do_interrupt_x86_hardirq, .-do_interrupt_x86_hardirq\n"
	"cpu_loop_exit_noexc: movl $-1, 0x2d0(%rdi)\n ret\n.size cpu_loop_exit_noexc, .-cpu_loop_exit_noexc\n"
	"helper_vmrun: push %rbx\n lea cpu+0x2bc0(%rip), %rbx\n mov $0x21, %esi\n"
	" mov %esi, 0x3400(%rbx)\n"
	STORE
	" call do_interrupt_x86_hardirq\n pop %rbx\n ret\n.size helper_vmrun, .-helper_vmrun\n");
int main(void)
{
	cpu_loop_exit_noexc(cpu);
	helper_vmrun();
	return printf("%d %d\n", *(int *)(cpu + 0x2d0), *(int *)(cpu + 0x2bc0 + 0x3400)) < 0;
}
"""
STORE = '" mov %esi, -0x28f0(%rbx)\\n"'


def build(name, store):
    with open(name + ".c", "w") as f:
        f.write(PROGRAM.replace("STORE", store))
    compiled.cc("-rdynamic", "-o", name, name + ".c")
    with open(name, "rb") as f:
        return f.read()


def mend(path):
    return e2e.run(MEND, path)


def left(path, status, why):
    before = open(path, "rb").read() if os.path.isfile(path) else None
    p = mend(path)
    check(p.status == status and why in p.err and p.err.count("\n") == 1, "%s: status %d: %s" % (path, p.status, p.err))
    check(before is None or open(path, "rb").read() == before, path + " was changed")


before = build("one", STORE)
check(e2e.run("./one").out == "33 33\n", "the program does not store what it should: " + e2e.run("./one").out)
p = mend("one")
check(p.status == 0 and not p.err, "status %d: %s" % (p.status, p.err))
check(e2e.run("./one").out == "-1 33\n", "after it was mended: " + e2e.run("./one").out)
with open("one", "rb") as f:
    after = f.read()
changed = [i for i in range(len(before)) if before[i] != after[i]]
check(len(before) == len(after) and changed and changed[-1] - changed[0] < 6, "bytes changed at %s" % changed)
left("one", 3, "0 stores in front of that call")
build("two", STORE + STORE)
left("two", 3, "2 stores in front of that call")
build("none", '""')
left("none", 3, "0 stores")
left("/bin/true", 3, "it names no helper_vmrun")
for name, content in (("text", b"#!/bin/sh\n"), ("empty", b""), ("cut", before[:3000]), ("header", before[:50])):
    with open(name, "wb") as f:
        f.write(content)
    left(name, 3, "left as it is")
left("absent", 1, "No such file")
e2e.finish()
