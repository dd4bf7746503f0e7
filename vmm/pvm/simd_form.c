/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/simd_form.h"

#include <errno.h>
#include <string.h>

#define REX_B 1u
#define REX_X 2u
#define REX_R 4u
#define REX_W 8u

#define HOST_GPR 0u  /* rax */
#define HOST_BASE 3u /* rbx */

/* An instruction whose prefixes and opcode are decoded. Register numbers are 0 to 15. */
struct simd_form_insn {
	struct simd_opcode op;
	unsigned int rex;  /* W, R, X and B, not inverted */
	unsigned int vvvv; /* not inverted */
	bool l;
	uint8_t modrm, imm;
};

/* The guest's bytes. `at` is larger than n once a byte was missing. */
struct simd_form_source {
	const uint8_t *b;
	size_t n, at;
};

static uint8_t simd_form_next(struct simd_form_source *s)
{
	return s->at < s->n ? s->b[s->at++] : (s->at = s->n + 1, 0);
}

/* Decodes a VEX prefix; `first` is C4 or C5, and `s` is after it. */
static void parse_vex(struct simd_form_source *s, uint8_t first, struct simd_form_insn *i)
{
	uint8_t second = simd_form_next(s), last = second;

	i->op.vex = true;
	i->op.map = MAP_0F;
	if (first == 0xc4) {
		last = simd_form_next(s);
		i->op.map = second & 31;
		i->rex = (~second >> 5 & 7) | (last & 0x80 ? REX_W : 0);
	} else {
		i->rex = second & 0x80 ? 0 : REX_R;
	}
	i->vvvv = ~last >> 3 & 15;
	i->l = last & 4;
	i->op.pp = last & 3;
	i->op.opcode = simd_form_next(s);
}

static void parse_legacy_opcode(struct simd_form_source *s, struct simd_form_insn *i)
{
	i->op.map = MAP_0F;
	i->op.opcode = simd_form_next(s);
	if (i->op.opcode == 0x38 || i->op.opcode == 0x3a) {
		i->op.map = i->op.opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
		i->op.opcode = simd_form_next(s);
	}
}

/* Decodes up to the opcode. Prefix 66 together with F2 or F3, and LOCK, are refused. */
static int parse_opcode(struct simd_form_source *s, struct simd_form_insn *i)
{
	uint8_t c, mandatory = 0;

	for (;;) {
		c = simd_form_next(s);
		if (c == 0x66 || c == 0xf2 || c == 0xf3) {
			if (mandatory && mandatory != c)
				return -ENOTSUP;
			mandatory = c;
		} else if (c != 0x64 && c != 0x65 && c != 0x67 && c != 0x2e && c != 0x36 &&
			   c != 0x3e && c != 0x26) {
			break;
		}
	}
	if (c == 0xc4 || c == 0xc5) {
		if (mandatory)
			return -ENOTSUP;
		parse_vex(s, c, i);
		return 0;
	}
	/* A REX prefix counts directly before the opcode only; elsewhere it is refused. */
	if ((c & 0xf0) == 0x40) {
		i->rex = c & 15;
		c = simd_form_next(s);
	}
	if (c != 0x0f)
		return -ENOTSUP;
	i->vvvv = 0;
	i->op.pp = mandatory == 0x66   ? PP_66
		   : mandatory == 0xf3 ? PP_F3
		   : mandatory == 0xf2 ? PP_F2
				       : PP_NONE;
	parse_legacy_opcode(s, i);
	return 0;
}

static bool is_vzero(const struct simd_form_insn *i)
{
	return i->op.vex && i->op.map == MAP_0F && i->op.opcode == 0x77 && i->op.pp == PP_NONE;
}

static bool is_register(const struct simd_form_insn *i)
{
	return i->modrm >> 6 == 3;
}

static unsigned int reg_number(const struct simd_form_insn *i)
{
	return (i->modrm >> 3 & 7u) | (i->rex & REX_R ? 8 : 0);
}

static unsigned int rm_number(const struct simd_form_insn *i)
{
	return (i->modrm & 7u) | (i->rex & REX_B ? 8 : 0);
}

