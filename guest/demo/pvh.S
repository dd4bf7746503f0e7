/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demo kernel's second entry, PVH, for VMMs that do not know Linux's boot protocol.
 *
 * It is entered in 32-bit protected mode, flat segments, paging off, %ebx = struct hvm_start_info
 * (Xen's public/arch-x86/hvm/start_info.h; the note is XEN_ELFNOTE_PHYS32_ENTRY of
 * public/elfnote.h). It continues in long mode at startup, with boot_params that have only the
 * command line.
 */

#define KERNEL_MAP	0xffffffff80000000
#define PHYS(x)		((x) - KERNEL_MAP)

#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define START_INFO_CMDLINE	24	/* u64 cmdline_paddr */
#define BOOT_PARAMS_CMD_LINE_PTR 0x228

#define CR0_PG_PE	0x80000001
#define CR4_PAE		0x20
#define MSR_EFER	0xc0000080
#define EFER_LME	0x100
#define KERNEL_CS	0x10

	.section .note.pvh, "a", @note
	.balign	4
	.long	4		/* "Xen" */
	.long	4
	.long	XEN_ELFNOTE_PHYS32_ENTRY
	.asciz	"Xen"
	.long	PHYS(pvh_startup)

	.text
	.code32
	.globl	pvh_startup
	.type	pvh_startup, @function
pvh_startup:
	cli
	cld
	movl	START_INFO_CMDLINE(%ebx), %eax
	movl	%eax, PHYS(pvh_boot_params) + BOOT_PARAMS_CMD_LINE_PTR
	movl	$PHYS(boot_pml4), %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	lgdt	PHYS(pvh_gdt_pointer)
	movl	%cr0, %eax
	orl	$CR0_PG_PE, %eax
	movl	%eax, %cr0
	/* The tables map this page to itself. */
	ljmpl	$KERNEL_CS, $PHYS(pvh_long)
	.code64
pvh_long:
	movl	$PHYS(pvh_boot_params), %esi
	jmp	startup
	.size	pvh_startup, . - pvh_startup

	.data
	.balign	8
pvh_gdt_pointer:
	.word	0x1f		/* up to the kernel's data */
	.long	PHYS(gdt)

	.bss
	.balign	8
pvh_boot_params:
	.skip	BOOT_PARAMS_CMD_LINE_PTR + 8

	.section .note.GNU-stack, "", @progbits
