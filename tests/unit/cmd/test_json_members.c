/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/json_members.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void put(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len)
{
	buf_printf(ctx, "%.*s=%.*s|", (int)key_len, key, (int)value_len, value);
}

static void expect(const char *text, bool good, const char *members)
{
	struct buf b;

	buf_init(&b);
	assert_int_equal(json_members(text, strlen(text), put, &b), good);
	buf_u8(&b, 0);
	assert_string_equal((char *)b.data, members);
	buf_deinit(&b);
}

static void objects(void **state)
{
	(void)state;
	expect("{}", true, "");
	expect("{\"a\":1}", true, "a=1|");
	expect(" { \"a\" : null , \"b\":[1,{\"c\":2}] } ", true, "a=null |b=[1,{\"c\":2}] |");
	expect("{\"a\":\"x,}\\\"]\",\"\":{}}", true, "a=\"x,}\\\"]\"|={}|");
}

static void what_is_none(void **state)
{
	(void)state;
	expect("", false, "");
	expect("[1]", false, "");
	expect("{\"a\":1", false, "");
	expect("{\"a\":1,", false, "a=1|");
	expect("{\"a\":,\"b\":1}", false, "");
	expect("{\"a\":\"b", false, "");
	expect("{\"a\\", false, "");
	expect("{\"a\":[[", false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects),
		cmocka_unit_test(what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
