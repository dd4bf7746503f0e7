/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/difference.h"

#include "vmm/exact/blockend.h"

#include <errno.h>
#include <string.h>

/*
 * The least number of bytes that a processor pushes for an interrupt: three words in 32-bit mode.
 */
#define PUSHED 12u
#define EFLAGS_IF (1u << 9)
#define WALK_ACCESSES 64u

/* A walk through the instructions, or the accesses, of one side. */
struct difference_walk {
	struct trace_reader *in;
	struct trace_record block; /* insns 0: none yet */
	unsigned int at;	   /* index of the next instruction in it */
	size_t off;		   /* and its first byte */
	bool over;
	/* The previous block, and its first accesses. */
	struct trace_record done;
	struct trace_access access[WALK_ACCESSES];
	unsigned int naccess;
};

/* Returns 1, 0 at the end, or -EINVAL. */
static int walk_block(struct difference_walk *w, struct err *e)
{
	struct trace_record r;
	int ret;

	w->done = w->block;
	w->naccess = 0;
	while ((ret = trace_next(w->in, &r, e)) > 0) {
		if (r.kind == TRACE_BLOCK) {
			w->block = r;
			w->at = 0;
			w->off = 0;
			return 1;
		}
		if (w->naccess < WALK_ACCESSES)
			w->access[w->naccess++] = r.access;
	}
	w->over = true;
	return ret;
}

static struct difference_insn walk_insn_at(const struct trace_record *b, unsigned int i, size_t off)
{
	struct difference_insn insn = { .number = b->block.before + i + 1,
					.pc = b->block.pc + off,
					.len = b->length[i] };

	if (insn.len > DIFFERENCE_INSN_MAX)
		insn.len = DIFFERENCE_INSN_MAX;
	memcpy(insn.code, b->code + off, insn.len);
	return insn;
}

/* Sets number 0 at the end. */
static int walk_insn(struct difference_walk *w, struct difference_insn *out, struct err *e)
{
	int ret = 1;

	*out = (struct difference_insn){ 0 };
	if (!w->over && w->at == w->block.block.insns)
		ret = walk_block(w, e);
	if (w->over || ret <= 0)
		return ret < 0 ? ret : 0;
	*out = walk_insn_at(&w->block, w->at, w->off);
	w->off += w->block.length[w->at++];
	return 0;
}

/* -- control ---------------------------------------------------------------------------------- */

/* Returns whether it is a JMP, which never continues with the next instruction. */
static bool difference_always_jumps(const struct difference_insn *insn)
{
	unsigned int i = 0;

	while (i < insn->len && (insn->code[i] == 0x66 || insn->code[i] == 0xf2 ||
				 insn->code[i] == 0x3e || (insn->code[i] & 0xf0) == 0x40))
		i++;
	return i < insn->len && (insn->code[i] == 0xe9 || insn->code[i] == 0xeb);
}

/* Returns whether control can get from an instruction to pc, judged by the instruction. */
static bool difference_leads_to(const struct difference_insn *from, uint64_t pc)
{
	const struct blockend b = blockend_of(from->code, from->len);
	uint64_t end = from->pc + from->len;

	switch (b.kind) {
	case BLOCKEND_FALL:
		return pc == end;
	case BLOCKEND_JUMP:
		if (pc == end && !difference_always_jumps(from))
			return true;
		return !b.has_target || pc == end + (uint64_t)b.target;
	case BLOCKEND_CALL:
		return !b.has_target || pc == end + (uint64_t)b.target;
	default:
		return true;
	}
}

/*
 * Judges an instruction that may lead anywhere: whether an interrupt frame was pushed, and
 * interrupts are off.
 */
static bool difference_was_pushed(const struct difference_flow *f, unsigned int side)
{
	const struct exact_regs *r = f->regs;

	return f->regs_at[0] == f->next[0].number && f->regs_at[1] == f->next[1].number &&
	       r[side].gpr[4] + PUSHED <= r[!side].gpr[4] && !(r[side].rflags & EFLAGS_IF) &&
	       (r[!side].rflags & EFLAGS_IF);
}

static void difference_judge(struct difference_flow *f)
{
	bool odd[2];

	if (!f->next[0].number || !f->next[1].number) {
		f->how = DIFFERENCE_END;
		f->side = f->next[0].number ? 1 : 0;
		return;
	}
	if (f->next[0].pc == f->next[1].pc) {
		f->how = DIFFERENCE_CODE;
		return;
	}
	f->how = DIFFERENCE_JUMP;
	for (unsigned int i = 0; i < 2; i++)
		odd[i] = f->last.number && !difference_leads_to(&f->last, f->next[i].pc);
	if (!odd[0] && !odd[1])
		for (unsigned int i = 0; i < 2; i++)
			odd[i] = difference_was_pushed(f, i);
	if (odd[0] || odd[1]) {
		f->how = DIFFERENCE_INTERRUPT;
		f->side = odd[0] ? 0 : 1;
	}
}

static bool difference_same_insn(const struct difference_insn *a, const struct difference_insn *b)
{
	return a->pc == b->pc && a->len == b->len && !memcmp(a->code, b->code, a->len);
}