/* Returns whether the row permits this form of ModRM and of VEX. */
static bool row_permits(const struct simd_row *r, const struct simd_form_insn *i)
{
	bool reg = is_register(i);
	bool v = r->flags & SIMD_V || (r->flags & SIMD_V_REG && reg);

	if (r->flags & (reg ? SIMD_NO_REG : SIMD_NO_MEM))
		return false;
	if (r->flags & SIMD_GROUP && !(r->group >> (i->modrm >> 3 & 7) & 1))
		return false;
	/* vvvv is stored inverted: 15 in the instruction is 0 here. */
	if (i->op.vex && !v && i->vvvv != 0)
		return false;
	return !(r->flags & (i->l ? SIMD_L0 : SIMD_L1)) || (!i->op.vex && !(r->flags & SIMD_L1));
}

/* Fills in the effects of *i, an instruction that the row permits. */
static void set_effects(const struct simd_row *r, const struct simd_form_insn *i,
			struct simd_form *f)
{
	f->gpr_read = f->gpr_written = SIMD_NO_GPR;
	if (!is_register(i)) {
		f->memory_size = simd_row_size(r, i->rex & REX_W, i->l);
		f->stores = r->flags & SIMD_STORES;
	} else if (r->flags & SIMD_RM_READS) {
		f->gpr_read = rm_number(i);
	} else if (r->flags & SIMD_RM_WRITES) {
		f->gpr_written = rm_number(i);
	}
	if (r->flags & SIMD_REG_GPR)
		f->gpr_written = reg_number(i);
	f->lengths = r->flags & SIMD_LENGTHS;
	f->index = r->flags & SIMD_INDEX;
	f->flags = r->flags & SIMD_FLAGS;
}

/* Replaces general registers and the memory operand by those chosen here. */
static void choose_registers(const struct simd_row *r, struct simd_form_insn *i)
{
	i->rex &= ~REX_X;
	if (r->flags & SIMD_REG_GPR) {
		i->rex &= ~REX_R;
		i->modrm = (uint8_t)((i->modrm & 0xc7) | HOST_GPR << 3);
	}
	if (!is_register(i)) {
		i->rex &= ~REX_B;
		i->modrm = (uint8_t)((i->modrm & 0x38) | HOST_BASE);
	} else if (r->flags & (SIMD_RM_READS | SIMD_RM_WRITES)) {
		i->rex &= ~REX_B;
		i->modrm = (uint8_t)((i->modrm & 0xf8) | HOST_GPR);
	}
	if (r->flags & SIMD_GROUP) /* REX.R does not extend a register here */
		i->rex &= ~REX_R;
}

static void emit(struct simd_form *f, unsigned int byte)
{
	f->code[f->len++] = (uint8_t)byte;
}

static void assemble_opcode(const struct simd_form_insn *i, struct simd_form *f)
{
	static const uint8_t prefix[] = { 0, 0x66, 0xf3, 0xf2 };

	if (i->op.vex) {
		emit(f, 0xc4);
		emit(f, (~i->rex & 7) << 5 | i->op.map);
		emit(f, (i->rex & REX_W ? 0x80u : 0) | (~i->vvvv & 15) << 3 | (i->l ? 4u : 0) |
				i->op.pp);
	} else {
		if (i->op.pp != PP_NONE)
			emit(f, prefix[i->op.pp]);
		if (i->rex)
			emit(f, 0x40 | i->rex);
		emit(f, 0x0f);
		if (i->op.map != MAP_0F)
			emit(f, i->op.map == MAP_0F38 ? 0x38 : 0x3a);
	}
	emit(f, i->op.opcode);
}

/* Skips SIB and displacement of the guest's memory operand. */
static void skip_address(struct simd_form_source *s, uint8_t modrm)
{
	unsigned int mod = modrm >> 6, rm = modrm & 7;

	if (mod == 3)
		return;
	if (rm == 4 && (simd_form_next(s) & 7) == 5 && mod == 0)
		s->at += 4;
	s->at += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
}

int simd_form_parse(const uint8_t *bytes, size_t n, struct simd_form *out)
{
	struct simd_form_source s = { .b = bytes, .n = n < SIMD_FORM_MAX ? n : SIMD_FORM_MAX };
	struct simd_form f = { .gpr_read = SIMD_NO_GPR, .gpr_written = SIMD_NO_GPR };
	const struct simd_row *r = NULL;
	struct simd_form_insn i = { 0 };

	if (parse_opcode(&s, &i) < 0)
		return -ENOTSUP;
	if (is_vzero(&i)) {
		if (i.vvvv)
			return -ENOTSUP;
		i.rex = 0;
		assemble_opcode(&i, &f);
	} else {
		r = simd_table_find(&i.op);
		if (!r)
			return -ENOTSUP;
		i.modrm = simd_form_next(&s);
		skip_address(&s, i.modrm);
		if (!row_permits(r, &i))
			return -ENOTSUP;
		set_effects(r, &i, &f);
		choose_registers(r, &i);
		assemble_opcode(&i, &f);
		emit(&f, i.modrm);
		if (r->flags & SIMD_IMM) {
			i.imm = simd_form_next(&s);
			emit(&f, i.imm);
		}
	}
	if (s.at > s.n)
		return -ENOTSUP;
	f.source_len = (unsigned int)s.at;
	if (!simd_form_check(&f))
		return -ENOTSUP;
	*out = f;
	return 0;
}

