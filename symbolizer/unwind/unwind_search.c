/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds a kernel that has neither frame pointers nor usable tables.
 *
 * A function removes what it has pushed before it returns, so the code from rip to a return shows
 * where its return address is. If that leads nowhere (calls that do not return, jumps by a
 * register, another stack), the stack is searched for an address after a call of this very
 * function. In both cases it must be a return address, and such a stack ends as `scanned`, never
 * as complete.
 */
#include "symbolizer/unwind/unwind_search.h"

#include "base/linux_regs.h"
#include "symbolizer/core/insn.h"

#include <string.h>

#define MAX_STEPS 1024u
#define MAX_WAYS 32u
#define MAX_SEEN 64u
#define SEARCH_BYTES 4096u
/* No frame is larger, and sums of this many steps cannot overflow. */
#define MAX_FRAME 65536
#define PAGE 4096u

/* One path through the code, with the state of rsp and rbp relative to rsp at rip. */
struct search_way {
	uint64_t va;
	int64_t delta, rbp_at; /* rbp_at: where the caller's rbp was popped from, if popped */
	bool popped;
};

struct unwind_search_search {
	struct walk *w;
	const struct scan_regs *r;
	const struct symbol *here; /* the function at rip */
	struct search_way way[MAX_WAYS];
	uint64_t seen[MAX_SEEN];
	unsigned int nways, nseen, steps;
};

/* The result of following a path. */
enum search_end { SEARCH_NOWHERE, SEARCH_RETURN, SEARCH_IRET };

static bool search_is_start(const struct unwind_search_search *s, uint64_t va)
{
	uint64_t off;
	const struct symbol *sym = framescan_symbol(&s->w->code, va, &off);

	return sym && sym != s->here && off == 0;
}

/* Advances by one instruction. Returns false if the path cannot be followed any further. */
static bool search_move(struct search_way *x, const struct insn *i, const struct scan_regs *r)
{
	switch (i->kind) {
	case INSN_PUSH_RBP:
		x->delta -= 8;
		break;
	case INSN_POP_RBP:
		x->popped = true;
		x->rbp_at = x->delta;
		x->delta += 8;
		break;
	case INSN_LEAVE:
		if (x->popped || r->rbp < r->rsp || r->rbp - r->rsp > MAX_FRAME)
			return false;
		x->popped = true;
		x->rbp_at = (int64_t)(r->rbp - r->rsp);
		x->delta = x->rbp_at + 8;
		break;
	case INSN_RSP_ADD:
		x->delta += i->value;
		break;
	case INSN_PUSH_R10_M8:
		x->delta -= 8;
		break;
	case INSN_RSP_FROM_RBP:
	case INSN_RSP_FROM_R10:
	case INSN_RSP_LOST:
	case INSN_JMP_IND:
	case INSN_TRAP:
		return false;
	default: /* calls return with rsp unchanged */
		break;
	}
	return x->delta < MAX_FRAME && x->delta > -MAX_FRAME;
}

static enum search_end search_follow(struct unwind_search_search *s, struct search_way *x)
{
	const struct unwinder *u = s->w->u;

	while (s->steps++ < MAX_STEPS && framescan_code_at(&s->w->code, x->va)) {
		uint8_t p[INSN_MAX_LEN];
		struct insn i;

		if (!insn_decode(&i, x->va, p, u->read_text(u->ctx, x->va, p, sizeof(p))))
			return SEARCH_NOWHERE;
		if (i.kind == INSN_RET)
			return SEARCH_RETURN;
		if (i.kind == INSN_IRET)
			return SEARCH_IRET;
		if (!search_move(x, &i, s->r))
			return SEARCH_NOWHERE;
		x->va += i.len;
		if (i.kind == INSN_JCC && s->nways < MAX_WAYS) {
			s->way[s->nways] = *x;
			s->way[s->nways++].va = (uint64_t)i.value;
		} else if (i.kind == INSN_JMP) {
			/* It is another function's start: its return address is our caller's. */
			if (x->delta >= 0 && search_is_start(s, (uint64_t)i.value))
				return SEARCH_RETURN;
			x->va = (uint64_t)i.value;
			if (!framescan_first_visit(s->seen, &s->nseen, MAX_SEEN, x->va))
				return SEARCH_NOWHERE;
		}
	}
	return SEARCH_NOWHERE;
}

static enum step search_accept(struct walk *w, struct scan_regs *r, uint64_t at, uint64_t ret,
			       int slice)
{
	w->guessed = true;
	w->floor[slice] = at + 8;
	r->rip = ret;
	r->rsp = at + 8;
	r->whole = false;
	return walk_push(w, ret, FRAME_SCAN, WALK_IP_RETURN) ? STEP_ON : STEP_END;
}

/*
 * Returns the slice of a return address at `at`, or -1. *direct: the call before it calls the
 * function here.
 */
static int search_return_at(const struct unwind_search_search *s, uint64_t at, uint64_t *ret,
			    bool *direct, bool *elsewhere)
{
	uint64_t target;
	int slice = at % 8 ? -1 : walk_read(s->w, at, ret, 8);

	if (slice < 0 || at < s->w->floor[slice] || !walk_is_return(s->w, *ret, &target))
		return -1;
	*direct = s->here && target == s->here->addr;
	*elsewhere = target && !*direct;
	return slice;
}

