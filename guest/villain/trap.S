/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions that may raise an exception: each function returns 1, or 0 if an exception occurred.
 * Other exceptions go to exception_stubs of the demo, which print the name of the exception and end
 * the run.
 */

#include "../function.h"

	.text
	/* Saves callee-saved registers on the stack, and the stack pointer in trap_rsp. */
	.macro begin
	save_registers
	pushfq
	movq	$trap_caught, trap_resume(%rip)
	movq	%rsp, trap_rsp(%rip)
	.endm

	.macro end
	movl	$1, %eax
	jmp	trap_end
	.endm

function trap_try_rdmsr
	begin
	movl	%edi, %ecx
	rdmsr
	shlq	$32, %rdx
	movl	%eax, %eax
	orq	%rdx, %rax
	movq	%rax, (%rsi)
	end
endfunction trap_try_rdmsr

function trap_try_wrmsr
	begin
	movl	%edi, %ecx
	movl	%esi, %eax
	movq	%rsi, %rdx
	shrq	$32, %rdx
	wrmsr
	end
endfunction trap_try_wrmsr

function trap_try_read32
	begin
	movl	(%rdi), %eax
	movl	%eax, (%rsi)
	end
endfunction trap_try_read32

function trap_try_call
	begin
	call	*%rdi
	end
endfunction trap_try_call

/* Continues here with the stack that the handler restored. */
function trap_caught
	xorl	%eax, %eax
endfunction trap_caught
function trap_end
	movq	$0, trap_resume(%rip)
	popfq
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
endfunction trap_end

/* The same vectors as exception_stubs, 32 bytes each. */
	.balign	32
function trap_stubs
	.Lvector = 0
	.rept	32
	.balign	32
	cmpq	$0, trap_resume(%rip)
	je	exception_stubs + 16 * .Lvector
	jmp	trap_taken
	.Lvector = .Lvector + 1
	.endr
endfunction trap_stubs

/* No iretq: the exception was in ring 0, and the function may lose all its registers. */
function trap_taken
	cld
	movq	trap_rsp(%rip), %rsp
	jmp	*trap_resume(%rip)
endfunction trap_taken

	.bss
	.balign	8
	.globl	trap_resume, trap_rsp
trap_resume:
	.skip	8
trap_rsp:
	.skip	8

	.section .note.GNU-stack, "", @progbits
