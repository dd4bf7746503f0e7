/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/deals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64: public domain, by Sebastiano Vigna. */
uint64_t stats_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n - 1; n is so small that the bias is below 2^-48. */
unsigned int stats_pick(uint64_t *state, unsigned int n)
{
	return (unsigned int)((unsigned __int128)stats_random(state) * n >> 64);
}

/* n over k, or STATS_EXACT_MAX + 1 when it is more than that. */
static size_t combinations(unsigned int n, unsigned int k)
{
	uint64_t c = 1;

	if (k > n - k)
		k = n - k;
	for (unsigned int i = 1; i <= k; i++) {
		c = c * (n - k + i) / i;
		if (c > STATS_EXACT_MAX)
			return STATS_EXACT_MAX + 1;
	}
	return (size_t)c;
}

/* -- blocks -------------------------------------------------------------------------------- */

/* One block: its runs in `run` from `from` on, those of side a first, which are na of n. */
struct deals_block {
	unsigned int from, na, n;
};

/* The data of a deal within blocks. It lies on the stack and takes about 7 KB. */
struct deals_blocks {
	unsigned int n, na, nb;
	unsigned int resamples; /* 0: the default */
	uint16_t run[2 * STATS_MAX_RUNS];
	struct deals_block block[2 * STATS_MAX_RUNS];
};

static int sort_blocks(struct deals_blocks *l, unsigned int na, unsigned int nb,
		       const struct stats_blocks *b)
{
	unsigned int used = 0;

	*l = (struct deals_blocks){
		.n = b->nblocks, .na = na, .nb = nb, .resamples = b->resamples
	};
	if (!b->nblocks || b->nblocks > na + nb || b->resamples > STATS_RESAMPLES_MAX)
		return -EINVAL;
	for (unsigned int k = 0; k < l->n; k++) {
		l->block[k].from = used;
		for (unsigned int i = 0; i < na + nb; i++) {
			if (b->block[i] != k)
				continue;
			l->run[used++] = (uint16_t)i;
			l->block[k].na += i < na;
			l->block[k].n++;
		}
	}
	return used == na + nb ? 0 : -EINVAL;
}

static bool all_pairs(const struct deals_blocks *l)
{
	for (unsigned int k = 0; k < l->n; k++) {
		if (l->block[k].na != 1 || l->block[k].n != 2)
			return false;
	}
	return true;
}

/* Ways to deal, or STATS_EXACT_MAX + 1 when there are more. */
static size_t block_deals(const struct deals_blocks *l)
{
	size_t ways = 1;

	for (unsigned int k = 0; k < l->n && ways <= STATS_EXACT_MAX; k++)
		ways *= combinations(l->block[k].n, l->block[k].na);
	return ways > STATS_EXACT_MAX ? STATS_EXACT_MAX + 1 : ways;
}

/* pos: the chosen places in each block, ascending, one block after the other. False at the end. */
static bool next_in_blocks(const struct deals_blocks *l, uint16_t *pos)
{
	unsigned int at = 0;

	for (unsigned int k = 0; k < l->n; k++) {
		const struct deals_block *b = &l->block[k];
		unsigned int i = b->na;

		while (i-- > 0) {
			if (pos[at + i] == b->n - b->na + i)
				continue;
			pos[at + i]++;
			for (i++; i < b->na; i++)
				pos[at + i] = (uint16_t)(pos[at + i - 1] + 1);
			return true;
		}
		for (i = 0; i < b->na; i++)
			pos[at + i] = (uint16_t)i;
		at += b->na;
	}
	return false;
}

static void first_in_blocks(const struct deals_blocks *l, uint16_t *pos)
{
	for (unsigned int k = 0; k < l->n; k++) {
		for (unsigned int i = 0; i < l->block[k].na; i++)
			*pos++ = (uint16_t)i;
	}
}

static void random_in_blocks(const struct deals_blocks *l, uint16_t *pos, uint64_t *state)
{
	uint16_t place[2 * STATS_MAX_RUNS];

	for (unsigned int k = 0; k < l->n; k++) {
		const struct deals_block *b = &l->block[k];

		for (unsigned int i = 0; i < b->n; i++)
			place[i] = (uint16_t)i;
		for (unsigned int i = 0; i < b->na; i++) {
			unsigned int j = i + stats_pick(state, b->n - i);
			uint16_t t = place[i];

			place[i] = place[j];
			place[j] = t;
			*pos++ = place[i];
		}
	}
}

