/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/live_copy.h"

#include "base/cleanup.h"
#include "symbolizer/kernel/livekernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE LIVE_PAGE
/* Bytes of one read at most. */
#define PIECE (UINT64_C(2) << 20)
#define MAX_NOTES LIVEKERNEL_MAX_NOTES

/* -- what is mapped ------------------------------------------------------------- */

static bool page_of(const struct live_guest *g, uint64_t va, struct live_page *out)
{
	uint8_t b;

	if (g->page)
		return g->page(g->ctx, va, out);
	*out = (struct live_page){ .end = va + PAGE, .write = true };
	return memory_read(&g->memory, MEMORY_KERNEL, va, &b, 1);
}

static uint8_t state_of(const struct live_page *p)
{
	return (uint8_t)(LIVE_MAPPED | (p->exec ? 0 : LIVE_DATA) |
			 (p->exec || p->write ? 0 : LIVE_CONST));
}

/* Returns the lowest mapped page that is connected to `inside`, at least `limit`. */
static uint64_t find_start(const struct live_guest *g, uint64_t inside, uint64_t limit)
{
	uint64_t found = inside;
	struct live_page p;

	for (uint64_t at = inside; at > limit && found - at < LIVEKERNEL_MAX_GAP;) {
		at -= PAGE;
		if (page_of(g, at, &p))
			found = at;
	}
	return found;
}

static uint64_t find_end(const struct live_guest *g, uint64_t inside, uint64_t limit)
{
	uint64_t found = inside + PAGE;
	struct live_page p;

	for (uint64_t at = found; at < limit && at - found < LIVEKERNEL_MAX_GAP;) {
		if (page_of(g, at, &p)) {
			at = p.end > at ? p.end : at + PAGE;
			found = at < limit ? at : limit;
		} else {
			at += PAGE;
		}
	}
	return found;
}

static void note_rights(struct live_copy *c)
{
	struct live_page p;
	uint64_t end = c->va + c->len;

	/* Reading a page shows whether it is missing. */
	if (!c->guest->page) {
		memset(c->state, LIVE_MAPPED, c->len / PAGE);
		return;
	}
	for (uint64_t at = c->va; at < end;) {
		if (!page_of(c->guest, at, &p)) {
			at += PAGE;
			continue;
		}
		if (p.end <= at || p.end > end)
			p.end = p.end <= at ? at + PAGE : end;
		memset(c->state + (at - c->va) / PAGE, state_of(&p), (p.end - at) / PAGE);
		at = p.end;
	}
}

static int live_copy_make(struct live_copy *c, struct err *e)
{
	c->bytes = calloc(1, c->len);
	c->state = calloc(1, c->len / PAGE);
	if (c->bytes && c->state)
		return 0;
	live_copy_close(c);
	return err_set(e, ENOMEM, "no memory for a copy of the guest's kernel (%zu MiB)",
		       c->len >> 20);
}

int live_copy_open(struct live_copy *c, const struct live_guest *g, uint64_t inside, struct err *e)
{
	uint64_t page = inside & ~(PAGE - 1), low = LIVEKERNEL_LOW, high = LIVEKERNEL_HIGH;
	struct live_page p;
	int ret;

	*c = (struct live_copy){ .guest = g };
	if (inside < LIVEKERNEL_LOW || inside >= LIVEKERNEL_HIGH)
		return err_set(e, EINVAL,
			       "0x%llx is no address of a Linux kernel's image, which lies between "
			       "0x%llx and 0x%llx",
			       (unsigned long long)inside, (unsigned long long)LIVEKERNEL_LOW,
			       (unsigned long long)LIVEKERNEL_HIGH);
	if (!page_of(g, page, &p))
		return err_set(e, EFAULT, "nothing is mapped at 0x%llx in the guest's kernel",
			       (unsigned long long)inside);
	if (page - low > LIVEKERNEL_MAX_BELOW)
		low = page - LIVEKERNEL_MAX_BELOW;
	if (high - page > LIVEKERNEL_MAX_ABOVE)
		high = page + LIVEKERNEL_MAX_ABOVE;
	c->va = find_start(g, page, low);
	c->len = (size_t)(find_end(g, page, high) - c->va);
	ret = live_copy_make(c, e);
	if (!ret)
		note_rights(c);
	return ret;
}

void live_copy_close(struct live_copy *c)
{
	free(c->bytes);
	free(c->state);
	c->bytes = c->state = NULL;
	c->len = 0;
}

/* -- reading ---------------------------------------------------------------------- */

