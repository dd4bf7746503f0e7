/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/sframe.h"

#include "base/array.h"
#include "base/cursor.h"
#include "symbolizer/cfi/cfi_stream.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0xdee2u
#define HEADER_LEN 28u
#define ABI_AMD64 3u
#define FLAG_SORTED 1u
#define FLAG_PCREL 4u
#define FIXED_RIP (-8)

#define ATTR_LEN 5u /* bytes before a function's rows in version 3 */
#define FORM_SIZE 0x0fu
#define FORM_REPEATS 0x10u
#define FORM_SIGNAL 0x80u
#define TYPE_FLEXIBLE 1u
#define PLT_ENTRY 16u

#define ROW_MIN 2u /* bytes */
#define ROW_BY_RSP 1u
#define MAX_WORDS 15u
/* Maximum number of functions without code that begin at the address of another one. */
#define MAX_EMPTY 16u

#define CONTROL_REG 1u
#define CONTROL_SAVED 2u
#define CONTROL_UNUSED 4u

#define OP_BREG0 0x70u
#define OP_DEREF 0x06u

struct sframe_span {
	uint64_t start;
	uint32_t size, number;
};

struct sframe_func {
	uint64_t start;
	uint32_t size, rows, nrows; /* rows: offset */
	uint8_t form, type, repeats;
};

struct sframe_words {
	uint8_t form;
	uint8_t bytes; /* bytes of each word */
	unsigned int n;
	uint32_t v[MAX_WORDS];
};

/* -- functions ------------------------------------------------------------------------ */

static enum cfi_found sframe_read(const struct sframe *t, uint64_t va, void *dst, size_t len)
{
	return t->src.read(t->src.ctx, va, dst, len) == len ? CFI_FOUND : CFI_HOLE;
}

static uint32_t sframe_func_len(const struct sframe *t)
{
	return t->version == 1 ? 17 : t->version == 2 ? 20 : 16;
}

/* Reads function i. Version 3 needs sframe_attr() as well. */
static enum cfi_found sframe_func(const struct sframe *t, uint32_t i, struct sframe_func *f)
{
	uint64_t at = t->funcs + (uint64_t)i * sframe_func_len(t);
	enum cfi_found found;
	struct cursor c;
	uint8_t b[20];

	found = sframe_read(t, at, b, sframe_func_len(t));
	if (found != CFI_FOUND)
		return found;
	cursor_init(&c, b, sframe_func_len(t));
	*f = (struct sframe_func){ .repeats = PLT_ENTRY };
	f->start = t->flags & FLAG_PCREL ? at : t->va;
	f->start += t->version < 3 ? (uint64_t)(int64_t)(int32_t)cursor_u32(&c) : cursor_u64(&c);
	f->size = cursor_u32(&c);
	f->rows = cursor_u32(&c);
	if (t->version < 3) {
		f->nrows = cursor_u32(&c);
		f->form = cursor_u8(&c);
	}
	if (t->version == 2)
		f->repeats = cursor_u8(&c);
	return CFI_FOUND;
}

static enum cfi_found sframe_attr(const struct sframe *t, struct sframe_func *f)
{
	enum cfi_found found = CFI_FOUND;
	struct cursor c;
	uint8_t b[ATTR_LEN];

	if (t->version == 3) {
		if (f->rows > t->rows_len || t->rows_len - f->rows < ATTR_LEN)
			return CFI_BAD;
		found = sframe_read(t, t->rows + f->rows, b, sizeof(b));
		if (found != CFI_FOUND)
			return found;
		cursor_init(&c, b, sizeof(b));
		f->nrows = cursor_u16(&c);
		f->form = cursor_u8(&c);
		f->type = cursor_u8(&c);
		f->repeats = cursor_u8(&c);
		f->rows += ATTR_LEN;
	}
	if ((f->form & FORM_SIZE) > 2 || f->type > TYPE_FLEXIBLE ||
	    f->form & ~(FORM_SIZE | FORM_REPEATS | (t->version == 3 ? FORM_SIGNAL : 0)) ||
	    (f->form & FORM_REPEATS && !f->repeats) || f->nrows > SFRAME_MAX_ROWS ||
	    f->rows > t->rows_len || f->nrows > (t->rows_len - f->rows) / ROW_MIN)
		return CFI_BAD;
	return CFI_FOUND;
}

