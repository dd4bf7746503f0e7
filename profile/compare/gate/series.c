/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/series.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "profile/compare/gate/say.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHUFFLES_MAX 9999u

/* One value for each entry that has it. */
struct series_line {
	double value[STATS_HISTORY_MAX];
	size_t entry[STATS_HISTORY_MAX];
	size_t n;
};

struct find {
	struct gate_series *s;
	const struct gate_rules *rules;
	uint64_t seed;
	size_t cap; /* of s->step */
	struct err *e;
};

static int no_memory(const struct find *f)
{
	return err_set(f->e, ENOMEM, "out of memory for the history's changes");
}

static void series_append(struct series_line *l, size_t entry, double v)
{
	if (l->n == STATS_HISTORY_MAX) {
		memmove(l->value, l->value + 1, --l->n * sizeof(*l->value));
		memmove(l->entry, l->entry + 1, l->n * sizeof(*l->entry));
	}
	l->value[l->n] = v;
	l->entry[l->n++] = entry;
}

static int add_step(struct find *f, const struct gate_step *step)
{
	if (ARRAY_ROOM(f->s->step, f->s->nsteps, f->cap))
		return no_memory(f);
	f->s->step[f->s->nsteps++] = *step;
	return 0;
}

/* At least the rule's threshold, which may be relative to what was before. */
static bool is_large(const struct gate_rule *r, double before, double change)
{
	const struct stats_rule rule = gate_rule_stats(r, before, 0);
	double bar = rule.min_effect;

	if (rule.unit == STATS_RELATIVE)
		bar *= before;
	else if (rule.unit == STATS_POINTS)
		bar /= 100;
	return fabs(change) >= bar;
}

/* of: the series that are looked at for the same rule; each has its part of alpha. */
static int find_steps(struct find *f, const struct series_line *l, const struct gate_step *like,
		      size_t of)
{
	struct stats_change change[STATS_CHANGES_MAX];
	struct stats_change_options opt = {
		.alpha = fmin(STATS_CHANGE_ALPHA, GATE_SERIES_ALPHA / (double)of),
		.shuffles = (unsigned int)fmin(SHUFFLES_MAX, STATS_CHANGE_SHUFFLES * (double)of),
		.seed = f->seed,
	};
	size_t n = 0;
	int ret;

	f->s->nseries++;
	if (l->n < 2 * STATS_CHANGE_SEGMENT) {
		f->s->ntooshort++;
		return 0;
	}
	ret = stats_changes(l->value, l->n, &opt, change, &n, f->e);
	for (size_t i = 0; i < n && !ret; i++) {
		struct gate_step step = *like;
		double diff = change[i].after - change[i].before;

		if (!is_large(like->rule, change[i].before, diff))
			continue;
		step.entry = l->entry[change[i].at];
		step.before = change[i].before;
		step.after = change[i].after;
		step.p = change[i].p;
		step.worse = like->rule->worse == STATS_EITHER ||
			     (like->rule->worse == STATS_LOWER ? diff < 0 : diff > 0);
		ret = add_step(f, &step);
	}
	return ret;
}

static int number_steps(struct find *f, const struct gate_rule *r, struct series_line *l)
{
	const struct gate_history *h = f->s->history;
	const struct gate_step like = { .rule = r };

	l->n = 0;
	for (size_t i = 0; i < h->n; i++) {
		const struct gate_history_value *v =
			gate_history_find(h->entry[i], r->key, NULL, NULL);

		if (v)
			series_append(l, i, v->mean);
	}
	return l->n || !r->optional ? find_steps(f, l, &like, 1) : 0;
}

/* -- functions -------------------------------------------------------------------------------- */

struct series_function {
	const struct gate_history_value *value; /* of the first entry that has it */
	double sum;
};

static int compare_functions(const void *a, const void *b)
{
	const struct gate_history_value *x = ((const struct series_function *)a)->value;
	const struct gate_history_value *y = ((const struct series_function *)b)->value;
	int c = strcmp(x->name, y->name);

	c = c ? c : strcmp(x->dso, y->dso);
	return c ? c : strcmp(x->mode, y->mode);
}

