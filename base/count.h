/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * count: numbers that one thread counts and others read meanwhile.
 *
 * Each number is whole whenever it is read; several are not of one moment. On x86-64 this costs
 * nothing: it is what the compiler would have done, without its leave to do otherwise (C11, 5.1.2.4).
 */
#ifndef KVMPROF_BASE_COUNT_H
#define KVMPROF_BASE_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* By the one thread that counts. */
static inline void count_set(uint64_t *n, uint64_t to)
{
	__atomic_store_n(n, to, __ATOMIC_RELAXED);
}

static inline void count_add(uint64_t *n, uint64_t by)
{
	count_set(n, *n + by);
}

typedef uint64_t __attribute__((may_alias)) count_word;

/* A structure of such numbers, of any size; len is a multiple of 8, and both are aligned to that. */
static inline void count_copy(void *dst, const void *src, size_t len)
{
	count_word *d = dst;
	const count_word *s = src;

	for (size_t i = 0; i < len / sizeof(*d); i++)
		d[i] = __atomic_load_n(&s[i], __ATOMIC_RELAXED);
}

#endif
