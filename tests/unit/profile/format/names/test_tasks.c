/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks' names and address spaces over time: fork, exec, exit, and numbers that come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/idmap.h"
#include "profile/format/names/spaces.h"
#include "profile/format/names/tasks.h"

#include <stdio.h>

/* -- idmap -------------------------------------------------------------------------- */

static void test_idmap(void **state)
{
	struct idmap m = { 0 };
	uint32_t v = 7;

	(void)state;
	assert_false(idmap_get(&m, 0, &v));
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(idmap_set(&m, i * 65537u, i), 0);
	assert_int_equal(idmap_set(&m, 65537u, 99), 0);
	assert_int_equal(m.pairs.n, 10000);
	for (uint32_t i = 0; i < 10000; i++) {
		assert_true(idmap_get(&m, i * 65537u, &v));
		assert_int_equal(v, i == 1 ? 99 : i);
	}
	assert_false(idmap_get(&m, 3, &v));
	assert_int_equal(idmap_set(&m, UINT32_MAX, 1), 0);
	assert_true(idmap_get(&m, UINT32_MAX, &v));
	idmap_deinit(&m);
}

/* -- tasks -------------------------------------------------------------------------- */

static void comm(struct tasks *t, uint32_t tid, const char *name)
{
	struct perfdata_record r = { .kind = PERFDATA_COMM, .pid = tid, .tid = tid, .comm = name };

	assert_int_equal(tasks_record(t, &r, NULL), 0);
}

static void fork_task(struct tasks *t, uint32_t tid, uint32_t parent)
{
	struct perfdata_record r = { .kind = PERFDATA_FORK,
				     .pid = tid,
				     .tid = tid,
				     .fork = { .ppid = parent, .ptid = parent } };

	assert_int_equal(tasks_record(t, &r, NULL), 0);
}

static void called(struct tasks *t, uint32_t tid, const char *name)
{
	assert_string_equal(tasks_text(t, tasks_name(t, tid)), name);
}

static void test_names_of_tasks(void **state)
{
	struct perfdata_record end = { .kind = PERFDATA_EXIT, .pid = 5, .tid = 5 };
	struct tasks *t = tasks_create();
	uint32_t shell;

	(void)state;
	assert_non_null(t);
	called(t, 0, "swapper");
	called(t, 5, ":5");
	comm(t, 5, "shell");
	shell = tasks_name(t, 5);
	fork_task(t, 6, 5);
	called(t, 6, "shell");
	assert_int_equal(tasks_name(t, 6), shell);
	comm(t, 6, "copy\n\033");
	called(t, 6, "copy??");
	called(t, 5, "shell");
	/* Late samples of a task that has exited still have its name. */
	assert_int_equal(tasks_record(t, &end, NULL), 0);
	called(t, 5, "shell");
	/* The number comes again: from an unnamed parent, from the idle task. */
	fork_task(t, 5, 77);
	called(t, 5, ":5");
	fork_task(t, 5, 0);
	called(t, 5, "swapper");
	/* Equal names, equal numbers, also after many others. */
	for (uint32_t i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "task %u", (unsigned int)i);
		comm(t, 1000 + i, name);
	}
	comm(t, 9, "shell");
	assert_int_equal(tasks_name(t, 9), shell);
	called(t, 1000 + 4999, "task 4999");
	assert_string_equal(tasks_text(t, UINT32_MAX), "");
	tasks_destroy(t);
	tasks_destroy(NULL);
}

/* -- spaces ------------------------------------------------------------------------- */

static void map(struct spaces *s, uint32_t pid, uint64_t from, uint64_t to, uint32_t dso)
{
	struct mapping m = { .addr = from, .end = to, .pgoff = 0x1000, .dso = dso };

	assert_int_equal(spaces_map(s, pid, &m, NULL), 0);
}

/* The DSO at an address, and where in its file; -1: nothing. */
static int at(const struct spaces *s, uint32_t space, uint64_t addr, uint64_t *off)
{
	const struct mapping *m = spaces_find(s, space, addr);

	if (m && off)
		*off = addr - m->addr + m->pgoff;
	return m ? (int)m->dso : -1;
}

