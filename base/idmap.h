/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idmap: a hash table from one number to another (pid to address space, tid to
 * name). All zero is an empty map. Not thread-safe.
 */
#ifndef KVMPROF_BASE_IDMAP_H
#define KVMPROF_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
	uint32_t key, value;
	bool used;
};

struct idmap {
	struct idmap_slot *slot;
	size_t cap, n;
};

void idmap_deinit(struct idmap *m);
/* False when the key was never set. */
bool idmap_get(const struct idmap *m, uint32_t key, uint32_t *value);
/* 0 or -ENOMEM. */
int idmap_set(struct idmap *m, uint32_t key, uint32_t value);

#endif
