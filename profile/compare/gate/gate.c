/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/gate.h"

#include "base/cleanup.h"
#include "profile/analyse/stacks/comparable.h"
#include "profile/compare/gate/private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEALS_BEYOND 5.0	 /* the smallest p is that far below the smallest alpha */
#define DEAL_NUMBERS (32u << 20) /* in a design's table of deals, at most */

int gate_create(struct gate **out, const struct gate_rules *rules, struct err *e)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(e);
	g->rules = rules;
	*out = g;
	return 0;
}

void gate_destroy(struct gate *g)
{
	if (!g)
		return;
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s]; i++)
			gate_run_destroy(g->run[s][i]);
	free(g);
}

static const struct gate_run *first_run(const struct gate *g)
{
	return g->n[GATE_BASE]	 ? g->run[GATE_BASE][0]
	       : g->n[GATE_HEAD] ? g->run[GATE_HEAD][0]
				 : NULL;
}

/* Refuses a run whose shares and times have another meaning than those of the other runs. */
static int check_alike(const struct gate *g, const struct gate_run *r, struct err *e)
{
	const struct gate_run *first = first_run(g);

	if (first &&
	    (strcmp(first->event, r->event) != 0 || first->weight_is_ns != r->weight_is_ns))
		return err_set(e, EINVAL,
			       "%s has the event %s, but %s has %s: they cannot be compared",
			       r->path, r->event, first->path, first->event);
	return 0;
}

int gate_check_fresh(const struct gate *g, enum gate_side side, const struct gate_run *run,
		     struct err *e)
{
	static const char *const name[GATE_SIDE_MAX] = { "base", "head" };

	for (unsigned int i = 0; i < g->n[side]; i++) {
		const struct gate_run *other = g->run[side][i];

		if (other->contents != run->contents)
			continue;
		if (!strcmp(other->path, run->path))
			return err_set(e, EINVAL,
				       "%.500s is given twice for the %s: each run counts once, so "
				       "make another one",
				       run->path, name[side]);
		return err_set(
			e, EINVAL,
			"%.500s and %.500s of the %s are the same run (all samples are equal): %s",
			other->path, run->path, name[side],
			run->counted ? "exact runs repeat, so give one of each side and "
				       "--exact"
				     : "each run counts once, so make another one");
	}
	return 0;
}

int gate_add_run(struct gate *g, enum gate_side side, struct gate_run *run, struct err *e)
{
	int ret = check_alike(g, run, e);

	if (!ret && g->n[side] == STATS_MAX_RUNS)
		ret = err_set(e, EINVAL, "more than %u runs a side", STATS_MAX_RUNS);
	if (ret)
		gate_run_destroy(run);
	else
		g->run[side][g->n[side]++] = run;
	return ret;
}

int gate_add(struct gate *g, enum gate_side side, const char *path, const struct gate_run **out,
	     struct err *e)
{
	struct gate_run *run = NULL;
	int ret = gate_run_load(&run, path, g->rules, e);

	if (ret)
		return ret;
	ret = gate_check_fresh(g, side, run, e);
	if (ret) {
		gate_run_destroy(run);
		return ret;
	}
	ret = gate_add_run(g, side, run, e);
	if (!ret && out)
		*out = run;
	return ret;
}

unsigned int gate_runs(const struct gate *g, enum gate_side side)
{
	return g->n[side];
}

const struct gate_run *gate_run_at(const struct gate *g, enum gate_side side, unsigned int i)
{
	return g->run[side][i];
}

const struct gate_rules *gate_rules_of(const struct gate *g)
{
	return g->rules;
}

/* -- comparing ------------------------------------------------------------------------------ */

int gate_design_for(const struct gate_eval *v, double alpha, size_t members,
		    struct stats_design *out, struct err *e)
{
	struct stats_layout layout = v->layout;
	double resamples, runs = layout.nbase + layout.nhead;

	layout.alpha = alpha / (double)(members ? members : 1);
	resamples = fmax(DEALS_BEYOND / layout.alpha, STATS_RESAMPLES);
	resamples = fmin(resamples, fmax(DEAL_NUMBERS / runs, STATS_RESAMPLES));
	layout.resamples = (unsigned int)fmin(resamples, STATS_RESAMPLES_MAX);
	return stats_design_init(out, &layout, e);
}

/*
 * profile/compare/stats/power.h thinks of STATS_RESAMPLES deals. Designs for many functions have more, and so
 * reach smaller alphas: what is seen then is more by the quantiles' ratio, or a little less than that.
 */
