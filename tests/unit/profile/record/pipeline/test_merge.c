/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of many rings, in the order of their times, none lost and none twice. */
#include "profile/record/pipeline/merge.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RINGS 7u

static struct ring ring[RINGS];
static struct merge *merge;

static struct ring *ring_of(void *ctx, unsigned int i)
{
	return &((struct ring *)ctx)[i];
}

static int setup(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RINGS; i++)
		if (ring_init(&ring[i], 1u << 16))
			return -1;
	merge = merge_create(ring_of, ring, RINGS);
	return merge ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	merge_destroy(merge);
	for (unsigned int i = 0; i < RINGS; i++)
		ring_deinit(&ring[i]);
	return 0;
}

static bool put(unsigned int i, uint64_t time_ns, uint32_t stack_len)
{
	struct sample *s = ring_reserve(&ring[i], sizeof(*s) + stack_len);

	if (!s)
		return false;
	memset(s, 0, sizeof(*s));
	s->time_ns = time_ns;
	s->vcpu = (uint16_t)i;
	s->stack_len = stack_len;
	ring_commit(&ring[i], sample_size(s));
	return true;
}

static void expect(unsigned int i, uint64_t time_ns)
{
	const struct sample *s = merge_next(merge);

	assert_non_null(s);
	assert_ptr_equal(merge_next(merge), s);
	assert_int_equal(s->time_ns, time_ns);
	assert_int_equal(s->vcpu, i);
	merge_release(merge);
}

static void by_time(void **state)
{
	(void)state;
	assert_null(merge_next(merge));
	put(3, 30, 0);
	put(1, 10, 0);
	put(1, 40, 5000);
	put(6, 20, 0);
	expect(1, 10);
	expect(6, 20);
	expect(3, 30);
	expect(1, 40);
	assert_null(merge_next(merge));
	put(6, 50, 0);
	expect(6, 50);
	assert_null(merge_next(merge));
}

/* A record that arrives in an empty ring is not overtaken by later ones. */
static void later_to_an_empty_ring(void **state)
{
	uint64_t now = clock_mono_ns();

	(void)state;
	put(0, now + 1000000000, 0);
	assert_int_equal(merge_next(merge)->vcpu, 0);
	put(5, now + 500000000, 0);
	put(2, now + 700000000, 0);
	expect(5, now + 500000000);
	expect(2, now + 700000000);
	/* Also to one that has just become empty. */
	put(5, now + 800000000, 0);
	expect(5, now + 800000000);
	expect(0, now + 1000000000);
	assert_null(merge_next(merge));
}

static void at_random(void **state)
{
	uint64_t last = 0, clock[RINGS] = { 0 }, taken = 0, given = 0;
	unsigned int seed = 1;

	(void)state;
	/* Times from the future, so that each ring counts at any moment. */
	for (unsigned int i = 0; i < RINGS; i++)
		clock[i] = UINT64_C(1) << 62;
	while (given < 20000 || taken < given) {
		unsigned int i = (unsigned int)rand_r(&seed) % RINGS;
		const struct sample *s;

		/* A ring's next is never before what was taken already. */
		clock[i] = (clock[i] > last ? clock[i] : last) + rand_r(&seed) % 100;
		if (given < 20000 && rand_r(&seed) % 2 &&
		    put(i, clock[i], (uint32_t)(rand_r(&seed) % 3000)))
			given++;
		s = rand_r(&seed) % 2 || given == 20000 ? merge_next(merge) : NULL;
		if (!s)
			continue;
		assert_true(s->time_ns >= last);
		last = s->time_ns;
		taken++;
		merge_release(merge);
	}
	assert_null(merge_next(merge));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_time, setup, teardown),
		cmocka_unit_test_setup_teardown(later_to_an_empty_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(at_random, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
