/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * widen: converts an ELF32, or bytes without a format, to an ELF64. Any thread may call the
 * functions. They set img->unpacked (owned by img), img->elf and img->elf_len. The old
 * img->unpacked is freed at the end, so the input may point into it. They return 0, or -errno
 * (-EINVAL, -ENOTSUP, -ENOMEM) with *e set. `name` is for messages.
 */
#ifndef KVMPROF_VMM_IMAGE_WIDEN_H
#define KVMPROF_VMM_IMAGE_WIDEN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct boot_image;

/* Converts the ELF32 executable for x86 in file[0, len), with its symbols. */
int widen_elf32(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e);
struct boot_flat {
	const uint8_t *data;
	size_t len;
	uint64_t gpa, mem_len, entry; /* mem_len >= len */
};
/* Makes an ELF64 with one segment of *flat. */
int widen_flat(struct boot_image *img, const char *name, const struct boot_flat *flat,
	       struct err *e);

#endif
