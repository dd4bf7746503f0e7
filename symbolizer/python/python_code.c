/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/python/python_code.h"

#include "base/cursor.h"

#define USER_BITS 56
#define STATE_KIND(s) ((s) >> 2 & 7)
#define STATE_COMPACT(s) ((s) >> 5 & 1)
#define STATE_ASCII(s) ((s) >> 6 & 1)
#define MAX_LINE (1u << 30)

static bool read_bytes(const struct python_program *p, uint64_t va, void *dst, size_t len)
{
	return va >= 4096 && !(va >> USER_BITS) && memory_read(p->memory, p->space, va, dst, len);
}

static bool is_of_type(const struct python_layout *l, const struct python_program *p, uint64_t at,
		       const char *name)
{
	size_t len = strlen(name) + 1;
	uint64_t type, text;
	char is[16];

	return read_bytes(p, at + l->object_type, &type, 8) &&
	       read_bytes(p, type + l->type_name, &text, 8) && read_bytes(p, text, is, len) &&
	       !memcmp(is, name, len);
}

/* Writes one character as UTF-8. Returns its number of bytes. */
static unsigned int put_utf8(char out[4], uint32_t c)
{
	if (c < 0x20 || c == 0x7f || c == ';' || (c >= 0x80 && c < 0xa0) || c > 0x10ffff ||
	    (c >= 0xd800 && c < 0xe000))
		c = '?';
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Converts characters of `kind` bytes each; if not all fit, the last ones are kept. */
static void to_utf8(char out[PYTHON_MAX_NAME], const uint8_t *in, size_t n, unsigned int kind)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;
		char one[4];
		unsigned int len;

		memcpy(&c, in + i * kind, kind);
		len = put_utf8(one, c);
		if (used + len >= PYTHON_MAX_NAME)
			break;
		memcpy(out + used, one, len);
		used += len;
	}
	out[used] = '\0';
}

static bool read_string(const struct python_layout *l, const struct python_program *p, uint64_t at,
			char out[PYTHON_MAX_NAME])
{
	uint8_t raw[(PYTHON_MAX_NAME - 1) * 4];
	uint64_t len, skip = 0;
	uint32_t state;
	unsigned int kind;

	if (!is_of_type(l, p, at, "str") || !read_bytes(p, at + l->string_len, &len, 8) ||
	    !read_bytes(p, at + l->string_state, &state, 4))
		return false;
	kind = STATE_KIND(state);
	if (!STATE_COMPACT(state) || (kind != 1 && kind != 2 && kind != 4) || !len || len >> 32)
		return false;
	if (len > PYTHON_MAX_NAME - 1) {
		skip = len - (PYTHON_MAX_NAME - 1);
		len = PYTHON_MAX_NAME - 1;
	}
	at += STATE_ASCII(state) ? l->string_ascii : l->string_compact;
	if (!read_bytes(p, at + skip * kind, raw, (size_t)len * kind))
		return false;
	to_utf8(out, raw, (size_t)len, kind);
	return true;
}

void python_code_id_offsets(const struct python_layout *l, uint32_t off[PYTHON_CODE_IDS])
{
	off[0] = l->code_file;
	off[1] = l->code_qualname;
	off[2] = l->code_lines;
	off[3] = l->code_first & ~7u;
}

bool python_code_read(struct python_code *out, const struct python_layout *l,
		      const struct python_program *p, uint64_t at)
{
	uint32_t off[PYTHON_CODE_IDS];
	uint64_t len;

	memset(out, 0, sizeof(*out));
	python_code_id_offsets(l, off);
	if (!is_of_type(l, p, at, "code"))
		return false;
	for (unsigned int i = 0; i < PYTHON_CODE_IDS; i++)
		if (!read_bytes(p, at + off[i], &out->id.v[i], 8))
			return false;
	if (!read_bytes(p, at + l->code_first, &out->first, 4) || out->first > MAX_LINE ||
	    !read_string(l, p, out->id.v[0], out->file) ||
	    !read_string(l, p, out->id.v[1], out->name))
		return false;
	out->start = at + l->code_start;
	out->lines = out->id.v[2] + l->bytes_data;
	if (is_of_type(l, p, out->id.v[2], "bytes") &&
	    read_bytes(p, out->id.v[2] + l->bytes_len, &len, 8) && len <= PYTHON_MAX_LINES)
		out->nlines = (uint32_t)len;
	return true;
}

uint32_t python_code_lines(const struct python_code *c, const struct python_program *p,
			   uint8_t *dst, uint32_t len)
{
	if (len > c->nlines)
		len = c->nlines;
	return len && read_bytes(p, c->lines, dst, len) ? len : 0;
}

/* -- the table of lines ------------------------------------------------------------------ */

#define MAX_TABLE_LINE (INT64_C(1) << 31)

struct python_code_entry {
	uint32_t units;
	uint32_t line; /* 0: none */
};

static int64_t number(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 36; shift += 6) {
		uint8_t b = cursor_u8(c);

		/* An entry begins where a number should continue. */
		if (b & 0x80)
			break;
		v |= (uint64_t)(b & 0x3f) << shift;
		if (!(b & 0x40))
			return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
	}
	c->bad = true;
	return 0;
}

/*
 * Reads an entry. Returns false at the table's end, or if it is damaged. *line is carried from
 * entry to entry.
 */
static bool next_entry(struct cursor *c, int64_t *line, struct python_code_entry *out)
{
	uint8_t head = cursor_left(c) ? cursor_u8(c) : 0;
	unsigned int kind = head >> 3 & 15;

	if (!(head & 0x80))
		return false;
	if (kind == 13 || kind == 14)
		*line += number(c);
	else if (kind >= 10 && kind <= 12)
		*line += kind - 10;
	/* The columns are not used. */
	while (!c->bad && cursor_left(c) && !(c->base[c->pos] & 0x80))
		cursor_skip(c, 1);
	if (c->bad || *line < 0 || *line > MAX_TABLE_LINE)
		return false;
	*out = (struct python_code_entry){ .units = (head & 7u) + 1,
					   .line = kind == 15 ? 0 : (uint32_t)*line };
	return true;
}

uint32_t python_line_at(const uint8_t *table, size_t len, uint32_t first, uint64_t unit)
{
	int64_t line = first;
	uint64_t at = 0;
	struct cursor c;
	struct python_code_entry e;

	cursor_init(&c, table, len);
	while (next_entry(&c, &line, &e)) {
		at += e.units;
		if (unit < at)
			return e.line;
	}
	return 0;
}

struct python_line_range python_lines_range(const uint8_t *table, size_t len, uint32_t first)
{
	struct python_line_range r = { 0 };
	int64_t line = first;
	struct cursor c;
	struct python_code_entry e;

	cursor_init(&c, table, len);
	while (next_entry(&c, &line, &e)) {
		if (!e.line)
			continue;
		if (!r.low || e.line < r.low)
			r.low = e.line;
		if (e.line > r.high)
			r.high = e.line;
	}
	return r;
}
