/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/simd_form.h"

#include <errno.h>
#include <string.h>

enum { PP_NONE, PP_66, PP_F3, PP_F2 }; /* as VEX.pp numbers them */
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A };

#define REX_B 1u
#define REX_X 2u
#define REX_R 4u

#define GPR_RBX 3u
#define GPR_RSI 6u

/* Where the instruction's parts are. */
struct parts {
	const uint8_t *b;
	size_t n, at; /* at: the next byte */
	bool op16, vex;
	uint8_t rep; /* F2 or F3, 0: none */
	uint8_t rex;
	uint8_t vex_byte[3]; /* C4 with its two bytes, or C5 with its one */
	unsigned int vex_len;
	unsigned int map, pp;
	uint8_t opcode;
};

struct range {
	uint8_t map, pp, first, last;
};

/* Without a mandatory prefix most of map 0F works on MMX registers. */
static const struct range legacy[] = {
	{ MAP_0F, PP_NONE, 0x10, 0x17 },   { MAP_0F, PP_NONE, 0x28, 0x29 },
	{ MAP_0F, PP_NONE, 0x2b, 0x2b },   { MAP_0F, PP_NONE, 0x2e, 0x2f },
	{ MAP_0F, PP_NONE, 0x50, 0x5f },   { MAP_0F, PP_NONE, 0xc2, 0xc2 },
	{ MAP_0F, PP_NONE, 0xc6, 0xc6 },   { MAP_0F, PP_66, 0x10, 0x17 },
	{ MAP_0F, PP_66, 0x28, 0x29 },	   { MAP_0F, PP_66, 0x2b, 0x2b },
	{ MAP_0F, PP_66, 0x2e, 0x2f },	   { MAP_0F, PP_66, 0x50, 0x76 },
	{ MAP_0F, PP_66, 0x7c, 0x7f },	   { MAP_0F, PP_66, 0xc2, 0xc2 },
	{ MAP_0F, PP_66, 0xc4, 0xc6 },	   { MAP_0F, PP_66, 0xd0, 0xf6 },
	{ MAP_0F, PP_66, 0xf8, 0xfe },	   { MAP_0F, PP_F3, 0x10, 0x12 },
	{ MAP_0F, PP_F3, 0x16, 0x16 },	   { MAP_0F, PP_F3, 0x2a, 0x2a },
	{ MAP_0F, PP_F3, 0x2c, 0x2d },	   { MAP_0F, PP_F3, 0x51, 0x53 },
	{ MAP_0F, PP_F3, 0x58, 0x5f },	   { MAP_0F, PP_F3, 0x6f, 0x70 },
	{ MAP_0F, PP_F3, 0x7e, 0x7f },	   { MAP_0F, PP_F3, 0xc2, 0xc2 },
	{ MAP_0F, PP_F3, 0xe6, 0xe6 },	   { MAP_0F, PP_F2, 0x10, 0x12 },
	{ MAP_0F, PP_F2, 0x2a, 0x2a },	   { MAP_0F, PP_F2, 0x2c, 0x2d },
	{ MAP_0F, PP_F2, 0x51, 0x51 },	   { MAP_0F, PP_F2, 0x58, 0x5f },
	{ MAP_0F, PP_F2, 0x70, 0x70 },	   { MAP_0F, PP_F2, 0x7c, 0x7d },
	{ MAP_0F, PP_F2, 0xc2, 0xc2 },	   { MAP_0F, PP_F2, 0xd0, 0xd0 },
	{ MAP_0F, PP_F2, 0xe6, 0xe6 },	   { MAP_0F, PP_F2, 0xf0, 0xf0 },
	{ MAP_0F38, PP_66, 0x00, 0x0b },   { MAP_0F38, PP_66, 0x10, 0x10 },
	{ MAP_0F38, PP_66, 0x14, 0x15 },   { MAP_0F38, PP_66, 0x17, 0x17 },
	{ MAP_0F38, PP_66, 0x1c, 0x1e },   { MAP_0F38, PP_66, 0x20, 0x25 },
	{ MAP_0F38, PP_66, 0x28, 0x2b },   { MAP_0F38, PP_66, 0x30, 0x41 },
	{ MAP_0F38, PP_NONE, 0xc8, 0xcd }, /* SHA */
	{ MAP_0F38, PP_66, 0xcf, 0xcf },   { MAP_0F38, PP_66, 0xdb, 0xdf },
	{ MAP_0F3A, PP_66, 0x08, 0x0f },   { MAP_0F3A, PP_66, 0x14, 0x17 },
	{ MAP_0F3A, PP_66, 0x20, 0x22 },   { MAP_0F3A, PP_66, 0x40, 0x42 },
	{ MAP_0F3A, PP_66, 0x44, 0x44 },   { MAP_0F3A, PP_66, 0x60, 0x63 },
	{ MAP_0F3A, PP_NONE, 0xcc, 0xcc }, /* SHA */
	{ MAP_0F3A, PP_66, 0xce, 0xcf },   { MAP_0F3A, PP_66, 0xdf, 0xdf },
};

