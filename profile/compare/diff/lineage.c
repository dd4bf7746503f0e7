/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/diff/lineage.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE 0.5 /* least part of its callers, and of its callees, that a renamed function keeps */
#define WEIGHT_ALIKE 0.5     /* least ratio of the two weights of a renamed function */
#define WEIGHT_NAMED 0.1     /* likewise where the two names are similar */
#define NAMES_ALIKE 0.6	     /* least part of the longer name that similar names have in common */
#define NAME_BYTES 80u	     /* bytes of a name that are compared */
#define MOST_CANDIDATES 600u /* functions of each side that may have been renamed */
#define ROOM 2.0	     /* weight that moved: 1 / ROOM to ROOM times what the caller gained */
#define LEAST_CALL 0.1	     /* least weight of a single call, as a part of that gain */
#define SHOWN 0.05	     /* least weight of an event, as a part of what both functions have */
#define RECURSION 64u	     /* callers among which the function itself is searched for */
#define ROUNDS 8u	     /* functions that were renamed and call each other */

struct edge {
	uint32_t caller, callee;
	double self[LINEAGE_SIDES], children[LINEAGE_SIDES];
	bool dissolved[LINEAGE_SIDES];
};

/* Weight of a function below a surviving caller. */
struct flow {
	uint32_t caller, function;
	uint32_t edge; /* the call, where both sides have the function; else LINEAGE_NONE */
	double amount;
	bool accepted;
};

struct pair {
	uint32_t went, came;
	double score;
};

/* The calls by callee and by caller: [first[i], first[i + 1]) of order. */
struct adjacency {
	uint32_t *first, *order;
};

/* Amounts of one function's weight, by the function where they have got to. */
struct wave {
	uint32_t *function; /* n functions whose amount is not 0 */
	double *amount;	    /* for each function of the lineage */
	size_t n;
};

struct search {
	struct lineage *l;
	struct edge *edge;
	struct adjacency callers, callees; /* calls by callee, and by caller */
	double *mark;			   /* one for each function, and two buckets behind them */
	double min_share;
	struct flow *flow;
	size_t nflows, flow_cap;
	struct wave now, next, reached; /* empty but in spread() */
};

static bool equal_function(const void *a, const void *b, const void *ctx)
{
	const struct lineage_function *x = a, *y = b;

	return identity_equal(&x->id, &y->id, ctx);
}

static bool equal_edge(const void *a, const void *b, const void *ctx)
{
	const struct edge *x = a, *y = b;

	(void)ctx;
	return x->caller == y->caller && x->callee == y->callee;
}

void lineage_init(struct lineage *l)
{
	*l = (struct lineage){ .functions = TABLE_OF(struct lineage_function, equal_function),
			       .edges = TABLE_OF(struct edge, equal_edge) };
}

void lineage_deinit(struct lineage *l)
{
	table_deinit(&l->functions);
	table_deinit(&l->edges);
	texts_deinit(&l->texts);
	free(l->event);
	*l = (struct lineage){ 0 };
}

int lineage_function(struct lineage *l, const struct identity *id, uint32_t *out)
{
	struct lineage_function like = { .id = { texts_add(&l->texts, id->name),
						 texts_add(&l->texts, id->dso), id->mode },
					 .same = LINEAGE_NONE };
	bool fresh;

	if (!like.id.name || !like.id.dso ||
	    table_add(&l->functions, identity_hash(&like.id), &like, out, &fresh))
		return -ENOMEM;
	l->function = l->functions.item;
	l->nfunctions = l->functions.n;
	return 0;
}

void lineage_add(struct lineage *l, enum lineage_side side, uint32_t function, double self,
		 double children)
{
	l->function[function].self[side] += self;
	l->function[function].children[side] += children;
}

