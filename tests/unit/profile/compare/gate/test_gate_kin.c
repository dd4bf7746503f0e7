/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that were renamed, inlined or split: both gates judge what they and their callers do together, and name the pair. What
 * grew by itself still fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/gate/exact.h"
#include "profile/compare/gate/write.h"
#include "tests/unit/stackset_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL "[kernel.kallsyms]"
#define RUNS 8u

/* Stacks, outermost first, with their weights; up to the first without a text. */
struct stack {
	const char *frames;
	uint64_t weight;
};

#define MOST_STACKS 12u

/* The DSO of functions whose names begin with "prog". */
static const char *program = "/build/base/p";

static const char *dso_of(const char *name)
{
	return strncmp(name, "prog", 4) ? KERNEL : program;
}

static void make(struct fixture *f, const struct stack *st, unsigned int noise)
{
	fixture_init(f);
	fixture_task(f, "t", 1);
	for (unsigned int i = 0; i < MOST_STACKS && st[i].frames; i++) {
		fixture_names(f, st[i].frames, dso_of);
		fixture_stack(f, 0, STACKSET_KERNEL,
			      st[i].weight + (noise ? (noise * 7919 + i * 104729) % 101 : 0),
			      st[i].frames);
	}
	f->set.first_ns = 1000;
	f->set.last_ns = 1000 + f->set.weight;
}

struct gating {
	struct gate_rules *rules;
	struct gate *g;
	struct gate_report *r;
};

static void end(struct gating *x)
{
	gate_report_destroy(x->r);
	gate_destroy(x->g);
	gate_rules_destroy(x->rules);
}

static void load(struct gating *x, const char *rules)
{
	struct err e = { 0 };

	if (gate_rules_parse(&x->rules, "rules", rules, strlen(rules), &e))
		fail_msg("%s", e.text);
	assert_int_equal(gate_create(&x->g, x->rules, &e), 0);
}

static const char exact_rules[] =
	"[[rule]]\nname = \"functions\"\nmetric = \"function-instructions\"\nthreshold = \"0.1 "
	"%\"\n"
	"[[rule]]\nname = \"children\"\nmetric = \"function-instructions\"\nchildren = true\n"
	"threshold = \"0.1 %\"\n"
	"[[rule]]\nname = \"stacks\"\nmetric = \"stack-instructions\"\nthreshold = \"0.1 %\"\n";

static struct gating exact(const struct stack *base, const struct stack *head)
{
	static struct fixture b, h;
	const struct gate_exact_input in[GATE_SIDE_MAX] = { { "base", &b.set, NULL },
							    { "head", &h.set, NULL } };
	struct gating x = { 0 };
	struct err e = { 0 };

	program = "/build/base/p";
	make(&b, base, 0);
	program = "/build/head/p";
	make(&h, head, 0);
	b.set.event = h.set.event = "instructions";
	b.set.weight_is_ns = h.set.weight_is_ns = false;
	b.set.counted = h.set.counted = true;
	load(&x, exact_rules);
	if (gate_evaluate_exact_sets(x.g, in, &x.r, &e))
		fail_msg("%s", e.text);
	fixture_forget(&b);
	fixture_forget(&h);
	return x;
}

static const char sampled_rules[] =
	"[[rule]]\nname = \"functions\"\nmetric = \"symbols\"\nthreshold = \"1 points\"\n"
	"[[rule]]\nname = \"children\"\nmetric = \"symbols\"\nchildren = true\nthreshold = \"1 "
	"points\"\n"
	"[[rule]]\nname = \"new\"\nmetric = \"new-symbols\"\nthreshold = \"1 points\"\n";

static struct gating sampled(const struct stack *base, const struct stack *head)
{
	static struct fixture f;
	const struct gate_eval_options opt = { 0 };
	struct gating x = { 0 };
	struct err e = { 0 };

