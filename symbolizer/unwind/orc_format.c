/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Determines the form of a table's entries: the layout of their type, and the register of each
 * number. Both are found from what the entries say and from the code that they describe, without
 * the kernel's version.
 */
#include "symbolizer/unwind/orc_format.h"

#include "base/cleanup.h"
#include "base/cursor.h"

#include <string.h>

#define ENTRY_BYTES 6u
/* A valid table has at most one odd entry in this many. */
#define ODD_SHARE 1000u
/* Bytes of code before an entry that are examined. */
#define BACK 24u
/*
 * Maximum number of examinations for each register number, and maximum distance of two entries
 * that belong together.
 */
#define MAX_LOOKS 4096u
#define MAX_PIECE 256u
/* Minimum number of places that must agree on a register that each function uses. */
#define MIN_VOTES 16u

#define NONE ORC_NO_REG

/*
 * Register numbers of known kernels: those of 4.14, and those of 7.1, which are in the processor's
 * order. They are used for tables without code to examine, and for registers that this kernel's
 * code uses too rarely.
 */
static const uint8_t known_regs[][ORC_NUMBERS] = {
	{ ORC_UNDEFINED_REG, ORC_PREV_SP, ORC_DX, ORC_DI, ORC_BP, ORC_SP, ORC_R10, ORC_R13,
	  ORC_BP_INDIRECT, ORC_SP_INDIRECT, NONE, NONE, NONE, NONE, NONE, NONE },
	{ ORC_UNDEFINED_REG, ORC_AX, ORC_DX, ORC_SP, ORC_BP, ORC_DI, ORC_R10, ORC_R13, ORC_PREV_SP,
	  ORC_SP_INDIRECT, ORC_BP_INDIRECT, NONE, NONE, NONE, NONE, NONE },
};
static const char *const known_names[] = { "4.14", "7.1" };

const char *orc_format_registers(const struct orc_format *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_regs); i++)
		if (!memcmp(f->reg, known_regs[i], ORC_NUMBERS))
			return known_names[i];
	return "found in the code";
}

/* -- evidence in the code --------------------------------------------------------- */

/* One entry as stored in the table. */
struct raw {
	uint64_t va;
	int16_t sp_offset, bp_offset;
	uint16_t flags;
};

static unsigned int raw_sp(const struct raw *r)
{
	return r->flags & 15;
}

static unsigned int raw_bp(const struct raw *r)
{
	return r->flags >> 4 & 15;
}

/* How often the code before an entry showed that a number stands for a register. */
struct evidence {
	uint32_t votes[ORC_NUMBERS][ORC_NUMBERS]; /* [enum orc_reg][number] */
	uint32_t looks[2][ORC_NUMBERS];
};

static bool ends_with(const uint8_t p[BACK], const char *bytes, size_t n)
{
	return !memcmp(p + BACK - n, bytes, n);
}

/*
 * Recognises lea value(%rsp),%reg (its first four bytes) and, up to some instructions later, and
 * $value,%rsp.
 */
static bool aligns_stack(const uint8_t p[BACK], const char *lea)
{
	return p[BACK - 4] == 0x48 && p[BACK - 3] == 0x83 && p[BACK - 2] == 0xe4 &&
	       memmem(p, BACK - 4, lea, 4);
}

/*
 * Recognises mov %reg,%rsp from a register other than rsp and rbp: a switch to a stack whose top
 * was loaded.
 */
static bool switches_stack(const uint8_t p[BACK])
{
	unsigned int reg = p[BACK - 1] >> 3 & 7;

	return (p[BACK - 3] & 0xfb) == 0x48 && p[BACK - 2] == 0x89 &&
	       (p[BACK - 1] & 0xc7) == 0xc4 && ((p[BACK - 3] & 4) || (reg != 4 && reg != 5));
}

/* Votes for mov %rsp,%reg anywhere in p: the stack's contents are relative to reg afterwards. */
static void vote_copies(struct evidence *v, const uint8_t p[BACK], unsigned int number)
{
	static const struct {
		uint8_t modrm, reg;
	} copy[] = { { 0xe0, ORC_AX }, { 0xe2, ORC_DX }, { 0xe7, ORC_DI } };

	for (unsigned int at = 0; at + 3 <= BACK; at++)
		for (unsigned int i = 0; i < ARRAY_SIZE(copy); i++)
			if (p[at] == 0x48 && p[at + 1] == 0x89 && p[at + 2] == copy[i].modrm)
				v->votes[copy[i].reg][number]++;
}

