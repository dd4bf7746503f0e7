/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares add up to one: what follows from another function's change is neither an improvement nor a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/gate/gate.h"
#include "profile/compare/gate/write.h"
#include "tests/unit/stackset_fixture.h"

#include <stdlib.h>

#define RUNS 10u
#define FUNCS 5u

static const char *const names[FUNCS] = { "left_leaf", "other", "spin", "right_leaf", "copy" };

/* One run: what each function does, with noise of some tenths of a percent. */
static struct gate_run *run_of(const struct gate_rules *rules, const uint64_t *weight,
			       unsigned int noise)
{
	static struct fixture f;
	struct gate_run *run = NULL;
	struct err e = { 0 };

	fixture_init(&f);
	fixture_task(&f, "t", 1);
	for (unsigned int i = 0; i < FUNCS; i++) {
		uint64_t w = weight[i] + weight[i] * ((noise * 7919 + i * 104729) % 101) / 30000;

		fixture_func(&f, names[i], "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
		fixture_stack(&f, 0, STACKSET_KERNEL, w, names[i]);
	}
	f.set.first_ns = 1000;
	f.set.last_ns = 1000 + f.set.weight;
	if (gate_run_make(&run, "run", &f.set, rules, &e))
		fail_msg("%s", e.text);
	return run;
}

static struct gate_rules *rules;
static struct gate *g;

static struct gate_report *compare(const uint64_t *base, const uint64_t *head)
{
	static const char text[] = "[[rule]]\nmetric = \"symbols\"\nthreshold = \"1 points\"\n";
	const struct gate_eval_options opt = { 0 };
	struct gate_report *r = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&rules, "rules", text, strlen(text), &e))
		fail_msg("%s", e.text);
	assert_int_equal(gate_create(&g, rules, &e), 0);
	for (unsigned int i = 0; i < RUNS; i++) {
		assert_int_equal(gate_add_run(g, GATE_BASE, run_of(rules, base, 2 * i), &e), 0);
		assert_int_equal(gate_add_run(g, GATE_HEAD, run_of(rules, head, 2 * i + 1), &e), 0);
	}
	if (gate_evaluate(g, &opt, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static void done(struct gate_report *r)
{
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static const uint64_t even[FUNCS] = { 200000, 200000, 200000, 200000, 200000 };

static void test_one_grew(void **state)
{
	static const uint64_t head[FUNCS] = { 260000, 200000, 200000, 200000, 200000 };
	struct gate_report *r = compare(even, head);
	const struct gate_write_options opt = { 0 };
	struct buf b;
	char *text;

	(void)state;
	assert_int_equal(gate_exit_status(r), 1);
	assert_int_equal(r->outcome[0].nworse, 1);
	assert_string_equal(r->outcome[0].finding[0].name, "left_leaf");
	assert_int_equal(r->outcome[0].nbetter, 0);
	assert_int_equal(r->nmoved, FUNCS);
	assert_string_equal(r->moved[0].name, "left_leaf");
	assert_false(r->moved[0].explained);
	for (size_t i = 1; i < FUNCS; i++) {
		assert_true(r->moved[i].explained);
		assert_string_equal(r->moved[i].note, "a smaller part because left_leaf grew");
	}
	buf_init(&b);
	assert_int_equal(gate_write_text(&b, r, &opt, NULL), 0);
	buf_u8(&b, 0);
	text = strstr((char *)b.data, "# which follows from that");
	assert_non_null(text);
	assert_null(strstr(text, " left_leaf\n"));
	assert_non_null(strstr(text, "because left_leaf grew"));
	buf_deinit(&b);
	done(r);
}

/* A function that got better does not make the others worse. */
static void test_one_shrank(void **state)
{
	static const uint64_t head[FUNCS] = { 100000, 200000, 200000, 200000, 200000 };
	struct gate_report *r = compare(even, head);

	(void)state;
	assert_int_equal(gate_exit_status(r), 0);
	assert_int_equal(r->outcome[0].nworse, 0);
	assert_int_equal(r->outcome[0].nbetter, 1);
	assert_string_equal(r->moved[1].note, "a larger part because left_leaf shrank");
	done(r);
}

/* One that shrank does not hide one that grew. */
static void test_both(void **state)
{
	static const uint64_t head[FUNCS] = { 100000, 260000, 200000, 200000, 200000 };
	struct gate_report *r = compare(even, head);

	(void)state;
	assert_int_equal(gate_exit_status(r), 1);
	assert_int_equal(r->outcome[0].nworse, 1);
	assert_string_equal(r->outcome[0].finding[0].name, "other");
	done(r);
}

/* Where few functions have most of the weight, it may be they that grew: nothing is explained away. */
static void test_hot_functions(void **state)
{
	static const uint64_t base[FUNCS] = { 400000, 400000, 70000, 70000, 60000 };
	static const uint64_t head[FUNCS] = { 520000, 520000, 70000, 70000, 60000 };
	struct gate_report *r = compare(base, head);

	(void)state;
	assert_int_equal(gate_exit_status(r), 1);
	assert_int_equal(r->outcome[0].nworse, 2);
	done(r);
}

static void test_nothing_changed(void **state)
{
	struct gate_report *r = compare(even, even);

	(void)state;
	assert_int_equal(gate_exit_status(r), 0);
	assert_int_equal(r->nmoved, 0);
	for (size_t i = 0; i < r->outcome[0].nfindings; i++)
		assert_null(r->outcome[0].finding[i].note);
	done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_grew),
		cmocka_unit_test(test_one_shrank),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_hot_functions),
		cmocka_unit_test(test_nothing_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
