/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/callstacks.h"

#include "base/array.h"
#include "base/err.h"
#include "vmm/exact/callstacks_blocks.h"
#include "vmm/exact/callstacks_stacks.h"
#include "vmm/exact/shared.h"

#include <stdlib.h>

/*
 * Returns an empty block at pc: no instruction, execution continues there. Returns NULL without
 * room.
 */
static struct callstacks_block *callstacks_point(struct callstacks *c, uint64_t pc)
{
	const struct callstacks_block b = { .pc = pc, .end = pc };

	return callstacks_block(c, &b);
}

void callstacks_lose(struct callstacks *c)
{
	c->stats.lost++;
	c->now.prev = NULL;
}

/* -- counting ------------------------------------------------------------------------------------- */

static void callstacks_count(struct callstacks *c, struct callstacks_block *b)
{
	if (b->node != c->now.node) {
		b->count = calltree_count_of(&c->tree, c->now.node, b->number);
		b->node = c->now.node;
	}
	if (b->count != CALLTREE_NONE)
		c->tree.count[b->count].times++;
	else
		c->stats.lost++;
	c->now.prev = b;
	c->now.prev_count = b->count;
}

/* Continues after block `was`, as if it had just been executed. */
static void callstacks_resume(struct callstacks *c, struct callstacks_block *was)
{
	c->now.prev = was;
	c->now.prev_count = was ? was->count : CALLTREE_NONE;
}

/* Corrects the count of the preceding block: only its first n instructions were executed. */
static void callstacks_cut(struct callstacks *c, unsigned int n)
{
	struct callstacks_block *b = c->now.prev, part = *b;
	struct callstacks_block *whole;

	uint32_t at = c->now.prev_count;

	if (at == CALLTREE_NONE || !c->tree.count[at].times)
		return;
	part.insns = (uint16_t)n;
	part.end = b->pc + (b->off ? b->off[n] : 0);
	part.kind = BLOCKEND_FALL;
	part.has_target = false;
	whole = callstacks_block(c, &part);
	if (!whole)
		return;
	c->stats.partial++;
	c->tree.count[at].times--;
	if (n) {
		at = calltree_count_of(&c->tree, c->tree.count[at].node, whole->number);
		if (at != CALLTREE_NONE)
			c->tree.count[at].times++;
		else
			c->stats.lost++;
	}
	c->now.prev = whole;
	c->now.prev_count = n ? at : CALLTREE_NONE;
}

/* -- interrupts ----------------------------------------------------------------------------------- */

struct pushed {
	uint64_t ip, cs, flags, sp, ss;
};

/* Returns whether execution can have been at ip after the preceding block. */
static bool callstacks_plausible(const struct callstacks *c, uint64_t ip)
{
	const struct callstacks_block *p = c->now.prev;

	if (p->kind == BLOCKEND_JUMP_IND || p->kind == BLOCKEND_CALL_IND ||
	    p->kind == BLOCKEND_IRET || p->kind == BLOCKEND_SYSRET || p->kind == BLOCKEND_RET)
		return true;
	return ip == p->end || (p->has_target && ip == p->target) ||
	       callstacks_insn_at(p, ip) < p->insns;
}

/*
 * Returns whether the stack begins with the frame that a processor in long mode pushes for an
 * interrupt (SDM volume 3, "IA-32e Mode Stack Frame"), and whether this frame fits the preceding
 * block. *out is written only then.
 */
static bool callstacks_was_interrupted(const struct callstacks *c, const struct callstacks_regs *r,
				       struct pushed *out)
{
	uint64_t w[6] = { 0 };

	if (!c->cpu.read(c->cpu.ctx, r->sp, w, sizeof(w)) &&
	    !c->cpu.read(c->cpu.ctx, r->sp, w, 5 * sizeof(*w)))
		return false;
	/* The first attempt is without an error code, the second with one. */
	for (unsigned int i = 0; i < 2; i++) {
		const struct pushed p = { w[i], w[i + 1], w[i + 2], w[i + 3], i ? w[5] : w[4] };

		if ((r->sp + 40 + 8 * i) % 16 == 0 && p.cs && p.cs < 0x10000 && p.ss < 0x10000 &&
		    (p.cs & 3) == (c->now.user ? 3 : 0) && (p.flags & 2) && p.flags < 1u << 22 &&
		    callstacks_plausible(c, p.ip)) {
			*out = p;
			return true;
		}
	}
	return false;
}

/* Ends the preceding block where the interrupt arrived: within it, or at its end. */
static void callstacks_end_at(struct callstacks *c, uint64_t ip)
{
	unsigned int n = callstacks_insn_at(c->now.prev, ip);

	/* A jump back into the block itself executed it completely. */
	if (n < c->now.prev->insns && !(c->now.prev->has_target && c->now.prev->target == ip))
		callstacks_cut(c, n);
}

