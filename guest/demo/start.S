/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demo kernel's entry, tables and everything that cannot be C.
 *
 * Entered at its physical address in long mode by the Linux 64-bit boot
 * protocol (Documentation/x86/boot.rst): low memory identity mapped, %rsi =
 * boot_params, interrupts off, no stack to speak of.
 */

#include "../function.h"

#define KERNEL_MAP	0xffffffff80000000
#define STACK_SIZE	16384

/* The same selectors as 64-bit Linux, so that tools need no second set. */
#define KERNEL_CS	0x10
#define KERNEL_DS	0x18
#define USER_DS		0x2b
#define USER_CS		0x33

/* Page table bits: present, writable, user, accessed, dirty, large page */
#define PT_TABLE	0x67
#define PT_USER		0x67
#define PT_KERNEL_2M	0xe3
#define PT_USER_LARGE	0xe7

	.text
function startup
	cli
	cld
	movl	$(boot_pml4 - KERNEL_MAP), %eax
	movq	%rax, %cr3
	movabsq	$startup_high, %rax
	jmp	*%rax
endfunction startup

function startup_high
	lgdt	gdt_pointer(%rip)
	movq	$(main_stack + STACK_SIZE), %rsp
	movl	$KERNEL_DS, %eax
	movl	%eax, %ss
	/* Ring 3 would not be let in with kernel selectors here anyway. */
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %fs
	movl	%eax, %gs
	pushq	$KERNEL_CS
	pushq	$.Lreloaded
	lretq
.Lreloaded:
	/* The identity mapping has done its work; what is left of the low
	 * half is the user's. */
	movq	$0, low_pd + 8 * 8(%rip)
	movq	%cr3, %rax
	movq	%rax, %cr3
	/*
	 * Not a call: with a zero frame pointer and a zero return address a
	 * frame-pointer walk ends exactly at demo_main.
	 */
	movq	%rsi, %rdi
	xorl	%ebp, %ebp
	pushq	$0
	jmp	demo_main
endfunction startup_high

/*
 * u64 enter_user(u64 which, u64 budget): runs user_main in ring 3 and returns
 * what it passed to int 0x80. Registers live on this stack meanwhile; the
 * trap arrives on trap_stack.
 */
function enter_user
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushfq
	movq	%rsp, resume_rsp(%rip)
	pushq	$USER_DS
	pushq	$(user_stack + STACK_SIZE - 8)	/* a zero return address is there */
	pushq	$0x202				/* interrupts on */
	pushq	$USER_CS
	pushq	$user_main
	xorl	%ebp, %ebp
	iretq
endfunction enter_user

/* The second half of enter_user, from ring 3 by way of a DPL 3 gate. */
function int80_entry
	movq	resume_rsp(%rip), %rsp
	popfq
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
endfunction int80_entry

/* As short as can be: on a slow host each instruction here is 0.6 us taken
 * from the leaf that was interrupted. */
function irq0_entry
	pushq	%rax
	incq	irq0_count(%rip)
	movb	$0x20, %al
	outb	%al, $0x20
	popq	%rax
	iretq
endfunction irq0_entry

/* IRQ 7 without a source: the PIC wants no EOI for it. */
function spurious_entry
	iretq
endfunction spurious_entry

/* One 16-byte stub for each exception; those without an error code push 0. */
	.balign	16
function exception_stubs
	.Lvector = 0
	.rept	32
	.balign	16
	.if !((0x60227d00 >> .Lvector) & 1)
	pushq	$0
	.endif
	pushq	$.Lvector
	jmp	exception_common
	.Lvector = .Lvector + 1
	.endr
endfunction exception_stubs

/*
 * Some KVMs (kvm_pvm) do not do a software interrupt but raise #UD at it, or
 * #GP: then its instruction is at the saved rip, and all is as int80_entry
 * expects. (Stack here: vector, error, rip, cs, ...)
 */
function exception_common
	testb	$3, 24(%rsp)
	jz	1f
	movq	16(%rsp), %rcx
	cmpw	$0x80cd, (%rcx)
	je	int80_entry
