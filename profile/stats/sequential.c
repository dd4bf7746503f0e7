/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/stats/sequential.h"

#include "profile/stats/power.h"
#include "profile/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES_MIN 99u
#define TIE 1e-12

/* -- walks with signs by chance ---------------------------------------------------------------- */

/* Walk 0 is the true one. Sums of pair differences; what is looked for is a large sum. */
struct gate_seq_walks {
	double budget;
	enum gate_spending spending;
	uint64_t state;
	size_t n, left; /* walks; those that have left */
	double scale;	/* sum of absolute differences, for ties */
	double *sum, *scratch;
	bool *gone;
};

static void walks_destroy(struct gate_seq_walks *w)
{
	if (!w)
		return;
	free(w->sum);
	free(w->scratch);
	free(w->gone);
	free(w);
}

static struct gate_seq_walks *walks_create(size_t n, double budget, enum gate_spending spending,
					   uint64_t seed)
{
	struct gate_seq_walks *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct gate_seq_walks){
		.budget = budget, .spending = spending, .state = seed, .n = n
	};
	w->sum = calloc(n, sizeof(*w->sum));
	w->scratch = calloc(n, sizeof(*w->scratch));
	w->gone = calloc(n, sizeof(*w->gone));
	if (!w->sum || !w->scratch || !w->gone) {
		walks_destroy(w);
		return NULL;
	}
	return w;
}

static void walks_step(struct gate_seq_walks *w, double diff)
{
	uint64_t bits = 0;

	w->scale += fabs(diff);
	w->sum[0] += diff;
	for (size_t k = 1; k < w->n; k++, bits >>= 1) {
		if (k % 64 == 1)
			bits = runstats_random(&w->state);
		w->sum[k] += bits & 1 ? diff : -diff;
	}
}

static double spent(const struct gate_seq_walks *w, double t)
{
	if (t >= 1)
		return w->budget;
	if (w->spending == GATE_POCOCK)
		return w->budget * log1p((M_E - 1) * t);
	return 2 * gate_normal_cdf(gate_normal_quantile(w->budget / 2) / sqrt(t));
}

/*
 * The walks with the largest sums leave, as many as may; of equal ones all or none. Which they
 * are depends on the differences without their signs, so the true walk is among them by chance
 * only. Returns what was spent.
 */
static double walks_look(struct gate_seq_walks *w, double t)
{
	double may = spent(w, t), limit;
	size_t allowed = (size_t)(may * (double)w->n * (1 + 1e-12)), n = 0;

	for (size_t k = 0; k < w->n; k++) {
		if (!w->gone[k])
			w->scratch[n++] = w->sum[k];
	}
	if (allowed <= w->left || !n)
		return may;
	allowed -= w->left;
	/* The largest of those that must stay. */
	limit = allowed < n ? gate_select(w->scratch, n, n - 1 - allowed) : -HUGE_VAL;
	limit += TIE * w->scale;
	for (size_t k = 0; k < w->n; k++) {
		if (!w->gone[k] && w->sum[k] > limit) {
			w->gone[k] = true;
			w->left++;
		}
	}
	return may;
}

/* -- set-up ------------------------------------------------------------------------------------ */

void gate_seq_looks(struct gate_seq_options *opt, unsigned int max_pairs)
{
	opt->max_pairs = max_pairs;
	opt->nlooks = 0;
	for (unsigned int k = 2; k <= 5; k++) {
		unsigned int at = (max_pairs * k + 4) / 5;

		if (at >= 2 && (!opt->nlooks || at > opt->look[opt->nlooks - 1]))
			opt->look[opt->nlooks++] = at;
	}
}

static int check_options(struct gate_seq_options *o, struct err *e)
{
	int ret = gate_rule_check(&o->rule, e);

	if (ret)
		return ret;
	if (o->rule.location != GATE_MEAN)
		return err_set(e, EINVAL, "the sequential test compares means only");
	if (!o->nlooks) {
		if (o->max_pairs < 2 || o->max_pairs > GATE_MAX_RUNS)
			return err_set(e, EINVAL, "%u pairs at most: 2 to %u", o->max_pairs,
				       GATE_MAX_RUNS);
		gate_seq_looks(o, o->max_pairs);
	}
	if (o->nlooks > GATE_SEQ_LOOKS)
		return err_set(e, EINVAL, "%u looks: at most %u", o->nlooks, GATE_SEQ_LOOKS);
	for (unsigned int k = 0; k < o->nlooks; k++) {
		if (o->look[k] < 2 || o->look[k] > GATE_MAX_RUNS ||
		    (k && o->look[k] <= o->look[k - 1]))
			return err_set(e, EINVAL, "look %u at %u pairs: increasing from 2 to %u",
				       k + 1, o->look[k], GATE_MAX_RUNS);
	}
	o->max_pairs = o->look[o->nlooks - 1];
	o->resamples = o->resamples ? o->resamples : RUNSTATS_RESAMPLES;
	o->seed = o->seed ? o->seed : RUNSTATS_SEED;
	o->futile = o->futile == 0 ? GATE_SEQ_FUTILE : o->futile;
	if (o->resamples < RESAMPLES_MIN || o->resamples > RUNSTATS_RESAMPLES_MAX)
		return err_set(e, EINVAL, "%u resamples: %u to %u", o->resamples, RESAMPLES_MIN,
			       RUNSTATS_RESAMPLES_MAX);
	if (!(o->futile < 0.5))
		return err_set(e, EINVAL, "futile below %g: less than 0.5", o->futile);
	o->rule.alpha = o->rule.alpha == 0 ? GATE_ALPHA : o->rule.alpha;
	o->rule.miss = o->rule.miss == 0 ? GATE_MISS : o->rule.miss;
	return 0;
}

