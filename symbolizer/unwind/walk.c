/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/walk.h"

#include "base/linux_regs.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/unwind/unwind_cfi.h"
#include "symbolizer/unwind/unwind_special.h"

#include <string.h>

enum step walk_finish(struct walk *w, enum stack_end end)
{
	/* Even a stack that looks complete is not: a frame was only searched for. */
	if (w->guessed &&
	    (end == STACK_END_ROOT || end == STACK_END_USER || end == STACK_END_START))
		end = STACK_END_SCANNED;
	if (w->code.user)
		w->out->user_end = (uint8_t)end;
	/* The end of the program's frames does not make the kernel's incomplete. */
	if (!w->code.user || w->out->n_kernel == 0)
		w->out->end = (uint8_t)end;
	return STEP_END;
}

bool walk_push(struct walk *w, uint64_t ip, enum frame_quality q, enum walk_ip is)
{
	struct stack *o = w->out;

	if (o->n == STACK_MAX_FRAMES) {
		walk_finish(w, STACK_END_DEPTH);
		return false;
	}
	o->ip[o->n] = ip;
	o->quality[o->n] = (uint8_t)q;
	/* The first instruction of the code to which a signal handler returns follows no call. */
	o->exact[o->n] = is == WALK_IP_EXACT || ip == w->signal_return;
	o->n++;
	if (!w->code.user)
		o->n_kernel = o->n;
	return true;
}

int walk_read(const struct walk *w, uint64_t va, void *dst, size_t n)
{
	const struct sample *s = w->s;

	for (int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++) {
		const struct sample_slice *sl = &s->slice[i];
		uint64_t rel = va - sl->va;

		if (va >= sl->va && rel <= sl->len && n <= sl->len - rel) {
			/* Usually it is one word, which needs only one instruction. */
			if (n == 8)
				memcpy(dst, s->stack + sl->off + rel, 8);
			else
				memcpy(dst, s->stack + sl->off + rel, n);
			return i;
		}
	}
	return -1;
}

enum stack_end walk_missing(const struct walk *w, uint64_t va)
{
	const struct sample *s = w->s;

	if (s->nslices == 0)
		return STACK_END_CUT;
	for (int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++) {
		const struct sample_slice *sl = &s->slice[i];

		/* No known stack is larger than 64 KiB. */
		if (va >= sl->va && va - sl->va < sl->len + 65536ull)
			return STACK_END_CUT;
	}
	return STACK_END_BAD_CHAIN;
}

/*
 * Returns whether text patched at boot (arch/x86/kernel/alternative.c) has a call here that ended
 * elsewhere in the image.
 */
static bool patched_call_before(const struct walk *w, const uint8_t *p, size_t n, uint64_t ret)
{
	const struct symbol *sym;
	uint64_t target, off;
	uint8_t rel[8];

	if (w->code.user || n < 5)
		return false;
	/* call *mem (6 or 7 bytes) became call rel32 (5) and a nop */
	if (p[n - 5] == 0xff && (p[n - 4] == 0x15 || (p[n - 4] == 0x14 && p[n - 3] == 0x25)))
		return true;
	/* call __x86_indirect_thunk_reg (5 bytes) became call *reg (2 or 3) and a nop */
	for (unsigned int k = 2; k <= 3; k++) {
		if (p[n - k] != 0xe8 || w->u->read_text(w->u->ctx, ret - k + 1, rel, 4) < 4)
			continue;
		target = ret - k + 5 +
			 (uint64_t)(int64_t)(int32_t)(rel[0] | rel[1] << 8 | rel[2] << 16 |
						      (uint32_t)rel[3] << 24);
		sym = framescan_symbol(&w->code, target, &off);
		if (sym && off == 0 && !strncmp(sym->name, "__x86_indirect_", 15))
			return true;
	}
	return false;
}

/*
 * Returns whether va is on a program's stack, where no code is executed. Its bytes may look like a
 * call by chance.
 */
static bool is_on_stack(const struct walk *w, uint64_t va)
{
	const struct sample *s = w->s;

	for (int i = 0; i < s->nslices && i < SAMPLE_MAX_SLICES; i++)
		if (va - s->slice[i].va < s->slice[i].len)
			return true;
	return false;
}

enum cfi_call walk_call_before(const struct walk *w, uint64_t ret, uint64_t *target)
{
	const struct unwind_region *text = framescan_code_at(&w->code, ret - 1);
	uint64_t from = ret - 8;
	uint8_t p[8];
	size_t n;