	load(&x, sampled_rules);
	for (unsigned int i = 0; i < 2 * RUNS; i++) {
		struct gate_run *run = NULL;

		program = i % 2 ? "/build/head/p" : "/build/base/p";
		make(&f, i % 2 ? head : base, i + 1);
		if (gate_run_make(&run, "run", &f.set, x.rules, &e) ||
		    gate_add_run(x.g, i % 2 ? GATE_HEAD : GATE_BASE, run, &e))
			fail_msg("%s", e.text);
		fixture_forget(&f);
	}
	if (gate_evaluate(x.g, &opt, &x.r, &e))
		fail_msg("%s", e.text);
	return x;
}

static void expect_relation(const struct gating *x, enum lineage_kind kind, const char *function,
			    const char *other)
{
	for (size_t i = 0; i < x->r->nrelations; i++)
		if (x->r->relation[i].kind == kind &&
		    !strcmp(x->r->relation[i].function, function) &&
		    !strcmp(x->r->relation[i].other, other))
			return;
	fail_msg("no relation of %s and %s among %zu", function, other, x->r->nrelations);
}

static void passes(const struct gating *x)
{
	for (size_t i = 0; i < x->r->n; i++)
		if (x->r->outcome[i].status == GATE_FAILED ||
		    x->r->outcome[i].status == GATE_UNSURE)
			fail_msg("rule %s: %s %s", x->r->outcome[i].rule->name,
				 gate_status_name(x->r->outcome[i].status),
				 x->r->outcome[i].nfindings ? x->r->outcome[i].finding[0].name
							    : x->r->outcome[i].why);
}

/* No share moved by more than the noise of make(). */
static void nothing_moved(const struct gating *x)
{
	for (size_t i = 0; i < x->r->nmoved; i++)
		if (fabs(x->r->moved[i].result.diff) > 0.001)
			fail_msg("%s: %g -> %g", x->r->moved[i].name, x->r->moved[i].result.base,
				 x->r->moved[i].result.head);
}

/* Both gates pass, and name the pair. */
static void same(const struct stack *base, const struct stack *head, enum lineage_kind kind,
		 const char *function, const char *other)
{
	struct gating x = exact(base, head);

	passes(&x);
	expect_relation(&x, kind, function, other);
	end(&x);
	x = sampled(base, head);
	passes(&x);
	expect_relation(&x, kind, function, other);
	assert_int_equal(gate_exit_status(x.r), 0);
	end(&x);
}

/* Both gates fail for a function. */
static void differ(const struct stack *base, const struct stack *head, const char *function)
{
	struct gating x = exact(base, head);

	assert_int_equal(x.r->outcome[0].status, GATE_FAILED);
	assert_string_equal(x.r->outcome[0].finding[0].name, function);
	end(&x);
	x = sampled(base, head);
	assert_int_equal(x.r->outcome[0].status, GATE_FAILED);
	assert_string_equal(x.r->outcome[0].finding[0].name, function);
	end(&x);
}

static const struct stack tree[MOST_STACKS] = { { "main tree", 100000 },
						{ "main tree left_leaf", 250000 },
						{ "main tree right_leaf", 150000 },
						{ "main other", 400000 },
						{ "main other copy", 100000 } };

static void test_renamed(void **state)
{
	static const struct stack leaf[MOST_STACKS] = { { "main tree", 100000 },
							{ "main tree left_leaf_renamed", 250000 },
							{ "main tree right_leaf", 150000 },
							{ "main other", 400000 },
							{ "main other copy", 100000 } };
	static const struct stack inner[MOST_STACKS] = { { "main walk", 100000 },
							 { "main walk left_leaf", 250000 },
							 { "main walk right_leaf", 150000 },
							 { "main other", 400000 },
							 { "main other copy", 100000 } };
	static const struct stack all[MOST_STACKS] = { { "main walk", 100000 },
						       { "main walk left", 250000 },
						       { "main walk right", 150000 },
						       { "main other", 400000 },
						       { "main other copy", 100000 } };

	(void)state;
	same(tree, leaf, LINEAGE_RENAMED, "left_leaf", "left_leaf_renamed");
	same(tree, inner, LINEAGE_RENAMED, "tree", "walk");
	same(tree, all, LINEAGE_RENAMED, "tree", "walk");
	same(tree, all, LINEAGE_RENAMED, "left_leaf", "left");
	same(tree, all, LINEAGE_RENAMED, "right_leaf", "right");
}

