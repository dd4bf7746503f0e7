/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the function graph tracer's stacks are, as kernels of several ages tell it. */
#include "symbolizer/linux/graph.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct {
	const char *node;    /* node of a return probe; NULL: it has none */
	bool words;	     /* layout of 6.11 and later */
	uint64_t size;	     /* size of struct ftrace_ret_stack */
	uint32_t retp;	     /* its offset */
	const char *lacking; /* a member */
} kernel;

static int find_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	static const struct {
		const char *path;
		uint32_t off, size;
	} task[] = { { "ret_stack", 2600, 8 }, { "curr_ret_stack", 2584, 4 } };

	(void)ctx;
	if (kernel.lacking && !strcmp(path, kernel.lacking))
		return -ENOENT;
	for (size_t i = 0; i < 2 && !strcmp(structure, "task_struct"); i++)
		if (!strcmp(path, task[i].path)) {
			*out = (struct type_member){ .off = task[i].off, .size = task[i].size };
			return 0;
		}
	if (kernel.node && !strcmp(structure, "task_struct")) {
		*out = (struct type_member){ .off = 2700, .size = 8 };
		return strcmp(path, strcmp(kernel.node, "rethook_node") ? "kretprobe_instances"
									: "rethooks")
			       ? -ENOENT
			       : 0;
	}
	if (kernel.node && !strcmp(structure, kernel.node)) {
		*out = (struct type_member){ .off = !strcmp(path, "llist")	? 16
						    : !strcmp(path, "ret_addr") ? 32
										: 40,
					     .size = 8 };
		return 0;
	}
	if (strcmp(structure, "ftrace_ret_stack") != 0)
		return -ENOENT;
	*out = (struct type_member){ .off = strcmp(path, "retp") ? 0 : kernel.retp, .size = 8 };
	return strcmp(path, "retp") && strcmp(path, "ret") ? -ENOENT : 0;
}

static int find_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	*out = kernel.size;
	return strcmp(structure, "ftrace_ret_stack") ? -ENOENT : 0;
}

static int find_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	*out = 1;
	return kernel.words && !strcmp(name, "FGRAPH_TYPE_BITMAP") ? 0 : -ENOENT;
}

static const struct types types = { find_member, find_size, find_enumerator, NULL };

static void array_and_words(void **state)
{
	struct linux_graph_layout l;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.size = 32;
	kernel.retp = 24;
	assert_true(linux_graph_layout(&l, &types));
	assert_int_equal(l.stack, 2600);
	assert_int_equal(l.index, 2584);
	assert_int_equal(l.unit, 32);
	assert_true(l.top);
	assert_int_equal(l.entry, 32);
	assert_int_equal(l.ret, 0);
	assert_int_equal(l.retp, 24);
	kernel.words = true;
	assert_true(linux_graph_layout(&l, &types));
	assert_int_equal(l.unit, 8);
	assert_false(l.top);
	assert_true(l.entry > 32);
}

static void none(void **state)
{
	static const char *const members[] = { "ret_stack", "curr_ret_stack", "ret", "retp" };
	struct linux_graph_layout l;

	(void)state;
	assert_false(linux_graph_layout(&l, NULL));
	memset(&kernel, 0, sizeof(kernel));
	assert_false(linux_graph_layout(&l, &types));
	kernel.size = 36;
	assert_false(linux_graph_layout(&l, &types));
	kernel.size = 4096;
	assert_false(linux_graph_layout(&l, &types));
	kernel.size = 32;
	kernel.retp = 20;
	assert_false(linux_graph_layout(&l, &types));
	kernel.retp = 24;
	for (size_t i = 0; i < 4; i++) {
		kernel.lacking = members[i];
		assert_false(linux_graph_layout(&l, &types));
	}
	kernel.lacking = NULL;
	assert_true(linux_graph_layout(&l, &types));
}

static void return_probes(void **state)
{
	static const char *const nodes[] = { "rethook_node", "kretprobe_instance" };
	struct linux_rethook_layout l;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	assert_false(linux_rethook_layout(&l, NULL));
	assert_false(linux_rethook_layout(&l, &types));
	for (unsigned int i = 0; i < 2; i++) {
		kernel.node = nodes[i];
		assert_true(linux_rethook_layout(&l, &types));
		assert_int_equal(l.list, 2700);
		assert_int_equal(l.link, 16);
		assert_int_equal(l.ret, 32);
		assert_int_equal(l.retp, 40);
		assert_int_equal(l.len, 48);
		kernel.lacking = "ret_addr";
		assert_false(linux_rethook_layout(&l, &types));
		kernel.lacking = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(array_and_words),
		cmocka_unit_test(none),
		cmocka_unit_test(return_probes),
	};

	return cmocka_run_group_tests_name("linux_graph", tests, NULL, NULL);
}