static int compare_sums(const void *a, const void *b)
{
	const struct series_function *x = a, *y = b;

	if (x->sum != y->sum)
		return x->sum > y->sum ? -1 : 1;
	return compare_functions(a, b);
}

/* All functions of all entries, those of one name together, largest first. */
static int list_functions(const struct gate_history *h, const struct gate_rule *r,
			  struct series_function **out, size_t *n)
{
	size_t all = 0, kept = 0;

	for (size_t i = 0; i < h->n; i++)
		all += h->entry[i]->nvalues;
	*out = calloc(all + 1, sizeof(**out));
	*n = all = 0;
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < h->n; i++)
		for (size_t k = 0; k < h->entry[i]->nvalues; k++) {
			const struct gate_history_value *v = &h->entry[i]->value[k];

			if (v->mode && gate_rule_matches(r, v->name, v->dso))
				(*out)[all++] = (struct series_function){ v, v->mean };
		}
	if (all)
		qsort(*out, all, sizeof(**out), compare_functions);
	for (size_t i = 0; i < all; i++) {
		if (kept && !compare_functions(&(*out)[kept - 1], &(*out)[i]))
			(*out)[kept - 1].sum += (*out)[i].sum;
		else
			(*out)[kept++] = (*out)[i];
	}
	if (kept)
		qsort(*out, kept, sizeof(**out), compare_sums);
	while (*n < kept && *n < GATE_SERIES_FUNCTIONS &&
	       (*out)[*n].sum / (double)h->n >= r->min_share)
		++*n;
	return 0;
}

static int function_steps(struct find *f, const struct gate_rule *r, struct series_line *l)
{
	const struct gate_history *h = f->s->history;
	cleanup_free struct series_function *function = NULL;
	size_t n;
	int ret = 0;

	if (list_functions(h, r, &function, &n) < 0)
		return no_memory(f);
	for (size_t k = 0; k < n && !ret; k++) {
		const struct gate_history_value *x = function[k].value;
		const struct gate_step like = {
			.rule = r, .name = x->name, .dso = x->dso, .mode = x->mode
		};

		l->n = 0;
		for (size_t i = 0; i < h->n; i++) {
			const struct gate_history_value *v =
				gate_history_find(h->entry[i], x->name, x->dso, x->mode);

			series_append(l, i, v ? v->mean : 0);
		}
		ret = find_steps(f, l, &like, n);
	}
	return ret;
}

/* -- shares that follow others ------------------------------------------------------------------- */

#define FOLLOWS 0.35 /* of the change that a cause explains, at most, is left */

/* Returns whether the step of one function's share is what the step of another one makes of it. */
static bool follows(const struct gate_step *x, const struct gate_step *cause)
{
	double factor = (1 - cause->after) / (1 - cause->before);
	double explained = (factor - 1) * x->before, own = x->after - factor * x->before;

	/* A function with most of the weight may have changed itself. */
	return cause->before < 0.5 && cause->after < 1 &&
	       (x->after - x->before) * (cause->after - cause->before) < 0 &&
	       fabs(own) <= FOLLOWS * fabs(explained);
}

static double size_of(const struct gate_step *x)
{
	return fabs(x->after - x->before);
}

/* Returns whether y may be why x came: a larger step, of another function, at about the same entry. */
static bool may_cause(const struct gate_step *y, const struct gate_step *x)
{
	size_t apart = x->entry > y->entry ? x->entry - y->entry : y->entry - x->entry;

	return y != x && y->name && y->rule == x->rule && apart <= GATE_SERIES_NEAR &&
	       size_of(y) >= 0.999 * size_of(x) && follows(x, y);
}

