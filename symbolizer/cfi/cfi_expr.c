/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi_expr.h"

#include "symbolizer/cfi/cfi_leb.h"

/* Operations: DWARF 5, 7.7.1, table 7.9. */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08, /* const1u, const1s, const2u, ... const8s */
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
	OP_STACK_VALUE = 0x9f,
};

struct machine {
	struct cursor c;
	const struct cfi_regs *g;
	struct cfi_stack *stack;
	uint64_t at[CFI_EXPR_DEPTH];
	unsigned int n;
	enum cfi_step st; /* not CFI_STEP_ON: the evaluation has failed */
};

static uint64_t expr_fail(struct machine *m, enum cfi_step why)
{
	if (m->st == CFI_STEP_ON)
		m->st = why;
	return 0;
}

static void expr_push(struct machine *m, uint64_t v)
{
	if (m->n == CFI_EXPR_DEPTH)
		expr_fail(m, CFI_STEP_UNKNOWN);
	else
		m->at[m->n++] = v;
}

static uint64_t expr_pop(struct machine *m)
{
	return m->n ? m->at[--m->n] : expr_fail(m, CFI_STEP_UNKNOWN);
}

/* Returns the n-th value from the top, which is 0. */
static uint64_t expr_pick(struct machine *m, unsigned int n)
{
	return n < m->n ? m->at[m->n - 1 - n] : expr_fail(m, CFI_STEP_UNKNOWN);
}

static uint64_t expr_register(struct machine *m, uint64_t reg, int64_t off)
{
	if (reg >= CFI_REGS || !cfi_knows(m->g, (unsigned int)reg))
		return expr_fail(m, CFI_STEP_UNKNOWN);
	return m->g->r[reg] + (uint64_t)off;
}

static uint64_t expr_load(struct machine *m, uint64_t va, unsigned int size)
{
	uint64_t v;

	if (size == 0 || size > 8)
		return expr_fail(m, CFI_STEP_UNKNOWN);
	if (!m->stack->read(m->stack->ctx, va, &v)) {
		m->stack->missing = va;
		return expr_fail(m, CFI_STEP_MISSING);
	}
	return size == 8 ? v : v & ((UINT64_C(1) << 8 * size) - 1);
}

static void expr_jump(struct machine *m, int64_t by)
{
	/* by has 16 bits. */
	int64_t to = (int64_t)m->c.pos + by;

	if (to < 0)
		expr_fail(m, CFI_STEP_UNKNOWN);
	else
		cursor_seek(&m->c, (uint64_t)to);
}

static uint64_t expr_const(struct machine *m, unsigned int op)
{
	switch (op - OP_CONST1U) {
	case 0:
		return cursor_u8(&m->c);
	case 1:
		return (uint64_t)(int64_t)(int8_t)cursor_u8(&m->c);
	case 2:
		return cursor_u16(&m->c);
	case 3:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(&m->c);
	case 4:
		return cursor_u32(&m->c);
	case 5:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(&m->c);
	default:
		return cursor_u64(&m->c);
	}
}

static uint64_t expr_divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (b == 0)
		return expr_fail(m, CFI_STEP_UNKNOWN);
	/* The only quotient that does not fit. */
	return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
}

/* Computes an operation with two operands; b was on top. */
static uint64_t expr_of_two(struct machine *m, unsigned int op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case OP_AND:
		return a & b;
	case OP_DIV:
		return expr_divide(m, a, b);
	case OP_MINUS:
		return a - b;
	case OP_MOD:
		return b ? a % b : expr_fail(m, CFI_STEP_UNKNOWN);
	case OP_MUL:
		return a * b;
	case OP_OR:
		return a | b;
	case OP_PLUS:
		return a + b;
	case OP_SHL:
		return b < 64 ? a << b : 0;
	case OP_SHR:
		return b < 64 ? a >> b : 0;
	case OP_SHRA:
		return (uint64_t)(sa >> (b < 64 ? b : 63));
	case OP_XOR:
		return a ^ b;
	case OP_EQ:
		return a == b;
	case OP_GE:
		return sa >= sb;
	case OP_GT:
		return sa > sb;
	case OP_LE:
		return sa <= sb;
	case OP_LT:
		return sa < sb;
	case OP_NE:
		return a != b;
	default:
		return expr_fail(m, CFI_STEP_UNKNOWN);
	}
}

