/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/runs.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z95 1.959963984540054

/* splitmix64: public domain, by Sebastiano Vigna. */
uint64_t runstats_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n - 1; n is so small that the bias is below 2^-48. */
unsigned int runstats_pick(uint64_t *state, unsigned int n)
{
	return (unsigned int)((unsigned __int128)runstats_random(state) * n >> 64);
}

/* n over k, or RUNSTATS_EXACT_MAX + 1 when it is more than that. */
static size_t combinations(unsigned int n, unsigned int k)
{
	uint64_t c = 1;

	if (k > n - k)
		k = n - k;
	for (unsigned int i = 1; i <= k; i++) {
		c = c * (n - k + i) / i;
		if (c > RUNSTATS_EXACT_MAX)
			return RUNSTATS_EXACT_MAX + 1;
	}
	return (size_t)c;
}

/* -- deals ------------------------------------------------------------------------------- */

/* All subsets of na runs in lexicographic order; the first is what was seen. */
static void deal_all(struct runstats *s)
{
	unsigned int n = s->na + s->nb, k = s->na;
	uint16_t *d = s->deal;

	for (unsigned int i = 0; i < k; i++)
		d[i] = (uint16_t)i;
	for (size_t done = 1; done < s->ndeals; done++) {
		const uint16_t *before = d;
		unsigned int i = k;

		d += k;
		memcpy(d, before, k * sizeof(*d));
		while (i-- > 0 && d[i] == n - k + i)
			;
		d[i]++;
		for (i++; i < k; i++)
			d[i] = (uint16_t)(d[i - 1] + 1);
	}
}

/* The one that was seen, then by chance. */
static void deal_some(struct runstats *s, uint64_t *state)
{
	uint16_t run[2 * RUNSTATS_MAX_RUNS];
	unsigned int n = s->na + s->nb;

	for (unsigned int i = 0; i < n; i++)
		run[i] = (uint16_t)i;
	memcpy(s->deal, run, s->na * sizeof(*run));
	for (size_t k = 1; k < s->ndeals; k++) {
		for (unsigned int i = 0; i < s->na; i++) {
			unsigned int j = i + runstats_pick(state, n - i);
			uint16_t t = run[i];

			run[i] = run[j];
			run[j] = t;
		}
		memcpy(s->deal + k * s->na, run, s->na * sizeof(*run));
	}
}

/* -- deals within blocks ------------------------------------------------------------------ */

/* One block: its runs in `run` from `from` on, those of side a first, which are na of n. */
struct block {
	unsigned int from, na, n;
};

/* What a deal within blocks is made of; on the stack, some 3 KB. */
struct blocks {
	unsigned int n, glue, na, nb;
	unsigned int resamples; /* 0: the default */
	uint16_t run[2 * RUNSTATS_MAX_RUNS];
	struct block block[2 * RUNSTATS_MAX_RUNS];
};

static int sort_blocks(struct blocks *l, unsigned int na, unsigned int nb,
		       const struct runstats_blocks *b)
{
	unsigned int used = 0;

	*l = (struct blocks){ .n = b->nblocks,
			      .glue = b->glue > 1 ? b->glue : 1,
			      .na = na,
			      .nb = nb,
			      .resamples = b->resamples };
	if (!b->nblocks || b->nblocks > na + nb || b->resamples > RUNSTATS_RESAMPLES_MAX)
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
		if (l->glue > 1 && (l->block[k].na != 1 || l->block[k].n != 2))
			return -EINVAL;
	}
	return used == na + nb ? 0 : -EINVAL;
}

static bool all_pairs(const struct blocks *l)
{
	for (unsigned int k = 0; k < l->n; k++) {
		if (l->block[k].na != 1 || l->block[k].n != 2)
			return false;
	}
	return true;
}

/* Ways to deal, or RUNSTATS_EXACT_MAX + 1 when there are more. */
static size_t block_deals(const struct blocks *l)
{
	size_t ways = 1;

	for (unsigned int k = 0; k < l->n && ways <= RUNSTATS_EXACT_MAX; k += l->glue)
		ways *= l->glue > 1 ? 2 : combinations(l->block[k].n, l->block[k].na);
	return ways > RUNSTATS_EXACT_MAX ? RUNSTATS_EXACT_MAX + 1 : ways;
}