static void find_causes(struct gate_series *s)
{
	for (size_t i = 0; i < s->nsteps; i++) {
		struct gate_step *x = &s->step[i];
		const struct gate_step *best = NULL;

		for (size_t k = 0; k < s->nsteps && x->name; k++)
			if (may_cause(&s->step[k], x) &&
			    (!best || size_of(&s->step[k]) > size_of(best)))
				best = &s->step[k];
		if (!best)
			continue;
		x->because = best->name;
		x->worse = false;
	}
}

/* -- interface ----------------------------------------------------------------------------------- */

static int compare_steps(const void *a, const void *b)
{
	const struct gate_step *x = a, *y = b;

	if (x->entry != y->entry)
		return x->entry > y->entry ? -1 : 1;
	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return fabs(x->after - x->before) > fabs(y->after - y->before) ? -1 : 1;
}

/*
 * Returns who accepted a step: an entry of at most GATE_SERIES_NEAR places away says so of the rule. Where a level
 * begins is an estimate, which noise moves by an entry or two.
 */
static const struct gate_acceptance *accepted_at(const struct gate_history *h,
						 const struct gate_step *x)
{
	size_t from = x->entry > GATE_SERIES_NEAR ? x->entry - GATE_SERIES_NEAR : 0;

	for (size_t i = from; x->worse && i < h->n && i <= x->entry + GATE_SERIES_NEAR; i++)
		for (size_t k = 0; k < h->entry[i]->naccepted; k++)
			if (!strcmp(h->entry[i]->accepted[k].rule, x->rule->name))
				return &h->entry[i]->accepted[k];
	return NULL;
}

int gate_series_find(struct gate_series **out, const struct gate_history *h,
		     const struct gate_rules *rules, unsigned int recent, uint64_t seed,
		     struct err *e)
{
	struct find f = { .s = calloc(1, sizeof(*f.s)), .rules = rules, .seed = seed, .e = e };
	cleanup_free struct series_line *l = malloc(sizeof(*l));
	int ret = 0;

	if (!f.s || !l) {
		free(f.s);
		return no_memory(&f);
	}
	f.s->history = h;
	f.s->recent = recent;
	for (size_t i = 0; i < rules->n && !ret; i++) {
		const struct gate_rule *r = &rules->rule[i];

		if (!gate_rule_is_family(r))
			ret = number_steps(&f, r, l);
		else if (r->metric == GATE_RULE_SYMBOLS && !r->time && !r->children)
			ret = function_steps(&f, r, l);
	}
	if (f.s->nsteps)
		qsort(f.s->step, f.s->nsteps, sizeof(*f.s->step), compare_steps);
	find_causes(f.s);
	for (size_t i = 0; i < f.s->nsteps; i++) {
		f.s->step[i].accepted = accepted_at(h, &f.s->step[i]);
		f.s->failed |= f.s->step[i].worse && f.s->step[i].rule->fail &&
			       !f.s->step[i].accepted && f.s->step[i].entry + recent >= h->n;
	}
	if (ret)
		gate_series_destroy(f.s);
	else
		*out = f.s;
	return ret;
}

void gate_series_destroy(struct gate_series *s)
{
	if (!s)
		return;
	free(s->step);
	free(s);
}

int gate_series_exit_status(const struct gate_series *s)
{
	if (s->failed)
		return 1;
	return s->ntooshort == s->nseries ? 3 : 0;
}

/* -- output ----------------------------------------------------------------------------------------- */

static const char *word_of(const struct gate_series *s, const struct gate_step *x)
{
	if (x->because)
		return "follows";
	if (!x->worse)
		return "better";
	if (x->accepted)
		return "accepted";
	if (!x->rule->fail)
		return "warn";
	return x->entry + s->recent >= s->history->n ? "fail" : "older";
}

static void say_name(char *out, size_t size, const struct gate_step *x)
{
	const struct gate_finding f = { .name = x->name, .dso = x->dso, .mode = x->mode };

	if (x->name)
		gate_say_function(out, size, &f);
	else
		snprintf(out, size, "%s", x->rule->name);
}