static int sframe_compare(const void *a, const void *b)
{
	const struct sframe_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static enum cfi_found sframe_index(struct sframe *t)
{
	size_t cap = 0, n = 0;

	if (t->nfuncs > SFRAME_MAX_INDEXED)
		return CFI_BAD;
	for (uint32_t i = 0; i < t->nfuncs; i++) {
		struct sframe_func f;
		enum cfi_found found = sframe_func(t, i, &f);

		if (found == CFI_FOUND && ARRAY_ROOM(t->index, n, cap))
			found = CFI_BAD;
		if (found != CFI_FOUND) {
			sframe_deinit(t);
			return found;
		}
		if (f.size)
			t->index[n++] = (struct sframe_span){ f.start, f.size, i };
	}
	t->n = (uint32_t)n;
	if (n)
		qsort(t->index, n, sizeof(*t->index), sframe_compare);
	return CFI_FOUND;
}

enum cfi_found sframe_open(struct sframe *t, const struct cfi_source *src, uint64_t va,
			   uint64_t len)
{
	struct sframe made = { .src = *src, .va = va };
	uint32_t funcs, rows, nrows, head;
	uint8_t b[HEADER_LEN];
	enum cfi_found found;
	struct cursor c;

	if (len < HEADER_LEN || len > SFRAME_MAX_SECTION || va + len < va)
		return CFI_BAD;
	found = sframe_read(&made, va, b, sizeof(b));
	if (found != CFI_FOUND)
		return found;
	cursor_init(&c, b, sizeof(b));
	if (cursor_u16(&c) != MAGIC)
		return CFI_BAD;
	made.version = cursor_u8(&c);
	made.flags = cursor_u8(&c);
	if (made.version < 1 || made.version > 3 || made.flags > 7 || cursor_u8(&c) != ABI_AMD64)
		return CFI_BAD;
	made.rbp = (int8_t)cursor_u8(&c);
	if ((int8_t)cursor_u8(&c) != FIXED_RIP)
		return CFI_BAD;
	head = HEADER_LEN + cursor_u8(&c);
	made.nfuncs = cursor_u32(&c);
	nrows = cursor_u32(&c);
	made.rows_len = cursor_u32(&c);
	funcs = cursor_u32(&c);
	rows = cursor_u32(&c);
	if (head > len || funcs > len - head || rows > len - head ||
	    made.nfuncs > SFRAME_MAX_FUNCS ||
	    (uint64_t)made.nfuncs * sframe_func_len(&made) > len - head - funcs ||
	    made.rows_len > len - head - rows || nrows > made.rows_len / ROW_MIN)
		return CFI_BAD;
	made.funcs = va + head + funcs;
	made.rows = va + head + rows;
	if (!(made.flags & FLAG_SORTED))
		found = sframe_index(&made);
	if (found == CFI_FOUND)
		*t = made;
	return found;
}

void sframe_deinit(struct sframe *t)
{
	free(t->index);
	*t = (struct sframe){ .n = 0 };
}

/* Finds the number of the last function that begins at or before va. */
static enum cfi_found sframe_search(const struct sframe *t, uint64_t va, uint32_t *number)
{
	uint32_t lo = 0, hi = t->flags & FLAG_SORTED ? t->nfuncs : t->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		struct sframe_func f;
		enum cfi_found found = CFI_FOUND;

		if (t->flags & FLAG_SORTED)
			found = sframe_func(t, mid, &f);
		else
			f.start = t->index[mid].start;
		if (found != CFI_FOUND)
			return found;
		if (f.start <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return CFI_NONE;
	*number = t->flags & FLAG_SORTED ? lo - 1 : t->index[lo - 1].number;
	return CFI_FOUND;
}

static enum cfi_found sframe_func_at(const struct sframe *t, uint64_t va, struct sframe_func *f)
{
	uint32_t i = 0;
	enum cfi_found found = sframe_search(t, va, &i);

	if (found == CFI_FOUND)
		found = sframe_func(t, i, f);
	for (unsigned int k = 0; found == CFI_FOUND && !f->size && i && k < MAX_EMPTY; k++)
		found = sframe_func(t, --i, f);
	if (found != CFI_FOUND)
		return found;
	if (va < f->start || va - f->start >= f->size)
		return CFI_NONE;
	return sframe_attr(t, f);
}

/* -- rows ----------------------------------------------------------------------------- */

static uint32_t next_number(struct cfi_stream *s, unsigned int bytes)
{
	uint32_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint32_t)cfi_stream_byte(s) << 8 * i;
	return v;
}

static void next_words(struct cfi_stream *s, struct sframe_words *w)
{
	w->form = cfi_stream_byte(s);
	w->n = w->form >> 1 & 15;
	w->bytes = (uint8_t)(1u << (w->form >> 5 & 3));
	/* Bit 7 is for other machines, whose return addresses are signed. */
	if (w->bytes > 4 || w->form >> 7)
		s->found = CFI_BAD;
	for (unsigned int i = 0; i < w->n && s->found == CFI_FOUND; i++)
		w->v[i] = next_number(s, w->bytes);
}

/* Reads the words of the last row that begins at or before pc. */
static enum cfi_found sframe_words(const struct sframe *t, const struct sframe_func *f, uint32_t pc,
				   struct sframe_words *out)
{
	struct cfi_stream s = { .src = t->src,
				.at = t->rows + f->rows,
				.left = t->rows_len - f->rows,
				.found = CFI_FOUND };
	uint32_t start, last = 0;
	bool any = false;

	for (uint32_t i = 0; i < f->nrows; i++) {
		struct sframe_words w;

		start = next_number(&s, 1u << (f->form & FORM_SIZE));
		if (s.found == CFI_FOUND && start < last)
			return CFI_BAD;
		if (s.found == CFI_FOUND && start > pc)
			break;
		next_words(&s, &w);
		if (s.found != CFI_FOUND)
			return s.found;
		last = start;
		*out = w;
		any = true;
	}
	return any ? CFI_FOUND : CFI_NONE;
}

static int32_t words_signed(const struct sframe_words *w, unsigned int i)
{
	return w->bytes == 1   ? (int8_t)w->v[i]
	       : w->bytes == 2 ? (int16_t)w->v[i]
			       : (int32_t)w->v[i];
}

static enum cfi_found row_plain(struct cfi_row *row, const struct sframe_words *w, int8_t rbp)
{
	if (w->n > 2)
		return CFI_BAD;
	row->cfa_reg = w->form & ROW_BY_RSP ? CFI_RSP : CFI_RBP;
	row->cfa = words_signed(w, 0);
	if (w->n == 2 || rbp)
		row->rule[CFI_RBP] = (struct cfi_rule){
			.how = CFI_SAVED,
			.value = rbp ? rbp : words_signed(w, 1),
		};
	return CFI_FOUND;
}

/* Appends "register + offset" as an expression; a row has room for three of them. */
static uint8_t row_expression(struct cfi_row *row, uint32_t reg, int32_t off, bool is_loaded)
{
	uint8_t begin = row->expr_len;
	bool more = true;

	row->expr[row->expr_len++] = (uint8_t)(OP_BREG0 + reg);
	while (more) {
		uint8_t b = off & 0x7f;

		off >>= 7;
		more = off != (b & 0x40 ? -1 : 0);
		row->expr[row->expr_len++] = b | (more ? 0x80 : 0);
	}
	if (is_loaded)
		row->expr[row->expr_len++] = OP_DEREF;
	return (uint8_t)(row->expr_len - begin);
}

static enum cfi_found row_flexible_rule(struct cfi_row *row, unsigned int reg, uint32_t control,
					int32_t off)
{
	struct cfi_rule *rule = &row->rule[reg];
	uint32_t by = control >> 3;

	*rule = (struct cfi_rule){ .value = off };
	if (!(control & CONTROL_REG)) {
		rule->how = control & CONTROL_SAVED ? CFI_SAVED : CFI_OFFSET;
	} else if (!(control & CONTROL_SAVED) && !off) {
		rule->how = CFI_REGISTER;
		rule->value = (int32_t)by;
	} else {
		rule->how = control & CONTROL_SAVED ? CFI_SAVED_EXPR : CFI_EXPR;
		rule->value = row->expr_len;
		rule->len = row_expression(row, by, off, false);
	}
	return CFI_FOUND;
}

static enum cfi_found row_flexible(struct cfi_row *row, const struct sframe_words *w)
{
	static const uint8_t order[] = { CFI_RSP, CFI_RIP, CFI_RBP }; /* rsp stands for the CFA */
	unsigned int i = 0;

	for (unsigned int k = 0; k < sizeof(order) && i < w->n; k++) {
		uint32_t control = w->v[i++], reg = control >> 3;
		bool by_reg = control & CONTROL_REG;

		if (!control && k)
			continue;
		if (i == w->n || control & CONTROL_UNUSED || (by_reg ? reg >= CFI_RIP : reg != 0))
			return CFI_BAD;
		if (k) {
			row_flexible_rule(row, order[k], control, words_signed(w, i++));
			continue;
		}
		if (!by_reg)
			return CFI_BAD;
		row->cfa_reg = (uint8_t)reg;
		row->cfa = words_signed(w, i++);
		if (control & CONTROL_SAVED) {
			row->cfa_len = row_expression(row, reg, row->cfa, true);
			row->cfa = 0;
			row->cfa_reg = 0;
		}
	}
	return i == w->n ? CFI_FOUND : CFI_BAD;
}

enum cfi_found sframe_row(const struct sframe *t, uint64_t va, struct cfi_row *row)
{
	static const uint8_t untold[] = { CFI_RBX, CFI_R12, CFI_R13, CFI_R14, CFI_R15 };
	struct sframe_words w = { .n = 0 };
	struct sframe_func f;
	enum cfi_found found = sframe_func_at(t, va, &f);
	uint32_t pc;

	if (found != CFI_FOUND)
		return found;
	pc = (uint32_t)(va - f.start);
	if (f.form & FORM_REPEATS)
		pc %= f.repeats;
	found = sframe_words(t, &f, pc, &w);
	if (found != CFI_FOUND)
		return found;
	if (!w.n && t->version == 1)
		return CFI_BAD;
	memset(row, 0, sizeof(*row));
	row->is_signal = f.form & FORM_SIGNAL ? 1 : 0;
	row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = FIXED_RIP };
	for (unsigned int i = 0; i < sizeof(untold); i++)
		row->rule[untold[i]].how = CFI_UNDEFINED;
	if (!w.n)
		row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_UNDEFINED };
	else
		found = f.type == TYPE_FLEXIBLE ? row_flexible(row, &w)
						: row_plain(row, &w, t->rbp);
	cfi_row_classify(row);
	return found;
}

bool sframe_is_repeated(const struct sframe *t, uint64_t va)
{
	struct sframe_func f;

	return sframe_func_at(t, va, &f) == CFI_FOUND && f.form & FORM_REPEATS;
}
