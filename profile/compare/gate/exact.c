/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/exact.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"
#include "profile/compare/gate/metric.h"
#include "profile/compare/gate/private.h"
#include "profile/compare/gate/text.h"
#include "profile/analyse/stacks/identity.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_NAME 1000u /* bytes; the outermost frames are left out */

/* Something with a count on both sides. Its name is made when it differs. */
struct tally {
	uint64_t hash; /* hash of everything that identifies it */
	double value[GATE_SIDE_MAX];
	double calls[GATE_SIDE_MAX]; /* entries of a system call, where they are known */
	uint64_t stamp;		     /* the last stack that counted for it */
	uint32_t side, stack, func;  /* where its name is found */
	uint8_t mode;
	enum phase phase; /* for GATE_RULE_INSN_PHASES */
};

struct gate_exact {
	struct gate *gate;
	struct gate_report *report;
	const struct stackset *set[GATE_SIDE_MAX];
	struct identity_names names[GATE_SIDE_MAX];
	uint64_t *func_hash[GATE_SIDE_MAX]; /* for each function: hash of its name and DSO */
	/* Hashes of functions that have clones on either side: their calls of each other are no frames. */
	struct table cloned;
	double whole[GATE_SIDE_MAX];	 /* the engine's own count of instructions; NAN: none */
	uint64_t *weight[GATE_SIDE_MAX]; /* for each stack: its part that the rule is about */
	uint8_t *work[GATE_SIDE_MAX];	 /* for each stack, see work_find() */
	struct lineage lineage;
	uint32_t *kin[GATE_SIDE_MAX]; /* for each function: number in lineage, or LINEAGE_NONE */
	struct table tally;
	struct table calls; /* tallies of system calls, with their hashes and calls */
	bool has_calls;	    /* both sides have counts of entries */
	uint64_t stamps;
};

static bool exact_equal(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct tally *)a)->hash == ((const struct tally *)b)->hash;
}

static uint64_t exact_hash(const char *name, const char *dso)
{
	return hash_text(hash_text(HASH_START, name) * 31, dso);
}

/* -- adding up -------------------------------------------------------------------------------------- */

static int exact_add(struct gate_exact *x, const struct tally *like, double amount)
{
	struct tally *t;
	uint32_t i;
	bool fresh;

	if (table_add(&x->tally, like->hash, like, &i, &fresh))
		return -ENOMEM;
	t = (struct tally *)x->tally.item + i;
	/* A stack counts once, however often a function is in it. */
	if (t->stamp != x->stamps)
		t->value[like->side] += amount;
	t->stamp = x->stamps;
	return 0;
}

static const struct phases *exact_phases(const struct gate_exact *x, unsigned int side)
{
	return &x->gate->run[side][0]->phases;
}

static double exact_weight(const struct gate_exact *x, const struct tally *t)
{
	return (double)x->weight[t->side][t->stack];
}

static uint64_t exact_func_hash(const struct gate_exact *x, const struct tally *t, uint8_t mode)
{
	return table_mix(x->func_hash[t->side][t->func], mode);
}

/*
 * Returns whether frame k of a stack is one of the function that calls it, which has clones or parts: a compiler may
 * have cut it in two, or not.
 */
static bool exact_is_part(const struct gate_exact *x, unsigned int side,
			  const struct stackset_stack *st, uint32_t k)
{
	const struct stackset *s = x->set[side];
	uint64_t hash = x->func_hash[side][s->frame[st->frame[k]].func];

	return k + 1 < st->n && hash == x->func_hash[side][s->frame[st->frame[k + 1]].func] &&
	       table_has_number(&x->cloned, hash);
}

/* Returns whether frame k is no function of its own for the comparison: its caller's weight is what it has. */
static bool exact_skips(const struct gate_exact *x, unsigned int side,
			const struct stackset_stack *st, uint32_t k)
{
	const struct stackset *s = x->set[side];

	if (k + 1 >= st->n)
		return false;
	return exact_is_part(x, side, st, k) ||
	       (x->lineage.changes &&
		lineage_is_dissolved(&x->lineage, (enum lineage_side)side,
				     x->kin[side][s->frame[st->frame[k + 1]].func],
				     x->kin[side][s->frame[st->frame[k]].func]));
}

/* Returns what the function is on the other side, NULL if it is the same. */
static const struct identity *exact_other(const struct gate_exact *x, unsigned int side,
					  uint32_t func)
{
	uint32_t kin = x->lineage.changes ? x->kin[side][func] : LINEAGE_NONE;

	if (kin == LINEAGE_NONE || x->lineage.function[kin].same == LINEAGE_NONE)
		return NULL;
	return &x->lineage.function[x->lineage.function[kin].same].id;
}

