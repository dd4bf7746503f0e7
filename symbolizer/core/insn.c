/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/insn.h"

#include <string.h>

/* The bytes that follow an opcode byte. */
enum {
	M = 1,	 /* ModRM */
	B = 2,	 /* 1 immediate byte */
	Z = 4,	 /* 4 immediate bytes, 2 with an operand size prefix */
	W = 8,	 /* 2 immediate bytes */
	V = 16,	 /* like Z, but 8 with REX.W (mov imm64) */
	O = 32,	 /* a memory offset of the address size (8 or 4) */
	G = 64,	 /* group 3: immediate only for /0 and /1 */
	X = 128, /* not an instruction in 64-bit mode */
};

/* Sixteen opcodes per line, like the maps in the SDM. */
/* clang-format off */
static const uint8_t map_one[256] = {
#define ALU M, M, M, M, B, Z, X, X
	ALU, ALU, ALU, ALU, ALU, ALU, ALU, ALU,
#undef ALU
	/* 40 */ X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
	/* 50 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 60 */ X, X, X, M, X, X, X, X, Z, M | Z, B, M | B, 0, 0, 0, 0,
	/* 70 */ B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
	/* 80 */ M | B, M | Z, X, M | B, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, X, 0, 0, 0, 0, 0,
	/* a0 */ O, O, O, O, 0, 0, 0, 0, B, Z, 0, 0, 0, 0, 0, 0,
	/* b0 */ B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
	/* c0 */ M | B, M | B, W, 0, X, X, M | B, M | Z, W | B, 0, W, 0, 0, B, X, 0,
	/* d0 */ M, M, M, M, X, X, X, 0, M, M, M, M, M, M, M, M,
	/* e0 */ B, B, B, B, B, B, B, B, Z, Z, X, B, 0, 0, 0, 0,
	/* f0 */ X, 0, X, X, 0, 0, M | B | G, M | Z | G, 0, 0, 0, 0, 0, 0, M, M,
};
/* clang-format on */

