/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/perf_ring.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int perf_ring_map(struct perf_ring *r, int fd, size_t pages)
{
	void *p;

	r->size = pages * page_size();
	p = mmap(NULL, page_size() + r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r->page = p == MAP_FAILED ? NULL : p;
	return r->page ? 0 : -errno;
}

void perf_ring_unmap(struct perf_ring *r)
{
	if (r->page)
		munmap(r->page, page_size() + r->size);
	r->page = NULL;
}

static void copy(const struct perf_ring *r, uint64_t at, void *to, size_t n)
{
	const char *data = (const char *)r->page + page_size();
	size_t from = at & (r->size - 1);
	size_t first = n < r->size - from ? n : r->size - from;

	memcpy(to, data + from, first);
	memcpy((char *)to + first, data, n - first);
}

/*
 * Copies the record at position `at`; only its header if it is too long. Returns false if there is
 * none or it is malformed.
 */
static bool record_at(const struct perf_ring *r, uint64_t at, uint64_t head, union perf_record *out)
{
	if (head - at < sizeof(out->h))
		return false;
	copy(r, at, &out->h, sizeof(out->h));
	if (out->h.size < sizeof(out->h) || out->h.size > head - at)
		return false;
	if (out->h.size <= sizeof(*out))
		copy(r, at, out, out->h.size);
	return true;
}

static void set_tail(struct perf_ring *r, uint64_t tail)
{
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

uint64_t perf_ring_head(const struct perf_ring *r)
{
	return r->page ? __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE) : 0;
}

void perf_ring_visit(const struct perf_ring *r, uint64_t head,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx)
{
	union perf_record record;

	for (uint64_t at = r->page ? r->page->data_tail : head; record_at(r, at, head, &record);
	     at += record.h.size)
		if (record.h.size <= sizeof(record))
			take(ctx, &record.h);
}

bool perf_ring_first(struct perf_ring *r, uint64_t head, union perf_record *out)
{
	uint64_t at = r->page ? r->page->data_tail : head;

	for (; record_at(r, at, head, out); at += out->h.size)
		if (out->h.size <= sizeof(*out)) {
			set_tail(r, at);
			return true;
		}
	if (r->page)
		set_tail(r, head);
	return false;
}

void perf_ring_skip(struct perf_ring *r, const union perf_record *first)
{
	set_tail(r, r->page->data_tail + first->h.size);
}

void perf_ring_drain(struct perf_ring *r,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx)
{
	uint64_t head = perf_ring_head(r);

	if (!r->page)
		return;
	perf_ring_visit(r, head, take, ctx);
	set_tail(r, head);
}

uint64_t perf_record_word(const struct perf_event_header *h, unsigned int i)
{
	uint64_t v;

	memcpy(&v, (const char *)(h + 1) + i * sizeof(v), sizeof(v));
	return v;
}

unsigned int perf_record_chain(const struct perf_event_header *h, unsigned int at, uint64_t *ip,
			       unsigned int max)
{
	const uint64_t words = (h->size - sizeof(*h)) / sizeof(uint64_t);
	const uint64_t n = at < words ? perf_record_word(h, at) : 0;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n && kept < max && at + 1 + i < words; i++) {
		uint64_t address = perf_record_word(h, at + 1 + i);

		if (address < PERF_CONTEXT_MAX)
			ip[kept++] = address;
	}
	return kept;
}

unsigned int perf_chain_trusted(const uint64_t *ip, unsigned int n)
{
	unsigned int kernel = 0;

	while (kernel < n && ip[kernel] >> 63)
		kernel++;
	return kernel < n ? kernel + 1 : kernel;
}
