/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of library code reach the command's function, line by line and in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/reporter.h"

#include <string.h>

struct said {
	char text[256];
	unsigned int calls;
};

__attribute__((format(printf, 2, 0))) static void keep(void *ctx, const char *fmt, va_list ap)
{
	struct said *s = ctx;
	size_t len = strlen(s->text);

	vsnprintf(s->text + len, sizeof(s->text) - len, fmt, ap);
	s->calls++;
}

static void reaches_the_command(void **state)
{
	struct said s = { 0 };
	const struct reporter r = { keep, &s };

	(void)state;
	reporter_printf(&r, "note: %s has %d\n", "disk", 3);
	reporter_printf(NULL, "discarded: %d\n", 1);
	assert_string_equal(s.text, "note: disk has 3\n");
	assert_int_equal(s.calls, 1);
}

static void a_stream_reports_each_line(void **state)
{
	struct said s = { 0 };
	const struct reporter r = { keep, &s };
	FILE *f = reporter_open(&r);

	(void)state;
	assert_non_null(f);
	fputs("one 50%", f);
	assert_int_equal(s.calls, 0);
	fputs(" of it\n", f);
	assert_string_equal(s.text, "one 50% of it\n");
	assert_int_equal(s.calls, 1);
	reporter_printf(&r, "between\n");
	fputs("unfinished", f);
	fclose(f);
	assert_string_equal(s.text, "one 50% of it\nbetween\nunfinished");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reaches_the_command),
		cmocka_unit_test(a_stream_reports_each_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
