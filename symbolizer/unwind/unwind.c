/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/unwind.h"

#include "base/linux_regs.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/unwind/framescan.h"
#include "symbolizer/unwind/unwind32.h"
#include "symbolizer/unwind/unwind_cfi.h"
#include "symbolizer/unwind/unwind_orc.h"
#include "symbolizer/unwind/unwind_search.h"
#include "symbolizer/unwind/unwind_user.h"
#include "symbolizer/unwind/walk.h"

#include <string.h>

const struct unwind_region *unwind_region_at(const struct unwind_region *r, size_t n, uint64_t va)
{
	if (!n)
		return NULL;
	/*
	 * Find the first region that ends after va. No branch depends on va, which is
	 * unpredictable.
	 */
	while (n > 1) {
		size_t half = n / 2;

		r = r[half - 1].end <= va ? r + half : r;
		n -= half;
	}
	return va >= r->start && va < r->end ? r : NULL;
}

/* Handles code without a frame of its own: only the path to its return shows the caller. */
static enum step step_frameless(struct walk *w, struct scan_regs *r)
{
	struct scan sc;

	/* Entry code has no frame but marks the registers below it. */
	if ((r->rbp & 1) && !w->code.user)
		return walk_cross_pt_regs(w, r, r->rbp - 1);
	sc = framescan(&w->code, r, SCAN_OVER_CALLS);
	/*
	 * "No frame" and "rbp points to the frame" contradict each other, unless rsp itself
	 * returns to rbp.
	 */
	if (sc.kind == SCAN_FRAME && r->rbp != 0)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	return walk_scan(w, r, &sc);
}

static bool has_names(const struct walk *w, uint64_t va)
{
	const struct unwind_region *text = framescan_code_at(&w->code, va);

	return text && text->symbols;
}

/* Handles a function that was interrupted at any of its instructions. */
static enum step step_interrupted(struct walk *w, struct scan_regs *r)
{
	struct scan sc = framescan(&w->code, r, SCAN_UNTIL_CALL);

	/* An iretq whose frame is yet to be pushed starts something new; it is not a return. */
	if (sc.kind == SCAN_UNKNOWN || (sc.kind == SCAN_IRET && sc.off < 0)) {
		sc = framescan_linear(&w->code, r->rip);
		if (sc.kind == SCAN_UNKNOWN)
			return step_frameless(w, r);
	} else if (sc.kind == SCAN_FRAME && sc.weak && !has_names(w, r->rip)) {
		/*
		 * Without names: check whether the code removes what it has pushed, which means
		 * that it has no frame.
		 */
		struct scan far = framescan(&w->code, r, SCAN_OVER_CALLS);

		if (far.kind == SCAN_AT_RSP && far.by_return)
			sc = far;
	} else if (sc.kind == SCAN_FRAME && sc.weak &&
		   framescan_owner(&w->code, r->rip, 0) == OWNER_NONE) {
		return step_frameless(w, r);
	}
	return walk_scan(w, r, &sc);
}

/* Handles a return address: its function is executing a call. */
static enum step step_caller(struct walk *w, struct scan_regs *r)
{
	struct scan sc;

	switch (framescan_owner(&w->code, r->rip, 1)) {
	case OWNER_FRAME:
	case OWNER_PART:
		return walk_frame(w, r);
	case OWNER_NONE:
		if (r->rbp == 0)
			return walk_finish(w, STACK_END_ROOT);
		return step_frameless(w, r);
	case OWNER_UNKNOWN:
		break;
	}
	if (r->rbp == 0)
		return walk_finish(w, STACK_END_ROOT);
	if ((r->rbp & 1) && !w->code.user)
		return walk_cross_pt_regs(w, r, r->rbp - 1);
	/* Without names, only the code distinguishes an entry stub from a function. */
	sc = framescan(&w->code, r, SCAN_UNTIL_CALL);
	if (sc.kind == SCAN_UNKNOWN)
		sc.kind = SCAN_FRAME; /* e.g. the call does not return */
	if (sc.kind != SCAN_FRAME && sc.kind != SCAN_IRET)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	return walk_scan(w, r, &sc);
}

/* Handles the first instruction after SYSCALL, where the program's rip is in rcx (SDM vol. 2). */
static bool at_system_call(struct walk *w, struct scan_regs *r)
{
	uint64_t rip = w->s->regs.gpr[GPR_RCX];

	if (!walk_is_program(w->u, rip, w->s->regs.cs))
		return false;
	walk_enter_program(w);
	walk_regs_of_sample(w);
	r->rip = rip;
	return walk_push(w, rip, FRAME_REGS, WALK_IP_EXACT);
}

/*
 * Returns whether rip is the instruction itself instead of a return address. A task that is not
 * running is after the call of the switch. One that has never run is at its first instruction.
 */
