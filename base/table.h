/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table: a growing array of equal-sized elements without duplicates, with a hash index.
 *
 * Elements are copied in and identified by their index from then on. The array moves when it grows,
 * so pointers to elements are valid until the next table_add(). The caller computes the hashes.
 * TABLE_OF() is an empty table. Not thread-safe: the caller serialises calls on one table.
 */
#ifndef KVMPROF_BASE_TABLE_H
#define KVMPROF_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAX (1u << 30) /* maximum number of elements */

/* Returns whether two elements are equal. ctx is the table's. */
typedef bool (*table_equal)(const void *a, const void *b, const void *ctx);

struct table {
	/*
	 * Array of n elements, owned; code that takes it over stores NULL and may then only call
	 * table_deinit().
	 */
	void *item;
	size_t size; /* bytes of an element */
	size_t n;
	table_equal equal;
	const void *ctx; /* argument of equal(); borrowed */
	uint64_t *hash;	 /* hash of each element */
	uint32_t *slot;	 /* index + 1 of an element, 0: free; at most half of the slots are used */
	size_t cap, slots;
};

/* An empty table of elements of a type. A caller whose equal() needs a ctx sets it. */
#define TABLE_OF(type, same) ((struct table){ .size = sizeof(type), .equal = (same) })

/* Frees the elements and leaves an empty table of the same kind. */
void table_deinit(struct table *t);

/* Mixes two words into a well-distributed hash. */
static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xc2b2ae3d27d4eb4fu);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/*
 * Finds the element that equals *like, or copies *like in as a new element and sets *fresh. Stores
 * its index. Returns 0, or -ENOMEM if out of memory or beyond TABLE_MAX elements.
 */
int table_add(struct table *t, uint64_t hash, const void *like, uint32_t *index, bool *fresh);
/* Finds the element that equals *like and stores its index. Returns false if there is none. */
bool table_find(const struct table *t, uint64_t hash, const void *like, uint32_t *index);

/*
 * Adds a number to a table of numbers, which may be all zero before the first call: item is an
 * array of uint64_t. Sets *fresh if the number is new. Returns 0 or -ENOMEM.
 */
int table_add_number(struct table *t, uint64_t number, bool *fresh);
/* Returns whether the table has the number. */
bool table_has_number(const struct table *t, uint64_t number);

#endif