int lineage_add_call(struct lineage *l, enum lineage_side side, const struct lineage_call *c)
{
	const struct edge like = { .caller = c->caller, .callee = c->callee };
	struct edge *x;
	uint32_t at;
	bool fresh;

	if (table_add(&l->edges, table_mix(c->caller, c->callee), &like, &at, &fresh))
		return -ENOMEM;
	x = (struct edge *)l->edges.item + at;
	x->self[side] += c->self;
	x->children[side] += c->children;
	return 0;
}

static int add_stack(struct lineage *l, enum lineage_side side, const struct identity_names *names,
		     const struct stackset_stack *st, double weight, uint32_t *id)
{
	uint32_t caller = LINEAGE_NONE;

	for (uint32_t k = st->n; k-- > 0;) {
		const uint32_t func = names->set->frame[st->frame[k]].func;
		bool again = false;

		if (id[func] == LINEAGE_NONE) {
			const struct identity x = identity_of(names, st, func);

			if (lineage_function(l, &x, &id[func]))
				return -ENOMEM;
		}
		for (uint32_t i = k + 1; i < st->n && i <= k + RECURSION && !again; i++)
			again = id[names->set->frame[st->frame[i]].func] == id[func];
		lineage_add(l, side, id[func], k ? 0 : weight, again ? 0 : weight);
		if (caller != LINEAGE_NONE && caller != id[func] &&
		    lineage_add_call(l, side,
				     &(struct lineage_call){ caller, id[func], k ? 0 : weight,
							     weight }))
			return -ENOMEM;
		caller = id[func];
	}
	return 0;
}

int lineage_add_set(struct lineage *l, enum lineage_side side, const struct identity_names *names,
		    double scale, uint32_t *id)
{
	int ret = 0;

	for (size_t i = 0; i < names->set->nfuncs; i++)
		id[i] = LINEAGE_NONE;
	for (size_t i = 0; i < names->set->nstacks && !ret; i++)
		ret = add_stack(l, side, names, &names->set->stack[i],
				scale * (double)names->set->stack[i].weight, id);
	return ret;
}

bool lineage_is_dissolved(const struct lineage *l, enum lineage_side side, uint32_t caller,
			  uint32_t callee)
{
	const struct edge like = { .caller = caller, .callee = callee };
	uint32_t at;

	if (l->function[callee].dissolved)
		return true;
	return table_find(&l->edges, table_mix(caller, callee), &like, &at) &&
	       ((const struct edge *)l->edges.item)[at].dissolved[side];
}

/* -- the graph ------------------------------------------------------------------------------------------ */

static int find_adjacency(const struct search *x, struct adjacency *a, bool by_callee)
{
	const size_t n = x->l->nfunctions, edges = x->l->edges.n;

	a->first = calloc(n + 2, sizeof(*a->first));
	a->order = calloc(edges + 1, sizeof(*a->order));
	if (!a->first || !a->order)
		return -ENOMEM;
	/* A counting sort: first[key + 2] counts, then first[key + 1] is where the next edge of a key goes. */
	for (size_t i = 0; i < edges; i++)
		a->first[(by_callee ? x->edge[i].callee : x->edge[i].caller) + 2]++;
	for (size_t i = 1; i < n + 2; i++)
		a->first[i] += a->first[i - 1];
	for (size_t i = 0; i < edges; i++)
		a->order[a->first[(by_callee ? x->edge[i].callee : x->edge[i].caller) + 1]++] =
			(uint32_t)i;
	return 0;
}

static bool is_only_of(const struct lineage *l, uint32_t function, enum lineage_side side)
{
	const struct lineage_function *f = &l->function[function];

	return f->children[side] > 0 && !(f->children[1 - side] > 0);
}

/* -- renamed functions ---------------------------------------------------------------------------------- */

/*
 * Returns where mark[] has a neighbour of a function. Renamed functions are one. Callees that only one side has are one bucket, as they may
 * have been renamed as well; such a caller is evidence for nothing before it is known what it was: LINEAGE_NONE.
 */
