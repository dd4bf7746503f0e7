/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing profiles: shares, recursion, modes, names that differ from run to run, statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/diff/diff.h"
#include "profile/compare/stats/share.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { MAIN, LEAF, OTHER, JIT, NOWHERE, NFUNC };

static struct stackset_func func[NFUNC] = {
	{ .name = "main", .dso = "/bin/a", .named = true, .kind = STACKSET_KIND_USER },
	{ .name = "leaf", .dso = "/bin/a", .named = true, .kind = STACKSET_KIND_USER },
	{ .name = "other",
	  .dso = "[kernel.kallsyms]",
	  .named = true,
	  .kind = STACKSET_KIND_KERNEL },
	{ .name = "0x10", .dso = "[jit:7]", .kind = STACKSET_KIND_JIT },
	{ .name = "0x20",
	  .dso = "[unknown]",
	  .kind = STACKSET_KIND_UNKNOWN,
	  .kernel = true, /* recorded so: firmware lies low */
	  .addr = 0x9000 },
};
static const struct stackset_frame frame[NFUNC] = {
	{ .func = 0 }, { .func = 1 }, { .func = 2 }, { .func = 3 }, { .func = 4 },
};

static const uint32_t main_only[] = { MAIN }, leaf[] = { LEAF, MAIN },
		      recursive[] = { LEAF, LEAF, MAIN }, other[] = { OTHER }, jit[] = { JIT },
		      nowhere[] = { NOWHERE };

#define STACK(f, m, w)                                                                   \
	{                                                                                \
		.frame = (f), .n = sizeof(f) / sizeof(*(f)), .mode = (m), .weight = (w), \
		.samples = (w) / 10                                                      \
	}

/* A run that spends `leaves` of 1000 in leaf, twice nested for half of it. */
static int add_run(struct diff *d, uint64_t leaves, struct err *e)
{
	struct stackset_stack stack[] = {
		STACK(leaf, STACKSET_USER, leaves / 2),
		STACK(recursive, STACKSET_USER, leaves - leaves / 2),
		STACK(main_only, STACKSET_USER, 600 - leaves),
		STACK(other, STACKSET_KERNEL, 100),
		STACK(other, STACKSET_IDLE, 200),
		STACK(jit, STACKSET_USER, 60),
		STACK(nowhere, STACKSET_KERNEL, 40),
	};
	struct stackset s = { .func = func,
			      .frame = frame,
			      .stack = stack,
			      .nfuncs = NFUNC,
			      .nframes = NFUNC,
			      .nstacks = sizeof(stack) / sizeof(*stack) };

	return diff_add(d, &s, e);
}

static const struct diff_row *find(const struct diff *d, const char *mode, const char *name)
{
	for (size_t i = 0; i < d->nrows; i++)
		if (!strcmp(d->row[i].name, name) && !strcmp(d->row[i].mode, mode))
			return &d->row[i];
	fail_msg("no row %s %s", mode, name);
	return NULL;
}

static void near(double got, double want)
{
	if (!(fabs(got - want) < 1e-9))
		fail_msg("%.12g instead of %.12g", got, want);
}

static struct diff *compare(struct diff_options o, unsigned int na, unsigned int nb,
			    const uint64_t *leaves)
{
	struct diff *d;

	o.seed = 1;
	assert_int_equal(diff_create(&d, na, nb, &o, NULL), 0);
	for (unsigned int i = 0; i < na + nb; i++)
		assert_int_equal(add_run(d, leaves[i], NULL), 0);
	assert_int_equal(diff_finish(d, NULL), 0);
	return d;
}

static void test_symbols(void **state)
{
	struct diff *d = compare((struct diff_options){ 0 }, 1, 1, (uint64_t[]){ 100, 400 });
	const struct diff_row *r;

	(void)state;
	assert_int_equal(d->nrows, 6);
	r = find(d, "user", "leaf");
	near(r->self_a, 0.1);
	near(r->self_b, 0.4);
	near(r->children_b, 0.4); /* once, though it called itself */
	near(r->stat.diff, 0.3);
	near(r->noise, share_noise(0.1, 100, 0.4, 100));
	assert_false(r->stat.tested);
	assert_string_equal(r->dso, "/bin/a");
	r = find(d, "user", "main");
	near(r->stat.diff, -0.3);
	near(r->children_a, 0.6);
	near(r->children_b, 0.6);
	/* Largest first. */
	assert_true(r == &d->row[0] || r == &d->row[1]);
	for (size_t i = 1; i < d->nrows; i++)
		assert_true(fabs(d->row[i - 1].stat.diff) >= fabs(d->row[i].stat.diff));
	near(find(d, "kernel", "other")->self_a, 0.1);
	near(find(d, "idle", "other")->self_a, 0.2);
	for (size_t i = 0; i < d->nrows; i++)
		if (!strcmp(d->row[i].name, DIFF_UNNAMED))
			assert_true((!strcmp(d->row[i].dso, "[jit]") &&
				     !strcmp(d->row[i].mode, "user")) ||
				    (!strcmp(d->row[i].dso, "[unknown]") &&
				     !strcmp(d->row[i].mode, "kernel")));
	diff_destroy(d);
}