/* Returns whether a rule is about a function by any of its names. */
static bool exact_matches(const struct gate_exact *x, const struct gate_rule *r, unsigned int side,
			  uint32_t func)
{
	const struct stackset_func *f = &x->set[side]->func[func];
	const struct identity *other = exact_other(x, side, func);
	/* A rule without a name is about all functions but some. */
	const bool wanted = r->symbol || r->pattern || r->dso;
	bool found = gate_rule_matches(r, x->names[side].name[func], f->dso);

	if (found != wanted && f->named)
		found = gate_rule_matches_function(r, f);
	if (found != wanted && other)
		found = gate_rule_matches(r, other->name, other->dso);
	return found;
}

static int exact_add_functions(struct gate_exact *x, const struct gate_rule *r, struct tally like)
{
	const struct stackset *s = x->set[like.side];
	const struct stackset_stack *st = &s->stack[like.stack];
	int ret = 0;

	for (uint32_t i = 0; i < st->n && !ret; i++) {
		like.func = s->frame[st->frame[i]].func;
		if (exact_skips(x, like.side, st, i))
			continue;
		if (exact_matches(x, r, like.side, like.func)) {
			like.mode = identity_of(&x->names[like.side], st, like.func).mode;
			like.hash = exact_func_hash(x, &like, like.mode);
			ret = exact_add(x, &like, exact_weight(x, &like));
		}
		if (!r->children)
			break;
	}
	return ret;
}

static int exact_add_stack(struct gate_exact *x, const struct gate_rule *r, struct tally like)
{
	const struct stackset *s = x->set[like.side];
	const struct stackset_stack *st = &s->stack[like.stack];
	uint32_t top = UINT32_MAX;

	like.hash = hash_text(HASH_START, s->task[st->task].comm);
	for (uint32_t i = 0; i < st->n; i++) {
		like.func = s->frame[st->frame[i]].func;
		if (exact_skips(x, like.side, st, i))
			continue;
		if (top == UINT32_MAX)
			top = like.func;
		like.hash = table_mix(like.hash, x->func_hash[like.side][like.func]);
	}
	like.func = top;
	like.mode = st->mode;
	return exact_matches(x, r, like.side, top) ? exact_add(x, &like, exact_weight(x, &like))
						   : 0;
}

/* Linux' names of them: SYSCALL_DEFINEx of arch/x86/include/asm/syscall_wrapper.h. */
static bool exact_is_syscall(const char *name)
{
	return !strncmp(name, "__x64_sys_", 10) || !strncmp(name, "__ia32_sys_", 11) ||
	       !strncmp(name, "__ia32_compat_sys_", 18);
}

static int exact_add_syscall(struct gate_exact *x, const struct gate_rule *r, struct tally like)
{
	const struct stackset *s = x->set[like.side];
	const struct stackset_stack *st = &s->stack[like.stack];

	for (uint32_t i = st->n; i-- > 0;) {
		const struct stackset_func *f = &s->func[s->frame[st->frame[i]].func];

		if (f->kind != STACKSET_KIND_KERNEL || !exact_is_syscall(f->name))
			continue;
		like.func = s->frame[st->frame[i]].func;
		like.mode = STACKSET_KERNEL;
		like.hash = exact_func_hash(x, &like, like.mode);
		return gate_rule_matches_function(r, f)
			       ? exact_add(x, &like, exact_weight(x, &like))
			       : 0;
	}
	return 0;
}

/* Returns the name of a stack's task. Kernel threads, interrupts and idle vCPUs have no task of their own in counts. */
static const char *exact_task(const struct gate_exact *x, const struct tally *t)
{
	const struct stackset *s = x->set[t->side];
	const struct stackset_stack *st = &s->stack[t->stack];
	const struct stackset_task *task = &s->task[st->task];

	return !task->pid && x->work[t->side][t->stack] == WORK_MEANWHILE ? work_thread(s, st)
									  : task->comm;
}

static int exact_add_task(struct gate_exact *x, const struct gate_rule *r, struct tally like)
{
	const struct stackset *s = x->set[like.side];
	const struct stackset_stack *st = &s->stack[like.stack];
	const char *comm = exact_task(x, &like);

	like.hash = hash_text(HASH_START, comm);
	like.mode = st->mode;
	return gate_rule_matches(r, comm, "") ? exact_add(x, &like, exact_weight(x, &like)) : 0;
}

