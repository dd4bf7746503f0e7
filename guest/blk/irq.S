/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handles the disk's interrupt: counts it and acknowledges it at the local APIC, which is mapped
 * one to one.
 */

#define LAPIC_EOI 0xfee000b0

	.text
	.globl	irq_entry
	.type	irq_entry, @function
irq_entry:
	pushq	%rax
	incq	irq_count(%rip)
	movl	$LAPIC_EOI, %eax
	movl	$0, (%rax)
	popq	%rax
	iretq
	.size	irq_entry, . - irq_entry

	.bss
	.balign	8
	.globl	irq_count
irq_count:
	.skip	8

	.section .note.GNU-stack, "", @progbits