/* Executes operations that move values on the stack, or drop one. */
static void expr_of_stack(struct machine *m, unsigned int op)
{
	uint64_t a, b, c;

	switch (op) {
	case OP_DUP:
		expr_push(m, expr_pick(m, 0));
		break;
	case OP_DROP:
		expr_pop(m);
		break;
	case OP_OVER:
		expr_push(m, expr_pick(m, 1));
		break;
	case OP_PICK:
		expr_push(m, expr_pick(m, cursor_u8(&m->c)));
		break;
	case OP_SWAP:
		a = expr_pop(m);
		b = expr_pop(m);
		expr_push(m, a);
		expr_push(m, b);
		break;
	case OP_ROT:
		a = expr_pop(m);
		b = expr_pop(m);
		c = expr_pop(m);
		expr_push(m, a);
		expr_push(m, c);
		expr_push(m, b);
		break;
	case OP_ABS:
		a = expr_pop(m);
		expr_push(m, a >> 63 ? -a : a);
		break;
	case OP_NEG:
		expr_push(m, -expr_pop(m));
		break;
	case OP_NOT:
		expr_push(m, ~expr_pop(m));
		break;
	default:
		b = expr_pop(m);
		a = expr_pop(m);
		expr_push(m, expr_of_two(m, op, a, b));
	}
}

static void expr_operation(struct machine *m, unsigned int op)
{
	int64_t by;
	uint64_t reg;

	if (op >= OP_LIT0 && op <= OP_LIT31) {
		expr_push(m, op - OP_LIT0);
		return;
	}
	if (op >= OP_BREG0 && op <= OP_BREG31) {
		expr_push(m, expr_register(m, op - OP_BREG0, cfi_sleb(&m->c)));
		return;
	}
	if (op >= OP_CONST1U && op <= OP_CONST8S) {
		expr_push(m, expr_const(m, op));
		return;
	}
	switch (op) {
	case OP_NOP:
		break;
	case OP_DEREF:
		expr_push(m, expr_load(m, expr_pop(m), 8));
		break;
	case OP_DEREF_SIZE:
		reg = cursor_u8(&m->c);
		expr_push(m, expr_load(m, expr_pop(m), (unsigned int)reg));
		break;
	case OP_CONSTU:
		expr_push(m, cfi_uleb(&m->c));
		break;
	case OP_CONSTS:
		expr_push(m, (uint64_t)cfi_sleb(&m->c));
		break;
	case OP_PLUS_UCONST:
		reg = cfi_uleb(&m->c);
		expr_push(m, expr_pop(m) + reg);
		break;
	case OP_BREGX:
		reg = cfi_uleb(&m->c);
		expr_push(m, expr_register(m, reg, cfi_sleb(&m->c)));
		break;
	case OP_SKIP:
		by = (int16_t)cursor_u16(&m->c);
		expr_jump(m, by);
		break;
	case OP_BRA:
		by = (int16_t)cursor_u16(&m->c);
		if (expr_pop(m))
			expr_jump(m, by);
		break;
	default:
		expr_of_stack(m, op);
	}
}

enum cfi_step cfi_expr_eval(const struct cfi_expr *x, const struct cfi_regs *g,
			    struct cfi_stack *stack, uint64_t *out)
{
	struct machine m = { .g = g, .stack = stack, .st = CFI_STEP_ON };
	unsigned int steps = 0;

	cursor_init(&m.c, x->bytes, x->len);
	if (x->first)
		expr_push(&m, *x->first);
	while (m.st == CFI_STEP_ON && cursor_left(&m.c)) {
		unsigned int op = cursor_u8(&m.c);

		if (op == OP_STACK_VALUE)
			break;
		if (++steps > CFI_EXPR_STEPS)
			return CFI_STEP_UNKNOWN;
		expr_operation(&m, op);
	}
	if (m.st != CFI_STEP_ON)
		return m.st;
	if (m.c.bad || m.n == 0)
		return CFI_STEP_UNKNOWN;
	*out = m.at[m.n - 1];
	return CFI_STEP_ON;
}
