/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/series.h"

#include "base/array.h"
#include "base/cleanup.h"

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
	size_t cap, lines_cap; /* elements that s->step and s->line have room for */
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

/* Returns whether a change is at least the rule's threshold, which may be relative to what was before. */
static bool is_large(const struct gate_rule *r, double before, double change)
{
	const struct stats_rule rule = gate_rule_stats(r, before, 0);

	return fabs(change) >= stats_in_values(&rule, before, rule.min_effect);
}

/* Which change of a series is judged, against which level. */
struct level {
	double value;
	size_t at; /* its first value */
};

/* The levels since the last step: the lowest and the highest are what a creeping change is measured by. */
struct levels {
	struct level last, low, high;
};

static void restart(struct levels *l, const struct level *now)
{
	l->last = l->low = l->high = *now;
}

/*
 * Judges the change to the level `now`. Returns whether it is a step: by itself, or because smaller ones have added up;
 * then *from is the level that it is measured by.
 */
static bool is_step(const struct gate_rule *r, const struct levels *l, const struct level *now,
		    struct level *from, bool *crept)
{
	*from = l->last;
	*crept = false;
	if (is_large(r, from->value, now->value - from->value))
		return true;
	*from = now->value > l->last.value ? l->low : l->high;
	*crept = true;
	return is_large(r, from->value, now->value - from->value);
}

static void follow(struct levels *l, const struct level *now)
{
	l->last = *now;
	if (now->value < l->low.value)
		l->low = *now;
	if (now->value > l->high.value)
		l->high = *now;
}

/* Calls found() for each step of a series; a value other than 0 ends it and is returned. */
static int each_step(const struct gate_line *l,
		     int (*found)(void *ctx, const struct gate_line *l, const struct gate_step *x,
				  size_t at),
		     void *ctx)
{
	struct levels levels;
	int ret = 0;

	if (l->nchanges)
		restart(&levels, &(struct level){ l->change[0].before, 0 });
	for (size_t i = 0; i < l->nchanges && !ret; i++) {
		const struct stats_change *c = &l->change[i];
		const struct level now = { c->after, c->at };
		struct level from;
		bool crept;

		/* A change of spread alone may lie between; then this is the level beside it. */
		levels.last.value = c->before;
		if (!is_step(l->rule, &levels, &now, &from, &crept)) {
			follow(&levels, &now);
			continue;
		}
		const struct gate_step step = {
			.rule = l->rule,
			.name = l->name,
			.dso = l->dso,
			.mode = l->mode,
			.entry = l->entry[c->at],
			.before = from.value,
			.after = now.value,
			.p = c->p,
			.worse = l->rule->worse == STATS_EITHER ||
				 (l->rule->worse == STATS_LOWER ? now.value < from.value
								: now.value > from.value),
			.crept = crept,
			.gradual = c->gradual,
			.from = l->entry[from.at],
		};

		ret = found(ctx, l, &step, c->at);
		restart(&levels, &now);
	}
	return ret;
}

/* Returns the options for one of `of` series of a rule, each of which gets its part of alpha. */
static struct stats_change_options options_for(const struct find *f, size_t of)
{
	return (struct stats_change_options){
		.alpha = fmin(STATS_CHANGE_ALPHA, GATE_SERIES_ALPHA / (double)of),
		.shuffles = (unsigned int)fmin(SHUFFLES_MAX, STATS_CHANGE_SHUFFLES * (double)of),
		.seed = f->seed,
		.levels = true,
		.dependent = true,
	};
}

/* A look at a series as it was some entries ago. */
struct series_look {
	struct find *f;
	const struct stats_change_options *opt;
	size_t near; /* the value at which a step is looked for */
	bool seen;
};

static int is_near(void *ctx, const struct gate_line *l, const struct gate_step *x, size_t at)
{
	struct series_look *look = ctx;

	(void)l;
	(void)x;
	look->seen |= at + GATE_SERIES_NEAR >= look->near && at <= look->near + GATE_SERIES_NEAR;
	return 0;
}

/* Finds out whether a step at value `at` could be seen GATE_SERIES_LOOKS entries ago. Returns 0 or -errno. */
static int was_seen(struct series_look *look, const struct gate_line *l, size_t at)
{
	struct gate_line before = *l;
	int ret;

	look->near = at;
	look->seen = false;
	before.n = l->n > GATE_SERIES_LOOKS ? l->n - GATE_SERIES_LOOKS : 0;
	if (before.n < 2 * STATS_CHANGE_SEGMENT)
		return 0;
	ret = stats_changes(before.value, before.n, look->opt, before.change, &before.nchanges,
			    look->f->e);
	return ret ? ret : each_step(&before, is_near, look);
}