static void test_mappings_hide(void **state)
{
	struct spaces s = { 0 };
	uint32_t before, after;
	uint64_t off = 0;

	(void)state;
	assert_int_equal(at(&s, spaces_of(&s, 1), 0x400000, NULL), -1);
	map(&s, 1, 0x400000, 0x410000, 1);
	before = spaces_of(&s, 1);
	map(&s, 1, 0x300000, 0x310000, 2);
	map(&s, 1, 0x500000, 0x500000, 9); /* empty */
	/* More at free places: the same space. */
	assert_int_equal(spaces_of(&s, 1), before);
	map(&s, 1, 0x400000, 0x410000, 1);
	assert_int_equal(spaces_of(&s, 1), before);
	/* In the middle of another, and over parts of both: a new space each. */
	map(&s, 1, 0x404000, 0x408000, 3);
	after = spaces_of(&s, 1);
	assert_int_not_equal(after, before);
	assert_int_equal(at(&s, before, 0x405000, NULL), 1);
	assert_int_equal(at(&s, after, 0x403fff, &off), 1);
	assert_int_equal(off, 0x4fff);
	assert_int_equal(at(&s, after, 0x404000, &off), 3);
	assert_int_equal(off, 0x1000);
	assert_int_equal(at(&s, after, 0x408000, &off), 1);
	assert_int_equal(off, 0x9000);
	assert_int_equal(at(&s, after, 0x410000, NULL), -1);
	map(&s, 1, 0x308000, 0x40c000, 4);
	after = spaces_of(&s, 1);
	assert_int_equal(at(&s, after, 0x307fff, NULL), 2);
	assert_int_equal(at(&s, after, 0x308000, NULL), 4);
	assert_int_equal(at(&s, after, 0x405000, NULL), 4);
	assert_int_equal(at(&s, after, 0x40c000, &off), 1);
	assert_int_equal(off, 0xd000);
	map(&s, 1, 0, UINT64_MAX, 5);
	assert_int_equal(at(&s, spaces_of(&s, 1), 0x405000, NULL), 5);
	spaces_deinit(&s);
}

static void test_fork_shares(void **state)
{
	struct spaces s = { 0 };
	uint32_t shared;

	(void)state;
	map(&s, 1, 0x1000, 0x2000, 1);
	shared = spaces_of(&s, 1);
	assert_int_equal(spaces_fork(&s, 2, 1, NULL), 0);
	assert_int_equal(spaces_of(&s, 2), shared);
	/* Whoever changes it first gets one of its own. */
	map(&s, 1, 0x3000, 0x4000, 2);
	assert_int_equal(at(&s, spaces_of(&s, 1), 0x3000, NULL), 2);
	assert_int_equal(at(&s, spaces_of(&s, 1), 0x1000, NULL), 1);
	assert_int_equal(at(&s, spaces_of(&s, 2), 0x3000, NULL), -1);
	/* Now nobody shares it any more. */
	map(&s, 2, 0x5000, 0x6000, 3);
	assert_int_equal(spaces_of(&s, 2), shared);
	/* A thread is in its process's space anyway; an exec begins with nothing. */
	assert_int_equal(spaces_fork(&s, 2, 2, NULL), 0);
	assert_int_equal(spaces_of(&s, 2), shared);
	assert_int_equal(spaces_clear(&s, 2, NULL), 0);
	assert_int_equal(at(&s, spaces_of(&s, 2), 0x1000, NULL), -1);
	assert_int_equal(at(&s, shared, 0x5000, NULL), 3);
	/* A fork of an unknown process. */
	assert_int_equal(spaces_fork(&s, 3, 77, NULL), 0);
	map(&s, 3, 0x1000, 0x2000, 4);
	assert_int_equal(at(&s, spaces_of(&s, 77), 0x1000, NULL), -1);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(spaces_fork(&s, 100 + i, 1, NULL), 0);
		map(&s, 100 + i, 0x10000 + i, 0x10001 + i, i);
	}
	assert_int_equal(at(&s, spaces_of(&s, 599), 0x10000 + 499, NULL), 499);
	assert_int_equal(at(&s, spaces_of(&s, 599), 0x10000 + 498, NULL), -1);
	spaces_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idmap),
		cmocka_unit_test(test_names_of_tasks),
		cmocka_unit_test(test_mappings_hide),
		cmocka_unit_test(test_fork_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
