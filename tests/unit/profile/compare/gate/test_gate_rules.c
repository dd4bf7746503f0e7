/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TOML as C structures, and the rules of a gate: what they mean and what is wrong where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/gate/rules.h"
#include "profile/compare/gate/toml.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct gate_rules *parse(const char *text)
{
	struct gate_rules *rules = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&rules, "f", text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
	return rules;
}

static void toml_keeps_order_and_places(void **state)
{
	static const char text[] = "z = 1\n"
				   "a = \"x\"\n"
				   "[t]\n"
				   "  r = -2.5\n"
				   "  l = [true, \"y\"]\n"
				   "  d = 1979-05-27\n";
	struct toml_node *doc = NULL, *t;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(toml_parse(&doc, "f", text, strlen(text), &e), 0);
	assert_string_equal(doc->child->key, "z");
	assert_int_equal(doc->child->integer, 1);
	assert_true(doc->child->real == 1);
	assert_string_equal(doc->child->next->string, "x");
	t = doc->child->next->next;
	assert_int_equal(t->kind, TOML_TABLE);
	assert_null(t->next);
	assert_true(t->child->real == -2.5);
	assert_int_equal(t->child->line, 4);
	assert_int_equal(t->child->column, 7);
	assert_int_equal(t->child->key_column, 3);
	t = t->child->next;
	assert_int_equal(t->kind, TOML_ARRAY);
	assert_true(t->child->boolean);
	assert_string_equal(t->child->next->string, "y");
	assert_int_equal(t->next->kind, TOML_OTHER);
	toml_free(doc);
}

static void toml_says_where(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "a = 1\na = 2\n", "f:2:" },
		{ "a = \n", "f:1:" },
		{ "x = \"\\u0000\"", "f:1:5: a string or key with a NUL" },
	};
	struct toml_node *doc = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = { 0 };

		assert_int_equal(toml_parse(&doc, "f", bad[i].text, strlen(bad[i].text), &e),
				 -EINVAL);
		if (strncmp(e.text, bad[i].says, strlen(bad[i].says)) != 0)
			fail_msg("'%s', expected '%s'", e.text, bad[i].says);
		assert_null(doc);
	}
}