static int keep_step(void *ctx, const struct gate_line *l, const struct gate_step *x, size_t at)
{
	struct series_look *look = ctx;
	struct gate_step step = *x;
	int ret = 0;

	if (step.worse && step.rule->fail) {
		ret = was_seen(look, l, at);
		step.fresh = !look->seen;
	}
	return ret ? ret : add_step(look->f, &step);
}

static int find_steps(struct find *f, const struct series_line *l, const struct gate_step *like,
		      size_t of)
{
	const struct stats_change_options opt = options_for(f, of);
	struct series_look look = { .f = f, .opt = &opt };
	struct gate_line *line;
	int ret;

	if (ARRAY_ROOM(f->s->line, f->s->nseries, f->lines_cap))
		return no_memory(f);
	line = &f->s->line[f->s->nseries];
	*line = (struct gate_line){ .rule = like->rule,
				    .name = like->name,
				    .dso = like->dso,
				    .mode = like->mode,
				    .value = calloc(l->n + 1, sizeof(*line->value)),
				    .entry = calloc(l->n + 1, sizeof(*line->entry)),
				    .n = l->n };
	f->s->nseries++;
	if (!line->value || !line->entry)
		return no_memory(f);
	memcpy(line->value, l->value, l->n * sizeof(*l->value));
	memcpy(line->entry, l->entry, l->n * sizeof(*l->entry));
	line->blind = !stats_change_is_possible(l->n, opt.alpha);
	if (line->blind) {
		f->s->nblind++;
		f->s->unsure |= like->rule->fail;
		return 0;
	}
	ret = stats_changes(line->value, line->n, &opt, line->change, &line->nchanges, f->e);
	return ret ? ret : each_step(line, keep_step, &look);
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
	const struct gate_history_value *value; /* value in the first entry that has it */
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

#define FOLLOWS 0.35 /* most that a cause may leave of a change, as a part of what it explains */

/* Returns whether the step of one function's share is what the step of another one makes of it. */
static bool follows(const struct gate_step *x, const struct gate_step *cause)
{
	double factor = (1 - cause->after) / (1 - cause->before);
	double explained = (factor - 1) * x->before, own = x->after - factor * x->before;

	/* A function with most of the weight may have changed itself. */
	return cause->before < 0.5 && cause->after < 1 &&
	       (x->after - x->before) * (cause->after - cause->before) < 0 &&
	       fabs(own) <= FOLLOWS * fabs(explained) && !is_large(x->rule, x->before, own);
}

static double size_of(const struct gate_step *x)
{
	return fabs(x->after - x->before);
}

/* Returns whether the step y is large enough to explain x, which is what it makes of x's share. */
static bool explains(const struct gate_step *y, const struct gate_step *x)
{
	return size_of(y) >= 0.999 * size_of(x) && follows(x, y);
}

/*
 * Returns whether y may be why x came: a larger step, of another function, at about the same entry. Two steps that explain
 * each other, as where weight moved between two functions, explain nothing.
 */
static bool may_cause(const struct gate_step *y, const struct gate_step *x)
{
	size_t apart = x->entry > y->entry ? x->entry - y->entry : y->entry - x->entry;

	return y != x && y->name && y->rule == x->rule && apart <= GATE_SERIES_NEAR &&
	       explains(y, x) && !explains(x, y);
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
	if (size_of(x) != size_of(y))
		return size_of(x) > size_of(y) ? -1 : 1;
	return x->name && y->name ? strcmp(x->name, y->name) : 0;
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
		f.s->failed |= !strcmp(gate_step_word(f.s, &f.s->step[i]), "fail");
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
	for (size_t i = 0; i < s->nseries; i++) {
		free(s->line[i].value);
		free(s->line[i].entry);
	}
	free(s->line);
	free(s->step);
	free(s);
}

int gate_series_exit_status(const struct gate_series *s)
{
	if (s->failed)
		return 1;
	return s->unsure || s->nblind == s->nseries ? 3 : 0;
}

const char *gate_step_word(const struct gate_series *s, const struct gate_step *x)
{
	if (x->because)
		return "follows";
	if (!x->worse)
		return "better";
	if (x->accepted)
		return "accepted";
	if (!x->rule->fail)
		return "warn";
	return s->recent && (x->fresh || x->entry + s->recent >= s->history->n) ? "fail" : "older";
}
