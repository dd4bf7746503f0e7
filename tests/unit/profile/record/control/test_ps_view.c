/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The task list as a table, and the text of the status line. */
#include "profile/record/control/ps_view.h"
#include "profile/record/console/status_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
	json_t *v = json_loads(text, 0, NULL);

	assert_non_null(v);
	return v;
}

static struct buf out;

static const char *table(json_t *now, const json_t *before, const struct ps_view_options *o)
{
	struct err e = { 0 };

	buf_deinit(&out);
	buf_init(&out);
	if (ps_view_text(&out, now, before, o, &e))
		return NULL;
	buf_u8(&out, 0);
	return (const char *)out.data;
}

#define TASK(tid, rest) "{\"pid\":7,\"tid\":" #tid ",\"ppid\":1,\"comm\":\"a b\"" rest "}"

static void columns(void **state)
{
	const struct ps_view_options plain = { 0 }, stacks = { .stacks = true };
	json_t *before = parse("{\"time_ns\":1000000000,\"tasks\":[" TASK(
		8, ",\"cpu_ns\":100000000") "," TASK(9, ",\"cpu_ns\":5,\"start_ns\":1") "]}");
	json_t *now = parse("{\"time_ns\":2000000000,\"changed\":2,\"cut\":true,\"tasks\":[" TASK(
		9,
		",\"cpu_ns\":9,\"start_ns\":2") "," TASK(8,
							 ",\"state\":\"S\",\"cpu_ns\":"
							 "61350000000,\"wchan\":\"f\",\"uid\":1000,"
							 "\"vsz_bytes\":12582912,\"rss_bytes\":0,"
							 "\"stack\":[\"f+0x1\"]") "]}");

	(void)state;
	json_object_set_new(json_array_get(json_object_get(now, "tasks"), 1), "cpu_ns",
			    json_integer(350000000));
	assert_string_equal(table(now, before, &plain),
			    "    PID     TID    PPID USER    S  %CPU      TIME       VSZ      RSS "
			    "COMMAND          WCHAN\n"
			    "      7       8       1 1000    S  25.0   0:00.35     12288        0 "
			    "a b              f\n"
			    "      7       9       1 -       -     -   0:00.00         -        - "
			    "a b              -\n"
			    "# 2 moved while they were read: no stack\n"
			    "# the list changed while it was read: some may be missing\n");
	assert_non_null(strstr(table(now, NULL, &stacks), "\n        [<0>] f+0x1\n"));
	assert_non_null(strstr(table(now, NULL, &stacks), "\n        (no stack)\n"));
	json_decref(now);
	json_decref(before);
}

static void sorted(void **state)
{
	struct ps_view_options o = { .no_kernel = true };
	json_t *now = parse("{\"tasks\":[" TASK(1, ",\"cpu_ns\":1") "," TASK(
		2, ",\"cpu_ns\":3") "," TASK(3, "") "," TASK(4, ",\"kernel_thread\":true") "]}");
	const char *two, *one, *three;

	(void)state;
	assert_true(ps_view_sort_find("time", &o.sort));
	assert_false(ps_view_sort_find("size", &o.sort));
	two = strstr(table(now, NULL, &o), "       2       1");
	one = strstr((const char *)out.data, "       1       1");
	three = strstr((const char *)out.data, "       3       1");
	assert_true(two && one && three && two < one && one < three);
	assert_null(strstr((const char *)out.data, "       4       1"));
	json_decref(now);
}

/* From another process: nothing in it is believed. */
static void strange(void **state)
{
	const struct ps_view_options o = { .stacks = true };
	json_t *now = parse("{\"tasks\":[7,null,{\"pid\":-1,\"comm\":3,\"state\":\"\",\"cpu_ns\":"
			    "\"x\",\"stack\":{},\"cpu_percent\":[]},{\"stack\":[1]}]}");
	json_t *none = parse("{\"tasks\":{}}");

	(void)state;
	assert_non_null(table(now, now, &o));
	assert_null(table(none, NULL, &o));
	ps_view_add_cpu(none, now);
	ps_view_add_cpu(now, none);
	json_decref(now);
	json_decref(none);
}

static void status(void **state)
{
	char text[STATUS_LINE_MAX];
	struct status_figures f = { 0 }, before = { .kernel = 100 };

	(void)state;
	status_line_text(text, &f, &f);
	assert_string_equal(text, "kvmprof: starting");
	f = (struct status_figures){ .elapsed_ns = 12340000000,
				     .samples = 1234,
				     .kernel = 130,
				     .user = 60,
				     .idle = 10,
				     .lost = 3,
				     .collecting = true };
	status_line_text(text, &f, &before);
	assert_string_equal(text, "kvmprof: 12.3 s, 1234 samples, user 60 % kernel 30 % idle 10 %, "
				  "lost 3");
	f.collecting = false;
	status_line_text(text, &f, &before);
	assert_string_equal(text, "kvmprof: 12.3 s, 1234 samples, not collecting, lost 3");
	f = (struct status_figures){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
				     UINT64_MAX, UINT64_MAX, UINT64_MAX, true };
	status_line_text(text, &f, &before);
	assert_true(strlen(text) < STATUS_LINE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns),
		cmocka_unit_test(sorted),
		cmocka_unit_test(strange),
		cmocka_unit_test(status),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	buf_deinit(&out);
	return ret;
}