static uint32_t bucket_of(const struct search *x, uint32_t function, enum lineage_side side,
			  bool caller)
{
	const struct lineage_function *f = &x->l->function[function];

	if (!is_only_of(x->l, function, side))
		return function;
	if (f->same != LINEAGE_NONE)
		return side == LINEAGE_BASE ? function : f->same;
	return caller ? LINEAGE_NONE : (uint32_t)x->l->nfunctions;
}

/* Returns the weight that the parts of callers, or of a function itself and its callees, are of. */
static double whole_of(const struct search *x, uint32_t function, enum lineage_side side,
		       bool callers)
{
	const struct adjacency *a = callers ? &x->callers : &x->callees;
	double whole = callers ? 0 : x->l->function[function].self[side];

	for (uint32_t i = a->first[function]; i < a->first[function + 1]; i++)
		whole += x->edge[a->order[i]].children[side];
	return whole;
}

/* Returns what part of their callers, or of themselves and their callees, two functions have in common. mark[] is 0 before and after. */
static double overlap_of(struct search *x, uint32_t went, uint32_t came, bool callers)
{
	const struct adjacency *a = callers ? &x->callers : &x->callees;
	const double all[LINEAGE_SIDES] = { whole_of(x, went, LINEAGE_BASE, callers),
					    whole_of(x, came, LINEAGE_HEAD, callers) };
	const size_t own = x->l->nfunctions + 1;
	double common = 0;

	/* Neither has a caller: both are where stacks begin. */
	if (!(all[0] > 0) || !(all[1] > 0))
		return !(all[0] > 0) && !(all[1] > 0) ? 1 : 0;
	if (!callers)
		x->mark[own] = x->l->function[went].self[LINEAGE_BASE] / all[0];
	for (uint32_t i = a->first[went]; i < a->first[went + 1]; i++) {
		const struct edge *e = &x->edge[a->order[i]];
		uint32_t at = bucket_of(x, callers ? e->caller : e->callee, LINEAGE_BASE, callers);

		if (at != LINEAGE_NONE)
			x->mark[at] += e->children[LINEAGE_BASE] / all[0];
	}
	if (!callers)
		common = fmin(x->mark[own], x->l->function[came].self[LINEAGE_HEAD] / all[1]);
	for (uint32_t i = a->first[came]; i < a->first[came + 1]; i++) {
		const struct edge *e = &x->edge[a->order[i]];
		uint32_t at = bucket_of(x, callers ? e->caller : e->callee, LINEAGE_HEAD, callers);
		double part = e->children[LINEAGE_HEAD] / all[1];

		if (at == LINEAGE_NONE)
			continue;
		common += fmin(x->mark[at], part);
		x->mark[at] -= fmin(x->mark[at], part);
	}
	x->mark[own] = x->mark[x->l->nfunctions] = 0;
	for (uint32_t i = a->first[went]; i < a->first[went + 1]; i++) {
		const struct edge *e = &x->edge[a->order[i]];

		x->mark[callers ? e->caller : e->callee] = 0;
	}
	return common;
}

/* Returns how long the longest common text of two names is, as a part of the longer name. */
static double names_alike(const char *a, const char *b)
{
	size_t la = strnlen(a, NAME_BYTES), lb = strnlen(b, NAME_BYTES), longest = 0;

	for (size_t i = 0; i < la; i++)
		for (size_t k = 0; k < lb; k++) {
			size_t n = 0;

			while (i + n < la && k + n < lb && a[i + n] == b[k + n])
				n++;
			longest = n > longest ? n : longest;
		}
	return (double)longest / (double)(la > lb ? la : lb);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns how much speaks for a rename, 0 to 1; 0: it was none. */
static double rename_score(struct search *x, uint32_t went, uint32_t came)
{
	const struct lineage_function *a = &x->l->function[went], *b = &x->l->function[came];
	double wa = a->children[LINEAGE_BASE], wb = b->children[LINEAGE_HEAD];
	double ratio = fmin(wa, wb) / fmax(wa, wb), names, callers, callees;

	if (strcmp(base_of(a->id.dso), base_of(b->id.dso)) != 0 || a->id.mode != b->id.mode ||
	    ratio < WEIGHT_NAMED)
		return 0;
	callers = overlap_of(x, went, came, true);
	if (callers < ALIKE)
		return 0;
	callees = overlap_of(x, went, came, false);
	if (callees < ALIKE)
		return 0;
	names = names_alike(a->id.name, b->id.name);
	if (ratio < WEIGHT_ALIKE && names < NAMES_ALIKE)
		return 0;
	return callers * callees * (1 + ratio) * (1 + names) / 4;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->went != y->went)
		return x->went < y->went ? -1 : 1;
	return x->came < y->came ? -1 : x->came > y->came;
}

