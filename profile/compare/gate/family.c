/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions of all runs, side by side. Which ones are compared is told by their mean
 * over all runs of both sides, which says nothing of the difference (stats_adjust()).
 */
#include "profile/compare/gate/private.h"

#include "base/cleanup.h"
#include "profile/analyse/stacks/identity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A function of some run. */
struct occurrence {
	const struct gate_symbol *symbol;
	unsigned int run; /* base first */
};

/* A function with its values in all runs. */
struct family_member {
	const struct gate_symbol *symbol; /* symbol in the first run that has it */
	size_t first, n;		  /* occurrences */
	double mean_share;
};

struct members {
	struct occurrence *occurrence;
	struct family_member *member; /* largest first */
	size_t n, left_out;
};

static int compare_occurrences(const void *a, const void *b)
{
	const struct occurrence *x = a, *y = b;
	int c = gate_symbol_compare(x->symbol, y->symbol);

	return c ? c : (int)x->run - (int)y->run;
}

static int compare_members(const void *a, const void *b)
{
	const struct family_member *x = a, *y = b;

	if (x->mean_share != y->mean_share)
		return x->mean_share > y->mean_share ? -1 : 1;
	return gate_symbol_compare(x->symbol, y->symbol);
}

static const struct gate_run *run_of(const struct gate *g, unsigned int run)
{
	return run < g->n[GATE_BASE] ? g->run[GATE_BASE][run]
				     : g->run[GATE_HEAD][run - g->n[GATE_BASE]];
}

static double weight_of(const struct gate_symbol *s, bool children)
{
	return children ? s->children : s->self;
}

static void members_deinit(struct members *m)
{
	free(m->occurrence);
	free(m->member);
}

/* The functions of a run, after those that were renamed, inlined or split are the same. */
static const struct gate_symbol *symbols_of(const struct gate_eval *v, unsigned int run, size_t *n)
{
	const struct gate_run *r = run_of(v->gate, run);

	*n = v->kin.symbol ? v->kin.nsymbols[run] : r->nsymbols;
	return v->kin.symbol ? v->kin.symbol[run] : r->symbol;
}

static int family_collect(const struct gate_eval *v, struct members *m, size_t *count)
{
	unsigned int runs = v->gate->n[GATE_BASE] + v->gate->n[GATE_HEAD];
	size_t n = 0, some;

	for (unsigned int i = 0; i < runs; i++) {
		symbols_of(v, i, &some);
		n += some;
	}
	m->occurrence = calloc(n + 1, sizeof(*m->occurrence));
	m->member = calloc(n + 1, sizeof(*m->member));
	if (!m->occurrence || !m->member)
		return -ENOMEM;
	for (unsigned int i = 0; i < runs; i++) {
		const struct gate_symbol *symbol = symbols_of(v, i, &some);

		for (size_t k = 0; k < some; k++)
			m->occurrence[(*count)++] = (struct occurrence){ &symbol[k], i };
	}
	if (n)
		qsort(m->occurrence, n, sizeof(*m->occurrence), compare_occurrences);
	return 0;
}

