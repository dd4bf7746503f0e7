/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often is looked before patience ends, by how long a look takes. */
#include "base/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIMIT_NS 1000000000u
#define BEGIN_NS 7u

static unsigned int looks_of(uint64_t each_ns)
{
	struct patience p = { 0 };
	uint64_t now = BEGIN_NS;
	unsigned int n = 0;

	for (; patience_is_left(&p, now, LIMIT_NS); now += each_ns)
		n++;
	return n;
}

static void it_ends_by_time(void **state)
{
	(void)state;
	assert_int_equal(looks_of(PATIENCE_LOOK_NS), LIMIT_NS / PATIENCE_LOOK_NS);
	assert_int_equal(looks_of(PATIENCE_LOOK_NS / 10), LIMIT_NS / (PATIENCE_LOOK_NS / 10));
}

static void slow_looks_and_jumps_do_not_end_it(void **state)
{
	(void)state;
	assert_int_equal(looks_of(PATIENCE_LOOK_NS * UINT64_C(50)), LIMIT_NS / PATIENCE_LOOK_NS);
	assert_int_equal(looks_of(60 * NSEC_PER_SEC), LIMIT_NS / PATIENCE_LOOK_NS);
}

static void a_clock_that_goes_back_spends_nothing(void **state)
{
	struct patience p = { 0 };

	(void)state;
	assert_true(patience_is_left(&p, 2 * NSEC_PER_SEC, LIMIT_NS));
	assert_true(patience_is_left(&p, NSEC_PER_SEC, LIMIT_NS));
	assert_int_equal(p.spent_ns, 0);
	assert_false(patience_is_left(&p, NSEC_PER_SEC, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_by_time),
		cmocka_unit_test(slow_looks_and_jumps_do_not_end_it),
		cmocka_unit_test(a_clock_that_goes_back_spends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