static int compare_weights(const void *a, const void *b, void *ctx)
{
	const struct lineage_function *f = ctx;
	const struct lineage_function *x = &f[*(const uint32_t *)a], *y = &f[*(const uint32_t *)b];
	double wx = x->children[0] + x->children[1], wy = y->children[0] + y->children[1];
	int c;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	c = strcmp(x->id.name, y->id.name);
	return c ? c : strcmp(x->id.dso, y->id.dso);
}

/* Lists the functions that only this side has, largest first. Returns how many there are. */
static size_t list_only(const struct search *x, enum lineage_side side, uint32_t *list)
{
	size_t n = 0;

	for (uint32_t i = 0; i < x->l->nfunctions; i++)
		if (is_only_of(x->l, i, side) && x->l->function[i].same == LINEAGE_NONE &&
		    x->l->function[i].children[side] >= x->min_share &&
		    strcmp(x->l->function[i].id.name, IDENTITY_UNNAMED) != 0)
			list[n++] = i;
	if (n)
		qsort_r(list, n, sizeof(*list), compare_weights, x->l->function);
	return n < MOST_CANDIDATES ? n : MOST_CANDIDATES;
}

static int add_event(struct lineage *l, const struct lineage_event *e)
{
	if (ARRAY_ROOM(l->event, l->nevents, l->event_cap))
		return -ENOMEM;
	l->event[l->nevents++] = *e;
	return 0;
}

/* Pairs functions whose neighbours are known, the best matches first. *found: whether there was one. */
static int pair_round(struct search *x, const uint32_t *went, size_t nwent, const uint32_t *came,
		      size_t ncame, bool *found)
{
	struct lineage_function *f = x->l->function;
	cleanup_free struct pair *pair = NULL;
	size_t n = 0, cap = 0;

	*found = false;
	for (size_t i = 0; i < nwent; i++)
		for (size_t k = 0; k < ncame && f[went[i]].same == LINEAGE_NONE; k++) {
			double score = f[came[k]].same == LINEAGE_NONE
					       ? rename_score(x, went[i], came[k])
					       : 0;

			if (!(score > 0))
				continue;
			if (ARRAY_ROOM(pair, n, cap))
				return -ENOMEM;
			pair[n++] = (struct pair){ went[i], came[k], score };
		}
	if (n)
		qsort(pair, n, sizeof(*pair), compare_pairs);
	for (size_t i = 0; i < n; i++) {
		const struct lineage_event e = { LINEAGE_RENAMED, pair[i].went, pair[i].came,
						 f[pair[i].went].self[LINEAGE_BASE],
						 f[pair[i].came].self[LINEAGE_HEAD] };

		if (f[pair[i].went].same != LINEAGE_NONE || f[pair[i].came].same != LINEAGE_NONE)
			continue;
		f[pair[i].went].same = pair[i].came;
		f[pair[i].came].same = pair[i].went;
		*found = true;
		if (add_event(x->l, &e))
			return -ENOMEM;
	}
	return 0;
}