/* Returns the instructions of a phase that the rule is about. */
static double exact_phase_weight(const struct gate_exact *x, const struct gate_rule *r,
				 const struct tally *t)
{
	const struct phases *p = exact_phases(x, t->side);
	const struct stackset *s = x->set[t->side];
	double sum = 0;

	if (!r->work)
		return (double)p->span[t->phase].weight;
	for (size_t i = 0; i < s->nsamples; i++)
		if (phases_at(p, s->sample[i].time_ns) == t->phase &&
		    gate_counts_sample(r, p, x->work[t->side], &s->sample[i]))
			sum += (double)s->sample[i].weight;
	return sum;
}

static int exact_add_phases(struct gate_exact *x, const struct gate_rule *r)
{
	int ret = 0;

	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		for (unsigned int p = 0; p < PHASES && !ret; p++) {
			const struct tally like = { .hash = p,
						    .side = side,
						    .phase = (enum phase)p };
			const struct phase_span *span = &exact_phases(x, side)->span[p];
			const bool counts = !r->work || p >= PHASE_START_KERNEL;

			x->stamps++;
			if (span->seen && counts &&
			    gate_rule_matches(r, phase_name(like.phase), ""))
				ret = exact_add(x, &like, exact_phase_weight(x, r, &like));
		}
	return ret;
}

static int exact_tally(struct gate_exact *x, const struct gate_rule *r)
{
	int ret = 0;

	table_deinit(&x->tally);
	if (r->metric == GATE_RULE_INSN_PHASES)
		return exact_add_phases(x, r);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		for (uint32_t i = 0; i < x->set[side]->nstacks && !ret; i++) {
			const struct tally like = { .side = side, .stack = i };

			x->stamps++;
			if (!x->set[side]->stack[i].n || !x->weight[side][i])
				continue;
			if (r->metric == GATE_RULE_INSN_STACKS)
				ret = exact_add_stack(x, r, like);
			else if (r->metric == GATE_RULE_INSN_SYSCALLS)
				ret = exact_add_syscall(x, r, like);
			else if (r->metric == GATE_RULE_INSN_TASKS)
				ret = exact_add_task(x, r, like);
			else
				ret = exact_add_functions(x, r, like);
		}
	return ret;
}

/* -- judging ---------------------------------------------------------------------------------------- */

static double exact_effect(const struct stats_rule *rule, double base, double diff)
{
	if (rule->unit != STATS_RELATIVE)
		return diff;
	return base > 0 ? diff / base : diff > 0 ? INFINITY : 0;
}

static void exact_judge(const struct gate_rule *r, double base, double head, struct gate_finding *f)
{
	struct stats_result *x = &f->result;
	double size;

	f->stats = gate_rule_stats(r, base, 0);
	f->seen = -1;
	*x = (struct stats_result){ .base = base, .head = head, .diff = head - base };
	x->effect = exact_effect(&f->stats, base, x->diff);
	x->relative = base > 0 ? x->diff / base : NAN;
	x->lo = x->hi = x->hodges_lehmann = x->cliff = NAN;
	x->p_fail = x->p_pass = x->p_two = x->p_least = x->q = NAN;
	size = r->worse == STATS_EITHER	 ? fabs(x->effect)
	       : r->worse == STATS_LOWER ? -x->effect
					 : x->effect;
	x->verdict = size > 0 && size >= f->stats.min_effect ? STATS_FAIL : STATS_PASS;
	x->reason = x->verdict == STATS_FAIL ? STATS_WORSE : STATS_EXCLUDED;
	if (-size >= f->stats.min_effect)
		x->flags |= STATS_IMPROVED;
	else if (x->verdict == STATS_PASS && x->diff != 0)
		x->flags |= STATS_CHANGED;
}

/* Innermost first on the way out, so that what does not fit is the outermost. */
static const char *exact_stack_name(struct gate_exact *x, const struct tally *t)
{
	const struct stackset *s = x->set[t->side];
	const struct stackset_stack *st = &s->stack[t->stack];
	char text[STACK_NAME];
	size_t at = sizeof(text) - 1;
	uint32_t i;

	text[at] = '\0';
	for (i = 0; i < st->n; i++) {
		const char *name = x->names[t->side].name[s->frame[st->frame[i]].func];
		size_t len = strlen(name);

		if (exact_skips(x, t->side, st, i))
			continue;
		if (len + 5 > at)
			break;
		if (text[at])
			text[--at] = ';';
		at -= len;
		memcpy(text + at, name, len);
	}
	if (i < st->n) {
		at -= 4;
		memcpy(text + at, "...;", 4);
	}
	return gate_run_keep(x->gate->run[t->side][0], text + at);
}