static void callstacks_interrupt(struct callstacks *c, struct callstacks_block *b,
				 const struct callstacks_regs *r, const struct pushed *p)
{
	uint32_t from = c->now.cur, root = calltree_root(&c->tree, CALLTREE_INTERRUPT, 0);
	struct frame f = { .sp = r->sp, .ret = p->ip, .was_sp = p->sp, .from = from };

	b->interrupt = true;
	c->stats.interrupts++;
	callstacks_end_at(c, p->ip);
	f.was = c->now.prev;
	c->now.cur = callstacks_find(c, 0, r->sp);
	callstacks_drop_below(&c->stack[c->now.cur], r->sp);
	f.node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_push(c, &f);
	c->now.node = f.node;
}

/* -- between programs and the kernel ---------------------------------------------------------------- */

/*
 * Handles the entry of a program to the kernel: the program's stack stores the block that was
 * executed last, and the kernel's stack is empty.
 */
static void callstacks_enter_kernel(struct callstacks *c, struct callstacks_block *b,
				    const struct callstacks_regs *r)
{
	struct shadow *s = &c->stack[c->now.cur];
	struct pushed p;
	uint32_t root;

	s->left_sp = r->sp;
	if (callstacks_was_interrupted(c, r, &p)) {
		callstacks_end_at(c, p.ip);
		s->left_sp = p.sp;
		c->stats.interrupts++;
		root = calltree_root(&c->tree,
				     c->now.prev->kind == BLOCKEND_SYSCALL ? CALLTREE_SYSCALL
									   : CALLTREE_INTERRUPT,
				     0);
		s->was = c->now.prev;
		c->now.cur = callstacks_find(c, 0, r->sp);
	} else {
		root = calltree_root(&c->tree, CALLTREE_SYSCALL, 0);
		s->was = c->now.prev;
		c->now.cur = c->on; /* still on the program's stack */
	}
	c->now.user = false;
	s = &c->stack[c->now.cur];
	s->n = 0;
	s->base_node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_enter(c, c->now.cur);
}

static uint32_t callstacks_find_user(struct callstacks *c, uint64_t space, uint64_t sp)
{
	for (uint32_t i = c->ncpus; i < c->nstacks; i++)
		if (c->stack[i].space == space && c->stack[i].was && c->stack[i].left_sp == sp)
			return i;
	return callstacks_find(c, space, sp);
}

/* Returns true if execution resumes what ran on this stack before it entered the kernel. */
static bool callstacks_enter_user(struct callstacks *c, struct callstacks_block *b,
				  const struct callstacks_regs *r)
{
	uint64_t space =
		(r->cr3 & CALLSTACKS_SPACE) ? (r->cr3 & CALLSTACKS_SPACE) : CALLSTACKS_SPACE;
	uint32_t at = callstacks_find_user(c, space, r->sp);
	struct shadow *s = &c->stack[at];
	bool same = s->was && s->left_sp == r->sp;

	c->now.user = true;
	callstacks_drop_below(s, r->sp);
	if (same) {
		callstacks_resume(c, s->was);
		s->was = NULL;
		callstacks_enter(c, at);
		/* The address is after the system call, or wherever the kernel set it. */
		return true;
	}
	if (!s->n)
		s->base_node = calltree_call(
			&c->tree, calltree_root(&c->tree, CALLTREE_USER, space), 0, b->pc);
	s->was = NULL;
	callstacks_enter(c, at);
	return false;
}

/* -- from block to block ---------------------------------------------------------------------------- */

static void callstacks_call(struct callstacks *c, const struct callstacks_block *b, uint64_t sp)
{
	struct frame f = { .sp = sp, .ret = c->now.prev->end };

	f.node = calltree_call(&c->tree, c->now.node, f.ret, b->pc);
	callstacks_push(c, &f);
}

static void callstacks_return(struct callstacks *c, const struct callstacks_block *b, uint64_t sp)
{
	uint32_t to = callstacks_find(c, c->stack[c->now.cur].space, sp);
	struct shadow *s = &c->stack[to];
	bool moved = to != c->now.cur;
	struct frame *top;

	callstacks_drop_below(s, sp - 8);
	top = callstacks_top(s);
	if (moved) {
		callstacks_switch(c, s);
	}
	if (top && top->sp == sp - 8 && !top->was) {
		callstacks_pop(s);
	} else if (s->fresh) {
		/* This is a task's first return: it has no caller. */
		enum calltree_kind kind = s->space ? CALLTREE_USER : CALLTREE_KERNEL;

		s->n = 0;
		s->fresh = false;
		s->base_node =
			calltree_call(&c->tree, calltree_root(&c->tree, kind, s->space), 0, b->pc);
	}
	callstacks_enter(c, to);
}

