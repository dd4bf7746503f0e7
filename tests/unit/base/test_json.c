/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of any bytes in JSON: what is written, and that a parser reads the same. */
#include "base/json.h"

#include "base/utf8.h"

#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
		struct json_writer w;
		struct buf b;

		buf_init(&b);
		json_begin(&w, &b);
		json_str(&w, NULL, text[i][0]);
		buf_u8(&b, 0);
		assert_false(b.failed);
		assert_string_equal((char *)b.data, text[i][1]);
		buf_deinit(&b);
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
		struct json_writer w;
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
		json_begin(&w, &b);
		json_str(&w, NULL, in);
		j = json_loadb((char *)b.data, b.len, JSON_DECODE_ANY, NULL);
		assert_non_null(j);
		assert_string_equal(json_string_value(j), want);
		json_decref(j);
		buf_deinit(&b);
		free(want);
	}
}

/* Hostile text as key and as value, numbers at the ends of their ranges, empty values, lines. */
static void write_all(void **state)
{
	static const char want[] =
		"{\"n\":18446744073709551615,\"i\":-9223372036854775808,\"on\":true,\n\"off\":"
		"false,"
		"\"at\":\"0xff\",\"x\":0.250,\"none\":null,\"nan\":null,\"inf\":null,"
		"\"raw\":{\"a\":[1]},\"q\\\"\\u000a\":\"" R "\\\\\",\"f\":\"7\\\"" R "\","
		"\"no\":{},\"list\":[[],[{\"a\":1},{}],2\n]}";
	json_t *j;
	struct json_writer w;
	struct buf b;

	(void)state;
	buf_init(&b);
	json_begin(&w, &b);
	json_object_begin(&w, NULL);
	json_u64(&w, "n", UINT64_MAX);
	json_i64(&w, "i", INT64_MIN);
	json_bool(&w, "on", true);
	json_line(&w);
	json_bool(&w, "off", false);
	json_hex(&w, "at", 255);
	json_number(&w, "x", "%.3f", 0.25);
	json_str(&w, "none", NULL);
	json_number(&w, "nan", "%g", (double)NAN);
	json_number(&w, "inf", "%.2f", -(double)INFINITY);
	json_raw(&w, "raw", "{\"a\":[1]}");
	json_str(&w, "q\"\n", "\xff\\");
	json_strf(&w, "f", "%d\"%s", 7, "\xc3");
	json_object_begin(&w, "no");
	json_object_end(&w);
	json_array_begin(&w, "list");
	json_array_begin(&w, NULL);
	json_array_end(&w);
	json_array_begin(&w, NULL);
	json_object_begin(&w, NULL);
	json_u64(&w, "a", 1);
	json_object_end(&w);
	json_object_begin(&w, NULL);
	json_object_end(&w);
	json_array_end(&w);
	json_u64(&w, NULL, 2);
	json_line(&w);
	json_array_end(&w);
	json_object_end(&w);
	assert_false(b.failed);
	assert_int_equal(b.len, strlen(want));
	assert_memory_equal(b.data, want, b.len);
	b.len = 0;
	json_begin(&w, &b);
	json_raw(&w, NULL, "{\"n\":1");
	json_begin_members(&w, &b);
	json_number(&w, "most", "%.1f", -DBL_MAX);
	json_array_begin(&w, "a");
	json_array_end(&w);
	buf_u8(&b, '}');
	j = json_loadb((char *)b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(j);
	assert_true(json_real_value(json_object_get(j, "most")) == -DBL_MAX);
	assert_int_equal(json_object_size(j), 3);
	json_decref(j);
	buf_deinit(&b);
}

enum answer { NO, YES };

/* Values of all types that a list of members may have, and the longest list. */
static void write_members(void **state)
{
	static const char want[] =
		"[{\"a\":1},{\"u8\":255,\"u16\":65535,\"u64\":18446744073709551615,\"long\":-3,"
		"\"int\":-1,\"bool\":true,\"is\":false,\"s\":\"x\\\"\",\"none\":null,\"enum\":1,"
		"\"address\":\"0xffffffff81000000\",\"fixed\":1.500},1e-09,null]";
	char s[] = "x\"";
	uint8_t u8 = 255;
	uint16_t u16 = 65535;
	enum answer yes = YES;
	bool is = false;
	struct json_writer w;
	struct buf b;

	(void)state;
	buf_init(&b);
	json_begin(&w, &b);
	json_array_begin(&w, NULL);
	json_put_object(&w, NULL, "a", 1u);
	json_put_object(&w, NULL, "u8", u8, "u16", u16, "u64", UINT64_MAX, "long", -3L, "int",
			json_of_i64(-1), "bool", json_of_bool(u8 == 255), "is", is, "s", s, "none",
			(const char *)NULL, "enum", yes, "address",
			json_address(0xffffffff81000000), "fixed", json_fixed(3, 1.5));
	json_put(&w, NULL, json_short(6, 1e-9), NULL, json_fixed(2, (double)NAN));
	json_array_end(&w);
	assert_false(b.failed);
	assert_int_equal(b.len, strlen(want));
	assert_memory_equal(b.data, want, b.len);
	buf_deinit(&b);
}

/* Writes values that random numbers choose, and the same with jansson, until they end. */
static json_t *write_random(struct json_writer *w, const char *key, unsigned int *seed, int depth)
{
	static const char *const keys[] = { "a", "b\"\\", "\xc3\xa9", "" };
	unsigned int kind = (unsigned int)rand_r(seed) / 7 % (depth < 8 ? 7 : 5), n;
	json_t *j;

	n = (unsigned int)rand_r(seed) / 7 % 5;
	if (n == 4)
		json_line(w);
	switch (kind) {
	case 0:
		json_i64(w, key, -(int64_t)n);
		return json_integer(-(json_int_t)n);
	case 1:
		json_bool(w, key, n);
		return json_boolean(n);
	case 2:
		json_str(w, key, n ? "x\x01y" : NULL);
		return n ? json_string("x\x01y") : json_null();
	case 3:
		json_number(w, key, "%.2f", n / 4.0);
		return json_real(n / 4.0);
	case 4:
		json_strf(w, key, "%u/\n", n);
		return json_sprintf("%u/\n", n);
	case 5:
		j = json_array();
		json_array_begin(w, key);
		for (unsigned int i = 0; i < n; i++)
			json_array_append_new(j, write_random(w, NULL, seed, depth + 1));
		json_array_end(w);
		return j;
	default:
		j = json_object();
		json_object_begin(w, key);
		for (unsigned int i = 0; i < n; i++)
			json_object_set_new(j, keys[i], write_random(w, keys[i], seed, depth + 1));
		json_object_end(w);
		return j;
	}
}

static void random_back(void **state)
{
	unsigned int seed = 7;

	(void)state;
	for (unsigned int round = 0; round < 5000; round++) {
		json_t *want, *got;
		struct json_writer w;
		struct buf b;

		buf_init(&b);
		json_begin(&w, &b);
		want = write_random(&w, NULL, &seed, 0);
		got = json_loadb((char *)b.data, b.len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES,
				 NULL);
		assert_non_null(got);
		assert_true(json_equal(want, got));
		json_decref(want);
		json_decref(got);
		buf_deinit(&b);
	}
}

/* The greatest depth is written; one more fails, and the ends that follow do no harm. */
static void too_deep(void **state)
{
	FILE *f = fopen("/dev/null", "w");

	(void)state;
	assert_non_null(f);
	for (unsigned int more = 0; more < 2; more++) {
		struct json_writer w;

		json_open(&w);
		json_array_begin(&w, "a");
		for (unsigned int i = 1; i < JSON_DEPTH_MAX + more; i++)
			json_array_begin(&w, NULL);
		for (unsigned int i = 0; i < JSON_DEPTH_MAX + more; i++)
			json_array_end(&w);
		assert_int_equal(w.b->failed, more);
		if (!more)
			assert_int_equal(w.b->len, 2 * JSON_DEPTH_MAX + strlen("{\"a\":"));
		assert_int_equal(json_close(&w, f), more ? -ENOMEM : 0);
		assert_null(w.b->data);
	}
	fclose(f);
}

/* A text that is closed is one line; nothing is written without a file. */
static void closed(void **state)
{
	struct json_writer w;
	char *data = NULL;
	size_t len;
	FILE *f = open_memstream(&data, &len);

	(void)state;
	assert_non_null(f);
	for (unsigned int i = 0; i < 3; i++) {
		json_open(&w);
		if (i)
			json_put(&w, "a", i, "b", i);
		assert_int_equal(json_close(&w, i == 2 ? NULL : f), 0);
	}
	assert_int_equal(fclose(f), 0);
	assert_string_equal(data, "{}\n{\"a\":1,\"b\":1}\n");
	free(data);
}

static void no_key(struct json_writer *w)
{
	json_object_begin(w, NULL);
	json_u64(w, NULL, 1);
}

static void key_in_array(struct json_writer *w)
{
	json_array_begin(w, NULL);
	json_u64(w, "a", 1);
}

static void two_values(struct json_writer *w)
{
	json_u64(w, NULL, 1);
	json_u64(w, NULL, 1);
}

static void other_end(struct json_writer *w)
{
	json_array_begin(w, NULL);
	json_object_end(w);
}

static void end_alone(struct json_writer *w)
{
	json_array_end(w);
}

static void left_open(struct json_writer *w)
{
	json_open(w);
	json_array_begin(w, "a");
	json_close(w, stdout);
}

static void misuse(void **state)
{
	static void (*const wrong[])(struct json_writer *) = { no_key,	  key_in_array, two_values,
							       other_end, end_alone,	left_open };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			struct json_writer w;
			struct buf b;

			signal(SIGABRT, SIG_DFL);
			setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
			if (!freopen("/dev/null", "w", stderr))
				_exit(1);
			buf_init(&b);
			json_begin(&w, &b);
			wrong[i](&w);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_a_buffer), cmocka_unit_test(read_back),
		cmocka_unit_test(write_all),   cmocka_unit_test(write_members),
		cmocka_unit_test(random_back), cmocka_unit_test(too_deep),
		cmocka_unit_test(closed),      cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
