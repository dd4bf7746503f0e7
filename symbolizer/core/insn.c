/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/insn.h"

#include <string.h>

/* What follows an opcode byte. */
enum {
	M = 1,	 /* ModRM */
	B = 2,	 /* 1 immediate byte */
	Z = 4,	 /* 4 immediate bytes, 2 with an operand size prefix */
	W = 8,	 /* 2 immediate bytes */
	V = 16,	 /* as Z, but 8 with REX.W (mov imm64) */
	O = 32,	 /* a memory offset of the address size (8 or 4) */
	G = 64,	 /* group 3: immediate only for /0 and /1 */
	X = 128, /* not an instruction in 64-bit mode */
};

/* Sixteen opcodes a line, as the maps of the SDM have them. */
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

/* Sixteen opcodes a line, as the maps of the SDM have them. */
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

struct bytes {
	const uint8_t *p;
	unsigned int pos, avail; /* avail <= INSN_MAX_LEN */
};

static bool next(struct bytes *b, uint8_t *v)
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

/* The parts of one instruction that classification looks at. */
struct parts {
	unsigned int map; /* 1: one byte, 2: 0f, 3: 0f 38, 4: 0f 3a, 5: VEX or EVEX */
	uint8_t op, rex, modrm;
	bool has_modrm, opsize, addrsize, rep;
	unsigned int disp_len, imm_len, imm_pos, modrm_pos;
};

/* Displacement bytes after ModRM, and SIB, are skipped. */
static bool skip_modrm(struct bytes *b, struct parts *x)
{
	uint8_t sib = 0, mod;

	x->modrm_pos = b->pos;
	if (!next(b, &x->modrm))
		return false;
	x->has_modrm = true;
	mod = x->modrm >> 6;
	/* mov to and from control and debug registers ignore mod (SDM vol. 2, MOV) */
	if (mod == 3 || (x->map == 2 && x->op >= 0x20 && x->op <= 0x23))
		return true;
	if ((x->modrm & 7) == 4 && !next(b, &sib))
		return false;
	if (mod == 1)
		x->disp_len = 1;
	else if (mod == 2 || (x->modrm & 7) == 5 || ((x->modrm & 7) == 4 && (sib & 7) == 5))
		x->disp_len = 4;
	b->pos += x->disp_len;
	return b->pos <= b->avail;
}

static unsigned int imm_len(const struct parts *x, unsigned int f)
{
	unsigned int n = 0;

	if ((f & G) && (x->modrm & 0x30))
		return 0;
	if (f & B)
		n += 1;
	if (f & W)
		n += 2;
	/* REX.W overrules the operand size prefix. */
	if (f & Z)
		n += x->opsize && !(x->rex & 8) ? 2 : 4;
	if (f & V)
		n += (x->rex & 8) ? 8 : x->opsize ? 2 : 4;
	if (f & O)
		n += x->addrsize ? 4 : 8;
	return n;
}