/*
 * Returns true if the interrupt frame was found, so that the block before the interrupt is now the
 * preceding one.
 */
static bool callstacks_iret(struct callstacks *c, const struct callstacks_block *b, uint64_t sp)
{
	struct shadow *s = &c->stack[c->now.cur];

	for (size_t i = s->n; i-- > 0;) {
		const struct frame f = s->frame[i];

		if (!f.was || f.was_sp != sp)
			continue;
		s->n = i;
		callstacks_enter(c, f.from < c->nstacks ? f.from : c->now.cur);
		callstacks_resume(c, f.ret == b->pc ? f.was : callstacks_point(c, b->pc));
		return c->now.prev != NULL;
	}
	callstacks_move(c, sp);
	return false;
}

/* Returns whether block p leads to pc without a change of frames. */
static bool callstacks_follows(const struct callstacks_block *p, uint64_t pc)
{
	if (p->kind == BLOCKEND_FALL || p->kind == BLOCKEND_SYSCALL || p->kind == BLOCKEND_JUMP)
		return pc == p->end || (p->has_target && pc == p->target);
	return p->kind == BLOCKEND_JUMP_IND;
}

/* Handles a transition within one privilege level, with all registers known. */
static void callstacks_step(struct callstacks *c, struct callstacks_block *b,
			    const struct callstacks_regs *r)
{
	const struct callstacks_block *p = c->now.prev;
	unsigned int n;

	if (p->kind == BLOCKEND_CALL_IND || (p->kind == BLOCKEND_CALL && p->target == b->pc)) {
		b->reached = true;
		if (p->moves_sp)
			callstacks_move(c, r->sp + 8);
		callstacks_call(c, b, r->sp);
	} else if (p->kind == BLOCKEND_RET) {
		b->reached = true;
		callstacks_return(c, b, r->sp);
	} else if (callstacks_follows(p, b->pc)) {
		b->reached |= p->kind == BLOCKEND_JUMP_IND;
		if (p->moves_sp)
			callstacks_move(c, r->sp);
	} else if ((n = callstacks_insn_at(p, b->pc)) < p->insns && n) {
		/* An access to a device ended the block early; the rest is a block of its own. */
		callstacks_cut(c, n);
	} else {
		c->stats.strange++;
		callstacks_move(c, r->sp);
	}
}

static void callstacks_begin(struct callstacks *c, const struct callstacks_block *b,
			     const struct callstacks_regs *r)
{
	uint32_t root = calltree_root(&c->tree, r->cpl == 3 ? CALLTREE_USER : CALLTREE_KERNEL,
				      r->cpl == 3 ? r->cr3 & CALLSTACKS_SPACE : 0);

	c->now.user = r->cpl == 3;
	c->now.node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_enter(c, callstacks_find(c, c->now.user ? r->cr3 & CALLSTACKS_SPACE : 0, r->sp));
}

static void callstacks_slow(struct callstacks *c, struct callstacks_block *b)
{
	struct callstacks_regs r = { 0 };
	struct pushed p;

	c->cpu.regs(c->cpu.ctx, &r);
	if (!c->now.prev) {
		callstacks_begin(c, b, &r);
		return;
	}
	if (c->now.user != (r.cpl == 3)) {
		if (c->now.user)
			callstacks_enter_kernel(c, b, &r);
		else if (callstacks_enter_user(c, b, &r) && !callstacks_follows(c->now.prev, b->pc))
			callstacks_step(c, b, &r);
		return;
	}
	if (c->now.prev->kind == BLOCKEND_IRET || c->now.prev->kind == BLOCKEND_SYSRET) {
		if (!callstacks_iret(c, b, r.sp))
			return;
		if (!callstacks_follows(c->now.prev, b->pc) || c->now.prev->moves_sp)
			callstacks_step(c, b, &r);
		return;
	}
	if (!c->now.user && callstacks_was_interrupted(c, &r, &p)) {
		callstacks_interrupt(c, b, &r, &p);
		return;
	}
	callstacks_step(c, b, &r);
}

/*
 * Handles nearly all transitions, with one register or none. Returns false if the transition needs
 * callstacks_slow().
 */
