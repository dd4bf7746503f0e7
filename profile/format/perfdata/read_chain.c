/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_chain.h"

#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_WORDS (128u << 10) /* more words than a chain can have */

struct chain_block {
	struct chain_block *before;
	size_t used;
	uint64_t word[BLOCK_WORDS];
};

struct kept_chain {
	const uint8_t *words;
	uint32_t nr;
};

/* -- chains that are kept ------------------------------------------------------------- */

static bool equal_kept(const void *a, const void *b, const void *ctx)
{
	const struct kept_chain *x = a, *y = b;

	(void)ctx;
	return x->nr == y->nr && (!x->nr || !memcmp(x->words, y->words, 8 * (size_t)x->nr));
}

static bool equal_deferred(const void *a, const void *b, const void *ctx)
{
	const struct perfdata_deferred *x = a, *y = b;

	(void)ctx;
	return x->cookie == y->cookie && x->tid == y->tid;
}

static const uint8_t *copy_words(struct perfdata_chains *c, const uint64_t *words, uint32_t nr)
{
	struct chain_block *b = c->blocks;
	uint64_t *to;

	if (!b || BLOCK_WORDS - b->used < nr) {
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		b->before = c->blocks;
		b->used = 0;
		c->blocks = b;
	}
	to = b->word + b->used;
	memcpy(to, words, 8 * (size_t)nr);
	b->used += nr;
	return (const uint8_t *)to;
}

const uint8_t *perfdata_keep_chain(struct perfdata *p, const uint64_t *words, uint32_t nr)
{
	struct perfdata_chains *c = &p->priv->chains;
	struct kept_chain like = { .words = (const uint8_t *)words, .nr = nr };
	uint64_t hash = nr;
	uint32_t index;
	bool fresh;

	if (nr > BLOCK_WORDS)
		return NULL;
	if (!c->kept.equal)
		c->kept = TABLE_OF(struct kept_chain, equal_kept);
	for (uint32_t i = 0; i < nr; i++)
		hash = table_mix(hash, words[i] + i);
	if (table_find(&c->kept, hash, &like, &index))
		return ((struct kept_chain *)c->kept.item)[index].words;
	like.words = copy_words(c, words, nr);
	if (!like.words || table_add(&c->kept, hash, &like, &index, &fresh) < 0)
		return NULL;
	return like.words;
}

void perfdata_chains_reset(struct perfdata_private *v)
{
	table_deinit(&v->chains.deferred);
}

void perfdata_chains_deinit(struct perfdata_private *v)
{
	while (v->chains.blocks) {
		struct chain_block *before = v->chains.blocks->before;

		free(v->chains.blocks);
		v->chains.blocks = before;
	}
	table_deinit(&v->chains.kept);
	table_deinit(&v->chains.deferred);
}

/* -- deferred chains ------------------------------------------------------------------ */

static uint64_t deferred_hash(const struct perfdata_deferred *d)
{
	return table_mix(d->cookie, d->tid);
}

int perfdata_chains_add(struct perfdata_private *v, const struct perfdata_record *r)
{
	struct perfdata_deferred d = { .cookie = r->sample.period,
				       .tid = r->tid,
				       .nr = r->sample.nr,
				       .words = r->sample.chain };
	uint32_t index;
	bool fresh;

	if (!v->chains.deferred.equal)
		v->chains.deferred = TABLE_OF(struct perfdata_deferred, equal_deferred);
	return table_add(&v->chains.deferred, deferred_hash(&d), &d, &index, &fresh);
}

static uint64_t chain_word(const uint8_t *words, uint32_t i)
{
	uint64_t w;

	memcpy(&w, words + 8 * (size_t)i, 8);
	return w;
}

/*
 * Buffer for a chain that is joined from two parts. It is too large to be zeroed for each sample.
 */
struct joined_chain {
	uint64_t word[PERFDATA_RECORD_MAX / 8 * 2 + 4];
	uint32_t nr;
};

static void join_words(struct joined_chain *j, const uint8_t *words, uint32_t nr)
{
	memcpy(j->word + j->nr, words, 8 * (size_t)nr);
	j->nr += nr;
}

static void take_joined(struct perfdata *p, struct perfdata_record *r, const struct joined_chain *j)
{
	const uint8_t *words = perfdata_keep_chain(p, j->word, j->nr);

	if (!words)
		return;
	r->sample.chain = words;
	r->sample.nr = j->nr;
}

static void complete_deferred(struct perfdata *p, struct perfdata_record *r)
{
	struct perfdata_chains *c = &p->priv->chains;
	struct perfdata_deferred like = { .tid = r->tid };
	const struct perfdata_deferred *d;
	struct joined_chain j;
	uint32_t index;

	j.nr = 0;
	like.cookie = chain_word(r->sample.chain, r->sample.nr - 1);
	r->sample.nr -= 2;
	if (!c->deferred.n || !table_find(&c->deferred, deferred_hash(&like), &like, &index))
		return;
	d = (struct perfdata_deferred *)c->deferred.item + index;
	join_words(&j, r->sample.chain, r->sample.nr);
	if (d->nr && chain_word(d->words, 0) < PERFDATA_CONTEXT_MAX)
		j.word[j.nr++] = PERFDATA_CONTEXT_USER;
	join_words(&j, d->words, d->nr);
	take_joined(p, r, &j);
}

/* -- branch stacks -------------------------------------------------------------------- */

/*
 * Replaces the frames that the kernel found by frame pointers by those of the processor's call
 * stack: the target of the newest entry is in the current function, and the source of each entry is
 * in its caller. Readers look callers up one byte before the address in the chain, therefore 1 is
 * added to the address of a call.
 */
static void complete_branches(struct perfdata *p, struct perfdata_record *r)
{
	struct joined_chain j;
	uint32_t user = 0;

	j.nr = 0;
	while (user < r->sample.nr && chain_word(r->sample.chain, user) != PERFDATA_CONTEXT_USER)
		user++;
	if (user == r->sample.nr || r->sample.nbranches > PERFDATA_RECORD_MAX / 24)
		return;
	join_words(&j, r->sample.chain, user + 1);
	j.word[j.nr++] = chain_word(r->sample.branches, 1);
	for (uint32_t i = 0; i < r->sample.nbranches; i++)
		j.word[j.nr++] = chain_word(r->sample.branches, 3 * i) + 1;
	take_joined(p, r, &j);
}

void perfdata_chains_complete(struct perfdata *p, struct perfdata_record *r)
{
	uint32_t nr = r->sample.nr;

	if (r->sample.branches && r->sample.nbranches)
		complete_branches(p, r);
	else if (nr >= 2 && chain_word(r->sample.chain, nr - 2) == PERFDATA_CONTEXT_USER_DEFERRED)
		complete_deferred(p, r);
}
