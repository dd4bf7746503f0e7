/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/orc.h"

#include "base/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES 6u
/*
 * Code bytes of one block of the index. The kernel's own .orc_lookup has blocks of
 * the same size; one made here needs no trust in, or presence of, the guest's.
 */
#define BLOCK_SHIFT 8

struct orc {
	uint64_t base, end; /* code covered */
	uint64_t slide;	    /* these are so much higher than linked */
	size_t n;
	size_t outside;
	uint32_t nblocks;
	struct orc_format format;
	uint32_t *off;	 /* of each entry, from base; ascending */
	uint32_t *block; /* first entry that starts at or after the block; nblocks + 1 of them */
	struct orc_entry *entry;
};

/* -- one form for all ------------------------------------------------------------- */

static struct orc_entry normalise(const struct orc_format *form, int16_t sp_offset,
				  int16_t bp_offset, uint16_t flags)
{
	struct orc_entry x = {
		.sp_offset = sp_offset,
		.bp_offset = bp_offset,
		.sp_reg = form->reg[flags & 15] & 15,
		.bp_reg = form->reg[flags >> 4 & 15] & 15,
	};
	unsigned int type = flags >> 8 & 3;

	switch (form->layout) {
	case ORC_LAYOUT_6_4:
		x.type = flags >> 8 & 7;
		x.signal = flags >> 11 & 1;
		break;
	case ORC_LAYOUT_6_3:
		x.type = x.sp_reg	 ? type + ORC_CALL
			 : flags & 0x800 ? ORC_END_OF_STACK
					 : ORC_UNDEFINED;
		x.signal = flags >> 10 & 1;
		break;
	case ORC_LAYOUT_4_18:
		x.type = x.sp_reg	 ? type + ORC_CALL
			 : flags & 0x400 ? ORC_END_OF_STACK
					 : ORC_UNDEFINED;
		x.signal = x.sp_reg && type;
		break;
	default:
		/* These kernels take every such entry for the end. */
		x.type = x.sp_reg ? type + ORC_CALL : ORC_END_OF_STACK;
		x.signal = x.sp_reg && type;
		break;
	}
	/* What a few odd entries say is not worth believing. */
	if (flags >> 12 || x.type > ORC_REGS_PARTIAL || !orc_format_good_regs(x.sp_reg, x.bp_reg) ||
	    (x.type >= ORC_CALL && !x.sp_reg))
		return (struct orc_entry){ .type = ORC_UNDEFINED };
	return x;
}

/* -- building ------------------------------------------------------------------ */

struct row {
	uint64_t va;
	struct orc_entry entry;
};

/*
 * By address. Of two at one address the one that knows more comes last, where
 * lookup finds it: an end of one piece of code is the start of another
 * (scripts/sorttable.c does so, too).
 */
static int cmp_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return (x->entry.type != ORC_UNDEFINED) - (y->entry.type != ORC_UNDEFINED);
}

/* Returns the number of rows whose address is in the text, sorted. */
static size_t read_rows(const struct orc_tables *t, const struct orc_format *form, struct row *row)
{
	struct cursor ips, entries;
	bool sorted = true;
	size_t n = 0;

	cursor_init(&ips, t->ips, t->n * 4);
	cursor_init(&entries, t->entries, t->n * ENTRY_BYTES);
	for (size_t i = 0; i < t->n; i++) {
		uint64_t va = t->ips_va + 4 * i + (uint64_t)(int64_t)(int32_t)cursor_u32(&ips);
		int16_t sp = (int16_t)cursor_u16(&entries), bp = (int16_t)cursor_u16(&entries);
		uint16_t flags = cursor_u16(&entries);

		if (va < t->text_start || va > t->text_end)
			continue;
		row[n] = (struct row){ va, normalise(form, sp, bp, flags) };
		sorted &= n == 0 || cmp_row(&row[n - 1], &row[n]) <= 0;
		n++;
	}
	/* Sorted at build time since "x86/unwind/orc: Remove boot-time ORC unwind tables sorting" (5.6). */
	if (!sorted)
		qsort(row, n, sizeof(*row), cmp_row);
	return n;
}

