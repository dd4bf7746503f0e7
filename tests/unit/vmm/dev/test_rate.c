/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits in virtual time: how much gets through, and when. */
#include "vmm/dev/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

/* Returns how many operations of so many bytes begin until `end` if the next one is always there. */
static uint64_t begun(struct rate *r, uint64_t now, uint64_t end, uint64_t bytes)
{
	uint64_t n = 0;

	for (; n < 1000000; n++) {
		if (rate_next_ns(r) > now)
			now = rate_next_ns(r);
		if (now >= end)
			break;
		rate_take(r, now, bytes);
	}
	return n;
}

static struct rate limited(uint64_t bytes, uint64_t operations)
{
	struct rate r;

	rate_init(&r, &(struct rate_limit){ bytes, operations });
	return r;
}

static void has_no_limit(void **state)
{
	struct rate r = limited(0, 0);

	(void)state;
	assert_false(rate_is_limited(&r));
	assert_int_equal(begun(&r, 5 * S, 5 * S + 1, UINT64_MAX), 1000000);
}

/* The rate allows the bytes of a full bucket and those that flow in, within one operation of it. */
static void keeps_the_rate_of_bytes(void **state)
{
	static const uint64_t sizes[] = { 512, 4096, 100000, MIB };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rate r = limited(MIB, 0);
		uint64_t n = begun(&r, 100 * S, 110 * S, sizes[i]);

		assert_true(rate_is_limited(&r));
		assert_in_range(n * sizes[i], 10 * MIB, 10 * MIB + MIB / 10 + 2 * sizes[i]);
	}
}

static void keeps_the_rate_of_operations(void **state)
{
	struct rate r = limited(0, 50);

	(void)state;
	assert_in_range(begun(&r, 100 * S, 120 * S, MIB), 1000, 1006);
}

static void keeps_the_lower_rate(void **state)
{
	struct rate r = limited(MIB, 10);

	(void)state;
	assert_in_range(begun(&r, S, 11 * S, 512), 100, 102);	   /* operations */
	assert_in_range(begun(&r, 100 * S, 110 * S, MIB), 10, 12); /* bytes */
}

/* A pause fills the bucket, and no more than that. */
static void a_pause_saves_no_more_than_a_burst(void **state)
{
	struct rate r = limited(0, 100);

	(void)state;
	assert_in_range(begun(&r, S, S + 1, 0), 10, 12);
	assert_int_equal(begun(&r, S + 1, S + 2, 0), 0);
	assert_in_range(begun(&r, 1000 * S, 1000 * S + 1, 0), 10, 12);
}

/* The one that is larger than the bucket begins at once; the next one waits for all of it. */
static void a_large_one_delays_the_next(void **state)
{
	struct rate r = limited(MIB, 0);

	(void)state;
	assert_true(rate_next_ns(&r) <= 7 * S);
	rate_take(&r, 7 * S, 4 * MIB);
	assert_int_equal(rate_next_ns(&r), 11 * S - RATE_BURST_NS);
}

/* A clock near its begin, and amounts that no time is enough for. */
static void does_not_wrap(void **state)
{
	struct rate r = limited(1, 1);

	(void)state;
	rate_take(&r, 0, 0);
	assert_int_equal(rate_next_ns(&r), S);
	rate_take(&r, UINT64_MAX, UINT64_MAX);
	assert_int_equal(rate_next_ns(&r), UINT64_MAX);
	rate_take(&r, 0, UINT64_MAX);
	assert_int_equal(rate_next_ns(&r), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_no_limit),
		cmocka_unit_test(keeps_the_rate_of_bytes),
		cmocka_unit_test(keeps_the_rate_of_operations),
		cmocka_unit_test(keeps_the_lower_rate),
		cmocka_unit_test(a_pause_saves_no_more_than_a_burst),
		cmocka_unit_test(a_large_one_delays_the_next),
		cmocka_unit_test(does_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