/* Adds to the event of two files, one for all of their functions. */
static int add_moved(struct lineage *l, uint32_t went, uint32_t came)
{
	const struct lineage_function *a = &l->function[went], *b = &l->function[came];
	struct lineage_event e = { LINEAGE_MOVED, went, came, 0, 0 }, *at = NULL;

	for (size_t i = 0; i < l->nevents && !at; i++)
		if (l->function[l->event[i].function].id.dso == a->id.dso &&
		    l->function[l->event[i].other].id.dso == b->id.dso)
			at = &l->event[i];
	if (!at && add_event(l, &e))
		return -ENOMEM;
	at = at ? at : &l->event[l->nevents - 1];
	at->base += a->self[LINEAGE_BASE];
	at->head += b->self[LINEAGE_HEAD];
	return 0;
}

static int compare_names(const void *a, const void *b, void *ctx)
{
	const struct lineage_function *f = ctx;
	const struct identity *x = &f[*(const uint32_t *)a].id, *y = &f[*(const uint32_t *)b].id;
	int c = strcmp(x->name, y->name);

	c = c ? c : strcmp(base_of(x->dso), base_of(y->dso));
	c = c ? c : (int)x->mode - (int)y->mode;
	return c ? c : strcmp(x->dso, y->dso);
}

/* Pairs functions whose file has another directory. */
static int find_moved_files(struct search *x)
{
	cleanup_free uint32_t *list = calloc(x->l->nfunctions + 1, sizeof(*list));
	struct lineage_function *f = x->l->function;
	size_t n = 0;
	int ret = list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < x->l->nfunctions && !ret; i++)
		if (f[i].id.dso[0] == '/' &&
		    (is_only_of(x->l, i, LINEAGE_BASE) || is_only_of(x->l, i, LINEAGE_HEAD)))
			list[n++] = i;
	if (n)
		qsort_r(list, n, sizeof(*list), compare_names, f);
	for (size_t i = 0; i + 1 < n && !ret; i++) {
		const uint32_t a = list[i], b = list[i + 1];
		const bool first_went = is_only_of(x->l, a, LINEAGE_BASE);

		if (f[a].same != LINEAGE_NONE || strcmp(f[a].id.name, f[b].id.name) != 0 ||
		    strcmp(base_of(f[a].id.dso), base_of(f[b].id.dso)) != 0 ||
		    f[a].id.mode != f[b].id.mode || first_went == is_only_of(x->l, b, LINEAGE_BASE))
			continue;
		f[a].same = b;
		f[b].same = a;
		ret = add_moved(x->l, first_went ? a : b, first_went ? b : a);
	}
	return ret;
}

static int find_renamed(struct search *x)
{
	cleanup_free uint32_t *went = calloc(x->l->nfunctions + 1, sizeof(*went));
	cleanup_free uint32_t *came = calloc(x->l->nfunctions + 1, sizeof(*came));
	size_t nwent, ncame;
	bool found = true;
	int ret = 0;

	if (!went || !came)
		return -ENOMEM;
	if (find_moved_files(x))
		return -ENOMEM;
	nwent = list_only(x, LINEAGE_BASE, went);
	ncame = list_only(x, LINEAGE_HEAD, came);
	/* Renamed callers are known in the next round. */
	for (unsigned int round = 0; round < ROUNDS && found && !ret; round++)
		ret = pair_round(x, went, nwent, came, ncame, &found);
	return ret;
}

/* -- inlined and split functions ------------------------------------------------------------------------- */

/* Returns a function's own weight on a side, by whatever name it has there. */
static double self_of(const struct lineage *l, uint32_t function, enum lineage_side side)
{
	const struct lineage_function *f = &l->function[function];

	if (f->same != LINEAGE_NONE && is_only_of(l, function, 1 - side))
		return l->function[f->same].self[side];
	return f->self[side];
}

/* Returns whether a function may be dissolved: only this side has it, and it was not renamed. */
static bool is_candidate(const struct search *x, uint32_t function, enum lineage_side side)
{
	return is_only_of(x->l, function, side) && x->l->function[function].same == LINEAGE_NONE &&
	       strcmp(x->l->function[function].id.name, IDENTITY_UNNAMED) != 0;
}

