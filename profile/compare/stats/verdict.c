/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/verdict.h"

#include "profile/compare/stats/interval.h"
#include "profile/compare/stats/order.h"
#include "profile/compare/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- rules ------------------------------------------------------------------------------------- */

static struct stats_rule with_defaults(const struct stats_rule *r)
{
	struct stats_rule f = *r;

	f.alpha = r->alpha == 0 ? STATS_ALPHA : r->alpha;
	f.miss = r->miss == 0 ? STATS_MISS : r->miss;
	f.confidence = r->confidence == 0 ? STATS_CONFIDENCE : r->confidence;
	return f;
}

/* -EINVAL for what is out of range, with the reason. Comparisons are such that no NaN passes. */
static int rule_check(const struct stats_rule *r, struct err *e)
{
	struct stats_rule f = with_defaults(r);

	if (!(f.min_effect > 0 && f.min_effect <= 1e300))
		return err_set(e, EINVAL,
			       "minimum effect %g: more than 0, the smallest change that matters",
			       f.min_effect);
	if (f.unit == STATS_RELATIVE && f.worse != STATS_HIGHER && f.min_effect >= 1)
		return err_set(e, EINVAL, "minimum effect %g: nothing falls by 100 %% or more",
			       f.min_effect);
	if (!(f.alpha > 0 && f.alpha <= 0.5))
		return err_set(e, EINVAL, "alpha %g: more than 0, at most 0.5", f.alpha);
	if (!(f.miss > 0 && f.miss <= 0.5))
		return err_set(e, EINVAL, "miss %g: more than 0, at most 0.5", f.miss);
	if (!(f.confidence < 0 || (f.confidence >= 0.5 && f.confidence <= 0.999)))
		return err_set(e, EINVAL, "confidence %g: 0.5 to 0.999", f.confidence);
	if (f.location == STATS_QUANTILE && !(f.quantile >= 0 && f.quantile <= 1))
		return err_set(e, EINVAL, "quantile %g: 0 to 1", f.quantile);
	return 0;
}

static int check_values(const char *side, const double *v, unsigned int n, struct err *e)
{
	for (unsigned int i = 0; i < n; i++) {
		/* Sums of squares of larger ones would be infinite. */
		if (!(fabs(v[i]) <= 1e150))
			return err_set(e, EINVAL, "%s run %u has the value %g: not a usable number",
				       side, i + 1, v[i]);
	}
	return 0;
}

/* -- the parts of a comparison ----------------------------------------------------------------- */

struct comparison {
	struct stats_design *d;
	struct stats_rule r;
	const double *base, *head;
	double v[2 * STATS_MAX_RUNS]; /* base, then head, moved */
};

/* A change of `effect` upwards, taken from head. */
static double move_back(const struct stats_rule *r, double head, double effect)
{
	switch (r->unit) {
	case STATS_RELATIVE:
		return head / (1 + effect);
	case STATS_POINTS:
		return head - effect / 100;
	default:
		return head - effect;
	}
}

static struct stats_p test_moved(struct comparison *c, double effect)
{
	struct stats_p p;

	memcpy(c->v, c->base, c->d->nbase * sizeof(*c->v));
	for (unsigned int i = 0; i < c->d->nhead; i++)
		c->v[c->d->nbase + i] = move_back(&c->r, c->head[i], effect);
	stats_permute(c->d, c->v, c->r.location, c->r.quantile, &p);
	return p;
}

static double location(const struct stats_rule *r, const double *sorted, unsigned int n)
{
	if (r->location == STATS_QUANTILE)
		return stats_quantile_sorted(sorted, n, r->quantile);
	return stats_mean(sorted, n);
}

double stats_in_values(const struct stats_rule *r, double base, double effect)
{
	switch (r->unit) {
	case STATS_RELATIVE:
		return effect * base;
	case STATS_POINTS:
		return effect / 100;
	default:
		return effect;
	}
}

double stats_effect(const struct stats_rule *r, double base, double head)
{
	switch (r->unit) {
	case STATS_RELATIVE:
		return head / base - 1;
	case STATS_POINTS:
		return (head - base) * 100;
	default:
		return head - base;
	}
}

/* How much worse: the effect as it is, turned round, or without its sign. */
static double harm(const struct stats_rule *r, double effect)
{
	return r->worse == STATS_HIGHER ? effect : r->worse == STATS_LOWER ? -effect : fabs(effect);
}

