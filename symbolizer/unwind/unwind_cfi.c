/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds a program by its call frame information.
 *
 * A table may be wrong, because people write those of assembly by hand, or belong to another file
 * than the one that is mapped. So the result of a step is checked like any other: the stack grows,
 * and a return address follows a call, or leads to code whose own table says why it does not (the
 * C library's return from a signal handler, the first function of a created context). If a check
 * fails, the frame is found from its code instead.
 */
#include "symbolizer/unwind/unwind_cfi.h"

#include "base/linux_regs.h"
#include "symbolizer/unwind/unwind_special.h"

#include <string.h>

#define FRAME_MAX (UINT64_C(8) << 20)
#define OWN_BYTES 256 /* longest function that is taken for one that switches stacks */

/* DWARF register numbers in the order of instruction encoding. */
static const uint8_t of_gpr[GPR_COUNT] = {
	[GPR_RAX] = CFI_RAX, [GPR_RCX] = CFI_RCX, [GPR_RDX] = CFI_RDX, [GPR_RBX] = CFI_RBX,
	[GPR_RSP] = CFI_RSP, [GPR_RBP] = CFI_RBP, [GPR_RSI] = CFI_RSI, [GPR_RDI] = CFI_RDI,
	[GPR_R8] = CFI_R8,   [GPR_R9] = CFI_R9,	  [GPR_R10] = CFI_R10, [GPR_R11] = CFI_R11,
	[GPR_R12] = CFI_R12, [GPR_R13] = CFI_R13, [GPR_R14] = CFI_R14, [GPR_R15] = CFI_R15,
};

/* Registers in the kernel's struct pt_regs, arch/x86/include/asm/ptrace.h. */
static const uint8_t of_pt_regs[] = {
	CFI_R15, CFI_R14, CFI_R13, CFI_R12, CFI_RBP, CFI_RBX, CFI_R11, CFI_R10,
	CFI_R9,	 CFI_R8,  CFI_RAX, CFI_RCX, CFI_RDX, CFI_RSI, CFI_RDI,
};

void walk_regs_of_sample(struct walk *w)
{
	const struct sample_regs *s = &w->s->regs;

	for (unsigned int i = 0; i < GPR_COUNT; i++)
		cfi_set(&w->regs, of_gpr[i], s->gpr[i]);
	cfi_set(&w->regs, CFI_RIP, s->rip);
}

void walk_regs_of_pt_regs(struct walk *w, const uint8_t *b, uint64_t popped)
{
	struct cfi_regs live, *g = &w->regs;

	/* Popped registers are live if nothing has run since, that is, in the innermost frame. */
	walk_regs_of_sample(w);
	live = *g;
	g->known = 0;
	for (unsigned int i = 0; i < sizeof(of_pt_regs); i++) {
		uint64_t v = live.r[of_pt_regs[i]];

		if (i * 8 >= popped)
			memcpy(&v, b + i * 8, 8);
		else if (w->out->n != 1)
			continue;
		cfi_set(g, of_pt_regs[i], v);
	}
}

static bool read_stack(void *ctx, uint64_t va, uint64_t *out)
{
	return walk_read(ctx, va, out, sizeof(*out)) >= 0;
}

/*
 * Returns the facts about va, or NULL if unknown. All lookups go through here, since one
 * invalidates the previous.
 */
static const struct unwind_place *walk_place(struct walk *w, uint64_t va)
{
	if (!w->last.asked || w->last.va != va) {
		w->last.asked = true;
		w->last.va = va;
		w->last.known = w->cfi.find(w->cfi.ctx, va, &w->last.place);
	}
	return w->last.known ? &w->last.place : NULL;
}

/*
 * Returns whether ret was left by a call in this function's caller. Determined once for each
 * address.
 */
static bool is_return(struct walk *w, uint64_t ret)
{
	const struct unwind_place *place = walk_place(w, ret - 1);
	uint64_t target;

	if (!place || !place->call)
		return walk_is_return(w, ret, &target) || walk_signal_return(w, ret);
	if (*place->call == CFI_CALL_UNKNOWN)
		*place->call = (uint8_t)walk_call_before(w, ret, &target);
	if (*place->call == CFI_CALL)
		return true;
	if (place->row && (place->row->is_signal || place->row->rule[CFI_RIP].how == CFI_UNDEFINED))
		return true;
	return walk_signal_return(w, ret);
}

/* Sets the near bytes to the slice that contains rsp, and returns its number. */
static unsigned int set_near(const struct walk *w, struct cfi_stack *stack)
{
	const struct sample *s = w->s;
	uint64_t rsp = w->regs.r[CFI_RSP];

	for (unsigned int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++)
		if (rsp - s->slice[i].va < s->slice[i].len) {
			stack->near = s->stack + s->slice[i].off;
			stack->near_va = s->slice[i].va;
			stack->near_len = s->slice[i].len;
			return i;
		}
	return 0;
}

/*
 * Shrinks the remaining stack to the part above the caller's rsp. Returns false if the stack does
 * not grow.
 */
static bool consume(struct walk *w, uint64_t from, uint64_t rsp, bool is_signal)
{
	uint64_t word;
	int slice = walk_read(w, rsp - 8, &word, 8);

	if (slice < 0)
		return is_signal;
	if (rsp - 8 < w->floor[slice] || (!is_signal && rsp <= from))
		return false;
	w->floor[slice] = rsp;
	return true;
}

bool walk_lacks_tables(struct walk *w)
{
	bool exact = w->out->exact[w->out->n - 1];
	const struct unwind_place *place =
		w->cfi.find ? walk_place(w, w->regs.r[CFI_RIP] - !exact) : NULL;

	return place && !place->row;
}

enum step walk_interrupted(struct walk *w, const struct cfi_regs *next)
{
	if (next->r[CFI_RIP] == 0 || next->r[CFI_RIP] >> LINUX_USER_BITS ||
	    !consume(w, w->regs.r[CFI_RSP], next->r[CFI_RSP], true))
		return STEP_UNKNOWN;
	if (!walk_push(w, next->r[CFI_RIP], FRAME_REGS, WALK_IP_EXACT))
		return STEP_END;
	w->regs = *next;
	return STEP_ON;
}

/*
 * Does the work of walk_cfi() for a plain step. The slice is known here; consume() would look for
 * it again, which would cost the consumer some 5 % of its samples per second.
 */
static enum step walk_plain(struct walk *w, const struct cfi_plain *at, uint64_t *floor)
{
	if (at->ret == 0)
		return walk_finish(w, STACK_END_ROOT);
	if (!is_return(w, at->ret) || at->cfa - 8 < *floor || at->cfa <= w->regs.r[CFI_RSP])
		return STEP_UNKNOWN;
	*floor = at->cfa;
	if (!walk_push(w, at->ret, FRAME_CFI, WALK_IP_RETURN))
		return STEP_END;
	cfi_plain_apply(at, &w->regs);
	return STEP_ON;
}

/*
 * Returns whether ret is after a direct call of this very function, that is, without padding
 * between the function's first instruction and rip.
 */
static bool is_own_call(const struct walk *w, uint64_t ret)
{
	uint8_t code[OWN_BYTES];
	uint64_t target, rip = w->regs.r[CFI_RIP];
	size_t len;

	if (walk_call_before(w, ret, &target) != CFI_CALL || !target || rip - target > sizeof(code))
		return false;
	len = (size_t)(rip - target);
	return w->u->read_text(w->u->ctx, target, code, len) == len &&
	       !memmem(code, len, "\xcc\xcc", 2);
}

/*
 * Handles a function without a caller. Go's runtime describes in the same way a function that the
 * kernel calls to handle a signal, and one that switches stacks, which may not have done so at the
 * sample.
 */
static enum step walk_outermost(struct walk *w, const struct cfi_row *row)
{
	uint64_t rsp = w->regs.r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa, ret;

	if (row->cfa_len || !cfi_knows(&w->regs, row->cfa_reg) ||
	    walk_read(w, rsp - 8, &ret, 8) < 0 ||
	    (!walk_signal_return(w, ret) &&
	     !(w->out->exact[w->out->n - 1] && is_own_call(w, ret))) ||
	    !consume(w, w->regs.r[CFI_RSP], rsp, false))
		return walk_finish(w, STACK_END_ROOT);
	if (!walk_push(w, ret, FRAME_CFI, WALK_IP_RETURN))
		return STEP_END;
	w->regs.known = 0;
	cfi_set(&w->regs, CFI_RSP, rsp);
	cfi_set(&w->regs, CFI_RIP, ret);
	return STEP_ON;
}

enum step walk_cfi(struct walk *w)
{
	struct cfi_stack stack = { .read = read_stack, .ctx = w };
	bool exact = w->out->exact[w->out->n - 1], is_signal;
	const struct unwind_place *place;
	const struct cfi_row *row;
	struct cfi_plain plain;
	struct cfi_regs next;
	unsigned int slice;
	uint64_t ret;

	place = w->cfi.find ? walk_place(w, w->regs.r[CFI_RIP] - !exact) : NULL;
	row = place ? place->row : NULL;
	if (!row)
		return STEP_UNKNOWN;
	is_signal = row->is_signal;
	slice = set_near(w, &stack);
	if (cfi_plain_at(row, &w->regs, &stack, &plain))
		return walk_plain(w, &plain, &w->floor[slice]);
	switch (cfi_step(row, &w->regs, &stack, &next)) {
	case CFI_STEP_ROOT:
		return walk_outermost(w, row);
	case CFI_STEP_MISSING:
		/* A frame may have a megabyte: what is above was not copied. */
		return w->s->nslices == 0 || stack.missing - w->regs.r[CFI_RSP] < FRAME_MAX
			       ? walk_finish(w, STACK_END_CUT)
			       : STEP_UNKNOWN;
	case CFI_STEP_UNKNOWN:
		return STEP_UNKNOWN;
	case CFI_STEP_ON:
		break;
	}
	if (is_signal)
		return walk_interrupted(w, &next);
	ret = next.r[CFI_RIP];
	if (ret == 0)
		return walk_finish(w, STACK_END_ROOT);
	if (!is_return(w, ret) || !consume(w, w->regs.r[CFI_RSP], next.r[CFI_RSP], false))
		return STEP_UNKNOWN;
	if (!walk_push(w, ret, FRAME_CFI, WALK_IP_RETURN))
		return STEP_END;
	w->regs = next;
	return STEP_ON;
}
