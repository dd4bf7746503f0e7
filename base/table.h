/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table: a growing array of equal-sized things, in which each is there once.
 *
 * Things are copied in and known by their index from then on; the array moves when it
 * grows, so pointers into it last until the next table_add(). The hash is the
 * caller's. TABLE_OF() is an empty table. One thread.
 */
#ifndef KVMPROF_BASE_TABLE_H
#define KVMPROF_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAX (1u << 30) /* things */

/* Are these two things the same one? ctx is the table's. */
typedef bool (*table_equal)(const void *a, const void *b, const void *ctx);

struct table {
	void *item;  /* n of them, owned; who takes it leaves NULL and may only deinit then */
	size_t size; /* of one, in bytes */
	size_t n;
	table_equal equal;
	const void *ctx; /* for equal(); the caller's, outlives the table */
	uint64_t *hash;	 /* of each */
	uint32_t *slot;	 /* index + 1; 0 is free; never more than half full */
	size_t cap, slots;
};

/* An empty table of things of a type. A ctx for equal() is set by who needs one. */
#define TABLE_OF(type, same) ((struct table){ .size = sizeof(type), .equal = (same) })

/* Frees the things and leaves an empty table of the same kind. */
void table_deinit(struct table *t);

/* Two words to a well-spread one: to make hashes of. */
static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xc2b2ae3d27d4eb4fu);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/*
 * The index of the thing that equals `like`, which is copied in when there is none yet:
 * then *fresh is set. -ENOMEM, also beyond TABLE_MAX.
 */
int table_add(struct table *t, uint64_t hash, const void *like, uint32_t *index, bool *fresh);
/* False: there is none. */
bool table_find(const struct table *t, uint64_t hash, const void *like, uint32_t *index);

/* table_add() for a table of numbers, which may be all zero: item is an array of uint64_t. */
int table_add_number(struct table *t, uint64_t number, bool *fresh);
bool table_has_number(const struct table *t, uint64_t number);

#endif
