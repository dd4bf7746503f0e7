/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds a guest's program. Each frame is found by call frame information if there is any
 * (unwind_cfi.c), else by frame pointers and the code around its place:
 *
 * A program may be built with or without frame pointers, and a stack contains both. The place of
 * the frame follows from what the code does next up to its return (framescan.h), followed across
 * calls: a function that undoes a frame has one, and one that returns from where rsp leads has
 * none. So a function without a frame does not use its caller's as its own, which would omit the
 * caller. Each return address must follow a call. Text is read from the program's memory when the
 * sample is processed; text that was unmapped since then ends the stack.
 *
 * At the end, the stack is complete only if there is evidence (user_start.h): rbp is 0 in the
 * middle of many stacks, because code without frame pointers uses it for numbers.
 */
#include "symbolizer/unwind/unwind_user.h"

#include "symbolizer/unwind/unwind_cfi.h"
#include "symbolizer/unwind/unwind_special.h"
#include "symbolizer/unwind/user_start.h"

#include <string.h>

/* The text of one program, as read by the scans. */
struct unwind_user_program {
	const struct memory *memory;
	const struct unwind_cfi *cfi;
	uint64_t space;
};

static size_t read_program(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct unwind_user_program *p = ctx;
	size_t n = p->memory->read(p->memory->ctx, p->space, va, dst, len);

	/*
	 * A process has no page of its file's text before it runs there, and none once it has
	 * ended.
	 */
	if (n < len && p->cfi->text)
		n += p->cfi->text(p->cfi->ctx, va + n, (uint8_t *)dst + n, len - n);
	return n;
}

bool walk_linkage_stub(const struct walk *w, uint64_t rip, uint64_t *slot)
{
	static const uint8_t endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t p[7], *q = p;
	int32_t disp;

	if (w->u->read_text(w->u->ctx, rip, p, 4) == 4 && !memcmp(p, endbr, 4))
		rip += 4;
	if (w->u->read_text(w->u->ctx, rip, p, sizeof(p)) != sizeof(p))
		return false;
	if (*q == 0xf2)
		q++;
	if (q[0] != 0xff || q[1] != 0x25)
		return false;
	memcpy(&disp, q + 2, sizeof(disp));
	*slot = rip + (uint64_t)(q - p) + 6 + (uint64_t)(int64_t)disp;
	return true;
}

/* Returns whether it would return to address 0. */
static bool is_zero(const struct walk *w, uint64_t at)
{
	uint64_t ret;

	return walk_read(w, at, &ret, 8) >= 0 && ret == 0;
}

/* Ends the stack: the code does not show its frame, or contradicts the stack. */
static enum step give_up(struct walk *w, const struct scan_regs *r)
{
	uint64_t word;

	/* Happens while execve() replaces a program: its stack is removed before its registers. */
	if (walk_read(w, r->rsp & ~UINT64_C(7), &word, 8) < 0)
		return walk_finish(w, STACK_END_CUT);
	return walk_finish(w, user_start_is_near(w, r->rip, r->rsp) ? STACK_END_START
								    : STACK_END_BAD_CHAIN);
}

/*
 * Returns whether rbp points to the frame of a caller in code without tables, that is, code
 * generated at run time or a part of its runtime: such code keeps frame pointers, or uses rbp for
 * values that look different.
 */
static bool is_in_chain(struct walk *w, const struct scan_regs *r)
{
	uint64_t frame[2], target, above;
	int slice = r->rbp % 8 ? -1 : walk_read(w, r->rbp, frame, sizeof(frame));

	if (slice < 0 || r->rbp < r->rsp || !walk_lacks_tables(w) ||
	    !walk_is_return(w, frame[1], &target))
		return false;
	/* Up to the last frame that was copied, each frame is above the one that it calls. */
	return frame[0] % 8 == 0 && frame[0] > r->rbp + 8 &&
	       (walk_read(w, frame[0], &above, 8) == slice ||
		walk_missing(w, frame[0]) == STACK_END_CUT);
}

