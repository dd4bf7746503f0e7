/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/order.h"

#include "profile/compare/stats/verdict.h"

#include <math.h>

#define SHUFFLES 999u
#define ORDER_P 0.01
#define ORDER_RUNS 8u /* with fewer, such a p needs luck */

struct series {
	unsigned int n;
	double rest[2 * STATS_MAX_RUNS]; /* in order of running, about the mean of its side */
	double at[2 * STATS_MAX_RUNS];	 /* the place, about the mean place of its side */
	uint8_t side[2 * STATS_MAX_RUNS];
};

static void make_series(struct series *s, const struct stats_design *d, const double *base,
			const double *head)
{
	double mean[2] = { stats_mean(base, d->nbase), stats_mean(head, d->nhead) },
	       place[2] = { 0 };

	s->n = d->nbase + d->nhead;
	for (unsigned int i = 0; i < s->n; i++) {
		unsigned int run = d->time[i], side = run >= d->nbase;

		s->side[i] = (uint8_t)side;
		s->rest[i] = (side ? head[run - d->nbase] : base[run]) - mean[side];
		place[side] += (double)i / (side ? d->nhead : d->nbase);
	}
	for (unsigned int i = 0; i < s->n; i++)
		s->at[i] = i - place[s->side[i]];
}

static double trend(const struct series *s)
{
	double t = 0;

	for (unsigned int i = 0; i < s->n; i++)
		t += s->rest[i] * s->at[i];
	return fabs(t);
}

static double likeness(const struct series *s)
{
	double t = 0;

	for (unsigned int i = 1; i < s->n; i++)
		t += s->rest[i] * s->rest[i - 1];
	return t;
}

static void shuffle(struct series *s, uint64_t *state)
{
	for (unsigned int side = 0; side < 2; side++) {
		unsigned int place[2 * STATS_MAX_RUNS], n = 0;

		for (unsigned int i = 0; i < s->n; i++) {
			if (s->side[i] == side)
				place[n++] = i;
		}
		for (; n > 1; n--) {
			unsigned int j = place[stats_pick(state, n)], k = place[n - 1];
			double t = s->rest[j];

			s->rest[j] = s->rest[k];
			s->rest[k] = t;
		}
	}
}

struct stats_order_seen stats_order_seen(const struct stats_design *d, const double *base,
					 const double *head)
{
	uint64_t state = d->deals.seed ^ 0x7472656e64u;
	unsigned int trends = 1, alike = 1;
	double drift, like, tie;
	struct series s;

	if (!d->ordered || d->nbase + d->nhead < ORDER_RUNS)
		return (struct stats_order_seen){ 0 };
	make_series(&s, d, base, head);
	drift = trend(&s);
	like = likeness(&s);
	tie = 1e-9 * (drift + fabs(like));
	for (unsigned int k = 0; k < SHUFFLES; k++) {
		shuffle(&s, &state);
		trends += trend(&s) >= drift - tie;
		alike += likeness(&s) >= like - tie;
	}
	return (struct stats_order_seen){ .drift = trends <= ORDER_P * (SHUFFLES + 1),
					  .alike = alike <= ORDER_P * (SHUFFLES + 1) };
}

void stats_detrend(const struct stats_design *d, double *base, double *head)
{
	double product = 0, square = 0, middle = (d->nbase + d->nhead - 1) / 2.0;
	struct series s;

	make_series(&s, d, base, head);
	for (unsigned int i = 0; i < s.n; i++) {
		product += s.rest[i] * s.at[i];
		square += s.at[i] * s.at[i];
	}
	for (unsigned int i = 0; i < s.n && square > 0; i++) {
		unsigned int run = d->time[i];
		double drift = product / square * (i - middle);

		if (run < d->nbase)
			base[run] -= drift;
		else
			head[run - d->nbase] -= drift;
	}
}
