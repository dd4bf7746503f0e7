/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of any bytes in JSON: what is written, and that a parser reads the same. */
#include "base/json.h"

#include "base/utf8.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define R UTF8_REPLACEMENT

static const char *const text[][2] = {
	{ "", "\"\"" },
	{ "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
	{ "\n\x7f\x01", "\"\\u000a\\u007f\\u0001\"" },
	{ "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\"\\u0080\\u009b\\u009f\xc2\xa0\"" },
	{ "gr\xc3\xb6\xc3\x9f"
	  "e",
	  "\"gr\xc3\xb6\xc3\x9f"
	  "e\"" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "\xff\x80g\xc3", "\"" R R "g" R "\"" },	   /* no first bytes; cut */
	{ "\xc0\x80\xe0\x80\x80", "\"" R R R R R "\"" },   /* longer than need be */
	{ "\xed\xa0\x80", "\"" R R R "\"" },		   /* a surrogate */
	{ "\xf4\x90\x80\x80\xf5x", "\"" R R R R R "x\"" }, /* beyond the end */
	{ "\xf4\x8f\xbf\xbf\xee\x80\x80", "\"\xf4\x8f\xbf\xbf\xee\x80\x80\"" },
};

static void to_a_buffer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		struct buf b;

		buf_init(&b);
		json_quote(&b, text[i][0]);
		buf_u8(&b, 0);
		assert_false(b.failed);
		assert_string_equal((char *)b.data, text[i][1]);
		buf_deinit(&b);
	}
}

static void to_a_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		char *data = NULL;
		size_t len;
		FILE *f = open_memstream(&data, &len);

		assert_non_null(f);
		json_quote_file(f, text[i][0]);
		assert_int_equal(fclose(f), 0);
		assert_string_equal(data, text[i][1]);
		free(data);
	}
}

/* Another program's parser has the same text, with U+FFFD for what was none. */
static void read_back(void **state)
{
	unsigned int seed = 5;

	(void)state;
	for (unsigned int round = 0; round < 20000; round++) {
		char in[16] = { 0 };
		char *want;
		struct buf b;
		json_t *j;

		for (unsigned int i = 0; i + 1 < sizeof(in); i++) {
			unsigned int r = (unsigned int)rand_r(&seed) >> 8;

			/* More of what characters of several bytes are made of. */
			in[i] = (char)(r % 3 ? 0x80 | r >> 4 : r >> 4);
		}
		want = utf8_copy(in);
		assert_non_null(want);
		buf_init(&b);
		json_quote(&b, in);
		j = json_loadb((char *)b.data, b.len, JSON_DECODE_ANY, NULL);
		assert_non_null(j);
		assert_string_equal(json_string_value(j), want);
		json_decref(j);
		buf_deinit(&b);
		free(want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_a_buffer),
		cmocka_unit_test(to_a_file),
		cmocka_unit_test(read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
