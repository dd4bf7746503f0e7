/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/diff/diff.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/texts.h"
#include "profile/analyse/stacks/comparable.h"
#include "profile/compare/stats/share.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct diff_private {
	struct diff_options opt;
	unsigned int nruns, added;
	struct diff_run *run;
	struct texts texts;
	struct table key;    /* struct identity of each row */
	struct table cloned; /* by stack: names that are those of clones in some run, as pointers */
	double *share;	     /* for each key nruns of self, of children, and of counts */
	size_t share_cap;
	struct buf text;	 /* a stack's name while it is made */
	struct diff_calls calls; /* all stacks, with opt.calls */
};

#define PARTS 3u /* numbers of a row for each run: self, children, count */

/* -- rows ---------------------------------------------------------------------------------- */

static int make_room(struct diff_private *v)
{
	return ARRAY_FIT_ZERO(v->share, (v->key.n + 1) * PARTS * v->nruns, v->share_cap);
}

static double *self_of(const struct diff_private *v, uint32_t row)
{
	return v->share + (size_t)row * PARTS * v->nruns + v->added;
}

static double *children_of(const struct diff_private *v, uint32_t row)
{
	return self_of(v, row) + v->nruns;
}

/* Adds what a stack counts to the number that is printed beside a share. */
static void count_stack(const struct diff_private *v, uint32_t row,
			const struct stackset_stack *stack)
{
	*(children_of(v, row) + v->nruns) +=
		(double)(v->run[v->added].counted ? stack->weight : stack->samples);
}

static int row_of(struct diff_private *v, const char *name, const char *dso, uint8_t mode,
		  uint32_t *out)
{
	struct identity k = { texts_add(&v->texts, name), texts_add(&v->texts, dso), mode };
	bool fresh;

	if (!k.name || !k.dso || make_room(v) < 0)
		return -ENOMEM;
	return table_add(&v->key, identity_hash(&k), &k, out, &fresh);
}

/* -- by symbol ------------------------------------------------------------------------------ */

#define NO_ROW UINT32_MAX

struct by_func {
	uint32_t *row;	 /* for each function and mode */
	uint32_t *stamp; /* for each row: the last stack (+ 1) that counted for it */
	size_t cap;
};

static int func_row(struct diff_private *v, const struct identity *id, struct by_func *b,
		    uint32_t func, uint32_t *out)
{
	uint32_t *known = &b->row[(size_t)func * STACKSET_MODES + id->mode];

	if (*known == NO_ROW && row_of(v, id->name, id->dso, id->mode, known) < 0)
		return -ENOMEM;
	*out = *known;
	return ARRAY_FIT_ZERO(b->stamp, (size_t)*out + 1, b->cap);
}

static int add_functions(struct diff_private *v, const struct identity_names *names,
			 struct by_func *b, uint32_t index)
{
	const struct stackset_stack *stack = &names->set->stack[index];

	for (uint32_t i = 0; i < stack->n; i++) {
		uint32_t func = names->set->frame[stack->frame[i]].func, row;
		const struct identity id = identity_of(names, stack, func);

		/* Functions that are not chosen have no row; the shares are still of all. */
		if (names->set->func[func].hidden)
			continue;
		if (func_row(v, &id, b, func, &row) < 0)
			return -ENOMEM;
		if (i == 0)
			*self_of(v, row) += (double)stack->weight;
		if (b->stamp[row] != index + 1)
			*children_of(v, row) += (double)stack->weight;
		if (v->opt.by_children ? b->stamp[row] != index + 1 : i == 0)
			count_stack(v, row, stack);
		b->stamp[row] = index + 1;
	}
	return 0;
}

static int add_by_symbol(struct diff_private *v, const struct identity_names *names)
{
	const struct stackset *s = names->set;
	cleanup_free uint32_t *row = NULL, *stamp = NULL;
	size_t n = s->nfuncs * STACKSET_MODES;
	struct by_func b = { 0 };
	int ret = 0;

	row = reallocarray(NULL, n ? n : 1, sizeof(*row));
	if (!row)
		return -ENOMEM;
	memset(row, 0xff, n * sizeof(*row)); /* NO_ROW */
	b.row = row;
	for (uint32_t i = 0; i < s->nstacks && !ret; i++)
		if (!v->opt.no_idle || s->stack[i].mode != STACKSET_IDLE)
			ret = add_functions(v, names, &b, i);
	stamp = b.stamp;
	return ret;
}

