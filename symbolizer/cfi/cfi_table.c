/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi_table.h"

#include "base/array.h"
#include "symbolizer/cfi/cfi_row.h"

#include <stdlib.h>
#include <string.h>

#define HDR_MAX 32u	/* bytes of .eh_frame_hdr before its table */
#define NEAR_BYTES 512u /* bytes of the table that are read at once when the search is this close */

/* A range of code, and the address of its FDE. */
struct cfi_span {
	uint64_t start, end, at;
};

enum cfi_found cfi_table_by_header(struct cfi_table *t, const struct cfi_source *src, uint64_t va,
				   uint64_t len, uint64_t *frame_va)
{
	const struct cfi_base base = { .base_va = va, .data_va = va };
	uint8_t bytes[HDR_MAX];
	size_t n = len < HDR_MAX ? (size_t)len : HDR_MAX;
	uint8_t version, frame, count, list;
	uint64_t entries;
	struct cursor c;

	*frame_va = 0;
	/* It may be the last thing on the last page. */
	n = src->read(src->ctx, va, bytes, n); /* It may be at the end of the last page. */
	if (n < 4)
		return CFI_HOLE;
	cursor_init(&c, bytes, n);
	version = cursor_u8(&c);
	frame = cursor_u8(&c);
	count = cursor_u8(&c);
	list = cursor_u8(&c);
	if (version != 1)
		return CFI_BAD;
	if (frame != CFI_PE_OMIT && !cfi_pointer(&c, frame, &base, frame_va))
		return CFI_BAD;
	if (count == CFI_PE_OMIT || list == CFI_PE_OMIT)
		return CFI_NONE;
	/* Relative to the header and of a fixed width: linkers write no other form. */
	if ((list != 0x3b && list != 0x33 && list != 0x3c) ||
	    !cfi_pointer(&c, count, &base, &entries))
		return CFI_BAD;
	*t = (struct cfi_table){
		.src = *src,
		.kind = CFI_EH_FRAME,
		.hdr_va = va,
		.list_va = va + c.pos,
		.width = list == 0x3c ? 8 : 4,
	};
	if (entries > CFI_MAX_LISTED || entries > (len - c.pos) / (2 * t->width))
		return CFI_BAD;
	t->count = (uint32_t)entries;
	return CFI_FOUND;
}

/* Decodes a number of the list, which is relative to the header. */
static uint64_t list_number(const struct cfi_table *t, const uint8_t *p)
{
	uint64_t v = 0;
	int32_t v32;

	if (t->width == 8) {
		memcpy(&v, p, 8);
	} else {
		memcpy(&v32, p, 4);
		v = (uint64_t)(int64_t)v32;
	}
	return t->hdr_va + v;
}

/* Finds the FDE of the last entry that begins at or before va. */
static enum cfi_found list_search(const struct cfi_table *t, uint64_t va, uint64_t *at)
{
	const uint32_t size = 2u * t->width, near = NEAR_BYTES / size;
	const struct cfi_source *src = &t->src;
	uint32_t lo = 0, hi = t->count, k;
	uint8_t bytes[NEAR_BYTES];
	size_t want;

	while (hi - lo > near) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (src->read(src->ctx, t->list_va + (uint64_t)mid * size, bytes, t->width) !=
		    t->width)
			return CFI_HOLE;
		if (list_number(t, bytes) <= va)
			lo = mid;
		else
			hi = mid;
	}
	want = (size_t)(hi - lo) * size;
	if (!want)
		return CFI_NONE;
	if (src->read(src->ctx, t->list_va + (uint64_t)lo * size, bytes, want) != want)
		return CFI_HOLE;
	for (k = hi - lo; k && list_number(t, bytes + (size_t)(k - 1) * size) > va; k--)
		;
	if (!k)
		return CFI_NONE;
	*at = list_number(t, bytes + (size_t)(k - 1) * size + t->width);
	return CFI_FOUND;
}

static int compare_span(const void *a, const void *b)
{
	const struct cfi_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

enum cfi_found cfi_table_by_section(struct cfi_table *t, const struct cfi_section *s)
{
	const struct cfi_place place = { &s->src, s->kind };
	struct cfi_entry *x = malloc(sizeof(*x));
	struct cfi_table made = { .src = s->src, .kind = s->kind };
	enum cfi_found why = x ? CFI_FOUND : CFI_BAD;
	uint64_t at = s->va, end = s->va + s->len, entry;
	size_t cap = 0;

	if (s->len > CFI_MAX_SECTION || end < at)
		why = CFI_BAD;
	while (why == CFI_FOUND && at < end) {
		why = cfi_entry_read(x, &place, at);
		if (why != CFI_FOUND)
			break;
		entry = at;
		at = x->next;
		/* The linker has dropped the function of an FDE without code. */
		if (x->is_cie || x->start == x->end || x->start == 0)
			continue;
		if (made.n == CFI_MAX_INDEXED || ARRAY_ROOM(made.index, made.n, cap)) {
			why = CFI_BAD;
			break;
		}
		made.index[made.n++] = (struct cfi_span){ x->start, x->end, entry };
	}
	free(x);
	if (why != CFI_FOUND && why != CFI_NONE) {
		cfi_table_deinit(&made);
		return why;
	}
	if (made.n)
		qsort(made.index, made.n, sizeof(*made.index), compare_span);
	*t = made;
	return CFI_FOUND;
}

void cfi_table_deinit(struct cfi_table *t)
{
	free(t->index);
	*t = (struct cfi_table){ .width = 0 };
}

static enum cfi_found index_search(const struct cfi_table *t, uint64_t va, uint64_t *at)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->index[mid].start <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || va >= t->index[lo - 1].end)
		return CFI_NONE;
	*at = t->index[lo - 1].at;
	return CFI_FOUND;
}

/* Reads the FDE that describes va into *x. */
static enum cfi_found find_entry(const struct cfi_table *t, uint64_t va, struct cfi_entry *x)
{
	const struct cfi_place place = { &t->src, t->kind };
	uint64_t at;
	enum cfi_found why = t->list_va ? list_search(t, va, &at) : index_search(t, va, &at);

	if (why != CFI_FOUND)
		return why;
	why = cfi_entry_read(x, &place, at);
	if (why != CFI_FOUND)
		return why == CFI_NONE ? CFI_BAD : why;
	if (x->is_cie)
		return CFI_BAD;
	return va < x->start || va >= x->end ? CFI_NONE : CFI_FOUND;
}

enum cfi_found cfi_table_end(const struct cfi_table *t, uint64_t va, uint64_t *end)
{
	struct cfi_entry x;
	enum cfi_found why = find_entry(t, va, &x);

	if (why == CFI_FOUND)
		*end = x.end;
	return why;
}

enum cfi_found cfi_table_row(const struct cfi_table *t, uint64_t va, struct cfi_row *row)
{
	struct cfi_entry x;
	enum cfi_found why = find_entry(t, va, &x);

	return why == CFI_FOUND ? cfi_entry_row(&x, va, row) : why;
}
