/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/design.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct design_place {
	uint64_t at;
	uint16_t run;
};

static int compare_places(const void *a, const void *b)
{
	const struct design_place *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int sort_by_time(struct stats_design *d, const struct stats_layout *l, struct err *e)
{
	unsigned int n = l->nbase + l->nhead;
	cleanup_free struct design_place *p = calloc(n, sizeof(*p));

	d->time = calloc(n, sizeof(*d->time));
	if (!p || !d->time)
		return err_set(e, ENOMEM, "out of memory for the order of %u runs", n);
	for (unsigned int i = 0; i < n; i++)
		p[i] = (struct design_place){ i < l->nbase ? l->base_at[i]
							   : l->head_at[i - l->nbase],
					      (uint16_t)i };
	qsort(p, n, sizeof(*p), compare_places);
	for (unsigned int i = 0; i < n; i++) {
		if (i && p[i].at == p[i - 1].at)
			return err_set(e, EINVAL,
				       "two runs have place %llu in the order of running; each "
				       "needs its own",
				       (unsigned long long)p[i].at);
		d->time[i] = p[i].run;
	}
	return 0;
}

/* A block ends as soon as both sides ran in it; what is left over belongs to the last. */
static unsigned int cut_blocks(struct stats_design *d)
{
	unsigned int n = d->nbase + d->nhead, block = 0, seen = 0;

	for (unsigned int i = 0; i < n; i++) {
		d->block[d->time[i]] = (uint16_t)block;
		seen |= d->time[i] < d->nbase ? 1 : 2;
		if (seen == 3) {
			block++;
			seen = 0;
		}
	}
	for (unsigned int i = 0; i < n && block; i++) {
		if (d->block[i] == block)
			d->block[i]--;
	}
	return block ? block : 1;
}

static double log_factorial(unsigned int n)
{
	int sign; /* lgamma() has a global one */

	return lgamma_r(n + 1.0, &sign);
}

/* Returns the logarithm of the number of all deals. */
static double log_deals(const struct stats_design *d, unsigned int nblocks)
{
	unsigned int n = d->nbase + d->nhead;
	double sum = 0;

	for (unsigned int b = 0; b < nblocks; b++) {
		unsigned int of = 0, base = 0;

		for (unsigned int i = 0; i < n; i++) {
			of += d->block[i] == b;
			base += d->block[i] == b && i < d->nbase;
		}
		sum += log_factorial(of) - log_factorial(base) - log_factorial(of - base);
	}
	return sum;
}

/* Every second block joins the one before it. */
static unsigned int join_blocks(struct stats_design *d, unsigned int nblocks)
{
	for (unsigned int i = 0; i < d->nbase + d->nhead; i++) {
		d->block[i] /= 2;
		/* An odd last one would be smaller than the others: it joins too. */
		if (nblocks > 1 && nblocks % 2 && d->block[i] == nblocks / 2)
			d->block[i]--;
	}
	return nblocks / 2 ? nblocks / 2 : 1;
}

static bool pairs_only(const struct stats_design *d)
{
	unsigned int side[2 * STATS_MAX_RUNS][2] = { 0 };

	for (unsigned int i = 0; i < d->nbase + d->nhead; i++)
		side[d->block[i]][i >= d->nbase]++;
	for (unsigned int b = 0; b < d->nblocks; b++) {
		if (side[b][0] != 1 || side[b][1] != 1)
			return false;
	}
	return true;
}

static bool same_first(const struct stats_design *d)
{
	bool head = d->time[0] >= d->nbase;

	for (unsigned int i = 2; i < d->nbase + d->nhead; i += 2) {
		if ((d->time[i] >= d->nbase) != head)
			return false;
	}
	return true;
}

static int find_blocks(struct stats_design *d, const struct stats_layout *l, struct err *e)
{
	double alpha = l->alpha > 0 ? l->alpha : STATS_ALPHA;
	unsigned int n;

	d->block = calloc(d->nbase + d->nhead, sizeof(*d->block));
	if (!d->block)
		return err_set(e, ENOMEM, "out of memory for blocks of runs");
	n = cut_blocks(d);
	d->confounded = n < 3;
	if (l->pairing == STATS_FREE || d->confounded)
		n = 1;
	d->nblocks = n;
	d->pairs = n > 1 && pairs_only(d);
	d->one_order = d->pairs && same_first(d);
	/* Rounding must not join what just reaches alpha. */
	while (n > 1 && log_deals(d, n) < -log(alpha) - 1e-9)
		n = join_blocks(d, n);
	if (n != d->nblocks)
		d->pairs = false;
	d->nblocks = n;
	return 0;
}

static int design_init(struct stats_design *d, const struct stats_layout *l, struct err *e)
{
	struct stats_blocks b = { .resamples = l->resamples };
	uint64_t seed = l->seed ? l->seed : STATS_SEED;
	int ret;

	d->nblocks = 1;
	if (d->ordered) {
		ret = sort_by_time(d, l, e);
		if (ret)
			return ret;
		ret = find_blocks(d, l, e);
		if (ret)
			return ret;
	}
	if (d->nblocks == 1) {
		free(d->block);
		d->block = calloc(d->nbase + d->nhead, sizeof(*d->block));
		if (!d->block)
			return err_set(e, ENOMEM, "out of memory for blocks of runs");
	}
	b.block = d->block;
	b.nblocks = d->nblocks;
	return stats_deals_init(&d->deals, d->nbase, d->nhead, &b, seed, e);
}

int stats_design_init(struct stats_design *d, const struct stats_layout *layout, struct err *e)
{
	int ret;

	*d = (struct stats_design){ .nbase = layout->nbase,
				    .nhead = layout->nhead,
				    .ordered = layout->base_at && layout->head_at };
	if (!d->nbase || !d->nhead || d->nbase > STATS_MAX_RUNS || d->nhead > STATS_MAX_RUNS)
		return err_set(e, EINVAL,
			       "%u base and %u head runs: 1 to %u a side can be compared", d->nbase,
			       d->nhead, STATS_MAX_RUNS);
	if (!(layout->alpha >= 0 && layout->alpha < 0.5) || layout->resamples > STATS_RESAMPLES_MAX)
		return err_set(e, EINVAL, "alpha %g with %u resamples: 0 to 0.5 and up to %u",
			       layout->alpha, layout->resamples, STATS_RESAMPLES_MAX);
	ret = design_init(d, layout, e);
	if (ret)
		stats_design_deinit(d);
	return ret;
}

void stats_design_deinit(struct stats_design *d)
{
	stats_deals_deinit(&d->deals);
	free(d->time);
	free(d->block);
	*d = (struct stats_design){ 0 };
}

void stats_order(unsigned int npairs, uint64_t seed, bool *head_first)
{
	/* Another stream than that of the deals, which may have the same seed. */
	uint64_t state = seed ^ 0x6f72646572u;

	for (unsigned int i = 0; i < npairs; i++)
		head_first[i] = stats_random(&state) >> 63;
}
