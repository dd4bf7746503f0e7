/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hartigan and Hartigan 1985, "The Dip Test of Unimodality": the modal interval shrinks
 * to where the greatest convex minorant and the least concave majorant of the empirical
 * distribution are farthest apart; outside of it they are the unimodal fit.
 */
#include "profile/compare/stats/modes.h"

#include "profile/compare/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- the dip ---------------------------------------------------------------------------------- */

struct hull {
	double *fit;	/* at each value, in counts */
	uint16_t *knot; /* ascending */
	unsigned int n;
};

/*
 * The convex minorant of points (x[i], i), the distribution's lower corners, or the concave
 * majorant of (x[i], i + 1), the upper ones, for i from lo to hi.
 */
static void make_hull(struct hull *h, const double *x, unsigned int lo, unsigned int hi, bool upper)
{
	double side = upper ? -1 : 1;

	h->n = 0;
	for (unsigned int i = lo; i <= hi; i++) {
		while (h->n > 1) {
			unsigned int b = h->knot[h->n - 1], a = h->knot[h->n - 2];
			/* b lies on or beyond the line from a to i. */
			if (side * ((x[i] - x[a]) * (b - a) - (x[b] - x[a]) * (i - a)) < 0)
				break;
			h->n--;
		}
		/* Of equal first values the highest corner is the majorant's. */
		if (upper && h->n == 1 && x[h->knot[0]] == x[i])
			h->n = 0;
		h->knot[h->n++] = (uint16_t)i;
	}
	for (unsigned int k = 0; k < h->n; k++) {
		unsigned int a = h->knot[k], b = h->knot[k + 1 < h->n ? k + 1 : k];

		for (unsigned int i = a; i <= b; i++) {
			double width = x[b] - x[a];

			h->fit[i] =
				a + upper + (width > 0 ? (b - a) * (x[i] - x[a]) / width : i - a);
		}
	}
	for (unsigned int i = lo; i < h->knot[0]; i++)
		h->fit[i] = h->fit[h->knot[0]];
}

static double largest_apart(const struct hull *low, const struct hull *high, unsigned int *l,
			    unsigned int *h)
{
	double most = -1;

	for (unsigned int k = 0, next = 0; k < low->n; k++) {
		unsigned int at = low->knot[k];

		while (next + 1 < high->n && high->knot[next] < at)
			next++;
		if (high->fit[at] - low->fit[at] > most) {
			most = high->fit[at] - low->fit[at];
			*l = at;
			*h = high->knot[next];
		}
	}
	for (unsigned int k = high->n, next = low->n - 1; k-- > 0;) {
		unsigned int at = high->knot[k];

		while (next > 0 && low->knot[next] > at)
			next--;
		if (high->fit[at] - low->fit[at] > most) {
			most = high->fit[at] - low->fit[at];
			*l = low->knot[next];
			*h = at;
		}
	}
	return most;
}

static double dip_of(const double *x, unsigned int n, struct hull *low, struct hull *high)
{
	unsigned int lo = 0, hi = n - 1;
	double dip = 1;

	if (n < 4 || x[0] == x[n - 1])
		return dip / (2.0 * n);
	for (;;) {
		unsigned int l = lo, h = hi;
		double apart;

		make_hull(low, x, lo, hi, false);
		make_hull(high, x, lo, hi, true);
		apart = largest_apart(low, high, &l, &h);
		if (apart <= dip)
			break;
		for (unsigned int i = lo; i <= l; i++)
			dip = fmax(dip, i + 1 - low->fit[i]);
		for (unsigned int i = h; i <= hi; i++)
			dip = fmax(dip, high->fit[i] - i);
		if (l == lo && h == hi)
			break;
		lo = l;
		hi = h;
	}
	return dip / (2.0 * n);
}

/* Room for two hulls of n in one allocation. */
static void *hulls(unsigned int n, struct hull *a, struct hull *b)
{
	char *mem = calloc(n, 2 * (sizeof(double) + sizeof(uint16_t)));

	if (mem) {
		a->fit = (double *)mem;
		b->fit = a->fit + n;
		a->knot = (uint16_t *)(b->fit + n);
		b->knot = a->knot + n;
	}
	return mem;
}

int gate_dip(const double *sorted, size_t n, double *out)
{
	struct hull a, b;
	cleanup_free void *mem = NULL;

	if (!n || n > 2 * GATE_MAX_RUNS)
		return -EINVAL;
	mem = hulls((unsigned int)n, &a, &b);
	if (!mem)
		return -ENOMEM;
	*out = dip_of(sorted, (unsigned int)n, &a, &b);
	return 0;
}

/* -- its distribution without modes ------------------------------------------------------------ */

/* Sorted dips of uniform samples of n. */
static int null_dips(unsigned int n, double *dips)
{
	double x[2 * GATE_MAX_RUNS];
	uint64_t state = 0x646970u + n;
	struct hull a, b;
	cleanup_free void *mem = hulls(n, &a, &b);

	if (!mem)
		return -ENOMEM;
	for (unsigned int k = 0; k < GATE_DIP_DRAWS; k++) {
		/* Sums of exponentials are ordered uniforms but for a factor: the same dip. */
		for (unsigned int i = 0; i < n; i++) {
			double u = ((double)(runstats_random(&state) >> 11) + 1) * 0x1p-53;

			x[i] = (i ? x[i - 1] : 0) - log(u);
		}
		dips[k] = dip_of(x, n, &a, &b);
	}
	qsort(dips, GATE_DIP_DRAWS, sizeof(*dips), gate_compare_doubles);
	return 0;
}

/* x is sorted. */
static void spread_ties(double *x, unsigned int n)
{
	double step = HUGE_VAL;

	for (unsigned int i = 1; i < n; i++) {
		if (x[i] > x[i - 1])
			step = fmin(step, x[i] - x[i - 1]);
	}
	for (unsigned int i = 0, end; i < n && isfinite(step); i = end) {
		double value = x[i];

		for (end = i; end < n && x[end] == value; end++)
			;
		for (unsigned int k = i; k < end && end - i > 1; k++)
			x[k] += step / 2 * ((k - i) / (end - i - 1.0) - 0.5);
	}
}

static int dip_sorted(double *x, unsigned int n, double *out)
{
	spread_ties(x, n);
	return gate_dip(x, n, out);
}

int gate_modes_seen(const double *v, unsigned int n, double *limit, bool *out)
{
	double x[2 * GATE_MAX_RUNS], dip;

	*out = false;
	if (n < GATE_MODES_MIN)
		return 0;
	if (!(*limit > 0)) {
		cleanup_free double *dips = calloc(GATE_DIP_DRAWS, sizeof(*dips));

		if (!dips || null_dips(n, dips) < 0)
			return -ENOMEM;
		/* p = (1 + those as large) / (draws + 1) <= alpha. */
		*limit = dips[GATE_DIP_DRAWS -
			      (unsigned int)(GATE_MODES_ALPHA * (GATE_DIP_DRAWS + 1))];
	}
	memcpy(x, v, n * sizeof(*x));
	qsort(x, n, sizeof(*x), gate_compare_doubles);
	if (dip_sorted(x, n, &dip) < 0)
		return -ENOMEM;
	*out = dip > *limit;
	return 0;
}