/* Returns whether `at` is an iret frame that a processor can have saved. */
static bool search_is_iret(const struct walk *w, uint64_t at)
{
	struct linux_regs user;
	uint64_t f[5];

	if (at % 8 || walk_read(w, at, f, sizeof(f)) < 0)
		return false;
	if (linux_regs_at_end((const uint8_t *)(f + 5), sizeof(f), sizeof(f), &user))
		return true;
	return framescan_code_at(&w->code, f[0]) && !(linux_regs_selector(f[1]) & 3) &&
	       (f[2] & 2) && f[3] >> 63;
}

/*
 * Finds the caller by the code. A call of another function before the return address is accepted
 * only as a last resort: that function may have jumped here, or the path may be wrong.
 */
static enum step search_by_code(struct unwind_search_search *s, struct scan_regs *r,
				bool elsewhere_too)
{
	struct walk *w = s->w;

	s->nways = s->nseen = s->steps = 0;
	s->way[s->nways++] = (struct search_way){ .va = r->rip };
	while (s->nways && s->steps < MAX_STEPS) {
		struct search_way x = s->way[--s->nways];
		enum search_end end;
		bool direct, elsewhere;
		uint64_t at, ret, rbp = r->rbp;
		int slice;

		if (!framescan_first_visit(s->seen, &s->nseen, MAX_SEEN, x.va))
			continue;
		end = search_follow(s, &x);
		at = r->rsp + (uint64_t)x.delta;
		if (end == SEARCH_NOWHERE ||
		    (x.popped && walk_read(w, r->rsp + (uint64_t)x.rbp_at, &rbp, 8) < 0))
			continue;
		if (end == SEARCH_IRET) {
			if (!search_is_iret(w, at))
				continue;
			r->rbp = rbp;
			w->guessed = true;
			return walk_cross_iret(w, r, at);
		}
		slice = search_return_at(s, at, &ret, &direct, &elsewhere);
		if (slice < 0 || (elsewhere && !elsewhere_too))
			continue;
		r->rbp = rbp;
		return search_accept(w, r, at, ret, slice);
	}
	return STEP_UNKNOWN;
}

/* Searches the stack, and at the end of an interrupt stack continues on the stack before it. */
static enum step search_stack(struct unwind_search_search *s, struct scan_regs *r)
{
	const struct walk *w = s->w;
	uint64_t at = (r->rsp + 7) & ~7ull;
	unsigned int hops = 0;

	for (unsigned int n = 0; n < SEARCH_BYTES; n += 8) {
		bool direct, elsewhere;
		uint64_t word, ret, next;
		int slice = walk_read(w, at, &word, 8);

		if (slice < 0)
			break;
		slice = search_return_at(s, at, &ret, &direct, &elsewhere);
		if (slice >= 0 && direct)
			return search_accept(s->w, r, at, ret, slice);
		at += 8;
		if (walk_read(w, at, &next, 8) < 0 && !(word & 7) && hops++ == 0 &&
		    walk_read(w, word, &next, 8) >= 0)
			at = word;
	}
	return STEP_UNKNOWN;
}

/* Handles the end of a task's stack: the registers of its program, or zeros if it has none. */
static enum step search_end_of_stack(struct walk *w, struct scan_regs *r)
{
	static const uint8_t none[LINUX_REGS_LEN];
	const struct sample *s = w->s;

	for (int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++) {
		const struct sample_slice *sl = &s->slice[i];
		const uint8_t *end = s->stack + sl->off + sl->len;
		uint64_t at = sl->va + sl->len - LINUX_IRET_LEN;
		struct linux_regs user;

		if (r->rsp < sl->va || r->rsp - sl->va > sl->len || (sl->va + sl->len) % PAGE ||
		    sl->len < LINUX_REGS_LEN)
			continue;
		w->guessed = true;
		if (!memcmp(end - LINUX_REGS_LEN, none, LINUX_REGS_LEN))
			return walk_finish(w, STACK_END_ROOT);
		if (!linux_regs_at_end(end, sl->len, LINUX_REGS_LEN, &user))
			break;
		if (!search_is_iret(w, at))
			at -= 16; /* see base/linux_regs.h */
		return walk_cross_iret(w, r, at);
	}
	return walk_finish(w, STACK_END_NO_FP);
}

enum step walk_step_searched(struct walk *w, struct scan_regs *r)
{
	uint64_t ip = w->out->exact[w->out->n - 1] ? r->rip : r->rip - 1;
	struct unwind_search_search s = { .w = w,
					  .r = r,
					  .here = framescan_symbol(&w->code, ip, NULL) };
	enum step step;

	if (!framescan_code_at(&w->code, ip))
		return walk_finish(w, STACK_END_NO_TEXT);
	step = search_by_code(&s, r, false);
	step = step == STEP_UNKNOWN ? search_stack(&s, r) : step;
	step = step == STEP_UNKNOWN ? search_by_code(&s, r, true) : step;
	return step == STEP_UNKNOWN ? search_end_of_stack(w, r) : step;
}
