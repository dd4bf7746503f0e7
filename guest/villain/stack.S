/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loops with arbitrary stack and frame pointers, to be sampled. */

#include "../function.h"

	/* Reads the time to %rax. */
	.macro now
	rdtsc
	shlq	$32, %rdx
	movl	%eax, %eax
	orq	%rdx, %rax
	.endm

	.text
/* void stack_spin(u64 rsp, u64 rbp, u64 cycles): interrupts are off. */
function stack_spin
	save_registers
	movq	%rdx, %r9
	movq	%rsp, %r10
	now
	leaq	(%rax, %r9), %r8
	movq	%rdi, %rsp
	movq	%rsi, %rbp
1:	now
	cmpq	%r8, %rax
	jb	1b
	movq	%r10, %rsp
	restore_registers
	ret
endfunction stack_spin

/*
 * void stack_spin_flip(u64 rsp, u64 cycles, u64 *entry, const u64 *values, u64 n): rsp is also rbp;
 * *entry is set to each of the values in turn meanwhile.
 */
function stack_spin_flip
	save_registers
	movq	%rdx, %r11
	movq	%rsp, %r10
	movq	%rsi, %r9
	now
	leaq	(%rax, %r9), %r9
	xorl	%ebx, %ebx
	movq	%rdi, %rsp
	movq	%rdi, %rbp
1:	movq	(%rcx, %rbx, 8), %rax
	movq	%rax, (%r11)
	incq	%rbx
	cmpq	%r8, %rbx
	jb	2f
	xorl	%ebx, %ebx
2:	now
	cmpq	%r9, %rax
	jb	1b
	movq	%r10, %rsp
	restore_registers
	ret
endfunction stack_spin_flip

/* void stack_spin_cr3(u64 rsp, u64 cycles, u64 a, u64 b): %cr3 alternates between a and b. */
function stack_spin_cr3
	save_registers
	movq	%rdx, %r11
	movq	%rcx, %r12
	movq	%rsp, %r10
	now
	leaq	(%rax, %rsi), %r9
	movq	%rdi, %rsp
	movq	%rdi, %rbp
1:	movq	%r12, %cr3
	movq	%r11, %cr3
	now
	cmpq	%r9, %rax
	jb	1b
	movq	%r10, %rsp
	restore_registers
	ret
endfunction stack_spin_cr3

/* void stack_spin_modified(u64 cycles): its own instructions change all the time. */
function stack_spin_modified
	save_registers
	now
	leaq	(%rax, %rdi), %r9
	xorl	%ebx, %ebx
1:	incl	%ebx
	movl	%ebx, 2f+1(%rip)
2:	movl	$0x12345678, %ecx
	cmpl	%ebx, %ecx
	jne	3f
	now
	cmpq	%r9, %rax
	jb	1b
3:	restore_registers
	ret
endfunction stack_spin_modified

	.section .note.GNU-stack, "", @progbits
