/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types_path: the paths that struct types is asked for, one step at a time.
 *
 *	path  = name { index } { "." name { index } }
 *	index = "[" decimal digits "]"
 *
 * Shared by the readers of BTF and DWARF. Borrowed bytes.
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
	const char *name; /* NULL: an index */
	size_t name_len;
	uint32_t index;
};

/* The name at *path, which moves behind it. 1, or -ENOENT: there is none. The path begins with it. */
static inline int types_path_name(const char **path, struct types_step *s)
{
	*s = (struct types_step){ .name = *path, .name_len = strcspn(*path, ".[") };
	*path += s->name_len;
	return s->name_len ? 1 : -ENOENT;
}

/* The next step behind the first name. 1: a step, 0: the path has ended, -ENOENT: no path. */
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

static inline bool types_step_is(const struct types_step *s, const char *name)
{
	return name && !strncmp(name, s->name, s->name_len) && !name[s->name_len];
}

/* What a path led to: `size` bytes, or bit_count bits, from `bits` on. -EINVAL: not inside. */
static inline int types_member_at(uint64_t bits, uint32_t bit_count, uint64_t size,
				  uint64_t struct_size, struct type_member *out)
{
	/* A bit field's type may be longer than what is left of its structure. */
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