static int freeze(struct orc *o, const struct row *row)
{
	size_t at = 0;

	o->nblocks = (uint32_t)((o->end - o->base) >> BLOCK_SHIFT) + 1;
	o->off = malloc(o->n * sizeof(*o->off));
	o->entry = malloc(o->n * sizeof(*o->entry));
	o->block = malloc((o->nblocks + 1ul) * sizeof(*o->block));
	if (!o->off || !o->entry || !o->block)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		o->off[i] = (uint32_t)(row[i].va - o->base);
		o->entry[i] = row[i].entry;
	}
	for (uint32_t b = 0; b <= o->nblocks; b++) {
		while (at < o->n && (o->off[at] >> BLOCK_SHIFT) < b)
			at++;
		o->block[b] = (uint32_t)at;
	}
	return 0;
}

int orc_build(struct orc **out, const struct orc_tables *t, struct err *e)
{
	struct orc_format form;
	struct row *row;
	struct orc *o;
	size_t n;
	int ret;

	if (t->n == 0 || t->text_end <= t->text_start)
		return err_set(e, EINVAL, "the ORC table is empty");
	if (t->n > ORC_MAX_ENTRIES || t->text_end - t->text_start > ORC_MAX_SPAN)
		return err_set(e, E2BIG,
			       "%zu ORC entries over %llu bytes of code: more than we take", t->n,
			       (unsigned long long)(t->text_end - t->text_start));
	if (t->format)
		form = *t->format;
	else if (!orc_format_find(&form, t))
		return err_set(e, EINVAL,
			       "the %zu ORC entries make no sense in any known layout: they may be "
			       "in one of a newer kernel",
			       t->n);
	row = malloc(t->n * sizeof(*row));
	if (!row)
		return err_set(e, ENOMEM, "no memory for %zu ORC entries", t->n);
	n = read_rows(t, &form, row);
	if (n < t->n - n) {
		free(row);
		return err_set(e, EINVAL,
			       "%zu of %zu ORC entries are for addresses outside of the "
			       "kernel's text",
			       t->n - n, t->n);
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		free(row);
		return err_set(e, ENOMEM, "no memory for the ORC table");
	}
	o->n = n;
	o->base = row[0].va;
	o->end = t->text_end;
	o->outside = t->n - n;
	o->format = form;
	ret = freeze(o, row);
	free(row);
	if (ret) {
		orc_destroy(o);
		return err_set(e, -ret, "no memory for the ORC table");
	}
	*out = o;
	return 0;
}

void orc_destroy(struct orc *o)
{
	if (!o)
		return;
	free(o->off);
	free(o->block);
	free(o->entry);
	free(o);
}

int orc_slide(struct orc *o, uint64_t slide, struct err *e)
{
	if (o->slide || slide > UINT64_MAX - o->end)
		return err_set(e, EINVAL,
			       "ORC entries for 0x%" PRIx64 " to 0x%" PRIx64
			       " cannot be moved by 0x%" PRIx64,
			       o->base, o->end, slide);
	o->base += slide;
	o->end += slide;
	o->slide = slide;
	return 0;
}

uint64_t orc_slide_of(const struct orc *o)
{
	return o->slide;
}

/* -- asking -------------------------------------------------------------------- */

const struct orc_entry *orc_lookup(const struct orc *o, uint64_t va)
{
	uint32_t off, lo, hi;

	if (va < o->base || va >= o->end)
		return NULL;
	off = (uint32_t)(va - o->base);
	/* The answer lies before the first entry past the block, and there is one at offset 0. */
	lo = o->block[off >> BLOCK_SHIFT];
	hi = o->block[(off >> BLOCK_SHIFT) + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (o->off[mid] <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &o->entry[lo - 1] : NULL;
}

size_t orc_count(const struct orc *o)
{
	return o->n;
}

const struct orc_entry *orc_at(const struct orc *o, size_t i, uint64_t *va)
{
	*va = o->base + o->off[i];
	return &o->entry[i];
}

size_t orc_outside(const struct orc *o)
{
	return o->outside;
}

uint64_t orc_last(const struct orc *o)
{
	return o->base + o->off[o->n - 1];
}

enum orc_layout orc_layout(const struct orc *o)
{
	return o->format.layout;
}

const struct orc_format *orc_format_of(const struct orc *o)
{
	return &o->format;
}

const char *orc_layout_name(enum orc_layout l)
{
	static const char *const name[] = { "none", "4.14", "4.18", "6.3", "6.4" };

	return (unsigned int)l <= ORC_LAYOUT_6_4 ? name[l] : "none";
}