static int add_flow(struct search *x, uint32_t caller, uint32_t function, uint32_t edge,
		    double amount)
{
	if (ARRAY_ROOM(x->flow, x->nflows, x->flow_cap))
		return -ENOMEM;
	x->flow[x->nflows++] = (struct flow){ caller, function, edge, amount, false };
	return 0;
}

static void wave_add(struct wave *w, uint32_t function, double amount)
{
	if (!(w->amount[function] > 0))
		w->function[w->n++] = function;
	w->amount[function] += amount;
}

static void wave_clear(struct wave *w)
{
	for (size_t i = 0; i < w->n; i++)
		w->amount[w->function[i]] = 0;
	w->n = 0;
}

/*
 * Moves an amount of a function's weight that lies at `at`, the function itself or one of its callers, to the callers of
 * `at`: to `reached` where they survive, to `next` where they may be dissolved as well.
 */
static void pass_on(struct search *x, enum lineage_side side, uint32_t at, double amount, bool own)
{
	const struct adjacency *a = &x->callers;
	double whole = 0;

	for (uint32_t i = a->first[at]; i < a->first[at + 1]; i++)
		whole +=
			own ? x->edge[a->order[i]].self[side] : x->edge[a->order[i]].children[side];
	for (uint32_t i = a->first[at]; i < a->first[at + 1] && whole > 0; i++) {
		const struct edge *e = &x->edge[a->order[i]];
		double part = amount * (own ? e->self[side] : e->children[side]) / whole;

		if (!(part > 0) || e->caller == at)
			continue;
		wave_add(is_candidate(x, e->caller, side) ? &x->next : &x->reached, e->caller,
			 part);
	}
}

/*
 * Adds a flow to each surviving caller that a function's weight goes to if the function is dissolved, and so are those of
 * its callers that may be. The weight moves up one level of callers at a time: paths are many more than functions.
 */
static int spread(struct search *x, enum lineage_side side, uint32_t function)
{
	int ret = 0;

	wave_add(&x->now, function, x->l->function[function].self[side]);
	for (unsigned int depth = 0; depth <= LINEAGE_DEPTH && x->now.n; depth++) {
		struct wave done = x->now;

		for (size_t i = 0; i < done.n; i++)
			pass_on(x, side, done.function[i], done.amount[done.function[i]],
				done.function[i] == function);
		wave_clear(&done);
		x->now = x->next;
		x->next = done;
	}
	for (size_t i = 0; i < x->reached.n && !ret; i++)
		ret = add_flow(x, x->reached.function[i], function, LINEAGE_NONE,
			       x->reached.amount[x->reached.function[i]]);
	wave_clear(&x->now);
	wave_clear(&x->reached);
	return ret;
}

static int find_flows(struct search *x, enum lineage_side side)
{
	int ret = 0;

	x->nflows = 0;
	for (uint32_t i = 0; i < x->l->nfunctions && !ret; i++)
		if (is_candidate(x, i, side) && x->l->function[i].self[side] > 0 &&
		    x->l->function[i].self[side] >= x->min_share)
			ret = spread(x, side, i);
	/* Calls that only this side has, of functions that both have: inlined here, and not there. */
	for (uint32_t i = 0; i < x->l->edges.n && !ret; i++) {
		const struct edge *e = &x->edge[i];

		if (e->self[side] >= x->min_share && e->self[side] > 0 &&
		    !(e->children[1 - side] > 0) && e->caller != e->callee &&
		    strcmp(x->l->function[e->callee].id.name, IDENTITY_UNNAMED) != 0 &&
		    !is_only_of(x->l, e->callee, side) && !is_only_of(x->l, e->caller, side))
			ret = add_flow(x, e->caller, e->callee, i, e->self[side]);
	}
	return ret;
}

