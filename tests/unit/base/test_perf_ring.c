/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call chains of the kernel's records: marks are no addresses, lengths are not believed, and what of a foreign program counts. */
#include "base/perf_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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
	assert_int_equal(perf_chain_foreign(ip, 4), 3);
	assert_int_equal(perf_chain_foreign(ip, 2), 2);
	assert_int_equal(perf_chain_foreign(ip + 2, 2), 1);
	assert_int_equal(perf_chain_foreign(ip, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains),
		cmocka_unit_test(foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
