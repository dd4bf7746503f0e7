/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/run.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/analyse/stacks/comparable.h"
#include "profile/analyse/stacks/identity.h"
#include "profile/compare/gate/metric.h"
#include "base/table.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int gate_symbol_compare(const struct gate_symbol *a, const struct gate_symbol *b)
{
	int c = strcmp(a->name, b->name);

	c = c ? c : strcmp(a->dso, b->dso);
	return c ? c : (int)a->mode - (int)b->mode;
}

static int compare_symbols(const void *a, const void *b)
{
	return gate_symbol_compare(a, b);
}

const char *gate_run_keep(struct gate_run *r, const char *text)
{
	cleanup_free char *clean = utf8_copy(text);

	return clean ? texts_add(&r->texts, clean) : NULL;
}

/* -- functions ------------------------------------------------------------------------------ */

struct build {
	struct gate_run *run;
	const struct stackset *set;
	struct identity_names names; /* the set's */
	struct gate_counting counting;
	struct table symbol; /* struct gate_symbol */
	struct table call;   /* struct lineage_call, by symbols as they came */
	uint32_t *of_func;   /* for each function and mode: index + 1 of its symbol */
	uint32_t *stamp;     /* for each symbol the last stack (+ 1) that counted for it */
	size_t stamps;
};

static bool equal_symbol(const void *a, const void *b, const void *ctx)
{
	const struct gate_symbol *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->mode == y->mode;
}

static bool equal_call(const void *a, const void *b, const void *ctx)
{
	const struct lineage_call *x = a, *y = b;

	(void)ctx;
	return x->caller == y->caller && x->callee == y->callee;
}

static int add_call(struct build *b, uint32_t caller, uint32_t callee, double self, double children)
{
	const struct lineage_call like = { .caller = caller, .callee = callee };
	struct lineage_call *c;
	uint32_t at;
	bool fresh;

	if (table_add(&b->call, table_mix(caller, callee), &like, &at, &fresh))
		return -ENOMEM;
	c = (struct lineage_call *)b->call.item + at;
	c->self += self;
	c->children += children;
	return 0;
}

/* Calls know symbols by their place in `before`; then by that in the run's order. */
static int order_calls(struct build *b, const struct gate_symbol *before)
{
	struct gate_run *r = b->run;
	cleanup_free uint32_t *now = calloc(r->nsymbols + 1, sizeof(*now));

	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < r->nsymbols; i++)
		now[i] =
			(uint32_t)((struct gate_symbol *)bsearch(&before[i], r->symbol, r->nsymbols,
								 sizeof(*before), compare_symbols) -
				   r->symbol);
	r->ncalls = b->call.n;
	r->call = take_ptr(b->call.item);
	for (size_t i = 0; i < r->ncalls; i++) {
		r->call[i].caller = now[r->call[i].caller];
		r->call[i].callee = now[r->call[i].callee];
	}
	return 0;
}

static int add_symbol(struct build *b, const struct identity *id, uint32_t *out)
{
	struct gate_symbol s = { .name = gate_run_keep(b->run, id->name),
				 .dso = gate_run_keep(b->run, id->dso),
				 .mode = id->mode };
	uint64_t hash = table_mix((uintptr_t)s.name, (uint64_t)(uintptr_t)s.dso << 2 | s.mode);
	bool fresh;

	if (!s.name || !s.dso || table_add(&b->symbol, hash, &s, out, &fresh))
		return -ENOMEM;
	return ARRAY_FIT_ZERO(b->stamp, b->symbol.n, b->stamps);
}

static int symbol_of(struct build *b, const struct stackset_stack *st, uint32_t func, uint32_t *out)
{
	const struct identity id = identity_of(&b->names, st, func);
	uint32_t *known = &b->of_func[(size_t)func * STACKSET_MODES + id.mode];
	int ret;

	if (!*known) {
		ret = add_symbol(b, &id, out);
		if (ret)
			return ret;
		*known = *out + 1;
	}
	*out = *known - 1;
	return 0;
}

