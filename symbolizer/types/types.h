/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types: the interface to the layout of a kernel's structures, whatever the source (BTF in the
 * kernel itself, DWARF of a debug file, a test's table). Calls follow the source's rule for
 * threads.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_TYPES_H
#define KVMPROF_SYMBOLIZER_TYPES_TYPES_H

#include <stdint.h>

struct type_member {
	uint32_t off;	   /* bytes from the start of the structure */
	uint32_t size;	   /* bytes of the member's type; 0 for a flexible array */
	uint8_t bit_off;   /* bit fields: first bit, counted from bit 0 of byte off */
	uint8_t bit_count; /* 0: not a bit field */
};

/* A source of layouts. Its functions are called with ctx. */
struct types {
	/*
	 * Finds a member. structure: name of a struct or union. path: members joined by dots
	 * ("core_layout.base"); members of anonymous structs and unions are named as in C; "[n]"
	 * selects an array's element ("mem[0].size"). Returns 0, -ENOENT if there is no such
	 * structure or member, or -EINVAL if the data is damaged. *out is written only on success.
	 */
	int (*member)(void *ctx, const char *structure, const char *path, struct type_member *out);
	/* Stores the size of a struct or union in bytes. Returns as member(). */
	int (*size)(void *ctx, const char *structure, uint64_t *out);
	/* Stores the value of an enumerator of any enum. Returns as member(). */
	int (*enumerator)(void *ctx, const char *name, int64_t *out);
	void *ctx;
};

#endif