/* x and y are sorted. Also the median of all differences. */
static int shift_sizes(const double *x, unsigned int na, const double *y, unsigned int nb,
		       struct stats_result *out)
{
	size_t n = (size_t)na * nb, above = 0, below = 0;
	cleanup_free double *diff = calloc(n, sizeof(*diff));
	double *d = diff;

	if (!diff)
		return -ENOMEM;
	for (unsigned int i = 0; i < na; i++) {
		for (unsigned int j = 0; j < nb; j++) {
			above += y[j] > x[i];
			below += y[j] < x[i];
			*d++ = y[j] - x[i];
		}
	}
	out->cliff = ((double)above - (double)below) / (double)n;
	out->hodges_lehmann = stats_select(diff, n, n / 2);
	/*
	 * The remaining n / 2 values are not larger: the largest of them is the other middle value.
	 */
	if (n % 2 == 0) {
		double other = diff[0];

		for (size_t i = 1; i < n / 2; i++)
			other = fmax(other, diff[i]);
		out->hodges_lehmann = (out->hodges_lehmann + other) / 2;
	}
	return 0;
}

static int verdict_describe(struct comparison *c, struct stats_result *out, double *median_shift)
{
	const struct stats_design *d = c->d;
	double x[STATS_MAX_RUNS], y[STATS_MAX_RUNS];

	memcpy(x, c->base, d->nbase * sizeof(*x));
	memcpy(y, c->head, d->nhead * sizeof(*y));
	qsort(x, d->nbase, sizeof(*x), stats_compare_doubles);
	qsort(y, d->nhead, sizeof(*y), stats_compare_doubles);
	out->base = location(&c->r, x, d->nbase);
	out->head = location(&c->r, y, d->nhead);
	out->diff = out->head - out->base;
	out->relative = out->base > 0 ? out->diff / out->base : NAN;
	*median_shift =
		stats_quantile_sorted(y, d->nhead, 0.5) - stats_quantile_sorted(x, d->nbase, 0.5);
	if (shift_sizes(x, d->nbase, y, d->nhead, out) < 0)
		return -ENOMEM;
	if (d->confounded)
		out->flags |= STATS_CONFOUNDED;
	return 0;
}

static bool has_base(const struct comparison *c, const struct stats_result *out)
{
	if (c->r.unit != STATS_RELATIVE)
		return true;
	for (unsigned int i = 0; i < c->d->nbase; i++) {
		if (c->base[i] < 0)
			return false;
	}
	for (unsigned int i = 0; i < c->d->nhead; i++) {
		if (c->head[i] < 0)
			return false;
	}
	return out->base > 0 && isfinite(out->head / out->base);
}

static void interval(const struct comparison *c, struct stats_result *out)
{
	const struct stats_sides sides = {
		.design = c->d,
		.base = c->base,
		.head = c->head,
		.relative = c->r.unit == STATS_RELATIVE,
		.confidence = c->r.confidence,
	};
	double scale = c->r.unit == STATS_POINTS ? 100 : 1;

	out->lo = out->hi = NAN;
	if (c->r.confidence < 0)
		return;
	if (c->r.location == STATS_QUANTILE)
		stats_interval_quantiles(&sides, c->r.quantile, &out->lo, &out->hi);
	else
		stats_interval_means(&sides, &out->lo, &out->hi);
	out->lo *= scale;
	out->hi *= scale;
}

/* -- the verdict ----------------------------------------------------------------------------- */

/* p of theta <= D (strict), and of theta >= D, from head moved back by D in the bad direction. */
static void test_margin(struct comparison *c, double *p_more, double *p_less)
{
	double up = c->r.min_effect, down = -c->r.min_effect;
	struct stats_p p;

	*p_more = *p_less = 1;
	if (c->r.worse != STATS_LOWER) {
		p = test_moved(c, up);
		*p_more = p.up;
		*p_less = p.down;
	}
	if (c->r.worse == STATS_HIGHER)
		return;
	p = test_moved(c, down);
	if (c->r.worse == STATS_LOWER) {
		*p_more = p.down;
		*p_less = p.up;
	} else {
		/* Either side may be beyond; both must be excluded. */
		*p_more = fmin(1, 2 * fmin(*p_more, p.down));
		*p_less = fmax(*p_less, p.up);
	}
}

