/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/gopclntab.h"

#include "symbolizer/cfi/cfi_stream.h"

#include <string.h>

#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u
#define HEADER_LEN 72u
#define USER_BITS 56 /* bits of programs' addresses, with five levels of page tables */
#define FLAG_TOPFRAME 1u
#define FLAG_SPWRITE 2u
#define FUNC_PCSP 16u
#define FUNC_NAME 4u
#define FUNC_FLAG_118 37u
#define FUNC_FLAG_120 41u
#define FUNC_LEN 42u

/* Reads bytes of the section. CFI_BAD: they are not inside it. */
static enum cfi_found read_table(const struct gopclntab *t, uint64_t at, void *dst, size_t len)
{
	if (at > t->len || len > t->len - at)
		return CFI_BAD;
	return t->src.read(t->src.ctx, t->off + at, dst, len) == len ? CFI_FOUND : CFI_HOLE;
}

static uint32_t half_at(const uint8_t *b, size_t off)
{
	uint32_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

static uint64_t word_at(const uint8_t *b, size_t off)
{
	uint64_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

enum cfi_found gopclntab_open(struct gopclntab *t, const struct file_source *src, uint64_t off,
			      uint64_t len, uint64_t text)
{
	struct gopclntab n = { .src = *src, .off = off, .len = len };
	uint8_t head[HEADER_LEN];
	enum cfi_found found;
	uint32_t magic;
	uint64_t count;

	/* off and len come from the section's header. */
	if (off > src->len || len > src->len - off)
		return CFI_BAD;
	found = read_table(&n, 0, head, sizeof(head));
	if (found != CFI_FOUND)
		return found;
	magic = half_at(head, 0);
	if ((magic != MAGIC_118 && magic != MAGIC_120) || head[6] != 1 || head[7] != 8)
		return CFI_NONE;
	n.flag_at = magic == MAGIC_118 ? FUNC_FLAG_118 : FUNC_FLAG_120;
	count = word_at(head, 8);
	n.text = word_at(head, 24);
	/* In a position-independent program, the field is filled in by a relocation. */
	if (!n.text)
		n.text = text;
	n.names = word_at(head, 32);
	n.pctab = word_at(head, 56);
	n.funcs = word_at(head, 64);
	if (n.text >> USER_BITS || !count || count > GOPCLNTAB_MAX_FUNCS || n.names > len ||
	    n.pctab > len || n.funcs > len || count * 8 + 4 > len - n.funcs)
		return CFI_BAD;
	n.nfuncs = (uint32_t)count;
	*t = n;
	return CFI_FOUND;
}

/*
 * Reads entry i of functab: the offsets of its code and of its struct _func. The last one has no
 * struct.
 */
static enum cfi_found entry_at(const struct gopclntab *t, uint32_t i, uint32_t v[2])
{
	v[1] = 0;
	return read_table(t, t->funcs + 8ull * i, v, i < t->nfuncs ? 8 : 4);
}

static enum cfi_found gopclntab_find(const struct gopclntab *t, uint64_t pc, uint32_t *index)
{
	uint32_t lo = 0, hi = t->nfuncs, v[2];

	/*
	 * Search the last entry that begins at or before pc; hi is an entry that begins after it.
	 */
	while (lo + 1 < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		enum cfi_found found = entry_at(t, mid, v);

		if (found != CFI_FOUND)
			return found;
		if (v[0] <= pc)
			lo = mid;
		else
			hi = mid;
	}
	*index = lo;
	return CFI_FOUND;
}

static uint32_t next_number(struct cfi_stream *s)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t b = cfi_stream_byte(s);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return (uint32_t)v;
	}
	s->found = CFI_BAD;
	return 0;
}