/* Votes by the code p before b, which is the entry after a. */
static void vote(struct evidence *v, const uint8_t p[BACK], const struct raw *a,
		 const struct raw *b)
{
	unsigned int was = raw_sp(a), is = raw_sp(b);

	if (is == was) {
		/* push %rbp: the caller's rbp is on the stack now, one word lower than before. */
		if (p[BACK - 1] == 0x55 && !raw_bp(a) && raw_bp(b) &&
		    b->sp_offset == a->sp_offset + 8 && b->bp_offset == -b->sp_offset) {
			v->votes[ORC_SP][is]++;
			v->votes[ORC_PREV_SP][raw_bp(b)]++;
		}
		return;
	}
	/* mov %rsp,%rbp after push %rbp and a return address */
	if (ends_with(p, "\x48\x89\xe5", 3) && b->sp_offset == 16)
		v->votes[ORC_BP][is]++;
	/*
	 * lea value(%rsp),%r10 or %r13; and $-32,%rsp: the frame is relative to that register
	 * then,
	 */
	else if (aligns_stack(p, "\x4c\x8d\x54\x24") && b->sp_offset == 0)
		v->votes[ORC_R10][is]++;
	else if (aligns_stack(p, "\x4c\x8d\x6c\x24") && b->sp_offset == 0)
		v->votes[ORC_R13][is]++;
	/* push %r10 or %r13: afterwards it is relative to a word of the new frame. */
	else if ((ends_with(p, "\x41\x52", 2) || ends_with(p, "\x41\x55", 2)) && b->sp_offset < 0)
		v->votes[ORC_BP_INDIRECT][is]++;
	else if (switches_stack(p))
		v->votes[ORC_SP_INDIRECT][is]++;
	vote_copies(v, p, is);
}

static void orc_format_look(struct evidence *v, const struct kimage *code, const struct raw *a,
			    const struct raw *b)
{
	bool same = raw_sp(a) == raw_sp(b);
	uint32_t *looks = &v->looks[same][same ? raw_bp(b) : raw_sp(b)];
	uint8_t p[BACK];

	if (b->va <= a->va || b->va - a->va > MAX_PIECE || !raw_sp(a) || !raw_sp(b) ||
	    (same && (raw_bp(a) || !raw_bp(b))) || *looks >= MAX_LOOKS)
		return;
	(*looks)++;
	if (kimage_read(code, b->va - BACK, p, BACK) == 0)
		vote(v, p, a, b);
}

/*
 * Returns the number that most places use for a register, except those taken already; 0 if it is
 * not clear.
 */
static unsigned int elect(const struct evidence *v, enum orc_reg reg, const uint8_t *taken,
			  uint32_t min)
{
	uint32_t all = 0, most = 0;
	unsigned int best = 0;

	for (unsigned int n = 1; n < ORC_NUMBERS; n++) {
		if (taken[n] != NONE)
			continue;
		all += v->votes[reg][n];
		if (v->votes[reg][n] > most) {
			most = v->votes[reg][n];
			best = n;
		}
	}
	return most >= min && most >= all - all / 4 ? best : 0;
}

/*
 * Assigns registers by votes. Returns false if not even those that each kernel's functions use are
 * clear.
 */
static bool elect_all(const struct evidence *v, uint8_t reg[ORC_NUMBERS])
{
	static const struct {
		enum orc_reg reg;
		uint32_t min;
	} order[] = { { ORC_SP, MIN_VOTES },  { ORC_PREV_SP, MIN_VOTES },
		      { ORC_BP, MIN_VOTES },  { ORC_BP_INDIRECT, 2 },
		      { ORC_R10, 2 },	      { ORC_R13, 2 },
		      { ORC_SP_INDIRECT, 2 }, { ORC_DX, 1 },
		      { ORC_DI, 1 },	      { ORC_AX, 1 } };

	memset(reg, NONE, ORC_NUMBERS);
	reg[0] = ORC_UNDEFINED_REG;
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++) {
		unsigned int n = elect(v, order[i].reg, reg, order[i].min);

		if (n)
			reg[n] = (uint8_t)order[i].reg;
		else if (i < 3)
			return false;
	}
	return true;
}

static bool contradicts(const uint8_t *found, const uint8_t *known)
{
	for (unsigned int n = 0; n < ORC_NUMBERS; n++)
		if (found[n] != NONE && found[n] != known[n])
			return true;
	return false;
}

/* -- evidence in the entries ------------------------------------------------------- */

struct census {
	size_t n, bad; /* bad: under every layout */
	size_t by_sp;  /* entries relative to rsp: most of each kernel's code */
	size_t with_reg;
	size_t wrong[ORC_LAYOUT_6_4 + 1];
	size_t calls[ORC_LAYOUT_6_4 + 1];
	size_t known[ORC_LAYOUT_6_4 + 1]; /* entries with a caller */
	size_t bit10, bit11;
};

bool orc_format_good_regs(unsigned int sp, unsigned int bp)
{
	return sp != NONE && sp != ORC_PREV_SP &&
	       (bp == ORC_UNDEFINED_REG || bp == ORC_PREV_SP || bp == ORC_BP);
}

