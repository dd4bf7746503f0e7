/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring, and call chains of its records: marks are no addresses, lengths are not believed, and what of a foreign
 * program counts.
 */
#include "base/perf_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL UINT64_C(0xffffffff81000000)
#define MARK_KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)
#define MARK_USER ((uint64_t)PERF_CONTEXT_USER)

static struct {
	struct perf_event_header h;
	uint64_t word[8];
} record;

static unsigned int chain(unsigned int words, uint64_t said, unsigned int max, uint64_t *ip)
{
	static const uint64_t all[] = { 77,	    0,	       MARK_KERNEL, KERNEL + 1,
					KERNEL + 2, MARK_USER, 0x1000,	    0x2000 };

	record.h.size = (uint16_t)(sizeof(record.h) + words * sizeof(uint64_t));
	memcpy(record.word, all, sizeof(all));
	record.word[1] = said;
	assert_int_equal(perf_record_word(&record.h, 0), 77);
	return perf_record_chain(&record.h, 1, ip, max);
}

static void chains(void **state)
{
	uint64_t ip[8];

	(void)state;
	assert_int_equal(chain(8, 6, 8, ip), 4);
	assert_int_equal(ip[0], KERNEL + 1);
	assert_int_equal(ip[3], 0x2000);
	assert_int_equal(chain(8, 6, 3, ip), 3);
	assert_int_equal(chain(8, 2, 8, ip), 1);
	/* Longer than the record, which also may end before the length. */
	assert_int_equal(chain(5, UINT64_MAX, 8, ip), 2);
	assert_int_equal(chain(1, 6, 8, ip), 0);
}

static void foreign(void **state)
{
	const uint64_t ip[] = { KERNEL, KERNEL, 0x1000, 0x2000 };

	(void)state;
	assert_int_equal(perf_chain_trusted(ip, 4), 3);
	assert_int_equal(perf_chain_trusted(ip, 2), 2);
	assert_int_equal(perf_chain_trusted(ip + 2, 2), 1);
	assert_int_equal(perf_chain_trusted(ip, 0), 0);
}

/* -- the ring -------------------------------------------------------------------------------- */

#define DATA 4096u /* bytes */

static struct perf_ring ring;
static unsigned int seen[16], nseen;

static void ring_put(uint32_t type, uint16_t size)
{
	const struct perf_event_header h = { .type = type, .size = size };
	char *data = (char *)ring.page + sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof(h); i++)
		data[(ring.page->data_head + i) % DATA] = ((const char *)&h)[i];
	ring.page->data_head += size;
}

static void ring_take(void *ctx, const struct perf_event_header *h)
{
	(void)ctx;
	assert_true(nseen < 16);
	seen[nseen++] = h->type;
}

/* Records that go over the end of the ring, one that is too long, and what is no record. */
static void rings(void **state)
{
	union perf_record r;
	uint64_t head;

	(void)state;
	ring.size = DATA;
	ring.page = calloc(1, (size_t)sysconf(_SC_PAGESIZE) + DATA);
	assert_non_null(ring.page);
	ring.page->data_head = ring.page->data_tail = DATA - 12;
	assert_false(perf_ring_first(&ring, perf_ring_head(&ring), &r));
	ring_put(1, 32);
	ring_put(2, PERF_RING_RECORD_MAX + 8);
	ring_put(3, 16);
	head = perf_ring_head(&ring);
	ring_put(4, 8);
	perf_ring_visit(&ring, head, ring_take, NULL);
	assert_int_equal(nseen, 2);
	assert_int_equal(seen[1], 3);
	assert_true(perf_ring_first(&ring, head, &r) && perf_ring_first(&ring, head, &r));
	assert_int_equal(r.h.type, 1);
	perf_ring_skip(&ring, &r);
	assert_true(perf_ring_first(&ring, head, &r));
	assert_int_equal(r.h.type, 3);
	perf_ring_skip(&ring, &r);
	/* Later records stay. */
	assert_false(perf_ring_first(&ring, head, &r));
	assert_int_equal(ring.page->data_tail, head);
	perf_ring_drain(&ring, ring_take, NULL);
	assert_int_equal(seen[2], 4);
	assert_int_equal(nseen, 3);
	/* A size of nothing, and one beyond what is there. */
	ring_put(5, 8);
	ring_put(6, 0);
	ring.page->data_head += 64;
	perf_ring_drain(&ring, ring_take, NULL);
	assert_int_equal(nseen, 4);
	ring_put(7, 64);
	ring.page->data_head -= 8;
	assert_false(perf_ring_first(&ring, perf_ring_head(&ring), &r));
	assert_int_equal(ring.page->data_tail, ring.page->data_head);
	free(ring.page);
	ring.page = NULL;
	assert_int_equal(perf_ring_head(&ring), 0);
	assert_false(perf_ring_first(&ring, 0, &r));
	perf_ring_visit(&ring, 0, ring_take, NULL);
	perf_ring_drain(&ring, ring_take, NULL);
	assert_int_equal(nseen, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains),
		cmocka_unit_test(foreign),
		cmocka_unit_test(rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