static void test_inlined(void **state)
{
	static const struct stack head[MOST_STACKS] = { { "main tree", 349000 },
							{ "main tree right_leaf", 150000 },
							{ "main other", 400000 },
							{ "main other copy", 100000 } };
	static const struct stack deep[MOST_STACKS] = { { "main tree mid left_leaf", 250000 },
							{ "main tree mid", 50000 },
							{ "main tree", 50000 },
							{ "main tree right_leaf", 150000 },
							{ "main other", 500000 } };
	static const struct stack flat[MOST_STACKS] = { { "main tree", 349900 },
							{ "main tree right_leaf", 150000 },
							{ "main other", 500000 } };
	/* left_leaf is still called by other. */
	static const struct stack two[MOST_STACKS] = { { "main tree", 100000 },
						       { "main tree left_leaf", 250000 },
						       { "main other left_leaf", 150000 },
						       { "main other", 500000 } };
	static const struct stack one[MOST_STACKS] = { { "main tree", 350000 },
						       { "main other left_leaf", 150000 },
						       { "main other", 500000 } };

	(void)state;
	same(tree, head, LINEAGE_INLINED, "left_leaf", "tree");
	same(deep, flat, LINEAGE_INLINED, "left_leaf", "tree");
	same(deep, flat, LINEAGE_INLINED, "mid", "tree");
	same(two, one, LINEAGE_INLINED, "left_leaf", "tree");
}

/* A function that was inlined into its caller by way of two others is told of once. */
static void test_inlined_by_two_ways(void **state)
{
	static const struct stack base[MOST_STACKS] = {
		{ "main tree left leaf", 150000 }, { "main tree right leaf", 150000 },
		{ "main tree left", 10000 },	   { "main tree right", 10000 },
		{ "main tree", 100000 },	   { "main other", 500000 }
	};
	static const struct stack head[MOST_STACKS] = { { "main tree", 420000 },
							{ "main other", 500000 } };
	struct gating x = exact(base, head);
	unsigned int told = 0;

	(void)state;
	for (size_t i = 0; i < x.r->nrelations; i++)
		told += !strcmp(x.r->relation[i].function, "leaf");
	assert_int_equal(told, 1);
	end(&x);
	same(base, head, LINEAGE_INLINED, "leaf", "tree");
}

#define LAYERS 9u
#define WIDTH 40u

/* Where all functions went, each of which calls all of the next layer, there are 40^8 paths. */
static void test_paths_are_not_walked(void **state)
{
	uint32_t number[LAYERS][WIDTH];
	struct lineage l;

	(void)state;
	lineage_init(&l);
	for (unsigned int i = 0; i < LAYERS; i++)
		for (unsigned int k = 0; k < WIDTH; k++) {
			char name[32];
			const struct identity id = { name, "/bin/p", STACKSET_USER };

			snprintf(name, sizeof(name), "f%u_%u", i, k);
			assert_int_equal(lineage_function(&l, &id, &number[i][k]), 0);
			lineage_add(&l, LINEAGE_BASE, number[i][k], 1, LAYERS - i);
			for (unsigned int j = 0; i && j < WIDTH; j++)
				assert_int_equal(
					lineage_add_call(&l, LINEAGE_BASE,
							 &(struct lineage_call){
								 number[i - 1][j], number[i][k],
								 1.0 / WIDTH,
								 1.0 * (LAYERS - i) / WIDTH }),
					0);
		}
	assert_int_equal(lineage_find(&l, 0), 0);
	assert_int_equal(l.nevents, 0);
	lineage_deinit(&l);
}

