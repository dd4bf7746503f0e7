/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types: where the members of a kernel's structures lie, whoever tells it
 * (BTF in the kernel itself, DWARF of a debug file, a test's table).
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_TYPES_H
#define KVMPROF_SYMBOLIZER_TYPES_TYPES_H

#include <stdint.h>

struct type_member {
	uint32_t off;	   /* bytes from the start of the structure */
	uint32_t size;	   /* bytes of the member's type; 0 for a flexible array */
	uint8_t bit_off;   /* bit fields: first bit, counted from bit 0 of byte off */
	uint8_t bit_count; /* 0: no bit field */
};

struct types {
	/*
	 * structure: name of a struct or union. path: members joined by dots
	 * ("core_layout.base"); members of anonymous structs and unions are named as
	 * in C; "[n]" picks an array's element ("mem[0].size"). Returns 0, -ENOENT
	 * when there is no such structure or member, -EINVAL when the data is damaged.
	 */
	int (*member)(void *ctx, const char *structure, const char *path, struct type_member *out);
	/* Size of a struct or union in bytes; the same errors. */
	int (*size)(void *ctx, const char *structure, uint64_t *out);
	/* Value of an enumerator of any enum; the same errors. */
	int (*enumerator)(void *ctx, const char *name, int64_t *out);
	void *ctx;
};

#endif