/* [0] is of changes upwards, [1] downwards. */
static bool asks(const struct gate_seq *s, unsigned int way)
{
	return s->opt.rule.worse == GATE_EITHER || (s->opt.rule.worse == GATE_LOWER) == (way == 1);
}

int gate_seq_init(struct gate_seq *s, const struct gate_seq_options *opt, struct err *e)
{
	int ret;

	*s = (struct gate_seq){ .opt = *opt };
	ret = check_options(&s->opt, e);
	if (ret)
		return ret;
	gate_order(s->opt.max_pairs, s->opt.seed, s->head_first);
	for (unsigned int way = 0; way < 2; way++) {
		double alpha = s->opt.rule.alpha / (s->opt.rule.worse == GATE_EITHER ? 2 : 1);
		size_t n = s->opt.resamples + 1u;

		if (!asks(s, way))
			continue;
		s->fail[way] = walks_create(n, alpha, s->opt.spend_fail, s->opt.seed);
		s->pass[way] = walks_create(n, s->opt.rule.miss, s->opt.spend_pass, s->opt.seed);
		if (!s->fail[way] || !s->pass[way]) {
			gate_seq_deinit(s);
			return err_set(e, ENOMEM,
				       "out of memory for a sequential test of %zu walks", n);
		}
	}
	return 0;
}

void gate_seq_deinit(struct gate_seq *s)
{
	for (unsigned int way = 0; way < 2; way++) {
		walks_destroy(s->fail[way]);
		walks_destroy(s->pass[way]);
		s->fail[way] = s->pass[way] = NULL;
	}
}

/* -- the test ---------------------------------------------------------------------------------- */

/* head less what base would be if changed by `effect` upwards. */
static double difference(const struct gate_rule *r, double base, double head, double effect)
{
	if (r->unit == GATE_RELATIVE)
		return head - base * (1 + effect);
	return head - base - (r->unit == GATE_POINTS ? effect / 100 : effect);
}

/* How much worse the pairs are so far, in values, and what D is then. */
static void harm_so_far(const struct gate_seq *s, double *harm, double *least, double *sd)
{
	double diff[GATE_MAX_RUNS], mean;

	for (unsigned int i = 0; i < s->pairs; i++)
		diff[i] = s->head[i] - s->base[i];
	mean = gate_mean(diff, s->pairs);
	*sd = sqrt(gate_variance(diff, s->pairs));
	*least = s->opt.rule.min_effect;
	if (s->opt.rule.unit == GATE_RELATIVE)
		*least *= gate_mean(s->base, s->pairs);
	else if (s->opt.rule.unit == GATE_POINTS)
		*least /= 100;
	*harm = s->opt.rule.worse == GATE_HIGHER  ? mean
		: s->opt.rule.worse == GATE_LOWER ? -mean
						  : fabs(mean);
}

/* Will more pairs like those so far decide? By the predictive normal of the last mean. */
static bool is_futile(const struct gate_seq *s)
{
	double harm, least, sd, n = s->pairs, all = s->opt.max_pairs, ahead, last, fail, pass;

	if (s->opt.futile < 0 || n < all / 2)
		return false;
	harm_so_far(s, &harm, &least, &sd);
	if (!(sd > 0))
		return false;
	ahead = sd * sqrt(1 / n - 1 / all);
	last = sd / sqrt(all);
	fail = -gate_normal_quantile(s->opt.rule.alpha) * last;
	fail = s->opt.rule.strict ? fail + least : fmax(fail, least);
	pass = least + gate_normal_quantile(s->opt.rule.miss) * last;
	return gate_normal_cdf((harm - fail) / ahead) + gate_normal_cdf((pass - harm) / ahead) <
	       s->opt.futile;
}

static enum gate_seq_decision look(struct gate_seq *s)
{
	double t = (double)s->pairs / s->opt.max_pairs, harm, least, sd;
	bool worse = false, excluded = true;