static void count_entry(struct census *c, const uint8_t *reg, uint16_t flags)
{
	unsigned int sp = reg[flags & 15], type2 = flags >> 8 & 3, type3 = flags >> 8 & 7;
	bool b10 = flags & 0x400, b11 = flags & 0x800;

	c->n++;
	if (flags >> 12 || !orc_format_good_regs(sp, reg[flags >> 4 & 15])) {
		c->bad++;
		return;
	}
	c->with_reg += sp != ORC_UNDEFINED_REG;
	c->by_sp += sp == ORC_SP;
	c->bit10 += b10;
	c->bit11 += b11;
	/* Old: types 0 to 2; end only where there is no caller. */
	c->wrong[ORC_LAYOUT_4_14] += type2 == 3 || b10 || b11;
	c->wrong[ORC_LAYOUT_4_18] += type2 == 3 || b11 || (b10 && sp);
	c->wrong[ORC_LAYOUT_6_3] += type2 == 3 || (b11 && sp) || (b10 && !sp);
	/* New: types 0 and 1 have no caller, the others have one. */
	c->wrong[ORC_LAYOUT_6_4] += type3 > ORC_REGS_PARTIAL || (type3 < ORC_CALL) != (sp == 0);
	for (int l = ORC_LAYOUT_4_14; l <= ORC_LAYOUT_6_3; l++) {
		c->known[l] += sp != 0;
		c->calls[l] += sp && type2 == 0;
	}
	c->known[ORC_LAYOUT_6_4] += type3 >= ORC_CALL;
	c->calls[ORC_LAYOUT_6_4] += type3 == ORC_CALL;
}

/*
 * Returns whether a layout is plausible. Nearly all code is plain functions, so under the right
 * layout most entries are calls. This distinguishes 6.4's layout (CALL is 2) from the older ones
 * (CALL is 0).
 */
static bool plausible(const struct census *c, enum orc_layout l)
{
	return (c->bad + c->wrong[l]) * ODD_SHARE <= c->n && c->calls[l] &&
	       c->calls[l] >= c->known[l] - c->known[l] / 4 && c->known[l] >= c->n / 4;
}

static enum orc_layout orc_format_judge(const struct census *c)
{
	if (c->by_sp < c->with_reg / 2)
		return ORC_LAYOUT_NONE;
	if (plausible(c, ORC_LAYOUT_6_4))
		return ORC_LAYOUT_6_4;
	/* If no entry has an end bit, the first three layouts differ only in the end. */
	if (!c->bit10 && !c->bit11 && plausible(c, ORC_LAYOUT_4_14))
		return ORC_LAYOUT_4_14;
	if (!c->bit11 && plausible(c, ORC_LAYOUT_4_18))
		return ORC_LAYOUT_4_18;
	return plausible(c, ORC_LAYOUT_6_3) ? ORC_LAYOUT_6_3 : ORC_LAYOUT_NONE;
}

static bool try_regs(struct orc_format *out, const struct orc_tables *t, const uint8_t *reg)
{
	struct census census = { 0 };
	struct cursor c;

	cursor_init(&c, t->entries, t->n * ENTRY_BYTES);
	for (size_t i = 0; i < t->n; i++) {
		cursor_skip(&c, 4);
		count_entry(&census, reg, cursor_u16(&c));
	}
	out->layout = orc_format_judge(&census);
	memcpy(out->reg, reg, ORC_NUMBERS);
	return out->layout != ORC_LAYOUT_NONE;
}

static void look_at_code(struct evidence *v, const struct orc_tables *t)
{
	struct cursor ips, entries;
	struct raw last = { 0 };

	cursor_init(&ips, t->ips, t->n * 4);
	cursor_init(&entries, t->entries, t->n * ENTRY_BYTES);
	for (size_t i = 0; i < t->n; i++) {
		struct raw now = { .va = t->ips_va + 4 * i +
					 (uint64_t)(int64_t)(int32_t)cursor_u32(&ips) };

		now.sp_offset = (int16_t)cursor_u16(&entries);
		now.bp_offset = (int16_t)cursor_u16(&entries);
		now.flags = cursor_u16(&entries);
		if (i)
			orc_format_look(v, t->code, &last, &now);
		last = now;
	}
}

bool orc_format_find(struct orc_format *out, const struct orc_tables *t)
{
	struct evidence v = { 0 };
	uint8_t found[ORC_NUMBERS];
	bool told = false;

	if (t->code) {
		look_at_code(&v, t);
		told = elect_all(&v, found);
	}
	for (size_t i = 0; i < ARRAY_SIZE(known_regs); i++)
		if ((!told || !contradicts(found, known_regs[i])) &&
		    try_regs(out, t, known_regs[i]))
			return true;
	return told && try_regs(out, t, found);
}
