/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way to a file by the names in memory, and lists that lead nowhere. */
#include "tests/unit/linux_tree_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct lm g;
static struct memory mem;
static struct linux_mm_layout mm;
static struct linux_tree_layout layout;
static struct linux_tree tree = { &layout, &mm, &mem };
static struct lt_scene at;

static void make(bool ring)
{
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	lm_layout(&mm, true);
	layout = lt_layout(ring);
	at = lt_scene(&g, ring);
}

static enum linux_why find(const char *path, uint64_t *mapping)
{
	struct linux_place root;

	assert_int_equal(linux_tree_root(&tree, at.task, &root), LINUX_OK);
	return linux_tree_find(&tree, &root, path, mapping);
}

static void found(void **state)
{
	uint64_t mapping = 0;

	(void)state;
	for (unsigned int ring = 0; ring < 2; ring++) {
		make(ring);
		assert_int_equal(find("tmp/perf-7.map", &mapping), LINUX_OK);
		assert_true(mapping == LT_MAPPING);
		assert_int_equal(find("tmp/perf-9.map", &mapping), LINUX_NOT_THERE);
		assert_int_equal(find("tmp/perf-7.ma", &mapping), LINUX_NOT_THERE);
		assert_int_equal(find("tmp/perf-8.map", &mapping), LINUX_NOT_THERE); /* no inode */
		assert_int_equal(find("temp/perf-7.map", &mapping), LINUX_NOT_THERE);
		assert_int_equal(find("usr/perf-7.map", &mapping), LINUX_NOT_THERE);
	}
}

static void not_found(void **state)
{
	struct linux_place root;
	uint64_t mapping;

	(void)state;
	make(true);
	lm_put64(&g, at.task + 8, 0); /* the task has ended */
	assert_int_equal(linux_tree_root(&tree, at.task, &root), LINUX_NOT_THERE);
	assert_int_equal(linux_tree_root(&tree, 0x1000, &root), LINUX_UNREADABLE);
	make(true);
	assert_int_equal(find("tmp//perf-7.map", &mapping), LINUX_TOO_MANY);
	assert_int_equal(find("a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", &mapping), LINUX_NOT_THERE);
}

static void lies(void **state)
{
	uint64_t mapping, other;

	(void)state;
	/* A list that never comes to its end. */
	make(true);
	other = lt_dentry(&g, at.below, "x", 1, true);
	lm_put64(&g, other + LT_SIBLING, other + LT_SIBLING);
	assert_int_equal(find("tmp/perf-7.map", &mapping), LINUX_TOO_MANY);
	/* A child of somebody else's: the list was left while we read. */
	make(true);
	other = lt_dentry(&g, at.below, "x", 1, true);
	lm_put64(&g, other + 16, at.tmp);
	assert_int_equal(find("tmp/perf-7.map", &mapping), LINUX_CHANGING);
	/* Lists that lead out of memory. */
	make(true);
	lm_put64(&g, at.below + LT_CHILDREN, UINT64_C(0xffff888fffff0000));
	assert_int_equal(find("tmp/perf-7.map", &mapping), LINUX_UNREADABLE);
	make(false);
	lm_put64(&g, at.below + LT_CHILDREN, 8); /* no kernel address */
	assert_int_equal(find("tmp/perf-7.map", &mapping), LINUX_UNREADABLE);
}

/* -- types ------------------------------------------------------------------------ */

static const char *without;

static int member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	(void)ctx;
	if (!strcmp(path, without) || (!strcmp(without, "d_subdirs") && !strcmp(path, "d_child")))
		return -ENOENT;
	*out = (struct type_member){ .off = (uint32_t)strlen(structure) * 8, .size = 16 };
	return 0;
}

static void layouts(void **state)
{
	const struct types t = { .member = member };
	struct linux_tree_layout l;
	struct err e = { 0 };

	(void)state;
	without = "d_children";
	assert_int_equal(linux_tree_layout_init(&l, &t, &e), 0);
	assert_true(l.ring);
	without = "d_subdirs";
	assert_int_equal(linux_tree_layout_init(&l, &t, &e), 0);
	assert_false(l.ring);
	without = "mnt_mounts";
	assert_int_equal(linux_tree_layout_init(&l, &t, &e), -ENOENT);
	assert_non_null(strstr(e.text, "mnt_mounts in struct mount"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(not_found),
		cmocka_unit_test(lies),
		cmocka_unit_test(layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
