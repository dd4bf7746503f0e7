/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image: parses a kernel file, recognised by content, into a validated load plan.
 *
 * Parsers work on bytes and do no I/O. The result of image_parse() can be loaded without further
 * checks against the file: every segment is inside the ELF bytes, no two overlap, and no address
 * wraps. boot_load() decides whether it fits into the guest's RAM, and whether a bzImage can be
 * entered through its own decompressor, which is rarely requested. An ELF that no loader could
 * place or enter is not an error here, because only its symbols may be needed; protocol_of_image()
 * rejects it.
 *
 * For every kind of file, img->elf is an ELF64: other forms are converted (widen.c). For a unified
 * kernel image it is the kernel inside; uki.h has the rest.
 *
 * Pure functions; any thread, one at a time per object.
 *
 * Sources: Documentation/arch/x86/boot.rst (Linux boot protocol 2.15), ELF-64 Object File Format
 * 1.5, Multiboot 0.6.96, Multiboot2 2.0, Xen's hvm/start_info.h.
 */
#ifndef KVMPROF_VMM_IMAGE_IMAGE_H
#define KVMPROF_VMM_IMAGE_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_MAX_SEGMENTS 16
#define BOOT_MAX_FILE (2ull << 30)   /* bytes of the largest kernel file that is mapped */
#define BOOT_MAX_KERNEL (1ull << 30) /* bytes of the largest decompressed kernel */
#define BOOT_SETUP_HEADER_MAX 0x80   /* maximum bytes of setup_header, from 0x1f1 */

enum boot_kind {
	BOOT_ELF64 = 1, /* vmlinux or any ELF64 executable for x86-64 */
	BOOT_BZIMAGE,	/* Linux bzImage; its payload is an ELF64 vmlinux */
	BOOT_ELF32,	/* an ELF32 executable for x86, perhaps with 64-bit code (Xen) */
	BOOT_FLAT,	/* a multiboot kernel whose header has load addresses */
	BOOT_LINUXLIKE, /* a bzImage without a vmlinux inside: memtest86+, iPXE */
};

struct boot_segment {
	uint64_t gpa;	   /* guest-physical load address (p_paddr) */
	uint64_t va;	   /* link address (p_vaddr) */
	uint64_t file_off; /* offset in boot_image.elf */
	uint64_t file_len;
	uint64_t mem_len; /* >= file_len; the remaining bytes are zero */
};

struct boot_image {
	enum boot_kind kind;
	bool is_linux;	    /* a Linux kernel: needs boot_params, has stacks of 16 KiB */
	const uint8_t *elf; /* the ELF64 bytes: the file itself or `unpacked` */
	size_t elf_len;
	uint8_t *unpacked; /* owned; NULL if elf is in the file */
	/*
	 * Guest-physical address of the first instruction. 0: the ELF's entry is in no segment, so
	 * the kernel can only be entered by another method.
	 */
	uint64_t entry;
	uint64_t elf_entry; /* e_entry, physical or virtual */
	uint64_t low, high; /* [low, high) covers all segments in guest-physical memory */
	struct boot_segment seg[BOOT_MAX_SEGMENTS];
	unsigned int nseg;
	/* From file offset 0x1f1; zeros if the file has none. */
	uint8_t setup_header[BOOT_SETUP_HEADER_MAX];
	size_t setup_header_len; /* bytes; 0: the file has none */
	/*
	 * The protected-mode part of a bzImage, decompressor and payload, as far as the file
	 * contains it. Points into the file; NULL for ELF64.
	 */
	const uint8_t *pm;
	size_t pm_len;
	const uint8_t *setup; /* its whole real-mode part; points into the file */
	size_t setup_len;
	bool multiboot;	    /* has a multiboot 1 header */
	bool mb_pages;	    /* its multiboot header requires modules at page boundaries */
	uint32_t mb_entry;  /* entry by the multiboot 1 header; 0: none */
	uint32_t mb2_entry; /* entry by the multiboot2 header; 0: none */
	uint32_t pvh_entry;
	struct err unloaded;	 /* code is not 0: the reason why no loader can place this kernel */
	uint32_t cmdline_max;	 /* bytes without NUL that the kernel accepts */
	char version[128];	 /* kernel_version of a bzImage, or "" */
	const char *compression; /* "gzip", "xz", "zstd", "lz4", ... or "none"; static text */
};

/*
 * Recognises and validates a file. name is used in messages only. `file` must stay mapped while
 * *img is used, because img->elf, img->pm and img->setup may point into it. Returns 0; -EINVAL for
 * a foreign, truncated or hostile file; -ENOTSUP for a known kind that cannot be booted (32-bit
 * kernel, unknown compression); or -ENOMEM. *e names file, offset, found and expected value. *img
 * is written only on success; the caller frees it with image_deinit().
 */
int image_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e);
/* Frees what img owns and clears it. NULL is accepted. */
void image_deinit(struct boot_image *img);

#endif
