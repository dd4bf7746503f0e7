/* SPDX-License-Identifier: GPL-2.0-or-later */
/* way: how a kernel is entered. */
#ifndef KVMPROF_VMM_IMAGE_WAY_H
#define KVMPROF_VMM_IMAGE_WAY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct boot_image;

/* How a kernel is entered: way_of_image(), docs/kernels.md. */
enum boot_way {
	/* In 64-bit mode at the ELF's entry, rsi = boot_params: no decompressor runs. */
	BOOT_WAY_VMLINUX = 0,
	/* In 64-bit mode in a bzImage's own code, which may move the kernel. */
	BOOT_WAY_BZIMAGE,
	BOOT_WAY_LINUX32,    /* the same in 32-bit mode */
	BOOT_WAY_LINUX16,    /* a bzImage in real mode, at its setup code */
	BOOT_WAY_MULTIBOOT,  /* 32-bit mode, ebx = multiboot information */
	BOOT_WAY_PVH,	     /* 32-bit mode, ebx = hvm_start_info */
	BOOT_WAY_MULTIBOOT2, /* 32-bit mode, ebx = multiboot2 information */
	BOOT_WAY_AUTO,	     /* as the image asks for */
};

/*
 * The way that `asked` stands for: BOOT_WAY_AUTO becomes what the image asks for, any
 * other is checked. -EINVAL when the image has no such entry, or none at all; the message
 * says what it has. name is used in messages only.
 */
int way_of_image(const struct boot_image *img, const char *name, enum boot_way asked,
		 enum boot_way *out, struct err *e);
/* Has the image this entry? Of BOOT_WAY_AUTO: false. */
bool way_image_has(const struct boot_image *img, enum boot_way way);
/* "vmlinux", "bzimage", ...: as --boot takes it. -EINVAL: there is none of that name. */
const char *way_name(enum boot_way way);
int way_parse(const char *name, enum boot_way *out);

/* Where the protected-mode part of a bzImage goes, and what it needs there. */
struct boot_place {
	uint64_t gpa, end; /* bytes of the file and room to work in: [gpa, end) */
	uint64_t entry;	   /* the decompressor's 64-bit or 32-bit entry point */
};

/*
 * bzimage.c: where the decompressor of img is put, for BOOT_WAY_BZIMAGE or _LINUX32, in
 * a guest whose RAM is one piece from 0 to ram_end at least. -EINVAL when img has none or its setup
 * header makes no sense, -ENOTSUP when it can't be entered in 64-bit mode,
 * -ENOMEM when it does not fit (the message says how much memory would do).
 */
int way_bzimage_place(const struct boot_image *img, enum boot_way way, uint64_t ram_end,
		      struct boot_place *out, struct err *e);

#endif
