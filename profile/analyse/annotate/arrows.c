/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps to one instruction share an arrow. Short arrows get the lanes next to the text, and long
 * ones go around them.
 */
#include "profile/analyse/annotate/arrows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_ROW UINT32_MAX
#define NO_LANE UINT32_MAX

static uint32_t row_at(const struct annotate *a, uint64_t addr)
{
	size_t low = 0, high = a->nrows;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->row[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < a->nrows && a->row[low].addr == addr ? (uint32_t)low : NO_ROW;
}

static int by_target(const void *x, const void *y)
{
	const struct annotate_arrow *a = x, *b = y;

	return a->to < b->to ? -1 : a->to > b->to;
}

static int by_span(const void *x, const void *y)
{
	const struct annotate_arrow *a = x, *b = y;
	uint32_t m = a->last - a->first, n = b->last - b->first;

	if (m != n)
		return m < n ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

/* Stores one entry for each jump inside the function, then one for each target. */
static void arrows_collect(struct annotate *a)
{
	size_t n = 0, out = 0;

	for (size_t i = 0; i < a->nrows; i++) {
		const struct disasm_insn *in = &a->row[i].insn;
		uint32_t to = in->kind == DISASM_JUMP ? row_at(a, in->target) : NO_ROW;
		uint32_t from = (uint32_t)i;

		if (to == NO_ROW || to == from)
			continue;
		a->arrow[n++] = (struct annotate_arrow){
			.first = from < to ? from : to,
			.last = from < to ? to : from,
			.to = to,
		};
	}
	qsort(a->arrow, n, sizeof(*a->arrow), by_target);
	for (size_t i = 0; i < n; i++) {
		struct annotate_arrow *last = out ? &a->arrow[out - 1] : NULL;

		if (!last || last->to != a->arrow[i].to) {
			a->arrow[out++] = a->arrow[i];
			continue;
		}
		if (a->arrow[i].first < last->first)
			last->first = a->arrow[i].first;
		if (a->arrow[i].last > last->last)
			last->last = a->arrow[i].last;
	}
	a->narrows = out;
}

/*
 * Returns a lane that is free over the whole arrow; taken has one byte for each row, with one bit
 * for each lane.
 */
static uint32_t free_lane(const uint8_t *taken, const struct annotate_arrow *w)
{
	uint8_t all = 0;

	for (uint32_t r = w->first; r <= w->last && all != UINT8_MAX; r++)
		all |= taken[r];
	return all == UINT8_MAX ? NO_LANE : (uint32_t)__builtin_ctz(~(unsigned int)all);
}

_Static_assert(ANNOTATE_MAX_LANES == 8, "a bit of a byte for each lane");

int annotate_arrows(struct annotate *a, struct err *e)
{
	uint8_t *taken = calloc(a->nrows + 1, 1);
	size_t out = 0;

	a->arrow = calloc(a->nrows + 1, sizeof(*a->arrow));
	if (!a->arrow || !taken) {
		free(taken);
		return err_nomem(e);
	}
	arrows_collect(a);
	qsort(a->arrow, a->narrows, sizeof(*a->arrow), by_span);
	for (size_t i = 0; i < a->narrows; i++) {
		struct annotate_arrow w = a->arrow[i];

		w.lane = free_lane(taken, &w);
		if (w.lane == NO_LANE) {
			a->undrawn++;
			continue;
		}
		for (uint32_t r = w.first; r <= w.last; r++)
			taken[r] |= (uint8_t)(1u << w.lane);
		if (w.lane >= a->lanes)
			a->lanes = w.lane + 1;
		a->arrow[out++] = w;
	}
	a->narrows = out;
	free(taken);
	a->grid = calloc(a->nrows * a->lanes + 1, sizeof(*a->grid));
	if (!a->grid)
		return err_nomem(e);
	for (size_t i = 0; i < a->narrows; i++)
		for (size_t r = a->arrow[i].first; r <= a->arrow[i].last; r++)
			a->grid[r * a->lanes + a->arrow[i].lane] = (uint32_t)i + 1;
	return 0;
}

/* Returns true if the row is a jump or the target of the arrow. */
static bool touches(const struct annotate *a, const struct annotate_arrow *w, size_t row)
{
	const struct annotate_row *r = &a->row[row];

	return row == w->to ||
	       (r->insn.kind == DISASM_JUMP && r->insn.target == a->row[w->to].addr);
}

/* Lane l is drawn at column 2 * (lanes - 1 - l); the last column is the arrow's head. */
void annotate_draw(const struct annotate *a, size_t row, char *text)
{
	size_t width = 2 * (size_t)a->lanes + 1;

	memset(text, ' ', width);
	text[width] = '\0';
	for (uint32_t lane = 0; lane < a->lanes; lane++) {
		uint32_t i = a->grid[row * a->lanes + lane];
		const struct annotate_arrow *w = i ? &a->arrow[i - 1] : NULL;
		size_t at = 2 * (size_t)(a->lanes - 1 - lane);

		if (!w)
			continue;
		if (!touches(a, w, row)) {
			text[at] = '|';
			continue;
		}
		text[at] = row == w->first ? '/' : row == w->last ? '\\' : '+';
		for (size_t c = at + 1; c < width; c++)
			if (text[c] == ' ')
				text[c] = '-';
		if (row == w->to)
			text[width - 1] = '>';
	}
}
