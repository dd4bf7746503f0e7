/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/runstats.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z95 1.959963984540054

/* splitmix64: public domain, by Sebastiano Vigna. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n - 1; n is so small that the bias is below 2^-48. */
static unsigned int pick(uint64_t *state, unsigned int n)
{
	return (unsigned int)((unsigned __int128)next_random(state) * n >> 64);
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
			unsigned int j = i + pick(state, n - i);
			uint16_t t = run[i];

			run[i] = run[j];
			run[j] = t;
		}
		memcpy(s->deal + k * s->na, run, s->na * sizeof(*run));
	}
}

static int prepare(struct runstats *s)
{
	unsigned int n = s->na + s->nb;
	size_t all = combinations(n, s->na);
	uint64_t state = s->seed;
	uint16_t *d;

	s->exact = all <= RUNSTATS_EXACT_MAX;
	s->ndeals = s->exact ? all : RUNSTATS_RESAMPLES + 1;
	/* With equal sides, dealing them the other way round is as extreme. */
	s->p_least = (s->exact && s->na == s->nb ? 2.0 : 1.0) / (double)s->ndeals;
	s->deal = calloc(s->ndeals * s->na, sizeof(*s->deal));
	s->draw = calloc((size_t)RUNSTATS_RESAMPLES * n, sizeof(*s->draw));
	s->scratch = calloc(RUNSTATS_RESAMPLES, sizeof(*s->scratch));
	if (!s->deal || !s->draw || !s->scratch)
		return -ENOMEM;
	if (s->exact)
		deal_all(s);
	else
		deal_some(s, &state);
	d = s->draw;
	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++) {
		for (unsigned int i = 0; i < s->na; i++)
			*d++ = (uint16_t)pick(&state, s->na);
		for (unsigned int i = 0; i < s->nb; i++)
			*d++ = (uint16_t)pick(&state, s->nb);
	}
	return 0;
}

int runstats_init(struct runstats *s, unsigned int na, unsigned int nb, uint64_t seed,
		  struct err *e)
{
	if (!na || !nb || na > RUNSTATS_MAX_RUNS || nb > RUNSTATS_MAX_RUNS)
		return err_set(e, EINVAL, "%u and %u runs: 1 to %u a side can be compared", na, nb,
			       RUNSTATS_MAX_RUNS);
	*s = (struct runstats){ .na = na, .nb = nb, .seed = seed, .p_least = 1 };
	if (na > 1 && nb > 1 && prepare(s) < 0) {
		runstats_deinit(s);
		return err_set(e, ENOMEM, "out of memory for statistics of %u runs", na + nb);
	}
	return 0;
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

static double test(const struct runstats *s, const double *a, const double *b, double seen)
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
	out->p = test(s, a, b, out->diff);
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