	if (!text || (w->program && is_on_stack(w, ret)))
		return CFI_NO_CALL;
	if (ret - text->start < 8)
		from = text->start;
	n = w->u->read_text(w->u->ctx, from, p, (size_t)(ret - from));
	if (n < ret - from)
		return CFI_CALL_UNKNOWN;
	if (insn_call_before(ret, p, n, target) &&
	    (!*target || framescan_code_at(&w->code, *target)))
		return CFI_CALL;
	*target = 0;
	return patched_call_before(w, p, n, ret) ? CFI_CALL : CFI_NO_CALL;
}

bool walk_is_return(const struct walk *w, uint64_t ret, uint64_t *target)
{
	enum cfi_call call = walk_call_before(w, ret, target);

	return call == CFI_CALL || (call == CFI_NO_CALL && w->program && !is_on_stack(w, ret) &&
				    walk_java_return(w, ret));
}

/*
 * Handles the outermost frame: head_64.S starts the first C function of each CPU with lretq, from
 * a pushed return address.
 */
static bool is_start_of_cpu(const struct walk *w, uint64_t ret)
{
	uint8_t p[2];

	return !w->code.user && ret > w->code.own.start + 2 && ret <= w->code.own.end &&
	       w->u->read_text(w->u->ctx, ret - 2, p, 2) == 2 && p[0] == 0x48 && p[1] == 0xcb;
}

void walk_enter_user(struct walk *w)
{
	w->code.user = true;
	w->code.own.start = w->u->user_start;
	w->code.own.end = w->u->user_end;
	w->code.own.orc = NULL;
}

bool walk_in_user_text(const struct unwinder *u, uint64_t rip)
{
	return rip >= u->user_start && rip < u->user_end;
}

bool walk_is_program(const struct unwinder *u, uint64_t rip, uint64_t cs)
{
	return u->programs.read && cs == LINUX_USER_CS64 && !(rip >> LINUX_USER_BITS);
}

void walk_enter_program(struct walk *w)
{
	w->program = w->code.user = true;
	w->code.own =
		(struct unwind_region){ .start = 4096, .end = UINT64_C(1) << LINUX_USER_BITS };
}

/* Continues at an interrupted place, whose registers are all known. */
static enum step resume(struct walk *w, struct scan_regs *r, uint64_t cs)
{
	if (cs & 3) {
		if (w->code.user)
			return walk_finish(w, STACK_END_BAD_CHAIN);
		walk_finish(w, STACK_END_USER);
		if (walk_in_user_text(w->u, r->rip))
			walk_enter_user(w);
		else if (walk_is_program(w->u, r->rip, cs))
			walk_enter_program(w);
		else
			return STEP_END;
	} else if (r->rip == 0) {
		/* These are the empty pt_regs at the end of a kernel thread's stack. */
		return walk_finish(w, STACK_END_ROOT);
	} else if (w->code.user || (!w->u->orc && !framescan_code_at(&w->code, r->rip))) {
		return walk_finish(w, STACK_END_BAD_CHAIN);
	} else if (w->u->orc && !(r->rip >> 63)) {
		/*
		 * ORC leads only to valid registers, also to those of code that it does not know.
		 */
		return walk_finish(w, STACK_END_BAD_CHAIN);
	}
	if (!walk_push(w, r->rip, FRAME_REGS, WALK_IP_EXACT))
		return STEP_END;
	return STEP_ON;
}

/* Returns a register of a struct pt_regs; one that has been popped already is live instead. */
static void take_reg(uint64_t *reg, const uint8_t *b, unsigned int off, uint64_t popped)
{
	if (off >= popped)
		memcpy(reg, b + off, 8);
}

enum step walk_cross_pt_regs(struct walk *w, struct scan_regs *r, uint64_t at)
{
	uint64_t popped = 0, cs;
	uint8_t b[LINUX_REGS_LEN];
	int slice;

	if (at % 8 || w->code.user)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	/* On the way out, entry code pops them one by one; below rsp nothing was captured. */
	if (r->whole && at < r->rsp && r->rsp - at <= PT_IP)
		popped = r->rsp - at;
	slice = walk_read(w, at + popped, b + popped, sizeof(b) - popped);
	if (slice < 0)
		return walk_finish(w, walk_missing(w, at + sizeof(b) - 1));
	if (at + popped < w->floor[slice])
		return walk_finish(w, STACK_END_BAD_CHAIN);
	w->floor[slice] = at + sizeof(b);
	take_reg(&r->r13, b, PT_R13, popped);
	take_reg(&r->rbp, b, PT_BP, popped);
	take_reg(&r->r10, b, PT_R10, popped);
	take_reg(&r->rax, b, PT_AX, popped);
	take_reg(&r->rdx, b, PT_DX, popped);
	take_reg(&r->rdi, b, PT_DI, popped);
	r->whole = true;
	memcpy(&r->rip, b + PT_IP, 8);
	memcpy(&r->rsp, b + PT_SP, 8);
	memcpy(&cs, b + PT_CS, 8);
	if (linux_regs_selector(cs) & 3)
		walk_regs_of_pt_regs(w, b, popped);
	return resume(w, r, linux_regs_selector(cs));
}