static void deal_blocks(struct stats_deals *s, const struct deals_blocks *l, uint64_t *state)
{
	uint16_t pos[2 * STATS_MAX_RUNS];
	uint16_t *d = s->deal;

	first_in_blocks(l, pos);
	for (size_t done = 0; done < s->ndeals; done++) {
		unsigned int at = 0;

		if (done && s->exact)
			next_in_blocks(l, pos);
		else if (done)
			random_in_blocks(l, pos, state);
		for (unsigned int k = 0; k < l->n; k++) {
			for (unsigned int i = 0; i < l->block[k].na; i++)
				*d++ = l->run[l->block[k].from + pos[at++]];
		}
	}
}

/* A pair is drawn as a whole: place i of side a and of side b are of the same one. */
static void draw_pairs(struct stats_deals *s, const struct deals_blocks *l, uint64_t *state)
{
	uint16_t *d = s->draw;

	for (size_t k = 0; k < STATS_RESAMPLES; k++, d += l->na + l->nb) {
		for (unsigned int i = 0; i < l->n; i++) {
			const struct deals_block *b = &l->block[stats_pick(state, l->n)];

			d[i] = l->run[b->from];
			d[l->na + i] = (uint16_t)(l->run[b->from + 1] - l->na);
		}
	}
}

/* -- all of it ---------------------------------------------------------------------------- */

static void draw_sides(struct stats_deals *s, uint64_t *state)
{
	uint16_t *d = s->draw;

	for (size_t k = 0; k < STATS_RESAMPLES; k++) {
		for (unsigned int i = 0; i < s->na; i++)
			*d++ = (uint16_t)stats_pick(state, s->na);
		for (unsigned int i = 0; i < s->nb; i++)
			*d++ = (uint16_t)stats_pick(state, s->nb);
	}
}

static bool deals_mirror(const struct deals_blocks *l)
{
	for (unsigned int k = 0; k < l->n; k++) {
		if (2 * l->block[k].na != l->block[k].n)
			return false;
	}
	return true;
}

static int deals_prepare(struct stats_deals *s, const struct deals_blocks *l)
{
	unsigned int n = s->na + s->nb;
	size_t all = block_deals(l);
	uint64_t state = s->seed;

	s->exact = all <= STATS_EXACT_MAX;
	s->ndeals = s->exact ? all : (l->resamples ? l->resamples : STATS_RESAMPLES) + 1;
	/* Dealing them the other way round, where sides are equal, is as extreme. */
	s->p_least = (s->exact && deals_mirror(l) ? 2.0 : 1.0) / (double)s->ndeals;
	s->p_least = fmin(s->p_least, 1);
	s->deal = calloc(s->ndeals * s->na, sizeof(*s->deal));
	s->draw = calloc((size_t)STATS_RESAMPLES * n, sizeof(*s->draw));
	s->scratch = calloc(STATS_RESAMPLES, sizeof(*s->scratch));
	if (!s->deal || !s->draw || !s->scratch)
		return -ENOMEM;
	deal_blocks(s, l, &state);
	if (all_pairs(l))
		draw_pairs(s, l, &state);
	else
		draw_sides(s, &state);
	return 0;
}

int stats_deals_init(struct stats_deals *s, unsigned int na, unsigned int nb,
		     const struct stats_blocks *b, uint64_t seed, struct err *e)
{
	struct deals_blocks l;

	if (!na || !nb || na > STATS_MAX_RUNS || nb > STATS_MAX_RUNS)
		return err_set(e, EINVAL, "%u and %u runs: 1 to %u a side can be compared", na, nb,
			       STATS_MAX_RUNS);
	if (sort_blocks(&l, na, nb, b) < 0)
		return err_set(e, EINVAL, "%u blocks of %u and %u runs: not possible", b->nblocks,
			       na, nb);
	*s = (struct stats_deals){ .na = na, .nb = nb, .seed = seed, .p_least = 1 };
	if (na > 1 && nb > 1 && deals_prepare(s, &l) < 0) {
		stats_deals_deinit(s);
		return err_set(e, ENOMEM, "out of memory for statistics of %u runs", na + nb);
	}
	return 0;
}

void stats_deals_deinit(struct stats_deals *s)
{
	free(s->deal);
	free(s->draw);
	free(s->scratch);
	*s = (struct stats_deals){ 0 };
}