static int exact_name(struct gate_exact *x, const struct gate_rule *r, const struct tally *t,
		      struct gate_finding *f)
{
	struct gate_run *run = x->gate->run[t->side][0];
	const struct stackset *s = x->set[t->side];
	const struct stackset_stack *st = &s->stack[t->stack];

	f->mode = identity_mode_name(t->mode);
	if (r->metric == GATE_RULE_INSN_TASKS || r->metric == GATE_RULE_INSN_PHASES) {
		f->name = gate_run_keep(run, r->metric == GATE_RULE_INSN_TASKS
						     ? exact_task(x, t)
						     : phase_name(t->phase));
		f->dso = gate_run_keep(run, "");
	} else {
		const struct identity id = identity_of(&x->names[t->side], st, t->func);
		const struct identity *other = exact_other(x, t->side, t->func);

		/* A function of both sides is called as in the head. */
		const bool renamed =
			other && t->side == GATE_BASE && r->metric == GATE_RULE_INSN_FUNCTIONS;
		const struct identity *called = renamed ? other : &id;

		f->name = r->metric == GATE_RULE_INSN_STACKS ? exact_stack_name(x, t)
							     : gate_run_keep(run, called->name);
		f->dso = gate_run_keep(run, called->dso);
		if (r->metric == GATE_RULE_INSN_FUNCTIONS && x->lineage.changes)
			f->note = gate_kin_note(&x->lineage, run, x->kin[t->side][t->func]);
	}
	if (r->metric == GATE_RULE_INSN_SYSCALLS && x->has_calls) {
		char note[64];

		f->rank = t->calls[0] != t->calls[1];
		if (f->rank)
			snprintf(note, sizeof(note), "%.0f -> %.0f calls", t->calls[0],
				 t->calls[1]);
		else
			snprintf(note, sizeof(note), "%.0f call%s", t->calls[0],
				 t->calls[0] == 1 ? "" : "s");
		f->note = gate_run_keep(run, note);
	}
	f->value = calloc(GATE_SIDE_MAX, sizeof(*f->value));
	if (!f->name || !f->dso || !f->value)
		return -ENOMEM;
	memcpy(f->value, t->value, sizeof(t->value));
	return 0;
}