/* Functions that match r (NULL: all), of min_share on the average of all runs. */
static int find_members(const struct gate_eval *v, const struct gate_rule *r, bool children,
			double min_share, size_t most, struct members *m)
{
	const struct gate *g = v->gate;
	double runs = g->n[GATE_BASE] + g->n[GATE_HEAD];
	size_t n = 0, next;

	*m = (struct members){ 0 };
	if (family_collect(v, m, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i = next) {
		struct family_member x = { .symbol = m->occurrence[i].symbol, .first = i };

		for (next = i;
		     next < n && !gate_symbol_compare(m->occurrence[next].symbol, x.symbol); next++)
			x.mean_share += weight_of(m->occurrence[next].symbol, children) /
					run_of(g, m->occurrence[next].run)->weight / runs;
		x.n = next - i;
		if (r && !gate_rule_matches(r, x.symbol->name, x.symbol->dso))
			continue;
		if (x.mean_share < min_share || x.mean_share <= 0)
			m->left_out++;
		else
			m->member[m->n++] = x;
	}
	if (m->n)
		qsort(m->member, m->n, sizeof(*m->member), compare_members);
	if (m->n > most) {
		m->left_out += m->n - most;
		m->n = most;
	}
	return 0;
}

/* The finding of a member: its name, and its value in each run, base first. */
static int start_finding(const struct gate *g, const struct members *m,
			 const struct family_member *x, const struct gate_rule *r,
			 struct gate_finding *f, struct err *e)
{
	f->name = x->symbol->name;
	f->dso = x->symbol->dso;
	f->mode = identity_mode_name(x->symbol->mode);
	f->note = x->symbol->note;
	f->value = calloc(g->n[GATE_BASE] + g->n[GATE_HEAD], sizeof(*f->value));
	if (!f->value)
		return err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	for (size_t i = 0; i < x->n; i++) {
		const struct occurrence *at = &m->occurrence[x->first + i];
		double whole = r->time ? 1 : run_of(g, at->run)->weight;

		f->value[at->run] = weight_of(at->symbol, r->children) / whole;
	}
	return 0;
}

/* A function that the base has is not new, however much it grew. */
static void refuse_old(struct gate_finding *f, unsigned int nbase)
{
	for (unsigned int i = 0; i < nbase; i++)
		if (f->value[i] > 0) {
			f->result.p_fail = f->result.q = 1;
			f->result.verdict = STATS_PASS;
			f->result.reason = STATS_EXCLUDED;
			f->seen = -1;
			return;
		}
}

static int compare_member(struct gate_eval *v, struct stats_design *d, const struct gate_outcome *o,
			  double alpha, struct gate_finding *f, struct err *e)
{
	int ret = gate_compare_values(v, d, o->rule, alpha, f, e);

	if (ret)
		return ret;
	gate_find_detectable(v, d, o->rule, f, o->alpha);
	if (o->rule->metric == GATE_RULE_NEW_SYMBOLS)
		refuse_old(f, v->report->nbase);
	return 0;
}

static int compare_members_all(struct gate_eval *v, struct gate_outcome *o, double alpha,
			       const struct members *m, struct err *e)
{
	struct stats_design d = { 0 };
	cleanup_free struct stats_result **result = calloc(m->n + 1, sizeof(struct stats_result *));
	int ret;

	o->finding = calloc(m->n + 1, sizeof(*o->finding));
	if (!o->finding || !result)
		return err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	ret = gate_design_for(v, o->alpha, 1, &d, e);
	for (size_t i = 0; i < m->n && !ret; i++) {
		struct gate_finding *f = &o->finding[i];

		o->nfindings++;
		ret = start_finding(v->gate, m, &m->member[i], o->rule, f, e);
		ret = ret ? ret : compare_member(v, &d, o, alpha, f, e);
		result[i] = &f->result;
	}
	if (!ret && m->n && stats_adjust(result, m->n, alpha, STATS_FDR) < 0)
		ret = err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	if (!ret && o->rule->metric == GATE_RULE_SYMBOLS && !o->rule->time && !o->rule->children &&
	    gate_cause_explain(v, o->finding, o->nfindings))
		ret = err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	stats_design_deinit(&d);
	return ret;
}

int gate_evaluate_family(struct gate_eval *v, struct gate_outcome *o, double alpha, struct err *e)
{
	const struct gate_rule *r = o->rule;
	double min_share = r->min_share;
	struct members m;
	int ret;

	if (r->time && !v->gate->run[GATE_BASE][0]->weight_is_ns) {
		o->status = r->optional ? GATE_SKIPPED : GATE_UNSURE;
		snprintf(o->why, sizeof(o->why), "the samples count %.80s, not time",
			 v->gate->run[GATE_BASE][0]->event);
		return 0;
	}
	/* One that is in no base run and at the threshold in all of the head's. */
	if (r->metric == GATE_RULE_NEW_SYMBOLS)
		min_share = r->threshold.value / 100 * v->report->nhead /
			    (v->report->nbase + v->report->nhead);
	if (find_members(v, r, r->children, min_share, GATE_MAX_MEMBERS, &m) < 0) {
		members_deinit(&m);
		return err_set(e, ENOMEM, "out of memory for the functions of all runs");
	}
	o->left_out = m.left_out;
	o->alpha /= (double)(m.n ? m.n : 1);
	ret = compare_members_all(v, o, alpha, &m, e);
	if (!ret && !m.n) {
		o->status = r->optional || r->metric == GATE_RULE_NEW_SYMBOLS ? GATE_SKIPPED
									      : GATE_UNSURE;
		snprintf(o->why, sizeof(o->why), "no function has a share of %g %% or more",
			 100 * min_share);
	}
	members_deinit(&m);
	return ret;
}

/* -- as one of the gate's rules ---------------------------------------------------------------- */

struct stats_result gate_family_result(const struct gate_outcome *o)
{
	struct stats_result all = { .verdict = STATS_PASS, .p_fail = 1, .q = 1, .p_least = 1 };

	for (size_t i = 0; i < o->nfindings; i++) {
		const struct stats_result *r = &o->finding[i].result;

		if (r->verdict == STATS_FAIL) {
			all.verdict = STATS_FAIL;
			all.reason = STATS_WORSE;
		}
		/* The smallest q is Simes' p of the hypothesis that no function got worse. */
		all.p_fail = fmin(all.p_fail, r->q);
	}
	all.q = all.p_fail;
	return all;
}

void gate_family_reject(struct gate_outcome *o)
{
	for (size_t i = 0; i < o->nfindings; i++)
		if (o->finding[i].result.verdict == STATS_FAIL) {
			o->finding[i].result.verdict = STATS_INCONCLUSIVE;
			o->finding[i].result.reason = STATS_TOO_MANY;
		}
}

/* Worse, not to be told, the others; by how much of the threshold. */
static int compare_findings(const void *a, const void *b)
{
	static const int order[] = {
		[STATS_FAIL] = 0,
		[STATS_INCONCLUSIVE] = 1,
		[STATS_PASS] = 2,
	};
	const struct gate_finding *x = a, *y = b;
	double dx = fabs(x->result.diff), dy = fabs(y->result.diff);
	int c = order[x->result.verdict] - order[y->result.verdict];

	c = c ? c : (x->rank < y->rank) - (x->rank > y->rank);
	if (c)
		return c;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	c = strcmp(x->name, y->name);
	c = c ? c : strcmp(x->dso, y->dso);
	return c ? c : strcmp(x->mode, y->mode);
}

void gate_family_settle(struct gate_outcome *o)
{
	if (!o->nfindings)
		return;
	qsort(o->finding, o->nfindings, sizeof(*o->finding), compare_findings);
	for (size_t i = 0; i < o->nfindings; i++) {
		const struct stats_result *r = &o->finding[i].result;

		o->nworse += r->verdict == STATS_FAIL;
		o->nunsure += r->verdict == STATS_INCONCLUSIVE;
		o->nbetter += (r->flags & STATS_IMPROVED) != 0;
	}
}

/* -- what moved ---------------------------------------------------------------------------------- */

static int compare_moved(const void *a, const void *b)
{
	const struct gate_finding *x = a, *y = b;
	double dx = fabs(x->result.diff), dy = fabs(y->result.diff);

	if (x->explained != y->explained)
		return x->explained ? 1 : -1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Keep those with a q of two-sided p that is small enough. */
static int keep_moved(struct gate_report *r, size_t n)
{
	cleanup_free double *q = calloc(n + 1, sizeof(*q));
	size_t kept = 0;

	if (!q)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		q[i] = r->moved[i].result.p_two;
	if (stats_fdr(q, n, q) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct gate_finding f = r->moved[i];

		if (q[i] > GATE_MOVED_Q) {
			free(f.value);
			continue;
		}
		f.result.q = q[i];
		r->moved[kept++] = f;
	}
	if (kept)
		qsort(r->moved, kept, sizeof(*r->moved), compare_moved);
	for (r->nmoved = kept; r->nmoved > GATE_MAX_MOVED; r->moved_beyond++)
		free(r->moved[--r->nmoved].value);
	return 0;
}

static int compare_shares(struct gate_eval *v, const struct members *m, struct err *e)
{
	/* The rule's settings do not matter here: only the two-sided p is used. */
	static const struct gate_rule any = { .name = (char *)"functions",
					      .worse = STATS_EITHER,
					      .power = GATE_RULE_POWER,
					      .quantile = -1,
					      .threshold = { STATS_POINTS, 0.1 } };
	struct gate_report *r = v->report;
	int ret;

	r->moved = calloc(m->n + 1, sizeof(*r->moved));
	if (!r->moved)
		return err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	for (size_t i = 0; i < m->n; i++) {
		struct gate_finding *f = &r->moved[i];

		r->nmoved++;
		ret = start_finding(v->gate, m, &m->member[i], &any, f, e);
		if (ret)
			return ret;
		ret = gate_compare_values(v, &v->plain, &any, STATS_ALPHA, f, e);
		if (ret)
			return ret;
	}
	if (gate_cause_explain(v, r->moved, r->nmoved) < 0 || keep_moved(r, r->nmoved) < 0)
		return err_set(e, ENOMEM, "out of memory for %zu functions", m->n);
	return 0;
}

int gate_find_moved(struct gate_eval *v, struct err *e)
{
	struct members m;
	int ret = find_members(v, NULL, false, GATE_MOVED_MIN_SHARE, GATE_MAX_MEMBERS, &m);

	ret = ret ? err_set(e, ENOMEM, "out of memory for the functions of all runs")
		  : compare_shares(v, &m, e);
	members_deinit(&m);
	return ret;
}
