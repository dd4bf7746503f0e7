/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/tables/agg_func.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void agg_funcs_deinit(struct agg_funcs *f)
{
	free(f->func);
	free(f->slot);
	memset(f, 0, sizeof(*f));
}

static uint64_t hash_of(const struct symbol *symbol, const char *dso, uint64_t addr)
{
	uint64_t h = symbol ? (uintptr_t)symbol : addr ^ (uintptr_t)dso << 7;

	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static int grow(struct agg_funcs *fs)
{
	size_t slots = fs->slots ? fs->slots * 2 : 1024;
	uint32_t *slot;

	if (fs->n == fs->cap) {
		size_t cap = fs->cap ? fs->cap * 2 : 512;
		struct agg_func *func =
			cap < UINT32_MAX ? reallocarray(fs->func, cap, sizeof(*func)) : NULL;

		if (!func)
			return -ENOMEM;
		fs->func = func;
		fs->cap = cap;
	}
	if (fs->n * 2 < fs->slots)
		return 0;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < fs->n; i++) {
		const struct agg_func *f = &fs->func[i];
		size_t at = hash_of(f->symbol, f->dso, f->addr) & (slots - 1);

		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = (uint32_t)(i + 1);
	}
	free(fs->slot);
	fs->slot = slot;
	fs->slots = slots;
	return 0;
}

static bool same(const struct agg_func *x, const struct agg_frame *f)
{
	if (x->symbol || f->symbol)
		return x->symbol == f->symbol;
	return x->addr == f->addr && x->dso == f->dso;
}

int agg_funcs_add(struct agg_funcs *fs, const struct agg_config *c, const struct agg_frame *f,
		  uint32_t *out)
{
	struct agg_func *n;
	char number[24];
	const char *text;
	size_t at;

	if (grow(fs) < 0)
		return -ENOMEM;
	at = hash_of(f->symbol, f->dso, f->addr) & (fs->slots - 1);
	for (; fs->slot[at]; at = (at + 1) & (fs->slots - 1)) {
		if (same(&fs->func[fs->slot[at] - 1], f)) {
			*out = fs->slot[at] - 1;
			return 0;
		}
	}
	n = &fs->func[fs->n];
	*n = (struct agg_func){ .symbol = f->symbol, .dso = f->dso, .addr = f->addr };
	if (f->symbol)
		n->name = display_name(c->display, f->symbol, f->mode != AGG_USER);
	snprintf(number, sizeof(number), "0x%016" PRIx64, f->addr);
	text = n->name ? n->name : number;
	n->is_symbol = !c->symbol || regexec(c->symbol, text, 0, NULL, 0) == 0;
	n->is_parent = !c->parent || regexec(c->parent, text, 0, NULL, 0) == 0;
	*out = (uint32_t)fs->n++;
	fs->slot[at] = *out + 1;
	return 0;
}
