/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cleanup.h"
#include "base/option.h"

#include <errno.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct inner {
	const char *name;
	bool flag;
};

struct options {
	bool off, by_self;
	unsigned int n32;
	uint64_t n64, size;
	double real;
	const char *text, *needed, *graph, *images, *word[4];
	unsigned int nwords, seen;
	struct inner inner, other;
};

static int parse_graph(void *at, char *arg, struct err *e)
{
	*(const char **)at = arg ? arg : "alone";
	return arg && !strcmp(arg, "bad") ? err_set(e, EINVAL, "no such graph") : 0;
}

static int end_here(void *at, char *arg, struct err *e)
{
	(void)at;
	(void)arg;
	(void)e;
	return 7;
}

#define OPTION_STRUCT struct inner
static const struct option_row inner_rows[] = {
	{ "name", 'N', "NAME", "what it is called,\nin two lines", OPTION_TEXT(name) },
	{ "flag", 0, NULL, "a flag", OPTION_PUT(flag, true) },
	{ 0 },
};
#undef OPTION_STRUCT

static const char *const orders[] = { "children", "self", NULL };

#define OPTION_STRUCT struct options
static const struct option_row rows[] = {
	{ "on", 'o', NULL, "not off", OPTION_PUT(off, false) },
	{ "order", 0, "ORDER", "a word", OPTION_WORD(by_self, orders) },
	{ "n32", 'n', "N", "a number", OPTION_WHOLE(n32, 1, 9, "1 to 9") },
	{ "n64", 0, "N", NULL, OPTION_WHOLE(n64, 0, UINT64_MAX, "a number") },
	{ "size", 0, "SIZE", "bytes", OPTION_SIZE(size, 1024, 4096, "1K to 4K") },
	{ "real", 0, "R", "a number", OPTION_REAL(real, 0.5, 1, "0.5 to 1") },
	OPTION_HEADING("\nTexts:\n"),
	{ "text", 0, "TEXT", "any text", OPTION_TEXT(text) },
	{ "a-very-long-name", 0, "TEXT", "not empty", OPTION_TEXT_OF(needed, "a text") },
	{ "graph", 'g', "HOW", "how", OPTION_CALL_AT(parse_graph, graph, NULL), .next = true },
	{ "images", 0, "[=WHAT]", "which", OPTION_CALL_AT(parse_graph, images, NULL) },
	{ "end", 0, NULL, "end", OPTION_CALL(end_here, NULL) },
	OPTION_ROWS(inner_rows, inner),
	OPTION_AS("flag", "the other's flag", inner_rows, other),
	OPTION_HELP,
	{ 0 },
};
#undef OPTION_STRUCT

static const struct option_habit habits[] = {
	{ "-smp", "it is --n32 here" },
	{ "-nographic", "there are no graphics" },
	{ NULL, NULL },
};

static struct options o;
static struct err e;

static int take_word(void *at, char *arg, struct err *err)
{
	struct options *to = at;

	if (to->nwords == ARRAY_SIZE(to->word))
		return err_set(err, E2BIG, "too many");
	to->word[to->nwords++] = arg;
	return 0;
}

static void count(void *at, const struct option_row *row)
{
	((struct options *)at)->seen += row->name != NULL;
}

static struct option_set set = { .usage = "Usage: x\n",
				 .after = "That is all.\n",
				 .rows = rows,
				 .column = 20,
				 .seen = count,
				 .habits = habits };

/* Words with blanks between them; texts stay until the next call. */
static int parse(const char *line)
{
	static char copy[256];
	static char *argv[17];
	char *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	argv[0] = (char[]){ "x" };
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = !strcmp(w, "EMPTY") ? w + 5 : w;
	argv[argc] = NULL;
	o = (struct options){ .off = true };
	e = (struct err){ 0 };
	return option_parse(&set, &o, argc, argv, &e);
}

static void refuse(const char *line, const char *why)
{
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(e.text, why);
}

static void values(void **state)
{
	(void)state;
	set.word = NULL;
	assert_int_equal(parse("-on9 --order self --n64=18446744073709551615 --size 2K --real .5"),
			 0);
	assert_true(!o.off && o.n32 == 9 && o.by_self && o.n64 == UINT64_MAX && o.size == 2048);
	assert_true(o.real == 0.5);
	assert_int_equal(o.seen, 6);
	assert_int_equal(parse("w --text EMPTY --a-very x -N a --flag v"), 0);
	assert_string_equal(o.text, "");
	assert_string_equal(o.needed, "x");
	assert_string_equal(o.inner.name, "a");
	assert_true(o.inner.flag && o.off);
	assert_int_equal(parse("--end --nothing"), 7);
	assert_int_equal(parse("-oh --nothing"), OPTION_ASKED_HELP);
}

