/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/exact_counts.h"

#include "base/table.h"
#include "profile/record/run/run.h"
#include "profile/format/sink/counted.h"
#include "vmm/exact/countfile.h"
#include "vmm/exact/exact.h"
#include "vmm/end.h"
#include "vmm/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN_PID UINT32_MAX /* perf's -1 */
#define SPACE_SHIFT 13	       /* position of the address space in CR3: see callstacks_state.h */

enum counts_event { COUNTS_INSTRUCTIONS, COUNTS_CALLS, COUNTS_EXEC, COUNTS_ENTRIES, COUNTS_EVENTS };

/* A function, or a block without a name, that ran at the top of a stack. */
struct exact_counts_top {
	uint32_t node;
	uint64_t at; /* address of the function or of the block */
	uint64_t ip; /* lowest address in it that was executed */
	uint64_t insns;
	uint64_t entries; /* executions of a function's first instruction */
};

struct flat {
	uint64_t ip;
	uint32_t space; /* 0: the kernel */
	uint64_t times;
};

struct writing {
	struct run *r;
	struct countfile f;
	struct table top, flat;
	struct stack stack;
	uint64_t now_ns;
	unsigned int part; /* the part that is being written */
	struct err *e;
};

/* -- processes --------------------------------------------------------------------------------- */

static void counts_seen(void *ctx, const struct sample *s, uint32_t pid)
{
	struct run_counts *c = ctx;
	uint32_t key = (uint32_t)(s->regs.cr3 >> SPACE_SHIFT), known;

	/* A kernel thread has the address space of the task that ran before it. */
	if (s->mode != SAMPLE_USER || !pid)
		return;
	if (idmap_get(&c->pid, key, &known) && known != pid)
		/* used by two processes, one after the other: the counts do not distinguish them */
		pid = UNKNOWN_PID;
	/* Without memory for it the process stays unknown. */
	(void)idmap_set(&c->pid, key, pid);
}

static const struct calltree_node *counts_root(const struct countfile *f, uint32_t node)
{
	while (f->node[node].parent != CALLTREE_NONE)
		node = f->node[node].parent;
	return &f->node[node];
}

/* Returns 0 for the kernel's. */
static uint32_t counts_space(const struct countfile *f, uint32_t node)
{
	return f->node[node].kind == CALLTREE_USER
		       ? (uint32_t)(counts_root(f, node)->ret >> SPACE_SHIFT)
		       : 0;
}

static bool counts_are_of(const struct writing *w, uint32_t node)
{
	return counts_root(&w->f, node)->entry == w->part;
}

static uint32_t counts_pid(const struct run_counts *c, uint32_t space)
{
	uint32_t pid;

	if (!space)
		return 0;
	/*
	 * A guest whose tasks cannot be told apart is one process, and its mappings belong to that.
	 */
	if (c->one_process)
		return GUEST_PID;
	return idmap_get(&c->pid, space, &pid) ? pid : UNKNOWN_PID;
}

/* -- samples ----------------------------------------------------------------------------------- */

static int counts_put(struct writing *w, enum counts_event event, uint32_t space, uint64_t period)
{
	struct profile_sample s = {
		.time_ns = w->now_ns,
		.period = period,
		.event = (uint8_t)event,
		.mode = space ? SAMPLE_USER : SAMPLE_KERNEL,
		.stack = &w->stack,
	};
	struct pipeline_stats *st = &w->r->stats;

	s.pid = s.tid = counts_pid(&w->r->counts, space);
	w->stack.n_kernel = space ? 0 : w->stack.n;
	w->stack.end = STACK_END_ROOT;
	if (event == COUNTS_INSTRUCTIONS) {
		st->samples++;
		st->weight += period;
		st->mode_weight[s.mode] += period;
		if (s.pid == UNKNOWN_PID)
			w->r->counts.unknown_space += period;
	}
	st->event_samples[event]++;
	st->event_weight[event] += period;
	return w->r->profile.sink->ops->sample(w->r->profile.sink, &s, w->e);
}

static void counts_push(struct writing *w, uint64_t ip, bool exact)
{
	struct stack *st = &w->stack;

	if (st->n == STACK_MAX_FRAMES)
		return;
	st->quality[st->n] = FRAME_REGS;
	st->exact[st->n] = exact;
	st->ip[st->n++] = ip;
}

/* Builds the stack from an address in a node outwards. */
static void counts_chain(struct writing *w, uint64_t ip, uint32_t node)
{
	w->stack.n = 0;
	counts_push(w, ip, true);
	for (; w->f.node[node].parent != CALLTREE_NONE && w->f.node[node].ret;
	     node = w->f.node[node].parent)
		counts_push(w, w->f.node[node].ret, false);
}

/* -- sums -------------------------------------------------------------------------------------- */

