/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions in assembly that have a symbol with a type and a size. */
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

	/* A frame, and the registers that a C function leaves alone. */
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