static void text_step(struct buf *out, const struct gate_series *s, const struct gate_step *x)
{
	const struct gate_history_entry *at = s->history->entry[x->entry];
	enum gate_rule_dimension d = x->name ? GATE_RULE_PART : gate_rule_dimension(x->rule);
	const struct stats_rule stats = gate_rule_stats(x->rule, x->before, 0);
	char name[256], before[GATE_CELL], after[GATE_CELL], change[GATE_CELL];
	double diff = x->after - x->before;

	say_name(name, sizeof(name), x);
	gate_say_value(before, sizeof(before), d, x->before);
	gate_say_value(after, sizeof(after), d, x->after);
	gate_say_effect(change, sizeof(change), &stats, d,
			stats.unit == STATS_RELATIVE ? diff / x->before
			: stats.unit == STATS_POINTS ? 100 * diff
						     : diff,
			GATE_EFFECT_IS_CHANGE);
	buf_printf(out, "%-9s  %-28s %12s %12s %15s  %-8.2g %s (%s)%s\n", word_of(s, x), name,
		   before, after, change, x->p, at->label, at->time,
		   x->entry + 1 == s->history->n ? ", the newest" : "");
	if (x->because)
		buf_printf(out, "%9s  because %s %s\n", "", x->because,
			   x->after < x->before ? "grew" : "shrank");
	if (x->accepted)
		buf_printf(out, "%9s  accepted by %s: %s\n", "", x->accepted->by, x->accepted->why);
}

int gate_series_write_text(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	const struct gate_history *h = s->history;

	buf_printf(out, "# history %s: %zu entr%s", dir, h->n, h->n == 1 ? "y" : "ies");
	if (h->n)
		buf_printf(out, ", %s (%s) to %s (%s)", h->entry[0]->label, h->entry[0]->time,
			   h->entry[h->n - 1]->label, h->entry[h->n - 1]->time);
	buf_printf(out, "\n");
	if (s->ntooshort)
		buf_printf(out,
			   "# %zu of %zu series are too short: a change can be seen from %u values "
			   "on\n",
			   s->ntooshort, s->nseries, 2 * STATS_CHANGE_SEGMENT);
	if (s->nsteps)
		buf_printf(out, "#\n%-9s  %-28s %12s %12s %15s  %-8s %s\n", "# Verdict", "Metric",
			   "Before", "After", "Change", "p", "Since");
	for (size_t i = 0; i < s->nsteps; i++)
		text_step(out, s, &s->step[i]);
	if (!s->nsteps)
		buf_printf(out, "# no change of level in %zu series\n", s->nseries - s->ntooshort);
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	const struct gate_history *h = s->history;
	struct json_writer w;

	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "version", 1u, "history", dir, "exit_status",
		 (unsigned int)gate_series_exit_status(s), "series", s->nseries, "too_short",
		 s->ntooshort);
	json_array_begin(&w, "entries");
	for (size_t i = 0; i < h->n; i++) {
		json_line(&w);
		json_put_object(&w, NULL, "file", h->entry[i]->file, "time", h->entry[i]->time,
				"label", h->entry[i]->label, "runs", h->entry[i]->runs);
	}
	json_array_end(&w);
	json_array_begin(&w, "changes");
	for (size_t i = 0; i < s->nsteps; i++) {
		const struct gate_step *x = &s->step[i];

		json_line(&w);
		json_object_begin(&w, NULL);
		json_put(&w, "verdict", word_of(s, x), "rule", x->rule->name, "measures",
			 x->rule->key, "function", x->name, "dso", x->dso, "mode", x->mode, "label",
			 h->entry[x->entry]->label, "file", h->entry[x->entry]->file);
		json_put(&w, "entry", x->entry, "before", json_short(10, x->before), "after",
			 json_short(10, x->after), "p", json_short(10, x->p));
		if (x->because)
			json_str(&w, "because", x->because);
		if (x->accepted)
			json_put(&w, "accepted_by", x->accepted->by, "accepted_why",
				 x->accepted->why);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_u8(out, '\n');
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}