static bool counts_same_top(const void *a, const void *b, const void *ctx)
{
	const struct exact_counts_top *x = a, *y = b;

	(void)ctx;
	return x->node == y->node && x->at == y->at;
}

static bool counts_same_flat(const void *a, const void *b, const void *ctx)
{
	const struct flat *x = a, *y = b;

	(void)ctx;
	return x->ip == y->ip && x->space == y->space;
}

/*
 * Adds n instructions from ip on, as often as the count says. s: the function that contains them,
 * or NULL.
 */
static int counts_add_run(struct writing *w, const struct calltree_count *x, const struct symbol *s,
			  uint64_t ip, unsigned int n)
{
	const uint64_t at = s ? s->addr : ip;
	const struct exact_counts_top like = { .node = x->node, .at = at, .ip = ip };
	struct exact_counts_top *t;
	uint32_t i;
	bool fresh;

	if (table_add(&w->top, table_mix(like.node, like.at), &like, &i, &fresh))
		return -ENOMEM;
	t = (struct exact_counts_top *)w->top.item + i;
	if (ip < t->ip)
		t->ip = ip;
	t->insns += x->times * n;
	/* A block without a name may be entered anywhere: its node has the calls. */
	t->entries += s && ip == at ? x->times : 0;
	return 0;
}

/* A block may begin in one function and end in the next: entry code has labels without a jump. */
static int counts_add_top(struct writing *w, const struct calltree_count *x, uint32_t space)
{
	const struct countfile_block *b = &w->f.block[x->block];
	const uint16_t *off = &w->f.off[b->off];
	unsigned int k = 0, n;
	int ret = 0;

	for (; k < b->insns && !ret; k += n) {
		uint64_t ip = b->pc + off[k], into = 0;
		const struct symbol *s =
			space ? NULL
			      : guest_kernel_symbol(pipeline_guest(w->r->pipeline), ip, &into);

		n = s ? 1 : b->insns - k;
		while (s && k + n < b->insns && into + off[k + n] - off[k] < s->size)
			n++;
		ret = counts_add_run(w, x, s, ip, n);
	}
	return ret;
}

static int counts_add_flat(struct writing *w, const struct calltree_count *x, uint32_t space)
{
	const struct countfile_block *b = &w->f.block[x->block];

	for (unsigned int k = 0; k < b->insns; k++) {
		const struct flat like = { .ip = b->pc + w->f.off[b->off + k], .space = space };
		uint32_t i;
		bool fresh;

		if (table_add(&w->flat, table_mix(like.ip, space), &like, &i, &fresh))
			return -ENOMEM;
		((struct flat *)w->flat.item + i)->times += x->times;
	}
	return 0;
}

static int counts_add_up(struct writing *w)
{
	int ret = 0;

	for (uint32_t i = 0; i < w->f.ncounts && !ret; i++) {
		const struct calltree_count *x = &w->f.count[i];
		uint32_t space = counts_space(&w->f, x->node);

		if (!x->times || !w->f.block[x->block].insns)
			continue;
		ret = counts_add_top(w, x, space);
		ret = ret ? ret : counts_add_flat(w, x, space);
	}
	return ret ? err_set(w->e, -ret, "out of memory for exact counts") : 0;
}

/*
 * Returns whether a node's first address is in a function with a name, so that the count of its
 * first instruction is that of its entries.
 */
static bool counts_named(const struct writing *w, uint32_t node, uint64_t entry)
{
	uint64_t into = 0;

	return !counts_space(&w->f, node) &&
	       guest_kernel_symbol(pipeline_guest(w->r->pipeline), entry, &into);
}

static int counts_tell_part(struct writing *w)
{
	int ret = 0;

	for (size_t i = 0; i < w->top.n && !ret; i++) {
		const struct exact_counts_top *t = (const struct exact_counts_top *)w->top.item + i;

		if (!counts_are_of(w, t->node))
			continue;
		counts_chain(w, t->ip, t->node);
		ret = counts_put(w, COUNTS_INSTRUCTIONS, counts_space(&w->f, t->node), t->insns);
		if (!ret && t->entries)
			ret = counts_put(w, COUNTS_ENTRIES, counts_space(&w->f, t->node),
					 t->entries);
	}
	for (uint32_t i = 0; i < w->f.nnodes && !ret; i++) {
		const struct calltree_node *n = &w->f.node[i];

		if (!n->calls || !counts_are_of(w, i))
			continue;
		counts_chain(w, n->entry, i);
		ret = counts_put(w, COUNTS_CALLS, counts_space(&w->f, i), n->calls);
		if (!ret && !counts_named(w, i, n->entry))
			ret = counts_put(w, COUNTS_ENTRIES, counts_space(&w->f, i), n->calls);
	}
	return ret;
}

