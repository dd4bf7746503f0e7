/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Through what the function graph tracer traces, and what return probes probe.
 *
 * At the start of a function it puts return_to_handler in the place of the return address, and
 * keeps that one in an entry of the task's own stack, with the place where it lay (retp). A
 * sample has a copy of these entries as they were. A place on the stack has at most one entry in
 * use with a real return address: a function that is jumped to from the end of another one has
 * the tracer's own address in its entry. What lies above the entries in use is old, and is
 * looked at last. A return probe does the same, with entries on a list.
 *
 * Source: kernel/trace/fgraph.c (ftrace_graph_ret_addr), arch/x86/kernel/ftrace_64.S,
 * kernel/trace/rethook.c, kernel/kprobes.c.
 */
#include "base/cleanup.h"
#include "symbolizer/unwind/walk.h"

#include <string.h>

#define HANDLER "return_to_handler"
/* return_to_handler up to where it has restored rsp. */
#define MAX_BELOW 256
/* One function may have both of them. */
#define MAX_REPLACED 2u

bool walk_in_handler(const struct walk *w, uint64_t va)
{
	uint64_t off;
	const struct symbol *sym = code_symbol(&w->code, va, &off);

	return sym && !strcmp(sym->name, HANDLER);
}

/* Whose address is put in the place of others? NULL: of nobody that we know. */
static const struct unwind_graph *graph_of(const struct walk *w, uint64_t ret)
{
	static const char *const probes[] = { "arch_rethook_trampoline", "__kretprobe_trampoline",
					      "kretprobe_trampoline" };
	uint64_t off;
	const struct symbol *sym = code_symbol(&w->code, ret, &off);

	if (!sym || off)
		return NULL;
	if (!strcmp(sym->name, HANDLER))
		return w->u->graph.known ? &w->u->graph : NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(sym->name, probes[i]))
			return w->u->rethook.known ? &w->u->rethook : NULL;
	return NULL;
}

static uint64_t graph_word(const struct walk *w, uint32_t at)
{
	uint64_t v;

	memcpy(&v, w->s->stack + w->s->returns.off + at, sizeof(v));
	return v;
}

/* The address that was at retp before g's was put there; 0: not known. */
static uint64_t graph_return(const struct walk *w, const struct unwind_graph *g, uint64_t retp)
{
	uint32_t len = w->s->returns.len & ~7u;

	if (g->ret >= SAMPLE_MAX_RETURNS || g->retp >= SAMPLE_MAX_RETURNS)
		return 0;
	for (uint32_t at = 0; at < len; at += 8) {
		uint32_t other = at - g->retp + g->ret;
		const struct unwind_graph *next;
		uint64_t ret, target;

		if (at < g->retp || other > len - 8 || graph_word(w, at) != retp)
			continue;
		ret = graph_word(w, other);
		next = graph_of(w, ret);
		if (next ? next != g : !walk_in_handler(w, ret) && walk_is_return(w, ret, &target))
			return ret;
	}
	return 0;
}

void walk_traced(const struct walk *w, uint64_t at, uint64_t *ret)
{
	if (!w->s->returns.len || w->code.user)
		return;
	for (unsigned int n = 0; n < MAX_REPLACED; n++) {
		const struct unwind_graph *g = graph_of(w, *ret);
		uint64_t real = g ? graph_return(w, g, at) : 0;

		if (!real)
			return;
		*ret = real;
	}
}

enum step walk_from_handler(struct walk *w, struct scan_regs *r)
{
	struct scan sc = framescan_linear(&w->code, r->rip);
	uint64_t at, ret, byte;
	int slice;

	/* It was reached by a ret: rsp was behind the place of the return address. */
	if (sc.kind != SCAN_AT_RSP || sc.off < 0 || sc.off > MAX_BELOW || !w->s->returns.len ||
	    !w->u->graph.known)
		return STEP_UNKNOWN;
	at = r->rsp + (uint64_t)sc.off - 8;
	ret = graph_return(w, &w->u->graph, at);
	slice = walk_read(w, at, &byte, 8);
	if (!ret || slice < 0 || at + 8 < w->floor[slice])
		return STEP_UNKNOWN;
	w->floor[slice] = at + 8;
	r->rip = ret;
	r->rsp = at + 8;
	r->r10 = 0;
	r->whole = false;
	return walk_push(w, ret, FRAME_ORC, WALK_IP_RETURN) ? STEP_ON : STEP_END;
}