static bool callstacks_quick(struct callstacks *c, struct callstacks_block *b)
{
	const struct callstacks_block *p = c->now.prev;
	struct shadow *s = &c->stack[c->now.cur];
	struct frame *top = callstacks_top(s);
	uint64_t sp;

	if (!p || b->interrupt)
		return false;
	switch (p->kind) {
	case BLOCKEND_CALL:
		if (p->target != b->pc || p->moves_sp)
			return false;
		callstacks_call(c, b, c->cpu.sp(c->cpu.ctx));
		return true;
	case BLOCKEND_CALL_IND:
		if (!b->reached || p->moves_sp || c->cpu.pc(c->cpu.ctx) != b->pc)
			return false;
		callstacks_call(c, b, c->cpu.sp(c->cpu.ctx));
		return true;
	case BLOCKEND_RET:
		if (!top || top->was || (b->pc != top->ret && !b->reached))
			return false;
		if (p->moves_sp || b->pc != top->ret) {
			sp = c->cpu.sp(c->cpu.ctx);
			if (top->sp != sp - 8 ||
			    (b->pc != top->ret && c->cpu.pc(c->cpu.ctx) != b->pc))
				return false;
		}
		callstacks_pop(s);
		c->now.node = s->n ? callstacks_top(s)->node : s->base_node;
		return true;
	case BLOCKEND_JUMP_IND:
		if (!b->reached || c->cpu.pc(c->cpu.ctx) != b->pc)
			return false;
		break;
	default:
		if (!callstacks_follows(p, b->pc))
			return false;
	}
	if (!p->moves_sp)
		return true;
	/* A function with a frame pointer has restored the stack pointer. */
	sp = c->cpu.sp(c->cpu.ctx);
	return top && top->sp >= sp && top->sp - sp < CALLSTACKS_REACH / 2;
}

void callstacks_switch_cpu(struct callstacks *c, uint32_t cpu)
{
	if (cpu == c->on || cpu >= c->ncpus)
		return;
	c->turn[c->on] = c->now;
	c->now = c->turn[cpu];
	c->on = cpu;
}

/*
 * Returns the same code at the address where it runs now, or NULL without room for another block.
 */
static struct callstacks_block *callstacks_where(struct callstacks *c, struct callstacks_block *b)
{
	uint64_t pc = c->cpu.pc(c->cpu.ctx);
	struct callstacks_block like = *b;

	/*
	 * Within a block that is counted in parts, QEMU reports the address of the block's start.
	 */
	if ((pc ^ b->pc) % EXACT_PAGE && c->now.prev && c->now.prev->kind == BLOCKEND_FALL)
		pc = c->now.prev->end;
	if (!exact_is_alias(b->pc, pc))
		return b;
	if (b->alias && b->alias->pc == pc)
		return b->alias;
	like.end += pc - b->pc;
	like.target += pc - b->pc;
	like.pc = pc;
	b->alias = callstacks_block(c, &like);
	return b->alias;
}

void callstacks_run(struct callstacks *c, struct callstacks_block *b)
{
	if (!callstacks_quick(c, b)) {
		struct callstacks_block *at = callstacks_where(c, b);

		if (!at) {
			callstacks_lose(c);
			return;
		}
		if (at == b || !callstacks_quick(c, at))
			callstacks_slow(c, at);
		b = at;
	}
	callstacks_count(c, b);
}

/* -- the whole -------------------------------------------------------------------------------------- */

int callstacks_create(struct callstacks **out, const struct callstacks_cpu *cpu, uint32_t ncpus,
		      uint32_t max_nodes, uint32_t max_counts)
{
	struct callstacks *c = calloc(1, sizeof(*c));

	if (!c || calltree_init(&c->tree, max_nodes, max_counts)) {
		free(c);
		return -ENOMEM;
	}
	c->cpu = *cpu;
	c->now.node = calltree_root(&c->tree, CALLTREE_KERNEL, 0);
	c->now.prev_count = CALLTREE_NONE;
	c->ncpus = ncpus;
	if (ARRAY_FIT_ZERO(c->stack, ncpus + 1, c->stacks_cap)) {
		callstacks_destroy(c);
		return -ENOMEM;
	}
	c->nstacks = ncpus;
	for (uint32_t i = 0; i < ncpus; i++) {
		c->stack[i].base_node = c->now.node;
		c->turn[i] = c->now;
		c->turn[i].cur = i;
	}
	*out = c;
	return 0;
}

void callstacks_destroy(struct callstacks *c)
{
	if (!c)
		return;
	callstacks_free_blocks(c);
	callstacks_free_stacks(c);
	calltree_deinit(&c->tree);
	free(c);
}

void callstacks_zero(struct callstacks *c)
{
	calltree_zero(&c->tree);
	c->stats = (struct callstacks_stats){ 0 };
}

const struct calltree *callstacks_tree(const struct callstacks *c)
{
	return &c->tree;
}

void callstacks_stats(const struct callstacks *c, struct callstacks_stats *out)
{
	*out = c->stats;
	out->blocks = c->nblocks;
	out->folded = c->tree.folded;
}

uint32_t callstacks_node(const struct callstacks *c)
{
	return c->now.node;
}
