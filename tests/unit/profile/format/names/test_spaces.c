/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings over time: mappings that grow, that hide others, and too many of them. */
#include "profile/format/names/spaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define AT UINT64_C(0x7f0000000000)

static struct spaces s;

static int setup(void **state)
{
	(void)state;
	s = (struct spaces){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spaces_deinit(&s);
	return 0;
}

static void add(uint32_t pid, uint64_t addr, uint64_t end, uint64_t pgoff, uint32_t dso)
{
	const struct mapping m = { addr, end, pgoff, dso };

	assert_int_equal(spaces_map(&s, pid, &m, NULL), 0);
}

static uint32_t dso_at(uint32_t space, uint64_t addr)
{
	const struct mapping *m = spaces_find(&s, space, addr);

	return m ? m->dso : 0;
}

/* Code made at run time, told anew each time that it has grown: no new space each time. */
static void growing(void **state)
{
	uint32_t space;

	(void)state;
	add(1, AT - 0x3000, AT - 0x1000, 0, 5);
	add(1, AT + 0x100000000, AT + 0x100001000, 0, 6);
	for (uint64_t i = 1; i <= 30000; i++)
		add(1, AT, AT + 4096 * i, 0, 7);
	space = spaces_of(&s, 1);
	assert_true(s.n <= 2);
	assert_int_equal(s.maps, 3);
	assert_int_equal(dso_at(space, AT + 4096 * 29999), 7);
	assert_int_equal(dso_at(space, AT + 4096 * 30000), 0);
	assert_int_equal(dso_at(space, AT - 0x2000), 5);
	/* Downwards, and over two pieces with a hole between them. */
	add(1, AT + 0x40000000, AT + 0x40001000, 0x2000, 8);
	add(1, AT + 0x40002000, AT + 0x40003000, 0x4000, 8);
	add(1, AT + 0x3ffff000, AT + 0x40003000, 0x1000, 8);
	assert_int_equal(spaces_of(&s, 1), space);
	assert_int_equal(s.maps, 4);
	assert_int_equal(dso_at(space, AT + 0x40001800), 8);
}

/* A mapping that hides another one leaves the old space unchanged. */
static void hiding(void **state)
{
	uint32_t before, after;

	(void)state;
	add(1, AT, AT + 0x2000, 0, 7);
	before = spaces_of(&s, 1);
	add(1, AT, AT + 0x3000, 0x1000, 7); /* another part of the file */
	after = spaces_of(&s, 1);
	assert_int_not_equal(before, after);
	assert_int_equal(spaces_find(&s, before, AT)->pgoff, 0);
	assert_int_equal(spaces_find(&s, after, AT)->pgoff, 0x1000);
	add(1, AT, AT + 0x3000, 0x1000, 9); /* another file */
	assert_int_equal(dso_at(after, AT), 7);
	assert_int_equal(dso_at(spaces_of(&s, 1), AT), 9);
	/* A part of what is there hides nothing of it, but is not what is there. */
	before = spaces_of(&s, 1);
	add(1, AT + 0x1000, AT + 0x2000, 0x2000, 9);
	assert_int_equal(dso_at(before, AT), 9);
	/* A space that is shared stays as it was when one of the two grows. */
	assert_int_equal(spaces_fork(&s, 2, 1, NULL), 0);
	before = spaces_of(&s, 2);
	add(2, AT, AT + 0x8000, 0x1000, 9);
	assert_int_not_equal(spaces_of(&s, 2), before);
	assert_int_equal(dso_at(spaces_of(&s, 1), AT + 0x7000), 0);
}

/* Over the cap: no names for that process, not an older mapping's, and no error. */
static void too_many(void **state)
{
	uint32_t old;

	(void)state;
	add(1, AT, AT + 0x2000, 0, 7);
	add(2, AT, AT + 0x2000, 0, 7);
	old = spaces_of(&s, 1);
	s.maps = SPACES_MAX_MAPS;
	add(1, AT, AT + 0x2000, 0, 8);
	assert_int_equal(s.left_out, 1);
	assert_int_equal(spaces_of(&s, 1), SPACE_NONE);
	assert_int_equal(dso_at(old, AT), 7);
	assert_int_equal(dso_at(spaces_of(&s, 2), AT), 7);
	add(1, AT, AT + 0x2000, 0, 8);
	assert_int_equal(s.left_out, 2);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(growing), T(hiding), T(too_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
