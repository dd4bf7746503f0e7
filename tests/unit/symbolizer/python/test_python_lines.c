/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of lines: those of this machine's Python, as it reads them itself, and damaged ones.
 */
#include "symbolizer/python/python_code.h"

#include "tests/unit/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MAX_TABLE 65536u

/* For each code object of some modules: its first line, its table, and the line of each unit. */
static const char script[] =
	"import argparse, ast, dis, inspect, json, re, sys, tarfile, textwrap, types\n"
	"if sys.version_info < (3, 11): sys.exit(3)\n"
	"todo = [compile(inspect.getsource(m), m.__name__, 'exec') for m in\n"
	"        (argparse, ast, dis, inspect, re, tarfile, textwrap)]\n"
	"while todo:\n"
	"    c = todo.pop()\n"
	"    todo += [k for k in c.co_consts if isinstance(k, types.CodeType)]\n"
	"    lines = [0] * (len(c.co_code) // 2)\n"
	"    for a, b, n in c.co_lines():\n"
	"        for i in range(a // 2, b // 2): lines[i] = n or 0\n"
	"    print(c.co_firstlineno, c.co_linetable.hex(), *lines)\n";

static size_t unhex(uint8_t *out, const char *text)
{
	size_t n = 0;
	unsigned int b;

	for (; n < MAX_TABLE && sscanf(text + 2 * n, "%2x", &b) == 1; n++)
		out[n] = (uint8_t)b;
	return n;
}

static void as_python(void **state)
{
	static char line[1 << 20];
	static uint8_t table[MAX_TABLE];
	FILE *f;
	char cmd[sizeof(script) + 64];
	unsigned long tables = 0, units = 0;

	(void)state;
	snprintf(cmd, sizeof(cmd), "python3 - 2>/dev/null <<'END'\n%sEND\n", script);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *save = NULL, *word = strtok_r(line, " \n", &save);
		uint32_t first = (uint32_t)strtoul(word, NULL, 10);
		struct python_line_range r, seen = { 0 };
		size_t n = unhex(table, strtok_r(NULL, " \n", &save));

		for (uint64_t unit = 0; (word = strtok_r(NULL, " \n", &save)); unit++, units++) {
			uint32_t want = (uint32_t)strtoul(word, NULL, 10);

			assert_int_equal(python_line_at(table, n, first, unit), want);
			seen.low = want && (!seen.low || want < seen.low) ? want : seen.low;
			seen.high = want > seen.high ? want : seen.high;
		}
		r = python_lines_range(table, n, first);
		assert_int_equal(r.low, seen.low);
		assert_int_equal(r.high, seen.high);
		tables++;
	}
	if (WEXITSTATUS(pclose(f)) == 3)
		SKIP("this Python is older than 3.11");
	print_message("%lu tables, %lu units of code\n", tables, units);
	assert_true(tables > 300);
	assert_true(units > 50000);
}

static void damaged(void **state)
{
	/* Two units of the first line, then three that are 5 lines further on. */
	static const uint8_t good[] = { 0x80 | 10 << 3 | 1, 0, 3, 0x80 | 13 << 3 | 2, 10 };
	static const uint8_t endless[] = {
		0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f
	};
	static const uint8_t back[] = { 0x80 | 13 << 3, 0x7f, 0x3f };
	static const uint8_t cut[] = { 0x80 | 14 << 3, 0x80 | 10 << 3 };

	(void)state;
	assert_int_equal(python_line_at(good, sizeof(good), 7, 1), 7);
	assert_int_equal(python_line_at(good, sizeof(good), 7, 2), 12);
	assert_int_equal(python_line_at(good, sizeof(good), 7, 4), 12);
	assert_int_equal(python_line_at(good, sizeof(good), 7, 5), 0);
	assert_int_equal(python_line_at(good, 1, 7, 0), 7);
	assert_int_equal(python_line_at(good, 4, 7, 2), 0); /* the number is missing */
	assert_int_equal(python_line_at(endless, sizeof(endless), 7, 0), 0);
	assert_int_equal(python_line_at(back, sizeof(back), 7, 0), 0); /* below 0 */
	assert_int_equal(python_line_at(cut, sizeof(cut), 7, 0), 0);
	assert_int_equal(python_line_at(NULL, 0, 7, 0), 0);
	assert_int_equal(python_lines_range(NULL, 0, 7).high, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_python),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