static double seen_beyond(const struct stats_design *d, const struct stats_spread *spread,
			  double alpha, double least)
{
	double q = stats_t_quantile(1 - alpha, spread->df);

	return d->deals.p_least <= alpha ? q / stats_t_quantile(1 - least, spread->df) : INFINITY;
}

void gate_find_detectable(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
			  struct gate_finding *f, double alpha)
{
	const double *base = f->value, *head = base + v->report->nbase;
	const double least = 1.0 / (STATS_RESAMPLES + 1);
	struct stats_rule rule = f->stats;
	struct stats_spread spread;

	f->seen = INFINITY;
	rule.alpha = fmax(alpha, least);
	if (f->result.reason == STATS_NO_BASE || stats_spread_of(d, base, head, &spread, NULL) < 0)
		return;
	f->spread = spread;
	f->seen = stats_detectable(&spread, &rule, v->report->nbase, v->report->nhead, r->power);
	if (alpha < least)
		f->seen *= seen_beyond(d, &spread, alpha, least);
}

int gate_compare_values(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
			double alpha, struct gate_finding *f, struct err *e)
{
	const double *base = f->value, *head = base + v->report->nbase;
	struct err why = { 0 };
	int ret;

	f->stats = gate_rule_stats(r, stats_mean(base, v->report->nbase), alpha);
	ret = stats_compare(d, &f->stats, base, head, &f->result, &why);
	return ret ? err_set(e, -ret, "%s: %s", r->name, why.text) : 0;
}

/* How many runs of a side have no number, and why the first of them has none. */
static unsigned int count_missing(const struct gate *g, enum gate_side side, size_t rule,
				  const char **why)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < g->n[side]; i++) {
		const struct gate_run *run = g->run[side][i];

		if (!isnan(run->value[rule]))
			continue;
		if (!*why)
			*why = run->why[rule];
		n++;
	}
	return n;
}

/* Is there a function that the rule is about in any run? (A run's share is 0 when not.) */
static const char *matches_nothing(const struct gate *g, size_t rule)
{
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s]; i++)
			if (!g->run[s][i]->why[rule])
				return NULL;
	return g->run[GATE_BASE][0]->why[rule];
}

/* Settles the outcome of a rule for which some run has nothing to compare. */
static void settle_missing(const struct gate *g, size_t rule, struct gate_outcome *o)
{
	const char *why = NULL, *nothing = matches_nothing(g, rule);
	unsigned int base = count_missing(g, GATE_BASE, rule, &why),
		     head = count_missing(g, GATE_HEAD, rule, &why);

	if (nothing && !base && !head) {
		o->status = o->rule->optional ? GATE_SKIPPED : GATE_UNSURE;
		snprintf(o->why, sizeof(o->why), "in all runs: %s", nothing);
		return;
	}
	if (!base && !head)
		return;
	if (base == g->n[GATE_BASE] && head == g->n[GATE_HEAD]) {
		o->status = o->rule->optional ? GATE_SKIPPED : GATE_UNSURE;
		snprintf(o->why, sizeof(o->why), "in all runs: %s", why ? why : "no number");
		return;
	}
	/* Also when optional: that a run lacks what others have may be the regression. */
	o->status = GATE_UNSURE;
	snprintf(o->why, sizeof(o->why), "in %u of %u base and %u of %u head runs: %s", base,
		 g->n[GATE_BASE], head, g->n[GATE_HEAD], why ? why : "no number");
}

static int evaluate_number(struct gate_eval *v, size_t i, double alpha, struct err *e)
{
	const struct gate *g = v->gate;
	struct gate_outcome *o = &v->report->outcome[i];
	double *value = calloc(g->n[GATE_BASE] + g->n[GATE_HEAD], sizeof(*value));
	unsigned int n = 0;
	int ret;

	if (!value)
		return err_nomem(e);
	o->total.value = value;
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int k = 0; k < g->n[s]; k++)
			value[n++] = g->run[s][k]->value[i];
	ret = gate_compare_values(v, &v->plain, o->rule, alpha, &o->total, e);
	if (!ret)
		gate_find_detectable(v, &v->plain, o->rule, &o->total, o->alpha);
	return ret;
}

/* -- all rules together ---------------------------------------------------------------------- */

/* Do its false alarms count into the gate's error rate? */
static bool shares_error_rate(const struct gate_rule *r)
{
	return r->fail && !(r->alpha > 0);
}