/* -- by stack -------------------------------------------------------------------------------- */

/* Notes which functions the set knows by the name of a clone. */
static int note_clones(struct diff_private *v, const struct identity_names *names)
{
	bool fresh;

	for (size_t i = 0; i < names->set->nfuncs; i++) {
		const char *name = names->clone[i] ? texts_add(&v->texts, names->name[i]) : "";

		if (!name || (*name && table_add_number(&v->cloned, (uintptr_t)name, &fresh)))
			return -ENOMEM;
	}
	return 0;
}

static int add_by_stack(struct diff_private *v, const struct identity_names *names)
{
	const struct stackset *s = names->set;

	if (note_clones(v, names) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->nstacks; i++) {
		const struct stackset_stack *stack = &s->stack[i];
		uint32_t row;

		if ((v->opt.no_idle && stack->mode == STACKSET_IDLE) || !stack->n ||
		    s->func[s->frame[stack->frame[0]].func].hidden)
			continue;
		v->text.len = 0;
		for (uint32_t k = stack->n; k-- > 0;) {
			const char *name = names->name[s->frame[stack->frame[k]].func];

			buf_add(&v->text, name, strlen(name));
			buf_u8(&v->text, k ? ';' : '\0');
		}
		if (v->text.failed ||
		    row_of(v, (const char *)v->text.data, "",
			   identity_of(names, stack, s->frame[stack->frame[0]].func).mode,
			   &row) < 0)
			return -ENOMEM;
		*self_of(v, row) += (double)stack->weight;
		*children_of(v, row) += (double)stack->weight;
		count_stack(v, row, stack);
	}
	return 0;
}

/* Returns a stack without the frames of functions with clones that repeat their callers. NULL: no memory. */
static const char *without_parts(struct diff_private *v, const char *stack)
{
	const char *before = NULL;

	v->text.len = 0;
	for (size_t len; *stack; stack += len + (stack[len] == ';')) {
		cleanup_free char *frame = NULL;
		const char *name;

		len = strcspn(stack, ";");
		frame = strndup(stack, len);
		name = frame ? texts_add(&v->texts, frame) : NULL;
		if (!name)
			return NULL;
		if (name == before && table_has_number(&v->cloned, (uintptr_t)name))
			continue;
		if (before)
			buf_u8(&v->text, ';');
		buf_add(&v->text, name, len);
		before = name;
	}
	buf_u8(&v->text, '\0');
	return v->text.failed ? NULL : texts_add(&v->texts, (const char *)v->text.data);
}

/*
 * Adds up the rows of stacks that are the same but for which clone or part of a function calls another of its own: that
 * depends on the compiler. Calls that a function without clones makes of itself stay.
 */
static int merge_parts(struct diff_private *v)
{
	struct table merged = TABLE_OF(struct identity, identity_equal);
	const size_t numbers = (size_t)PARTS * v->nruns;
	int ret = 0;

	for (size_t i = 0; i < v->key.n && !ret; i++) {
		struct identity k = ((struct identity *)v->key.item)[i];
		const double *from = v->share + i * numbers;
		uint32_t at;
		bool fresh;

		k.name = without_parts(v, k.name);
		ret = k.name ? table_add(&merged, identity_hash(&k), &k, &at, &fresh) : -ENOMEM;
		if (ret || at == i)
			continue;
		/* Rows before i were moved already, so that row `at` is free or one of those that were added up. */
		for (size_t n = 0; n < numbers; n++)
			v->share[at * numbers + n] =
				from[n] + (fresh ? 0 : v->share[at * numbers + n]);
	}
	table_deinit(&v->key);
	v->key = merged;
	return ret;
}

/* -- renamed functions ------------------------------------------------------------------------- */

#define LEAST_SHARE 0.005 /* share below which a function may be without samples by chance */

static int add_lineage(struct diff *d, const struct identity_names *names, double weight)
{
	const struct diff_private *v = d->priv;
	const bool head = v->added >= d->design.nbase;
	const double runs = head ? d->design.nhead : d->design.nbase;
	cleanup_free uint32_t *id = calloc(names->set->nfuncs + 1, sizeof(*id));

	return !id ? -ENOMEM
		   : lineage_add_set(&d->lineage, head ? LINEAGE_HEAD : LINEAGE_BASE, names,
				     1 / weight / runs, id);
}