static double least_p(const struct stats_design *d, const struct stats_rule *r)
{
	bool mirrored = d->deals.exact && d->deals.p_least > 1.5 / (double)d->deals.ndeals;

	if (r->worse == STATS_EITHER && mirrored)
		return fmin(1, 2 / (double)d->deals.ndeals);
	return 1 / (double)d->deals.ndeals;
}

static void verdict_settle(const struct comparison *c, struct stats_result *o, double median_shift)
{
	const struct stats_rule *r = &c->r;
	bool reached = harm(r, o->effect) >= r->min_effect;
	bool fails = o->p_fail <= r->alpha && reached, passes = o->p_pass <= r->miss;

	if (o->p_two <= r->alpha) {
		if (fabs(o->effect) < r->min_effect)
			o->flags |= STATS_CHANGED;
		if (r->worse != STATS_EITHER && harm(r, o->effect) <= -r->min_effect)
			o->flags |= STATS_IMPROVED;
		if (o->diff * median_shift < 0)
			o->flags |= STATS_OUTLIERS;
	}
	o->verdict = fails ? STATS_FAIL : passes ? STATS_PASS : STATS_INCONCLUSIVE;
	o->reason = fails ? STATS_WORSE : passes ? STATS_EXCLUDED : STATS_NOISE;
	if (o->verdict == STATS_INCONCLUSIVE && o->p_least > r->alpha)
		o->reason = STATS_TOO_FEW;
	else if (o->verdict == STATS_INCONCLUSIVE && o->p_fail <= r->alpha)
		o->reason = STATS_SMALL;
}

static void undecided(struct stats_result *o, enum stats_reason reason)
{
	o->verdict = STATS_INCONCLUSIVE;
	o->reason = reason;
	o->p_fail = o->p_pass = o->p_two = o->p_least = o->q = 1;
	o->lo = o->hi = NAN;
}

static void verdict_test(struct comparison *c, struct stats_result *o)
{
	struct stats_p p = test_moved(c, 0);
	double p_more;

	o->p_two = p.two;
	o->p_fail = c->r.worse == STATS_HIGHER ? p.up : c->r.worse == STATS_LOWER ? p.down : p.two;
	test_margin(c, &p_more, &o->p_pass);
	if (c->r.strict)
		o->p_fail = p_more;
	o->p_least = least_p(c->d, &c->r);
	o->q = o->p_fail;
}

/* Does the verdict hold without the straight part of a drift, too? */
static bool holds_without_drift(const struct comparison *c, const struct stats_result *o)
{
	double base[STATS_MAX_RUNS], head[STATS_MAX_RUNS];
	struct comparison straight = { .d = c->d, .r = c->r, .base = base, .head = head };
	struct stats_result other;
	const struct stats_rule *r = &c->r;

	memcpy(base, c->base, c->d->nbase * sizeof(*base));
	memcpy(head, c->head, c->d->nhead * sizeof(*head));
	stats_detrend(c->d, base, head);
	verdict_test(&straight, &other);
	return o->verdict == STATS_FAIL ? other.p_fail <= r->alpha : other.p_pass <= r->miss;
}

/*
 * The order of running can make a drift look like a change in two designs: when the sides did not
 * take turns, and when one side always went first, where a drift within pairs is part of every
 * difference.
 */
static void doubt_order(const struct comparison *c, struct stats_result *o)
{
	const struct stats_design *d = c->d;
	struct stats_order_seen seen;

	if (!d->confounded && (!d->one_order || o->verdict == STATS_INCONCLUSIVE))
		return;
	seen = stats_order_seen(d, c->base, c->head);
	if (d->confounded ? !seen.drift && !seen.alike : !seen.drift || holds_without_drift(c, o))
		return;
	o->verdict = STATS_INCONCLUSIVE;
	o->reason = STATS_DRIFTING;
}

int stats_compare(struct stats_design *d, const struct stats_rule *r, const double *base,
		  const double *head, struct stats_result *out, struct err *e)
{
	struct comparison c = { .d = d, .r = with_defaults(r), .base = base, .head = head };
	struct stats_result o = { .p_two = 1 };
	double median_shift;

	if (rule_check(r, e) < 0 || check_values("base", base, d->nbase, e) < 0 ||
	    check_values("head", head, d->nhead, e) < 0)
		return -EINVAL;
	if (verdict_describe(&c, &o, &median_shift) < 0)
		return err_set(e, ENOMEM, "out of memory for comparing %u runs",
			       d->nbase + d->nhead);
	o.effect = has_base(&c, &o) ? stats_effect(&c.r, o.base, o.head) : NAN;
	if (isnan(o.effect)) {
		undecided(&o, STATS_NO_BASE);
	} else if (!d->deals.deal) {
		undecided(&o, STATS_TOO_FEW);
	} else {
		verdict_test(&c, &o);
		interval(&c, &o);
		verdict_settle(&c, &o, median_shift);
		doubt_order(&c, &o);
	}
	*out = o;
	return 0;
}

