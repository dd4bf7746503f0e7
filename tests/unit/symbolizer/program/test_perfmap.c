/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/perfmap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct perfmap *parse(const char *text, struct perfmap_info *info)
{
	struct perfmap *m;
	struct err e = { 0 };

	if (perfmap_parse(&m, "map", (const uint8_t *)text, strlen(text), info, &e) < 0)
		fail_msg("%s", e.text);
	return m;
}

/* The symbol of the piece that has addr, or NULL; *off, unless NULL, is from its start. */
static const struct symbol *lookup(const struct perfmap *m, uint64_t addr, uint64_t *off)
{
	for (size_t i = 0; i < perfmap_pieces(m); i++) {
		uint64_t start, end;
		const struct symbol *s = perfmap_piece(m, i, &start, &end);

		if (addr < start || addr >= end)
			continue;
		if (s && off)
			*off = addr - s->addr;
		return s;
	}
	return NULL;
}

static const char *name_at(const struct perfmap *m, uint64_t addr)
{
	const struct symbol *s = lookup(m, addr, NULL);

	return s ? s->name : "-";
}

static void names(void **state)
{
	struct perfmap_info info;
	struct perfmap *m = parse("7f0000001000 20 LazyCompile:~f /app/a b.js:1:2\r\n"
				  "0x7f0000001040 0x10 java.lang.String::hash(I)\n"
				  "\n"
				  "7f0000002000 8 a\x1b[31mb\n"
				  "7f0000003000 0 nothing\n"
				  "zz 10 bad\n"
				  "7f0000004000 10\n"
				  "7f0000005000 10  two blanks\n"
				  "ffffffffffffffff 10 wraps\n"
				  "10000000000000000 10 wide\n"
				  "7f0000006000 10 cu",
				  &info);
	uint64_t off;

	(void)state;
	assert_string_equal(name_at(m, 0x7f000000101f), "LazyCompile:~f /app/a b.js:1:2");
	assert_string_equal(name_at(m, 0x7f0000001020), "-");
	assert_string_equal(name_at(m, 0x7f0000001044), "java.lang.String::hash(I)");
	assert_string_equal(name_at(m, 0x7f0000002007), "a?[31mb");
	assert_string_equal(name_at(m, 0x7f0000003000), "-");
	assert_string_equal(name_at(m, 0x7f0000005001), "two blanks");
	assert_string_equal(name_at(m, 0x7f0000006000), "cu");
	assert_string_equal(name_at(m, 0), "-");
	assert_string_equal(name_at(m, UINT64_MAX), "-");
	assert_non_null(lookup(m, 0x7f0000001013, &off));
	assert_int_equal(off, 0x13);
	assert_int_equal(info.entries, 5);
	assert_int_equal(info.ignored, 5);
	assert_int_equal(info.first_ignored, 5);
	assert_int_equal(info.hidden, 0);
	perfmap_destroy(m);
}

static bool in_doubt(const struct perfmap *m, uint64_t addr)
{
	return perfmap_is_uncertain(m, lookup(m, addr, NULL));
}

static void later_hides_earlier(void **state)
{
	struct perfmap_info info;
	struct perfmap *m = parse("1000 100 old\n"
				  "1040 10 inside\n"
				  "1100 10 gone\n"
				  "10f0 30 over-two\n"
				  "2000 10 first\n"
				  "2000 10 second\n"
				  "3000 10 small\n"
				  "2ff0 100 large-later\n",
				  &info);
	uint64_t off;

	(void)state;
	assert_string_equal(name_at(m, 0x1000), "old");
	assert_string_equal(name_at(m, 0x1040), "inside");
	assert_string_equal(name_at(m, 0x1050), "old");
	assert_non_null(lookup(m, 0x1050, &off));
	assert_int_equal(off, 0x50);
	assert_string_equal(name_at(m, 0x10f0), "over-two");
	assert_string_equal(name_at(m, 0x1108), "over-two");
	assert_string_equal(name_at(m, 0x1120), "-");
	assert_string_equal(name_at(m, 0x2000), "second");
	assert_string_equal(name_at(m, 0x3008), "large-later");
	assert_int_equal(info.hidden, 3); /* gone, first, small */
	perfmap_destroy(m);
}

