/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi_cache.h"

#include "base/hash.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define WAYS 4u	 /* slots that an address may be in; they share a cache line */
#define LINE 64u /* bytes of a cache line, which is one set */
#define SETS (CFI_CACHE_SLOTS / WAYS)

struct cfi_cache {
	/* CFI_CACHE_SLOTS; within a set the most recently used one is first. */
	struct cfi_slot *slot;
	struct table rows;
	struct cfi_cache_stats stats;
};

static bool row_equal(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return !memcmp(a, b, sizeof(struct cfi_row));
}

struct cfi_cache *cfi_cache_create(void)
{
	struct cfi_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->slot = aligned_alloc(LINE, CFI_CACHE_SLOTS * sizeof(*c->slot));
	c->rows = TABLE_OF(struct cfi_row, row_equal);
	if (!c->slot) {
		free(c);
		return NULL;
	}
	memset(c->slot, 0, CFI_CACHE_SLOTS * sizeof(*c->slot));
	return c;
}

void cfi_cache_destroy(struct cfi_cache *c)
{
	if (!c)
		return;
	table_deinit(&c->rows);
	free(c->slot);
	free(c);
}

const struct cfi_cache_stats *cfi_cache_stats(const struct cfi_cache *c)
{
	return &c->stats;
}

static struct cfi_slot *cache_set(const struct cfi_cache *c, uint32_t file, uint64_t va)
{
	return c->slot + table_mix(va, file) % SETS * WAYS;
}

/* Moves slot i to the beginning of its set. */
static struct cfi_slot *cache_used(struct cfi_slot *set, unsigned int i)
{
	struct cfi_slot s = set[i];

	memmove(set + 1, set, i * sizeof(*set));
	set[0] = s;
	return set;
}

struct cfi_slot *cfi_cache_find(struct cfi_cache *c, uint32_t file, uint64_t va)
{
	struct cfi_slot *set = cache_set(c, file, va);

	c->stats.asked++;
	for (unsigned int i = 0; i < WAYS; i++)
		if (set[i].va == va && set[i].file == file + 1)
			return i ? cache_used(set, i) : set;
	return NULL;
}

struct cfi_slot *cfi_cache_keep(struct cfi_cache *c, uint32_t file, uint64_t va,
				enum cfi_found found, const struct cfi_row *row)
{
	struct cfi_slot *set = cache_set(c, file, va);
	uint32_t index = 0;
	bool fresh;

	c->stats.looked_up++;
	c->stats.found[found]++;
	if (found == CFI_FOUND) {
		if (c->rows.n >= CFI_CACHE_ROWS) {
			c->stats.emptied++;
			table_deinit(&c->rows);
			memset(c->slot, 0, CFI_CACHE_SLOTS * sizeof(*c->slot));
		}
		if (table_add(&c->rows, hash_bytes(HASH_START, row, sizeof(*row)), row, &index,
			      &fresh) < 0)
			return NULL;
	}
	set = cache_used(set, WAYS - 1);
	*set = (struct cfi_slot){ va, file + 1, (uint16_t)index, (uint8_t)found, CFI_CALL_UNKNOWN };
	return set;
}

const struct cfi_row *cfi_cache_row(const struct cfi_cache *c, const struct cfi_slot *s)
{
	return s->found == CFI_FOUND ? (const struct cfi_row *)c->rows.item + s->row : NULL;
}
