/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_image: the ELF files that a guest process runs, as far as their bytes are at
 * hand: which build it is, and the image of the vDSO.
 *
 * Bytes come through a callback that gives what it has: off and len are in the file;
 * it returns how many bytes from off on it could copy. linux_file_read_cb() is one,
 * linux_mapped_read() another. ELF64 little endian.
 *
 * Source of the format: System V ABI, "Object Files"; arch/x86/include/asm/vdso.h.
 * No state: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_IMAGE_H
#define KVMPROF_SYMBOLIZER_LINUX_IMAGE_H

#include "symbolizer/linux/mm.h"
#include "symbolizer/core/memory.h"

#include <stddef.h>
#include <stdint.h>

#define LINUX_BUILD_ID_MAX 20u
#define LINUX_IMAGE_MAX_PHDRS 128u
#define LINUX_IMAGE_MAX_NOTES 4096u /* bytes that are looked at of one segment of notes */
#define LINUX_VDSO_MAX (16u * 4096u)

typedef size_t (*linux_image_read)(void *ctx, uint64_t off, void *dst, size_t len);

/* Copies the GNU build id, returns its length; 0: none, no ELF64, or it isn't at hand. */
unsigned int linux_build_id(linux_image_read read, void *ctx, uint8_t id[LINUX_BUILD_ID_MAX]);

/*
 * A file through the pages of a process that has its first bytes mapped: headers and
 * notes of an ELF file are there even when nobody's page cache has them for us.
 */
struct linux_mapped {
	const struct memory *m;
	uint64_t space; /* CR3 */
	uint64_t va;	/* of the file's first byte */
	uint64_t len;	/* bytes that are mapped from there */
};

/* ctx is a const struct linux_mapped. */
size_t linux_mapped_read(void *ctx, uint64_t off, void *dst, size_t len);

/*
 * The vDSO of a process: from the kernel's copy, else from the process's pages, which
 * need not all be there. buf has LINUX_VDSO_MAX bytes. Returns the length of the ELF
 * image, 0 when there is none.
 */
size_t linux_vdso_read(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		       uint64_t space, uint8_t *buf);

#endif