static int exact_compare_tallies(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	double dx = fabs(x->value[1] - x->value[0]), dy = fabs(y->value[1] - y->value[0]);
	bool cx = x->calls[0] != x->calls[1], cy = y->calls[0] != y->calls[1];

	if (cx != cy)
		return cx ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int exact_family(struct gate_exact *x, struct gate_outcome *o)
{
	struct tally *t;
	size_t n = 0;
	int ret = exact_tally(x, o->rule);

	if (ret)
		return ret;
	o->ncompared = x->tally.n;
	t = x->tally.item;
	for (size_t i = 0; i < x->tally.n; i++) {
		uint32_t at;

		if (t[i].value[0] == t[i].value[1])
			continue;
		t[n] = t[i];
		if (o->rule->metric == GATE_RULE_INSN_SYSCALLS &&
		    table_find(&x->calls, t[n].hash, &t[n], &at))
			memcpy(t[n].calls, ((struct tally *)x->calls.item)[at].calls,
			       sizeof(t[n].calls));
		n++;
	}
	if (n)
		qsort(t, n, sizeof(*t), exact_compare_tallies);
	if (n > GATE_EXACT_MAX_FINDINGS) {
		o->left_out = n - GATE_EXACT_MAX_FINDINGS;
		n = GATE_EXACT_MAX_FINDINGS;
	}
	o->finding = calloc(n + 1, sizeof(*o->finding));
	if (!o->finding)
		return -ENOMEM;
	for (size_t i = 0; i < n && !ret; i++) {
		exact_judge(o->rule, t[i].value[GATE_BASE], t[i].value[GATE_HEAD], &o->finding[i]);
		o->nfindings++;
		ret = exact_name(x, o->rule, &t[i], &o->finding[i]);
	}
	if (!ret)
		gate_family_settle(o);
	return ret;
}

/* Returns whether the rule is about all instructions of the run. */
static bool exact_is_of_all(const struct gate_rule *r)
{
	return r->metric == GATE_RULE_INSNS && !r->symbol && !r->pattern && !r->dso &&
	       !r->has_phase && !r->work;
}

static int exact_number(struct gate_exact *x, struct gate_outcome *o)
{
	double value[GATE_SIDE_MAX] = { 0 };
	bool all = !o->rule->symbol && !o->rule->pattern && !o->rule->dso;

	for (unsigned int side = 0; all && side < GATE_SIDE_MAX; side++) {
		/*
		 * Samples are multiples of the period. The engine's number also has the rest of blocks that were
		 * left early, which counts have not: both sides are to be the same number.
		 */
		if (x->report->sampled && exact_is_of_all(o->rule)) {
			value[side] = x->whole[side];
			continue;
		}
		for (size_t i = 0; i < x->set[side]->nstacks; i++)
			value[side] += (double)x->weight[side][i];
	}
	if (!all) {
		int ret = exact_tally(x, o->rule);
		const struct tally *t = x->tally.item;

		if (ret)
			return ret;
		for (size_t i = 0; i < x->tally.n; i++)
			for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
				value[side] += t[i].value[side];
		if (!x->tally.n) {
			o->status = o->rule->optional ? GATE_SKIPPED : GATE_UNSURE;
			snprintf(o->why, sizeof(o->why), "no function matches on either side");
			return 0;
		}
	}
	o->total.value = calloc(GATE_SIDE_MAX, sizeof(*o->total.value));
	if (!o->total.value)
		return -ENOMEM;
	memcpy(o->total.value, value, sizeof(value));
	exact_judge(o->rule, value[GATE_BASE], value[GATE_HEAD], &o->total);
	return 0;
}

/* How much of each stack the rule is about. */
static void exact_weigh(struct gate_exact *x, const struct gate_rule *r)
{
	const bool parts = r->has_phase || r->work;

	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++) {
		const struct stackset *s = x->set[side];

		for (size_t i = 0; i < s->nstacks; i++)
			x->weight[side][i] = parts ? 0 : s->stack[i].weight;
		for (size_t i = 0; parts && i < s->nsamples; i++)
			if (gate_counts_sample(r, exact_phases(x, side), x->work[side],
					       &s->sample[i]))
				x->weight[side][s->sample[i].stack] += s->sample[i].weight;
	}
}

/* In o->why, where it does. */
static void exact_lacks_phase(const struct gate_exact *x, struct gate_outcome *o)
{
	static const char *const of[GATE_SIDE_MAX] = { "base", "head" };
	const struct gate_rule *r = o->rule;

	for (unsigned int side = 0; side < GATE_SIDE_MAX && !o->why[0]; side++) {
		const struct phases *p = exact_phases(x, side);

		if (!p->boot)
			snprintf(o->why, sizeof(o->why), "the %s is not the boot of a Linux kernel",
				 of[side]);
		else if (r->has_phase && !p->span[r->phase].seen)
			snprintf(o->why, sizeof(o->why), "the %s has no phase %s", of[side],
				 phase_name(r->phase));
	}
}

static int exact_rule(struct gate_exact *x, struct gate_outcome *o)
{
	bool worse;
	int ret;

	if (o->rule->has_phase || o->rule->metric == GATE_RULE_INSN_PHASES)
		exact_lacks_phase(x, o);
	if (o->why[0]) {
		o->status = o->rule->optional ? GATE_SKIPPED : GATE_UNSURE;
		return 0;
	}
	exact_weigh(x, o->rule);
	ret = gate_rule_is_family(o->rule) ? exact_family(x, o) : exact_number(x, o);
	worse = o->nworse || (o->total.value && o->total.result.verdict == STATS_FAIL);

	if (!ret && !o->why[0])
		o->status = !worse ? GATE_OK : o->rule->fail ? GATE_FAILED : GATE_WARNED;
	return ret;
}

/* -- what changed most -------------------------------------------------------------------------------- */

#define CHANGED_NAMED 3u

__attribute__((format(printf, 2, 3))) static void exact_say(struct gate_report *r, const char *fmt,
							    ...)
{
	size_t len = strlen(r->changed);
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->changed + len, sizeof(r->changed) - len, fmt, args);
	va_end(args);
}

static void exact_say_finding(struct gate_report *r, const struct gate_outcome *o, size_t i)
{
	const struct gate_finding *f = &o->finding[i];
	const struct stats_result *x = &f->result;
	char name[256];

	gate_text_function(name, sizeof(name), f);
	exact_say(r, "%s%s: %+.0f", i ? "; " : "changed: ", name, x->diff);
	if (x->base > 0)
		exact_say(r, " (%+.3g %%)", 100 * x->diff / x->base);
}

