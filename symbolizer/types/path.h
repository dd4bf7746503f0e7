/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types_path: parses the paths of struct types, one step at a time.
 *
 *	path  = name { index } { "." name { index } }
 *	index = "[" decimal digits "]"
 *
 * Shared by the readers of BTF and DWARF. Steps refer to the path's bytes. Pure functions; any
 * thread.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_PATH_H
#define KVMPROF_SYMBOLIZER_TYPES_PATH_H

#include "symbolizer/types/types.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct types_step {
	const char *name; /* NULL: the step is an index */
	size_t name_len;
	uint32_t index;
};

/*
 * Reads the name at *path, with which a path begins, and moves *path behind it. Returns 1, or
 * -ENOENT if there is none.
 */
static inline int types_path_name(const char **path, struct types_step *s)
{
	*s = (struct types_step){ .name = *path, .name_len = strcspn(*path, ".[") };
	*path += s->name_len;
	return s->name_len ? 1 : -ENOENT;
}

/*
 * Reads the next step after the first name, and moves *path behind it. Returns 1 if there is one,
 * 0 at the end of the path, or -ENOENT if the path is invalid.
 */
static inline int types_path_next(const char **path, struct types_step *s)
{
	const char *p = *path;
	uint64_t n = 0;

	if (!*p)
		return 0;
	*s = (struct types_step){ 0 };
	if (*p == '[') {
		if (p[1] < '0' || p[1] > '9')
			return -ENOENT;
		for (p++; *p >= '0' && *p <= '9' && n <= UINT32_MAX; p++)
			n = 10 * n + (uint64_t)(*p - '0');
		if (*p != ']' || n > UINT32_MAX)
			return -ENOENT;
		s->index = (uint32_t)n;
		*path = p + 1;
		return 1;
	}
	if (*p++ != '.')
		return -ENOENT;
	*path = p;
	return types_path_name(path, s);
}

/* Returns whether the step has this name. */
static inline bool types_step_is(const struct types_step *s, const char *name)
{
	return name && !strncmp(name, s->name, s->name_len) && !name[s->name_len];
}

/*
 * Describes the member that begins at bit `bits`: `size` bytes, or bit_count bits. Returns 0, or
 * -EINVAL if it is not inside the structure.
 */
static inline int types_member_at(uint64_t bits, uint32_t bit_count, uint64_t size,
				  uint64_t struct_size, struct type_member *out)
{
	/* The type of a bit field may be longer than the rest of its structure. */
	if (bits / 8 > struct_size || (!bit_count && size > struct_size - bits / 8) ||
	    (bits % 8 && !bit_count))
		return -EINVAL;
	*out = (struct type_member){
		.off = (uint32_t)(bits / 8),
		.size = (uint32_t)size,
		.bit_off = (uint8_t)(bits % 8),
		.bit_count = (uint8_t)bit_count,
	};
	return 0;
}

#endif