/* pos: the chosen places in each block, ascending, one block after the other. False at the end. */
static bool next_in_blocks(const struct blocks *l, uint16_t *pos)
{
	unsigned int at = 0;

	for (unsigned int k = 0; k < l->n; k++) {
		const struct block *b = &l->block[k];
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

static void first_in_blocks(const struct blocks *l, uint16_t *pos)
{
	for (unsigned int k = 0; k < l->n; k++) {
		for (unsigned int i = 0; i < l->block[k].na; i++)
			*pos++ = (uint16_t)i;
	}
}

static void random_in_blocks(const struct blocks *l, uint16_t *pos, uint64_t *state)
{
	uint16_t place[2 * RUNSTATS_MAX_RUNS];

	for (unsigned int k = 0; k < l->n; k++) {
		const struct block *b = &l->block[k];

		for (unsigned int i = 0; i < b->n; i++)
			place[i] = (uint16_t)i;
		for (unsigned int i = 0; i < b->na; i++) {
			unsigned int j = i + runstats_pick(state, b->n - i);
			uint16_t t = place[i];

			place[i] = place[j];
			place[j] = t;
			*pos++ = place[i];
		}
	}
}

/* Glued blocks are pairs, so a place is 0 (as seen) or 1; bit g of the number is group g. */
static void glued(const struct blocks *l, uint16_t *pos, size_t number, uint64_t *state)
{
	uint64_t bits = number;

	for (unsigned int k = 0; k < l->n; k++) {
		if (k && k % l->glue == 0)
			bits >>= 1;
		if (state && k % l->glue == 0)
			bits = runstats_random(state) >> 63;
		pos[k] = bits & 1;
	}
}

static void deal_blocks(struct runstats *s, const struct blocks *l, uint64_t *state)
{
	uint16_t pos[2 * RUNSTATS_MAX_RUNS];
	uint16_t *d = s->deal;

	first_in_blocks(l, pos);
	for (size_t done = 0; done < s->ndeals; done++) {
		unsigned int at = 0;

		if (done && l->glue > 1)
			glued(l, pos, done, s->exact ? NULL : state);
		else if (done && s->exact)
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
static void draw_pairs(struct runstats *s, const struct blocks *l, uint64_t *state)
{
	uint16_t *d = s->draw;

	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++, d += l->na + l->nb) {
		for (unsigned int i = 0; i < l->n; i++) {
			const struct block *b = &l->block[runstats_pick(state, l->n)];

			d[i] = l->run[b->from];
			d[l->na + i] = (uint16_t)(l->run[b->from + 1] - l->na);
		}
	}
}

/* -- all of it ---------------------------------------------------------------------------- */

static void draw_sides(struct runstats *s, uint64_t *state)
{
	uint16_t *d = s->draw;

	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++) {
		for (unsigned int i = 0; i < s->na; i++)
			*d++ = (uint16_t)runstats_pick(state, s->na);
		for (unsigned int i = 0; i < s->nb; i++)
			*d++ = (uint16_t)runstats_pick(state, s->nb);
	}
}

static bool deals_mirror(const struct runstats *s, const struct blocks *l)
{
	if (!l)
		return s->na == s->nb;
	for (unsigned int k = 0; k < l->n; k++) {
		if (2 * l->block[k].na != l->block[k].n)
			return false;
	}
	return true;
}

/* l: NULL when all runs may be dealt. */
static int runs_prepare(struct runstats *s, const struct blocks *l)
{
	unsigned int n = s->na + s->nb;
	size_t all = l ? block_deals(l) : combinations(n, s->na);
	uint64_t state = s->seed;

	s->exact = all <= RUNSTATS_EXACT_MAX;
	s->ndeals = s->exact ? all : (l && l->resamples ? l->resamples : RUNSTATS_RESAMPLES) + 1;
	/* Dealing them the other way round, where sides are equal, is as extreme. */
	s->p_least = (s->exact && deals_mirror(s, l) ? 2.0 : 1.0) / (double)s->ndeals;
	s->p_least = fmin(s->p_least, 1);
	s->deal = calloc(s->ndeals * s->na, sizeof(*s->deal));
	s->draw = calloc((size_t)RUNSTATS_RESAMPLES * n, sizeof(*s->draw));
	s->scratch = calloc(RUNSTATS_RESAMPLES, sizeof(*s->scratch));
	if (!s->deal || !s->draw || !s->scratch)
		return -ENOMEM;
	if (l)
		deal_blocks(s, l, &state);
	else if (s->exact)
		deal_all(s);
	else
		deal_some(s, &state);
	if (l && all_pairs(l))
		draw_pairs(s, l, &state);
	else
		draw_sides(s, &state);
	return 0;
}

static int runs_init(struct runstats *s, unsigned int na, unsigned int nb, const struct blocks *l,
		     uint64_t seed, struct err *e)
{
	*s = (struct runstats){ .na = na, .nb = nb, .seed = seed, .p_least = 1 };
	if (na > 1 && nb > 1 && runs_prepare(s, l) < 0) {
		runstats_deinit(s);
		return err_set(e, ENOMEM, "out of memory for statistics of %u runs", na + nb);
	}
	return 0;
}

static int check_counts(unsigned int na, unsigned int nb, struct err *e)
{
	if (!na || !nb || na > RUNSTATS_MAX_RUNS || nb > RUNSTATS_MAX_RUNS)
		return err_set(e, EINVAL, "%u and %u runs: 1 to %u a side can be compared", na, nb,
			       RUNSTATS_MAX_RUNS);
	return 0;
}

int runstats_init(struct runstats *s, unsigned int na, unsigned int nb, uint64_t seed,
		  struct err *e)
{
	int ret = check_counts(na, nb, e);

	return ret ? ret : runs_init(s, na, nb, NULL, seed, e);
}

int runstats_init_blocks(struct runstats *s, unsigned int na, unsigned int nb,
			 const struct runstats_blocks *b, uint64_t seed, struct err *e)
{
	struct blocks l;
	int ret = check_counts(na, nb, e);

	if (ret)
		return ret;
	if (sort_blocks(&l, na, nb, b) < 0)
		return err_set(e, EINVAL, "%u blocks of %u and %u runs, %u at a time: not possible",
			       b->nblocks, na, nb, l.glue);
	return runs_init(s, na, nb, &l, seed, e);
}

void runstats_deinit(struct runstats *s)
{
	free(s->deal);
	free(s->draw);
	free(s->scratch);
	*s = (struct runstats){ 0 };
}

/* -- comparing ----------------------------------------------------------------------------- */

static double sum(const double *v, unsigned int n)
{
	double t = 0;

	for (unsigned int i = 0; i < n; i++)
		t += v[i];
	return t;
}

static double runs_test(const struct runstats *s, const double *a, const double *b, double seen)
{
	double v[2 * RUNSTATS_MAX_RUNS], total, largest = 0, least;
	size_t extreme = 0;

	memcpy(v, a, s->na * sizeof(*v));
	memcpy(v + s->na, b, s->nb * sizeof(*v));
	total = sum(v, s->na + s->nb);
	for (unsigned int i = 0; i < s->na + s->nb; i++)
		largest = fmax(largest, fabs(v[i]));
	/* Sums in another order differ in their last bits: such are ties. */
	least = fabs(seen) - 1e-12 * largest;
	for (size_t k = 0; k < s->ndeals; k++) {
		const uint16_t *d = s->deal + k * s->na;
		double side = 0;

		for (unsigned int i = 0; i < s->na; i++)
			side += v[d[i]];
		extreme += fabs((total - side) / s->nb - side / s->na) >= least;
	}
	return (double)extreme / (double)s->ndeals;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Ranks 250 and 9750 of 9999: 2.5 % and 97.5 %. */
static void interval(const struct runstats *s, const double *a, const double *b, double *lo,
		     double *hi)
{
	const uint16_t *d = s->draw;

	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++) {
		double x = 0, y = 0;

		for (unsigned int i = 0; i < s->na; i++)
			x += a[*d++];
		for (unsigned int i = 0; i < s->nb; i++)
			y += b[*d++];
		s->scratch[k] = y / s->nb - x / s->na;
	}
	qsort(s->scratch, RUNSTATS_RESAMPLES, sizeof(*s->scratch), compare_numbers);
	*lo = s->scratch[(RUNSTATS_RESAMPLES + 1) / 40 - 1];
	*hi = s->scratch[RUNSTATS_RESAMPLES - (RUNSTATS_RESAMPLES + 1) / 40];
}

void runstats_compare(const struct runstats *s, const double *a, const double *b,
		      struct runstats_result *out)
{
	*out = (struct runstats_result){ .mean_a = sum(a, s->na) / s->na,
					 .mean_b = sum(b, s->nb) / s->nb,
					 .p = 1 };
	out->diff = out->mean_b - out->mean_a;
	out->tested = s->deal != NULL;
	if (!out->tested)
		return;
	out->p = runs_test(s, a, b, out->diff);
	interval(s, a, b, &out->lo, &out->hi);
}

double runstats_noise(double share_a, double na, double share_b, double nb)
{
	double v = 0;

	if (na > 0)
		v += share_a * (1 - share_a) / na;
	if (nb > 0)
		v += share_b * (1 - share_b) / nb;
	return v > 0 ? Z95 * sqrt(v) : 0;
}

/* -- many comparisons ------------------------------------------------------------------------ */

struct ranked {
	double p;
	size_t i;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

int runstats_fdr(const double *p, size_t n, double *q)
{
	cleanup_free struct ranked *r = calloc(n ? n : 1, sizeof(*r));
	double least = 1;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r[i] = (struct ranked){ p[i], i };
	qsort(r, n, sizeof(*r), compare_ranked);
	for (size_t k = n; k-- > 0;) {
		least = fmin(least, r[k].p * (double)n / (double)(k + 1));
		q[r[k].i] = least;
	}
	return 0;
}
