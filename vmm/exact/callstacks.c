/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/callstacks.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdlib.h>

#define SPACE_MASK (~UINT64_C(0x1fff)) /* of CR3: neither PCID nor the half of page-table isolation */
#define CHUNK 4096u		       /* blocks */
#define SLACK 0x200u		       /* a stack may begin so far above what was seen of it */

struct frame {
	uint64_t sp;	/* of the return address; of an interrupt: of what the processor pushed */
	uint64_t ret;
	uint64_t was_sp; /* of an interrupt: before it */
	struct callstacks_block *was; /* of an interrupt: what ran before it, else NULL */
	uint32_t node;		      /* that runs in this frame */
	uint32_t from;		      /* of an interrupt: the stack that it interrupted */
};

struct shadow {
	struct frame *frame;
	size_t n, cap;
	uint64_t space; /* of a program; 0: the kernel */
	uint64_t base;	/* the highest stack pointer seen */
	uint64_t used;	/* a clock for eviction */
	uint64_t left_sp;	      /* of a program: where it entered the kernel */
	struct callstacks_block *was; /* ... and what had run */
	uint32_t base_node;
	bool fresh;   /* switched to, and it has not returned from there since: */
	size_t had;   /* ... it had so many frames then */
};

struct callstacks {
	struct callstacks_cpu cpu;
	struct calltree tree;
	struct callstacks_block *prev;
	uint32_t cur, node;
	bool user;
	struct shadow *stack;
	size_t nstacks, stacks_cap;
	uint64_t clock;
	struct callstacks_block **chunk;
	size_t nblocks, chunks_cap;
	uint32_t *block_at;
	uint32_t block_mask;
	struct callstacks_stats stats;
};

/* -- blocks --------------------------------------------------------------------------------------- */