/* Sixteen opcodes per line, like the maps in the SDM. */
/* clang-format off */
static const uint8_t map_two[256] = {
	/* 00 */ M, M, M, M, X, 0, 0, 0, 0, 0, X, 0, X, M, 0, M | B,
	/* 10 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 20 */ M, M, M, M, X, X, X, X, M, M, M, M, M, M, M, M,
	/* 30 */ 0, 0, 0, 0, 0, 0, X, 0, X, X, X, X, X, X, X, X,
	/* 40 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 50 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 60 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 70 */ M | B, M | B, M | B, M | B, M, M, M, 0, M, M, M, M, M, M, M, M,
	/* 80 */ Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z,
	/* 90 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* a0 */ 0, 0, 0, M, M | B, M, M, M, 0, 0, 0, M, M | B, M, M, M,
	/* b0 */ M, M, M, M, M, M, M, M, M, M, M | B, M, M, M, M, M,
	/* c0 */ M, M, M | B, M, M | B, M | B, M | B, M, 0, 0, 0, 0, 0, 0, 0, 0,
	/* d0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* e0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* f0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
};
/* clang-format on */

struct insn_bytes {
	const uint8_t *p;
	unsigned int pos, avail; /* avail <= INSN_MAX_LEN */
};

static bool insn_next(struct insn_bytes *b, uint8_t *v)
{
	if (b->pos >= b->avail)
		return false;
	*v = b->p[b->pos++];
	return true;
}

static int32_t le32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The parts of one instruction that the classification uses. */
struct insn_parts {
	unsigned int map; /* 1: one byte, 2: 0f, 3: 0f 38, 4: 0f 3a, 5: VEX or EVEX */
	uint8_t op, rex, modrm;
	bool has_modrm, opsize, addrsize, rep;
	unsigned int disp_len, imm_len, imm_pos, modrm_pos;
};

/* Skips SIB and the displacement bytes after ModRM. */
static bool skip_modrm(struct insn_bytes *b, struct insn_parts *x)
{
	uint8_t sib = 0, mod;

	x->modrm_pos = b->pos;
	if (!insn_next(b, &x->modrm))
		return false;
	x->has_modrm = true;
	mod = x->modrm >> 6;
	/* mov to and from control and debug registers ignore mod (SDM vol. 2, MOV) */
	if (mod == 3 || (x->map == 2 && x->op >= 0x20 && x->op <= 0x23))
		return true;
	if ((x->modrm & 7) == 4 && !insn_next(b, &sib))
		return false;
	if (mod == 1)
		x->disp_len = 1;
	else if (mod == 2 || (x->modrm & 7) == 5 || ((x->modrm & 7) == 4 && (sib & 7) == 5))
		x->disp_len = 4;
	b->pos += x->disp_len;
	return b->pos <= b->avail;
}

static unsigned int imm_len(const struct insn_parts *x, unsigned int f)
{
	unsigned int n = 0;

	if ((f & G) && (x->modrm & 0x30))
		return 0;
	if (f & B)
		n += 1;
	if (f & W)
		n += 2;
	/* REX.W overrides the operand size prefix. */
	if (f & Z)
		n += x->opsize && !(x->rex & 8) ? 2 : 4;
	if (f & V)
		n += (x->rex & 8) ? 8 : x->opsize ? 2 : 4;
	if (f & O)
		n += x->addrsize ? 4 : 8;
	return n;
}

static bool split_vex(struct insn_bytes *b, struct insn_parts *x, unsigned int *f)
{
	uint8_t first = x->op, v, map = 1;

	x->map = 5;
	if (!insn_next(b, &v))
		return false;
	if (first == 0xc4)
		map = v & 0x1f;
	else if (first == 0x62)
		map = v & 7;
	for (unsigned int more = first == 0xc5 ? 0 : first == 0xc4 ? 1 : 2; more; more--)
		if (!insn_next(b, &v))
			return false;
	if (!insn_next(b, &x->op))
		return false;
	switch (map) {
	case 1:
		*f = map_two[x->op];
		if (*f & Z) /* mask register operations are where map 0f has its jumps */
			*f = M;
		return true;
	case 2:
	case 5:
	case 6:
		*f = M;
		return true;
	case 3:
		*f = M | B;
		return true;
	default:
		return false;
	}
}

static bool insn_split(struct insn_bytes *b, struct insn_parts *x)
{
	unsigned int f;
	uint8_t v;

	for (;;) {
		if (!insn_next(b, &v))
			return false;
		if (v == 0x66)
			x->opsize = true;
		else if (v == 0x67)
			x->addrsize = true;
		else if (v == 0xf2 || v == 0xf3)
			x->rep = true;
		else if (v != 0x2e && v != 0x36 && v != 0x3e && v != 0x26 && v != 0x64 &&
			 v != 0x65 && v != 0xf0)
			break;
	}
	if ((v & 0xf0) == 0x40) {
		x->rex = v;
		if (!insn_next(b, &v))
			return false;
	}
	x->map = 1;
	x->op = v;
	if (v == 0x0f) {
		if (!insn_next(b, &x->op))
			return false;
		x->map = 2;
		f = map_two[x->op];
		if (x->op == 0x38 || x->op == 0x3a) {
			x->map = x->op == 0x38 ? 3 : 4;
			f = x->op == 0x38 ? M : M | B;
			if (!insn_next(b, &x->op))
				return false;
		}
	} else if (v == 0xc4 || v == 0xc5 || v == 0x62) {
		if (!split_vex(b, x, &f))
			return false;
	} else {
		f = map_one[v];
	}
	if (f & X)
		return false;
	if ((f & M) && !skip_modrm(b, x))
		return false;
	/* Near branches have 32-bit displacements, regardless of the operand size prefix. */
	if ((x->map == 1 && (v == 0xe8 || v == 0xe9)) || (x->map == 2 && (x->op & 0xf0) == 0x80))
		x->opsize = false;
	x->imm_pos = b->pos;
	x->imm_len = imm_len(x, f);
	b->pos += x->imm_len;
	return b->pos <= b->avail;
}

/* Return register numbers of ModRM with REX; rm is a register only if mod is 3. */
static unsigned int modrm_reg(const struct insn_parts *x)
{
	return ((x->modrm >> 3) & 7) | ((x->rex & 4) << 1);
}

static unsigned int modrm_rm(const struct insn_parts *x)
{
	return (x->modrm & 7) | ((x->rex & 1) << 3);
}

enum { RSP = 4, RBP = 5, R10 = 10 };

static void rsp_add(struct insn *i, int64_t v)
{
	i->kind = INSN_RSP_ADD;
	i->value = v;
}

/* Classifies a mov between registers. */
static void classify_mov(struct insn *i, const struct insn_parts *x, unsigned int dst,
			 unsigned int src)
{
	bool wide = x->rex & 8;

	if (dst == RBP && src == RSP && wide)
		i->kind = INSN_MOV_RSP_RBP;
	else if (dst == RSP)
		i->kind = src == RBP && wide ? INSN_RSP_FROM_RBP : INSN_RSP_LOST;
}

static void classify_lea(struct insn *i, const struct insn_parts *x, const uint8_t *p)
{
	uint8_t mod = x->modrm >> 6, sib = 0;
	unsigned int at = x->modrm_pos + 1;
	bool has_sib = mod != 3 && (x->modrm & 7) == 4; /* otherwise nothing may follow ModRM */
	int64_t disp = 0;

	if (has_sib)
		sib = p[at];
	if (modrm_reg(x) == R10 && (x->rex & 8) && mod == 1 && has_sib && sib == 0x24) {
		i->kind = INSN_R10_FROM_RSP;
		i->value = (int8_t)p[at + 1];
		return;
	}
	if (modrm_reg(x) != RSP)
		return;
	i->kind = INSN_RSP_LOST;
	if (!(x->rex & 8) || mod == 3 || mod == 0)
		return;
	if ((x->modrm & 7) == 4) {
		at++;
		if (sib != 0x24 || (x->rex & 3)) /* only plain (%rsp) is supported */
			return;
	}
	disp = mod == 1 ? (int8_t)p[at] : le32(p + at);
	if ((x->modrm & 7) == 4)
		rsp_add(i, disp);
	else if (modrm_rm(x) == RBP)
		i->kind = INSN_RSP_FROM_RBP;
	else if (modrm_rm(x) == R10 && disp == -8)
		i->kind = INSN_RSP_FROM_R10;
}

/* The effect of an opcode of the one-byte map on rsp, rbp and the control flow. */
enum rule {
	RULE_NONE,
	RULE_ARITHMETIC, /* add, sub and so on: half of them write a register */
	RULE_PUSH_REG,
	RULE_POP_REG,
	RULE_PUSH,
	RULE_POP,
	RULE_POP_RM,
	RULE_TO_REG, /* writes the register of ModRM */
	RULE_TO_RM,  /* writes ModRM's r/m operand, a register or memory */
	RULE_ADD_IMM,
	RULE_XCHG,
	RULE_XCHG_RSP, /* exchanges or moves to rsp, or r12 with REX.B */
	RULE_ENTER,
	RULE_MOV_TO_RM,
	RULE_MOV_TO_REG,
	RULE_LEA,
	RULE_JCC_8,
	RULE_JMP_8,
	RULE_JMP_32,
	RULE_CALL,
	RULE_RET,
	RULE_IRET,
	RULE_LEAVE,
	RULE_TRAP,
	RULE_GROUP_5 /* inc, dec, call, jmp, push */
};

/* SDM vol. 2, table A-2. */
static const uint8_t rule_one[256] = {
	[0x00 ... 0x03] = RULE_ARITHMETIC,
	[0x08 ... 0x0b] = RULE_ARITHMETIC,
	[0x10 ... 0x13] = RULE_ARITHMETIC,
	[0x18 ... 0x1b] = RULE_ARITHMETIC,
	[0x20 ... 0x23] = RULE_ARITHMETIC,
	[0x28 ... 0x2b] = RULE_ARITHMETIC,
	[0x30 ... 0x33] = RULE_ARITHMETIC,
	[0x50 ... 0x57] = RULE_PUSH_REG,
	[0x58 ... 0x5f] = RULE_POP_REG,
	[0x63] = RULE_TO_REG,
	[0x68] = RULE_PUSH,
	[0x69] = RULE_TO_REG,
	[0x6a] = RULE_PUSH,
	[0x6b] = RULE_TO_REG,
	[0x70 ... 0x7f] = RULE_JCC_8,
	[0x81] = RULE_ADD_IMM,
	[0x83] = RULE_ADD_IMM,
	[0x87] = RULE_XCHG,
	[0x89] = RULE_MOV_TO_RM,
	[0x8b] = RULE_MOV_TO_REG,
	[0x8d] = RULE_LEA,
	[0x8f] = RULE_POP_RM,
	[0x94] = RULE_XCHG_RSP,
	[0x9c] = RULE_PUSH,
	[0x9d] = RULE_POP,
	[0xbc] = RULE_XCHG_RSP,
	[0xc1] = RULE_TO_RM,
	[0xc2 ... 0xc3] = RULE_RET,
	[0xc7] = RULE_TO_RM,
	[0xc8] = RULE_ENTER,
	[0xc9] = RULE_LEAVE,
	[0xca ... 0xcc] = RULE_TRAP,
	[0xcf] = RULE_IRET,
	[0xd1] = RULE_TO_RM,
	[0xd3] = RULE_TO_RM,
	[0xe0 ... 0xe3] = RULE_JCC_8,
	[0xe8] = RULE_CALL,
	[0xe9] = RULE_JMP_32,
	[0xeb] = RULE_JMP_8,
	[0xf4] = RULE_TRAP,
	[0xf7] = RULE_TO_RM,
	[0xff] = RULE_GROUP_5,
};

static bool rm_is_rsp(const struct insn_parts *x)
{
	return x->modrm >> 6 == 3 && modrm_rm(x) == RSP;
}

static void lost_if(struct insn *i, bool lost)
{
	if (lost)
		i->kind = INSN_RSP_LOST;
}

static void branch(struct insn *i, enum insn_kind kind, uint64_t end, int64_t distance)
{
	i->kind = kind;
	i->value = (int64_t)(end + (uint64_t)distance);
}

static void classify_push_pop(struct insn *i, const struct insn_parts *x, bool push)
{
	unsigned int r = (x->op & 7) | ((x->rex & 1) << 3);

	if (x->opsize || (r == RSP && !push))
		i->kind = INSN_RSP_LOST;
	else if (r == RBP)
		i->kind = push ? INSN_PUSH_RBP : INSN_POP_RBP;
	else
		rsp_add(i, push ? -8 : 8);
}

static void classify_add(struct insn *i, const struct insn_parts *x, const uint8_t *imm)
{
	uint8_t sub = (x->modrm >> 3) & 7;
	int64_t v;

	if (!rm_is_rsp(x) || sub == 7)
		return;
	i->kind = INSN_RSP_LOST;
	if (!(x->rex & 8) || (sub != 0 && sub != 5))
		return;
	v = x->op == 0x83 ? (int8_t)imm[0] : le32(imm);
	rsp_add(i, sub ? -v : v);
}

static void classify_group_5(struct insn *i, const struct insn_parts *x, const uint8_t *p)
{
	uint8_t mod = x->modrm >> 6, sub = (x->modrm >> 3) & 7;

	if (sub == 2 || sub == 3)
		i->kind = INSN_CALL_IND;
	else if (sub == 4 || sub == 5)
		i->kind = INSN_JMP_IND;
	else if (sub == 6)
		rsp_add(i, -8);
	else
		lost_if(i, sub < 2 && rm_is_rsp(x));
	if (sub == 6 && mod == 3 && modrm_rm(x) == RBP)
		i->kind = INSN_PUSH_RBP;
	if (sub == 6 && mod == 1 && modrm_rm(x) == R10 && p[x->modrm_pos + 1] == 0xf8)
		i->kind = INSN_PUSH_R10_M8;
}

/* Classifies instructions that change rsp. */
static void classify_stack(struct insn *i, const struct insn_parts *x, enum rule rule,
			   const uint8_t *p)
{
	bool is_register = x->modrm >> 6 == 3;

	switch (rule) {
	case RULE_ARITHMETIC:
		lost_if(i, (x->op & 1) && ((x->op & 2) ? modrm_reg(x) == RSP : rm_is_rsp(x)));
		break;
	case RULE_PUSH_REG:
	case RULE_POP_REG:
		classify_push_pop(i, x, rule == RULE_PUSH_REG);
		break;
	case RULE_PUSH:
	case RULE_POP:
		rsp_add(i, rule == RULE_PUSH ? -8 : 8);
		break;
	case RULE_POP_RM:
		rsp_add(i, 8);
		if (is_register && modrm_rm(x) == RBP)
			i->kind = INSN_POP_RBP;
		lost_if(i, rm_is_rsp(x));
		break;
	case RULE_TO_REG:
		lost_if(i, modrm_reg(x) == RSP);
		break;
	case RULE_TO_RM:
		lost_if(i, rm_is_rsp(x));
		break;
	case RULE_XCHG:
		lost_if(i, rm_is_rsp(x) || modrm_reg(x) == RSP);
		break;
	case RULE_XCHG_RSP:
		lost_if(i, !(x->rex & 1));
		break;
	case RULE_ADD_IMM:
		classify_add(i, x, p + x->imm_pos);
		break;
	case RULE_MOV_TO_RM:
		if (is_register)
			classify_mov(i, x, modrm_rm(x), modrm_reg(x));
		break;
	case RULE_MOV_TO_REG:
		if (is_register)
			classify_mov(i, x, modrm_reg(x), modrm_rm(x));
		else
			lost_if(i, modrm_reg(x) == RSP);
		break;
	default:
		break;
	}
}

static void classify_one(struct insn *i, const struct insn_parts *x, const uint8_t *p, uint64_t end)
{
	const uint8_t *imm = p + x->imm_pos;
	enum rule rule = rule_one[x->op];

	switch (rule) {
	case RULE_JCC_8:
		branch(i, INSN_JCC, end, (int8_t)imm[0]);
		break;
	case RULE_JMP_8:
		branch(i, INSN_JMP, end, (int8_t)imm[0]);
		break;
	case RULE_JMP_32:
		branch(i, INSN_JMP, end, le32(imm));
		break;
	case RULE_CALL:
		branch(i, INSN_CALL, end, le32(imm));
		break;
	case RULE_RET:
		i->kind = INSN_RET;
		break;
	case RULE_IRET:
		i->kind = (x->rex & 8) ? INSN_IRET : INSN_TRAP;
		break;
	case RULE_LEAVE:
		i->kind = INSN_LEAVE;
		break;
	case RULE_TRAP:
		i->kind = INSN_TRAP;
		break;
	case RULE_ENTER:
		i->kind = INSN_RSP_LOST;
		break;
	case RULE_LEA:
		classify_lea(i, x, p);
		break;
	case RULE_GROUP_5:
		classify_group_5(i, x, p);
		break;
	default:
		classify_stack(i, x, rule, p);
		break;
	}
}

static void classify_two(struct insn *i, const struct insn_parts *x, const uint8_t *p, uint64_t end)
{
	uint8_t op = x->op;

	if ((op & 0xf0) == 0x80) {
		i->kind = INSN_JCC;
		i->value = (int64_t)(end + (uint64_t)(int64_t)le32(p + x->imm_pos));
	} else if (op == 0x07 || op == 0x0b || op == 0x34 || op == 0x35 || op == 0xff ||
		   op == 0xb9) {
		i->kind = INSN_TRAP;
	} else if (op == 0xa0 || op == 0xa8) {
		rsp_add(i, -8);
	} else if (op == 0xa1 || op == 0xa9) {
		rsp_add(i, 8);
	} else if ((op & 0xf0) == 0x40 || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xb8 ||
		   (op >= 0xbc && op <= 0xbf)) {
		/* cmov, imul, movzx, movsx, bit counts: to reg. (A byte source "rsp" is %ah.) */
		if (modrm_reg(x) == RSP)
			i->kind = INSN_RSP_LOST;
	} else if (op == 0xa4 || op == 0xa5 || op == 0xab || op == 0xac || op == 0xad ||
		   op == 0xb1 || op == 0xb3 || op == 0xba || op == 0xbb || op == 0xc1) {
		/* shifts, bit tests, exchanges: to rm, xadd to both */
		if (((x->modrm >> 6) == 3 && modrm_rm(x) == RSP) ||
		    (op == 0xc1 && modrm_reg(x) == RSP))
			i->kind = INSN_RSP_LOST;
	}
}

bool insn_decode(struct insn *i, uint64_t va, const uint8_t *p, size_t avail)
{
	struct insn_bytes b = { .p = p,
				.avail =
					avail < INSN_MAX_LEN ? (unsigned int)avail : INSN_MAX_LEN };
	struct insn_parts x = { 0 };

	if (!insn_split(&b, &x))
		return false;
	i->len = (uint8_t)b.pos;
	i->kind = INSN_OTHER;
	i->value = 0;
	if (x.map == 1)
		classify_one(i, &x, p, va + b.pos);
	else if (x.map == 2)
		classify_two(i, &x, p, va + b.pos);
	return true;
}

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

bool insn_is_fentry(const uint8_t *p, size_t avail, uint64_t off)
{
	return off == 0 || (off == 4 && avail >= 4 && !memcmp(p, endbr64, 4));
}

unsigned int insn_standard_prologue(const uint8_t *p, size_t avail)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	size_t at = 0;

	if (avail >= 4 && !memcmp(p, endbr64, 4))
		at = 4;
	if (avail >= at + 5 && (p[at] == 0xe8 || !memcmp(p + at, nop5, 5)))
		at += 5;
	if (avail < at + 4 || p[at] != 0x55 || p[at + 1] != 0x48)
		return 0;
	if ((p[at + 2] == 0x89 && p[at + 3] == 0xe5) || (p[at + 2] == 0x8b && p[at + 3] == 0xec))
		return (unsigned int)at + 1;
	return 0;
}