/* Computes how far rsp is below its value at the entry; pc: distance from the function's begin. */
static enum cfi_found find_delta(const struct gopclntab *t, uint32_t pcsp, uint64_t pc,
				 int64_t *out)
{
	const uint64_t begin = t->pctab + pcsp;
	struct cfi_stream s = { .src = { t->src.read, t->src.ctx },
				.at = t->off + begin,
				.left = begin < t->len ? t->len - begin : 0,
				.found = CFI_FOUND };
	int64_t value = -1;
	uint64_t at = 0;

	for (unsigned int i = 0; i < GOPCLNTAB_MAX_STEPS; i++) {
		uint32_t zigzag = next_number(&s);

		if (!zigzag && i) /* the end */
			return s.found == CFI_FOUND ? CFI_NONE : s.found;
		value += zigzag & 1 ? ~(int64_t)(zigzag >> 1) : (int64_t)(zigzag >> 1);
		at += next_number(&s);
		if (s.found != CFI_FOUND)
			return s.found;
		if (pc < at) {
			*out = value;
			return CFI_FOUND;
		}
	}
	return CFI_BAD;
}

static void make_row(struct cfi_row *row, int64_t delta, bool is_end)
{
	static const uint8_t lost[] = { CFI_RBX, CFI_RBP, CFI_R12, CFI_R13, CFI_R14, CFI_R15 };

	memset(row, 0, sizeof(*row));
	row->cfa_reg = CFI_RSP;
	row->cfa = (int32_t)delta + 8;
	row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -8 };
	if (is_end)
		row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_UNDEFINED };
	for (unsigned int i = 0; i < sizeof(lost); i++)
		row->rule[lost[i]].how = CFI_UNDEFINED;
	cfi_row_classify(row);
}

enum cfi_found gopclntab_row(const struct gopclntab *t, uint64_t va, struct cfi_row *row)
{
	uint64_t pc = va - t->text;
	uint8_t func[FUNC_LEN];
	uint32_t i, this[2], next[2];
	enum cfi_found found;
	int64_t delta = 0;
	bool is_end;

	if (va < t->text || pc > UINT32_MAX)
		return CFI_NONE;
	found = gopclntab_find(t, pc, &i);
	if (found == CFI_FOUND)
		found = entry_at(t, i, this);
	if (found == CFI_FOUND)
		found = entry_at(t, i + 1, next);
	if (found != CFI_FOUND)
		return found;
	if (pc < this[0] || pc >= next[0])
		return CFI_NONE;
	found = read_table(t, t->funcs + this[1], func, sizeof(func));
	if (found != CFI_FOUND)
		return found;
	/* A function without pcsp is not a Go function; the runtime's start code has one. */
	if (half_at(func, 0) != this[0])
		return CFI_BAD;
	is_end = func[t->flag_at] & (FLAG_TOPFRAME | FLAG_SPWRITE);
	if (half_at(func, FUNC_PCSP))
		found = find_delta(t, half_at(func, FUNC_PCSP), pc - this[0], &delta);
	else if (!is_end)
		return CFI_NONE;
	if (found != CFI_FOUND)
		return found;
	if (delta < 0 || delta > GOPCLNTAB_MAX_FRAME || delta % 8)
		return CFI_BAD;
	make_row(row, delta, is_end);
	return CFI_FOUND;
}

enum cfi_found gopclntab_func_at(const struct gopclntab *t, uint32_t i, struct gopclntab_func *out)
{
	uint32_t this[2], next[2], name;
	enum cfi_found found = i < t->nfuncs ? entry_at(t, i, this) : CFI_BAD;
	uint64_t at, room;
	size_t n;

	if (found == CFI_FOUND)
		found = entry_at(t, i + 1, next);
	if (found == CFI_FOUND)
		found = read_table(t, t->funcs + this[1] + FUNC_NAME, &name, sizeof(name));
	if (found != CFI_FOUND)
		return found;
	at = t->names + name;
	if (at >= t->len || next[0] <= this[0])
		return CFI_BAD;
	room = t->len - at;
	n = t->src.read(t->src.ctx, t->off + at, out->name,
			room < sizeof(out->name) ? (size_t)room : sizeof(out->name));
	if (!memchr(out->name, 0, n)) {
		if (n < sizeof(out->name))
			return n < room ? CFI_HOLE : CFI_BAD;
		out->name[n - 1] = '\0';
	}
	out->start = t->text + this[0];
	out->end = t->text + next[0];
	return out->name[0] ? CFI_FOUND : CFI_BAD;
}
