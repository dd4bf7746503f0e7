/* SPDX-License-Identifier: GPL-2.0-or-later */
/* widen: an ELF32, or bytes without a format, as an ELF64. */
#ifndef KVMPROF_VMM_IMAGE_WIDEN_H
#define KVMPROF_VMM_IMAGE_WIDEN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct boot_image;

/*
 * img->unpacked, img->elf and img->elf_len become an ELF64 that says the
 * same as this ELF32 executable for x86 with its symbols, or as bytes that have no
 * format. What was in img->unpacked is freed: file may point into it until then.
 */
int widen_elf32(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e);
struct boot_flat {
	const uint8_t *data;
	size_t len;
	uint64_t gpa, mem_len, entry; /* mem_len >= len */
};
int widen_flat(struct boot_image *img, const char *name, const struct boot_flat *flat,
	       struct err *e);

#endif
