/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trees of callers and callees: common runs, branches, ends inside of a run, recursion, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "profile/analyse/tables/agg_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions are letters, and so are rows: 'a' is number 0. Innermost first. */
static struct agg_stack stacks[16];
static uint32_t frames[256];
static size_t nframes;
static struct agg agg = { .stack = stacks, .func_of = frames, .row_of = frames };

static void stack(const char *text, uint64_t weight)
{
	stacks[agg.nkept++] = (struct agg_stack){ weight, nframes, (uint32_t)strlen(text) };
	while (*text)
		frames[nframes++] = (uint32_t)(*text++ - 'a');
}

static int setup(void **state)
{
	(void)state;
	agg.nkept = nframes = 0;
	stack("abcx", 40);
	stack("abdx", 30);
	stack("bdx", 20);
	stack("x", 7);
	stack("edx", 5);
	return 0;
}

/* "abc:40(d:30)" */
static void put(char *out, size_t size, const struct agg_tree *t, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct agg_node *node = &t->node[first + i];
		size_t at = strlen(out);

		at += (size_t)snprintf(out + at, size - at, i ? " " : "");
		for (uint32_t k = 0; k < node->n; k++)
			at += (size_t)snprintf(out + at, size - at, "%c", 'a' + (int)node->func[k]);
		at += (size_t)snprintf(out + at, size - at, ":%u", (unsigned int)node->weight);
		if (!node->nchildren)
			continue;
		snprintf(out + at, size - at, "(");
		put(out, size, t, node->child, node->nchildren);
		at = strlen(out);
		snprintf(out + at, size - at, ")");
	}
}

static void expect(char row, bool caller, bool innermost_only, uint64_t min, const char *want)
{
	const struct agg_tree_options opt = { caller, innermost_only, min };
	const struct agg_row r = { .id = (uint32_t)(row - 'a') };
	struct agg_tree t;
	char got[4096] = "";

	assert_int_equal(agg_tree_build(&t, &agg, &r, &opt), 0);
	put(got, sizeof(got), &t, 0, t.nroots);
	assert_string_equal(got, want);
	agg_tree_deinit(&t);
}

static void test_callee(void **state)
{
	(void)state;
	expect('a', false, false, 0, "ab:70(cx:40 dx:30)");
	expect('b', false, false, 0, "b:90(dx:50 cx:40)");
	expect('d', false, false, 0, "dx:55");
	expect('b', false, true, 0, "bdx:20");
	/* A branch below the limit is not there; its parent keeps the weight. */
	expect('b', false, false, 45, "b:90(dx:50)");
	expect('b', false, false, 91, "");
	expect('z', false, false, 0, "");
}

static void test_caller(void **state)
{
	(void)state;
	/* Where it was innermost the tree begins at the outermost. */
	expect('a', true, false, 0, "x:70(cba:40 dba:30)");
	expect('d', true, false, 0, "d:55(b:50(a:30) e:5)");
	/* A stack that ends inside of a run splits it. */
	expect('b', true, false, 0, "ba:70 xdb:20");
	/* x was innermost, too, but then it is the outermost as well. */
	expect('x', true, false, 0, "x:102(d:55(b:50(a:30) e:5) cba:40)");
	expect('x', true, true, 0, "x:7");
}

static void test_recursion(void **state)
{
	(void)state;
	agg.nkept = nframes = 0;
	stack("aaax", 10);
	stack("baax", 4);
	expect('a', false, false, 0, "aa:14(ax:10 x:4)");
	expect('a', true, false, 0, "xaaa:10 aab:4");
	expect('b', true, false, 0, "xaab:4");
	agg.nkept = nframes = 0;
	expect('a', true, false, 0, "");
}

/* A comb as deep as it gets: each level has a branch. */
static void test_deep(void **state)
{
	enum { N = 600 };
	struct agg_stack *deep = calloc(N, sizeof(*deep));
	uint32_t *word = calloc((size_t)N * N, sizeof(*word));
	const struct agg a = { .stack = deep, .nkept = N, .func_of = word, .row_of = word };
	const struct agg_row r = { .id = 0 };
	const struct agg_tree_options opt = { 0 };
	struct agg_tree t;
	unsigned int depth = 0;

	(void)state;
	assert_true(deep && word);
	for (uint32_t i = 0; i < N; i++)
		deep[i] = (struct agg_stack){ 1, (size_t)i * N, i + 1 };
	assert_int_equal(agg_tree_build(&t, &a, &r, &opt), 0);
	for (uint32_t at = 0; t.node[at].nchildren; at = t.node[at].child)
		depth++;
	assert_int_equal(depth + 1, AGG_TREE_MAX_DEPTH);
	agg_tree_deinit(&t);
	free(deep);
	free(word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_callee, setup),
		cmocka_unit_test_setup(test_caller, setup),
		cmocka_unit_test_setup(test_recursion, setup),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
