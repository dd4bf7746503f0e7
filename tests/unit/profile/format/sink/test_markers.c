/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of a run's markers: names, order, what is kept of too many. */
#include "profile/format/sink/markers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *clean(const char *name)
{
	static char out[MARKER_NAME];

	markers_clean_name(out, name, strlen(name));
	return out;
}

static void names(void **state)
{
	char longest[3 * MARKER_NAME];

	(void)state;
	assert_string_equal(clean("init: start"), "init: start");
	assert_string_equal(clean(" \t x \n"), "x");
	assert_string_equal(clean("a\033[1mb\xc3\xa4"), "a?[1mb??");
	assert_string_equal(clean(""), "marker");
	assert_string_equal(clean("  "), "marker");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(strlen(clean(longest)), MARKER_NAME - 1);
}

static void kinds(void **state)
{
	enum marker_kind k;

	(void)state;
	for (unsigned int i = 0; i < MARKER_KINDS; i++) {
		const char *name = markers_kind_name((enum marker_kind)i);

		assert_true(markers_kind_parse(name, strlen(name), &k));
		assert_int_equal(k, i);
		assert_false(markers_kind_parse(name, strlen(name) - 1, &k));
	}
}

static void taken_by_time(void **state)
{
	struct markers m;
	struct marker x;

	(void)state;
	markers_init(&m);
	assert_false(markers_take(&m, UINT64_MAX, &x));
	markers_add(&m, MARKER_CONSOLE, "two", 3, 200, 0);
	markers_add(&m, MARKER_CONTROL, "one", 3, 100, 1);
	markers_note(&m, MARKER_BREAKPOINT, "mine", 4, 150, 0);
	markers_add(&m, MARKER_CONSOLE, "three", 5, 300, 0);
	assert_false(markers_take(&m, 99, &x));
	assert_true(markers_take(&m, 250, &x));
	assert_string_equal(x.name, "one");
	assert_int_equal(x.cpu, 1);
	assert_true(markers_take(&m, 250, &x));
	assert_string_equal(x.name, "two");
	assert_false(markers_take(&m, 250, &x));
	assert_true(markers_take(&m, UINT64_MAX, &x));
	assert_string_equal(x.name, "three");
	assert_false(markers_take(&m, UINT64_MAX, &x));
	markers_deinit(&m);
}

static void as_json(void **state)
{
	struct markers m;
	struct json_writer w;
	struct buf b;

	(void)state;
	buf_init(&b);
	markers_init(&m);
	markers_add(&m, MARKER_STOP, "b\"\\", 3, 2500, 0);
	markers_add(&m, MARKER_START, "a", 1, 900, 0);
	json_begin_members(&w, &b);
	markers_json(&m, 1000, &w);
	buf_u8(&b, 0);
	assert_string_equal((const char *)b.data,
			    "\"markers\":[{\"name\":\"a\",\"kind\":\"start\",\"time_ns\":0,"
			    "\"mono_ns\":900},{\"name\":\"b\\\"\\\\\",\"kind\":\"stop\","
			    "\"time_ns\":1500,\"mono_ns\":2500}],\"markers_beyond\":0");
	buf_deinit(&b);
	markers_deinit(&m);
}

static void too_many(void **state)
{
	struct markers m;
	struct marker x;
	struct json_writer w;
	struct buf b;
	size_t n = 0;

	(void)state;
	buf_init(&b);
	markers_init(&m);
	for (unsigned int i = 0; i < MARKERS_MAX + 7; i++)
		markers_note(&m, MARKER_BREAKPOINT, "x", 1, i, 0);
	for (unsigned int i = 0; i < 10; i++)
		markers_add(&m, MARKER_CONSOLE, "x", 1, i, 0);
	assert_int_equal(m.n, MARKERS_MAX);
	/* the profile has them all the same */
	while (markers_take(&m, UINT64_MAX, &x))
		n++;
	assert_int_equal(n, 10);
	json_begin_members(&w, &b);
	markers_json(&m, 0, &w);
	buf_u8(&b, 0);
	assert_non_null(strstr((const char *)b.data, "],\"markers_beyond\":17"));
	buf_deinit(&b);
	markers_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),	 cmocka_unit_test(kinds),
		cmocka_unit_test(taken_by_time), cmocka_unit_test(as_json),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