int difference_find_flow(struct difference_flow *out, struct trace_reader side[2], struct err *e)
{
	struct difference_walk w[2] = { { .in = &side[0] }, { .in = &side[1] } };
	int ret = 0;

	*out = (struct difference_flow){ 0 };
	while (!ret) {
		for (unsigned int i = 0; i < 2 && !ret; i++)
			ret = walk_insn(&w[i], &out->next[i], e);
		/* One side may begin its records slightly earlier, depending on its blocks. */
		for (unsigned int i = 0; i < 2; i++)
			while (!ret && out->next[i].number &&
			       out->next[i].number < out->next[!i].number)
				ret = walk_insn(&w[i], &out->next[i], e);
		if (ret || (!out->next[0].number && !out->next[1].number))
			return ret;
		if (!difference_same_insn(&out->next[0], &out->next[1]))
			break;
		out->last = out->next[0];
	}
	if (ret)
		return ret;
	for (unsigned int i = 0; i < 2; i++) {
		out->regs[i] = w[i].block.block.regs;
		out->regs_at[i] = w[i].block.block.before + 1;
	}
	out->found = true;
	difference_judge(out);
	return 0;
}

/* -- values ----------------------------------------------------------------------------------- */

/* Returns the instruction that begins `off` bytes into the block. */
static struct difference_insn difference_insn_of(const struct trace_record *b, unsigned int off)
{
	size_t at = 0;

	for (unsigned int i = 0; i < b->block.insns; i++) {
		if (at == off)
			return walk_insn_at(b, i, at);
		at += b->length[i];
	}
	return walk_insn_at(b, 0, 0);
}

/* Returns the next access before instruction `end`; kind 0: there is none. */
static int walk_access(struct difference_walk *w, uint64_t end, struct trace_access *out,
		       struct difference_insn *insn, struct err *e)
{
	struct trace_record r;
	int ret;

	*out = (struct trace_access){ 0 };
	while ((ret = trace_next(w->in, &r, e)) > 0) {
		if (r.kind == TRACE_BLOCK) {
			w->block = r;
			if (r.block.before + 1 >= end)
				return 0;
		} else if (w->block.block.insns) {
			*out = r.access;
			*insn = difference_insn_of(&w->block, r.access.off);
			return 0;
		}
	}
	return ret;
}

static bool difference_same_access(const struct trace_access *a, const struct trace_access *b)
{
	return a->kind == b->kind && a->size == b->size && a->va == b->va && a->value == b->value &&
	       a->high == b->high;
}

int difference_find_value(struct difference_value *out, struct trace_reader side[2], uint64_t end,
			  struct err *e)
{
	struct difference_walk w[2] = { { .in = &side[0] }, { .in = &side[1] } };
	struct difference_insn insn[2];
	int ret;

	*out = (struct difference_value){ 0 };
	do {
		ret = walk_access(&w[0], end, &out->access[0], &insn[0], e);
		if (ret)
			return ret;
		ret = walk_access(&w[1], end, &out->access[1], &insn[1], e);
		if (ret || !out->access[0].kind || !out->access[1].kind)
			return ret;
	} while (difference_same_access(&out->access[0], &out->access[1]));
	/* Accesses of different instructions are not comparable: control has diverged before. */
	out->found = insn[0].number == insn[1].number && insn[0].pc == insn[1].pc;
	out->insn = insn[0];
	return 0;
}

/* -- registers -------------------------------------------------------------------------------- */

int difference_skip(struct trace_reader *r, uint64_t from, struct err *e)
{
	struct trace_record rec;
	struct trace_reader ahead = *r;
	int ret;

	while ((ret = trace_next(&ahead, &rec, e)) > 0) {
		if (rec.kind == TRACE_BLOCK && rec.block.before + rec.block.insns > from)
			return 0;
		*r = ahead;
	}
	return ret;
}

/* Finds the first different value in the previous blocks of both sides. */
static void difference_find_cause(struct difference_regs *out, const struct difference_walk w[2])
{
	for (unsigned int i = 0; i < w[0].naccess && i < w[1].naccess; i++) {
		if (difference_same_access(&w[0].access[i], &w[1].access[i]))
			continue;
		out->access[0] = w[0].access[i];
		out->access[1] = w[1].access[i];
		out->insn = difference_insn_of(&w[0].done, w[0].access[i].off);
		return;
	}
}

int difference_find_regs(struct difference_regs *out, struct trace_reader side[2], uint64_t end,
			 struct err *e)
{
	struct difference_walk w[2] = { { .in = &side[0] }, { .in = &side[1] } };
	bool any = false;
	int ret = 0;

	*out = (struct difference_regs){ 0 };
	for (;;) {
		const struct trace_block *a = &w[0].block.block, *b = &w[1].block.block;
		unsigned int behind = a->before > b->before;

		if (!a->insns || !b->insns || a->before == b->before) {
			if (a->insns)
				out->from = walk_insn_at(&w[0].block, 0, 0);
			ret = walk_block(&w[0], e);
			ret = ret > 0 ? walk_block(&w[1], e) : ret;
		} else {
			ret = walk_block(&w[behind], e);
		}
		if (ret <= 0 || a->before + 1 > end || b->before + 1 > end)
			return ret < 0 ? ret : 0;
		if (a->before != b->before)
			continue;
		if (memcmp(&a->regs, &b->regs, sizeof(a->regs)) != 0)
			break;
		any = true;
	}
	out->found = true;
	out->before = !any;
	out->number = w[0].block.block.before + 1;
	if (any)
		difference_find_cause(out, w);
	return 0;
}