static void test_options(void **state)
{
	const uint64_t leaves[] = { 100, 400 };
	struct diff *d = compare((struct diff_options){ .by_children = true }, 1, 1, leaves);

	(void)state;
	near(find(d, "user", "main")->stat.diff, 0);
	diff_destroy(d);
	d = compare((struct diff_options){ .no_idle = true }, 1, 1, leaves);
	near(find(d, "user", "leaf")->self_a, 0.125);
	assert_int_equal(d->run[0].weight, 800);
	assert_int_equal(d->nrows, 5);
	diff_destroy(d);
	d = compare((struct diff_options){ .min_share = 0.07 }, 1, 1, leaves);
	assert_int_equal(d->nrows, 4);
	assert_int_equal(d->left_out, 2);
	diff_destroy(d);
}

static void test_stacks(void **state)
{
	struct diff *d =
		compare((struct diff_options){ .stacks = true }, 1, 1, (uint64_t[]){ 100, 400 });

	(void)state;
	assert_int_equal(d->nrows, 7);
	near(find(d, "user", "main;leaf;leaf")->stat.diff, 0.15);
	near(find(d, "user", "main;leaf")->stat.diff, 0.15);
	near(find(d, "user", "main")->stat.diff, -0.3);
	near(find(d, "idle", "other")->stat.diff, 0);
	diff_destroy(d);
}

static void test_runs(void **state)
{
	const uint64_t leaves[] = { 100, 110, 120, 130, 200, 210, 220, 230 };
	struct diff *d = compare((struct diff_options){ 0 }, 4, 4, leaves);
	const struct diff_row *r = find(d, "user", "leaf");

	(void)state;
	assert_true(r->stat.tested);
	near(r->stat.base, 0.115);
	near(r->stat.head, 0.215);
	near(r->stat.p, 2 / 70.0);
	/* main and leaf of six rows: both are the smallest. */
	near(r->q, 2 / 70.0 * 6 / 2);
	/* About the change; a little wider than Welch's of 0.0223, as four runs are few. */
	near(r->stat.lo + r->stat.hi, 0.2);
	assert_true(r->stat.lo > 0.06 && r->stat.lo < 0.1 - 0.0223);
	for (unsigned int i = 0; i < 8; i++)
		near(r->self[i], (double)leaves[i] / 1000);
	near(find(d, "kernel", "other")->stat.p, 1);
	near(find(d, "kernel", "other")->q, 1);
	near(r->noise, 0);
	diff_destroy(d);
}

/* leaf has another name in the head: the rows are those of the names, and the pair is named. */
static void test_renamed(void **state)
{
	static struct stackset_func renamed[NFUNC];
	struct stackset_stack stack[] = { STACK(leaf, STACKSET_USER, 300),
					  STACK(main_only, STACKSET_USER, 700) };
	struct stackset s = { .func = func,
			      .frame = frame,
			      .stack = stack,
			      .nfuncs = NFUNC,
			      .nframes = NFUNC,
			      .nstacks = 2 };
	const struct diff_options o = { .seed = 1 };
	const struct lineage_event *e;
	struct diff *d;

	(void)state;
	memcpy(renamed, func, sizeof(renamed));
	renamed[LEAF].name = "leaf_renamed";
	assert_int_equal(diff_create(&d, 1, 1, &o, NULL), 0);
	assert_int_equal(diff_add(d, &s, NULL), 0);
	s.func = renamed;
	assert_int_equal(diff_add(d, &s, NULL), 0);
	assert_int_equal(diff_finish(d, NULL), 0);
	assert_int_equal(d->nrows, 3);
	assert_int_equal(d->lineage.nevents, 1);
	e = &d->lineage.event[0];
	assert_int_equal(e->kind, LINEAGE_RENAMED);
	assert_string_equal(d->lineage.function[e->function].id.name, "leaf");
	assert_string_equal(d->lineage.function[e->other].id.name, "leaf_renamed");
	near(e->base, 0.3);
	near(e->head, 0.3);
	diff_destroy(d);
}

