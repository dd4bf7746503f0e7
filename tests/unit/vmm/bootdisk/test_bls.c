/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/bls.h"

#include "vmm/bootdisk/osrel.h"

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
	parse(&b, "a.conf", "title x\nuki /x.efi\n");
	assert_true(bls_usable(&b) && !b.uki);
	assert_string_equal(b.linux_path, "/x.efi");
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
		{ "a+3.conf", "a", 0 },	    { "a+3-1.conf", "a", 0 }, { "a+0-3.conf", "a", 1 },
		{ "a+00.conf", "a", 1 },    { "a+b.conf", "a+b", 0 }, { "a+1-x.conf", "a+1-x", 0 },
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
		"1.0~rc1",   "1.0",	"1.0^20200101", "1.0.1",   "2",	    "122.1",
		"123~rc1-1", "123",	"123-a",	"123-a.1", "123-1", "123-1.1",
		"123^post1", "123.a-1", "123.1-1",	"123a-1",  "124-1",
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

static void take_uki(struct bls_entry *b, const char *name, const char *osrel)
{
	struct err e = { 0 };

	assert_int_equal(bls_from_uki(b, name, "/EFI/Linux/x.efi",
				      (struct bytes){ osrel, strlen(osrel) }, "quiet", &e),
			 0);
	assert_true(b->uki && bls_usable(b));
	assert_string_equal(b->linux_path, "/EFI/Linux/x.efi");
	assert_string_equal(b->options, "quiet");
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Which field becomes what, and names of files. */
static void unified(void **state)
{
	static const struct {
		const char *osrel, *title, *version, *key;
	} rows[] = {
		{ "PRETTY_NAME=\"A B\"\nNAME=A\nIMAGE_ID=i\nID=d\nBUILD_ID=1\nVERSION_ID=2\n"
		  "VERSION='3 x'\nIMAGE_VERSION=4",
		  "A B", "4", "i" },
		{ "ID=d\nIMAGE_ID=i\nNAME=A\nVERSION='3 x'\nVERSION_ID=2\n", "i", "3 x", "i" },
		{ "ID=d\nNAME=A\nVERSION_ID=2\nBUILD_ID=1\n", "A", "2", "d" },
		{ "ID=d\nBUILD_ID=1\n", "d", "1", "d" },
		{ "XID=d\n#ID=e\nPRETTY_NAME=\n", NULL, NULL, NULL },
		{ "", NULL, NULL, NULL },
	};
	static const char *const names[] = { "x.conf", ".efi", "x", "x.efi.bak" };
	struct bls_entry b;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		take_uki(&b, "x.efi", rows[i].osrel);
		assert_true(same(b.title, rows[i].title) && same(b.version, rows[i].version) &&
			    same(b.sort_key, rows[i].key) && !b.machine_id);
		bls_deinit(&b);
	}
	take_uki(&b, "Linux-6+0-3.EFI", "");
	assert_string_equal(b.name, "Linux-6");
	assert_true(b.failed);
	bls_deinit(&b);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(bls_from_uki(&b, names[i], "/x", (struct bytes){ "", 0 }, "", &e),
				 -EINVAL);
}

static void patterns(void **state)
{
	static const struct {
		const char *pattern;
		bool conf, efi;
	} rows[] = {
		{ "arch-6.1.conf", true, false },  { "arch-6.1.efi", false, true },
		{ "ARCH-*.EFI", false, true },	   { "arch-6.1", true, false },
		{ "arch-*", true, true },	   { "*", true, true },
		{ "arch-6.[2-9]*", false, false }, { "arch-6.1+3.efi", false, false },
	};
	struct bls_entry conf, efi;

	(void)state;
	parse(&conf, "arch-6.1.conf", "linux /x\n");
	take_uki(&efi, "Arch-6.1+3-1.efi", "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (bls_matches(&conf, rows[i].pattern) != rows[i].conf ||
		    bls_matches(&efi, rows[i].pattern) != rows[i].efi)
			fail_msg("%s", rows[i].pattern);
	bls_deinit(&conf);
	bls_deinit(&efi);
}

/* Both types in one menu. */
static void unified_order(void **state)
{
	static const struct {
		const char *name, *text; /* a text that begins with "linux": type 1 */
	} order[] = {
		{ "a.conf", "linux /x\nsort-key arch\nversion 7\n" },
		{ "b.efi", "ID=arch\nVERSION_ID=6.10\n" },
		{ "z.conf", "linux /x\nsort-key arch\nversion 6.9\n" },
		/* no machine is less than any */
		{ "c.conf", "linux /x\nsort-key arch\nmachine-id 1\nversion 8\n" },
		{ "debian-6.2.efi", "ID=debian\nIMAGE_VERSION=12\nVERSION_ID=99\n" },
		{ "debian-6.1.conf", "linux /x\nsort-key debian\nversion 12\n" },
		{ "x.efi", "" },
		{ "tried+0-3.efi", "ID=arch\nVERSION_ID=9\n" },
	};
	enum { N = sizeof(order) / sizeof(order[0]) };
	struct bls_entry b[N];

	(void)state;
	for (int i = 0; i < N; i++)
		if (!strncmp(order[i].text, "linux", 5))
			parse(&b[i], order[i].name, order[i].text);
		else
			take_uki(&b[i], order[i].name, order[i].text);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++) {
			int got = bls_compare(&b[i], &b[k]);

			if (i < k ? got >= 0 : i > k ? got <= 0 : got != 0)
				fail_msg("%s and %s: %d", order[i].name, order[k].name, got);
		}
	for (int i = 0; i < N; i++)
		bls_deinit(&b[i]);
}

static void os_release(void **state)
{
	static const struct {
		const char *text, *value;
	} rows[] = {
		{ "NAME=x\n", "x" },
		{ "# NAME=y\n  NAME=x", "x" },
		{ "NAME=\"Debian GNU/Linux 12 (bookworm)\"\n", "Debian GNU/Linux 12 (bookworm)" },
		{ "NAME='a\\b'\n", "a\\b" },
		{ "NAME=\"a\\\"\\$b\"c\n", "a\"$b" },
		{ "NAME=a\nNAME=b\r\n", "b" },
		{ "NAME=two words \n", "two words" },
		{ "NAME=\"open\nID=2", "open" },
		{ "NAME=", "" },
		{ "NAME=x\\", "x\\" },
		{ "PRETTY_NAME=x\nNAMES=y\nNAME", "" },
		{ "", "" },
	};
	static char text[1000] = "NAME=";
	char value[OSREL_MAX_VALUE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool found = osrel_value(rows[i].text, strlen(rows[i].text), "NAME", value);

		assert_string_equal(value, rows[i].value);
		assert_int_equal(found, *rows[i].value != 0);
	}
	assert_false(osrel_value("A=1\0\nNAME=x", 12, "NAME", value));
	memset(text + 5, 'x', sizeof(text) - 5);
	assert_true(osrel_value(text, sizeof(text), "NAME", value));
	assert_int_equal(strlen(value), OSREL_MAX_VALUE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),     cmocka_unit_test(refused),
		cmocka_unit_test(counters),   cmocka_unit_test(versions),
		cmocka_unit_test(menu_order), cmocka_unit_test(unified),
		cmocka_unit_test(patterns),   cmocka_unit_test(unified_order),
		cmocka_unit_test(os_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
