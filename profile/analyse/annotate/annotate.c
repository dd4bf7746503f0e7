/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/annotate.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/analyse/annotate/arrows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void annotate_target(const struct annotate *a, const struct disasm_insn *i,
		     char out[ANNOTATE_TARGET])
{
	const struct annotate_input *in = a->in;
	const char *name = NULL;
	uint64_t off = 0;

	*out = '\0';
	if (!i->has_target)
		return;
	if (i->target >= in->addr && i->target - in->addr < in->len) {
		name = in->function;
		off = i->target - in->addr;
	} else if (in->name) {
		name = in->name(in->ctx, i->target, &off);
	}
	if (!name)
		return;
	if (off)
		snprintf(out, ANNOTATE_TARGET, "<%.120s+0x%" PRIx64 ">", name, off);
	else
		snprintf(out, ANNOTATE_TARGET, "<%.120s>", name);
}

static int decode_live(struct annotate *a, struct disasm *d, struct err *e)
{
	const struct annotate_input *in = a->in;
	size_t cap = 0;

	for (size_t at = 0; at < in->len;) {
		struct annotate_row *r;

		if (ARRAY_ROOM(a->row, a->nrows, cap))
			return err_nomem(e);
		r = &a->row[a->nrows++];
		*r = (struct annotate_row){ .addr = in->addr + at };
		disasm_one(d, r->addr, in->live + at, in->len - at, &r->insn);
		if (in->image)
			r->differs = memcmp(in->live + at, in->image + at, r->insn.len) != 0;
		a->ndiffer += r->differs;
		if (in->line && !in->line(in->ctx, r->addr, &r->line))
			r->line = (struct annotate_line){ 0 };
		at += r->insn.len;
	}
	return 0;
}

static struct annotate_image *add_image(struct annotate *a, size_t *cap)
{
	if (ARRAY_ROOM(a->image, a->nimages, *cap))
		return NULL;
	return &a->image[a->nimages++];
}

/*
 * Decodes the image's instructions where the live ones differ. Instruction boundaries may differ,
 * too: each of the image's instructions belongs to the row in which it starts, or to the first
 * differing row that it covers.
 */
static int decode_image(struct annotate *a, struct disasm *d, struct err *e)
{
	const struct annotate_input *in = a->in;
	size_t row = 0, cap = 0;

	for (size_t at = 0; a->ndiffer && at < in->len;) {
		struct annotate_image i = { .addr = in->addr + at }, *to;
		size_t r, len;

		disasm_one(d, i.addr, in->image + at, in->len - at, &i.insn);
		len = i.insn.len;
		while (row + 1 < a->nrows && a->row[row + 1].addr <= i.addr)
			row++;
		for (r = row; r < a->nrows && a->row[r].addr < in->addr + at + len; r++)
			if (a->row[r].differs)
				break;
		at += len;
		if (r >= a->nrows || a->row[r].addr >= in->addr + at)
			continue;
		to = add_image(a, &cap);
		if (!to)
			return err_nomem(e);
		*to = i;
		if (!a->row[r].nimage)
			a->row[r].image = (uint32_t)(a->nimages - 1);
		a->row[r].nimage++;
	}
	return 0;
}

/* Returns the row of an address at or behind row `from`, or NULL if no row has it. */
static struct annotate_row *row_of(struct annotate *a, size_t *from, uint64_t addr)
{
	const struct annotate_input *in = a->in;

	if (!a->nrows || addr < in->addr || addr - in->addr >= in->len)
		return NULL;
	while (*from + 1 < a->nrows && a->row[*from + 1].addr <= addr)
		(*from)++;
	return &a->row[*from];
}

/*
 * Adds the hits to the rows. A hit inside an instruction (at that time it was another one, or it is a
 * call, whose callers' addresses are inside of it) counts for that instruction.
 */
static void count_hits(struct annotate *a)
{
	const struct annotate_input *in = a->in;
	struct annotate_row *r;
	size_t row = 0;

	for (size_t i = 0; i < in->nhits; i++) {
		const struct annotate_hit *h = &in->hit[i];

		a->weight += h->weight;
		a->samples += h->samples;
		r = row_of(a, &row, h->addr);
		if (!r) {
			a->outside += h->weight;
			continue;
		}
		r->weight += h->weight;
		r->samples += h->samples;
	}
	row = 0;
	for (size_t i = 0; i < in->nbelow; i++) {
		r = row_of(a, &row, in->below[i].addr);
		if (!r)
			continue;
		r->below_weight += in->below[i].weight;
		r->below_samples += in->below[i].samples;
	}
	a->whole = in->whole ? in->whole : a->weight;
}

int annotate_build(struct annotate **out, const struct annotate_input *in, struct err *e)
{
	struct annotate *a = calloc(1, sizeof(*a));
	struct disasm *d = NULL;
	int ret;

	if (!a)
		return err_nomem(e);
	a->in = in;
	ret = disasm_open(&d, in->syntax, e);
	ret = ret ? ret : decode_live(a, d, e);
	ret = ret ? ret : decode_image(a, d, e);
	ret = ret ? ret : annotate_arrows(a, e);
	disasm_close(d);
	if (ret) {
		annotate_destroy(a);
		return ret;
	}
	count_hits(a);
	*out = a;
	return 0;
}

void annotate_destroy(struct annotate *a)
{
	if (!a)
		return;
	free(a->row);
	free(a->image);
	free(a->arrow);
	free(a->grid);
	free(a);
}
