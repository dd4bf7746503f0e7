/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image: a kernel file, recognised by content, as a validated load plan.
 *
 * Parsers take bytes and do no I/O. What comes out of image_parse() can be
 * loaded without further checks against the file: every segment lies inside the
 * ELF bytes, no two overlap, and no address wraps. Whether it fits into the
 * guest's RAM is decided by boot_load(), and so is whether a bzImage can be
 * entered through its own decompressor, which few ask for. An ELF that no loader
 * could place or enter is no error here, as its symbols may be all that is wanted:
 * way_of_image() refuses it.
 *
 * Whatever the file is, img->elf is an ELF64: other forms are widened (widen.c). Of a
 * unified kernel image it is the kernel in it; the rest of that is for uki.h.
 *
 * Sources: Documentation/arch/x86/boot.rst (Linux boot protocol 2.15), ELF-64
 * Object File Format 1.5, Multiboot 0.6.96, Multiboot2 2.0, Xen's hvm/start_info.h.
 */
#ifndef KVMPROF_VMM_IMAGE_IMAGE_H
#define KVMPROF_VMM_IMAGE_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_MAX_SEGMENTS 16
#define BOOT_MAX_FILE (2ull << 30)   /* largest kernel file we map */
#define BOOT_MAX_KERNEL (1ull << 30) /* largest decompressed kernel */
#define BOOT_SETUP_HEADER_MAX 0x80   /* bytes of setup_header that are kept (0x1f1..) */

enum boot_kind {
	BOOT_ELF64 = 1, /* vmlinux or any ELF64 executable for x86-64 */
	BOOT_BZIMAGE,	/* Linux bzImage; its payload is an ELF64 vmlinux */
	BOOT_ELF32,	/* an ELF32 executable for x86; its code may well be 64-bit (Xen) */
	BOOT_FLAT,	/* multiboot with addresses of its own */
	BOOT_LINUXLIKE, /* a bzImage that holds no vmlinux: memtest86+, iPXE */
};

struct boot_segment {
	uint64_t gpa;	   /* load address (p_paddr) */
	uint64_t va;	   /* where it is linked (p_vaddr) */
	uint64_t file_off; /* into elf */
	uint64_t file_len;
	uint64_t mem_len; /* >= file_len; the rest is zero */
};

struct boot_image {
	enum boot_kind kind;
	bool is_linux;	    /* a Linux kernel: wants boot_params, stacks are 16 KiB */
	const uint8_t *elf; /* the ELF64 bytes: the file itself or `unpacked` */
	size_t elf_len;
	uint8_t *unpacked; /* owned; NULL for BOOT_ELF64 that is not compressed */
	/*
	 * Guest-physical address of the first instruction. 0: the ELF's entry is in no segment,
	 * so that the kernel can only be entered in another way.
	 */
	uint64_t entry;
	uint64_t elf_entry; /* e_entry, physical or virtual */
	uint64_t low, high; /* [low, high) covers all segments in guest-physical memory */
	struct boot_segment seg[BOOT_MAX_SEGMENTS];
	unsigned int nseg;
	uint8_t setup_header[BOOT_SETUP_HEADER_MAX]; /* from file offset 0x1f1; zeros for ELF64 */
	size_t setup_header_len;		     /* 0 when the file has none */
	/*
	 * Protected-mode part of a bzImage, the decompressor with its payload, as far
	 * as the file has it. In the file; NULL for ELF64.
	 */
	const uint8_t *pm;
	size_t pm_len;
	const uint8_t *setup; /* its real-mode part, all of it; in the file */
	size_t setup_len;
	bool multiboot;	    /* it has a multiboot 1 header */
	bool mb_pages;	    /* which wants modules at page boundaries */
	uint32_t mb_entry;  /* 32-bit entries; 0: none */
	uint32_t mb2_entry; /* by its multiboot2 header */
	uint32_t pvh_entry;
	struct err unloaded;	 /* code is not 0: why no loader can place this kernel */
	uint32_t cmdline_max;	 /* bytes without terminator that the kernel accepts */
	char version[128];	 /* kernel_version string of a bzImage, or "" */
	const char *compression; /* "gzip", "xz", "zstd", "lz4", ... or "none"; static */
};

/*
 * Recognise and validate. name is used in messages only. `file` must stay
 * mapped while *img is used (img->elf and img->pm may point into it).
 * Errors name file, offset, found and expected value: -EINVAL for a foreign,
 * truncated or hostile file, -ENOTSUP for something known that we cannot boot
 * (32-bit kernel, unknown compression), -ENOMEM.
 */
int image_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e);
void image_deinit(struct boot_image *img);

#endif
