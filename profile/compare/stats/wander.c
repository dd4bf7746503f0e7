/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/wander.h"

#include "profile/compare/stats/permute.h"
#include "profile/compare/stats/verdict.h"

#include <math.h>
#include <string.h>

/* Levels are fitted with up to so many breaks: a staircase of more has a part that it shows in. */
#define BREAKS 4u
/*
 * What a break beyond the first adds to the statistic of a random walk, about: the 99 % quantiles of 1, 2, 3 and 4 breaks are
 * 23, 36, 49 and 60 for 100 values. The level of the test does not depend on it, as simulated series have the same penalty.
 */
#define PENALTY 12.0

/* Sums over pairs of neighbours: x is the former, y the latter. */
struct pair_sums {
	double n, x, y, xx, xy, yy;
};

static void add_pair(struct pair_sums *s, double x, double y, double sign)
{
	s->n += sign;
	s->x += sign * x;
	s->y += sign * y;
	s->xx += sign * x * x;
	s->xy += sign * x * y;
	s->yy += sign * y * y;
}

/* Returns the sums about the means. */
static struct pair_sums about_means(const struct pair_sums *s)
{
	return (struct pair_sums){ .n = s->n,
				   .xx = fmax(s->xx - s->x * s->x / s->n, 0),
				   .xy = s->xy - s->x * s->y / s->n,
				   .yy = fmax(s->yy - s->y * s->y / s->n, 0) };
}

static void add_within(struct pair_sums *to, const struct pair_sums *part)
{
	if (part->n > 0) {
		const struct pair_sums s = about_means(part);

		to->xx += s.xx;
		to->xy += s.xy;
		to->yy += s.yy;
	}
}

/* Returns the sum of squares that is left after a regression on the value before. */
static double rest(const struct pair_sums *s)
{
	return s->xx > 0 ? fmax(s->yy - s->xy * s->xy / s->xx, 0) : s->yy;
}

/* Returns the same after a regression on the value before and on time. */
static double rest_of_line(const double *v, size_t n)
{
	const double mid = (double)(n - 2) / 2;
	double t = 0, tx = 0, ty = 0;
	struct pair_sums s = { 0 };

	for (size_t i = 1; i < n; i++) {
		double at = (double)(i - 1) - mid;

		add_pair(&s, v[i - 1], v[i], 1);
		t += at * at;
		tx += at * v[i - 1];
		ty += at * v[i];
	}
	s = about_means(&s);
	s.xx = fmax(s.xx - tx * tx / t, 0);
	s.xy -= tx * ty / t;
	s.yy = fmax(s.yy - ty * ty / t, 0);
	return rest(&s);
}

/* Returns the likelihood ratio of two spreads with the same phi, which each pair's residual has. */
static double two_spreads(const double *v, size_t n, size_t least, const struct pair_sums *all,
			  double floor)
{
	const double phi = all->xx > 0 ? all->xy / all->xx : 0;
	double most = 0, left = 0, right = 0, a = 0, whole;

	for (size_t i = 1; i < n; i++)
		a += (v[i] - phi * v[i - 1]) / (double)(n - 1);
	for (size_t i = 1; i < n; i++)
		right += pow(v[i] - phi * v[i - 1] - a, 2);
	whole = (double)(n - 1) * log((right + floor) / (double)(n - 1));
	for (size_t i = 1; i < n; i++) {
		const double e = pow(v[i] - phi * v[i - 1] - a, 2), m = (double)i,
			     k = (double)(n - 1 - i);

		left += e;
		right = fmax(right - e, 0);
		if (i + 1 < least || n - 1 - i < least)
			continue;
		most = fmax(most,
			    whole - m * log((left + floor) / m) - k * log((right + floor) / k));
	}
	return most;
}

static struct pair_sums pairs_of(const double *v, size_t from, size_t end)
{
	struct pair_sums s = { 0 };

	for (size_t i = from + 1; i < end; i++)
		add_pair(&s, v[i - 1], v[i], 1);
	return s;
}

/*
 * Finds the break of the part from..end after which least is left, where `others` are the sums of all other parts. The pair
 * that crosses it is of neither level: an innovation of its own. Returns its place, 0 if there is none.
 */
static size_t best_break(const double *v, size_t from, size_t end, size_t least,
			 const struct pair_sums *others, double *left_over)
{
	struct pair_sums left = { 0 }, right = pairs_of(v, from, end);
	size_t best = 0;

	for (size_t at = from + 1; at + least <= end; at++) {
		struct pair_sums within = *others;
		double r;

		add_pair(&right, v[at - 1], v[at], -1);
		if (at > from + 1)
			add_pair(&left, v[at - 2], v[at - 1], 1);
		if (at < from + least)
			continue;
		add_within(&within, &left);
		add_within(&within, &right);
		r = rest(&within);
		if (r < *left_over) {
			*left_over = r;
			best = at;
		}
	}
	return best;
}