static uint32_t callstacks_hash(const struct callstacks_block *b)
{
	uint64_t h = (b->pc + ((uint64_t)b->insns << 48)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

static struct callstacks_block *callstacks_block_slot(const struct callstacks *c, uint32_t number)
{
	return &c->chunk[number / CHUNK][number % CHUNK];
}

const struct callstacks_block *callstacks_block_at(const struct callstacks *c, uint32_t number)
{
	return callstacks_block_slot(c, number);
}

static bool callstacks_equal(const struct callstacks_block *a, const struct callstacks_block *b)
{
	return a->pc == b->pc && a->end == b->end && a->insns == b->insns && a->kind == b->kind &&
	       a->has_target == b->has_target && (!a->has_target || a->target == b->target) &&
	       a->moves_sp == b->moves_sp &&
	       (!a->off || !b->off || !memcmp(a->off, b->off, a->insns * sizeof(*a->off)));
}

static bool callstacks_rehash(struct callstacks *c)
{
	uint32_t mask = c->block_mask ? c->block_mask * 2 + 1 : 2 * CHUNK - 1;
	uint32_t *at = calloc((size_t)mask + 1, sizeof(*at));

	if (!at)
		return false;
	for (uint32_t i = 0; i < c->nblocks; i++) {
		uint32_t slot = callstacks_hash(callstacks_block_slot(c, i)) & mask;

		while (at[slot])
			slot = (slot + 1) & mask;
		at[slot] = i + 1;
	}
	free(c->block_at);
	c->block_at = at;
	c->block_mask = mask;
	return true;
}

static struct callstacks_block *callstacks_add_block(struct callstacks *c,
						     const struct callstacks_block *b, uint32_t slot)
{
	struct callstacks_block *out;
	uint16_t *off = NULL;

	if (c->nblocks % CHUNK == 0) {
		size_t chunk = c->nblocks / CHUNK;

		if (ARRAY_FIT_ZERO(c->chunk, chunk + 1, c->chunks_cap))
			return NULL;
		if (!c->chunk[chunk])
			c->chunk[chunk] = calloc(CHUNK, sizeof(**c->chunk));
		if (!c->chunk[chunk])
			return NULL;
	}
	if (b->off && b->insns) {
		off = malloc(b->insns * sizeof(*off));
		if (!off)
			return NULL;
		memcpy(off, b->off, b->insns * sizeof(*off));
	}
	out = callstacks_block_slot(c, (uint32_t)c->nblocks);
	*out = *b;
	out->off = off;
	out->number = (uint32_t)c->nblocks;
	out->node = out->count = CALLTREE_NONE;
	out->interrupt = out->reached = false;
	c->block_at[slot] = (uint32_t)++c->nblocks;
	return out;
}

struct callstacks_block *callstacks_block(struct callstacks *c, const struct callstacks_block *b)
{
	uint32_t slot;

	if (c->nblocks * 2 >= c->block_mask && !callstacks_rehash(c))
		return NULL;
	for (slot = callstacks_hash(b) & c->block_mask; c->block_at[slot];
	     slot = (slot + 1) & c->block_mask) {
		struct callstacks_block *x = callstacks_block_slot(c, c->block_at[slot] - 1);

		if (callstacks_equal(x, b))
			return x;
	}
	return c->nblocks < CALLSTACKS_MAX_BLOCKS ? callstacks_add_block(c, b, slot) : NULL;
}

/* Nothing that runs: it goes on at pc. */
static struct callstacks_block *callstacks_point(struct callstacks *c, uint64_t pc)
{
	const struct callstacks_block b = { .pc = pc, .end = pc };

	return callstacks_block(c, &b);
}

void callstacks_lose(struct callstacks *c)
{
	c->stats.lost++;
	c->prev = NULL;
}

/* -- stacks --------------------------------------------------------------------------------------- */

static struct frame *callstacks_top(const struct shadow *s)
{
	return s->n ? &s->frame[s->n - 1] : NULL;
}

static void callstacks_enter(struct callstacks *c, uint32_t stack)
{
	struct shadow *s = &c->stack[stack];

	c->cur = stack;
	s->used = ++c->clock;
	c->node = s->n ? callstacks_top(s)->node : s->base_node;
}

/* Frames below a stack pointer are gone. */
static void callstacks_drop_below(struct shadow *s, uint64_t sp)
{
	while (s->n && s->frame[s->n - 1].sp < sp)
		s->n--;
}

static uint32_t callstacks_new_stack(struct callstacks *c, uint64_t space, uint64_t sp)
{
	uint32_t at = (uint32_t)c->nstacks;
	struct shadow *s;

	if (c->nstacks >= CALLSTACKS_MAX_STACKS || ARRAY_ROOM(c->stack, c->nstacks, c->stacks_cap)) {
		/* There are some: create() made the first ones. */
		at = 1;
		for (uint32_t i = 2; i < c->nstacks; i++)
			if (c->stack[i].used < c->stack[at].used && i != c->cur)
				at = i;
		c->stats.evicted++;
		s = &c->stack[at];
		*s = (struct shadow){ .frame = s->frame, .cap = s->cap };
	} else {
		c->nstacks++;
		s = &c->stack[at];
		*s = (struct shadow){ 0 };
	}
	s->space = space;
	s->base = sp;
	s->base_node = c->node;
	s->fresh = true;
	c->stats.stacks++;
	return at;
}

/* The stack that an address belongs to: the one that begins next above it. Stack 0 is never found. */
static uint32_t callstacks_find(struct callstacks *c, uint64_t space, uint64_t sp)
{
	uint64_t reach = space ? CALLSTACKS_REACH_USER : CALLSTACKS_REACH, best = UINT64_MAX;
	uint32_t at = 0;

	for (uint32_t i = 1; i < c->nstacks; i++) {
		const struct shadow *s = &c->stack[i];
		uint64_t far = s->base >= sp ? s->base - sp : sp - s->base + reach;

		if (s->space != space || (s->base >= sp ? far >= reach : sp - s->base > SLACK) ||
		    far >= best)
			continue;
		best = far;
		at = i;
	}
	if (!at)
		return callstacks_new_stack(c, space, sp);
	if (c->stack[at].base < sp)
		c->stack[at].base = sp;
	return at;
}

/* An empty one is entered from here: an interrupt stack, say. */
static void callstacks_switch(struct callstacks *c, struct shadow *s)
{
	c->stats.switches++;
	if (!s->n)
		s->base_node = c->node;
	s->fresh = true;
	s->had = s->n;
}

static void callstacks_pop(struct shadow *s)
{
	if (--s->n < s->had)
		s->fresh = false;
}

/* The stack pointer was loaded: the same stack, shorter, or another one. */
static void callstacks_move(struct callstacks *c, uint64_t sp)
{
	uint32_t to = callstacks_find(c, c->stack[c->cur].space, sp);
	struct shadow *s = &c->stack[to];

	callstacks_drop_below(s, sp);
	if (to == c->cur) {
		callstacks_enter(c, to);
		return;
	}
	callstacks_switch(c, s);
	callstacks_enter(c, to);
}

static void callstacks_push(struct callstacks *c, const struct frame *f)
{
	struct shadow *s = &c->stack[c->cur];

	/* What had this place, too. */
	callstacks_drop_below(s, f->sp + 1);
	if (s->n >= CALLSTACKS_MAX_DEPTH || ARRAY_ROOM(s->frame, s->n, s->cap)) {
		c->stats.deep++;
		return;
	}
	s->frame[s->n++] = *f;
	c->node = f->node;
}

/* -- counting ------------------------------------------------------------------------------------- */

static void callstacks_count(struct callstacks *c, struct callstacks_block *b)
{
	if (b->node != c->node) {
		b->count = calltree_count_of(&c->tree, c->node, b->number);
		b->node = c->node;
	}
	if (b->count != CALLTREE_NONE)
		c->tree.count[b->count].times++;
	else
		c->stats.lost++;
	c->prev = b;
}

/* Which instruction of a block begins there; b->insns: none. */
static unsigned int callstacks_insn_at(const struct callstacks_block *b, uint64_t pc)
{
	unsigned int i;

	if (pc < b->pc || pc >= b->end)
		return b->insns;
	for (i = 0; i < b->insns; i++)
		if ((b->off ? b->off[i] : 0) == pc - b->pc)
			break;
	return i;
}

/* Of the block before, the first n instructions ran: it ends there. */
static void callstacks_cut(struct callstacks *c, unsigned int n)
{
	struct callstacks_block *b = c->prev, part = *b;
	struct callstacks_block *whole;

	if (b->count == CALLTREE_NONE || b->node == CALLTREE_NONE ||
	    !c->tree.count[b->count].times)
		return;
	part.insns = (uint16_t)n;
	part.end = b->pc + (b->off ? b->off[n] : 0);
	part.kind = BLOCKEND_FALL;
	part.has_target = false;
	whole = callstacks_block(c, &part);
	if (!whole)
		return;
	c->stats.partial++;
	c->tree.count[b->count].times--;
	if (n) {
		uint32_t at = calltree_count_of(&c->tree, b->node, whole->number);

		if (at != CALLTREE_NONE)
			c->tree.count[at].times++;
		else
			c->stats.lost++;
	}
	c->prev = whole;
}

/* -- interrupts ----------------------------------------------------------------------------------- */

struct pushed {
	uint64_t ip, cs, flags, sp, ss;
};

/* Could control have been there when the block before had run? */
static bool callstacks_plausible(const struct callstacks *c, uint64_t ip)
{
	const struct callstacks_block *p = c->prev;

	if (p->kind == BLOCKEND_JUMP_IND || p->kind == BLOCKEND_CALL_IND ||
	    p->kind == BLOCKEND_IRET || p->kind == BLOCKEND_SYSRET || p->kind == BLOCKEND_RET)
		return true;
	return ip == p->end || (p->has_target && ip == p->target) ||
	       callstacks_insn_at(p, ip) < p->insns;
}

/* What a processor in long mode pushes (SDM volume 3, "IA-32e Mode Stack Frame"), from sp on. */
static bool callstacks_was_interrupted(const struct callstacks *c, const struct callstacks_regs *r,
				       struct pushed *out)
{
	uint64_t w[6] = { 0 };

	if (!c->cpu.read(c->cpu.ctx, r->sp, w, sizeof(w)) &&
	    !c->cpu.read(c->cpu.ctx, r->sp, w, 5 * sizeof(*w)))
		return false;
	/* With an error code, and without. */
	for (unsigned int i = 0; i < 2; i++) {
		const struct pushed p = { w[i], w[i + 1], w[i + 2], w[i + 3], i ? w[5] : w[4] };

		if ((r->sp + 40 + 8 * i) % 16 == 0 && p.cs && p.cs < 0x10000 && p.ss < 0x10000 &&
		    (p.cs & 3) == (c->user ? 3 : 0) && (p.flags & 2) && p.flags < 1u << 22 &&
		    callstacks_plausible(c, p.ip)) {
			*out = p;
			return true;
		}
	}
	return false;
}

/* The block before ended where the interrupt came: in the middle, or at its end. */
static void callstacks_end_at(struct callstacks *c, uint64_t ip)
{
	unsigned int n = callstacks_insn_at(c->prev, ip);

	/* A jump back into the block itself had finished it. */
	if (n < c->prev->insns && !(c->prev->has_target && c->prev->target == ip))
		callstacks_cut(c, n);
}

static void callstacks_interrupt(struct callstacks *c, struct callstacks_block *b,
				 const struct callstacks_regs *r, const struct pushed *p)
{
	uint32_t from = c->cur, root = calltree_root(&c->tree, CALLTREE_INTERRUPT, 0);
	struct frame f = { .sp = r->sp, .ret = p->ip, .was_sp = p->sp, .from = from };

	b->interrupt = true;
	c->stats.interrupts++;
	callstacks_end_at(c, p->ip);
	f.was = c->prev;
	c->cur = callstacks_find(c, 0, r->sp);
	callstacks_drop_below(&c->stack[c->cur], r->sp);
	f.node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_push(c, &f);
	c->node = f.node;
}

/* -- between programs and the kernel ---------------------------------------------------------------- */

/* From a program: its stack keeps what had run, and the kernel's is empty. */
static void callstacks_enter_kernel(struct callstacks *c, struct callstacks_block *b,
				    const struct callstacks_regs *r)
{
	struct shadow *s = &c->stack[c->cur];
	struct pushed p;
	uint32_t root;

	s->left_sp = r->sp;
	if (callstacks_was_interrupted(c, r, &p)) {
		callstacks_end_at(c, p.ip);
		s->left_sp = p.sp;
		c->stats.interrupts++;
		root = calltree_root(&c->tree,
				     c->prev->kind == BLOCKEND_SYSCALL ? CALLTREE_SYSCALL :
									 CALLTREE_INTERRUPT,
				     0);
		s->was = c->prev;
		c->cur = callstacks_find(c, 0, r->sp);
	} else {
		root = calltree_root(&c->tree, CALLTREE_SYSCALL, 0);
		s->was = c->prev;
		c->cur = 0; /* still on the program's stack */
	}
	c->user = false;
	s = &c->stack[c->cur];
	s->n = 0;
	s->base_node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_enter(c, c->cur);
}

static uint32_t callstacks_find_user(struct callstacks *c, uint64_t space, uint64_t sp)
{
	for (uint32_t i = 1; i < c->nstacks; i++)
		if (c->stack[i].space == space && c->stack[i].was && c->stack[i].left_sp == sp)
			return i;
	return callstacks_find(c, space, sp);
}

/* True: what had run there before goes on. */
static bool callstacks_enter_user(struct callstacks *c, struct callstacks_block *b,
				  const struct callstacks_regs *r)
{
	uint64_t space = (r->cr3 & SPACE_MASK) ? (r->cr3 & SPACE_MASK) : SPACE_MASK;
	uint32_t at = callstacks_find_user(c, space, r->sp);
	struct shadow *s = &c->stack[at];
	bool same = s->was && s->left_sp == r->sp;

	c->user = true;
	callstacks_drop_below(s, r->sp);
	if (same) {
		c->prev = s->was;
		s->was = NULL;
		callstacks_enter(c, at);
		/* Behind the system call, or wherever the kernel has put it. */
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
	struct frame f = { .sp = sp, .ret = c->prev->end };

	f.node = calltree_call(&c->tree, c->node, f.ret, b->pc);
	callstacks_push(c, &f);
}

static void callstacks_return(struct callstacks *c, const struct callstacks_block *b, uint64_t sp)
{
	uint32_t to = callstacks_find(c, c->stack[c->cur].space, sp);
	struct shadow *s = &c->stack[to];
	bool moved = to != c->cur;
	struct frame *top;

	callstacks_drop_below(s, sp - 8);
	top = callstacks_top(s);
	if (moved) {
		callstacks_switch(c, s);
	}
	if (top && top->sp == sp - 8 && !top->was) {
		callstacks_pop(s);
	} else if (s->fresh) {
		/* A task's first return: nobody had called. */
		enum calltree_kind kind = s->space ? CALLTREE_USER : CALLTREE_KERNEL;

		s->n = 0;
		s->fresh = false;
		s->base_node = calltree_call(&c->tree, calltree_root(&c->tree, kind, s->space), 0,
					     b->pc);
	}
	callstacks_enter(c, to);
}

/* True: taken up again, and what had run before the interrupt goes on. */
static bool callstacks_iret(struct callstacks *c, const struct callstacks_block *b, uint64_t sp)
{
	struct shadow *s = &c->stack[c->cur];

	for (size_t i = s->n; i-- > 0;) {
		const struct frame f = s->frame[i];

		if (!f.was || f.was_sp != sp)
			continue;
		s->n = i;
		callstacks_enter(c, f.from < c->nstacks ? f.from : c->cur);
		c->prev = f.ret == b->pc ? f.was : callstacks_point(c, b->pc);
		return c->prev != NULL;
	}
	callstacks_move(c, sp);
	return false;
}

/* What leads on without a frame, and to where. */
static bool callstacks_follows(const struct callstacks_block *p, uint64_t pc)
{
	if (p->kind == BLOCKEND_FALL || p->kind == BLOCKEND_SYSCALL || p->kind == BLOCKEND_JUMP)
		return pc == p->end || (p->has_target && pc == p->target);
	return p->kind == BLOCKEND_JUMP_IND;
}

/* Within one privilege, all registers known. */
static void callstacks_step(struct callstacks *c, struct callstacks_block *b,
			    const struct callstacks_regs *r)
{
	const struct callstacks_block *p = c->prev;
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
		/* An access to a device: the rest is a block of its own. */
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
				      r->cpl == 3 ? r->cr3 & SPACE_MASK : 0);

	c->user = r->cpl == 3;
	c->node = calltree_call(&c->tree, root, 0, b->pc);
	callstacks_enter(c, callstacks_find(c, c->user ? r->cr3 & SPACE_MASK : 0, r->sp));
}

static void callstacks_slow(struct callstacks *c, struct callstacks_block *b)
{
	struct callstacks_regs r = { 0 };
	struct pushed p;

	c->cpu.regs(c->cpu.ctx, &r);
	if (!c->prev) {
		callstacks_begin(c, b, &r);
		return;
	}
	if (c->user != (r.cpl == 3)) {
		if (c->user)
			callstacks_enter_kernel(c, b, &r);
		else if (callstacks_enter_user(c, b, &r) && !callstacks_follows(c->prev, b->pc))
			callstacks_step(c, b, &r);
		return;
	}
	if (c->prev->kind == BLOCKEND_IRET || c->prev->kind == BLOCKEND_SYSRET) {
		if (!callstacks_iret(c, b, r.sp))
			return;
		if (!callstacks_follows(c->prev, b->pc) || c->prev->moves_sp)
			callstacks_step(c, b, &r);
		return;
	}
	if (!c->user && callstacks_was_interrupted(c, &r, &p)) {
		callstacks_interrupt(c, b, &r, &p);
		return;
	}
	callstacks_step(c, b, &r);
}

/* What needs few registers or none: nearly all blocks. False: it is not as simple. */
static bool callstacks_quick(struct callstacks *c, struct callstacks_block *b)
{
	const struct callstacks_block *p = c->prev;
	struct shadow *s = &c->stack[c->cur];
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
		if (!b->reached || p->moves_sp)
			return false;
		callstacks_call(c, b, c->cpu.sp(c->cpu.ctx));
		return true;
	case BLOCKEND_RET:
		if (!top || top->was || (b->pc != top->ret && !b->reached))
			return false;
		if (p->moves_sp || b->pc != top->ret) {
			sp = c->cpu.sp(c->cpu.ctx);
			if (top->sp != sp - 8)
				return false;
		}
		callstacks_pop(s);
		c->node = s->n ? callstacks_top(s)->node : s->base_node;
		return true;
	case BLOCKEND_JUMP_IND:
		if (!b->reached)
			return false;
		break;
	default:
		if (!callstacks_follows(p, b->pc))
			return false;
	}
	if (!p->moves_sp)
		return true;
	/* A frame pointer's function has put the stack pointer back. */
	sp = c->cpu.sp(c->cpu.ctx);
	return top && top->sp >= sp && top->sp - sp < CALLSTACKS_REACH / 2;
}

void callstacks_run(struct callstacks *c, struct callstacks_block *b)
{
	if (!callstacks_quick(c, b))
		callstacks_slow(c, b);
	callstacks_count(c, b);
}

/* -- the whole -------------------------------------------------------------------------------------- */

int callstacks_create(struct callstacks **out, const struct callstacks_cpu *cpu, uint32_t max_nodes,
		      uint32_t max_counts)
{
	struct callstacks *c = calloc(1, sizeof(*c));

	if (!c || calltree_init(&c->tree, max_nodes, max_counts)) {
		free(c);
		return -ENOMEM;
	}
	c->cpu = *cpu;
	c->node = calltree_root(&c->tree, CALLTREE_KERNEL, 0);
	/* Stack 0 is what the kernel has before it has loaded a stack of its own. */
	if (ARRAY_FIT_ZERO(c->stack, 2, c->stacks_cap)) {
		callstacks_destroy(c);
		return -ENOMEM;
	}
	c->nstacks = 1;
	c->stack[0].base_node = c->node;
	*out = c;
	return 0;
}

void callstacks_destroy(struct callstacks *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nblocks; i++)
		free((void *)(uintptr_t)callstacks_block_slot(c, i)->off);
	for (size_t i = 0; i < c->chunks_cap; i++)
		free(c->chunk[i]);
	for (size_t i = 0; i < c->nstacks; i++)
		free(c->stack[i].frame);
	free(c->chunk);
	free(c->stack);
	free(c->block_at);
	calltree_deinit(&c->tree);
	free(c);
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
	return c->node;
}