/* Returns the last moment of a part; 0: the part has not begun. */
static uint64_t counts_part_end(const struct exact_facts *f, unsigned int part, uint64_t end_ns)
{
	if (part && !f->part_at[part - 1])
		return 0;
	for (; part < f->nparts; part++)
		if (f->part_at[part])
			return EXACT_NS_AT(f->part_at[part] - 1);
	return end_ns;
}

static int counts_tell(struct writing *w)
{
	const struct exact_facts *f = exact_facts_of(w->r->vm);
	uint64_t end_ns = vm_result(w->r->vm)->end_ns;
	int ret = 0;

	for (w->part = 0; w->part <= f->nparts && !ret; w->part++) {
		w->now_ns = counts_part_end(f, w->part, end_ns);
		if (w->now_ns)
			ret = counts_tell_part(w);
	}
	w->now_ns = end_ns;
	for (size_t i = 0; i < w->flat.n && !ret; i++) {
		const struct flat *x = (const struct flat *)w->flat.item + i;

		w->stack.n = 0;
		counts_push(w, x->ip, true);
		ret = counts_put(w, COUNTS_EXEC, x->space, x->times);
	}
	return ret;
}

/* -- the whole file ---------------------------------------------------------------------------- */

void run_counts_begin(struct run_counts *c, struct profile_info *info, struct pipeline_options *opt)
{
	static const char *const name[COUNTS_EVENTS] = {
		[COUNTS_INSTRUCTIONS] = COUNTED_INSTRUCTIONS,
		[COUNTS_CALLS] = COUNTED_CALLS,
		[COUNTS_EXEC] = COUNTED_EXEC,
		[COUNTS_ENTRIES] = COUNTED_ENTRIES,
	};

	opt->no_samples = true;
	opt->seen = counts_seen;
	opt->seen_ctx = c;
	info->nevents = COUNTS_EVENTS;
	for (unsigned int i = 0; i < COUNTS_EVENTS; i++)
		info->event[i] = (struct profile_event){
			.name = name[i],
			.type = i ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
			.config = i ? PERF_COUNT_SW_DUMMY : PERF_COUNT_HW_INSTRUCTIONS,
			.period = 1,
		};
}

int run_counts_write(struct run *r, struct err *e)
{
	struct writing *w;
	int ret;

	/* Code of two kernels may have had the same address: its counts are sums. */
	if (r->stats.kernels > 1)
		return err_set(
			e, ENOTSUP,
			"--call-counts: the guest ran %u kernels, one after the other. Their "
			"counts are not kept apart, so none are written; end the run with the "
			"first kernel (--stop-at), or record without --call-counts",
			r->stats.kernels);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, ENOMEM, "out of memory for exact counts");
	w->r = r;
	w->e = e;
	r->counts.one_process = !r->stats.guest.have_tasks;
	w->top = TABLE_OF(struct exact_counts_top, counts_same_top);
	w->flat = TABLE_OF(struct flat, counts_same_flat);
	ret = exact_counts_of(r->vm, &w->f, e);
	if (!ret)
		r->counts.stats = w->f.stats;
	ret = ret ? ret : counts_add_up(w);
	ret = ret ? ret : counts_tell(w);
	table_deinit(&w->top);
	table_deinit(&w->flat);
	countfile_deinit(&w->f);
	free(w);
	return ret;
}

void run_counts_print(const struct run *r)
{
	const struct callstacks_stats *s = &r->counts.stats;

	if (r->opt->summary)
		reporter_printf(r->opt->reporter,
				"kvmprof: exact counts: %" PRIu64 " blocks, %" PRIu64
				" stacks, %" PRIu64 " interrupts, %" PRIu64
				" blocks left early; %" PRIu64
				" times it is not known how control came there\n",
				s->blocks, s->stacks, s->interrupts, s->partial, s->strange);
	if (s->lost || s->folded || s->deep || s->evicted)
		reporter_printf(r->opt->reporter,
				"kvmprof: exact counts: no room for %" PRIu64
				" runs of blocks (lost), %" PRIu64 " calls and %" PRIu64
				" deep calls (counted at their callers), %" PRIu64
				" stacks (their chains begin anew)\n",
				s->lost, s->folded, s->deep, s->evicted);
	if (r->counts.unknown_space)
		reporter_printf(r->opt->reporter,
				"kvmprof: exact counts: %" PRIu64
				" instructions of programs without their "
				"process: %s\n",
				r->counts.unknown_space,
				r->stats.guest.have_tasks && !*r->stats.guest.no_maps
					? "no sample has shown it; give a smaller -c N"
					: "this guest's programs are not told apart");
}

void run_counts_deinit(struct run_counts *c)
{
	idmap_deinit(&c->pid);
}