static int add_stack(struct build *b, uint32_t index)
{
	const struct stackset_stack *st = &b->set->stack[index];
	double amount = gate_amount(&b->counting, st);
	uint32_t callee = 0;

	if (!(amount > 0))
		return 0;
	for (uint32_t i = 0; i < st->n; i++) {
		struct gate_symbol *s;
		uint32_t at;
		int ret = symbol_of(b, st, b->set->frame[st->frame[i]].func, &at);

		if (ret)
			return ret;
		s = (struct gate_symbol *)b->symbol.item + at;
		if (i == 0)
			s->self += amount;
		if (b->stamp[at] != index + 1)
			s->children += amount;
		b->stamp[at] = index + 1;
		if (i && at != callee && add_call(b, at, callee, i == 1 ? amount : 0, amount))
			return -ENOMEM;
		callee = at;
	}
	return 0;
}

static int add_symbols(struct gate_run *r, const struct stackset *s,
		       const struct gate_counting *counting)
{
	struct build b = {
		.run = r,
		.set = s,
		.counting = *counting,
		.symbol = TABLE_OF(struct gate_symbol, equal_symbol),
		.call = TABLE_OF(struct lineage_call, equal_call),
		.of_func = calloc(s->nfuncs * STACKSET_MODES + 1, sizeof(*b.of_func)),
	};
	int ret = identity_names_init(&b.names, s);

	ret = b.of_func ? ret : -ENOMEM;
	for (uint32_t i = 0; i < s->nstacks && !ret; i++)
		ret = add_stack(&b, i);
	if (!ret) {
		r->nsymbols = b.symbol.n;
		r->symbol = calloc(r->nsymbols + 1, sizeof(*r->symbol));
		ret = r->symbol ? 0 : -ENOMEM;
	}
	if (!ret && r->nsymbols) {
		memcpy(r->symbol, b.symbol.item, r->nsymbols * sizeof(*r->symbol));
		qsort(r->symbol, r->nsymbols, sizeof(*r->symbol), compare_symbols);
		ret = order_calls(&b, b.symbol.item);
	}
	table_deinit(&b.symbol);
	table_deinit(&b.call);
	identity_names_deinit(&b.names);
	free(b.of_func);
	free(b.stamp);
	return ret;
}

/* -- the run ---------------------------------------------------------------------------------- */

/* Adds up what /init and all that it started did; of counts without what ran beside it (stacks/work.h). */
static double work_of(const struct gate_run *r, const struct stackset *s, const uint8_t *of_stack)
{
	double work = 0;

	if (!r->phases.boot || !r->phases.span[PHASE_INIT].seen)
		return NAN;
	for (size_t i = 0; i < s->nsamples; i++) {
		const struct stackset_sample *x = &s->sample[i];

		if (phases_at(&r->phases, x->time_ns) >= PHASE_INIT &&
		    s->stack[x->stack].mode != STACKSET_IDLE &&
		    (!s->counted || of_stack[x->stack] == WORK_WORKLOAD))
			work += (double)x->weight;
	}
	return work;
}

static int keep_means(struct gate_run *r, const struct stackset *s)
{
	cleanup_free char *facts = comparable_facts(s->json);

	r->means = facts ? texts_add(&r->texts, facts) : NULL;
	r->contents = comparable_contents(s);
	r->counted = s->counted;
	return r->means ? 0 : -ENOMEM;
}

static int fill_facts(struct gate_run *r, const char *path, const struct stackset *s,
		      const struct gate_counting *counting)
{
	for (size_t i = 0; i < s->nstacks; i++) {
		double amount = gate_amount(counting, &s->stack[i]);

		r->weight += amount;
		r->samples += amount > 0 ? s->stack[i].samples : 0;
	}
	r->path = gate_run_keep(r, path);
	r->event = gate_run_keep(r, s->event);
	r->osrelease = gate_run_keep(r, s->osrelease);
	r->guest = gate_run_keep(r, s->guest ? s->guest : "");
	r->message = gate_run_keep(r, s->message);
	r->began_ns = s->first_ns;
	r->weight_is_ns = s->weight_is_ns;
	return r->path && r->event && r->osrelease && r->guest && r->message ? 0 : -ENOMEM;
}

