/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/bls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void parse(struct bls_entry *b, const char *name, const char *text)
{
	struct err e = { 0 };

	assert_int_equal(bls_parse(b, name, text, strlen(text), &e), 0);
}

static void fields(void **state)
{
	struct bls_entry b;

	(void)state;
	parse(&b, "debian-6.1.conf",
	      "# comment\n"
	      "title   Debian GNU/Linux 12 (bookworm)\n"
	      "version\t6.1.0-18-amd64\r\n"
	      "machine-id 0123\n"
	      "linux /vmlinuz-6.1\n"
	      "initrd /ucode.img\n"
	      "  initrd /initrd.img-6.1  \n"
	      "options root=UUID=1 ro\n"
	      "options quiet\n"
	      "title second\n"
	      "unknown thing\n"
	      "sort-key\n"
	      "architecture X64");
	assert_string_equal(b.name, "debian-6.1");
	assert_string_equal(b.title, "Debian GNU/Linux 12 (bookworm)");
	assert_string_equal(b.version, "6.1.0-18-amd64");
	assert_string_equal(b.linux_path, "/vmlinuz-6.1");
	assert_int_equal(b.ninitrd, 2);
	assert_string_equal(b.initrd[1], "/initrd.img-6.1");
	assert_string_equal(b.options, "root=UUID=1 ro quiet");
	assert_null(b.sort_key);
	assert_true(bls_usable(&b));
	bls_deinit(&b);

	parse(&b, "a.conf", "linux /x\narchitecture aa64\n");
	assert_false(bls_usable(&b));
	bls_deinit(&b);
	parse(&b, "a.conf", "title x\nefi /x.efi\n");
	assert_false(bls_usable(&b));
	bls_deinit(&b);
}

static void refused(void **state)
{
	struct bls_entry b;
	struct err e = { 0 };
	char many[200] = "";

	(void)state;
	assert_int_equal(bls_parse(&b, "a.cfg", "", 0, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(bls_parse(&b, ".conf", "", 0, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(bls_parse(&b, "a.conf", "li\0nux", 6, &e), -EINVAL);
	err_clear(&e);
	for (int i = 0; i < 9; i++)
		strcat(many, "initrd /a\n");
	assert_int_equal(bls_parse(&b, "a.conf", many, strlen(many), &e), -EINVAL);
	assert_non_null(strstr(e.text, "more than 8 initrds"));
}

static void counters(void **state)
{
	static const struct {
		const char *file, *name;
		int failed;
	} rows[] = {
		{ "a+3.conf", "a", 0 },	   { "a+3-1.conf", "a", 0 }, { "a+0-3.conf", "a", 1 },
		{ "a+00.conf", "a", 1 },   { "a+b.conf", "a+b", 0 }, { "a+1-x.conf", "a+1-x", 0 },
		{ "a+1+2.conf", "a+1", 0 },
	};
	struct bls_entry b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		parse(&b, rows[i].file, "");
		assert_string_equal(b.name, rows[i].name);
		assert_int_equal(b.failed, rows[i].failed);
		bls_deinit(&b);
	}
}

/* Examples of the Version Format Specification, oldest first. */
static void versions(void **state)
{
	static const char *const order[] = {
		"1.0~rc1", "1.0", "1.0^20200101", "1.0.1", "2", "122.1", "123~rc1-1", "123", "123-a", "123-a.1",
		"123-1", "123-1.1", "123^post1", "123.a-1", "123.1-1", "123a-1", "124-1",
	};
	size_t n = sizeof(order) / sizeof(order[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			int got = bls_version_compare(order[i], order[k]);
			int want = i < k ? -1 : i > k;

			if (got != want)
				fail_msg("%s and %s: %d", order[i], order[k], got);
		}
	assert_int_equal(bls_version_compare("6.1.0-9-amd64", "6.1.0-18-amd64"), -1);
	assert_int_equal(bls_version_compare("1.02", "1.2"), 0);
	assert_int_equal(bls_version_compare("B", "a"), -1);
	assert_int_equal(bls_version_compare(NULL, ""), 0);
	assert_int_equal(bls_version_compare("1_2", "12"), -1);
}

static void menu_order(void **state)
{
	static const char *const order[][2] = {
		/* With a sort key first, by key, machine, newest version; then names, newest first. */
		{ "z.conf", "linux /x\nsort-key a\nmachine-id 1\nversion 10\n" },
		{ "a.conf", "linux /x\nsort-key a\nmachine-id 1\nversion 9\n" },
		{ "b.conf", "linux /x\nsort-key a\nmachine-id 2\nversion 11\n" },
		{ "k.conf", "linux /x\nsort-key b\n" },
		{ "f-6.10.conf", "linux /x\nversion 1\n" },
		{ "f-6.9.conf", "linux /x\nversion 2\n" },
		{ "good+0-3.conf", "linux /x\nsort-key a\n" },
	};
	struct bls_entry b[7];

	(void)state;
	for (int i = 0; i < 7; i++)
		parse(&b[i], order[i][0], order[i][1]);
	for (int i = 0; i < 7; i++)
		for (int k = 0; k < 7; k++) {
			int got = bls_compare(&b[i], &b[k]);

			if (i < k ? got >= 0 : i > k ? got <= 0 : got != 0)
				fail_msg("%s and %s: %d", order[i][0], order[k][0], got);
		}
	for (int i = 0; i < 7; i++)
		bls_deinit(&b[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),   cmocka_unit_test(refused),	 cmocka_unit_test(counters),
		cmocka_unit_test(versions), cmocka_unit_test(menu_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
