/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/exittime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "profile/format/sink/memref.h"

static void alone(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	exittime_put(&b, UINT64_C(0x123456789a), EXITTIME_ALONE);
	assert_int_equal(b.len + 4, EXITTIME_SIZE);
	assert_true(exittime_parse(b.data, b.len) == UINT64_C(0x123456789a));
	/* cut, longer, or another's */
	assert_int_equal(exittime_parse(b.data, b.len - 1), 0);
	assert_int_equal(exittime_parse(b.data + 1, b.len - 1), 0);
	assert_int_equal(exittime_parse(NULL, 0), 0);
	buf_u32(&b, 0);
	assert_int_equal(exittime_parse(b.data, b.len), 0);
	b.data[0] ^= 1;
	assert_int_equal(exittime_parse(b.data, b.len - 4), 0);
	buf_deinit(&b);
}

/* Both are found, and the field keeps the length that records need. */
static void behind_memory(void **state)
{
	const struct mem_refs m = { .n = 2, .ref[1] = { .va = 0x1000, .size = 8 } };
	struct mem_refs again;
	struct buf b;

	(void)state;
	buf_init(&b);
	memref_put(&b, &m);
	assert_int_equal(exittime_parse(b.data, b.len), 0);
	exittime_put(&b, 77, EXITTIME_BEHIND);
	assert_int_equal(b.len + 4, memref_raw_size(&m) + EXITTIME_SIZE);
	assert_int_equal((b.len + 4) % 8, 0);
	assert_int_equal(exittime_parse(b.data, b.len), 77);
	assert_true(memref_parse(b.data, b.len, &again));
	assert_int_equal(again.n, 2);
	assert_true(again.ref[1].va == 0x1000);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(behind_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