/* -- the second decoder ----------------------------------------------------------------------- */

/*
 * Decodes prefixes and opcode of assembled bytes: at most one mandatory prefix, then REX, or a
 * VEX prefix of three bytes. Returns the offset of ModRM, or 0 if the bytes have another form.
 */
static size_t check_opcode(const uint8_t *b, size_t len, struct simd_form_insn *i)
{
	size_t at = 0;

	if (len >= 4 && b[0] == 0xc4) {
		i->op = (struct simd_opcode){ b[1] & 31, b[2] & 3, b[3], true };
		i->rex = (b[1] & 0x80 ? 0 : REX_R) | (b[1] & 0x40 ? 0 : REX_X) |
			 (b[1] & 0x20 ? 0 : REX_B) | (b[2] & 0x80 ? REX_W : 0);
		i->vvvv = 15u - (b[2] >> 3 & 15u);
		i->l = b[2] & 4;
		return 4;
	}
	if (len < 3)
		return 0;
	i->op.pp = b[0] == 0x66 ? PP_66 : b[0] == 0xf3 ? PP_F3 : b[0] == 0xf2 ? PP_F2 : PP_NONE;
	at += i->op.pp != PP_NONE;
	if (b[at] >= 0x40 && b[at] <= 0x4f)
		i->rex = b[at++] - 0x40u;
	if (at + 2 > len || b[at++] != 0x0f)
		return 0;
	i->op.map = b[at] == 0x38 ? MAP_0F38 : b[at] == 0x3a ? MAP_0F3A : MAP_0F;
	at += i->op.map != MAP_0F;
	if (at >= len)
		return 0;
	i->op.opcode = b[at++];
	return at;
}

bool simd_form_check(const struct simd_form *f)
{
	struct simd_form_insn i = { 0 };
	size_t at = f->len <= SIMD_FORM_MAX ? check_opcode(f->code, f->len, &i) : 0;
	const struct simd_row *r;
	bool reg, rm_gpr;

	if (!at || i.rex & REX_X)
		return false;
	if (is_vzero(&i))
		return at == f->len && !i.vvvv && !i.rex && !f->memory_size &&
		       f->gpr_read == SIMD_NO_GPR && f->gpr_written == SIMD_NO_GPR && !f->lengths &&
		       !f->index && !f->flags;
	r = simd_table_find(&i.op);
	if (!r || f->len != at + 1 + (r->flags & SIMD_IMM ? 1 : 0))
		return false;
	i.modrm = f->code[at];
	reg = is_register(&i);
	rm_gpr = reg && r->flags & (SIMD_RM_READS | SIMD_RM_WRITES);
	if (!row_permits(r, &i) || (!reg && (i.modrm & 0xc7) != HOST_BASE) ||
	    (!reg && i.rex & REX_B))
		return false;
	/* Each general register of the instruction must be rax. */
	if ((r->flags & SIMD_REG_GPR && reg_number(&i) != HOST_GPR) ||
	    (rm_gpr && rm_number(&i) != HOST_GPR))
		return false;
	if ((f->gpr_read != SIMD_NO_GPR) != (reg && r->flags & SIMD_RM_READS) ||
	    (f->gpr_written != SIMD_NO_GPR) !=
		    (r->flags & SIMD_REG_GPR || (reg && r->flags & SIMD_RM_WRITES)))
		return false;
	return f->memory_size == (reg ? 0 : simd_row_size(r, i.rex & REX_W, i.l)) &&
	       f->memory_size <= SIMD_OPERAND_MAX &&
	       f->stores == (!reg && r->flags & SIMD_STORES) &&
	       f->lengths == !!(r->flags & SIMD_LENGTHS) && f->index == !!(r->flags & SIMD_INDEX) &&
	       f->flags == !!(r->flags & SIMD_FLAGS);
}