/* Appends the largest differences of a kind to r->changed. *any: whether there are some. -ENOMEM. */
static int exact_say_kind(struct gate_exact *x, enum gate_rule_metric metric,
			  enum gate_rule_work work, bool *any)
{
	const struct gate_rule rule = { .metric = metric,
					.work = work,
					.worse = STATS_EITHER,
					.quantile = -1,
					.threshold = { STATS_ABSOLUTE, 1 } };
	struct gate_outcome o = { .rule = &rule };
	int ret;

	exact_weigh(x, &rule);
	ret = exact_family(x, &o);
	*any = !ret && o.nfindings;
	for (size_t i = 0; *any && i < o.nfindings && i < CHANGED_NAMED; i++)
		exact_say_finding(x->report, &o, i);
	if (*any && o.nfindings > CHANGED_NAMED)
		exact_say(x->report, "; and %zu more %s", o.nfindings - CHANGED_NAMED,
			  gate_rule_members(&rule));
	for (size_t i = 0; i < o.nfindings; i++)
		free(o.finding[i].value);
	free(o.finding);
	return ret;
}

/* Returns how many instructions more the head has of a kind of work. */
static double exact_more(struct gate_exact *x, enum gate_rule_work work, double *base)
{
	const struct gate_rule rule = { .metric = GATE_RULE_INSNS, .work = work };
	double sum[GATE_SIDE_MAX] = { 0 };

	exact_weigh(x, &rule);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		for (size_t i = 0; i < x->set[side]->nstacks; i++)
			sum[side] += (double)x->weight[side][i];
	*base = sum[GATE_BASE];
	return sum[GATE_HEAD] - sum[GATE_BASE];
}

/*
 * Says what changed most: system calls, of these first the ones that are more or fewer; else functions of the workload;
 * then what the workload executes more, and what ran beside it.
 */
static int exact_say_changed(struct gate_exact *x)
{
	struct gate_report *r = x->report;
	double base, more = exact_more(x, GATE_RULE_WORKLOAD, &base), beside;
	bool any;
	int ret;

	beside = exact_more(x, GATE_RULE_MEANWHILE, &(double){ 0 });
	ret = exact_say_kind(x, GATE_RULE_INSN_SYSCALLS, GATE_RULE_WORKLOAD, &any);
	if (!ret && !any)
		ret = exact_say_kind(x, GATE_RULE_INSN_FUNCTIONS, GATE_RULE_WORKLOAD, &any);
	if (ret)
		return ret;
	if (any && base > 0)
		exact_say(r, "; the workload: %+.0f instructions (%+.3g %%)", more,
			  100 * more / base);
	if (beside != 0)
		exact_say(r, "%s kernel threads and interrupts beside it: %+.0f",
			  any ? ";" : "the workload did the same;", beside);
	return 0;
}

/* Adds how often each system call was entered, to find calls that are more or fewer. */
static int exact_add_calls(struct gate_exact *x, unsigned int side, const struct stackset *s)
{
	struct identity_names n;
	int ret = identity_names_init(&n, s);

	for (size_t i = 0; i < s->nstacks && !ret; i++) {
		const struct stackset_stack *st = &s->stack[i];
		struct tally like = { .side = side };
		uint32_t func, at;
		bool fresh;

		if (!st->n)
			continue;
		func = s->frame[st->frame[0]].func;
		if (s->func[func].kind != STACKSET_KIND_KERNEL || !exact_is_syscall(n.name[func]))
			continue;
		like.hash = table_mix(exact_hash(n.name[func], s->func[func].dso), STACKSET_KERNEL);
		ret = table_add(&x->calls, like.hash, &like, &at, &fresh);
		if (!ret)
			((struct tally *)x->calls.item)[at].calls[side] += (double)st->weight;
	}
	identity_names_deinit(&n);
	return ret ? -ENOMEM : 0;
}

/* -- the whole -------------------------------------------------------------------------------------- */

/* Returns the engine's own count of what the profile covers. */
static double exact_whole(const struct stackset *s)
{
	json_t *totals = gate_totals(s->json);
	double whole = gate_engine_instructions(totals);

	json_decref(totals);
	return whole;
}

/* Adds the functions of a side that are known under a clone's name. */
static int exact_find_clones(struct gate_exact *x, unsigned int side)
{
	const struct identity_names *n = &x->names[side];
	int ret = 0;

	for (size_t i = 0; i < n->set->nfuncs && !ret; i++) {
		bool fresh;

		if (n->clone[i])
			ret = table_add_number(&x->cloned, x->func_hash[side][i], &fresh);
	}
	return ret ? -ENOMEM : 0;
}

