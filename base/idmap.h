/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idmap: a map from one number to another (pid to address space, tid to name). All zero is an empty
 * map. Not thread-safe: the caller serialises calls on one map.
 */
#ifndef KVMPROF_BASE_IDMAP_H
#define KVMPROF_BASE_IDMAP_H

#include "base/table.h"

struct idmap {
	struct table pairs; /* elements are struct idmap_pair, found by key */
};

struct idmap_pair {
	uint32_t key, value;
};

static inline bool idmap_same(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct idmap_pair *)a)->key == ((const struct idmap_pair *)b)->key;
}

/* Frees the pairs and leaves an empty map. */
static inline void idmap_deinit(struct idmap *m)
{
	table_deinit(&m->pairs);
}

/*
 * Stores the value of the key in *value. Returns false, with *value unchanged, if the key was never
 * set.
 */
static inline bool idmap_get(const struct idmap *m, uint32_t key, uint32_t *value)
{
	const struct idmap_pair like = { .key = key };
	uint32_t i;

	if (!table_find(&m->pairs, table_mix(key, 0), &like, &i))
		return false;
	*value = ((const struct idmap_pair *)m->pairs.item)[i].value;
	return true;
}

/* Sets the value of the key, replacing an older one. Returns 0 or -ENOMEM. */
static inline int idmap_set(struct idmap *m, uint32_t key, uint32_t value)
{
	const struct idmap_pair like = { key, value };
	uint32_t i;
	bool fresh;
	int ret;

	m->pairs.size = sizeof(like);
	m->pairs.equal = idmap_same;
	ret = table_add(&m->pairs, table_mix(key, 0), &like, &i, &fresh);
	if (!ret)
		((struct idmap_pair *)m->pairs.item)[i] = like;
	return ret;
}

#endif
