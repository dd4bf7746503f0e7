/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/comparable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define ENGINE(qemu, memory, machine)                                    \
	"{\"samples\":1,\"engine\":{\"name\":\"exact\",\"qemu\":\"" qemu \
	"\",\"plugin\":1,\"cpu\":\"qemu64\",\"memory_bytes\":" memory    \
	",\"vcpus\":1,\"machine\":\"" machine "\",\"cmdline\":\"a\",\"kernel_sha256\":\"1\"}}"

/* Of counts the period is that of looks at processes. */
#define COUNTS(yes) "{\"engine\":{\"counts\":" yes ",\"period\":10}}"

static void compare(const char *a, const char *b, const char *wanted)
{
	struct buf words;

	buf_init(&words);
	assert_int_equal(comparable_differs(a, b, &words), *wanted != '\0');
	buf_u8(&words, 0);
	assert_string_equal((const char *)words.data, wanted);
	buf_deinit(&words);
}

static void means_are_named(void **state)
{
	const char *a = ENGINE("10.0.2", "268435456", "-m 256M");

	(void)state;
	compare(a, a, "");
	compare(a, ENGINE("10.0.13", "268435456", "-m 256M"), "QEMU 10.0.2 and 10.0.13");
	compare(a, ENGINE("10.0.13", "134217728", "-m 128M"),
		"QEMU 10.0.2 and 10.0.13, memory 256 and 128 MiB");
	compare(a, ENGINE("10.0.2", "268435456", "-m 256M -x"), "the machine's options");
	compare(a, "{\"samples\":1}", "engine exact and kvm");
	compare(NULL, a, "engine kvm and exact");
	compare("{\"engine\":{\"period\":10}}", "{\"engine\":{\"period\":20}}", "period 10 and 20");
	compare(COUNTS("true"), COUNTS("false"), "exact counts yes and no");
}

static void counts_have_no_period(void **state)
{
	(void)state;
	compare(COUNTS("true"), "{\"engine\":{\"counts\":true,\"period\":20}}", "");
}

static void others_have_none(void **state)
{
	(void)state;
	compare(NULL, NULL, "");
	compare("{}", "{\"samples\":2}", "");
	compare("not json", "[1]", "");
	compare("{\"engine\":1}", "{\"engine\":2}", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_are_named),
		cmocka_unit_test(counts_have_no_period),
		cmocka_unit_test(others_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
