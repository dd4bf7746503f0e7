/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way of the second vCPU from its start-up interrupt to ap_main(): directly from real mode to
 * long mode (SDM vol. 3, 10.8.5, without the intermediate steps), with the tables of the first one.
 * The code between ap_trampoline and its end is copied to AP_PAGE, which is mapped one to one
 * meanwhile.
 */

#define KERNEL_MAP	0xffffffff80000000
#define AP_PAGE		0x8000
#define STACK_SIZE	16384
#define PHYS(x)		((x) - KERNEL_MAP)
#define COPIED(x)	((x) - ap_trampoline)

#define CR0_PG_PE	0x80000001
#define CR4_PAE		0x20
#define MSR_EFER	0xc0000080
#define EFER_LME	0x100
#define KERNEL_CS	0x10
#define KERNEL_DS	0x18

	.text
	.globl	ap_trampoline, ap_trampoline_end
	.code16
ap_trampoline:
	cli
	movw	%cs, %ax
	movw	%ax, %ds
	lgdtl	COPIED(.Lgdt)
	movl	%cr4, %eax
	orl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	COPIED(.Lcr3), %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$CR0_PG_PE, %eax
	movl	%eax, %cr0
	ljmpl	$KERNEL_CS, $(AP_PAGE + COPIED(.Llong))
	.code64
.Llong:
	movl	$KERNEL_DS, %eax
	movl	%eax, %ss
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movabsq	$(ap_stack + STACK_SIZE), %rsp
	xorl	%ebp, %ebp
	movabsq	$ap_main, %rax
	pushq	$0
	jmp	*%rax
	.balign	4
.Lcr3:
	.long	PHYS(boot_pml4)
.Lgdt:
	.word	0x1f
	.long	PHYS(gdt)
ap_trampoline_end:

	.bss
	.balign	STACK_SIZE
ap_stack:
	.skip	STACK_SIZE

	.section .note.GNU-stack, "", @progbits
