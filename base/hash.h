/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash: FNV-1a of texts and bytes (draft-eastlake-fnv, sections 2 and 5). Any thread.
 *
 * Not for keys that somebody chooses in order to collide, unless the table has a cap.
 */
#ifndef KVMPROF_BASE_HASH_H
#define KVMPROF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* 64 bits, going on from h: HASH_START, or what an earlier call gave. */
static inline uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static inline uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return h;
}

/* 32 bits, of max characters at the most. */
static inline uint32_t hash_text32(const char *s, size_t max)
{
	uint32_t h = UINT32_C(0x811c9dc5);

	for (size_t i = 0; i < max && s[i]; i++)
		h = (h ^ (uint8_t)s[i]) * UINT32_C(0x01000193);
	return h;
}

#endif