/* Reads `want` bytes at `at`. A read ends at a missing page; the next one begins behind that. */
static void read_run(struct live_copy *c, size_t at, size_t want)
{
	const struct memory *m = &c->guest->memory;
	const size_t end = at + want;

	while (at < end) {
		size_t n = (size_t)(PIECE - ((c->va + at) & (PIECE - 1))), got;

		if (n > end - at)
			n = end - at;
		got = m->read(m->ctx, MEMORY_KERNEL, c->va + at, c->bytes + at, n);
		if (got > n)
			got = 0;
		for (size_t i = 0; i < got / PAGE; i++)
			c->state[at / PAGE + i] |= LIVE_READ;
		at += got / PAGE * PAGE;
		/* A part of the page may be returned; it counts as missing. */
		if (got < n)
			at += PAGE;
	}
}

static bool is_wanted(const struct live_copy *c, size_t page)
{
	return (c->state[page] & (LIVE_MAPPED | LIVE_TRIED)) == LIVE_MAPPED;
}

void live_copy_want(struct live_copy *c, uint64_t va, uint64_t len, uint64_t budget)
{
	uint64_t from = va > c->va ? va - c->va : 0, to = va + len - c->va;
	size_t page;

	if (!c->guest || va + len <= c->va || va + len < va || from >= c->len)
		return;
	to = to > c->len ? c->len : to;
	for (page = from / PAGE; page * PAGE < to && budget >= PAGE;) {
		size_t n = 0;

		while ((page + n) * PAGE < to && budget >= PAGE && is_wanted(c, page + n)) {
			c->state[page + n] |= LIVE_TRIED;
			budget -= PAGE;
			n++;
		}
		if (n)
			read_run(c, page * PAGE, n * PAGE);
		page += n ? n : 1;
	}
}

void live_copy_need(struct live_copy *c, uint64_t va, uint64_t len, bool tables)
{
	if (c->guest && tables && c->guest->reads_tables)
		c->guest->reads_tables(c->guest->ctx, true);
	live_copy_want(c, va, len, UINT64_MAX);
	if (c->guest && tables && c->guest->reads_tables)
		c->guest->reads_tables(c->guest->ctx, false);
}

void live_copy_show(struct live_copy *c, uint64_t va)
{
	const uint64_t page = (va - c->va) / PAGE;

	if (!c->guest || va < c->va || va - c->va >= c->len)
		return;
	live_copy_want(c, va, 1, PAGE);
	if (c->state[page] & LIVE_READ)
		c->state[page] |= LIVE_SHOWS;
}

/* -- a stored copy ---------------------------------------------------------------- */

#define MAGIC "kvmprof live\n\0\0"
#define VERSION 1u

/* In the number of a page: LIVE_SHOWS. */
#define NUMBER_SHOWS 0x80000000u
/* Bytes of a page of code that may differ: the kernel patches a few jumps while it runs. */
#define MOST_PATCHED 64u

/* The head is followed by the number of each page, then by the pages. */
struct stored {
	char magic[16];
	uint64_t inside, va, len, notes;
	uint32_t notes_len, npages, version, zero;
};
_Static_assert(sizeof(struct stored) == LIVE_COPY_HEAD, "the head of a stored copy");

uint8_t *live_copy_store(const struct live_copy *c, const struct live_copy_mark *mark, size_t *len)
{
	struct stored head = { .magic = MAGIC,
			       .inside = mark->inside,
			       .va = c->va,
			       .len = c->len,
			       .notes = mark->notes,
			       .notes_len = (uint32_t)mark->notes_len,
			       .version = VERSION };
	uint8_t *out, *page;
	uint32_t *number;

	for (size_t i = 0; i < c->len / PAGE; i++)
		head.npages += (c->state[i] & LIVE_READ) != 0;
	*len = sizeof(head) + head.npages * (sizeof(*number) + PAGE);
	out = malloc(*len);
	if (!out)
		return NULL;
	memcpy(out, &head, sizeof(head));
	number = (uint32_t *)(void *)(out + sizeof(head));
	page = (uint8_t *)(number + head.npages);
	for (uint32_t i = 0; i < c->len / PAGE; i++) {
		if (!(c->state[i] & LIVE_READ))
			continue;
		*number++ = i | (c->state[i] & LIVE_SHOWS ? NUMBER_SHOWS : 0);
		memcpy(page, c->bytes + i * PAGE, PAGE);
		page += PAGE;
	}
	return out;
}