/* Steps by the frame to which rbp points; java: the interpreter's, which has called a method. */
static enum step step_in_chain(struct walk *w, struct scan_regs *r, bool java)
{
	uint64_t sender;
	bool told = walk_java_sender(w, r->rbp, java, &sender);
	enum step st;

	if (java && !told)
		return give_up(w, r);
	st = walk_frame(w, r);
	if (st == STEP_ON && told)
		r->rsp = sender;
	return st;
}

static enum step step_program(struct walk *w, struct scan_regs *r)
{
	bool interrupted = w->out->exact[w->out->n - 1];
	struct scan sc;
	uint64_t slot;

	/* Nothing has been pushed yet. */
	if (interrupted && walk_linkage_stub(w, r->rip, &slot))
		return walk_scan(w, r, &(struct scan){ .kind = SCAN_AT_RSP });
	if (!interrupted && user_start_is(w, r->rip, r->rsp))
		return walk_finish(w, STACK_END_ROOT);
	if (!interrupted && walk_java_return(w, r->rip))
		return step_in_chain(w, r, true);
	sc = framescan(&w->code, r, SCAN_OVER_CALLS);
	if (sc.kind == SCAN_UNKNOWN) {
		sc = framescan(&w->code, r, SCAN_UNTIL_CALL);
		/* That it calls something proves nothing here. */
		if (sc.weak)
			sc.kind = SCAN_UNKNOWN;
	}
	switch (sc.kind) {
	case SCAN_FRAME:
		/* A function with a frame has its address in rbp. */
		if (r->rbp == 0)
			return give_up(w, r);
		if (r->rbp < r->rsp && !r->whole)
			return walk_finish(w, STACK_END_BAD_CHAIN);
		/*
		 * One that undoes its frame by rbp has one; any other value of rbp may lead to
		 * some 0.
		 */
		if (sc.weak && is_zero(w, r->rbp + 8))
			return give_up(w, r);
		return walk_frame(w, r);
	case SCAN_AT_RSP:
		if (is_zero(w, r->rsp + (uint64_t)sc.off))
			return give_up(w, r);
		return walk_scan(w, r, &sc);
	default:
		return !interrupted && is_in_chain(w, r) ? step_in_chain(w, r, false)
							 : give_up(w, r);
	}
}

/* Copies the registers that the code scan tracks to w->regs; others keep their known values. */
static void set_regs(struct walk *w, const struct scan_regs *r)
{
	cfi_set(&w->regs, CFI_RIP, r->rip);
	cfi_set(&w->regs, CFI_RSP, r->rsp);
	cfi_set(&w->regs, CFI_RBP, r->rbp);
}

void walk_program(struct walk *w, struct scan_regs *r)
{
	const struct unwinder *all = w->u;
	struct unwind_user_program p = {
		.memory = &all->programs,
		.cfi = &all->cfi,
		.space = w->s->regs.cr3,
	};
	const struct unwinder u = {
		.read_text = read_program,
		.ctx = &p,
		.text_start = w->code.own.start,
		.text_end = w->code.own.end,
		.frame_pointers = true,
	};
	enum step st = STEP_ON;

	w->u = w->code.u = &u;
	set_regs(w, r);
	while (st == STEP_ON) {
		w->out->sp[w->out->n - 1] = w->regs.r[CFI_RSP];
		if (w->signal_return && w->regs.r[CFI_RIP] == w->signal_return)
			st = walk_from_signal(w);
		else
			st = walk_cfi(w);
		if (st == STEP_UNKNOWN && w->out->exact[w->out->n - 1] &&
		    walk_signal_interrupted(w, w->regs.r[CFI_RIP]))
			st = walk_from_signal(w);
		if (st != STEP_UNKNOWN)
			continue;
		*r = (struct scan_regs){
			.rip = w->regs.r[CFI_RIP],
			.rsp = w->regs.r[CFI_RSP],
			.rbp = w->regs.r[CFI_RBP],
			.r10 = w->regs.r[CFI_R10],
			.whole = w->out->exact[w->out->n - 1] && cfi_knows(&w->regs, CFI_R10),
		};
		st = step_program(w, r);
		w->regs.known = 0;
		set_regs(w, r);
	}
	w->u = w->code.u = all;
}
