/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/python/python_lines.h"

#include "base/cursor.h"

#define MAX_LINE (INT64_C(1) << 31)

struct entry {
	uint32_t units;
	uint32_t line; /* 0: none */
};

static int64_t number(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 36; shift += 6) {
		uint8_t b = cursor_u8(c);

		/* An entry begins, where a number should go on. */
		if (b & 0x80)
			break;
		v |= (uint64_t)(b & 0x3f) << shift;
		if (!(b & 0x40))
			return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
	}
	c->bad = true;
	return 0;
}

/* false: the table's end, or it is damaged. *line goes from entry to entry. */
static bool next_entry(struct cursor *c, int64_t *line, struct entry *out)
{
	uint8_t head = cursor_left(c) ? cursor_u8(c) : 0;
	unsigned int kind = head >> 3 & 15;

	if (!(head & 0x80))
		return false;
	if (kind == 13 || kind == 14)
		*line += number(c);
	else if (kind >= 10 && kind <= 12)
		*line += kind - 10;
	/* Columns are of no use here. */
	while (!c->bad && cursor_left(c) && !(c->base[c->pos] & 0x80))
		cursor_skip(c, 1);
	if (c->bad || *line < 0 || *line > MAX_LINE)
		return false;
	*out = (struct entry){ .units = (head & 7u) + 1, .line = kind == 15 ? 0 : (uint32_t)*line };
	return true;
}

uint32_t python_line_at(const uint8_t *table, size_t len, uint32_t first, uint64_t unit)
{
	int64_t line = first;
	uint64_t at = 0;
	struct cursor c;
	struct entry e;

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
	struct entry e;

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