/* Returns the length of an indirect near call at p, or 0. */
static size_t indirect_call_len(const uint8_t *p, size_t n)
{
	size_t at = 0;
	uint8_t modrm, mod;

	while (at < n && (p[at] == 0x2e || p[at] == 0x3e || p[at] == 0x64 || p[at] == 0x65))
		at++;
	if (at < n && (p[at] & 0xf0) == 0x40)
		at++;
	if (at + 2 > n || p[at] != 0xff || ((p[at + 1] >> 3) & 7) != 2)
		return 0;
	modrm = p[at + 1];
	mod = modrm >> 6;
	at += 2;
	if (mod == 3)
		return at;
	if ((modrm & 7) == 4) {
		if (at >= n)
			return 0;
		if (mod == 0 && (p[at] & 7) == 5)
			mod = 2;
		at++;
	} else if (mod == 0 && (modrm & 7) == 5) {
		mod = 2;
	}
	return at + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool insn_call_before(uint64_t end_va, const uint8_t *p, size_t n, uint64_t *target)
{
	*target = 0;
	if (n >= 5 && p[n - 5] == 0xe8) {
		*target = end_va + (uint64_t)(int64_t)le32(p + n - 4);
		return true;
	}
	for (size_t k = 2; k <= n && k <= 8; k++)
		if (indirect_call_len(p + n - k, k) == k)
			return true;
	return false;
}

bool insn_prologue32(const uint8_t *p, size_t avail, unsigned int *push, unsigned int *mov)
{
	unsigned int n = avail < INSN_PROLOGUE32_MAX ? (unsigned int)avail : INSN_PROLOGUE32_MAX;
	unsigned int at = 0;

	while (at < n && p[at] != 0x55)
		at++;
	*push = at;
	for (at++; at + 2 <= n; at++) {
		if ((p[at] == 0x89 && p[at + 1] == 0xe5) || (p[at] == 0x8b && p[at + 1] == 0xec)) {
			*mov = at;
			return true;
		}
	}
	return false;
}
