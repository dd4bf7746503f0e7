/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of the 32-bit kernel: Multiboot 1 (Multiboot Specification 0.6.96), Multiboot2
 * (Multiboot2 Specification 2.0) and PVH (Xen's public/arch-x86/hvm/start_info.h,
 * public/elfnote.h). All are in 32-bit protected mode with flat segments and paging off, and it stays that way.
 *
 * The headers have addresses, so that the bytes of the loaded image alone (mb.bin) can
 * be booted as well.
 */

#define MULTIBOOT_MAGIC	0x1badb002
#define MULTIBOOT_FLAGS	0x00010003	/* modules on pages, memory map, addresses */
#define MULTIBOOT_BOOT	0x2badb002	/* in %eax */
#define MULTIBOOT2_MAGIC 0xe85250d6
#define MULTIBOOT2_LENGTH (multiboot2_end - multiboot2_header)
#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define STACK_SIZE	16384

	.section .multiboot, "ax"
	.balign	4
multiboot_header:
	.long	MULTIBOOT_MAGIC
	.long	MULTIBOOT_FLAGS
	.long	-(MULTIBOOT_MAGIC + MULTIBOOT_FLAGS)
	.long	multiboot_header
	.long	_text
	.long	_edata
	.long	_end
	.long	mb_start

	.balign	8
multiboot2_header:
	.long	MULTIBOOT2_MAGIC
	.long	0			/* i386 */
	.long	MULTIBOOT2_LENGTH
	.long	-(MULTIBOOT2_MAGIC + MULTIBOOT2_LENGTH)
	.short	1, 0			/* information request: memory map */
	.long	12
	.long	6
	.balign	8
	.short	2, 0			/* addresses */
	.long	24
	.long	multiboot2_header
	.long	_text
	.long	_edata
	.long	_end
	.short	3, 0			/* entry */
	.long	12
	.long	mb_start
	.balign	8
	.short	0, 0			/* end */
	.long	8
multiboot2_end:

	.section .note.pvh, "a", @note
	.balign	4
	.long	4		/* "Xen" */
	.long	4
	.long	XEN_ELFNOTE_PHYS32_ENTRY
	.asciz	"Xen"
	.long	pvh_start

	.text
	.globl	mb_start, pvh_start
	.type	mb_start, @function
	.type	pvh_start, @function
pvh_start:
	/* The structure behind %ebx begins with a number of its own. */
	movl	(%ebx), %eax
	.size	pvh_start, . - pvh_start
mb_start:
	cli
	cld
	movl	$(stack + STACK_SIZE), %esp
	xorl	%ebp, %ebp
	pushl	%ebx
	pushl	%eax
	/*
	 * Not a call: with a zero frame pointer and a zero return address a
	 * frame-pointer walk ends exactly at mb_main.
	 */
	pushl	$0
	jmp	mb_main
	.size	mb_start, . - mb_start

	.bss
	.balign	4096	/* not more: the header must be in the file's first 8192 bytes */
stack:
	.skip	STACK_SIZE

	.section .note.GNU-stack, "", @progbits