static bool split_vex(struct bytes *b, struct parts *x, unsigned int *f)
{
	uint8_t first = x->op, v, map = 1;

	x->map = 5;
	if (!next(b, &v))
		return false;
	if (first == 0xc4)
		map = v & 0x1f;
	else if (first == 0x62)
		map = v & 7;
	for (unsigned int more = first == 0xc5 ? 0 : first == 0xc4 ? 1 : 2; more; more--)
		if (!next(b, &v))
			return false;
	if (!next(b, &x->op))
		return false;
	switch (map) {
	case 1:
		*f = map_two[x->op];
		if (*f & Z) /* mask register operations sit where 0f has its jumps */
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

static bool split(struct bytes *b, struct parts *x)
{
	unsigned int f;
	uint8_t v;

	for (;;) {
		if (!next(b, &v))
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
		if (!next(b, &v))
			return false;
	}
	x->map = 1;
	x->op = v;
	if (v == 0x0f) {
		if (!next(b, &x->op))
			return false;
		x->map = 2;
		f = map_two[x->op];
		if (x->op == 0x38 || x->op == 0x3a) {
			x->map = x->op == 0x38 ? 3 : 4;
			f = x->op == 0x38 ? M : M | B;
			if (!next(b, &x->op))
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
	/* Near branches have 32-bit displacements whatever the operand size prefix says. */
	if ((x->map == 1 && (v == 0xe8 || v == 0xe9)) || (x->map == 2 && (x->op & 0xf0) == 0x80))
		x->opsize = false;
	x->imm_pos = b->pos;
	x->imm_len = imm_len(x, f);
	b->pos += x->imm_len;
	return b->pos <= b->avail;
}

/* Register numbers of ModRM with REX; rm only means a register when mod is 3. */
static unsigned int modrm_reg(const struct parts *x)
{
	return ((x->modrm >> 3) & 7) | ((x->rex & 4) << 1);
}

static unsigned int modrm_rm(const struct parts *x)
{
	return (x->modrm & 7) | ((x->rex & 1) << 3);
}

enum { RSP = 4, RBP = 5, R10 = 10 };

static void rsp_add(struct insn *i, int64_t v)
{
	i->kind = INSN_RSP_ADD;
	i->value = v;
}

/* A mov between registers, destination and source. */
static void classify_mov(struct insn *i, const struct parts *x, unsigned int dst, unsigned int src)
{
	bool wide = x->rex & 8;

	if (dst == RBP && src == RSP && wide)
		i->kind = INSN_MOV_RSP_RBP;
	else if (dst == RSP)
		i->kind = src == RBP && wide ? INSN_RSP_FROM_RBP : INSN_RSP_LOST;
}

static void classify_lea(struct insn *i, const struct parts *x, const uint8_t *p)
{
	uint8_t mod = x->modrm >> 6, sib = p[x->modrm_pos + 1];
	unsigned int at = x->modrm_pos + 1;
	int64_t disp = 0;

	if (modrm_reg(x) == R10 && (x->rex & 8) && mod == 1 && (x->modrm & 7) == 4 && sib == 0x24) {
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
		if (sib != 0x24 || (x->rex & 3)) /* anything but plain (%rsp) */
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

static void classify_one(struct insn *i, const struct parts *x, const uint8_t *p, uint64_t end)
{
	const uint8_t *imm = p + x->imm_pos;
	uint8_t op = x->op, mod = x->modrm >> 6, sub = (x->modrm >> 3) & 7;
	unsigned int r;

	if (op >= 0x50 && op <= 0x5f) {
		r = (op & 7) | ((x->rex & 1) << 3);
		if (x->opsize)
			i->kind = INSN_RSP_LOST;
		else if (r == RBP)
			i->kind = op < 0x58 ? INSN_PUSH_RBP : INSN_POP_RBP;
		else if (r == RSP && op >= 0x58)
			i->kind = INSN_RSP_LOST;
		else
			rsp_add(i, op < 0x58 ? -8 : 8);
		return;
	}
	if (op < 0x38 && (op & 7) < 4) {
		/* add, sub and so on: a register is the target of half of them */
		r = (op & 2) ? modrm_reg(x) : mod == 3 ? modrm_rm(x) : RBP;
		if (r == RSP && (op & 1))
			i->kind = INSN_RSP_LOST;
		return;
	}
	if (op >= 0x70 && op <= 0x7f) {
		i->kind = INSN_JCC;
		i->value = (int64_t)(end + (uint64_t)(int64_t)(int8_t)imm[0]);
		return;
	}
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
		if (modrm_reg(x) == RSP)
			i->kind = INSN_RSP_LOST;
		break;
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
	case 0xf7:
		if (mod == 3 && modrm_rm(x) == RSP)
			i->kind = INSN_RSP_LOST;
		break;
	case 0x68:
	case 0x6a:
		rsp_add(i, -8);
		break;
	case 0x81:
	case 0x83:
		if (mod != 3 || modrm_rm(x) != RSP || sub == 7)
			break;
		i->kind = INSN_RSP_LOST;
		if ((x->rex & 8) && (sub == 0 || sub == 5)) {
			int64_t v = op == 0x83 ? (int8_t)imm[0] : le32(imm);

			rsp_add(i, sub ? -v : v);
		}
		break;
	case 0x87:
		if ((mod == 3 && modrm_rm(x) == RSP) || modrm_reg(x) == RSP)
			i->kind = INSN_RSP_LOST;
		break;
	case 0x89:
		if (mod == 3)
			classify_mov(i, x, modrm_rm(x), modrm_reg(x));
		break;
	case 0x8b:
		if (mod == 3)
			classify_mov(i, x, modrm_reg(x), modrm_rm(x));
		else if (modrm_reg(x) == RSP)
			i->kind = INSN_RSP_LOST;
		break;
	case 0x8d:
		classify_lea(i, x, p);
		break;
	case 0x8f:
		rsp_add(i, 8);
		if (mod == 3 && modrm_rm(x) == RBP)
			i->kind = INSN_POP_RBP;
		else if (mod == 3 && modrm_rm(x) == RSP)
			i->kind = INSN_RSP_LOST;
		break;
	case 0x94:
		if (!(x->rex & 1))
			i->kind = INSN_RSP_LOST;
		break;
	case 0x9c:
		rsp_add(i, -8);
		break;
	case 0x9d:
		rsp_add(i, 8);
		break;
	case 0xbc:
	case 0xc8:
		if (op == 0xc8 || !(x->rex & 1))
			i->kind = INSN_RSP_LOST;
		break;
	case 0xc2:
	case 0xc3:
		i->kind = INSN_RET;
		break;
	case 0xc9:
		i->kind = INSN_LEAVE;
		break;
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xf4:
		i->kind = INSN_TRAP;
		break;
	case 0xcf:
		i->kind = (x->rex & 8) ? INSN_IRET : INSN_TRAP;
		break;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		i->kind = INSN_JCC;
		i->value = (int64_t)(end + (uint64_t)(int64_t)(int8_t)imm[0]);
		break;
	case 0xe8:
	case 0xe9:
		i->kind = op == 0xe8 ? INSN_CALL : INSN_JMP;
		i->value = (int64_t)(end + (uint64_t)(int64_t)le32(imm));
		break;
	case 0xeb:
		i->kind = INSN_JMP;
		i->value = (int64_t)(end + (uint64_t)(int64_t)(int8_t)imm[0]);
		break;
	case 0xff:
		if (sub == 2 || sub == 3)
			i->kind = INSN_CALL_IND;
		else if (sub == 4 || sub == 5)
			i->kind = INSN_JMP_IND;
		else if (sub == 6)
			rsp_add(i, -8);
		else if (sub < 2 && mod == 3 && modrm_rm(x) == RSP)
			i->kind = INSN_RSP_LOST;
		if (sub == 6 && mod == 3 && modrm_rm(x) == RBP)
			i->kind = INSN_PUSH_RBP;
		if (sub == 6 && mod == 1 && modrm_rm(x) == R10 && p[x->modrm_pos + 1] == 0xf8)
			i->kind = INSN_PUSH_R10_M8;
		break;
	default:
		break;
	}
}

static void classify_two(struct insn *i, const struct parts *x, const uint8_t *p, uint64_t end)
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
	struct bytes b = { .p = p,
			   .avail = avail < INSN_MAX_LEN ? (unsigned int)avail : INSN_MAX_LEN };
	struct parts x = { 0 };

	if (!split(&b, &x))
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

/* Length of an indirect near call at p, or 0. */
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
