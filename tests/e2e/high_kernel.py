# SPDX-License-Identifier: GPL-2.0-or-later
"""A 64-bit kernel in the shape of FreeBSD's: it is linked high (p_vaddr) and loaded low (p_paddr), the entry in its ELF
header is a linked address, and its PVH note has a physical one."""

import shutil
import subprocess

import e2e

HIGH_SOURCE = r"""
	.set HIGH, 0xffffffff80000000
	.section .note.pvh, "a", @note
	.long 4, 4, 18
	.asciz "Xen"
	.long start - HIGH
	.text
	.code32
start:	mov $stack - HIGH, %esp
	mov $tables - HIGH, %eax	/* one page of each level for the low and the high 2 MiB */
	mov %eax, %cr3
	movl $pdpt - HIGH + 3, tables - HIGH
	movl $pdpt - HIGH + 3, tables - HIGH + 511 * 8
	movl $pd - HIGH + 3, pdpt - HIGH
	movl $pd - HIGH + 3, pdpt - HIGH + 510 * 8
	movl $0x200083, pd - HIGH + 8
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
	lgdt gdtr - HIGH
	ljmp $8, $wide - HIGH
	.code64
wide:	movabs $main, %rax
	jmp *%rax
	.type main, @function
	.globl main
main:	mov $30000000, %ecx
	call hot_loop
	mov $0x2000 | 5 << 10, %eax
	mov $0x604, %edx
	out %ax, %dx		/* ours powers off */
	mov $0xfe, %al
	out %al, $0x64		/* QEMU's resets */
	hlt
	.size main, . - main
	.type hot_loop, @function
hot_loop: dec %rcx
	jnz hot_loop
	ret
	.size hot_loop, . - hot_loop
	.balign 8
gdt:	.quad 0, 0x00af9b000000ffff
gdtr:	.word 15
	.long gdt - HIGH
	.bss
	.balign 4096
tables:	.skip 4096
pdpt:	.skip 4096
pd:	.skip 4096
	.skip 4096
stack:
"""
HIGH_SCRIPT = """
ENTRY(main)
HIGH = 0xffffffff80000000;
SECTIONS {
	. = HIGH + 0x200000;
	.text : AT(ADDR(.text) - HIGH) { *(.text) }
	.note : AT(ADDR(.note) - HIGH) { *(.note.pvh) }
	.bss : AT(ADDR(.bss) - HIGH) { *(.bss) }
	/DISCARD/ : { *(.note.gnu.*) }
}
"""


def make(path):
    """Writes the kernel. Returns False without a compiler, which is said."""
    if not shutil.which("gcc") or not shutil.which("ld"):
        e2e.left_out("no gcc or ld for a kernel that is linked high")
        return False
    for name, text in (path + ".s", HIGH_SOURCE), (path + ".lds", HIGH_SCRIPT):
        with open(name, "w", encoding="ascii") as f:
            f.write(text)
    subprocess.run(["gcc", "-c", "-o", path + ".o", path + ".s"], check=True)
    subprocess.run(["ld", "-T", path + ".lds", "-o", path, path + ".o"], check=True)
    return True