static void test_split(void **state)
{
	static const struct stack base[MOST_STACKS] = { { "main tree", 350000 },
							{ "main tree right_leaf", 150000 },
							{ "main other", 400000 },
							{ "main other copy", 100000 } };

	(void)state;
	same(base, tree, LINEAGE_SPLIT, "left_leaf", "tree");
}

#define DEEP 8u
#define SMALL 5u

/* Base: layers of functions, each of which is called by all of the layer before; head: their weight is main's. */
static void make_layers(struct fixture *f, bool layers, unsigned int noise)
{
	static char name[DEEP * SMALL][16];

	fixture_init(f);
	fixture_task(f, "t", 1);
	fixture_func(f, "main", KERNEL, STACKSET_KIND_KERNEL);
	fixture_func(f, "other", KERNEL, STACKSET_KIND_KERNEL);
	fixture_stack(f, 0, STACKSET_KERNEL, (layers ? 100000 : 900000) + noise * 7919 % 101,
		      "main");
	fixture_stack(f, 0, STACKSET_KERNEL, 100000 + noise * 6007 % 101, "main other");
	for (unsigned int i = 0; layers && i < DEEP * SMALL; i++) {
		snprintf(name[i], sizeof(name[i]), "f%u_%u", i / SMALL, i % SMALL);
		fixture_func(f, name[i], KERNEL, STACKSET_KIND_KERNEL);
	}
	/* Each function but those of the last layer, with one of each layer above, and then the last layer by all ways. */
	for (unsigned int i = 0; layers && i < (DEEP - 1) * SMALL + SMALL * SMALL; i++) {
		const bool leaf = i >= (DEEP - 1) * SMALL;
		const unsigned int from = i % SMALL, step = leaf ? i / SMALL % SMALL : 0;
		char text[512] = "main";

		for (unsigned int k = 0; k <= (leaf ? DEEP - 1 : i / SMALL); k++) {
			size_t len = strlen(text);

			snprintf(text + len, sizeof(text) - len, " %s",
				 name[k * SMALL + (from + k * step) % SMALL]);
		}
		fixture_stack(f, 0, STACKSET_KERNEL, leaf ? 4000 : 20000, text);
	}
	f->set.first_ns = 1000;
	f->set.last_ns = 1000 + f->set.weight;
}

/* The weight of functions that were inlined into one another by many ways gets to the one that is left. */
static void test_layers_are_passed(void **state)
{
	static struct fixture f;
	const struct gate_eval_options opt = { 0 };
	struct gating x = { 0 };
	struct err e = { 0 };

	(void)state;
	load(&x, sampled_rules);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		for (unsigned int i = 0; i < RUNS; i++) {
			struct gate_run *run = NULL;

			make_layers(&f, side == GATE_BASE, 2 * i + side);
			if (gate_run_make(&run, "run", &f.set, x.rules, &e) ||
			    gate_add_run(x.g, (enum gate_side)side, run, &e))
				fail_msg("%s", e.text);
		}
	if (gate_evaluate(x.g, &opt, &x.r, &e))
		fail_msg("%s", e.text);
	passes(&x);
	nothing_moved(&x);
	end(&x);
}

/* A function that was split off several callers is none that is new, however little each of them had of it. */
static void test_split_of_many(void **state)
{
	static const struct stack base[MOST_STACKS] = { { "main a", 104000 },
							{ "main b", 204000 },
							{ "main c", 304000 },
							{ "main d", 388000 } };
	static const struct stack head[MOST_STACKS] = {
		{ "main a", 100000 },	 { "main b", 200000 },	  { "main c", 300000 },
		{ "main a part", 4000 }, { "main b part", 4000 }, { "main c part", 4000 },
		{ "main d", 388000 }
	};
	struct gating x = exact(base, head);

	(void)state;
	passes(&x);
	end(&x);
	x = sampled(base, head);
	passes(&x);
	nothing_moved(&x);
	end(&x);
}