/* What AVX has besides; all with pp 66. Gathers (90 to 93), AMX and BMI are in the gaps. */
static const struct range vex_only[] = {
	{ MAP_0F38, PP_66, 0x0c, 0x0f }, { MAP_0F38, PP_66, 0x13, 0x13 },
	{ MAP_0F38, PP_66, 0x16, 0x16 }, { MAP_0F38, PP_66, 0x18, 0x1a },
	{ MAP_0F38, PP_66, 0x2c, 0x2f }, { MAP_0F38, PP_66, 0x45, 0x47 },
	{ MAP_0F38, PP_66, 0x50, 0x53 }, { MAP_0F38, PP_66, 0x58, 0x5a },
	{ MAP_0F38, PP_66, 0x78, 0x79 }, { MAP_0F38, PP_66, 0x8c, 0x8c },
	{ MAP_0F38, PP_66, 0x8e, 0x8e }, { MAP_0F38, PP_66, 0x96, 0x9f },
	{ MAP_0F38, PP_66, 0xa6, 0xaf }, { MAP_0F38, PP_66, 0xb6, 0xbf },
	{ MAP_0F3A, PP_66, 0x00, 0x06 }, { MAP_0F3A, PP_66, 0x18, 0x19 },
	{ MAP_0F3A, PP_66, 0x1d, 0x1d }, { MAP_0F3A, PP_66, 0x38, 0x39 },
	{ MAP_0F3A, PP_66, 0x46, 0x46 }, { MAP_0F3A, PP_66, 0x4a, 0x4c },
};

static bool in_ranges(const struct parts *p, const struct range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].map == p->map && r[i].pp == p->pp && p->opcode >= r[i].first &&
		    p->opcode <= r[i].last)
			return true;
	return false;
}

static bool is_known(const struct parts *p)
{
	return in_ranges(p, legacy, sizeof(legacy) / sizeof(legacy[0])) ||
	       (p->vex && in_ranges(p, vex_only, sizeof(vex_only) / sizeof(vex_only[0])));
}

static bool has_immediate(const struct parts *p)
{
	return p->map == MAP_0F3A ||
	       (p->map == MAP_0F &&
		((p->opcode >= 0x70 && p->opcode <= 0x73) || p->opcode == 0xc2 ||
		 (p->opcode >= 0xc4 && p->opcode <= 0xc6)));
}

/* The next byte; 0 at the end, which `at` tells. */
static uint8_t simd_form_next(struct parts *p)
{
	return p->at < p->n ? p->b[p->at++] : (p->at = p->n + 1, 0);
}

static void parse_vex(struct parts *p, uint8_t first)
{
	uint8_t last;

	p->vex = true;
	p->vex_byte[p->vex_len++] = first;
	p->map = MAP_0F;
	if (first == 0xc4) {
		p->vex_byte[p->vex_len++] = simd_form_next(p);
		p->map = p->vex_byte[1] & 31;
		p->rex = ~p->vex_byte[1] >> 5 & 7; /* R, X and B are stored inverted */
	}
	last = simd_form_next(p);
	p->vex_byte[p->vex_len++] = last;
	if (first == 0xc5)
		p->rex = last & 0x80 ? 0 : REX_R;
	p->pp = last & 3;
	p->opcode = simd_form_next(p);
}

