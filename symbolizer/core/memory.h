/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory: guest memory as the symbolizer sees it.
 *
 * One callback, whose other end is a live guest, a foreign process, a snapshot
 * or a test's byte array. The guest may write while we read, and it is hostile:
 * copy a field once, check the copy, use the copy; cap every list and string.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_MEMORY_H
#define KVMPROF_SYMBOLIZER_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The kernel's own address space; any other value is a CR3 (paging bits as the CPU has them). */
#define MEMORY_KERNEL UINT64_C(0)

struct memory {
	/*
	 * Copy up to len bytes from guest-virtual va in `space` into dst. Returns how
	 * many could be read from va on, 0 when none (not mapped, not canonical).
	 */
	size_t (*read)(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len);
	void *ctx;
};

/* All len bytes or false; dst is then undefined. */
static inline bool memory_read(const struct memory *m, uint64_t space, uint64_t va, void *dst,
			       size_t len)
{
	return m->read(m->ctx, space, va, dst, len) == len;
}

/* Numbers of the kernel's address space; false leaves *out alone. */
static inline bool memory_u64(const struct memory *m, uint64_t va, uint64_t *out)
{
	uint64_t v;

	if (!memory_read(m, MEMORY_KERNEL, va, &v, sizeof(v)))
		return false;
	*out = v;
	return true;
}

static inline bool memory_u32(const struct memory *m, uint64_t va, uint32_t *out)
{
	uint32_t v;

	if (!memory_read(m, MEMORY_KERNEL, va, &v, sizeof(v)))
		return false;
	*out = v;
	return true;
}

/* Numbers among bytes that were copied: the caller knows that they are there. */
static inline uint64_t memory_word(const void *copy, size_t off)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)copy + off, sizeof(v));
	return v;
}

static inline uint32_t memory_half(const void *copy, size_t off)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)copy + off, sizeof(v));
	return v;
}

#endif
