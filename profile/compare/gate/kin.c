/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that were renamed, inlined or split between base and head: what each run has when they are the same.
 */
#include "profile/compare/gate/private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELATIONS 50u /* relations in a report */

/* A run while its symbols change. */
struct change {
	const struct gate_kin *kin;
	const struct gate_run *run;
	enum lineage_side side;
	uint32_t *number; /* for each symbol: its number in the lineage */
	struct gate_symbol *symbol;
};

/* -- finding ---------------------------------------------------------------------------------------- */

static int number_symbols(struct lineage *l, const struct gate_run *run, uint32_t *number)
{
	int ret = 0;

	for (size_t i = 0; i < run->nsymbols && !ret; i++) {
		const struct identity id = { run->symbol[i].name, run->symbol[i].dso,
					     run->symbol[i].mode };

		ret = lineage_function(l, &id, &number[i]);
	}
	return ret;
}

/* Adds a run to the lineage, in shares of all runs of its side. */
static int add_run(struct lineage *l, enum lineage_side side, const struct gate_run *run,
		   unsigned int runs)
{
	cleanup_free uint32_t *number = calloc(run->nsymbols + 1, sizeof(*number));
	const double one = 1 / run->weight / runs;
	int ret = number ? number_symbols(l, run, number) : -ENOMEM;

	for (size_t i = 0; i < run->nsymbols && !ret; i++)
		lineage_add(l, side, number[i], one * run->symbol[i].self,
			    one * run->symbol[i].children);
	for (size_t i = 0; i < run->ncalls && !ret; i++) {
		const struct lineage_call *c = &run->call[i];

		ret = lineage_add_call(l, side,
				       &(struct lineage_call){ number[c->caller], number[c->callee],
							       one * c->self, one * c->children });
	}
	return ret;
}

/* -- what a run has then -------------------------------------------------------------------------------- */

/* Passes what dissolved functions have been given on to their callers. Returns whether a function was given something. */
static bool pass_on(const struct change *x, const double *whole, const double *now, double *next)
{
	bool any = false;

	for (size_t i = 0; i < x->run->ncalls; i++) {
		const struct lineage_call *c = &x->run->call[i];

		if (now[c->callee] > 0 && c->children > 0) {
			next[c->caller] += now[c->callee] * c->children / whole[c->callee];
			any = true;
		}
	}
	return any;
}

/*
 * Moves the weight that dissolved functions have below their callers to these, or, where a caller is dissolved as well, to
 * its callers: one level of callers at a time. A dissolved function without callers keeps what it is given.
 */
static int move_weights(struct change *x)
{
	const struct gate_run *r = x->run;
	const struct lineage *l = &x->kin->lineage;
	cleanup_free double *room = calloc(3 * r->nsymbols + 1, sizeof(*room));
	double *whole = room, *now = room + r->nsymbols, *next = now + r->nsymbols;
	bool any = false;

	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < r->ncalls; i++) {
		const struct lineage_call *c = &r->call[i];

		whole[c->callee] += c->children;
		if (!(c->self > 0) ||
		    !lineage_is_dissolved(l, x->side, x->number[c->caller], x->number[c->callee]))
			continue;
		x->symbol[c->callee].self -= c->self;
		now[c->caller] += c->self;
		any = true;
	}
	for (unsigned int depth = 0; any; depth++) {
		double *done = now;

		for (size_t i = 0; i < r->nsymbols; i++)
			if (!l->function[x->number[i]].dissolved || !(whole[i] > 0) ||
			    depth == LINEAGE_DEPTH) {
				x->symbol[i].self += now[i];
				now[i] = 0;
			}
		any = pass_on(x, whole, now, next);
		memset(done, 0, r->nsymbols * sizeof(*done));
		now = next;
		next = done;
	}
	return 0;
}

/* Renames the base's functions, and leaves out those whose weight is their callers'. */
static int settle_symbols(struct change *x, struct gate_run *keep, size_t *n)
{
	const struct lineage *l = &x->kin->lineage;

	*n = 0;
	for (size_t i = 0; i < x->run->nsymbols; i++) {
		const struct lineage_function *f = &l->function[x->number[i]];
		struct gate_symbol s = x->symbol[i];

		if (f->dissolved && s.self <= 1e-9 * x->run->weight)
			continue;
		s.note = gate_kin_note(l, keep, x->number[i]);
		if (f->same != LINEAGE_NONE && x->side == LINEAGE_BASE) {
			s.name = gate_run_keep(keep, l->function[f->same].id.name);
			s.dso = gate_run_keep(keep, l->function[f->same].id.dso);
			if (!s.name || !s.dso)
				return -ENOMEM;
		}
		x->symbol[(*n)++] = s;
	}
	return 0;
}

