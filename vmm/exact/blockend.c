/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/blockend.h"

#define SP 4u /* number of the register */
#define REX_R 4u
#define REX_B 1u

struct blockend_code {
	const uint8_t *p; /* the opcode, after all prefixes */
	size_t n;
	uint8_t rex;
	bool rep;
};

static struct blockend_code blockend_skip_prefixes(const uint8_t *p, size_t n)
{
	struct blockend_code c = { .p = p, .n = n };

	for (; c.n; c.p++, c.n--) {
		uint8_t b = *c.p;

		if ((b & 0xf0) == 0x40)
			c.rex = b;
		else if (b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 ||
			 b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65)
			c.rex = 0;
		else
			break;
		c.rep |= (b & 0xfe) == 0xf2;
	}
	return c;
}

/*
 * Returns whether the ModRM byte's register operand is the stack pointer. blockend_rm_is_sp() does
 * the same for its r/m operand if that is a register.
 */
static bool blockend_reg_is_sp(const struct blockend_code *c)
{
	return (c->p[1] >> 3 & 7) == SP && !(c->rex & REX_R);
}

static bool blockend_rm_is_sp(const struct blockend_code *c)
{
	return c->p[1] >> 6 == 3 && (c->p[1] & 7) == SP && !(c->rex & REX_B);
}

static bool blockend_loads_sp(const struct blockend_code *c)
{
	switch (c->p[0]) {
	case 0xc9: /* LEAVE */
		return true;
	case 0x5c: /* POP, XCHG with the accumulator, MOV immediate */
	case 0x94:
	case 0xbc:
		return !(c->rex & REX_B);
	case 0x8b: /* MOV r, r/m; LEA */
	case 0x8d:
		return c->n > 1 && blockend_reg_is_sp(c);
	case 0x89: /* MOV r/m, r; MOV r/m, immediate */
	case 0xc7:
	case 0x8f: /* POP r/m */
		return c->n > 1 && blockend_rm_is_sp(c);
	case 0x87: /* XCHG */
		return c->n > 1 &&
		       (blockend_rm_is_sp(c) || (c->p[1] >> 6 == 3 && blockend_reg_is_sp(c)));
	default:
		return false;
	}
}

/*
 * Sets the target from the displacement that ends the instruction. Leaves has_target unset unless
 * the displacement has 1, 2 or 4 bytes.
 */
static void blockend_set_target(struct blockend *b, const struct blockend_code *c, size_t opcode)
{
	const uint8_t *d = c->p + opcode;

	if (c->n - opcode == 1)
		b->target = (int8_t)d[0];
	else if (c->n - opcode == 2)
		b->target = (int16_t)(d[0] | d[1] << 8);
	else if (c->n - opcode == 4)
		b->target = (int32_t)(d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 |
				      (uint32_t)d[3] << 24);
	else
		return;
	b->has_target = true;
}

static void blockend_two_bytes(struct blockend *b, const struct blockend_code *c)
{
	if (c->n < 2)
		return;
	if (c->p[1] >= 0x80 && c->p[1] <= 0x8f) {
		b->kind = BLOCKEND_JUMP;
		blockend_set_target(b, c, 2);
	} else if (c->p[1] == 0x05 || c->p[1] == 0x34) {
		b->kind = BLOCKEND_SYSCALL;
	} else if (c->p[1] == 0x07 || c->p[1] == 0x35) {
		b->kind = BLOCKEND_SYSRET;
	}
}

/*
 * Returns whether op is MOVS, CMPS, STOS, LODS, SCAS, INS or OUTS. QEMU executes each iteration of
 * a repeated one separately and then jumps back to it.
 */
static bool blockend_is_string(uint8_t op)
{
	return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) ||
	       (op >= 0x6c && op <= 0x6f);
}

static void blockend_one_byte(struct blockend *b, const struct blockend_code *c)
{
	uint8_t op = c->p[0];

	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) || op == 0xe9 || op == 0xeb) {
		b->kind = BLOCKEND_JUMP;
		blockend_set_target(b, c, 1);
	} else if (op == 0xe8) {
		b->kind = BLOCKEND_CALL;
		blockend_set_target(b, c, 1);
	} else if (op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb) {
		b->kind = BLOCKEND_RET;
	} else if (op == 0xcf) {
		b->kind = BLOCKEND_IRET;
	} else if (op == 0xcc || op == 0xcd || op == 0xce || op == 0xf1) {
		b->kind = BLOCKEND_SYSCALL;
	} else if (op == 0x9a) {
		b->kind = BLOCKEND_CALL_IND;
	} else if (op == 0xea) {
		b->kind = BLOCKEND_JUMP_IND;
	} else if (op == 0xff && c->n > 1) {
		unsigned int sub = c->p[1] >> 3 & 7;

		if (sub == 2 || sub == 3)
			b->kind = BLOCKEND_CALL_IND;
		else if (sub == 4 || sub == 5)
			b->kind = BLOCKEND_JUMP_IND;
	}
}

struct blockend blockend_of(const uint8_t *insn, size_t len)
{
	struct blockend b = { .kind = BLOCKEND_FALL };
	struct blockend_code c = blockend_skip_prefixes(insn, len);

	if (!c.n)
		return b;
	if (c.p[0] == 0x0f)
		blockend_two_bytes(&b, &c);
	else
		blockend_one_byte(&b, &c);
	if (c.rep && blockend_is_string(c.p[0])) {
		b.kind = BLOCKEND_JUMP;
		b.has_target = true;
		b.target = -(int64_t)len;
	}
	b.moves_sp = blockend_loads_sp(&c);
	return b;
}