static int compare_flows(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->amount != y->amount)
		return x->amount > y->amount ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Accepts the flows [from, to) of one caller, whose own weight is `gain` larger on the other side. */
static void accept_of_caller(struct search *x, size_t from, size_t to, double gain)
{
	double room = ROOM * gain, sum = 0;

	for (size_t i = from; i < to; i++) {
		struct flow *f = &x->flow[i];
		/* A call that is gone says less than a function that is gone. */
		bool large = f->edge == LINEAGE_NONE || f->amount >= gain * LEAST_CALL;

		f->accepted = large && f->amount <= room - sum;
		sum += f->accepted ? f->amount : 0;
	}
	/* The caller has grown for another reason. */
	for (size_t i = from; i < to && sum < gain / ROOM; i++)
		x->flow[i].accepted = false;
}

/* Accepts of each caller's flows about as much as its own weight has changed by on the other side, the largest first. */
static void accept_flows(struct search *x, enum lineage_side side)
{
	for (size_t from = 0, to; from < x->nflows; from = to) {
		const uint32_t caller = x->flow[from].caller;

		for (to = from; to < x->nflows && x->flow[to].caller == caller;)
			to++;
		accept_of_caller(x, from, to,
				 self_of(x->l, caller, 1 - side) - self_of(x->l, caller, side));
	}
}

/* Dissolves the functions most of whose weight was accepted, and single calls. accepted: room for a number of each function. */
static void dissolve(struct search *x, enum lineage_side side, double *accepted)
{
	struct lineage_function *f = x->l->function;

	memset(accepted, 0, x->l->nfunctions * sizeof(*accepted));
	for (size_t i = 0; i < x->nflows; i++) {
		const struct flow *w = &x->flow[i];

		if (!w->accepted)
			continue;
		if (w->edge != LINEAGE_NONE)
			x->edge[w->edge].dissolved[side] = true;
		else
			accepted[w->function] += w->amount;
	}
	for (uint32_t i = 0; i < x->l->nfunctions; i++)
		if (is_candidate(x, i, side) && f[i].self[side] > 0 &&
		    accepted[i] >= f[i].self[side] / 2)
			x->l->changes = f[i].dissolved = true;
}

static bool is_moved(const struct search *x, const struct flow *w)
{
	return w->edge != LINEAGE_NONE ? w->accepted : x->l->function[w->function].dissolved;
}

/* Adds the flows that count to what the callers have together, and an event for each function that is large enough. */
static int add_events(struct search *x, enum lineage_side side, double *together)
{
	for (size_t i = 0; i < x->nflows; i++) {
		const struct flow *w = &x->flow[i];
		const struct lineage_event e = { side == LINEAGE_BASE ? LINEAGE_INLINED
								      : LINEAGE_SPLIT,
						 w->function, w->caller, w->amount, 0 };

		if (!is_moved(x, w))
			continue;
		together[w->caller * LINEAGE_SIDES + side] += w->amount;
		if (w->amount >= x->min_share && add_event(x->l, &e))
			return -ENOMEM;
	}
	return 0;
}

/* Fills in what callers have together with all that is theirs now, and leaves out what is little of that. */
static void settle_events(struct lineage *l, const double *together)
{
	size_t n = 0;

	l->changes |= l->nevents > 0;
	for (size_t i = 0; i < l->nevents; i++) {
		struct lineage_event e = l->event[i];
		const double amount = e.base, *more = together + e.other * LINEAGE_SIDES;

		if (e.kind != LINEAGE_RENAMED && e.kind != LINEAGE_MOVED) {
			e.base = self_of(l, e.other, LINEAGE_BASE) + more[LINEAGE_BASE];
			e.head = self_of(l, e.other, LINEAGE_HEAD) + more[LINEAGE_HEAD];
			if (amount < SHOWN * fmax(e.base, e.head))
				continue;
		}
		l->event[n++] = e;
	}
	l->nevents = n;
}

