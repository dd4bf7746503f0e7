/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/table.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int grow_items(struct table *t)
{
	size_t cap = t->cap, hashes = t->cap;
	void *grown = t->n < TABLE_MAX ? array_grow(t->item, t->n + 1, &cap, t->size) : NULL;

	if (!grown)
		return -ENOMEM;
	t->item = grown;
	if (ARRAY_FIT(t->hash, cap, hashes))
		return -ENOMEM;
	t->cap = cap;
	return 0;
}

static int grow_slots(struct table *t)
{
	size_t slots = t->slots ? t->slots * 2 : 1024;
	uint32_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		size_t at = t->hash[i] & (slots - 1);

		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = (uint32_t)(i + 1);
	}
	free(t->slot);
	t->slot = slot;
	t->slots = slots;
	return 0;
}

/*
 * Finds an element. Returns true with its index in *index, or false with the free slot for it in
 * *at. There must be slots.
 */
static bool table_probe(const struct table *t, uint64_t hash, const void *like, uint32_t *index,
			size_t *at)
{
	for (*at = hash & (t->slots - 1); t->slot[*at]; *at = (*at + 1) & (t->slots - 1)) {
		uint32_t i = t->slot[*at] - 1;

		if (t->hash[i] == hash &&
		    t->equal((const uint8_t *)t->item + i * t->size, like, t->ctx)) {
			*index = i;
			return true;
		}
	}
	return false;
}

bool table_find(const struct table *t, uint64_t hash, const void *like, uint32_t *index)
{
	size_t at;

	return t->n && table_probe(t, hash, like, index, &at);
}

int table_add(struct table *t, uint64_t hash, const void *like, uint32_t *index, bool *fresh)
{
	size_t at;

	*fresh = false;
	if (t->n * 2 >= t->slots && grow_slots(t) < 0)
		return -ENOMEM;
	if (table_probe(t, hash, like, index, &at))
		return 0;
	if (t->n == t->cap && grow_items(t) < 0)
		return -ENOMEM;
	memcpy((uint8_t *)t->item + t->n * t->size, like, t->size);
	t->hash[t->n] = hash;
	*index = (uint32_t)t->n++;
	t->slot[at] = (uint32_t)t->n;
	*fresh = true;
	return 0;
}

static bool equal_number(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

int table_add_number(struct table *t, uint64_t number, bool *fresh)
{
	uint32_t index;

	t->size = sizeof(number);
	t->equal = equal_number;
	return table_add(t, table_mix(number, 0), &number, &index, fresh);
}

bool table_has_number(const struct table *t, uint64_t number)
{
	uint32_t index;

	return table_find(t, table_mix(number, 0), &number, &index);
}

void table_deinit(struct table *t)
{
	free(t->item);
	free(t->hash);
	free(t->slot);
	*t = (struct table){ .size = t->size, .equal = t->equal, .ctx = t->ctx };
}
