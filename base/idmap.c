/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>

void idmap_deinit(struct idmap *m)
{
	free(m->slot);
	*m = (struct idmap){ 0 };
}

/* The key's slot, or the free one where it belongs. cap is a power of two and never full. */
static struct idmap_slot *idmap_find(const struct idmap *m, uint32_t key)
{
	size_t at = key * 0x9e3779b97f4a7c15u >> 32;

	for (;; at++) {
		struct idmap_slot *s = &m->slot[at & (m->cap - 1)];

		if (!s->used || s->key == key)
			return s;
	}
}

bool idmap_get(const struct idmap *m, uint32_t key, uint32_t *value)
{
	const struct idmap_slot *s = m->cap ? idmap_find(m, key) : NULL;

	if (!s || !s->used)
		return false;
	*value = s->value;
	return true;
}

static int idmap_grow(struct idmap *m)
{
	struct idmap bigger = { .cap = m->cap ? m->cap * 2 : 64, .n = m->n };

	bigger.slot = calloc(bigger.cap, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slot[i].used)
			*idmap_find(&bigger, m->slot[i].key) = m->slot[i];
	free(m->slot);
	*m = bigger;
	return 0;
}

int idmap_set(struct idmap *m, uint32_t key, uint32_t value)
{
	struct idmap_slot *s;

	if (m->n * 2 >= m->cap && idmap_grow(m) < 0)
		return -ENOMEM;
	s = idmap_find(m, key);
	m->n += !s->used;
	*s = (struct idmap_slot){ .key = key, .value = value, .used = true };
	return 0;
}
