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

void perf_ring_drain(struct perf_ring *r,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx)
{
	union {
		struct perf_event_header h;
		char bytes[PERF_RING_RECORD_MAX];
	} record;
	uint64_t head, tail;

	if (!r->page)
		return;
	head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	for (tail = r->page->data_tail; head - tail >= sizeof(record.h); tail += record.h.size) {
		copy(r, tail, &record.h, sizeof(record.h));
		if (record.h.size < sizeof(record.h) || record.h.size > head - tail)
			break;
		if (record.h.size > sizeof(record))
			continue;
		copy(r, tail, &record, record.h.size);
		take(ctx, &record.h);
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
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

unsigned int perf_chain_foreign(const uint64_t *ip, unsigned int n)
{
	unsigned int kernel = 0;

	while (kernel < n && ip[kernel] >> 63)
		kernel++;
	return kernel < n ? kernel + 1 : kernel;
}