/* Where code was used again, and when is not told. */
static void doubt(void **state)
{
	struct perfmap *m = parse("1000 100 JS:~f a.js:1\n"
				  "1000 100 JS:^f a.js:1\n"
				  "1000 80 JS:*f a.js:1\n"
				  "2000 100 JS:*f a.js:1\n"
				  "2080 10 JS:*g a.js:9\n"
				  "3000 10 Stub:f\n"
				  "3000 10 JS:f\n"
				  "4000 10 under\n"
				  "4010 10 beside\n"
				  "3ff0 11 over\n"
				  "5000 10 a\n"
				  "5000 10 a\n"
				  "6000 10 JS\n"
				  "6000 10 JS:\n",
				  NULL);

	(void)state;
	assert_string_equal(name_at(m, 0x1000), "JS:*f a.js:1");
	assert_false(in_doubt(m, 0x1000));
	assert_false(in_doubt(m, 0x1090));
	assert_false(in_doubt(m, 0x2000));
	assert_true(in_doubt(m, 0x2080));
	assert_true(in_doubt(m, 0x3000));
	assert_true(in_doubt(m, 0x4000));
	assert_string_equal(name_at(m, 0x4000), "over");
	assert_false(in_doubt(m, 0x4008));
	assert_false(in_doubt(m, 0x4010));
	assert_false(in_doubt(m, 0x5000));
	assert_true(in_doubt(m, 0x6000));
	perfmap_destroy(m);
}

/* Random entries against going through all lines. */
static void against_search(void **state)
{
	enum { N = 300, SPAN = 2000, MOST = 40 };
	static char text[N * 40];
	uint32_t x = 1;

	(void)state;
	for (unsigned int round = 0; round < 50; round++) {
		unsigned int start[N], size[N];
		struct perfmap *m;
		size_t len = 0;

		for (unsigned int i = 0; i < N; i++) {
			x = x * 1664525u + 1013904223u;
			start[i] = (x >> 8) % SPAN;
			size[i] = 1 + (x >> 20) % (round < 25 ? MOST : 400);
			len += (size_t)sprintf(text + len, "%x %x n%u\n", start[i], size[i], i);
		}
		m = parse(text, NULL);
		for (unsigned int at = 0; at < SPAN + 500; at++) {
			unsigned int last = N, near;
			bool other = false;
			char want[16] = "-";

			for (unsigned int i = 0; i < N; i++)
				if (at >= start[i] && at - start[i] < size[i])
					last = i;
			if (last < N)
				snprintf(want, sizeof(want), "n%u", last);
			assert_string_equal(name_at(m, at), want);
			near = 0;
			for (unsigned int i = 0; last < N && i < N; i++) {
				other |= i < last && start[i] < start[last] + size[last] &&
					 start[last] < start[i] + size[i];
				near += start[i] < start[last] + 2 * MOST &&
					start[last] < start[i] + 2 * MOST;
			}
			/* Many over one another count as doubtful without being compared. */
			if (last < N && (other || (round < 25 && near <= PERFMAP_MAX_OVER / 2)))
				assert_int_equal(in_doubt(m, at), other);
		}
		perfmap_destroy(m);
	}
}

static void refused(void **state)
{
	static const char *const bad[] = { "", "\n\n", "hello world\n", "1000 10\n" };
	struct perfmap *m;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct err e = { 0 };

		assert_int_equal(perfmap_parse(&m, "map", (const uint8_t *)bad[i], strlen(bad[i]),
					       NULL, &e),
				 -ENOENT);
		assert_non_null(strstr(e.text, "START SIZE name"));
	}
}

static void long_name(void **state)
{
	static char text[20000];
	struct perfmap *m;

	(void)state;
	strcpy(text, "10 10 ");
	memset(text + 6, 'x', sizeof(text) - 7);
	m = parse(text, NULL);
	assert_int_equal(strlen(name_at(m, 0x10)), SYMTAB_MAX_NAME);
	perfmap_destroy(m);
}

/* Pieces cover what lookups answer, without gaps between them. */
static void pieces(void **state)
{
	struct perfmap *m = parse("1000 100 under\n1040 10 over\n2000 10 far\n", NULL);
	static const struct {
		uint64_t start, end;
		const char *name;
	} want[] = { { 0x1000, 0x1040, "under" }, { 0x1040, 0x1050, "over" },
		     { 0x1050, 0x1100, "under" }, { 0x1100, 0x2000, NULL },
		     { 0x2000, 0x2010, "far" },	  { 0x2010, UINT64_MAX, NULL } };

	(void)state;
	assert_int_equal(perfmap_pieces(m), 6);
	for (size_t i = 0; i < 6; i++) {
		uint64_t start, end;
		const struct symbol *s = perfmap_piece(m, i, &start, &end);

		assert_int_equal(start, want[i].start);
		assert_int_equal(end, want[i].end);
		assert_int_equal(s != NULL, want[i].name != NULL);
		if (s)
			assert_string_equal(s->name, want[i].name);
	}
	perfmap_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),	  cmocka_unit_test(later_hides_earlier),
		cmocka_unit_test(doubt),	  cmocka_unit_test(refused),
		cmocka_unit_test(against_search), cmocka_unit_test(long_name),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
