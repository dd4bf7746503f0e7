/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * multiboot: parses Multiboot 1 and Multiboot2 headers and PVH notes. Pure functions; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_MULTIBOOT_H
#define KVMPROF_VMM_IMAGE_MULTIBOOT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_image;

/* A multiboot header as in the file. */
struct boot_multiboot {
	unsigned int version; /* 1 or 2 */
	uint32_t offset, flags;
	bool flat; /* the addresses below are present, and take precedence over the ELF headers */
	uint32_t header_addr, load_addr, load_end, bss_end;
	uint32_t entry; /* 0: none */
	/* Version 2: a required tag or kind of information that kvmprof does not know; 0: none. */
	uint32_t unknown;
	bool damaged;	  /* version 2: its tags do not end within the header */
	bool relocatable; /* version 2: it must be loaded within [least, most] */
	uint32_t least, most;
};
/* Finds the Multiboot 1 header and stores it in *out. Returns false if there is none. */
bool multiboot_find(const uint8_t *file, size_t len, struct boot_multiboot *out);
/* Finds the Multiboot2 header and stores it in *out. Returns false if there is none. */
bool multiboot_find2(const uint8_t *file, size_t len, struct boot_multiboot *out);
/* Returns 0, -EINVAL if the header is damaged, or -ENOTSUP if it requires something unknown. */
int multiboot_check(const char *name, const struct boot_multiboot *h, struct err *e);
/*
 * Creates the one segment that a header with addresses describes, with widen_flat(). Returns 0, or
 * -EINVAL or -ENOMEM with *e set.
 */
int multiboot_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		    const struct boot_multiboot *h, struct err *e);
/* Returns the 32-bit PVH entry that the bytes of a PT_NOTE segment name, or 0 if none. */
uint32_t multiboot_pvh_note(const uint8_t *notes, size_t len);

#endif