/* Fits 2, 3, ... levels, each with one break more than the one before has. left_over[k]: k + 1 breaks. */
static void fit_levels(const double *v, size_t n, size_t least, double none,
		       double left_over[BREAKS])
{
	size_t cut[BREAKS + 2] = { 0, n };
	double last = none;

	for (size_t breaks = 0; breaks < BREAKS; breaks++) {
		size_t part = 0, best = 0;

		for (size_t k = 0; k <= breaks; k++) {
			struct pair_sums others = { 0 };
			size_t at;

			for (size_t j = 0; j <= breaks; j++) {
				struct pair_sums s = pairs_of(v, cut[j], cut[j + 1]);

				if (j != k)
					add_within(&others, &s);
			}
			at = best_break(v, cut[k], cut[k + 1], least, &others, &last);
			if (at) {
				best = at;
				part = k;
			}
		}
		left_over[breaks] = last;
		if (!best)
			continue;
		memmove(cut + part + 2, cut + part + 1, (breaks + 1 - part) * sizeof(*cut));
		cut[part + 1] = best;
	}
}

struct wander_fit wander_fit(const double *v, size_t n, const struct wander_options *o,
			     double *room)
{
	const double mean = stats_mean(v, n), floor = o->resolution * o->resolution * (double)n;
	struct pair_sums all, whole;
	double left_over[BREAKS], none, line;
	struct wander_fit fit = { 0 };

	for (size_t i = 0; i < n; i++)
		room[i] = v[i] - mean;
	all = pairs_of(room, 0, n);
	whole = about_means(&all);
	none = rest(&whole);
	line = rest_of_line(room, n);
	fit_levels(room, n, o->least, none, left_over);
	fit.phi = whole.xx > 0 ? fmin(fmax(whole.xy / whole.xx, 0), 1) : 0;
	for (size_t k = 0; k < BREAKS; k++) {
		const double statistic =
			(double)(n - 1) * log((none + floor) / (left_over[k] + floor));

		fit.levels = fmax(fit.levels, statistic - PENALTY * (double)k);
	}
	fit.line = fmax((double)(n - 1) * log((none + floor) / (line + floor)), 0);
	fit.spreads = two_spreads(room, n, o->least, &whole, floor);
	return fit;
}

static double uniform(uint64_t *state)
{
	return ((double)(stats_random(state) >> 11) + 0.5) * 0x1p-53;
}

/* Simulates an AR(1) that begins in its stationary state, or a random walk. */
static void simulate(double *v, size_t n, double phi, uint64_t *state)
{
	double last = 0;

	for (size_t i = 0; i < n; i += 2) {
		/* Box and Muller */
		const double r = sqrt(-2 * log(uniform(state))), w = 2 * M_PI * uniform(state);

		v[i] = r * cos(w);
		if (i + 1 < n)
			v[i + 1] = r * sin(w);
	}
	if (phi < 1)
		v[0] /= sqrt(1 - phi * phi);
	for (size_t i = 0; i < n; i++)
		v[i] = last = phi * last * (i > 0) + v[i];
}

struct wander_p wander_test(const double *v, size_t n, const struct wander_options *o,
			    uint64_t *state, double *room)
{
	const struct wander_fit seen = wander_fit(v, n, o, room);
	/* Simulated values have noise of 1 and are not rounded. */
	const struct wander_options exact = { .least = o->least };
	const double level = fmax(seen.levels, seen.line) * (1 - 1e-9);
	const double spread = seen.spreads * (1 - 1e-9), all = o->simulated + 1.0;
	/* Least squares underestimates phi of few values by about this (Kendall 1954). */
	const double phi = fmin(seen.phi + (1 + 3 * seen.phi) / (double)n, 1);
	unsigned int levels = 1, spreads = 1, k = 1;

	while (k <= o->simulated && fmin(levels, spreads) <= o->alpha * all * (1 + 1e-9)) {
		struct wander_fit f;

		simulate(room + n, n, phi, state);
		f = wander_fit(room + n, n, &exact, room);
		levels += fmax(f.levels, f.line) >= level;
		spreads += f.spreads >= spread;
		k++;
	}
	return (struct wander_p){ .level = (double)levels / k,
				  .spread = (double)spreads / k,
				  .drifts = seen.line > seen.levels };
}