/* Up to the opcode. */
static int parse_opcode(struct parts *p)
{
	uint8_t c;

	for (;;) {
		c = simd_form_next(p);
		if (c == 0x66)
			p->op16 = true;
		else if ((c == 0xf2 || c == 0xf3) && (!p->rep || p->rep == c))
			p->rep = c;
		else if (c != 0x64 && c != 0x65 && c != 0x67 && c != 0x2e && c != 0x36 &&
			 c != 0x3e && c != 0x26)
			break;
	}
	if (c == 0xc4 || c == 0xc5) {
		if (p->op16 || p->rep)
			return -ENOTSUP;
		parse_vex(p, c);
		return 0;
	}
	if ((c & 0xf0) == 0x40) {
		p->rex = c;
		c = simd_form_next(p);
	}
	if (c != 0x0f)
		return -ENOTSUP;
	p->map = MAP_0F;
	p->opcode = simd_form_next(p);
	if (p->opcode == 0x38 || p->opcode == 0x3a) {
		p->map = p->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
		p->opcode = simd_form_next(p);
	}
	p->pp = p->rep == 0xf3 ? PP_F3 : p->rep == 0xf2 ? PP_F2 : p->op16 ? PP_66 : PP_NONE;
	return 0;
}

static void emit(struct simd_form *f, unsigned int byte)
{
	f->code[f->len++] = (uint8_t)byte;
}

/* The same opcode; where it has memory, REX.X and REX.B, which name its registers, are cleared. */
static void emit_opcode(const struct parts *p, struct simd_form *f)
{
	if (p->vex) {
		emit(f, p->vex_byte[0]);
		if (p->vex_len == 3)
			emit(f, p->vex_byte[1] | (f->memory ? (REX_X | REX_B) << 5 : 0));
		emit(f, p->vex_byte[p->vex_len - 1]);
		emit(f, p->opcode);
		return;
	}
	if (p->op16)
		emit(f, 0x66);
	if (p->rep)
		emit(f, p->rep);
	if (p->rex)
		emit(f, p->rex & (f->memory ? ~(REX_X | REX_B) : ~0u));
	emit(f, 0x0f);
	if (p->map != MAP_0F)
		emit(f, p->map == MAP_0F38 ? 0x38 : 0x3a);
	emit(f, p->opcode);
}

int simd_form_parse(const uint8_t *bytes, size_t n, struct simd_form *out)
{
	struct parts p = { .b = bytes, .n = n < SIMD_FORM_MAX ? n : SIMD_FORM_MAX };
	struct simd_form f = { 0 };
	unsigned int mod, rm, reg;
	uint8_t modrm, imm;

	if (parse_opcode(&p) < 0)
		return -ENOTSUP;
	/* VZEROUPPER and VZEROALL have no operands. */
	if (p.vex && p.map == MAP_0F && p.opcode == 0x77 && p.pp == PP_NONE && p.at <= p.n) {
		emit_opcode(&p, &f);
		f.source_len = (unsigned int)p.at;
		*out = f;
		return 0;
	}
	if (!is_known(&p))
		return -ENOTSUP;
	modrm = simd_form_next(&p);
	mod = modrm >> 6;
	rm = modrm & 7;
	reg = (modrm >> 3 & 7) | (p.rex & REX_R ? 8 : 0);
	if (mod != 3) {
		f.memory = true;
		f.base = reg == GPR_RBX ? GPR_RSI : GPR_RBX;
		if (rm == 4 && (simd_form_next(&p) & 7) == 5 && mod == 0)
			p.at += 4;
		p.at += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
	}
	emit_opcode(&p, &f);
	emit(&f, f.memory ? (modrm & 0x38u) | f.base : modrm);
	if (has_immediate(&p)) {
		imm = simd_form_next(&p);
		emit(&f, imm);
	}
	if (p.at > p.n)
		return -ENOTSUP;
	f.source_len = (unsigned int)p.at;
	*out = f;
	return 0;
}
