/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares add up to one: a function that grew makes the shares of all others smaller by one factor, and one that shrank makes
 * them larger. What follows another function's change is no change of its own.
 *
 * The factor is the median of what the shares changed by, weighted by the shares. Functions that follow it within the noise of
 * the runs are explained by the others, if they are more than half of all functions and have more than half of all their weight:
 * that one function changed is then the shorter explanation than that all others did, by the same factor.
 */
#include "profile/compare/gate/private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISES 3.0	  /* standard errors within which a share follows the factor */
#define INEXACT 0.1	  /* or within that part of what the factor says */
#define CAUSES 3u	  /* that are named */
#define LEAST_FACTOR 1e-3 /* nearer to one there is nothing to explain */

struct ratio {
	double ratio, weight;
};

struct cause {
	const struct gate_eval *v;
	double factor;	/* that shares of unchanged functions change by */
	char text[200]; /* "left_leaf grew" */
};

static int compare_ratios(const void *a, const void *b)
{
	const struct ratio *x = a, *y = b;

	return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static int cause_factor(struct cause *c, const struct gate_finding *f, size_t n)
{
	cleanup_free struct ratio *r = calloc(n + 1, sizeof(*r));
	double whole = 0, sum = 0;
	size_t count = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (f[i].result.base > 0 && f[i].result.head > 0) {
			r[count++] = (struct ratio){ f[i].result.head / f[i].result.base,
						     f[i].result.base };
			whole += f[i].result.base;
		}
	c->factor = 1;
	if (!count)
		return 0;
	qsort(r, count, sizeof(*r), compare_ratios);
	for (size_t i = 0; i < count && sum < whole / 2; i++) {
		sum += r[i].weight;
		c->factor = r[i].ratio;
	}
	return 0;
}

/* Returns what a share changed by beside the factor. */
static double own_change(const struct cause *c, const struct gate_finding *f)
{
	return f->result.head - c->factor * f->result.base;
}

static bool follows(const struct cause *c, const struct gate_finding *f)
{
	const unsigned int nbase = c->v->report->nbase, nhead = c->v->report->nhead;
	double noise = sqrt(stats_variance(f->value, nbase) / nbase +
			    stats_variance(f->value + nbase, nhead) / nhead);

	return f->result.base > 0 &&
	       fabs(own_change(c, f)) <=
		       NOISES * noise + INEXACT * fabs(c->factor - 1) * f->result.base;
}

static void cause_name(struct cause *c, const struct gate_finding *f, size_t n)
{
	const double way = c->factor < 1 ? 1 : -1;
	double last = INFINITY;
	size_t len = 0;

	for (unsigned int k = 0; k < CAUSES; k++) {
		const struct gate_finding *best = NULL;

		for (size_t i = 0; i < n; i++)
			if (!follows(c, &f[i]) && way * own_change(c, &f[i]) > 0 &&
			    way * own_change(c, &f[i]) < last &&
			    (!best || way * own_change(c, &f[i]) > way * own_change(c, best)))
				best = &f[i];
		if (!best)
			break;
		last = way * own_change(c, best);
		len = strlen(c->text);
		snprintf(c->text + len, sizeof(c->text) - len, "%s%.50s", k ? ", " : "",
			 best->name);
	}
	len = strlen(c->text);
	if (len)
		snprintf(c->text + len, sizeof(c->text) - len, " %s", way > 0 ? "grew" : "shrank");
}

/* Returns whether the functions that follow the factor are most of all, by number and by weight. */
static bool most_follow(const struct cause *c, const struct gate_finding *f, size_t n)
{
	double all = 0, sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		all += f[i].result.base;
		if (!follows(c, &f[i]))
			continue;
		sum += f[i].result.base;
		count++;
	}
	return 2 * count > n && 2 * sum > all;
}

static int explain(const struct cause *c, struct gate_run *run, struct gate_finding *f)
{
	const double threshold = stats_in_values(&f->stats, f->result.base, f->stats.min_effect);
	char text[256];

	/* A change of its own that reaches the threshold is never explained, so that a real one is not hidden. */
	if (!follows(c, f) || fabs(own_change(c, f)) >= threshold)
		return 0;
	snprintf(text, sizeof(text), "%s%sa %s part because %s", f->note ? f->note : "",
		 f->note ? ", " : "", c->factor < 1 ? "smaller" : "larger", c->text);
	f->note = gate_run_keep(run, text);
	if (!f->note)
		return -ENOMEM;
	f->explained = true;
	f->result.flags &= ~(unsigned int)(STATS_IMPROVED | STATS_CHANGED);
	if (f->result.verdict != STATS_FAIL)
		return 0;
	f->result.p_fail = f->result.q = 1;
	f->result.verdict = STATS_PASS;
	f->result.reason = STATS_EXCLUDED;
	return 0;
}

int gate_cause_explain(const struct gate_eval *v, struct gate_finding *f, size_t n)
{
	struct cause c = { .v = v };
	int ret = cause_factor(&c, f, n);

	if (ret || fabs(c.factor - 1) < LEAST_FACTOR || v->report->nbase < 2 ||
	    v->report->nhead < 2 || !most_follow(&c, f, n))
		return ret;
	cause_name(&c, f, n);
	for (size_t i = 0; i < n && !ret && c.text[0]; i++)
		ret = explain(&c, v->gate->run[GATE_HEAD][0], &f[i]);
	return ret;
}