1:	movq	%rsp, %rdi
	andq	$-16, %rsp
	call	fault
2:	hlt
	jmp	2b
endfunction exception_common

	.data
	.balign	16
	.globl	gdt
gdt:
	.quad	0
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x10 kernel code, 64-bit */
	.quad	0x00cf93000000ffff	/* 0x18 kernel data */
	.quad	0
	.quad	0x00cff3000000ffff	/* 0x28 user data */
	.quad	0x00affb000000ffff	/* 0x30 user code, 64-bit */
	.quad	0
	.quad	0, 0			/* 0x40 TSS, filled in by tables_init */
gdt_end:
gdt_pointer:
	.word	gdt_end - gdt - 1
	.quad	gdt

/*
 * Page tables, laid out by the linker: no instructions spent on them.
 *   KERNEL_MAP + 0..1 GiB  -> physical 0..1 GiB, 2 MiB pages
 *   4 MiB .. 4 MiB + 64 K  -> physical 18 MiB.., 4 KiB pages, user
 *   16 MiB .. 18 MiB       -> itself, only until startup_high
 * and for mode=pages (pages.h), all of it the user's:
 *   5 MiB .. 6 MiB         -> physical 20 MiB.., 4 KiB pages
 *   512 GiB + 0..1 GiB     -> physical 0..1 GiB, one page of 1 GiB
 *   1 TiB + 16 .. 32 MiB   -> physical 16 .. 32 MiB, 2 MiB pages
 */
	.balign	4096
	.globl	boot_pml4
boot_pml4:
	.quad	low_pdpt - KERNEL_MAP + PT_TABLE
	.quad	user_1g_pdpt - KERNEL_MAP + PT_TABLE
	.quad	user_2m_pdpt - KERNEL_MAP + PT_TABLE
	.fill	508, 8, 0
	.quad	high_pdpt - KERNEL_MAP + PT_TABLE
low_pdpt:
	.quad	low_pd - KERNEL_MAP + PT_TABLE
	.fill	511, 8, 0
low_pd:
	.fill	2, 8, 0
	.quad	user_pt - KERNEL_MAP + PT_TABLE
	.fill	5, 8, 0
	.quad	0x1000000 + PT_KERNEL_2M
	.fill	503, 8, 0
user_pt:
	.Lpage = 0x1200000
	.rept	16
	.quad	.Lpage + PT_USER
	.Lpage = .Lpage + 4096
	.endr
	.fill	240, 8, 0
	.Lpage = 0x1400000
	.rept	256
	.quad	.Lpage + PT_USER
	.Lpage = .Lpage + 4096
	.endr
user_1g_pdpt:
	.quad	PT_USER_LARGE
	.fill	511, 8, 0
user_2m_pdpt:
	.quad	user_2m_pd - KERNEL_MAP + PT_TABLE
	.fill	511, 8, 0
user_2m_pd:
	.fill	8, 8, 0
	.Lpage = 0x1000000
	.rept	8
	.quad	.Lpage + PT_USER_LARGE
	.Lpage = .Lpage + 0x200000
	.endr
	.fill	496, 8, 0
high_pdpt:
	.fill	510, 8, 0
	.quad	high_pd - KERNEL_MAP + PT_TABLE
	.quad	0
high_pd:
	.Lpage = 0
	.rept	512
	.quad	.Lpage + PT_KERNEL_2M
	.Lpage = .Lpage + 0x200000
	.endr

	.globl	page_tables_end
page_tables_end:

	.bss
	.balign	8
	.globl	irq0_count
irq0_count:
	.skip	8
resume_rsp:
	.skip	8

	/* Size = alignment, as in Linux: a stack's end is a matter of masking. */
	.section .bss.stacks, "aw", @nobits
	.balign	STACK_SIZE
	.globl	main_stack, trap_stack
main_stack:
	.skip	STACK_SIZE
trap_stack:
	.skip	STACK_SIZE

	.section .user.stack, "aw", @nobits
	.balign	STACK_SIZE
	.globl	user_stack
user_stack:
	.skip	STACK_SIZE

	.section .note.GNU-stack, "", @progbits
