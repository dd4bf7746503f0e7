/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi.h"

#include "symbolizer/cfi/cfi_expr.h"

#include <string.h>

static const uint8_t cfi_kept[CFI_KEPT_REGS] = { CFI_RBX, CFI_RBP, CFI_R12,
						 CFI_R13, CFI_R14, CFI_R15 };

/*
 * Returns the number of words below the CFA at which it is saved; 0 if it is not saved, or too far
 * below.
 */
static uint8_t step_below(const struct cfi_rule *rule)
{
	return rule->how == CFI_SAVED && rule->value < 0 && rule->value >= -8 * UINT8_MAX &&
			       rule->value % 8 == 0
		       ? (uint8_t)(-rule->value / 8)
		       : 0;
}

void cfi_row_classify(struct cfi_row *row)
{
	uint32_t saved = 1u << CFI_RIP;

	row->ruled = 0;
	for (unsigned int reg = 0; reg < CFI_REGS; reg++)
		row->ruled |= (uint32_t)(row->rule[reg].how != CFI_DEFAULT) << reg;
	row->deepest = 1;
	for (unsigned int i = 0; i < CFI_KEPT_REGS; i++) {
		row->below[i] = step_below(&row->rule[cfi_kept[i]]);
		saved |= (uint32_t)(row->below[i] != 0) << cfi_kept[i];
		if (row->deepest < row->below[i])
			row->deepest = row->below[i];
	}
	if (row->is_signal || row->cfa_len || row->ruled != saved ||
	    step_below(&row->rule[CFI_RIP]) != 1)
		row->deepest = 0;
}

bool cfi_plain_at(const struct cfi_row *row, const struct cfi_regs *g,
		  const struct cfi_stack *stack, struct cfi_plain *out)
{
	uint64_t saved = 8 * (uint64_t)row->deepest, low, off;

	if (!saved || !cfi_knows(g, row->cfa_reg) || !cfi_knows(g, CFI_RSP))
		return false;
	out->cfa = g->r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa;
	low = out->cfa - saved;
	off = low - stack->near_va;
	if (low < g->r[CFI_RSP] || off >= stack->near_len || stack->near_len - off < saved)
		return false;
	out->top = stack->near + off + saved;
	memcpy(&out->ret, out->top - 8, 8);
	out->ruled = row->ruled;
	memcpy(out->below, row->below, sizeof(out->below));
	return true;
}

void cfi_plain_apply(const struct cfi_plain *at, struct cfi_regs *g)
{
	for (unsigned int i = 0; i < CFI_KEPT_REGS; i++) {
		uint64_t *r = &g->r[cfi_kept[i]];
		const void *from = at->below[i] ? (const void *)(at->top - 8 * at->below[i]) : r;

		/* No branch here: which registers a function saves is as good as random. */
		memmove(r, from, sizeof(*r));
	}
	g->known &= CFI_KEPT;
	g->known |= at->ruled;
	cfi_set(g, CFI_RSP, at->cfa);
	cfi_set(g, CFI_RIP, at->ret);
}

static enum cfi_step step_cfa(const struct cfi_row *row, const struct cfi_regs *g,
			      struct cfi_stack *stack, uint64_t *cfa)
{
	if (row->cfa_len)
		return cfi_expr_eval(&(struct cfi_expr){ row->expr + row->cfa, row->cfa_len, NULL },
				     g, stack, cfa);
	if (!cfi_knows(g, row->cfa_reg))
		return CFI_STEP_UNKNOWN;
	*cfa = g->r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa;
	return CFI_STEP_ON;
}

static enum cfi_step step_load(struct cfi_stack *stack, uint64_t va, uint64_t *out)
{
	if (stack->read(stack->ctx, va, out))
		return CFI_STEP_ON;
	stack->missing = va;
	return CFI_STEP_MISSING;
}

/*
 * Reads a register that is saved at va. Epilogues restore registers one by one, and compilers
 * leave the rules unchanged: what was saved below rsp is in its register again, and those bytes
 * are free.
 */
static enum cfi_step step_saved(const struct cfi_regs *g, struct cfi_stack *stack, unsigned int reg,
				uint64_t va, uint64_t *out)
{
	if (!cfi_knows(g, CFI_RSP) || va >= g->r[CFI_RSP] || !cfi_knows(g, reg))
		return step_load(stack, va, out);
	*out = g->r[reg];
	return CFI_STEP_ON;
}

