/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/mutate.h"

#include <stdbool.h>
#include <string.h>

#define CHANGES_MAX 8u	/* changes to one input */
#define BLOCK_MAX 4096u /* bytes that are copied, inserted or removed at once */

/* splitmix64: each state gives a good sequence, also small and neighbouring ones. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Returns a number below `limit`, which is not 0. */
static size_t below(uint64_t *state, size_t limit)
{
	return (size_t)(next(state) % limit);
}

/* Returns a length of 1 to `most`, short ones more often than long ones. */
static size_t length(uint64_t *state, size_t most)
{
	size_t cap = (size_t)1 << below(state, 13);

	return 1 + below(state, most < cap ? most : cap);
}

/* Numbers at which parsers count wrongly: limits of types, page and queue sizes, and those beside them. */
static uint64_t odd_number(uint64_t *state)
{
	static const uint64_t base[] = {
		0,	    0x7f,	0x80,
		0xff,	    0x100,	0x200,
		0x7ff,	    0x1000,	0x7fff,
		0x8000,	    0xffff,	0x10000,
		0x7fffffff, 0x80000000, 0xffffffff,
		1ull << 32, 1ull << 47, 1ull << 52,
		INT64_MAX,  1ull << 63, UINT64_MAX - 0xfff,
		UINT64_MAX,
	};

	return base[below(state, sizeof(base) / sizeof(base[0]))] + below(state, 5) - 2;
}

/* Overwrites 1, 2, 4 or 8 bytes with a number, in either byte order, or adds to the one that is there. */
static void change_number(uint64_t *state, uint8_t *out, size_t len)
{
	size_t width = (size_t)1 << below(state, 4), at;
	bool big = below(state, 4) == 0, add = below(state, 2);
	uint64_t v = 0;

	if (width > len)
		width = 1;
	at = below(state, len - width + 1);
	if (below(state, 2)) /* fields are aligned in most formats */
		at -= at % width;
	for (size_t i = 0; i < width; i++)
		v |= (uint64_t)out[at + i] << 8 * (big ? width - 1 - i : i);
	v = add ? v + below(state, 65) - 32 : odd_number(state);
	for (size_t i = 0; i < width; i++)
		out[at + i] = (uint8_t)(v >> 8 * (big ? width - 1 - i : i));
}

/* Overwrites a block with one of the same input or of another one. */
static void copy_block(uint64_t *state, const struct mutate_input *other, uint8_t *out, size_t len)
{
	const uint8_t *source = below(state, 2) || !other->len ? out : other->data;
	size_t source_len = source == out ? len : other->len;
	size_t n = length(state, len < source_len ? len : source_len);

	memmove(out + below(state, len - n + 1), source + below(state, source_len - n + 1), n);
}

/* Inserts a block: one of the same input, one of another one, or a repeated byte. Returns the new length. */
static size_t insert_block(uint64_t *state, const struct mutate_input *other, uint8_t *out,
			   size_t len)
{
	size_t room = MUTATE_MAX - len, kind = below(state, 3), source_len, n, at, from;
	uint8_t block[BLOCK_MAX];

	source_len = kind == 0 && len ? len : kind == 1 && other->len ? other->len : BLOCK_MAX;
	if (!room)
		return len;
	n = length(state, source_len < BLOCK_MAX ? source_len : BLOCK_MAX);
	n = n < room ? n : room;
	from = below(state, source_len - n + 1);
	if (kind == 0 && len)
		memcpy(block, out + from, n);
	else if (kind == 1 && other->len)
		memcpy(block, other->data + from, n);
	else
		memset(block, (int)below(state, 256), n);
	at = below(state, len + 1);
	memmove(out + at + n, out + at, len - at);
	memcpy(out + at, block, n);
	return len + n;
}

static size_t remove_block(uint64_t *state, uint8_t *out, size_t len)
{
	size_t n = length(state, len < BLOCK_MAX ? len : BLOCK_MAX);
	size_t at = below(state, len - n + 1);

	memmove(out + at, out + at + n, len - at - n);
	return len - n;
}

/* Continues with the rest of another input. Returns the new length. */
static size_t splice(uint64_t *state, const struct mutate_input *other, uint8_t *out, size_t len)
{
	size_t at = below(state, len + 1), from, n;

	if (!other->len)
		return len;
	from = below(state, other->len);
	n = other->len - from < MUTATE_MAX - at ? other->len - from : MUTATE_MAX - at;
	memcpy(out + at, other->data + from, n);
	return at + n;
}

static size_t change(uint64_t *state, const struct mutate_input *other, uint8_t *out, size_t len)
{
	size_t kind = len ? below(state, 12) : 8;

	switch (kind) {
	case 0:
	case 1:
		out[below(state, len)] ^= (uint8_t)(1u << below(state, 8));
		return len;
	case 2:
		out[below(state, len)] = (uint8_t)next(state);
		return len;
	case 3:
	case 4:
	case 5:
		change_number(state, out, len);
		return len;
	case 6:
	case 7:
		copy_block(state, other, out, len);
		return len;
	case 8:
		return insert_block(state, other, out, len);
	case 9:
		return remove_block(state, out, len);
	case 10:
		return 1 + below(state, len); /* an end that comes too early */
	default:
		return splice(state, other, out, len);
	}
}

size_t mutate_make(uint64_t seed, uint64_t n, const struct mutate_input *from, size_t count,
		   uint8_t *out)
{
	uint64_t state = seed ^ n * UINT64_C(0xd1342543de82ef95);
	const struct mutate_input *first = &from[below(&state, count)];
	size_t len = first->len < MUTATE_MAX ? first->len : MUTATE_MAX;

	if (len)
		memcpy(out, first->data, len);
	for (size_t left = 1 + below(&state, CHANGES_MAX); left; left--)
		len = change(&state, &from[below(&state, count)], out, len);
	return len;
}