static void test_misuse(void **state)
{
	struct diff_options o = { .no_idle = true };
	struct stackset_stack idle[] = { STACK(other, STACKSET_IDLE, 20) };
	struct stackset s = { .func = func,
			      .frame = frame,
			      .stack = idle,
			      .nfuncs = NFUNC,
			      .nframes = NFUNC,
			      .nstacks = 1 };
	struct err e = { 0 };
	struct diff *d;

	(void)state;
	assert_int_equal(diff_create(&d, 0, 1, &o, &e), -EINVAL);
	assert_int_equal(diff_create(&d, 1, 1, &o, NULL), 0);
	assert_int_equal(diff_add(d, &s, NULL), -ENODATA);
	assert_int_equal(diff_finish(d, NULL), -EINVAL);
	assert_int_equal(add_run(d, 10, NULL), 0);
	assert_int_equal(add_run(d, 10, NULL), 0);
	assert_int_equal(add_run(d, 10, NULL), -EINVAL);
	diff_destroy(d);
	diff_destroy(NULL);
}

/* Checks the callers and callees of a function in both sides; a stack counts once. */
static void test_trees(void **state)
{
	struct diff *d =
		compare((struct diff_options){ .calls = true }, 1, 1, (uint64_t[]){ 100, 400 });
	struct diff_tree t;
	struct err e = { 0 };

	(void)state;
	near(find(d, "user", "leaf")->count_a, 10);
	near(find(d, "user", "leaf")->count_b, 40);
	assert_int_equal(diff_row_tree(d, find(d, "user", "leaf"), DIFF_CALLERS, 0, &t, &e), 0);
	near(t.node[0].base, 0.1);
	near(t.node[0].head, 0.4);
	/* By itself and by main; both have half of it. */
	assert_int_equal(t.n, 4);
	for (uint32_t n = t.node[0].child; n != DIFF_CALLS_NONE; n = t.node[n].next) {
		bool self = !strcmp(t.node[n].name, "leaf");

		assert_true(self || !strcmp(t.node[n].name, "main"));
		near(t.node[n].base, 0.05);
		near(t.node[n].head, 0.2);
		assert_true((t.node[n].child != DIFF_CALLS_NONE) == self);
	}
	diff_tree_deinit(&t);
	assert_int_equal(diff_row_tree(d, find(d, "user", "main"), DIFF_CALLEES, 0.1, &t, &e), 0);
	near(t.node[0].base, 0.6);
	assert_string_equal(t.node[t.node[0].child].name, "leaf");
	near(t.node[t.node[0].child].base, 0.1);
	near(t.node[t.node[0].child].head, 0.4);
	/* leaf by leaf has 0.05 and 0.2: above the limit on one side. */
	assert_true(t.node[t.node[0].child].child != DIFF_CALLS_NONE);
	assert_true(t.node[t.node[0].child].next == DIFF_CALLS_NONE);
	diff_tree_deinit(&t);
	assert_int_equal(diff_row_tree(d, find(d, "user", "main"), DIFF_CALLEES, 0.5, &t, &e), 0);
	assert_true(t.node[0].child == DIFF_CALLS_NONE);
	diff_tree_deinit(&t);
	diff_destroy(d);
}

/* Functions that are not chosen have no rows; the shares stay those of all samples. */
static void test_chosen(void **state)
{
	struct diff *d;

	(void)state;
	for (unsigned int i = 0; i < NFUNC; i++)
		func[i].hidden = i != LEAF;
	d = compare((struct diff_options){ 0 }, 1, 1, (uint64_t[]){ 100, 400 });
	assert_int_equal(d->nrows, 1);
	near(find(d, "user", "leaf")->self_b, 0.4);
	diff_destroy(d);
	d = compare((struct diff_options){ .stacks = true }, 1, 1, (uint64_t[]){ 100, 400 });
	assert_int_equal(d->nrows, 2);
	diff_destroy(d);
	for (unsigned int i = 0; i < NFUNC; i++)
		func[i].hidden = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols), cmocka_unit_test(test_trees),
		cmocka_unit_test(test_chosen),	cmocka_unit_test(test_options),
		cmocka_unit_test(test_stacks),	cmocka_unit_test(test_runs),
		cmocka_unit_test(test_misuse),	cmocka_unit_test(test_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