static void defaults_are_in_the_program(void **state)
{
	struct gate_rules *r = NULL;
	struct err e = { 0 };

	(void)state;
	if (gate_rules_load(&r, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(r->built_in);
	assert_int_equal(r->n, 4);
	assert_true(r->error_rate == 0.01);
	assert_int_equal(r->rule[0].metric, GATE_RULE_TIME);
	assert_int_equal(r->rule[1].metric, GATE_RULE_SYMBOLS);
	assert_true(r->rule[1].fail);
	assert_false(r->rule[3].fail);
	gate_rules_destroy(r);
}

static void units_are_scaled(void **state)
{
	static const struct {
		const char *metric, *threshold;
		enum stats_unit unit;
		double value;
	} good[] = {
		{ "time", "2 %", STATS_RELATIVE, 0.02 },
		{ "time", "1.5ms", STATS_ABSOLUTE, 1.5e6 },
		{ "boot-time", "2 min", STATS_ABSOLUTE, 120e9 },
		{ "vmm-time", "2 s", STATS_ABSOLUTE, 2e9 },
		{ "symbols", "0.5 points", STATS_POINTS, 0.5 },
		{ "new-symbols", "1 point", STATS_POINTS, 1 },
		{ "exits", "100 /s", STATS_ABSOLUTE, 100 },
		{ "io-bytes", "2 KiB", STATS_ABSOLUTE, 2048 },
		{ "io-bytes", "2 kB", STATS_ABSOLUTE, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct gate_rules *r;
		char text[160];

		snprintf(text, sizeof(text), "[[rule]]\nmetric = \"%s\"\nthreshold = \"%s\"\n",
			 good[i].metric, good[i].threshold);
		r = parse(text);
		assert_int_equal(r->rule[0].threshold.unit, good[i].unit);
		assert_true(fabs(r->rule[0].threshold.value - good[i].value) <
			    1e-9 * good[i].value);
		gate_rules_destroy(r);
	}
}

/* The larger of threshold and min-effect, where the base is. */
static void both_bars_count(void **state)
{
	struct gate_rules *r = parse("[[rule]]\nmetric = \"time\"\nthreshold = \"2 %\"\n"
				     "min-effect = \"5 ms\"\npower = 0.8\nworse = \"either\"\n");
	struct stats_rule small = gate_rule_stats(&r->rule[0], 100e6, 0.01);
	struct stats_rule large = gate_rule_stats(&r->rule[0], 1e9, 0.01);

	(void)state;
	assert_int_equal(small.unit, STATS_ABSOLUTE);
	assert_true(small.min_effect == 5e6);
	assert_int_equal(large.unit, STATS_RELATIVE);
	assert_true(large.min_effect == 0.02);
	assert_true(fabs(large.miss - 0.2) < 1e-12);
	assert_int_equal(large.worse, STATS_EITHER);
	gate_rules_destroy(r);
}

static void functions_match(void **state)
{
	struct stackset_func f;
	struct gate_rules *r = parse("[[rule]]\nmetric = \"share\"\nsymbol = \"copy\"\n"
				     "threshold = \"1 points\"\n"
				     "[[rule]]\nmetric = \"share\"\nsubtree-regex = \"^(a|b)_\"\n"
				     "dso = \"libc.so.6\"\nthreshold = \"1 points\"\n"
				     "[[rule]]\nmetric = \"symbols\"\nexclude = \"idle\"\n"
				     "threshold = \"1 points\"\n");

	(void)state;
	assert_true(gate_rule_matches(&r->rule[0], "copy", "[k]"));
	assert_true(gate_rule_matches(&r->rule[0], "copy.isra.0", "[k]"));
	assert_false(gate_rule_matches(&r->rule[0], "copy_user", "[k]"));
	assert_false(gate_rule_matches(&r->rule[0], "cop", "[k]"));
	assert_true(gate_rule_matches(&r->rule[1], "b_x", "/lib/libc.so.6"));
	assert_true(gate_rule_matches(&r->rule[1], "b_x", "libc.so.6"));
	assert_false(gate_rule_matches(&r->rule[1], "b_x", "/lib/libc.so.60"));
	assert_false(gate_rule_matches(&r->rule[1], "c_x", "/lib/libc.so.6"));
	assert_true(r->rule[1].children);
	assert_true(gate_rule_matches(&r->rule[2], "copy", "[k]"));
	assert_false(gate_rule_matches(&r->rule[2], "do_idle", "[k]"));
	/* A function has several names. */
	f = (struct stackset_func){ .name = "shown", .dso = "[k]", .aliases = "copy\nmy_idle\n" };
	assert_true(gate_rule_matches_function(&r->rule[0], &f));
	assert_false(gate_rule_matches_function(&r->rule[1], &f));
	assert_false(gate_rule_matches_function(&r->rule[2], &f));
	f.aliases = "copy_user\n";
	assert_false(gate_rule_matches_function(&r->rule[0], &f));
	assert_true(gate_rule_matches_function(&r->rule[2], &f));
	f.aliases = NULL;
	f.name = "copy";
	assert_true(gate_rule_matches_function(&r->rule[0], &f));
	assert_string_equal(r->rule[0].key, "share copy");
	assert_string_equal(r->rule[1].key, "share subtree /^(a|b)_/ in libc.so.6");
	gate_rules_destroy(r);
}

static void mistakes_have_a_place(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "f: contains no rules" },
		{ "[gate]\nerror = 1\n", "f:2:1: unknown key 'error' in [gate]" },
		{ "[gate]\npower = 2\n", "f:2:9: power is 2, expected" },
		{ "[gat]\n", "f:1:2: unknown table" },
		{ "[rule]\n", "f:1:" },
		{ "[[rule]]\n", "f:1:1: a rule without a metric" },
		{ "[[rule]]\nmetric = \"tim\"\n", "f:2:10: no metric \"tim\"" },
		{ "[[rule]]\nmetric = \"time\"\n", "f:1:1: a rule without a threshold" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = 2\n",
		  "f:3:13: threshold has the type" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = \"2\"\n",
		  "f:3:13: threshold is \"2\"" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = \"0 %\"\n", "f:3:13:" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = \"1e999 s\"\n", "f:3:13:" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = \"2 points\"\n", "f:3:13:" },
		{ "[[rule]]\nmetric = \"time\"\ntreshold = \"2 %\"\n", "f:3:1: unknown key" },
		{ "[[rule]]\nmetric = \"time\"\nsymbol = \"x\"\n",
		  "f:3:1: 'symbol' is not allowed with the metric time" },
		{ "[[rule]]\nmetric = \"time\"\nphase = \"bios\"\n", "f:3:9: no phase \"bios\"" },
		{ "[[rule]]\nmetric = \"instructions\"\nphase = \"kvm\"\n",
		  "f:3:9: no phase \"kvm\": first" },
		{ "[[rule]]\nmetric = \"time\"\nphase = \"vmm\"\nuntil = \"x\"\n"
		  "threshold = \"1 s\"\n",
		  "f:1:1: a time has either a phase or a marker" },
		{ "[[rule]]\nmetric = \"time\"\nfrom = \"x\"\nthreshold = \"1 s\"\n",
		  "f:1:1: from needs until" },
		{ "[[rule]]\nmetric = \"share\"\nregex = \"a(\"\n",
		  "f:3:9: regex \"a(\" is not a regular expression" },
		{ "[[rule]]\nmetric = \"share\"\nthreshold = \"1 points\"\n",
		  "f:1:1: the metric share needs one of" },
		{ "[[rule]]\nmetric = \"new-symbols\"\nthreshold = \"1 %\"\n",
		  "f:1:1: new-symbols has no base" },
		{ "[[rule]]\nmetric = \"time\"\nthreshold = \"1 s\"\n"
		  "[[rule]]\nmetric = \"time\"\nthreshold = \"2 s\"\n",
		  "f:4:1: a second rule has the name \"time\" (the first is in line 1)" },
		{ "[[rule]]\nmetric = \"time\"\nlevel = \"error\"\n", "f:3:9: level is \"error\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gate_rules *r = NULL;
		struct err e = { 0 };

		if (gate_rules_parse(&r, "f", bad[i].text, strlen(bad[i].text), &e) != -EINVAL)
			fail_msg("taken: %s", bad[i].text);
		if (strncmp(e.text, bad[i].says, strlen(bad[i].says)) != 0)
			fail_msg("'%s', expected '%s'", e.text, bad[i].says);
		assert_null(r);
	}
}

static void files_that_ship_are_good(void **state)
{
	static const char *const path[] = { "configs/gate-default.toml", "configs/gate-boot.toml",
					    "configs/gate-share.toml", "configs/gate-busy.toml",
					    "configs/gate-vmm.toml" };

	(void)state;
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		struct gate_rules *r = NULL;
		struct err e = { 0 };

		if (gate_rules_load(&r, path[i], &e) == -ENOENT)
			SKIP("%s is not below this directory", path[i]);
		if (!r)
			fail_msg("%s", e.text);
		assert_null(r->built_in);
		gate_rules_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(toml_keeps_order_and_places),
		cmocka_unit_test(toml_says_where),
		cmocka_unit_test(defaults_are_in_the_program),
		cmocka_unit_test(units_are_scaled),
		cmocka_unit_test(both_bars_count),
		cmocka_unit_test(functions_match),
		cmocka_unit_test(mistakes_have_a_place),
		cmocka_unit_test(files_that_ship_are_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
