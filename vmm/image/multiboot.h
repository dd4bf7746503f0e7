/* SPDX-License-Identifier: GPL-2.0-or-later */
/* multiboot: kernels with a Multiboot 1 or Multiboot2 header, and PVH notes. */
#ifndef KVMPROF_VMM_IMAGE_MULTIBOOT_H
#define KVMPROF_VMM_IMAGE_MULTIBOOT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_image;

/* A multiboot header as it is in the file. */
struct boot_multiboot {
	unsigned int version; /* 1 or 2 */
	uint32_t offset, flags;
	bool flat; /* the addresses below are there, and go before the ELF headers */
	uint32_t header_addr, load_addr, load_end, bss_end;
	uint32_t entry; /* 0: none */
	/* Version 2: a tag or a kind of information that is required and that we do not know; 0: none. */
	uint32_t unknown;
	bool damaged;	  /* version 2: its tags do not end within it */
	bool relocatable; /* version 2: it must lie within [least, most] */
	uint32_t least, most;
};
/* Finds the Multiboot 1 header. Returns false if there is none. */
bool multiboot_find(const uint8_t *file, size_t len, struct boot_multiboot *out);
/* Finds the Multiboot2 header. Returns false if there is none. */
bool multiboot_find2(const uint8_t *file, size_t len, struct boot_multiboot *out);
/* Returns -ENOTSUP when the header asks for what we do not know, else 0. */
int multiboot_check(const char *name, const struct boot_multiboot *h, struct err *e);
/* Makes the one segment that a header with addresses describes, as widen_flat() does. */
int multiboot_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		    const struct boot_multiboot *h, struct err *e);
/* The entry that the bytes of a PT_NOTE segment name for PVH; 0: none. */
uint32_t multiboot_pvh_note(const uint8_t *notes, size_t len);

#endif
