/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/tables/memagg_pages.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_SHIFT 21u

struct memagg_pages_page {
	uint64_t va; /* address of its first byte */
	uint32_t space;
	uint8_t shift, region;
	uint64_t weight;
};

/* The 4 KiB pages of one 2 MiB range. */
struct memagg_pages_range {
	uint64_t weight, pages;
	uint64_t most; /* weight of the page that determines region */
	uint8_t region;
};

static bool same_page(const void *a, const void *b, const void *ctx)
{
	const struct memagg_pages_page *x = a, *y = b;

	(void)ctx;
	return x->va == y->va && x->space == y->space && x->shift == y->shift;
}

void memagg_pages_init(struct memagg_pages *p)
{
	memset(p, 0, sizeof(*p));
	p->page = TABLE_OF(struct memagg_pages_page, same_page);
}

void memagg_pages_deinit(struct memagg_pages *p)
{
	table_deinit(&p->page);
}

int memagg_pages_add(struct memagg_pages *p, uint32_t space, const struct mem_ref *ref,
		     uint64_t weight, struct err *e)
{
	struct memagg_pages_page page = { .space = space,
					  .shift = ref->guest_shift,
					  .region = ref->region };
	bool fresh;
	uint32_t at;

	if (!ref->guest_shift)
		return 0;
	page.va = ref->va >> ref->guest_shift << ref->guest_shift;
	if (table_add(&p->page, table_mix(page.va, (uint64_t)space << 8 | page.shift), &page, &at,
		      &fresh))
		return err_nomem(e);
	((struct memagg_pages_page *)p->page.item)[at].weight += weight;
	return 0;
}

/* -- ranges ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct memagg_pages_page *x = a, *y = b;

	if (x->shift != y->shift)
		return x->shift < y->shift ? -1 : 1;
	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->va < y->va ? -1 : x->va > y->va;
}

/* Makes ranges from the n 4 KiB pages, which are sorted by address. Returns their number. */
static size_t make_ranges(const struct memagg_pages_page *page, size_t n,
			  struct memagg_pages_range *out)
{
	size_t ranges = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || page[i].space != page[i - 1].space ||
		    page[i].va >> RANGE_SHIFT != page[i - 1].va >> RANGE_SHIFT)
			out[ranges++] = (struct memagg_pages_range){ 0 };
		if (page[i].weight >= out[ranges - 1].most) {
			out[ranges - 1].most = page[i].weight;
			out[ranges - 1].region = page[i].region;
		}
		out[ranges - 1].weight += page[i].weight;
		out[ranges - 1].pages++;
	}
	return ranges;
}

static int by_share(const void *a, const void *b)
{
	const struct memagg_huge *x = a, *y = b;

	return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : x->region - y->region;
}

static int fill_huge(struct memagg *m, const struct memagg_pages_range *range, size_t n,
		     struct err *e)
{
	m->huge = calloc(MEM_REGION_COUNT, sizeof(*m->huge));
	if (!m->huge)
		return err_nomem(e);
	for (unsigned int i = 0; i < MEM_REGION_COUNT; i++)
		m->huge[i].region = (uint8_t)i;
	for (size_t i = 0; i < n; i++) {
		struct memagg_huge *h = &m->huge[range[i].region];
		bool dense = range[i].pages >= MEMAGG_DENSE;

		h->pages += range[i].pages;
		h->ranges++;
		h->weight += range[i].weight;
		h->dense += dense;
		h->dense_weight += dense ? range[i].weight : 0;
	}
	qsort(m->huge, MEM_REGION_COUNT, sizeof(*m->huge), by_share);
	while (m->nhuge < MEM_REGION_COUNT && m->huge[m->nhuge].pages)
		m->nhuge++;
	return 0;
}

/* -- reach ------------------------------------------------------------------------------- */

/* A page, real or hypothetical. */
struct one {
	uint64_t weight;
	uint8_t shift;
};

static int busiest_first(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : y->shift - x->shift;
}

static void count_pages(struct one *one, size_t n, unsigned int percent, uint64_t count[3])
{
	uint64_t sum = 0, total = 0;

	qsort(one, n, sizeof(*one), busiest_first);
	for (size_t i = 0; i < n; i++)
		total += one[i].weight;
	count[0] = count[1] = count[2] = 0;
	for (size_t i = 0; i < n && (double)sum < (double)total * percent / 100; i++) {
		sum += one[i].weight;
		count[one[i].shift == 12 ? 0 : one[i].shift == 21 ? 1 : 2]++;
	}
}

/* The pages sorted by address, those of 4 KiB first, and the 2 MiB ranges that contain these. */
struct memagg_pages_layout {
	const struct memagg_pages_page *page;
	size_t n, small;
	const struct memagg_pages_range *range;
	size_t nranges;
};

static void fill_reach(struct memagg_reach *r, unsigned int percent,
		       const struct memagg_pages_layout *l, struct one *room)
{
	const struct memagg_pages_page *page = l->page;
	const struct memagg_pages_range *range = l->range;
	uint64_t count[3];
	size_t k = 0;

	r->percent = percent;
	for (size_t i = 0; i < l->n; i++)
		room[i] = (struct one){ page[i].weight, page[i].shift };
	count_pages(room, l->n, percent, r->now);
	for (size_t i = 0; i < l->nranges; i++)
		room[k++] = (struct one){ range[i].weight, RANGE_SHIFT };
	for (size_t i = l->small; i < l->n; i++)
		room[k++] = (struct one){ page[i].weight, page[i].shift };
	count_pages(room, k, percent, count);
	r->huge = count[0] + count[1] + count[2];
	/* Pages of a range are consecutive, in the order of ranges. */
	k = 0;
	for (size_t i = 0, at = 0; i < l->nranges; at += range[i++].pages) {
		if (range[i].pages >= MEMAGG_DENSE)
			room[k++] = (struct one){ range[i].weight, RANGE_SHIFT };
		for (size_t j = 0; range[i].pages < MEMAGG_DENSE && j < range[i].pages; j++)
			room[k++] = (struct one){ page[at + j].weight, page[at + j].shift };
	}
	for (size_t i = l->small; i < l->n; i++)
		room[k++] = (struct one){ page[i].weight, page[i].shift };
	count_pages(room, k, percent, count);
	r->huge_dense = count[0] + count[1] + count[2];
}

int memagg_pages_finish(struct memagg_pages *p, struct memagg *m, struct err *e)
{
	static const unsigned int percent[2] = { 90, 99 };
	size_t n = p->page.n, small = 0, nranges;
	/* Sort a copy: the table finds its items by their position. */
	cleanup_free struct memagg_pages_page *page = calloc(n + 1, sizeof(*page));
	cleanup_free struct memagg_pages_range *range = calloc(n + 1, sizeof(*range));
	cleanup_free struct one *room = calloc(n + 1, sizeof(*room));
	int ret;

	if (!page || !range || !room)
		return err_nomem(e);
	if (n)
		memcpy(page, p->page.item, n * sizeof(*page));
	qsort(page, n, sizeof(*page), by_place);
	while (small < n && page[small].shift == 12)
		small++;
	nranges = make_ranges(page, small, range);
	ret = fill_huge(m, range, nranges, e);
	for (unsigned int i = 0; i < 2 && !ret; i++) {
		const struct memagg_pages_layout l = { page, n, small, range, nranges };

		fill_reach(&m->reach[i], percent[i], &l, room);
	}
	return ret;
}
