/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/verdict.h"

#include "profile/compare/stats/modes.h"
#include "profile/compare/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_P 0.1 /* sides that differ with no smaller p are looked at as one */

/* -- rules ------------------------------------------------------------------------------------- */

static struct gate_rule with_defaults(const struct gate_rule *r)
{
	struct gate_rule f = *r;

	f.alpha = r->alpha == 0 ? GATE_ALPHA : r->alpha;
	f.miss = r->miss == 0 ? GATE_MISS : r->miss;
	f.confidence = r->confidence == 0 ? GATE_CONFIDENCE : r->confidence;
	return f;
}

/* Comparisons are such that no NaN passes. */
int gate_rule_check(const struct gate_rule *r, struct err *e)
{
	struct gate_rule f = with_defaults(r);

	if (!(f.min_effect > 0 && f.min_effect <= 1e300))
		return err_set(e, EINVAL,
			       "minimum effect %g: more than 0, the smallest change that matters",
			       f.min_effect);
	if (f.unit == GATE_RELATIVE && f.worse != GATE_HIGHER && f.min_effect >= 1)
		return err_set(e, EINVAL, "minimum effect %g: nothing falls by 100 %% or more",
			       f.min_effect);
	if (!(f.alpha > 0 && f.alpha <= 0.5))
		return err_set(e, EINVAL, "alpha %g: more than 0, at most 0.5", f.alpha);
	if (!(f.miss > 0 && f.miss <= 0.5))
		return err_set(e, EINVAL, "miss %g: more than 0, at most 0.5", f.miss);
	if (!(f.confidence < 0 || (f.confidence >= 0.5 && f.confidence <= 0.999)))
		return err_set(e, EINVAL, "confidence %g: 0.5 to 0.999", f.confidence);
	if (f.location == GATE_QUANTILE && !(f.quantile >= 0 && f.quantile <= 1))
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
	struct gate_design *d;
	struct gate_rule r;
	const double *base, *head;
	double v[2 * GATE_MAX_RUNS]; /* base, then head, moved */
};

/* A change of `effect` upwards, taken from head. */
static double move_back(const struct gate_rule *r, double head, double effect)
{
	switch (r->unit) {
	case GATE_RELATIVE:
		return head / (1 + effect);
	case GATE_POINTS:
		return head - effect / 100;
	default:
		return head - effect;
	}
}

static struct gate_p test_moved(struct comparison *c, double effect)
{
	struct gate_p p;

	memcpy(c->v, c->base, c->d->nbase * sizeof(*c->v));
	for (unsigned int i = 0; i < c->d->nhead; i++)
		c->v[c->d->nbase + i] = move_back(&c->r, c->head[i], effect);
	gate_permute(c->d, c->v, c->r.location, c->r.quantile, &p);
	return p;
}

static double location(const struct gate_rule *r, const double *sorted, unsigned int n)
{
	if (r->location == GATE_QUANTILE)
		return gate_quantile_sorted(sorted, n, r->quantile);
	return gate_mean(sorted, n);
}

static double effect_of(const struct gate_rule *r, double base, double head)
{
	switch (r->unit) {
	case GATE_RELATIVE:
		return head / base - 1;
	case GATE_POINTS:
		return (head - base) * 100;
	default:
		return head - base;
	}
}

/* How much worse: the effect as it is, turned round, or without its sign. */
static double harm(const struct gate_rule *r, double effect)
{
	return r->worse == GATE_HIGHER ? effect : r->worse == GATE_LOWER ? -effect : fabs(effect);
}

/* x and y are sorted. Also the median of all differences. */
static int shift_sizes(const double *x, unsigned int na, const double *y, unsigned int nb,
		       struct gate_result *out)
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
	out->hodges_lehmann = gate_select(diff, n, n / 2);
	/* What is left of n / 2 is not larger: the largest of it is the other middle value. */
	if (n % 2 == 0) {
		double other = diff[0];

		for (size_t i = 1; i < n / 2; i++)
			other = fmax(other, diff[i]);
		out->hodges_lehmann = (out->hodges_lehmann + other) / 2;
	}
	return 0;
}

static int verdict_describe(struct comparison *c, struct gate_result *out, double *median_shift)
{
	const struct gate_design *d = c->d;
	double x[GATE_MAX_RUNS], y[GATE_MAX_RUNS];

	memcpy(x, c->base, d->nbase * sizeof(*x));
	memcpy(y, c->head, d->nhead * sizeof(*y));
	qsort(x, d->nbase, sizeof(*x), gate_compare_doubles);
	qsort(y, d->nhead, sizeof(*y), gate_compare_doubles);
	out->base = location(&c->r, x, d->nbase);
	out->head = location(&c->r, y, d->nhead);
	out->diff = out->head - out->base;
	out->relative = out->base > 0 ? out->diff / out->base : NAN;
	*median_shift =
		gate_quantile_sorted(y, d->nhead, 0.5) - gate_quantile_sorted(x, d->nbase, 0.5);
	if (shift_sizes(x, d->nbase, y, d->nhead, out) < 0)
		return -ENOMEM;
	out->flags |= gate_order_flags(d, c->base, c->head);
	if (d->confounded)
		out->flags |= GATE_CONFOUNDED;
	return 0;
}

