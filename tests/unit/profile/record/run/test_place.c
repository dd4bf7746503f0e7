/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The addresses of a PLACE: functions by name, number and file, offsets, all of a name; and what is refused. */
#include "profile/record/run/place.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BASE 0xffffffff81000000ull

static struct target t;

static int setup(void **state)
{
	static const struct {
		uint64_t off;
		const char *name, *file;
	} row[] = {
		{ 0x100, "two", "a.c" },   { 0x200, "two", "c++/b.c" }, { 0x300, "four", NULL },
		{ 0x400, "four", NULL },   { 0x500, "four", NULL },	{ 0x600, "four", NULL },
		{ 0x700, "one", "one.c" },
	};

	(void)state;
	t = (struct target){ .name = "image", .symbols = symtab_create() };
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(symtab_set_file(t.symbols, row[i].file), 0);
		assert_int_equal(symtab_add(t.symbols, BASE + row[i].off, 0x40, 't', row[i].name),
				 0);
	}
	return symtab_freeze(t.symbols, NULL);
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(t.symbols);
	return 0;
}

static void is_at(const char *text, unsigned int n, uint64_t first, uint64_t last)
{
	struct run_place place;
	struct err e = { 0 };

	if (run_place_find(&t, text, &place, &e))
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(place.n, n);
	assert_int_equal(place.addr[0], first);
	assert_int_equal(place.addr[n - 1], last);
}

static void refused(const char *text, int code, const char *why)
{
	struct run_place place;
	struct err e = { 0 };

	assert_int_equal(run_place_find(&t, text, &place, &e), -code);
	if (!strstr(e.text, why))
		fail_msg("%s: %s", text, e.text);
}

static void places(void **state)
{
	(void)state;
	is_at("one", 1, BASE + 0x700, BASE + 0x700);
	is_at("one+0x3f", 1, BASE + 0x73f, BASE + 0x73f);
	is_at("0x1234", 1, 0x1234, 0x1234);
	is_at("two#2", 1, BASE + 0x200, BASE + 0x200);
	is_at("two#2+0x4", 1, BASE + 0x204, BASE + 0x204);
	is_at("two@a.c", 1, BASE + 0x100, BASE + 0x100);
	is_at("two@a.c+8", 1, BASE + 0x108, BASE + 0x108);
	is_at("two@c++/b.c", 1, BASE + 0x200, BASE + 0x200);
	is_at("two@c++/b.c+8", 1, BASE + 0x208, BASE + 0x208);
	is_at("two#all", 2, BASE + 0x100, BASE + 0x200);
	is_at("two#all+0x10", 2, BASE + 0x110, BASE + 0x210);
	is_at("four#4", 1, BASE + 0x600, BASE + 0x600);
}

static void what_is_refused(void **state)
{
	(void)state;
	refused("two", EINVAL,
		"two#1 (0xffffffff81000100, a.c), two#2 (0xffffffff81000200, c++/b.c)");
	refused("four#all", EINVAL,
		"'four#all' is 4 functions, and a processor has debug registers for 3");
	refused("one+0x40", EINVAL, "'one' has 64 bytes: no offset of 64");
	refused("two#all+0x40", EINVAL, "'two' has 64 bytes");
	refused("one+x", EINVAL, "bad offset in 'one+x'");
	refused("+1", EINVAL, "bad symbol '+1'");
	refused("0xzz", EINVAL, "bad address '0xzz'");
	refused("0x0", EINVAL, "bad address '0x0'");
	refused("two@d.c", ENOENT, "no 'two' is in d.c");
	refused("four@d.c", ENOENT, "neither debug information nor symbols");
	t.live = true;
	refused("one", EINVAL, "too late");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(places, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