/* Keeps the stacks of a run for trees. */
static int add_calls(struct diff *d, const struct identity_names *names, double weight)
{
	struct diff_private *v = d->priv;
	const bool head = v->added >= d->design.nbase;
	const double runs = head ? d->design.nhead : d->design.nbase;

	for (uint32_t i = 0; i < names->set->nstacks; i++) {
		const struct stackset_stack *s = &names->set->stack[i];
		const struct diff_stack with = { .head = head,
						 .share = (double)s->weight / weight / runs };

		if (v->opt.no_idle && s->mode == STACKSET_IDLE)
			continue;
		if (diff_calls_add(&v->calls, names, &v->texts, i, &with) < 0)
			return -ENOMEM;
	}
	return 0;
}

bool diff_has_chains(const struct diff *d)
{
	return d->priv->calls.chains;
}

int diff_row_tree(const struct diff *d, const struct diff_row *row, enum diff_direction way,
		  double min_share, struct diff_tree *out, struct err *e)
{
	const struct identity id = { row->name, row->dso, row->mode_id };

	return diff_calls_tree(&d->priv->calls, &id, way, min_share, out) ? err_nomem(e) : 0;
}

/* -- interface -------------------------------------------------------------------------------- */

int diff_create(struct diff **out, unsigned int na, unsigned int nb, const struct diff_options *opt,
		struct err *e)
{
	struct diff *d = calloc(1, sizeof(*d));
	struct diff_private *v = calloc(1, sizeof(*v));
	const struct stats_layout layout = { .nbase = na, .nhead = nb, .seed = opt->seed };
	int ret;

	if (!d || !v) {
		free(d);
		free(v);
		return err_nomem(e);
	}
	d->priv = v;
	lineage_init(&d->lineage);
	diff_calls_init(&v->calls);
	v->opt = *opt;
	v->nruns = na + nb;
	v->key = TABLE_OF(struct identity, identity_equal);
	ret = stats_design_init(&d->design, &layout, e);
	if (!ret) {
		v->run = calloc(v->nruns, sizeof(*v->run));
		d->run = v->run;
		if (!v->run)
			ret = err_nomem(e);
	}
	if (ret)
		diff_destroy(d);
	else
		*out = d;
	return ret;
}

void diff_destroy(struct diff *d)
{
	if (!d)
		return;
	stats_design_deinit(&d->design);
	table_deinit(&d->priv->key);
	table_deinit(&d->priv->cloned);
	diff_calls_deinit(&d->priv->calls);
	lineage_deinit(&d->lineage);
	texts_deinit(&d->priv->texts);
	buf_deinit(&d->priv->text);
	free(d->priv->share);
	free(d->priv->run);
	free(d->priv);
	free(d->row);
	free(d);
}

bool diff_is_counted(const struct diff *d)
{
	for (unsigned int i = 0; i < d->priv->nruns; i++)
		if (!d->run[i].counted)
			return false;
	return true;
}

/* Returns the number of the run of the same side that this one is a copy of; 0: none. */
static unsigned int copy_of(const struct diff *d, const struct diff_run *run)
{
	const struct diff_private *v = d->priv;
	const unsigned int from = v->added < d->design.nbase ? 0 : d->design.nbase;

	for (unsigned int i = from; i < v->added && !run->counted; i++)
		if (v->run[i].contents == run->contents)
			return i - from + 1;
	return 0;
}

