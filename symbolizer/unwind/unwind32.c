/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds a kernel that runs in 32-bit mode: frame pointers, in words of four bytes.
 *
 *	frame := saved %ebp:4 return address:4, at %ebp (System V ABI, Intel386 supplement, 2.2).
 *
 * At the sampled instruction itself the frame may not exist yet, or not any more; the bytes at eip
 * decide. A short stack is better than a wrong one: each return address is in the kernel's text
 * and follows a call, and frames go upward only. Interrupt frames are not crossed.
 */
#include "symbolizer/unwind/unwind32.h"

#include "symbolizer/core/insn.h"

#define OP_POP_EBP 0x5d
#define OP_RET 0xc3
#define OP_RET_N 0xc2

struct frame32 {
	uint32_t ret_at; /* address of the return address */
	uint32_t ebp;	 /* the caller's, if known */
	bool known;
};

static bool read32(const struct walk *w, uint64_t va, uint32_t *out)
{
	return walk_read(w, va, out, sizeof(*out)) >= 0;
}

/* How much of its frame the function at eip has set up. */
enum progress {
	BEFORE_PUSH,
	BEFORE_MOV,
	IN_FRAME,
	FRAMELESS,
};

static enum progress unwind32_look(const struct walk *w, uint64_t eip)
{
	uint8_t p[INSN_PROLOGUE32_MAX];
	unsigned int push, mov;
	uint64_t off;
	size_t n;

	/* Without a symbol that is unknown. */
	if (!framescan_symbol(&w->code, eip, &off))
		return IN_FRAME;
	n = w->u->read_text(w->u->ctx, eip - off, p, sizeof(p));
	if (!insn_prologue32(p, n, &push, &mov))
		return FRAMELESS;
	return off <= push ? BEFORE_PUSH : off <= mov ? BEFORE_MOV : IN_FRAME;
}

/* Finds the return address of the function that was interrupted at eip. */
static bool find_first(const struct walk *w, uint32_t eip, uint32_t esp, uint32_t ebp,
		       struct frame32 *f)
{
	enum progress at = unwind32_look(w, eip);
	uint8_t op;

	if (w->u->read_text(w->u->ctx, eip, &op, 1) == 0)
		return false;
	*f = (struct frame32){ .ret_at = esp, .ebp = ebp, .known = true };
	if (op == OP_RET || op == OP_RET_N || at == BEFORE_PUSH)
		return true;
	if (op == OP_POP_EBP || at == BEFORE_MOV) {
		f->ret_at = esp + 4;
		return read32(w, esp, &f->ebp);
	}
	*f = (struct frame32){ .ret_at = ebp + 4 };
	return at == IN_FRAME;
}

void walk_32(struct walk *w)
{
	uint32_t esp = (uint32_t)w->s->regs.gpr[GPR_RSP], ebp = (uint32_t)w->s->regs.gpr[GPR_RBP];
	uint32_t low = esp, ret;
	struct frame32 f;
	uint64_t target;

	if (!find_first(w, (uint32_t)w->s->regs.rip, esp, ebp, &f)) {
		walk_finish(w, STACK_END_BAD_CHAIN);
		return;
	}
	for (;;) {
		if (!f.known && ebp == 0) {
			walk_finish(w, STACK_END_ROOT);
			return;
		}
		if ((f.ret_at & 3) || f.ret_at < low || f.ret_at > UINT32_MAX - 4) {
			walk_finish(w, STACK_END_BAD_CHAIN);
			return;
		}
		if (!read32(w, f.ret_at, &ret) || (!f.known && !read32(w, ebp, &f.ebp))) {
			walk_finish(w, walk_missing(w, f.ret_at + 3));
			return;
		}
		if (ret == 0) {
			walk_finish(w, STACK_END_ROOT);
			return;
		}
		if (!walk_is_return(w, ret, &target)) {
			walk_finish(w, STACK_END_BAD_CHAIN);
			return;
		}
		if (!walk_push(w, ret, f.known ? FRAME_LEAF : FRAME_FP, WALK_IP_RETURN))
			return;
		low = f.ret_at + 4;
		ebp = f.ebp;
		f = (struct frame32){ .ret_at = ebp + 4 };
	}
}