enum step walk_cross_iret(struct walk *w, struct scan_regs *r, uint64_t at)
{
	uint64_t cs, sp;
	uint8_t b[LINUX_IRET_LEN];
	int slice;

	if (at % 8 || w->code.user)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	slice = walk_read(w, at, b, sizeof(b));
	if (slice < 0)
		return walk_finish(w, walk_missing(w, at + sizeof(b) - 1));
	memcpy(&r->rip, b + IRET_IP, 8);
	memcpy(&cs, b + IRET_CS, 8);
	cs = linux_regs_selector(cs);
	memcpy(&sp, b + IRET_SP, 8);
	/*
	 * The processor aligns rsp to 16 and pushes (SDM vol. 3, 6.14.2), or has
	 * switched stacks. Anything else is not an interrupt frame.
	 */
	if (at < w->floor[slice] ||
	    (!(cs & 3) && (sp & ~15ull) != at + LINUX_IRET_LEN && walk_read(w, sp, b, 8) == slice))
		return walk_finish(w, STACK_END_BAD_CHAIN);
	w->floor[slice] = at + LINUX_IRET_LEN;
	r->rsp = sp;
	w->regs.known = 0;
	r->r10 = 0; /* unknown */
	r->whole = false;
	return resume(w, r, cs);
}

/*
 * Reads the return address at `at` and accepts it as a caller: the registers become those after
 * the return. rbp is the caller's value.
 */
static enum step return_to(struct walk *w, struct scan_regs *r, uint64_t at, uint64_t rbp,
			   enum frame_quality q)
{
	uint64_t ret, target;
	int slice;

	if (at % 8)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	slice = walk_read(w, at, &ret, 8);
	if (slice < 0)
		return walk_finish(w, walk_missing(w, at + 7));
	if (at < w->floor[slice])
		return walk_finish(w, STACK_END_BAD_CHAIN);
	walk_traced(w, at, &ret);
	/* Without a frame, a zero alone is weak evidence: it may be any local variable. */
	if (ret == 0)
		return walk_finish(w, q == FRAME_FP || rbp == 0 ? STACK_END_ROOT
								: STACK_END_BAD_CHAIN);
	if (!walk_is_return(w, ret, &target) && !walk_signal_return(w, ret)) {
		if (rbp != 0 || !is_start_of_cpu(w, ret))
			return walk_finish(w, STACK_END_BAD_CHAIN);
	}
	w->floor[slice] = at + 8;
	r->rip = ret;
	r->rsp = at + 8;
	r->whole = false;
	r->rbp = rbp;
	r->r10 = 0;
	return walk_push(w, ret, q, WALK_IP_RETURN) ? STEP_ON : STEP_END;
}

enum step walk_frame(struct walk *w, struct scan_regs *r)
{
	uint64_t fp = r->rbp, saved;
	int slice;

	if (fp == 0)
		return walk_finish(w, STACK_END_ROOT);
	if (fp & 1)
		return walk_cross_pt_regs(w, r, r->rbp - 1);
	if (fp % 8)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	slice = walk_read(w, fp, &saved, 8);
	if (slice < 0)
		return walk_finish(w, walk_missing(w, fp + 15));
	if (fp < w->floor[slice])
		return walk_finish(w, STACK_END_BAD_CHAIN);
	return return_to(w, r, fp + 8, saved, FRAME_FP);
}

enum step walk_scan(struct walk *w, struct scan_regs *r, const struct scan *sc)
{
	uint64_t rbp = r->rbp;

	if (sc->kind != SCAN_FRAME && sc->rbp_saved &&
	    walk_read(w, r->rsp + (uint64_t)sc->rbp_off, &rbp, 8) < 0)
		return walk_finish(w, walk_missing(w, r->rsp + (uint64_t)sc->rbp_off + 7));
	switch (sc->kind) {
	case SCAN_FRAME:
		return walk_frame(w, r);
	case SCAN_AT_RSP:
		return return_to(w, r, r->rsp + (uint64_t)sc->off, rbp, FRAME_LEAF);
	case SCAN_AT_R10:
		return return_to(w, r, r->r10 - 8, rbp, FRAME_LEAF);
	case SCAN_IRET:
		r->rbp = rbp;
		return walk_cross_iret(w, r, r->rsp + (uint64_t)sc->off);
	default:
		return walk_finish(w, STACK_END_BAD_CHAIN);
	}
}
