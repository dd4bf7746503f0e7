/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Executes the instructions of a CIE and an FDE to find the rules of one address. Each instruction
 * has at least one byte, so their number is limited by the entry's length.
 */
#include "symbolizer/cfi/cfi_row.h"

#include <string.h>

/* Instructions: DWARF 5, 7.24, table 7.29; the last three are GNU's. */
enum {
	OP_HIGH = 0xc0,
	OP_ADVANCE = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,
	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE1 = 0x02,
	OP_ADVANCE2 = 0x03,
	OP_ADVANCE4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER = 0x0a,
	OP_RECALL = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_ARGS_SIZE = 0x2e,
	OP_NEGATIVE_OFFSET = 0x2f,
};

#define MAX_REMEMBERED 16u

/* The bytes of an expression, while the row is being computed. */
struct cfi_row_block {
	const uint8_t *bytes;
	uint8_t len;
};

struct cfi_row_state {
	bool has_cfa;
	uint64_t cfa_reg;
	int64_t cfa_off;
	struct cfi_row_block cfa;
	struct cfi_rule rule[CFI_REGS];
	struct cfi_row_block expr[CFI_REGS];
};

struct cfi_row_program {
	const struct cfi_entry *x;
	struct cursor c;
	struct cfi_base base; /* for set_loc */
	uint64_t loc, va;
	struct cfi_row_state now, first; /* first: the CIE's rules, for restore */
	struct cfi_row_state remembered[MAX_REMEMBERED];
	unsigned int nremembered;
	bool bad;
};

static int32_t row_offset(struct cfi_row_program *p, int64_t v)
{
	if (v != (int32_t)v)
		p->bad = true;
	return (int32_t)v;
}

/* Multiplies by a factor from the table; row_offset() checks the product. */
static int64_t row_scaled(struct cfi_row_program *p, int64_t v)
{
	int64_t out;

	if (__builtin_mul_overflow(v, p->x->cie.data_align, &out))
		p->bad = true;
	return p->bad ? 0 : out;
}

/*
 * Sets a rule. Registers other than those of struct cfi_regs are vector registers, and are
 * ignored.
 */
static void row_rule(struct cfi_row_program *p, uint64_t reg, enum cfi_how how, int64_t value)
{
	int32_t v = row_offset(p, value);

	if (reg < CFI_REGS)
		p->now.rule[reg] = (struct cfi_rule){ .value = v, .how = (uint8_t)how };
}

static struct cfi_row_block row_block(struct cfi_row_program *p)
{
	uint64_t len = cfi_uleb(&p->c);
	const uint8_t *bytes = cursor_bytes(&p->c, len);

	if (!bytes || len == 0 || len > CFI_MAX_EXPR) {
		p->bad = true;
		return (struct cfi_row_block){ NULL, 0 };
	}
	return (struct cfi_row_block){ bytes, (uint8_t)len };
}

static void row_expression(struct cfi_row_program *p, enum cfi_how how)
{
	uint64_t reg = cfi_uleb(&p->c);
	struct cfi_row_block b = row_block(p);

	row_rule(p, reg, how, 0);
	if (reg < CFI_REGS)
		p->now.expr[reg] = b;
}

static void row_restore(struct cfi_row_program *p, uint64_t reg)
{
	if (reg >= CFI_REGS)
		return;
	p->now.rule[reg] = p->first.rule[reg];
	p->now.expr[reg] = p->first.expr[reg];
}

static void row_cfa(struct cfi_row_program *p, uint64_t reg, int64_t off)
{
	p->now.has_cfa = true;
	p->now.cfa_reg = reg;
	p->now.cfa_off = off;
	p->now.cfa.len = 0;
}

/* Replaces the register or the offset of the CFA, which must be of that form. */
static void row_cfa_part(struct cfi_row_program *p, uint64_t reg, int64_t off)
{
	if (!p->now.has_cfa || p->now.cfa.len)
		p->bad = true;
	row_cfa(p, reg, off);
}