	for (unsigned int way = 0; way < 2; way++) {
		if (!s->fail[way])
			continue;
		s->spent_fail =
			walks_look(s->fail[way], t) * (s->opt.rule.worse == GATE_EITHER ? 2 : 1);
		s->spent_pass = walks_look(s->pass[way], t);
		worse = worse || s->fail[way]->gone[0];
		excluded = excluded && s->pass[way]->gone[0];
	}
	harm_so_far(s, &harm, &least, &sd);
	if (worse && harm >= least)
		return GATE_SEQ_FAIL;
	if (excluded)
		return GATE_SEQ_PASS;
	if (s->pairs == s->opt.max_pairs)
		return GATE_SEQ_INCONCLUSIVE;
	s->futile = is_futile(s);
	return s->futile ? GATE_SEQ_INCONCLUSIVE : GATE_SEQ_CONTINUE;
}

bool gate_seq_at_look(const struct gate_seq *s)
{
	return s->looks < s->opt.nlooks && s->opt.look[s->looks] == s->pairs + 1;
}

static void step(struct gate_seq *s, double base, double head)
{
	const struct gate_rule *r = &s->opt.rule;

	for (unsigned int way = 0; way < 2; way++) {
		double sign = way ? -1 : 1, d = sign * r->min_effect;

		if (!s->fail[way])
			continue;
		walks_step(s->fail[way], sign * difference(r, base, head, r->strict ? d : 0));
		walks_step(s->pass[way], -sign * difference(r, base, head, d));
	}
}

int gate_seq_add(struct gate_seq *s, double base, double head, enum gate_seq_decision *decision,
		 struct err *e)
{
	if (s->decision != GATE_SEQ_CONTINUE)
		return err_set(e, EINVAL, "the sequential test has ended (%s): no more pairs",
			       gate_seq_decision_text(s->decision));
	if (!(fabs(base) <= 1e150 && fabs(head) <= 1e150))
		return err_set(e, EINVAL, "pair %u has the values %g and %g: not usable numbers",
			       s->pairs + 1, base, head);
	if (s->opt.rule.unit == GATE_RELATIVE && (base < 0 || head < 0))
		return err_set(
			e, EINVAL,
			"pair %u has the values %g and %g: a relative rule needs positive ones",
			s->pairs + 1, base, head);
	step(s, base, head);
	s->base[s->pairs] = base;
	s->head[s->pairs] = head;
	if (gate_seq_at_look(s)) {
		s->pairs++;
		s->decision = look(s);
		s->looks++;
	} else {
		s->pairs++;
	}
	*decision = s->decision;
	return 0;
}

/* -- the report ------------------------------------------------------------------------------- */

int gate_seq_result(const struct gate_seq *s, struct gate_result *out, struct err *e)
{
	uint64_t base_at[GATE_MAX_RUNS], head_at[GATE_MAX_RUNS];
	struct gate_layout l = { .nbase = s->pairs,
				 .nhead = s->pairs,
				 .alpha = s->opt.rule.alpha,
				 .base_at = base_at,
				 .head_at = head_at };
	struct gate_result r;
	struct gate_design d;
	int ret;

	if (s->pairs < 2)
		return err_set(e, EINVAL, "%u pairs: two are the least to say anything of",
			       s->pairs);
	for (unsigned int i = 0; i < s->pairs; i++) {
		base_at[i] = 2 * i + s->head_first[i];
		head_at[i] = 2 * i + !s->head_first[i];
	}
	ret = gate_design_init(&d, &l, e);
	if (ret)
		return ret;
	ret = gate_compare(&d, &s->opt.rule, s->base, s->head, &r, e);
	gate_design_deinit(&d);
	if (ret)
		return ret;
	if (s->decision == GATE_SEQ_FAIL || s->decision == GATE_SEQ_PASS) {
		r.verdict = s->decision == GATE_SEQ_FAIL ? GATE_FAIL : GATE_PASS;
		r.reason = s->decision == GATE_SEQ_FAIL ? GATE_WORSE : GATE_EXCLUDED;
	} else if (r.verdict != GATE_INCONCLUSIVE) {
		/* Alone, these pairs would decide; after so many looks they do not. */
		r.verdict = GATE_INCONCLUSIVE;
		r.reason = GATE_NOISE;
	}
	*out = r;
	return 0;
}

const char *gate_seq_decision_text(enum gate_seq_decision d)
{
	static const char *const text[] = {
		[GATE_SEQ_CONTINUE] = "continue",
		[GATE_SEQ_FAIL] = "fail",
		[GATE_SEQ_PASS] = "pass",
		[GATE_SEQ_INCONCLUSIVE] = "inconclusive",
	};

	return text[d];
}