/* Computes a register of the caller. CFI_STEP_ROOT: it has no value. */
static enum cfi_step step_register(const struct cfi_row *row, const struct cfi_regs *g,
				   struct cfi_stack *stack, unsigned int reg, uint64_t cfa,
				   uint64_t *out)
{
	const struct cfi_rule *rule = &row->rule[reg];
	enum cfi_step st;

	switch (rule->how) {
	case CFI_DEFAULT:
	case CFI_SAME:
		if (rule->how == CFI_DEFAULT && reg == CFI_RSP) {
			*out = cfa;
			return CFI_STEP_ON;
		}
		if (!cfi_knows(g, reg) || (rule->how == CFI_DEFAULT && !(CFI_KEPT >> reg & 1)))
			return CFI_STEP_ROOT;
		*out = g->r[reg];
		return CFI_STEP_ON;
	case CFI_SAVED:
		return step_saved(g, stack, reg, cfa + (uint64_t)(int64_t)rule->value, out);
	case CFI_OFFSET:
		*out = cfa + (uint64_t)(int64_t)rule->value;
		return CFI_STEP_ON;
	case CFI_REGISTER:
		if (!cfi_knows(g, (unsigned int)rule->value))
			return CFI_STEP_ROOT;
		*out = g->r[rule->value];
		return CFI_STEP_ON;
	case CFI_SAVED_EXPR:
	case CFI_EXPR:
		st = cfi_expr_eval(&(struct cfi_expr){ row->expr + rule->value, rule->len, &cfa },
				   g, stack, out);
		return st == CFI_STEP_ON && rule->how == CFI_SAVED_EXPR
			       ? step_load(stack, *out, out)
			       : st;
	default:
		return CFI_STEP_ROOT;
	}
}

/* Handles the usual case: saved above rsp, in the near bytes. Returns false otherwise. */
static inline bool step_near(const struct cfi_rule *rule, const struct cfi_regs *g,
			     const struct cfi_stack *stack, uint64_t cfa, uint64_t *out)
{
	uint64_t va = cfa + (uint64_t)(int64_t)rule->value, off = va - stack->near_va;

	if (rule->how != CFI_SAVED || !cfi_knows(g, CFI_RSP) || va < g->r[CFI_RSP] ||
	    off >= stack->near_len || stack->near_len - off < sizeof(*out))
		return false;
	memcpy(out, stack->near + off, sizeof(*out));
	return true;
}

enum cfi_step cfi_step(const struct cfi_row *row, const struct cfi_regs *g, struct cfi_stack *stack,
		       struct cfi_regs *out)
{
	uint64_t cfa, missing = 0;
	uint32_t ruled = row->ruled;
	enum cfi_step st;

	if (row->rule[CFI_RIP].how == CFI_UNDEFINED)
		return CFI_STEP_ROOT;
	st = step_cfa(row, g, stack, &cfa);
	if (st != CFI_STEP_ON)
		return st;
	/* Most registers have no rule: those that functions preserve are copied all at once. */
	*out = *g;
	out->known = g->known & CFI_KEPT & ~ruled;
	ruled |= 1u << CFI_RIP;
	if (!(ruled >> CFI_RSP & 1))
		cfi_set(out, CFI_RSP, cfa);
	for (; ruled; ruled &= ruled - 1) {
		unsigned int reg = (unsigned int)__builtin_ctz(ruled);
		uint64_t value;

		if (step_near(&row->rule[reg], g, stack, cfa, &value)) {
			cfi_set(out, reg, value);
			continue;
		}
		st = step_register(row, g, stack, reg, cfa, &value);
		if (st == CFI_STEP_ON)
			cfi_set(out, reg, value);
		else if (st == CFI_STEP_MISSING && (!missing || reg == CFI_RIP))
			missing = stack->missing;
	}
	/* Any other register may be unknown: few callers need it. */
	if (!cfi_knows(out, CFI_RIP) || !cfi_knows(out, CFI_RSP)) {
		stack->missing = missing;
		return missing ? CFI_STEP_MISSING : CFI_STEP_UNKNOWN;
	}
	return CFI_STEP_ON;
}
