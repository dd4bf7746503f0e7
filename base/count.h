/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * count: counters that one thread changes and other threads read meanwhile.
 *
 * Each counter is read as a whole, never half updated; several counters are not read at one moment.
 * On x86-64 relaxed atomic accesses cost nothing extra; they only forbid the compiler to split or
 * repeat an access (C11, 5.1.2.4).
 */
#ifndef KVMPROF_BASE_COUNT_H
#define KVMPROF_BASE_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* Sets the counter. Called by the one thread that changes it. */
static inline void count_set(uint64_t *n, uint64_t to)
{
	__atomic_store_n(n, to, __ATOMIC_RELAXED);
}

/* Adds to the counter. Called by the one thread that changes it. */
static inline void count_add(uint64_t *n, uint64_t by)
{
	count_set(n, *n + by);
}

typedef uint64_t __attribute__((may_alias)) count_word;

/*
 * Copies a structure of such counters. len is a multiple of 8, and both structures are aligned to 8
 * bytes. Any thread may call it.
 */
static inline void count_copy(void *dst, const void *src, size_t len)
{
	count_word *d = dst;
	const count_word *s = src;

	for (size_t i = 0; i < len / sizeof(*d); i++)
		d[i] = __atomic_load_n(&s[i], __ATOMIC_RELAXED);
}

#endif