/* Each side; and both, as twice the runs show more, unless they differ, which looks like modes. */
static int look_for_modes(struct comparison *c, struct gate_result *out)
{
	struct gate_design *d = c->d;
	bool base, head, both = false;
	int ret = gate_modes_seen(c->base, d->nbase, &d->dip_limit[0], &base);

	ret = ret ? ret : gate_modes_seen(c->head, d->nhead, &d->dip_limit[1], &head);
	if (!ret && out->p_two > SAME_P) {
		memcpy(c->v, c->base, d->nbase * sizeof(*c->v));
		memcpy(c->v + d->nbase, c->head, d->nhead * sizeof(*c->v));
		ret = gate_modes_seen(c->v, d->nbase + d->nhead, &d->dip_limit[2], &both);
	}
	if (!ret && (base || head || both))
		out->flags |= GATE_MULTIMODAL;
	return ret;
}

static bool has_base(const struct comparison *c, const struct gate_result *out)
{
	if (c->r.unit != GATE_RELATIVE)
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

static void interval(const struct comparison *c, struct gate_result *out)
{
	const struct gate_sides sides = {
		.design = c->d,
		.base = c->base,
		.head = c->head,
		.relative = c->r.unit == GATE_RELATIVE,
		.confidence = c->r.confidence,
	};
	double scale = c->r.unit == GATE_POINTS ? 100 : 1;

	out->lo = out->hi = NAN;
	if (c->r.confidence < 0)
		return;
	if (c->r.location == GATE_QUANTILE)
		gate_interval_quantiles(&sides, c->r.quantile, &out->lo, &out->hi);
	else
		gate_interval_means(&sides, GATE_I_SYMMETRIC, &out->lo, &out->hi);
	out->lo *= scale;
	out->hi *= scale;
}

/* -- the verdict ----------------------------------------------------------------------------- */

/* p of theta <= D (strict), and of theta >= D, from head moved back by D in the bad direction. */
static void test_margin(struct comparison *c, double *p_more, double *p_less)
{
	double up = c->r.min_effect, down = -c->r.min_effect;
	struct gate_p p;

	*p_more = *p_less = 1;
	if (c->r.worse != GATE_LOWER) {
		p = test_moved(c, up);
		*p_more = p.up;
		*p_less = p.down;
	}
	if (c->r.worse == GATE_HIGHER)
		return;
	p = test_moved(c, down);
	if (c->r.worse == GATE_LOWER) {
		*p_more = p.down;
		*p_less = p.up;
	} else {
		/* Either side may be beyond; both must be excluded. */
		*p_more = fmin(1, 2 * fmin(*p_more, p.down));
		*p_less = fmax(*p_less, p.up);
	}
}

static double least_p(const struct gate_design *d, const struct gate_rule *r)
{
	bool mirrored = d->deals.exact && d->deals.p_least > 1.5 / (double)d->deals.ndeals;

	if (r->worse == GATE_EITHER && mirrored)
		return fmin(1, 2 / (double)d->deals.ndeals);
	return 1 / (double)d->deals.ndeals;
}

static void verdict_settle(const struct comparison *c, struct gate_result *o, double median_shift)
{
	const struct gate_rule *r = &c->r;
	bool reached = harm(r, o->effect) >= r->min_effect;
	bool fails = o->p_fail <= r->alpha && reached, passes = o->p_pass <= r->miss;

	if (o->p_two <= r->alpha) {
		if (fabs(o->effect) < r->min_effect)
			o->flags |= GATE_CHANGED;
		if (r->worse != GATE_EITHER && harm(r, o->effect) <= -r->min_effect)
			o->flags |= GATE_IMPROVED;
		if (o->diff * median_shift < 0)
			o->flags |= GATE_OUTLIERS;
	}
	o->verdict = fails ? GATE_FAIL : passes ? GATE_PASS : GATE_INCONCLUSIVE;
	o->reason = fails ? GATE_WORSE : passes ? GATE_EXCLUDED : GATE_NOISE;
	if (o->verdict == GATE_INCONCLUSIVE && o->p_least > r->alpha)
		o->reason = GATE_TOO_FEW;
	else if (o->verdict == GATE_INCONCLUSIVE && o->p_fail <= r->alpha)
		o->reason = GATE_SMALL;
	if ((o->flags & GATE_CONFOUNDED) && (o->flags & (GATE_DRIFT | GATE_AUTOCORRELATED))) {
		o->verdict = GATE_INCONCLUSIVE;
		o->reason = GATE_DRIFTING;
	}
}

static void undecided(struct gate_result *o, enum gate_reason reason)
{
	o->verdict = GATE_INCONCLUSIVE;
	o->reason = reason;
	o->p_fail = o->p_pass = o->p_two = o->p_least = o->q = 1;
	o->lo = o->hi = NAN;
}

static void verdict_test(struct comparison *c, struct gate_result *o)
{
	struct gate_p p = test_moved(c, 0);
	double p_more;

	o->p_two = p.two;
	o->p_fail = c->r.worse == GATE_HIGHER ? p.up : c->r.worse == GATE_LOWER ? p.down : p.two;
	test_margin(c, &p_more, &o->p_pass);
	if (c->r.strict)
		o->p_fail = p_more;
	o->p_least = least_p(c->d, &c->r);
	o->q = o->p_fail;
}

/*
 * When one side always went first, a drift within pairs is a change to the test. What was decided
 * must hold without the straight part of the drift too.
 */
static void doubt_drift(const struct comparison *c, struct gate_result *o)
{
	double base[GATE_MAX_RUNS], head[GATE_MAX_RUNS];
	struct comparison straight = { .d = c->d, .r = c->r, .base = base, .head = head };
	struct gate_result other;
	const struct gate_rule *r = &c->r;

	memcpy(base, c->base, c->d->nbase * sizeof(*base));
	memcpy(head, c->head, c->d->nhead * sizeof(*head));
	gate_detrend(c->d, base, head);
	verdict_test(&straight, &other);
	if (o->verdict == GATE_FAIL ? other.p_fail <= r->alpha : other.p_pass <= r->miss)
		return;
	o->verdict = GATE_INCONCLUSIVE;
	o->reason = GATE_DRIFTING;
}

int gate_compare(struct gate_design *d, const struct gate_rule *r, const double *base,
		 const double *head, struct gate_result *out, struct err *e)
{
	struct comparison c = { .d = d, .r = with_defaults(r), .base = base, .head = head };
	struct gate_result o = { .p_two = 1 };
	double median_shift;
	int ret = gate_rule_check(r, e);

	ret = ret ? ret : check_values("base", base, d->nbase, e);
	ret = ret ? ret : check_values("head", head, d->nhead, e);
	if (ret)
		return ret;
	if (verdict_describe(&c, &o, &median_shift) < 0)
		return err_set(e, ENOMEM, "out of memory for comparing %u runs",
			       d->nbase + d->nhead);
	o.effect = has_base(&c, &o) ? effect_of(&c.r, o.base, o.head) : NAN;
	if (isnan(o.effect)) {
		undecided(&o, GATE_NO_BASE);
	} else if (!d->deals.deal) {
		undecided(&o, GATE_TOO_FEW);
	} else {
		verdict_test(&c, &o);
		interval(&c, &o);
		verdict_settle(&c, &o, median_shift);
		if (d->one_order && (o.flags & GATE_DRIFT) && o.verdict != GATE_INCONCLUSIVE)
			doubt_drift(&c, &o);
	}
	if (look_for_modes(&c, &o) < 0)
		return err_set(e, ENOMEM, "out of memory for the modes of %u runs",
			       d->nbase + d->nhead);
	*out = o;
	return 0;
}

/* -- families --------------------------------------------------------------------------------- */

struct ranked {
	double p;
	size_t i;
};

static int compare_ranked(const void *a, const void *b)
{
	return gate_compare_doubles(&((const struct ranked *)a)->p, &((const struct ranked *)b)->p);
}

/* Holm 1979. p and q may be one. */
static int holm(const double *p, size_t n, double *q)
{
	cleanup_free struct ranked *r = calloc(n, sizeof(*r));
	double most = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r[i] = (struct ranked){ p[i], i };
	qsort(r, n, sizeof(*r), compare_ranked);
	for (size_t k = 0; k < n; k++) {
		most = fmax(most, fmin(1, r[k].p * (double)(n - k)));
		q[r[k].i] = most;
	}
	return 0;
}

int gate_adjust(struct gate_result *const *results, size_t n, double alpha, enum gate_family family)
{
	cleanup_free double *p = calloc(n ? n : 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		p[i] = results[i]->p_fail;
	if (n && (family == GATE_HOLM ? holm(p, n, p) : runstats_fdr(p, n, p)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		results[i]->q = p[i];
		if (results[i]->verdict == GATE_FAIL && p[i] > alpha) {
			results[i]->verdict = GATE_INCONCLUSIVE;
			results[i]->reason = GATE_TOO_MANY;
		}
	}
	return 0;
}

/* -- words ------------------------------------------------------------------------------------ */

const char *gate_reason_text(enum gate_reason r)
{
	static const char *const text[GATE_REASONS] = {
		[GATE_WORSE] = "worse by the minimum effect or more, and significant",
		[GATE_EXCLUDED] = "a change of the minimum effect is excluded",
		[GATE_NOISE] = "runs differ too much, or are too few, to tell",
		[GATE_SMALL] = "worse, but whether by the minimum effect is open",
		[GATE_TOO_FEW] = "too few runs for any difference to be significant",
		[GATE_NO_BASE] = "base has no positive value that a change can be relative to",
		[GATE_DRIFTING] =
			"a drift of the host could explain it, as the runs were in this order",
		[GATE_TOO_MANY] =
			"significant alone, but not after correction for the number of comparisons",
	};

	return r < GATE_REASONS ? text[r] : "unknown";
}
