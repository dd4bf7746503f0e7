/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory: the symbolizer's interface to guest memory.
 *
 * It is one callback, implemented by a live guest, a foreign process, a snapshot or a test's byte
 * array. The guest is hostile and may write while its memory is read: copy a field once, check the
 * copy, use the copy; limit every list and string. Called by the thread that owns the
 * implementation, usually the consumer.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_MEMORY_H
#define KVMPROF_SYMBOLIZER_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Selects the kernel's own address space; any other value is a CR3 (with paging bits as in the
 * CPU).
 */
#define MEMORY_KERNEL UINT64_C(0)

struct memory {
	/*
	 * Copies up to len bytes from guest-virtual va in `space` to dst. Returns how many bytes
	 * could be read from va on, 0 if none (not mapped, not canonical).
	 */
	size_t (*read)(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len);
	void *ctx;
};

/* Returns whether an address is in the kernel's half of the address space. */
static inline bool memory_is_kernel(uint64_t va)
{
	return va >> 63;
}

/* Copies exactly len bytes. Returns false, with dst undefined, if not all could be read. */
static inline bool memory_read(const struct memory *m, uint64_t space, uint64_t va, void *dst,
			       size_t len)
{
	return m->read(m->ctx, space, va, dst, len) == len;
}

/*
 * Read a number from the kernel's address space. They return false, with *out unchanged, if it
 * cannot be read.
 */
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

/* Return the number at offset off of copied bytes; the caller ensures that it is inside. */
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