/* Keeps the text of a member of the totals that describes a guest's failure. Returns 0 or -ENOMEM. */
static int keep_failure(struct gate_run *r, const json_t *totals, const char *key, const char **out)
{
	const json_t *o = json_object_get(totals, key);
	const char *text = json_string_value(json_object_get(o, "text"));

	*out = json_is_object(o) ? gate_run_keep(r, text && *text ? text : "unknown reason") : NULL;
	return json_is_object(o) && !*out ? -ENOMEM : 0;
}

/* Keeps what the totals have about the guest's command and failures. Returns 0 or -ENOMEM. */
static int keep_totals(struct gate_run *r, const json_t *totals)
{
	const char *command = json_string_value(json_object_get(totals, "command"));

	r->command = command ? gate_run_keep(r, command) : NULL;
	if (keep_failure(r, totals, "guest_panic", &r->panic) ||
	    keep_failure(r, totals, "guest_hang", &r->hang))
		return -ENOMEM;
	return command && !r->command ? -ENOMEM : 0;
}

static int measure(struct gate_run *r, const struct stackset *s, const struct gate_rules *rules,
		   const struct gate_counting *counting, struct err *e)
{
	struct gate_source src = { .set = s, .weight = r->weight, .counting = *counting };
	cleanup_free uint8_t *work = NULL;
	json_t *totals = gate_totals(s->json);
	int ret = phases_find(&r->phases, s, e);

	ret = ret ? ret : work_find(&work, s) ? err_nomem(e) : 0;
	src.work = work;
	r->work = ret ? NAN : work_of(r, s, work);
	ret = ret ? ret : keep_totals(r, totals);
	src.phases = r->phases;
	src.totals = totals;
	for (size_t i = 0; i < rules->n && !ret; i++) {
		char why[GATE_WHY];

		ret = gate_measure(&src, &rules->rule[i], &r->value[i], why, e);
		if (!ret && why[0]) {
			r->why[i] = gate_run_keep(r, why);
			ret = r->why[i] ? 0 : -ENOMEM;
		}
	}
	json_decref(totals);
	return ret;
}

int gate_run_make(struct gate_run **out, const char *path, const struct stackset *s,
		  const struct gate_rules *rules, struct err *e)
{
	struct gate_counting counting = gate_counting_of(rules, s);
	struct gate_run *r = calloc(1, sizeof(*r));
	struct err why = { 0 };
	int ret = -ENOMEM;

	if (r) {
		r->nrules = rules->n;
		r->value = calloc(rules->n + 1, sizeof(*r->value));
		r->why = calloc(rules->n + 1, sizeof(*r->why));
	}
	if (r && r->value && r->why)
		ret = fill_facts(r, path, s, &counting);
	ret = ret ? ret : keep_means(r, s);
	if (!ret && !(r->weight > 0))
		ret = err_set(&why, ENODATA, "%s",
			      s->nstacks ? "none of its samples count" : "it has no samples");
	ret = ret ? ret : add_symbols(r, s, &counting);
	ret = ret ? ret : measure(r, s, rules, &counting, &why);
	if (ret) {
		gate_run_destroy(r);
		return err_set(e, -ret, "%s: %s", path, why.code ? why.text : "out of memory");
	}
	*out = r;
	return 0;
}

int gate_run_load(struct gate_run **out, const char *path, const struct gate_rules *rules,
		  struct err *e)
{
	struct stackset_options opt = { 0 };
	struct stackset *s = NULL;
	int ret;

	opt.input = path;
	opt.keep_samples = true;
	ret = stackset_load(&s, &opt, e);
	ret = ret ? ret : gate_run_make(out, path, s, rules, e);
	stackset_destroy(s);
	return ret;
}

void gate_run_destroy(struct gate_run *r)
{
	if (!r)
		return;
	free(r->value);
	free(r->why);
	free(r->symbol);
	free(r->call);
	texts_deinit(&r->texts);
	free(r);
}
