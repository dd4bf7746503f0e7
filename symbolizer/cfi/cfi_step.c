/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi.h"

#include "symbolizer/cfi/cfi_expr.h"

#include <string.h>

/* A function returns with these as they were (psABI, figure 3.4). */
#define KEPT                                                                             \
	(1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 | 1u << CFI_R14 | \
	 1u << CFI_R15)

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
 * Saved at va. Epilogues take registers back one by one, and compilers leave the rules as they
 * were: what was saved below rsp is in its register again, and those bytes are nobody's.
 */
static enum cfi_step step_saved(const struct cfi_regs *g, struct cfi_stack *stack, unsigned int reg,
				uint64_t va, uint64_t *out)
{
	if (!cfi_knows(g, CFI_RSP) || va >= g->r[CFI_RSP] || !cfi_knows(g, reg))
		return step_load(stack, va, out);
	*out = g->r[reg];
	return CFI_STEP_ON;
}

/* CFI_STEP_ROOT: it has no value. */
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
		if (!cfi_knows(g, reg) || (rule->how == CFI_DEFAULT && !(KEPT >> reg & 1)))
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

/* What is mostly so: saved, above rsp, in the bytes that are near. false: it is not. */
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
	/* Most registers have no rule: those that functions keep are as they are, all at once. */
	*out = *g;
	out->known = g->known & KEPT & ~ruled;
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
	/* Any other may be unknown: few callers need it. */
	if (!cfi_knows(out, CFI_RIP) || !cfi_knows(out, CFI_RSP)) {
		stack->missing = missing;
		return missing ? CFI_STEP_MISSING : CFI_STEP_UNKNOWN;
	}
	return CFI_STEP_ON;
}