static int evaluate_rule(struct gate_eval *v, size_t i, struct err *e)
{
	struct gate_outcome *o = &v->report->outcome[i];
	bool shared = shares_error_rate(o->rule);
	double alpha = o->rule->alpha > 0 ? o->rule->alpha : v->error_rate;

	if (o->why[0])
		return 0;
	o->alpha = shared ? alpha / v->units : alpha;
	if (gate_rule_is_family(o->rule))
		return gate_evaluate_family(v, o, alpha, e);
	return evaluate_number(v, i, alpha, e);
}

/* Holm's procedure over all that fail: a family takes part with its smallest q. */
static int settle_together(struct gate_eval *v, struct err *e)
{
	struct gate_report *r = v->report;
	cleanup_free struct stats_result *family = calloc(r->n, sizeof(*family));
	cleanup_free struct stats_result **result = calloc(r->n, sizeof(struct stats_result *));
	size_t n = 0;

	if (!family || !result)
		return err_nomem(e);
	for (size_t i = 0; i < r->n; i++) {
		struct gate_outcome *o = &r->outcome[i];

		if (o->why[0] || !shares_error_rate(o->rule))
			continue;
		family[i] = gate_family_result(o);
		result[n++] = gate_rule_is_family(o->rule) ? &family[i] : &o->total.result;
	}
	if (n && stats_adjust(result, n, v->error_rate, STATS_HOLM) < 0)
		return err_nomem(e);
	for (size_t i = 0; i < r->n; i++) {
		struct gate_outcome *o = &r->outcome[i];

		if (!o->why[0] && shares_error_rate(o->rule) && gate_rule_is_family(o->rule) &&
		    family[i].reason == STATS_TOO_MANY)
			gate_family_reject(o);
	}
	return 0;
}

static enum gate_status status_of(const struct gate_outcome *o)
{
	bool worse, unsure;

	if (gate_rule_is_family(o->rule)) {
		worse = o->nworse > 0;
		unsure = o->nunsure > 0;
	} else {
		worse = o->total.result.verdict == STATS_FAIL;
		unsure = o->total.result.verdict == STATS_INCONCLUSIVE;
	}
	if (worse)
		return o->rule->fail ? GATE_FAILED : GATE_WARNED;
	return unsure ? GATE_UNSURE : GATE_OK;
}

static void say_why(struct gate_outcome *o)
{
	const struct gate_finding *f = gate_rule_is_family(o->rule) ? o->finding : &o->total;

	if (o->status != GATE_UNSURE)
		return;
	if (gate_rule_is_family(o->rule))
		snprintf(o->why, sizeof(o->why), "for %zu of %zu functions, such as %.100s: %s",
			 o->nunsure, o->nfindings, f->name, stats_reason_text(f->result.reason));
	else
		snprintf(o->why, sizeof(o->why), "%s", stats_reason_text(f->result.reason));
}

static void settle_statuses(struct gate_report *r)
{
	bool unsure = false, compared = false;

	r->status = GATE_OK;
	for (size_t i = 0; i < r->n; i++) {
		struct gate_outcome *o = &r->outcome[i];

		if (!o->why[0]) {
			gate_family_settle(o);
			o->status = status_of(o);
			say_why(o);
		}
		unsure |= o->status == GATE_UNSURE && o->rule->fail;
		compared |= o->status != GATE_SKIPPED;
		if (o->status == GATE_WARNED || o->status == GATE_FAILED)
			r->status = o->status > r->status ? o->status : r->status;
	}
	/* A gate without anything to compare is none. */
	if ((unsure || !compared) && r->status != GATE_FAILED)
		r->status = GATE_UNSURE;
}

/* The order of running: by when the runs began, where all know it. */
static void find_order(struct gate_eval *v)
{
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < v->gate->n[s]; i++) {
			v->at[s][i] = v->gate->run[s][i]->began_ns;
			for (unsigned int k = 0; k < s * v->gate->n[0] + i; k++)
				if (v->at[s][i] ==
				    (k < v->gate->n[0] ? v->at[0][k] : v->at[1][k - v->gate->n[0]]))
					return;
			if (!v->at[s][i])
				return;
		}
	v->layout.base_at = v->at[GATE_BASE];
	v->layout.head_at = v->at[GATE_HEAD];
}

