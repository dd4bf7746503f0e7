/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Macros for functions in assembly, whose symbols have a type and a size. */
#ifndef GUEST_FUNCTION_H
#define GUEST_FUNCTION_H

	.macro function name
	.globl	\name
	.type	\name, @function
\name:
	.endm

	.macro endfunction name
	.size	\name, . - \name
	.endm

	/* Save and restore a frame and the registers that a C function must preserve. */
	.macro save_registers
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	.endm

	.macro restore_registers
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	.endm

#endif
