/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash: FNV-1a of strings and bytes (draft-eastlake-fnv, sections 2 and 5). Any thread may call
 * these functions.
 *
 * An attacker can construct collisions, so use it for keys from outside only in tables with a
 * limited size.
 */
#ifndef KVMPROF_BASE_HASH_H
#define KVMPROF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Returns a hash of 64 bits that continues h: HASH_START, or the result of an earlier call. */
static inline uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* Returns the same for a NUL-terminated string, without its NUL. */
static inline uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return h;
}

/* Returns a hash of 32 bits of at most max characters. */
static inline uint32_t hash_text32(const char *s, size_t max)
{
	uint32_t h = UINT32_C(0x811c9dc5);

	for (size_t i = 0; i < max && s[i]; i++)
		h = (h ^ (uint8_t)s[i]) * UINT32_C(0x01000193);
	return h;
}

#endif