static int gate_begin(struct gate_eval *v, const struct gate_eval_options *opt, struct err *e)
{
	const struct gate *g = v->gate;
	struct gate_report *r = v->report;

	if (!g->n[GATE_BASE] || !g->n[GATE_HEAD])
		return err_set(e, EINVAL, "no runs of the %s", g->n[GATE_BASE] ? "head" : "base");
	for (size_t i = 0; i < g->rules->n; i++)
		if (gate_rule_is_exact(&g->rules->rule[i]))
			return err_set(e, EINVAL,
				       "%s:%u: the metric %s is for one run a side: give --exact",
				       g->rules->path, g->rules->rule[i].line,
				       gate_rule_metric_name(g->rules->rule[i].metric));
	r->outcome = calloc(g->rules->n, sizeof(*r->outcome));
	if (!r->outcome)
		return err_nomem(e);
	r->gate = g;
	r->n = g->rules->n;
	r->nbase = g->n[GATE_BASE];
	r->nhead = g->n[GATE_HEAD];
	r->error_rate = v->error_rate;
	for (size_t i = 0; i < r->n; i++) {
		r->outcome[i].rule = &g->rules->rule[i];
		if (!gate_rule_is_family(r->outcome[i].rule))
			settle_missing(g, i, &r->outcome[i]);
		/* A rule without numbers cannot raise a false alarm. */
		v->units += !r->outcome[i].why[0] && shares_error_rate(r->outcome[i].rule);
	}
	if (!v->units)
		v->units = 1;
	v->layout = (struct stats_layout){
		.nbase = r->nbase, .nhead = r->nhead, .pairing = opt->pairing, .seed = opt->seed
	};
	find_order(v);
	return gate_design_for(v, v->error_rate, v->units, &v->plain, e);
}

/* How many runs would settle a comparison that was one of noise; 0: too many. */
static unsigned int runs_for(const struct gate_outcome *o, const struct gate_finding *f)
{
	const double least = 1.0 / (STATS_RESAMPLES + 1);
	struct stats_spread spread = f->spread;
	struct stats_rule rule = f->stats;

	rule.alpha = fmax(o->alpha, least);
	rule.miss = 1 - o->rule->power;
	/* As gate_find_detectable() does it: designs for many functions have more resamples. */
	if (o->alpha < least)
		spread.sd *= stats_t_quantile(1 - o->alpha, spread.df) /
			     stats_t_quantile(1 - least, spread.df);
	return stats_runs_needed(&spread, &rule, o->rule->power);
}

/* Returns the spread between runs as a multiple of the threshold. */
static double noise_of(const struct gate_finding *f)
{
	return f->spread.sd / stats_in_values(&f->stats, f->spread.base, f->stats.min_effect);
}

static void look_for_noise(struct gate_noise *n, const struct gate_outcome *o,
			   const struct gate_finding *f)
{
	const enum stats_reason why = f->result.reason;
	unsigned int runs;

	if (f->result.verdict != STATS_INCONCLUSIVE || !(f->spread.sd > 0) ||
	    (why != STATS_NOISE && why != STATS_TOO_FEW && why != STATS_SMALL &&
	     why != STATS_TOO_MANY))
		return;
	/* The number of runs takes milliseconds to find. Within a rule it grows with the noise. */
	if (n->outcome && (!n->runs || (n->outcome == o && noise_of(f) <= noise_of(n->finding))))
		return;
	runs = runs_for(o, f);
	if (n->outcome && runs && runs <= n->runs)
		return;
	*n = (struct gate_noise){ o, f, runs };
}

static void find_noise(struct gate_report *r)
{
	for (size_t i = 0; r->status == GATE_UNSURE && i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];

		if (o->status != GATE_UNSURE || !o->rule->fail)
			continue;
		if (o->total.value)
			look_for_noise(&r->noise, o, &o->total);
		/* Those that can't be told stand behind all that are worse. */
		for (size_t k = o->nworse; k < o->nworse + o->nunsure; k++)
			look_for_noise(&r->noise, o, &o->finding[k]);
	}
}

int gate_evaluate(const struct gate *g, const struct gate_eval_options *opt,
		  struct gate_report **out, struct err *e)
{
	struct gate_report *r = calloc(1, sizeof(*r));
	struct gate_eval v = { .gate = g,
			       .report = r,
			       .error_rate = opt->error_rate > 0 ? opt->error_rate
								 : g->rules->error_rate };
	int ret;

