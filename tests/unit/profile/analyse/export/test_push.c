/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to profile servers, and what is refused before there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/export/push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_labels(void **state)
{
	static const char *const bad[] = { "",	    "a",     "=b",     "a=",	    "1a=b",
					   "a-b=c", "a=b,c", "a={",    "a=\"",	    "a=b=c",
					   "a=\n",  "job=x", "a=\xff", "__name__=x" };
	struct push_label l;
	struct err e = { 0 };
	char text[PUSH_TEXT_MAX + 8];

	(void)state;
	assert_int_equal(push_label_parse(&l, "_a1=b c/\xc3\xa4", &e), 0);
	assert_string_equal(l.name, "_a1");
	assert_string_equal(l.value, "b c/\xc3\xa4");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err_clear(&e);
		if (!push_label_parse(&l, bad[i], &e) || !e.text[0])
			fail_msg("'%s' was taken", bad[i]);
	}
	memset(text, 'v', sizeof(text));
	memcpy(text, "a=", 2);
	text[2 + PUSH_TEXT_MAX] = '\0';
	assert_true(push_label_parse(&l, text, &e) < 0);
	text[2 + PUSH_TEXT_MAX - 1] = '\0';
	assert_int_equal(push_label_parse(&l, text, &e), 0);
}

static void test_urls(void **state)
{
	static const char *const bad[] = { "",		 "host",	"ftp://h",
					   "http://",	 "http:///p",	"http://u@h/",
					   "http://h?x", "http://h/#a", "http://h/a b",
					   "http://h\n" };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(push_url_check("http://localhost:4040", &e), 0);
	assert_int_equal(push_url_check("https://h/prefix/with@", &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(push_url_check(bad[i], &e), -EINVAL);
	assert_int_equal(push_protocol_find("parca"), PUSH_PARCA);
	assert_int_equal(push_protocol_find("smtp"), PUSH_PROTOCOLS);
}

/* RFC 4648, section 10: test vectors, through the body that they end up in. */
static void test_base64(void **state)
{
	static const char *const vector[][2] = {
		{ "f", "Zg==" },	{ "fo", "Zm8=" },	 { "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vector) / sizeof(vector[0]); i++) {
		struct push_profile p = { .pprof = (const uint8_t *)vector[i][0],
					  .len = strlen(vector[i][0]),
					  .event = "wall",
					  .name = "n" };
		struct push_request r;
		struct err e = { 0 };
		char want[64];

		assert_int_equal(push_request_make(&r, PUSH_PARCA, "http://h//", NULL, &p, &e), 0);
		assert_string_equal(r.url, "http://h/api/profiles/writeraw");
		snprintf(want, sizeof(want), "\"rawProfile\":\"%s\"", vector[i][1]);
		assert_non_null(memmem(r.body.data, r.body.len, want, strlen(want)));
		push_request_deinit(&r);
	}
}

static void test_form(void **state)
{
	static struct push_label label[PUSH_LABELS_MAX];
	struct push_profile p = { .pprof = (const uint8_t *)"\0pprof",
				  .len = 6,
				  .event = "wa\"ll",
				  .name = "a b",
				  .began_ns = 5000000000,
				  .ended_ns = 5000000000,
				  .label = label,
				  .nlabels = 1 };
	struct push_request r;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(push_label_parse(&label[0], "k=v/%", &e), 0);
	assert_int_equal(push_request_make(&r, PUSH_PYROSCOPE, "http://h", NULL, &p, &e), 0);
	assert_string_equal(r.url, "http://h/ingest?name=a%20b%7Bk%3Dv%2F%25%7D&from=5&until=6"
				   "&spyName=kvmprof");
	assert_non_null(memmem(r.body.data, r.body.len, "\r\n\r\n\0pprof\r\n--", 14));
	assert_non_null(memmem(r.body.data, r.body.len, "\"wa\\\"ll\":{", 10));
	push_request_deinit(&r);

	/* Labels that no URL holds */
	for (size_t i = 0; i < PUSH_LABELS_MAX; i++) {
		strcpy(label[i].name, "k");
		memset(label[i].value, 'v', PUSH_TEXT_MAX - 1);
	}
	p.nlabels = PUSH_LABELS_MAX;
	assert_int_equal(push_request_make(&r, PUSH_PYROSCOPE, "http://h", NULL, &p, &e), -E2BIG);
	push_request_deinit(&r);
	err_clear(&e);
	p.len = PUSH_PROFILE_MAX + 1u;
	assert_int_equal(push_request_make(&r, PUSH_CONNECT, "http://h", NULL, &p, &e), -E2BIG);
	push_request_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