static void left_out_values(void **state)
{
	(void)state;
	assert_int_equal(parse("-g"), 0);
	assert_string_equal(o.graph, "alone");
	assert_int_equal(parse("-g -o --graph"), 0);
	assert_string_equal(o.graph, "alone");
	assert_false(o.off);
	assert_int_equal(parse("-g callee --images x"), 0);
	assert_string_equal(o.graph, "callee");
	assert_string_equal(o.images, "alone");
	assert_int_equal(parse("-gcaller --images=x"), 0);
	assert_string_equal(o.graph, "caller");
	assert_string_equal(o.images, "x");
}

static void refusals(void **state)
{
	(void)state;
	set.word = NULL;
	refuse("-oZ", "unknown option '-Z'");
	refuse("--nothing", "unknown option '--nothing'");
	refuse("--on=3", "option '--on' takes no value");
	refuse("--oder=up", "unknown option '--oder=up' (did you mean --order?)");
	refuse("--graphh", "unknown option '--graphh' (did you mean --graph?)");
	refuse("-on", "option '-n' needs a value");
	refuse("--n32", "option '--n32' needs a value");
	refuse("--n32 10", "--n32 10: expected 1 to 9");
	refuse("-n 0", "--n32 0: expected 1 to 9");
	refuse("--size 1M", "--size 1M: expected 1K to 4K");
	refuse("--real nan", "--real nan: expected 0.5 to 1");
	refuse("--order up", "--order up: expected children or self");
	refuse("--a-very-long-name EMPTY", "--a-very-long-name '': expected a text");
	refuse("--n32 \033\n", "--n32 ??: expected 1 to 9");
	refuse("-g bad", "--graph: no such graph");
	refuse("-order up", "option '-order' needs two dashes: --order");
	refuse("-graph=bad", "option '-graph' needs two dashes: --graph");
	refuse("-on9 -n32 3", "option '-n32' needs two dashes: --n32");
	refuse("-smp 2", "unknown option '-smp': it is --n32 here");
	refuse("-nographic", "unknown option '-nographic': there are no graphics");
	assert_int_equal(parse("-N -graph --text -smp"), 0);
	assert_string_equal(o.inner.name, "-graph");
	assert_string_equal(o.text, "-smp");
	assert_int_equal(parse("-g -n3 -gbest --n64 5"), 0);
	assert_string_equal(o.graph, "best");
}

static void words(void **state)
{
	(void)state;
	set.word = take_word;
	assert_int_equal(parse("a -o b -- -o c"), 0);
	assert_int_equal(o.nwords, 4);
	assert_string_equal(o.word[2], "-o");
	assert_int_equal(parse("a b c d e"), -E2BIG);
	set.word = NULL;
	set.order = OPTION_FIRST;
	assert_int_equal(parse("a -o"), 0);
	assert_true(o.off && optind == 1);
	set.order = OPTION_ALONE;
	refuse("-o a", "unexpected argument 'a'");
	set.order = OPTION_ANYWHERE;
}

static void help_text(void **state)
{
	static const char want[] = "Usage: x\n"
				   "  -o, --on          not off\n"
				   "      --order ORDER a word\n"
				   "  -n, --n32 N       a number\n"
				   "      --size SIZE   bytes\n"
				   "      --real R      a number\n"
				   "\n"
				   "Texts:\n"
				   "      --text TEXT   any text\n"
				   "      --a-very-long-name TEXT  not empty\n"
				   "  -g, --graph HOW   how\n"
				   "      --images[=WHAT]  which\n"
				   "      --end         end\n"
				   "  -N, --name NAME   what it is called,\n"
				   "                    in two lines\n"
				   "      --flag        a flag\n"
				   "      --flag        the other's flag\n"
				   "  -h, --help        this text\n"
				   "That is all.\n";
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	option_help(&set, f);
	fclose(f);
	assert_string_equal(text, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),    cmocka_unit_test(left_out_values),
		cmocka_unit_test(refusals),  cmocka_unit_test(words),
		cmocka_unit_test(help_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