	if (!r)
		return err_nomem(e);
	ret = gate_begin(&v, opt, e);
	if (!ret && gate_kin_find(&v))
		ret = err_nomem(e);
	for (size_t i = 0; i < r->n && !ret; i++)
		ret = evaluate_rule(&v, i, e);
	ret = ret ? ret : settle_together(&v, e);
	ret = ret ? ret : gate_find_moved(&v, e);
	if (!ret) {
		settle_statuses(r);
		find_noise(r);
		gate_judge_guests(r);
		gate_find_means(r);
		gate_find_work(r, &v.plain);
		r->paired = v.plain.pairs;
		r->ordered = v.plain.ordered;
		r->confounded = v.plain.confounded;
		*out = r;
	} else {
		gate_report_destroy(r);
	}
	stats_design_deinit(&v.plain);
	gate_kin_deinit(&v.kin, g->n[GATE_BASE] + g->n[GATE_HEAD]);
	return ret;
}

static void free_findings(struct gate_finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(f[i].value);
	free(f);
}

void gate_report_destroy(struct gate_report *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->outcome && i < r->n; i++) {
		free(r->outcome[i].total.value);
		free_findings(r->outcome[i].finding, r->outcome[i].nfindings);
	}
	free_findings(r->moved, r->nmoved);
	free(r->relation);
	free(r->outcome);
	free(r);
}

/* Appends words that are not there yet, as long as there is room. */
static void add_means(struct gate_report *r, const struct buf *words)
{
	const size_t len = strlen(r->means);

	if (words->failed || !words->len || memmem(r->means, len, words->data, words->len))
		return;
	snprintf(r->means + len, sizeof(r->means) - len, "%s%.*s", len ? "; " : "", (int)words->len,
		 (const char *)words->data);
}

void gate_find_means(struct gate_report *r)
{
	const struct gate *g = r->gate;
	const struct gate_run *first = first_run(g);

	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s]; i++) {
			struct buf words;

			buf_init(&words);
			(void)comparable_differs(first->means, g->run[s][i]->means, &words);
			add_means(r, &words);
			buf_deinit(&words);
		}
	for (unsigned int i = 0; i < g->n[GATE_HEAD] && !r->same; i++)
		for (unsigned int k = 0; k < g->n[GATE_BASE] && !r->same; k++) {
			const struct gate_run *base = g->run[GATE_BASE][k],
					      *head = g->run[GATE_HEAD][i];

			/* Exact runs of equal code are equal, but not at the same path. */
			if (base->contents == head->contents &&
			    (!head->counted || !strcmp(base->path, head->path)))
				r->same = head->path;
		}
}

void gate_find_work(struct gate_report *r, const struct stats_design *d)
{
	const struct gate *g = r->gate;
	double work[GATE_SIDE_MAX][STATS_MAX_RUNS];

	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s]; i++) {
			const struct gate_run *run = g->run[s][i];

			if (!run->command || !(run->work > 0))
				return;
			work[s][i] = run->work;
		}
	r->work = (struct gate_work){ .known = true, .exact = !d };
	r->work.shift = (struct stats_shift){ .base = work[GATE_BASE][0],
					      .head = work[GATE_HEAD][0],
					      .diff = work[GATE_HEAD][0] - work[GATE_BASE][0] };
	if (d)
		stats_compare_means(d, work[GATE_BASE], work[GATE_HEAD], &r->work.shift);
}

const char *gate_panic(const struct gate *g, enum gate_side side)
{
	for (unsigned int i = 0; i < gate_runs(g, side); i++)
		if (gate_run_at(g, side, i)->panic)
			return gate_run_at(g, side, i)->panic;
	return NULL;
}

const char *gate_hang(const struct gate *g, enum gate_side side)
{
	for (unsigned int i = 0; i < gate_runs(g, side); i++)
		if (gate_run_at(g, side, i)->hang)
			return gate_run_at(g, side, i)->hang;
	return NULL;
}

void gate_judge_guests(struct gate_report *r)
{
	if (gate_panic(r->gate, GATE_HEAD) || gate_hang(r->gate, GATE_HEAD))
		r->status = GATE_FAILED;
	else if (gate_panic(r->gate, GATE_BASE) || gate_hang(r->gate, GATE_BASE))
		r->status = GATE_UNSURE;
}

int gate_exit_status(const struct gate_report *r)
{
	return r->status == GATE_FAILED ? 1 : r->status == GATE_UNSURE ? 3 : 0;
}

const char *gate_status_name(enum gate_status s)
{
	static const char *const name[] = { "pass", "skipped", "inconclusive", "warn", "fail" };

	return name[s];
}