/* Advances the location to which later rules apply. Returns false if that is after va. */
static bool row_advance(struct cfi_row_program *p, uint64_t by)
{
	uint64_t to;

	if (__builtin_mul_overflow(by, p->x->cie.code_align, &by) ||
	    __builtin_add_overflow(p->loc, by, &to)) {
		p->bad = true;
		return false;
	}
	if (to > p->va)
		return false;
	p->loc = to;
	return true;
}

static bool row_set_loc(struct cfi_row_program *p)
{
	uint64_t to;

	if (!cfi_pointer(&p->c, p->x->cie.pointer, &p->base, &to) || to < p->loc) {
		p->bad = true;
		return false;
	}
	if (to > p->va)
		return false;
	p->loc = to;
	return true;
}

static void row_remember(struct cfi_row_program *p)
{
	if (p->nremembered == MAX_REMEMBERED)
		p->bad = true;
	else
		p->remembered[p->nremembered++] = p->now;
}

static void row_recall(struct cfi_row_program *p)
{
	if (p->nremembered == 0)
		p->bad = true;
	else
		p->now = p->remembered[--p->nremembered];
}

/* Executes an instruction that sets a register's rule. */
static void row_register(struct cfi_row_program *p, unsigned int op)
{
	uint64_t reg, of;

	switch (op) {
	case OP_OFFSET_EXTENDED:
		reg = cfi_uleb(&p->c);
		row_rule(p, reg, CFI_SAVED, row_scaled(p, (int64_t)cfi_uleb(&p->c)));
		break;
	case OP_OFFSET_SF:
		reg = cfi_uleb(&p->c);
		row_rule(p, reg, CFI_SAVED, row_scaled(p, cfi_sleb(&p->c)));
		break;
	case OP_NEGATIVE_OFFSET:
		reg = cfi_uleb(&p->c);
		row_rule(p, reg, CFI_SAVED, row_scaled(p, -(int64_t)(cfi_uleb(&p->c) & INT64_MAX)));
		break;
	case OP_VAL_OFFSET:
		reg = cfi_uleb(&p->c);
		row_rule(p, reg, CFI_OFFSET, row_scaled(p, (int64_t)cfi_uleb(&p->c)));
		break;
	case OP_VAL_OFFSET_SF:
		reg = cfi_uleb(&p->c);
		row_rule(p, reg, CFI_OFFSET, row_scaled(p, cfi_sleb(&p->c)));
		break;
	case OP_RESTORE_EXTENDED:
		row_restore(p, cfi_uleb(&p->c));
		break;
	case OP_UNDEFINED:
		row_rule(p, cfi_uleb(&p->c), CFI_UNDEFINED, 0);
		break;
	case OP_SAME_VALUE:
		row_rule(p, cfi_uleb(&p->c), CFI_SAME, 0);
		break;
	case OP_REGISTER:
		reg = cfi_uleb(&p->c);
		of = cfi_uleb(&p->c);
		if (of < CFI_REGS)
			row_rule(p, reg, CFI_REGISTER, (int64_t)of);
		else
			row_rule(p, reg, CFI_UNDEFINED, 0);
		break;
	case OP_EXPRESSION:
		row_expression(p, CFI_SAVED_EXPR);
		break;
	case OP_VAL_EXPRESSION:
		row_expression(p, CFI_EXPR);
		break;
	case OP_ARGS_SIZE:
		/* The size of pushed arguments matters only for exception handling. */
		cfi_uleb(&p->c);
		break;
	default:
		p->bad = true;
	}
}