int diff_add(struct diff *d, const struct stackset *s, struct err *e)
{
	struct diff_private *v = d->priv;
	struct identity_names names;
	struct diff_run *run;
	int ret;

	if (v->added == v->nruns)
		return err_set(e, EINVAL, "more than %u runs", v->nruns);
	run = &v->run[v->added];
	run->counted = s->counted;
	run->contents = comparable_contents(s);
	run->copy_of = copy_of(d, run);
	run->guest = texts_add(&v->texts, s->guest ? s->guest : "");
	if (!run->guest)
		return err_nomem(e);
	for (size_t i = 0; i < s->nstacks; i++) {
		if (v->opt.no_idle && s->stack[i].mode == STACKSET_IDLE)
			continue;
		run->samples += s->stack[i].samples;
		run->weight += s->stack[i].weight;
	}
	if (!run->weight)
		return err_set(e, ENODATA, "it has no samples that count");
	ret = identity_names_init(&names, s);
	if (!ret)
		ret = v->opt.stacks ? add_by_stack(v, &names) : add_by_symbol(v, &names);
	if (!ret && !v->opt.stacks)
		ret = add_lineage(d, &names, (double)run->weight);
	if (!ret && v->opt.calls)
		ret = add_calls(d, &names, (double)run->weight);
	identity_names_deinit(&names);
	if (ret)
		return err_set(e, ENOMEM, "out of memory after %zu rows", v->key.n);
	for (uint32_t i = 0; i < v->key.n; i++) {
		*self_of(v, i) /= (double)run->weight;
		*children_of(v, i) /= (double)run->weight;
	}
	v->added++;
	return 0;
}

static void fill_row(struct diff *d, struct diff_row *r, const struct identity *k,
		     const double *share)
{
	const struct diff_private *v = d->priv;
	unsigned int na = d->design.nbase, nb = d->design.nhead;
	const double *x;

	*r = (struct diff_row){ .mode = identity_mode_name(k->mode),
				.name = k->name,
				.dso = k->dso,
				.mode_id = k->mode,
				.count = share + 2 * (size_t)v->nruns,
				.self = share,
				.children = share + v->nruns,
				.q = 1 };
	for (unsigned int i = 0; i < na + nb; i++)
		*(i < na ? &r->count_a : &r->count_b) += r->count[i];
	r->self_a = stats_mean(r->self, na);
	r->self_b = stats_mean(r->self + na, nb);
	r->children_a = stats_mean(r->children, na);
	r->children_b = stats_mean(r->children + na, nb);
	x = v->opt.by_children ? r->children : r->self;
	stats_compare_means(&d->design, x, x + na, &r->stat);
	if (na == 1 && nb == 1 && !diff_is_counted(d))
		r->noise = share_noise(x[0], (double)v->run[0].samples, x[1],
				       (double)v->run[1].samples);
}

static int compare_rows(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double dx = fabs(x->stat.diff), dy = fabs(y->stat.diff);
	double sx = x->children_a + x->children_b, sy = y->children_a + y->children_b;
	int c;

	if (dx != dy)
		return dx > dy ? -1 : 1;
	if (sx != sy)
		return sx > sy ? -1 : 1;
	c = strcmp(x->name, y->name);
	c = c ? c : strcmp(x->dso, y->dso);
	return c ? c : strcmp(x->mode, y->mode);
}

static int false_discoveries(struct diff *d)
{
	cleanup_free double *p = calloc(d->nrows + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < d->nrows; i++)
		p[i] = d->row[i].stat.p;
	if (stats_fdr(p, d->nrows, p) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < d->nrows; i++)
		d->row[i].q = p[i];
	return 0;
}

int diff_finish(struct diff *d, struct err *e)
{
	struct diff_private *v = d->priv;
	const struct identity *key;

	if (v->added != v->nruns)
		return err_set(e, EINVAL, "%u of %u runs were given", v->added, v->nruns);
	if (v->cloned.n && merge_parts(v) < 0)
		return err_set(e, ENOMEM, "out of memory for %zu rows", v->key.n);
	key = v->key.item;
	d->row = calloc(v->key.n ? v->key.n : 1, sizeof(*d->row));
	if (!d->row)
		return err_set(e, ENOMEM, "out of memory for %zu rows", v->key.n);
	for (size_t i = 0; i < v->key.n; i++) {
		const double *share = v->share + i * PARTS * v->nruns;

		/* By what both sides have together, which says nothing of their difference. */
		if (stats_mean(share + v->nruns, v->nruns) < v->opt.min_share)
			d->left_out++;
		else
			fill_row(d, &d->row[d->nrows++], &key[i], share);
	}
	if (lineage_find(&d->lineage, diff_is_counted(d) ? 0 : LEAST_SHARE) < 0)
		return err_set(e, ENOMEM, "out of memory for %zu rows", d->nrows);
	if (d->design.deals.deal && false_discoveries(d) < 0)
		return err_set(e, ENOMEM, "out of memory for %zu rows", d->nrows);
	qsort(d->row, d->nrows, sizeof(*d->row), compare_rows);
	return 0;
}
