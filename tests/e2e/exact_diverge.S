/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest of exact_diverge.py: a 32-bit Multiboot kernel. It reads the digit behind `@` on its command
 * line, has the PIT interrupt it after that many times 1.7 ms, forgets the digit and counts until the
 * interrupt comes, which ends it, with -DSTATUS. With -DLONGER one instruction of `count` is another one.
 */
#define MAGIC 0x1badb002
#define FLAGS 0x00000003
#define CMDLINE 16 /* in the Multiboot information, at %ebx */
#define VECTOR 0x20
#ifndef STATUS
#define STATUS 0
#endif

	.section .multiboot, "ax"
	.balign 4
	.long MAGIC, FLAGS, -(MAGIC + FLAGS)

	.macro outb_al value, port
	movb $\value, %al
	outb %al, $\port
	.endm

	.text
	.globl _start, find, digit, count, tick
	.type _start, @function
_start:
	cli
	cld
	movl $stack_end, %esp
	lgdt gdt_pointer
	ljmp $8, $reloaded
reloaded:
	movl $16, %eax
	movl %eax, %ds
	movl %eax, %ss
	movl %eax, %es
	/* The gate's handler, in two halves. */
	movl $tick, %eax
	movw %ax, idt + 8 * VECTOR
	movw $8, idt + 8 * VECTOR + 2
	movw $0x8e00, idt + 8 * VECTOR + 4
	shrl $16, %eax
	movw %ax, idt + 8 * VECTOR + 6
	lidt idt_pointer
	/* The master PIC's lines from VECTOR on; all masked but the PIT's. */
	outb_al 0x11, 0x20
	outb_al VECTOR, 0x21
	outb_al 0x04, 0x21
	outb_al 0x01, 0x21
	outb_al 0xfe, 0x21
	movl CMDLINE(%ebx), %esi
find:
	lodsb
	cmpb $'@', %al
	jne find
digit:
	movzbl (%esi), %edx
	subl $'0', %edx
	shll $3, %edx
	outb_al 0x34, 0x43
	outb_al 0, 0x40
	movb %dl, %al
	outb %al, $0x40
	xorl %eax, %eax
	xorl %edx, %edx
	sti
count:
#ifdef LONGER
	leal 2(%ecx), %ecx
#else
	leal 1(%ecx), %ecx
#endif
	jmp count

	/* isa-debug-exit: the guest ends with a status. */
tick:
	movw $0x501, %dx
	movb $STATUS, %al
	outb %al, %dx
	hlt
	jmp tick

	.data
	.balign 8
gdt:
	.quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdt_pointer:
	.word gdt_pointer - gdt - 1
	.long gdt
idt_pointer:
	.word 8 * (VECTOR + 1) - 1
	.long idt

	.bss
	.balign 16
idt:
	.skip 8 * (VECTOR + 1)
	.balign 16
	.skip 4096
stack_end:

	.section .note.GNU-stack, "", @progbits
