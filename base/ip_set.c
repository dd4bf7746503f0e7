/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ip_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ip_set_deinit(struct ip_set *set)
{
	free(set->slot);
	*set = (struct ip_set){ 0 };
}

bool ip_set_copy(struct ip_set *to, const struct ip_set *from)
{
	*to = (struct ip_set){ 0 };
	if (!from->cap)
		return true;
	to->slot = malloc(from->cap * sizeof(*to->slot));
	if (!to->slot)
		return false;
	memcpy(to->slot, from->slot, from->cap * sizeof(*to->slot));
	to->cap = from->cap;
	to->n = from->n;
	return true;
}

static int grow(struct ip_set *set)
{
	size_t cap = set->cap ? set->cap * 2 : 1024;
	uint64_t *slot = calloc(cap, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < set->cap; i++) {
		size_t at = (set->slot[i] * 0x9e3779b97f4a7c15u) >> 32;

		if (!set->slot[i])
			continue;
		while (slot[at & (cap - 1)])
			at++;
		slot[at & (cap - 1)] = set->slot[i];
	}
	free(set->slot);
	set->slot = slot;
	set->cap = cap;
	return 0;
}

bool ip_set_add(struct ip_set *set, uint64_t ip)
{
	size_t at = (ip * 0x9e3779b97f4a7c15u) >> 32;

	if (!ip || set->n >= IP_SET_MAX || (set->n * 2 >= set->cap && grow(set) < 0))
		return false;
	for (;; at++) {
		uint64_t *slot = &set->slot[at & (set->cap - 1)];

		if (*slot == ip)
			return false;
		if (!*slot) {
			*slot = ip;
			set->n++;
			return true;
		}
	}
}

void ip_set_pack(struct ip_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->cap; i++)
		if (set->slot[i])
			set->slot[n++] = set->slot[i];
}
