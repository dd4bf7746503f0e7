/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/series.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/compare/gate/say.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHUFFLES_MAX 9999u

/* One value for each entry that has it. */
struct line {
	double value[GATE_HISTORY_MAX];
	size_t entry[GATE_HISTORY_MAX];
	size_t n;
};

struct find {
	struct gate_series *s;
	const struct grules *rules;
	uint64_t seed;
	size_t cap; /* of s->step */
	struct err *e;
};

static int no_memory(const struct find *f)
{
	return err_set(f->e, ENOMEM, "out of memory for the history's changes");
}

static void series_append(struct line *l, size_t entry, double v)
{
	if (l->n == GATE_HISTORY_MAX) {
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
static bool is_large(const struct grule *r, double before, double change)
{
	const struct gate_rule rule = grule_stats(r, before, 0);
	double bar = rule.min_effect;

	if (rule.unit == GATE_RELATIVE)
		bar *= before;
	else if (rule.unit == GATE_POINTS)
		bar /= 100;
	return fabs(change) >= bar;
}

/* of: the series that are looked at for the same rule; each has its part of alpha. */
static int find_steps(struct find *f, const struct line *l, const struct gate_step *like, size_t of)
{
	struct gate_change change[GATE_CHANGES_MAX];
	struct gate_change_options opt = {
		.alpha = fmin(GATE_CHANGE_ALPHA, GATE_SERIES_ALPHA / (double)of),
		.shuffles = (unsigned int)fmin(SHUFFLES_MAX, GATE_CHANGE_SHUFFLES * (double)of),
		.seed = f->seed,
	};
	size_t n = 0;
	int ret;

	f->s->nseries++;
	if (l->n < 2 * GATE_CHANGE_SEGMENT) {
		f->s->ntooshort++;
		return 0;
	}
	ret = gate_changes(l->value, l->n, &opt, change, &n, f->e);
	for (size_t i = 0; i < n && !ret; i++) {
		struct gate_step step = *like;
		double diff = change[i].after - change[i].before;

		if (!is_large(like->rule, change[i].before, diff))
			continue;
		step.entry = l->entry[change[i].at];
		step.before = change[i].before;
		step.after = change[i].after;
		step.p = change[i].p;
		step.worse = like->rule->worse == GATE_EITHER ||
			     (like->rule->worse == GATE_LOWER ? diff < 0 : diff > 0);
		ret = add_step(f, &step);
	}
	return ret;
}

static int number_steps(struct find *f, const struct grule *r, struct line *l)
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

struct function {
	const struct gate_history_value *value; /* of the first entry that has it */
	double sum;
};

static int compare_functions(const void *a, const void *b)
{
	const struct gate_history_value *x = ((const struct function *)a)->value;
	const struct gate_history_value *y = ((const struct function *)b)->value;
	int c = strcmp(x->name, y->name);

	c = c ? c : strcmp(x->dso, y->dso);
	return c ? c : strcmp(x->mode, y->mode);
}

static int compare_sums(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->sum != y->sum)
		return x->sum > y->sum ? -1 : 1;
	return compare_functions(a, b);
}

/* All functions of all entries, those of one name together, largest first. */
static int list_functions(const struct gate_history *h, const struct grule *r,
			  struct function **out, size_t *n)
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

			if (v->mode && grule_matches(r, v->name, v->dso))
				(*out)[all++] = (struct function){ v, v->mean };
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

static int function_steps(struct find *f, const struct grule *r, struct line *l)
{
	const struct gate_history *h = f->s->history;
	cleanup_free struct function *function = NULL;
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

int gate_series_find(struct gate_series **out, const struct gate_history *h,
		     const struct grules *rules, unsigned int recent, uint64_t seed, struct err *e)
{
	struct find f = { .s = calloc(1, sizeof(*f.s)), .rules = rules, .seed = seed, .e = e };
	cleanup_free struct line *l = malloc(sizeof(*l));
	int ret = 0;

	if (!f.s || !l) {
		free(f.s);
		return no_memory(&f);
	}
	f.s->history = h;
	f.s->recent = recent;
	for (size_t i = 0; i < rules->n && !ret; i++) {
		const struct grule *r = &rules->rule[i];

		if (!grule_is_family(r))
			ret = number_steps(&f, r, l);
		else if (r->metric == GRULE_SYMBOLS && !r->time && !r->children)
			ret = function_steps(&f, r, l);
	}
	if (f.s->nsteps)
		qsort(f.s->step, f.s->nsteps, sizeof(*f.s->step), compare_steps);
	for (size_t i = 0; i < f.s->nsteps; i++)
		f.s->failed |= f.s->step[i].worse && f.s->step[i].rule->fail &&
			       f.s->step[i].entry + recent >= h->n;
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
	if (!x->worse)
		return "better";
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
	enum grule_dimension d = x->name ? GRULE_PART : grule_dimension(x->rule);
	const struct gate_rule stats = grule_stats(x->rule, x->before, 0);
	char name[256], before[GATE_CELL], after[GATE_CELL], change[GATE_CELL];
	double diff = x->after - x->before;

	say_name(name, sizeof(name), x);
	gate_say_value(before, sizeof(before), d, x->before);
	gate_say_value(after, sizeof(after), d, x->after);
	gate_say_effect(change, sizeof(change), &stats, d,
			stats.unit == GATE_RELATIVE ? diff / x->before
			: stats.unit == GATE_POINTS ? 100 * diff
						    : diff,
			GATE_EFFECT_IS_CHANGE);
	buf_printf(out, "%-9s  %-28s %12s %12s %15s  %-8.2g %s (%s)%s\n", word_of(s, x), name,
		   before, after, change, x->p, at->label, at->time,
		   x->entry + 1 == s->history->n ? ", the newest" : "");
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
			   s->ntooshort, s->nseries, 2 * GATE_CHANGE_SEGMENT);
	if (s->nsteps)
		buf_printf(out, "#\n%-9s  %-28s %12s %12s %15s  %-8s %s\n", "# Verdict", "Metric",
			   "Before", "After", "Change", "p", "Since");
	for (size_t i = 0; i < s->nsteps; i++)
		text_step(out, s, &s->step[i]);
	if (!s->nsteps)
		buf_printf(out, "# no change of level in %zu series\n", s->nseries - s->ntooshort);
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

static json_t *json_text(const char *s)
{
	json_t *j = s ? json_string(s) : NULL;

	return j ? j : json_null();
}

static json_t *json_step(const struct gate_series *s, const struct gate_step *x)
{
	const struct gate_history_entry *at = s->history->entry[x->entry];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:f}", "verdict",
			 word_of(s, x), "rule", json_text(x->rule->name), "measures",
			 json_text(x->rule->key), "function", json_text(x->name), "dso",
			 json_text(x->dso), "mode", json_text(x->mode), "label",
			 json_text(at->label), "file", json_text(at->file), "entry",
			 (json_int_t)x->entry, "before", x->before, "after", x->after, "p", x->p);
}

int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	json_t *steps = json_array(), *entries = json_array(), *j;
	char *text;

	for (size_t i = 0; i < s->history->n; i++) {
		const struct gate_history_entry *x = s->history->entry[i];

		json_array_append_new(entries,
				      json_pack("{s:o, s:o, s:o, s:i}", "file", json_text(x->file),
						"time", json_text(x->time), "label",
						json_text(x->label), "runs", (int)x->runs));
	}
	for (size_t i = 0; i < s->nsteps; i++)
		json_array_append_new(steps, json_step(s, &s->step[i]));
	j = json_pack("{s:i, s:o, s:i, s:I, s:I, s:o, s:o}", "version", 1, "history",
		      json_text(dir), "exit_status", gate_series_exit_status(s), "series",
		      (json_int_t)s->nseries, "too_short", (json_int_t)s->ntooshort, "entries",
		      entries, "changes", steps);
	text = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) : NULL;
	if (text)
		buf_printf(out, "%s\n", text);
	free(text);
	json_decref(j);
	return text && !out->failed ? 0 : err_set(e, ENOMEM, "out of memory for the report");
}