static bool stands_at(const struct unwinder *u, const struct sample *s)
{
	const struct symbol *sym;
	uint64_t off;

	if (s->reason != SAMPLE_OFFCPU)
		return true;
	sym = u->symbols ? symtab_lookup(u->symbols, s->regs.rip, &off) : NULL;
	return sym && off == 0;
}

/* Returns whether code that ORC does not know has frames to which rbp points. */
static bool keeps_frames(const struct walk *w, uint64_t rip)
{
	const struct unwind_region *text = framescan_code_at(&w->code, rip);

	return text && (text->form == UNWIND_FORM_FRAMES || w->u->frame_pointers);
}

#define CR0_PE 1u
#define EFER_LMA (1u << 10)

/*
 * Returns whether the sample is in protected mode without long mode (SDM vol. 3, 2.2). Samples of
 * unknown mode have no cr0.
 */
static bool is_32bit(const struct sample *s)
{
	return (s->regs.cr0 & CR0_PE) && !(s->regs.efer & EFER_LMA) && s->mode != SAMPLE_USER;
}

void unwind(const struct unwinder *u, const struct sample *s, struct stack *out)
{
	struct walk w = {
		.u = u,
		.s = s,
		.out = out,
		.cfi = u->cfi,
		.code = { .u = u,
			  .own = { .start = u->text_start,
				   .end = u->text_end,
				   .orc = u->orc,
				   .symbols = u->symbols } },
	};
	struct scan_regs r = {
		.rip = s->regs.rip,
		.rsp = s->regs.gpr[GPR_RSP],
		.rbp = s->regs.gpr[GPR_RBP],
		.r10 = s->regs.gpr[GPR_R10],
		.r13 = s->regs.gpr[GPR_R13],
		.rdi = s->regs.gpr[GPR_RDI],
		.rdx = s->regs.gpr[GPR_RDX],
		.rax = s->regs.gpr[GPR_RAX],
		.whole = s->reason != SAMPLE_OFFCPU,
	};
	bool orc = u->orc && s->mode != SAMPLE_USER;
	bool search = unwind_method(u) == UNWIND_SEARCH && s->mode != SAMPLE_USER;
	enum step st = STEP_ON;
	uint8_t byte;

	if (s->mode != SAMPLE_USER && r.rip - u->load_start < u->load_len)
		r.rip += u->text_start - u->load_start;

	out->n = out->n_kernel = 0;
	out->end = STACK_END_BAD_CHAIN;
	out->user_end = 0;
	if (s->mode == SAMPLE_USER) {
		if (!walk_in_user_text(u, r.rip) && walk_is_program(u, r.rip, s->regs.cs))
			walk_enter_program(&w);
		else
			walk_enter_user(&w);
		walk_regs_of_sample(&w);
	}
	(void)walk_push(&w, r.rip, FRAME_REGS, stands_at(u, s) ? WALK_IP_EXACT : WALK_IP_RETURN);
	if (is_32bit(s)) {
		if (u->frame_pointers32 && framescan_code_at(&w.code, r.rip))
			walk_32(&w);
		else
			out->end = u->frame_pointers32 ? STACK_END_NO_TEXT : STACK_END_NO_FP;
		return;
	}
	/*
	 * SYSCALL has jumped but no instruction has been executed: the only caller is the program.
	 */
	if (!w.code.user && (s->regs.cs & 3) == 3) {
		out->end = STACK_END_USER;
		if (!at_system_call(&w, &r))
			return;
	}
	if (!w.code.user &&
	    (s->mode == SAMPLE_USER ? !u->frame_pointers : unwind_method(u) == UNWIND_INNERMOST)) {
		out->end = STACK_END_NO_FP;
		return;
	}
	if (!w.program && !orc && !framescan_code_at(&w.code, r.rip)) {
		out->end = w.code.user ? STACK_END_NO_FP : STACK_END_NO_TEXT;
		return;
	}
	if (!w.program && !orc && u->read_text(u->ctx, r.rip, &byte, 1) == 0) {
		out->end = STACK_END_NO_TEXT;
		return;
	}
	for (int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++) {
		const struct sample_slice *sl = &s->slice[i];

		/* Bytes below rsp do not belong to the chain. */
		if (r.rsp > sl->va && r.rsp - sl->va < sl->len)
			w.floor[i] = r.rsp;
	}
	while (st == STEP_ON) {
		if (w.program) {
			walk_program(&w, &r);
			return;
		}
		if (u->orc && !w.code.user) {
			st = walk_step_orc(&w, &r);
			if (st != STEP_UNKNOWN)
				continue;
			if (!keeps_frames(&w, out->exact[out->n - 1] ? r.rip : r.rip - 1)) {
				st = walk_step_scanned(&w, &r);
				continue;
			}
		}
		if (search && !w.code.user)
			st = walk_step_searched(&w, &r);
		else if (out->exact[out->n - 1])
			st = step_interrupted(&w, &r);
		else
			st = step_caller(&w, &r);
	}
}