static int change_run(struct gate_kin *k, enum lineage_side side, struct gate_run *run,
		      unsigned int at)
{
	struct change x = { .kin = k,
			    .run = run,
			    .side = side,
			    .number = calloc(run->nsymbols + 1, sizeof(*x.number)),
			    .symbol = calloc(run->nsymbols + 1, sizeof(*x.symbol)) };
	int ret = x.number && x.symbol ? number_symbols(&k->lineage, run, x.number) : -ENOMEM;

	k->symbol[at] = x.symbol;
	if (!ret) {
		memcpy(x.symbol, run->symbol, run->nsymbols * sizeof(*x.symbol));
		ret = move_weights(&x);
		ret = ret ? ret : settle_symbols(&x, run, &k->nsymbols[at]);
	}
	free(x.number);
	return ret;
}

int gate_kin_find(struct gate_eval *v)
{
	const struct gate *g = v->gate;
	struct gate_kin *k = &v->kin;
	const unsigned int runs = g->n[GATE_BASE] + g->n[GATE_HEAD];
	int ret = 0;

	lineage_init(&k->lineage);
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s] && !ret; i++)
			ret = add_run(&k->lineage, (enum lineage_side)s, g->run[s][i], g->n[s]);
	ret = ret ? ret : lineage_find(&k->lineage, GATE_RULE_MIN_SHARE);
	if (ret || !k->lineage.changes)
		return ret;
	k->symbol = calloc(runs, sizeof(*k->symbol));
	k->nsymbols = calloc(runs, sizeof(*k->nsymbols));
	if (!k->symbol || !k->nsymbols)
		return -ENOMEM;
	for (unsigned int s = 0, at = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < g->n[s] && !ret; i++)
			ret = change_run(k, (enum lineage_side)s, g->run[s][i], at++);
	return ret ? ret : gate_kin_report(v->report, &k->lineage, g->run[GATE_HEAD][0]);
}

void gate_kin_deinit(struct gate_kin *k, unsigned int runs)
{
	for (unsigned int i = 0; k->symbol && i < runs; i++)
		free(k->symbol[i]);
	free(k->symbol);
	free(k->nsymbols);
	lineage_deinit(&k->lineage);
}

/* -- reports ----------------------------------------------------------------------------------- */

const char *gate_kin_note(const struct lineage *l, struct gate_run *run, uint32_t function)
{
	const char *was = NULL, *with = NULL, *how = "";
	char text[256];

	for (size_t i = 0; i < l->nevents; i++) {
		const struct lineage_event *e = &l->event[i];

		if (e->kind == LINEAGE_RENAMED && (e->function == function || e->other == function))
			was = l->function[e->function].id.name;
		if ((e->kind == LINEAGE_INLINED || e->kind == LINEAGE_SPLIT) &&
		    e->other == function && !with) {
			with = l->function[e->function].id.name;
			how = e->kind == LINEAGE_INLINED ? "inlined" : "split off";
		}
	}
	if (!was && !with)
		return NULL;
	snprintf(text, sizeof(text), "%s%.100s%s%s%.80s%s%s%s", was ? "which was " : "",
		 was ? was : "", was && with ? ", " : "", with ? "with " : "", with ? with : "",
		 with ? " (" : "", how, with ? ")" : "");
	return gate_run_keep(run, text);
}

int gate_kin_report(struct gate_report *r, const struct lineage *l, struct gate_run *run)
{
	r->relation = calloc(RELATIONS, sizeof(*r->relation));
	if (!r->relation)
		return -ENOMEM;
	for (size_t i = 0; i < l->nevents && r->nrelations < RELATIONS; i++) {
		const struct lineage_event *e = &l->event[i];
		struct gate_relation *x = &r->relation[r->nrelations++];

		*x = (struct gate_relation){
			.kind = e->kind,
			.function = gate_run_keep(run, lineage_name(l, e, e->function)),
			.other = gate_run_keep(run, lineage_name(l, e, e->other)),
			.base = e->base,
			.head = e->head,
		};
		if (!x->function || !x->other)
			return -ENOMEM;
	}
	return 0;
}