/* Executes one instruction whose upper two bits are 0. Returns false if the row is complete. */
static bool row_instruction(struct cfi_row_program *p, unsigned int op)
{
	uint64_t reg;

	switch (op) {
	case OP_NOP:
		return true;
	case OP_SET_LOC:
		return row_set_loc(p);
	case OP_ADVANCE1:
		return row_advance(p, cursor_u8(&p->c));
	case OP_ADVANCE2:
		return row_advance(p, cursor_u16(&p->c));
	case OP_ADVANCE4:
		return row_advance(p, cursor_u32(&p->c));
	case OP_REMEMBER:
		row_remember(p);
		return true;
	case OP_RECALL:
		row_recall(p);
		return true;
	case OP_DEF_CFA:
		reg = cfi_uleb(&p->c);
		row_cfa(p, reg, (int64_t)cfi_uleb(&p->c));
		return true;
	case OP_DEF_CFA_SF:
		reg = cfi_uleb(&p->c);
		row_cfa(p, reg, row_scaled(p, cfi_sleb(&p->c)));
		return true;
	case OP_DEF_CFA_REGISTER:
		row_cfa_part(p, cfi_uleb(&p->c), p->now.cfa_off);
		return true;
	case OP_DEF_CFA_OFFSET:
		row_cfa_part(p, p->now.cfa_reg, (int64_t)cfi_uleb(&p->c));
		return true;
	case OP_DEF_CFA_OFFSET_SF:
		row_cfa_part(p, p->now.cfa_reg, row_scaled(p, cfi_sleb(&p->c)));
		return true;
	case OP_DEF_CFA_EXPRESSION:
		p->now.has_cfa = true;
		p->now.cfa = row_block(p);
		return true;
	default:
		row_register(p, op);
		return true;
	}
}

/* Executes instructions until the row is complete. */
static void row_run(struct cfi_row_program *p, const struct cursor *insns)
{
	bool on = true;

	p->c = *insns;
	while (on && !p->bad && cursor_left(&p->c)) {
		unsigned int op = cursor_u8(&p->c), low = op & 0x3f;

		switch (op & OP_HIGH) {
		case OP_ADVANCE:
			on = row_advance(p, low);
			break;
		case OP_OFFSET:
			row_rule(p, low, CFI_SAVED, row_scaled(p, (int64_t)cfi_uleb(&p->c)));
			break;
		case OP_RESTORE:
			row_restore(p, low);
			break;
		default:
			on = row_instruction(p, op);
		}
		p->bad |= p->c.bad;
	}
}

/* Copies an expression to the row's expr, and returns its offset. */
static int32_t row_keep(struct cfi_row_program *p, struct cfi_row *row,
			const struct cfi_row_block *b)
{
	int32_t at = row->expr_len;

	if (b->len > CFI_MAX_EXPR - row->expr_len) {
		p->bad = true;
		return 0;
	}
	memcpy(row->expr + at, b->bytes, b->len);
	row->expr_len = (uint8_t)(row->expr_len + b->len);
	return at;
}

static void row_make(struct cfi_row_program *p, struct cfi_row *row)
{
	const struct cfi_row_state *s = &p->now;

	memset(row, 0, sizeof(*row));
	row->is_signal = p->x->cie.is_signal;
	if (s->cfa.len) {
		row->cfa = row_keep(p, row, &s->cfa);
		row->cfa_len = s->cfa.len;
	} else {
		p->bad |= !s->has_cfa || s->cfa_reg >= CFI_REGS;
		row->cfa = row_offset(p, s->cfa_off);
		row->cfa_reg = (uint8_t)s->cfa_reg;
	}
	for (unsigned int i = 0; i < CFI_REGS; i++) {
		row->rule[i] = s->rule[i];
		if (s->rule[i].how != CFI_SAVED_EXPR && s->rule[i].how != CFI_EXPR)
			continue;
		row->rule[i].value = row_keep(p, row, &s->expr[i]);
		row->rule[i].len = s->expr[i].len;
	}
	cfi_row_classify(row);
}

enum cfi_found cfi_entry_row(const struct cfi_entry *x, uint64_t va, struct cfi_row *row)
{
	struct cfi_row_program p;
	struct cfi_row made;

	/* No initialiser: remembered states are read only after they were written. */
	p.x = x;
	p.bad = false;
	p.nremembered = 0;
	p.loc = x->start;
	p.va = va;
	p.base = (struct cfi_base){ .base_va = 0 };
	memset(&p.now, 0, sizeof(p.now));
	memset(&p.first, 0, sizeof(p.first));
	row_run(&p, &x->cie.insns);
	p.first = p.now;
	/* The cursor's first byte is the first byte of the instructions. */
	p.base.base_va = x->insns_va;
	row_run(&p, &x->insns);
	if (!p.bad)
		row_make(&p, &made);
	if (p.bad)
		return CFI_BAD;
	*row = made;
	return CFI_FOUND;
}
