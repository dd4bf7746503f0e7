/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/chain.h"

#include "base/table.h"

struct chain chain_of(const struct perfdata_record *r, const struct names *n)
{
	return (struct chain){
		.ip = r->sample.ip,
		.words = r->sample.chain,
		.nr = r->sample.nr,
		.view = names_view(n, r->pid),
		.kernel = r->kernel,
		.idle = r->idle,
		.owner = r->owner,
	};
}

uint64_t chain_hash(const struct chain *c, uint64_t seed)
{
	uint64_t h = table_mix(c->ip, (uint64_t)c->view.user << 2 | c->idle << 1 | c->kernel), w[2];
	uint32_t i = 0;

	h = table_mix(h ^ seed, c->view.kernel ^ (uint64_t)c->owner << 56);
	for (; i + 2 <= c->nr; i += 2) {
		memcpy(w, c->words + 8 * (size_t)i, 16);
		h = table_mix(h ^ w[0], w[1] + i);
	}
	if (i < c->nr) {
		memcpy(w, c->words + 8 * (size_t)i, 8);
		h = table_mix(h ^ w[0], i);
	}
	return table_mix(h, c->nr);
}

bool chain_equal(const struct chain *a, const struct chain *b)
{
	return a->ip == b->ip && a->nr == b->nr && a->kernel == b->kernel && a->idle == b->idle &&
	       a->owner == b->owner && a->view.user == b->view.user &&
	       a->view.kernel == b->view.kernel &&
	       (!a->nr || !memcmp(a->words, b->words, 8 * (size_t)a->nr));
}

void chain_walk_begin(struct perfdata_walk *w, const struct chain *c)
{
	const struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = c->kernel,
		.owner = c->owner,
		.sample = { .ip = c->ip, .chain = c->words, .nr = c->nr },
	};

	perfdata_walk_begin(w, &r);
}

enum sample_where chain_where(const struct chain *c)
{
	enum sample_where where = c->idle ? SAMPLE_HALTED : SAMPLE_IN_GUEST;
	struct perfdata_frame f;
	struct perfdata_walk walk;

	chain_walk_begin(&walk, c);
	while (perfdata_walk_next(&walk, &f))
		if (f.kernel)
			(void)where_of(f.ip, &where);
	return where;
}