/* Both sides were built in directories of their own. */
static void test_moved(void **state)
{
	static const struct stack both[MOST_STACKS] = { { "prog_main", 100000 },
							{ "prog_main prog_leaf", 250000 },
							{ "prog_main read", 150000 } };
	static const struct stack grew[MOST_STACKS] = { { "prog_main", 100000 },
							{ "prog_main prog_leaf", 300000 },
							{ "prog_main read", 150000 } };

	(void)state;
	struct gating x;

	same(both, both, LINEAGE_MOVED, "/build/base/p", "/build/head/p");
	differ(both, grew, "prog_leaf");
	x = exact(both, grew);
	assert_string_equal(x.r->outcome[0].finding[0].dso, "/build/head/p");
	end(&x);
}

static void test_growth_fails(void **state)
{
	static const struct stack renamed[MOST_STACKS] = { { "main tree", 100000 },
							   { "main tree left_leaf_2", 300000 },
							   { "main tree right_leaf", 150000 },
							   { "main other", 400000 },
							   { "main other copy", 100000 } };
	static const struct stack inlined[MOST_STACKS] = { { "main tree", 420000 },
							   { "main tree right_leaf", 150000 },
							   { "main other", 400000 },
							   { "main other copy", 100000 } };
	/* Another function, with a caller and a weight of its own. */
	static const struct stack fresh[MOST_STACKS] = { { "main tree", 100000 },
							 { "main tree left_leaf", 250000 },
							 { "main tree right_leaf", 150000 },
							 { "main tree checks", 60000 },
							 { "main other", 400000 },
							 { "main other copy", 100000 } };
	/* copy went, and a caller elsewhere has something new. */
	static const struct stack moved[MOST_STACKS] = { { "main tree", 100000 },
							 { "main tree left_leaf", 250000 },
							 { "main tree right_leaf", 150000 },
							 { "main tree right_leaf checks", 90000 },
							 { "main other", 400000 } };
	struct gating x;

	(void)state;
	differ(tree, renamed, "left_leaf_2");
	x = exact(tree, renamed);
	assert_string_equal(x.r->outcome[0].finding[0].note, "which was left_leaf");
	end(&x);
	differ(tree, inlined, "tree");
	x = sampled(tree, inlined);
	assert_string_equal(x.r->outcome[0].finding[0].note, "with left_leaf (inlined)");
	end(&x);
	differ(tree, fresh, "checks");
	differ(tree, moved, "checks");
	x = sampled(tree, moved);
	assert_int_equal(x.r->nrelations, 0);
	assert_int_equal(x.r->outcome[2].status, GATE_FAILED);
	end(&x);
}

static void test_reports(void **state)
{
	static const struct stack head[MOST_STACKS] = { { "main tree", 350000 },
							{ "main tree right", 150000 },
							{ "main other", 400000 },
							{ "main other copy", 100000 } };
	static gate_write_fn *const write[] = { gate_write_text, gate_write_markdown };
	const struct gate_write_options opt = { 0 };
	struct gating x = exact(tree, head);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct buf b;

		buf_init(&b);
		assert_int_equal(write[i](&b, x.r, &opt, NULL), 0);
		buf_u8(&b, 0);
		assert_non_null(strstr((char *)b.data, i ? "right\\_leaf went, right came"
							 : "right_leaf went, right came"));
		assert_non_null(strstr(
			(char *)b.data,
			i ? "left\\_leaf went into tree \\(inlined\\): together 350000 -&gt; "
			    "350000"
			  : "left_leaf went into tree (inlined): together 350000 -> 350000"));
		buf_deinit(&b);
	}
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_inlined_by_two_ways),
		cmocka_unit_test(test_paths_are_not_walked),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_split_of_many),
		cmocka_unit_test(test_layers_are_passed),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_growth_fails),
		cmocka_unit_test(test_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