static int exact_take_set(struct gate_exact *x, enum gate_side side,
			  const struct gate_exact_input *in, struct err *e)
{
	const struct stackset *s = in->set;
	struct gate_run *run = NULL;
	int ret;

	x->set[side] = s;
	if (strncmp(s->event, "instructions", 12) != 0)
		return err_set(
			e, EINVAL,
			"%s: its event is %.80s: --exact compares instructions, of `kvmprof run "
			"--engine exact`",
			in->path, s->event);
	x->whole[side] = exact_whole(s);
	x->report->sampled |= !s->counted;
	if (x->report->sampled && isnan(x->whole[side]))
		return err_set(e, EINVAL,
			       "%s: it has samples and no exact count: --exact compares profiles "
			       "of `kvmprof run --engine exact --call-counts`",
			       in->path);
	x->func_hash[side] = calloc(s->nfuncs + 1, sizeof(**x->func_hash));
	x->weight[side] = calloc(s->nstacks + 1, sizeof(**x->weight));
	ret = identity_names_init(&x->names[side], s) || work_find(&x->work[side], s);
	if (!x->func_hash[side] || !x->weight[side] || ret)
		return err_set(e, ENOMEM, "%s: out of memory", in->path);
	for (size_t i = 0; i < s->nfuncs; i++)
		x->func_hash[side][i] =
			exact_hash(x->names[side].name[i], identity_dso(&s->func[i]));
	if (in->entries && exact_add_calls(x, side, in->entries))
		return err_set(e, ENOMEM, "%s: out of memory", in->path);
	ret = gate_run_make(&run, in->path, s, x->gate->rules, e);
	return ret ? ret : gate_add_run(x->gate, side, run, e);
}

/* Functions that have another name in the head, or were inlined or split, are the same from here on. */
static int exact_find_kin(struct gate_exact *x)
{
	int ret = 0;

	for (unsigned int side = 0; side < GATE_SIDE_MAX && !ret; side++) {
		x->kin[side] = calloc(x->set[side]->nfuncs + 1, sizeof(**x->kin));
		ret = x->kin[side] ? lineage_add_set(&x->lineage, (enum lineage_side)side,
						     &x->names[side], 1, x->kin[side])
				   : -ENOMEM;
	}
	ret = ret ? ret : lineage_find(&x->lineage, 0);
	for (size_t i = 0; i < x->set[GATE_HEAD]->nfuncs && !ret; i++) {
		const struct identity *was = exact_other(x, GATE_HEAD, (uint32_t)i);

		if (was)
			x->func_hash[GATE_HEAD][i] = exact_hash(was->name, was->dso);
	}
	for (unsigned int side = 0; side < GATE_SIDE_MAX && !ret; side++)
		ret = exact_find_clones(x, side);
	return ret ? ret : gate_kin_report(x->report, &x->lineage, x->gate->run[GATE_HEAD][0]);
}

static int exact_check_rules(const struct gate_rules *rules, struct err *e)
{
	for (size_t i = 0; i < rules->n; i++)
		if (!gate_rule_is_exact(&rules->rule[i]))
			return err_set(e, EINVAL,
				       "%s:%u: the metric %s needs several runs; --exact has "
				       "instructions, and function-, stack-, syscall-, task- and "
				       "phase-instructions",
				       rules->path, rules->rule[i].line,
				       gate_rule_metric_name(rules->rule[i].metric));
	return 0;
}

/*
 * Refuses rules on parts of a run that was sampled: any change moves each sample behind it, so parts differ by
 * chance. Returns -EINVAL with the way out.
 */
static int exact_check_counted(const struct gate_exact *x, struct err *e)
{
	const struct gate_rules *rules = x->gate->rules;

	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		for (size_t i = 0; i < rules->n && !x->set[side]->counted; i++) {
			const struct gate_rule *r = &rules->rule[i];

			if (exact_is_of_all(r))
				continue;
			return err_set(e, EINVAL,
				       "%.200s: it was sampled, so the rule \"%.80s\" (%s%s) would "
				       "judge chance: make both sides with `kvmprof run --engine "
				       "exact --call-counts`; of sampled profiles the whole run's "
				       "instructions can be compared (-c with a rule of that "
				       "metric alone)",
				       x->gate->run[side][0]->path, r->name,
				       gate_rule_metric_name(r->metric),
				       r->has_phase ? " of a phase" : "");
		}
	return 0;
}

