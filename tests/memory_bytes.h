/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory_bytes: a byte array as the memory of a guest or of a program, for unit tests and fuzz
 * targets.
 */
#ifndef KVMPROF_TESTS_MEMORY_BYTES_H
#define KVMPROF_TESTS_MEMORY_BYTES_H

#include "symbolizer/core/memory.h"

struct memory_bytes {
	uint64_t va; /* address of bytes[0] in each address space */
	const void *bytes;
	size_t len;
};

/*
 * Implements the read callback of struct memory; ctx is a struct memory_bytes. Returns the bytes
 * copied.
 */
static inline size_t memory_bytes_read(void *ctx, uint64_t space, uint64_t va, void *dst,
				       size_t len)
{
	const struct memory_bytes *m = ctx;
	uint64_t off = va - m->va;

	(void)space;
	if (off >= m->len)
		return 0;
	len = len < m->len - off ? len : (size_t)(m->len - off);
	memcpy(dst, (const uint8_t *)m->bytes + off, len);
	return len;
}

#endif