static bool read_head(const uint8_t *bytes, size_t len, struct stored *out)
{
	if (len < sizeof(*out))
		return false;
	memcpy(out, bytes, sizeof(*out));
	return !memcmp(out->magic, MAGIC, sizeof(out->magic)) && out->version == VERSION &&
	       out->va >= LIVEKERNEL_LOW && out->va < LIVEKERNEL_HIGH && out->va % PAGE == 0 &&
	       out->len <= LIVEKERNEL_MAX_BELOW + LIVEKERNEL_MAX_ABOVE && out->len % PAGE == 0 &&
	       out->notes >= out->va && out->notes - out->va < out->len && out->notes_len &&
	       out->notes_len <= MAX_NOTES && out->notes_len <= out->len - (out->notes - out->va) &&
	       out->npages <= out->len / PAGE;
}

bool live_copy_mark(const uint8_t *bytes, size_t len, struct live_copy_mark *out)
{
	struct stored head;

	if (!read_head(bytes, len, &head))
		return false;
	*out = (struct live_copy_mark){ head.inside, head.notes, head.notes_len };
	return true;
}

/* Returns whether the byte at `at` is part of an address of 32 bits that KASLR has moved, and stores where that ends. */
static bool is_moved(const uint8_t *a, const uint8_t *b, size_t at, uint64_t slide, size_t *end)
{
	for (size_t from = at > 3 ? at - 3 : 0; slide && from <= at && from + 4 <= PAGE; from++) {
		uint32_t x, y;

		memcpy(&x, a + from, sizeof(x));
		memcpy(&y, b + from, sizeof(y));
		if (y - x == (uint32_t)slide) {
			*end = from + sizeof(x);
			return true;
		}
	}
	return false;
}

/* Returns whether two pages have the same code, `slide` bytes apart. */
static bool is_same_code(const uint8_t *a, const uint8_t *b, uint64_t slide)
{
	unsigned int patched = 0;

	for (size_t at = 0; at < PAGE;) {
		size_t next = at + 1;

		if (a[at] != b[at] && !is_moved(a, b, at, slide, &next))
			patched++;
		at = next;
	}
	return patched <= MOST_PATCHED;
}

/* Returns whether the guest has the copy's code where that is in memory. */
static bool has_code(const struct live_copy *c, const struct live_guest *g, uint64_t slide)
{
	uint8_t page[PAGE];
	unsigned int n = 0;

	for (size_t i = 0; i < c->len / PAGE; i++) {
		if (!(c->state[i] & LIVE_SHOWS) ||
		    !memory_read(&g->memory, MEMORY_KERNEL, c->va + i * PAGE + slide, page, PAGE))
			continue;
		if (!is_same_code(c->bytes + i * PAGE, page, slide))
			return false;
		n++;
	}
	return n >= LIVE_COPY_CODE;
}

/* Returns whether the guest has the copy's notes where they must be, or its code if the notes are absent. */
static bool is_kernel_of(const struct live_copy *c, const struct live_guest *g,
			 const struct stored *head, uint64_t slide)
{
	cleanup_free uint8_t *notes = malloc(head->notes_len);

	if (!notes)
		return false;
	if (!memory_read(&g->memory, MEMORY_KERNEL, head->notes + slide, notes, head->notes_len))
		return has_code(c, g, slide);
	return !memcmp(notes, c->bytes + (head->notes - c->va), head->notes_len);
}

bool live_copy_load(struct live_copy *c, const struct live_guest *g, uint64_t inside,
		    const uint8_t *bytes, size_t len, uint64_t *slide)
{
	struct stored head;
	struct err ignored = { 0 };

	if (!read_head(bytes, len, &head) || (inside - head.inside) % LIVE_COPY_SLIDE ||
	    len != sizeof(head) + head.npages * (sizeof(uint32_t) + PAGE))
		return false;
	*c = (struct live_copy){ .va = head.va, .len = head.len };
	if (live_copy_make(c, &ignored))
		return false;
	for (uint32_t i = 0; i < head.npages; i++) {
		uint32_t number, page;

		memcpy(&number, bytes + sizeof(head) + i * sizeof(page), sizeof(page));
		page = number & ~NUMBER_SHOWS;
		if (page >= c->len / PAGE)
			continue;
		memcpy(c->bytes + page * PAGE,
		       bytes + sizeof(head) + head.npages * sizeof(page) + i * PAGE, PAGE);
		c->state[page] = LIVE_MAPPED | LIVE_TRIED | LIVE_READ;
		c->state[page] |= number & NUMBER_SHOWS ? LIVE_SHOWS : 0;
	}
	*slide = inside - head.inside;
	if (is_kernel_of(c, g, &head, *slide))
		return true;
	live_copy_close(c);
	return false;
}
