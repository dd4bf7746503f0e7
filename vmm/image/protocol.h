/* SPDX-License-Identifier: GPL-2.0-or-later */
/* protocol: the methods by which a kernel can be entered. Pure functions; any thread. */
#ifndef KVMPROF_VMM_IMAGE_PROTOCOL_H
#define KVMPROF_VMM_IMAGE_PROTOCOL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct boot_image;

/* The methods by which a kernel can be entered; see protocol_of_image() and docs/kernels.md. */
enum boot_protocol {
	/* 64-bit mode at the ELF's entry, rsi = boot_params: no decompressor runs. */
	BOOT_PROTOCOL_VMLINUX = 0,
	/* 64-bit mode in a bzImage's own code, which may relocate the kernel. */
	BOOT_PROTOCOL_BZIMAGE,
	BOOT_PROTOCOL_LINUX32,	  /* as BOOT_PROTOCOL_BZIMAGE, in 32-bit mode; also ELF32 kernels */
	BOOT_PROTOCOL_LINUX16,	  /* a bzImage in real mode, at its setup code */
	BOOT_PROTOCOL_MULTIBOOT,  /* 32-bit mode, ebx = multiboot information */
	BOOT_PROTOCOL_PVH,	  /* 32-bit mode, ebx = hvm_start_info */
	BOOT_PROTOCOL_MULTIBOOT2, /* 32-bit mode, ebx = multiboot2 information */
	BOOT_PROTOCOL_AUTO,	  /* chosen by the image */
};

/*
 * Determines how to enter the image: BOOT_PROTOCOL_AUTO becomes the method that the image prefers, and
 * any other is checked. Returns 0, or -EINVAL (or the code of img->unloaded) if the image has no
 * such entry or none at all, with a message that lists the ones it has. name is used in messages
 * only.
 */
int protocol_of_image(const struct boot_image *img, const char *name, enum boot_protocol asked,
		      enum boot_protocol *out, struct err *e);
/* Returns whether the image has this entry. BOOT_PROTOCOL_AUTO: false. */
bool protocol_image_has(const struct boot_image *img, enum boot_protocol way);
/* Returns the name that --boot takes: "vmlinux", "bzimage", ... (static text). */
const char *protocol_name(enum boot_protocol way);
/* Stores the method named by --boot in *out. Returns 0, or -EINVAL if there is no such name. */
int protocol_parse(const char *name, enum boot_protocol *out);

/* The memory for the protected-mode part of a bzImage. */
struct boot_place {
	/* Guest-physical range [gpa, end) for the file's bytes and for working memory. */
	uint64_t gpa, end;
	uint64_t entry; /* the decompressor's 64-bit or 32-bit entry point, guest-physical */
};

/*
 * Determines where the decompressor of img is loaded, for BOOT_PROTOCOL_BZIMAGE or _LINUX32, in a guest
 * with RAM from 0 to at least ram_end. Returns 0; -EINVAL if img has none or its setup header is
 * invalid; -ENOTSUP if it cannot be entered in this mode; -ENOMEM if it does not fit, with a
 * message that says how much memory would be enough. Implemented in bzimage.c.
 */
int protocol_bzimage_place(const struct boot_image *img, enum boot_protocol way, uint64_t ram_end,
			   struct boot_place *out, struct err *e);

#endif