static int find_moved(struct search *x)
{
	cleanup_free double *together =
		calloc(x->l->nfunctions * LINEAGE_SIDES + 1, sizeof(*together));
	cleanup_free double *accepted = calloc(x->l->nfunctions + 1, sizeof(*accepted));
	int ret = together && accepted ? 0 : -ENOMEM;

	for (unsigned int s = 0; s < LINEAGE_SIDES && !ret; s++) {
		ret = find_flows(x, (enum lineage_side)s);
		if (ret)
			break;
		if (x->nflows)
			qsort(x->flow, x->nflows, sizeof(*x->flow), compare_flows);
		accept_flows(x, (enum lineage_side)s);
		dissolve(x, (enum lineage_side)s, accepted);
		ret = add_events(x, (enum lineage_side)s, together);
	}
	if (!ret)
		settle_events(x->l, together);
	return ret;
}

static int compare_events(const void *a, const void *b)
{
	const struct lineage_event *x = a, *y = b;
	double wx = x->base + x->head, wy = y->base + y->head;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->other < y->other ? -1 : x->other > y->other;
}

static int wave_init(struct wave *w, size_t nfunctions)
{
	w->function = calloc(nfunctions + 1, sizeof(*w->function));
	w->amount = calloc(nfunctions + 1, sizeof(*w->amount));
	return w->function && w->amount ? 0 : -ENOMEM;
}

static void wave_deinit(struct wave *w)
{
	free(w->function);
	free(w->amount);
}

int lineage_find(struct lineage *l, double min_share)
{
	struct search x = { .l = l, .edge = l->edges.item, .min_share = min_share };
	int ret;

	x.mark = calloc(l->nfunctions + 2, sizeof(*x.mark));
	ret = x.mark ? find_adjacency(&x, &x.callers, true) : -ENOMEM;
	ret = ret ? ret : find_adjacency(&x, &x.callees, false);
	ret = ret ? ret : wave_init(&x.now, l->nfunctions);
	ret = ret ? ret : wave_init(&x.next, l->nfunctions);
	ret = ret ? ret : wave_init(&x.reached, l->nfunctions);
	ret = ret ? ret : find_renamed(&x);
	ret = ret ? ret : find_moved(&x);
	if (!ret && l->nevents)
		qsort(l->event, l->nevents, sizeof(*l->event), compare_events);
	free(x.mark);
	free(x.callers.first);
	free(x.callers.order);
	free(x.callees.first);
	free(x.callees.order);
	free(x.flow);
	wave_deinit(&x.now);
	wave_deinit(&x.next);
	wave_deinit(&x.reached);
	return ret;
}

/* -- texts ----------------------------------------------------------------------------------- */

const char *lineage_name(const struct lineage *l, const struct lineage_event *e, uint32_t function)
{
	const struct identity *id = &l->function[function].id;

	return e->kind == LINEAGE_MOVED ? id->dso : id->name;
}

const char *lineage_text(char out[LINEAGE_TEXT], enum lineage_kind kind, const char *function,
			 const char *other)
{
	if (kind == LINEAGE_RENAMED)
		snprintf(out, LINEAGE_TEXT,
			 "%.150s went, %.150s came with its callers and callees (renamed): ",
			 function, other);
	else if (kind == LINEAGE_MOVED)
		snprintf(out, LINEAGE_TEXT,
			 "%.150s went, %.150s came (the same program in another place): ", function,
			 other);
	else if (kind == LINEAGE_INLINED)
		snprintf(out, LINEAGE_TEXT, "%.150s went into %.150s (inlined): together ",
			 function, other);
	else
		snprintf(out, LINEAGE_TEXT, "%.150s came out of %.150s (split): together ",
			 function, other);
	return out;
}

const char *lineage_kind_name(enum lineage_kind kind)
{
	static const char *const name[] = { "renamed", "moved", "inlined", "split" };

	return name[kind];
}