static int exact_report(struct gate_exact *x, struct err *e)
{
	const struct gate_rules *rules = x->gate->rules;
	struct gate_report *r = x->report;
	int ret = 0;

	r->gate = x->gate;
	r->n = rules->n;
	r->nbase = r->nhead = 1;
	r->exact = true;
	gate_find_means(r);
	gate_find_work(r, NULL);
	r->outcome = calloc(r->n, sizeof(*r->outcome));
	if (!r->outcome || (!r->sampled && exact_find_kin(x)))
		return err_nomem(e);
	for (size_t i = 0; i < r->n && !ret; i++) {
		r->outcome[i].rule = &rules->rule[i];
		ret = exact_rule(x, &r->outcome[i]);
		if (r->outcome[i].status == GATE_UNSURE && !rules->rule[i].fail)
			continue;
		if (r->outcome[i].status > r->status && r->outcome[i].status != GATE_SKIPPED)
			r->status = r->outcome[i].status;
	}
	if (!ret && !r->sampled)
		ret = exact_say_changed(x);
	gate_judge_guests(r);
	return ret ? err_set(e, -ret, "out of memory for what differs") : 0;
}

static int exact_evaluate(struct gate_exact *x, const struct gate_exact_input in[GATE_SIDE_MAX],
			  struct err *e)
{
	int ret = exact_check_rules(x->gate->rules, e);

	for (unsigned int side = 0; side < GATE_SIDE_MAX && !ret; side++)
		ret = exact_take_set(x, (enum gate_side)side, &in[side], e);
	ret = ret ? ret : exact_check_counted(x, e);
	x->has_calls = in[GATE_BASE].entries && in[GATE_HEAD].entries;
	return ret ? ret : exact_report(x, e);
}

int gate_evaluate_exact_sets(struct gate *g, const struct gate_exact_input in[GATE_SIDE_MAX],
			     struct gate_report **out, struct err *e)
{
	struct gate_exact x = { .gate = g,
				.report = calloc(1, sizeof(*x.report)),
				.tally = TABLE_OF(struct tally, exact_equal),
				.calls = TABLE_OF(struct tally, exact_equal) };
	int ret;

	lineage_init(&x.lineage);
	ret = x.report ? exact_evaluate(&x, in, e) : err_nomem(e);

	if (ret)
		gate_report_destroy(x.report);
	else
		*out = x.report;
	table_deinit(&x.tally);
	table_deinit(&x.calls);
	lineage_deinit(&x.lineage);
	table_deinit(&x.cloned);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++) {
		identity_names_deinit(&x.names[side]);
		free(x.func_hash[side]);
		free(x.work[side]);
		free(x.kin[side]);
		free(x.weight[side]);
	}
	return ret;
}

/* Loads the event entries, which profiles of older releases do not have. */
static int exact_load_entries(struct stackset **out, const struct stackset_options *like,
			      const struct stackset *set, struct err *e)
{
	struct stackset_options opt = *like;
	struct err why = { 0 };
	int ret;

	if (!set->counted)
		return 0;
	opt.event = "entries";
	opt.keep_samples = false;
	ret = stackset_load(out, &opt, &why);
	return ret == -ENOMEM ? err_set(e, ENOMEM, "%s", why.text) : 0;
}

int gate_evaluate_exact(struct gate *g, const char *base, const char *head,
			struct gate_report **out, struct err *e)
{
	const char *const path[GATE_SIDE_MAX] = { [GATE_BASE] = base, [GATE_HEAD] = head };
	struct gate_exact_input in[GATE_SIDE_MAX] = { 0 };
	struct stackset *set[GATE_SIDE_MAX] = { NULL }, *entries[GATE_SIDE_MAX] = { NULL };
	int ret = exact_check_rules(g->rules, e);

	for (unsigned int side = 0; side < GATE_SIDE_MAX && !ret; side++) {
		struct stackset_options opt = { 0 };

		opt.input = path[side];
		opt.keep_samples = true;
		ret = stackset_load(&set[side], &opt, e);
		ret = ret ? ret : exact_load_entries(&entries[side], &opt, set[side], e);
		in[side] = (struct gate_exact_input){ path[side], set[side], entries[side] };
	}
	ret = ret ? ret : gate_evaluate_exact_sets(g, in, out, e);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++) {
		stackset_destroy(set[side]);
		stackset_destroy(entries[side]);
	}
	return ret;
}