void stats_compare_means(const struct stats_design *d, const double *base, const double *head,
			 struct stats_shift *out)
{
	const struct stats_sides sides = {
		.design = d, .base = base, .head = head, .confidence = STATS_CONFIDENCE
	};
	double v[2 * STATS_MAX_RUNS];
	struct stats_p p;

	*out = (struct stats_shift){ .base = stats_mean(base, d->nbase),
				     .head = stats_mean(head, d->nhead),
				     .tested = d->deals.deal != NULL,
				     .p = 1 };
	out->diff = out->head - out->base;
	if (!out->tested)
		return;
	memcpy(v, base, d->nbase * sizeof(*v));
	memcpy(v + d->nbase, head, d->nhead * sizeof(*v));
	stats_permute(d, v, STATS_MEAN, 0, &p);
	out->p = p.two;
	stats_interval_means(&sides, &out->lo, &out->hi);
}

/* -- families --------------------------------------------------------------------------------- */

struct verdict_ranked {
	double p;
	size_t i;
};

static int compare_ranked(const void *a, const void *b)
{
	return stats_compare_doubles(&((const struct verdict_ranked *)a)->p,
				     &((const struct verdict_ranked *)b)->p);
}

/* Ranks n p-values, the smallest first. NULL: out of memory. */
static struct verdict_ranked *rank_all(const double *p, size_t n)
{
	struct verdict_ranked *r = calloc(n ? n : 1, sizeof(*r));

	for (size_t i = 0; r && i < n; i++)
		r[i] = (struct verdict_ranked){ p[i], i };
	if (r && n)
		qsort(r, n, sizeof(*r), compare_ranked);
	return r;
}

/* Holm 1979. p and q may be one. */
static int holm(const double *p, size_t n, double *q)
{
	cleanup_free struct verdict_ranked *r = rank_all(p, n);
	double most = 0;

	if (!r)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		most = fmax(most, fmin(1, r[k].p * (double)(n - k)));
		q[r[k].i] = most;
	}
	return 0;
}

int stats_fdr(const double *p, size_t n, double *q)
{
	cleanup_free struct verdict_ranked *r = rank_all(p, n);
	double least = 1;

	if (!r)
		return -ENOMEM;
	for (size_t k = n; k-- > 0;) {
		least = fmin(least, r[k].p * (double)n / (double)(k + 1));
		q[r[k].i] = least;
	}
	return 0;
}

int stats_adjust(struct stats_result *const *results, size_t n, double alpha,
		 enum stats_family family)
{
	cleanup_free double *p = calloc(n ? n : 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		p[i] = results[i]->p_fail;
	if (n && (family == STATS_HOLM ? holm(p, n, p) : stats_fdr(p, n, p)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		results[i]->q = p[i];
		if (results[i]->verdict == STATS_FAIL && p[i] > alpha) {
			results[i]->verdict = STATS_INCONCLUSIVE;
			results[i]->reason = STATS_TOO_MANY;
		}
	}
	return 0;
}

/* -- words ------------------------------------------------------------------------------------ */

const char *stats_reason_text(enum stats_reason r)
{
	static const char *const text[STATS_REASON_MAX] = {
		[STATS_WORSE] = "worse by the minimum effect or more, and significant",
		[STATS_EXCLUDED] = "a change of the minimum effect is excluded",
		[STATS_NOISE] = "runs differ too much, or are too few, to tell",
		[STATS_SMALL] = "worse, but whether by the minimum effect is open",
		[STATS_TOO_FEW] = "too few runs for any difference to be significant",
		[STATS_NO_BASE] = "base has no positive value that a change can be relative to",
		[STATS_DRIFTING] =
			"a drift of the host could explain it, as the runs were in this order",
		[STATS_TOO_MANY] =
			"significant alone, but not after correction for the number of comparisons",
	};

	return r < STATS_REASON_MAX ? text[r] : "unknown";
}
