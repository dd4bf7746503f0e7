/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call trees: weights, order, tasks, reversal, idle time, differences, caps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/stacks/frametree.h"
#include "tests/unit/stackset_fixture.h"

#include <math.h>
#include <stdio.h>

static struct fixture one, two;

static void make(struct fixture *f)
{
	uint32_t sh, idle;

	fixture_init(f);
	fixture_func(f, "main", "/bin/sh", STACKSET_KIND_USER);
	fixture_func(f, "write", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(f, "copy", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(f, "halt", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(f, "ext4", "[ext4]", STACKSET_KIND_MODULE);
	sh = fixture_task(f, "sh", 7);
	idle = fixture_task(f, "swapper", 0);
	fixture_task(f, "sh", 8);
	fixture_stack(f, sh, STACKSET_KERNEL, 30, "main write copy");
	fixture_stack(f, sh, STACKSET_KERNEL, 20, "main write");
	fixture_stack(f, 2, STACKSET_USER, 10, "main");
	fixture_stack(f, idle, STACKSET_IDLE, 40, "halt");
}

static struct frametree *tree_of(const struct fixture *f, const struct fixture *base,
				 const struct frametree_options *opt)
{
	struct frametree *t = NULL;

	assert_int_equal(frametree_create(&t, opt, NULL), 0);
	assert_int_equal(frametree_add(t, &f->set, FRAMETREE_SHOWN, NULL), 0);
	if (base)
		assert_int_equal(frametree_add(t, &base->set, FRAMETREE_BASE, NULL), 0);
	assert_int_equal(frametree_finish(t, NULL), 0);
	return t;
}

/* The node at a path of names below the root; FRAMETREE_NONE. */
static uint32_t at(const struct frametree *t, const char *path)
{
	char text[256], *save = NULL;
	uint32_t node = 0;

	strncpy(text, path, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (char *s = strtok_r(text, ";", &save); s && node != FRAMETREE_NONE;
	     s = strtok_r(NULL, ";", &save)) {
		node = t->node[node].child;
		while (node != FRAMETREE_NONE && strcmp(t->name[t->node[node].name].text, s) != 0)
			node = t->node[node].next;
	}
	return node;
}

static void expect(const struct frametree *t, const char *path, uint64_t weight, uint64_t self)
{
	uint32_t n = at(t, path);

	assert_int_not_equal(n, FRAMETREE_NONE);
	assert_int_equal(t->node[n].weight[FRAMETREE_SHOWN], weight);
	assert_int_equal(t->node[n].self, self);
}

static void test_weights(void **state)
{
	struct frametree *t;

	(void)state;
	make(&one);
	t = tree_of(&one, NULL, &(struct frametree_options){ 0 });
	expect(t, "", 100, 0);
	expect(t, "main", 60, 10);
	expect(t, "main;write", 50, 20);
	expect(t, "main;write;copy", 30, 30);
	expect(t, "halt", 40, 40);
	assert_int_equal(t->nnodes, 5);
	assert_int_equal(t->max_depth, 3);
	assert_int_equal(t->kind_self[STACKSET_KIND_KERNEL], 50);
	assert_int_equal(t->kind_self[STACKSET_KIND_USER], 10);
	assert_int_equal(t->kind_self[FRAMETREE_KIND_IDLE], 40);
	/* Children by name. */
	assert_int_equal(t->node[0].child, at(t, "halt"));
	assert_int_equal(t->node[at(t, "halt")].next, at(t, "main"));
	assert_int_equal(frametree_kind(t, at(t, "halt")), FRAMETREE_KIND_IDLE);
	assert_int_equal(frametree_kind(t, at(t, "main")), STACKSET_KIND_USER);
	frametree_destroy(t);
}

static void test_tasks(void **state)
{
	struct frametree *t;

	(void)state;
	make(&one);
	t = tree_of(&one, NULL, &(struct frametree_options){ .task = FRAMETREE_TASK_COMM });
	expect(t, "sh", 60, 0);
	expect(t, "sh;main;write", 50, 20);
	expect(t, "swapper;halt", 40, 40);
	assert_int_equal(frametree_kind(t, at(t, "swapper")), FRAMETREE_KIND_TASK);
	frametree_destroy(t);
	t = tree_of(&one, &one, &(struct frametree_options){ .task = FRAMETREE_TASK_THREAD });
	expect(t, "sh 7/7;main", 50, 0);
	expect(t, "sh 8/8;main", 10, 10);
	assert_int_equal(at(t, "sh"), FRAMETREE_NONE);
	frametree_destroy(t);
}

static void test_reverse(void **state)
{
	struct frametree *t;

	(void)state;
	make(&one);
	t = tree_of(&one, NULL,
		    &(struct frametree_options){ .reverse = true, .task = FRAMETREE_TASK_COMM });
	expect(t, "copy", 30, 0);
	expect(t, "copy;write;main", 30, 30);
	expect(t, "write;main", 20, 20);
	expect(t, "main", 10, 10);
	frametree_destroy(t);
}

/* Functions are the same by what they are called, though the texts lie elsewhere. */
static void test_difference(void **state)
{
	static char copy_name[] = "copy";
	struct frametree *t;

	(void)state;
	make(&one);
	make(&two);
	two.func[2].name = copy_name;
	two.stack[0].weight = 130;
	two.set.weight = 200;
	fixture_stack(&two, 0, STACKSET_KERNEL, 0, "ext4");
	two.stack[4].weight = 100;
	t = tree_of(&two, &one, &(struct frametree_options){ 0 });
	assert_int_equal(t->nnodes, 6);
	assert_true(fabs(frametree_delta(t, 0)) < 1e-9);
	assert_true(fabs(frametree_delta(t, at(t, "main;write;copy")) - (130.0 / 300 - 0.3)) <
		    1e-9);
	assert_true(fabs(frametree_delta(t, at(t, "halt")) - (40.0 / 300 - 0.4)) < 1e-9);
	assert_true(fabs(frametree_delta(t, at(t, "ext4")) - 100.0 / 300) < 1e-9);
	frametree_destroy(t);
	/* Frames that only the base has. */
	t = tree_of(&one, &two, &(struct frametree_options){ 0 });
	assert_int_equal(t->node[at(t, "ext4")].weight[FRAMETREE_SHOWN], 0);
	assert_true(frametree_delta(t, at(t, "ext4")) < -0.3);
	frametree_destroy(t);
}

/* A difference of two builds that name clones otherwise, and cut functions otherwise, has none of that. */
static void test_clones(void **state)
{
	const struct frametree_options opt = { .clones_are_one = true };
	struct frametree *t;

	(void)state;
	make(&one);
	make(&two);
	two.func[2].name = "copy.isra.0.cold";
	fixture_func(&two, "copy.part.0", two.func[2].dso, two.func[2].kind);
	fixture_stack(&two, 0, two.stack[0].mode, 40, "main write copy.isra.0.cold copy.part.0");
	two.stack[0].weight -= 40;
	two.set.weight -= 40;
	t = tree_of(&two, &one, &opt);
	assert_true(fabs(frametree_delta(t, at(t, "main;write;copy"))) < 1e-9);
	for (uint32_t i = 0; i < t->nnodes; i++)
		assert_true(fabs(frametree_delta(t, i)) < 1e-9);
	frametree_destroy(t);
}

/* The same stacks in another order make the same tree of names. */
static void test_order(void **state)
{
	struct stackset_stack swap;
	struct frametree *t, *u;

	(void)state;
	make(&one);
	make(&two);
	swap = two.stack[0];
	two.stack[0] = two.stack[3];
	two.stack[3] = swap;
	t = tree_of(&one, NULL, &(struct frametree_options){ 0 });
	u = tree_of(&two, NULL, &(struct frametree_options){ 0 });
	for (uint32_t a = t->node[0].child, b = u->node[0].child; a != FRAMETREE_NONE;
	     a = t->node[a].next, b = u->node[b].next) {
		assert_string_equal(t->name[t->node[a].name].text, u->name[u->node[b].name].text);
		assert_int_equal(t->node[a].weight[0], u->node[b].weight[0]);
	}
	frametree_destroy(t);
	frametree_destroy(u);
}

static void test_deep(void **state)
{
	static uint32_t deep[FRAMETREE_MAX_DEPTH + 50];
	struct frametree *t;

	(void)state;
	make(&one);
	one.stack[0].frame = deep; /* 0: main */
	one.stack[0].n = FRAMETREE_MAX_DEPTH + 50;
	one.stack[1].n = 0;
	t = tree_of(&one, NULL, &(struct frametree_options){ 0 });
	assert_int_equal(t->cut, 1);
	assert_int_equal(t->max_depth, FRAMETREE_MAX_DEPTH);
	assert_int_equal(t->node[0].weight[FRAMETREE_SHOWN], 100);
	assert_int_equal(t->node[0].self, 20); /* the stack without frames */
	assert_int_equal(t->kind_self[STACKSET_KIND_UNKNOWN], 20);
	frametree_destroy(t);
}

/* Enough nodes and names to make the tables grow. */
static void test_many(void **state)
{
	static char name[5000][8];
	static struct stackset_func func[5000];
	static struct stackset_frame frame[5000];
	static uint32_t list[5000];
	static struct stackset_stack stack[5000];
	struct stackset set = { .func = func,
				.frame = frame,
				.stack = stack,
				.nfuncs = 5000,
				.nframes = 5000,
				.nstacks = 5000 };
	struct frametree *t = NULL;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name[i], sizeof(name[i]), "f%04u", i);
		func[i] = (struct stackset_func){ .name = name[i], .dso = "" };
		frame[i].func = i;
		list[i] = i;
		stack[i] = (struct stackset_stack){ .frame = &list[i], .n = 1, .weight = i };
	}
	assert_int_equal(frametree_create(&t, &(struct frametree_options){ 0 }, NULL), 0);
	assert_int_equal(frametree_add(t, &set, FRAMETREE_SHOWN, NULL), 0);
	assert_int_equal(frametree_add(t, &set, FRAMETREE_SHOWN, NULL), 0);
	assert_int_equal(frametree_finish(t, NULL), 0);
	assert_int_equal(t->nnodes, 5001);
	expect(t, "f0000", 0, 0);
	expect(t, "f4999", 9998, 9998);
	frametree_destroy(t);
	frametree_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights), cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_reverse), cmocka_unit_test(test_difference),
		cmocka_unit_test(test_clones),	cmocka_unit_test(test_order),
		cmocka_unit_test(test_deep),	cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
