/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks in a made-up guest's memory: by types, by content, and where neither will do. */
#include "symbolizer/linux/task.h"

#include "tests/linux_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct guest g;
static struct memory mem = { guest_read, &g };
static struct linux_task_layout l;
static struct err e;

static int layout(const struct types *types)
{
	struct symtab *s = guest_symbols();
	int ret;

	err_clear(&e);
	ret = linux_task_layout(&l, types, s, &mem, &e);
	symtab_destroy(s);
	return ret;
}

static void check_offsets(uint32_t pid)
{
	assert_int_equal(l.current, GUEST_CURRENT);
	assert_false(l.per_cpu);
	assert_int_equal(l.pid, pid);
	assert_int_equal(l.tgid, pid + 4);
	assert_int_equal(l.comm, G_COMM);
	assert_int_equal(l.mm, G_MM);
	assert_int_equal(l.real_parent, G_PARENT);
	assert_int_equal(l.group_leader, G_LEADER);
	assert_int_equal(l.start_time, G_START + 8);
	assert_true(l.start_is_boottime);
	assert_int_equal(l.flags, G_FLAGS);
	assert_int_equal(l.stack, G_STACK);
	assert_int_equal(l.tasks, G_TASKS);
	assert_int_equal(l.thread_node, G_THREAD_NODE);
	assert_int_equal(l.signal, G_SIGNAL);
	assert_int_equal(l.thread_head, 16);
}

static void by_types(void **state)
{
	struct types lacking = guest_types;

	(void)state;
	guest_make(&g, false);
	assert_int_equal(layout(&guest_types), 0);
	assert_int_equal(l.source, LINUX_TASK_BY_TYPES);
	check_offsets(G_PID);
	assert_int_equal(g.reads, 0);
	lacking.ctx = (void *)(uintptr_t) "start_boottime";
	assert_int_equal(layout(&lacking), 0);
	assert_int_equal(l.start_time, G_START);
	assert_false(l.start_is_boottime);
	lacking.ctx = (void *)(uintptr_t) "mm";
	assert_int_equal(layout(&lacking), -ENOENT);
	assert_non_null(strstr(e.text, "task_struct.mm"));
}

static void by_content(void **state)
{
	(void)state;
	for (int canary = 0; canary < 2; canary++) {
		guest_make(&g, canary);
		assert_int_equal(layout(NULL), 0);
		assert_int_equal(l.source, LINUX_TASK_BY_CONTENT);
		check_offsets(canary ? G_PID - 8 : G_PID);
	}
}

static void refused(const char *why)
{
	if (layout(NULL) != -ENOENT || !strstr(e.text, why))
		fail_msg("not refused for \"%s\": %s", why, e.text);
}

/* Two places that fit are as bad as none. */
static void no_guess(void **state)
{
	(void)state;
	guest_make(&g, false);
	for (unsigned int i = 0; i < GUEST_TASKS; i++) {
		guest_u64(&g, guest_task_va(i) + 1400, i == 1 || i > 5 ? 0xffff888003000040ull : 0);
		guest_u64(&g, guest_task_va(i) + 1408, i == 1 || i > 5 ? 0xffff888003000040ull : 0);
	}
	refused("2 places in the first task's memory may be its mm");
	guest_make(&g, false);
	for (unsigned int i = 0; i < GUEST_TASKS; i++)
		guest_put(&g, guest_task_va(i) + 1300, guest_task[i].comm,
			  strlen(guest_task[i].comm) + 1);
	refused("2 places in the first task's memory may be its comm");
	/* both with and without a canary */
	guest_make(&g, false);
	for (unsigned int i = 0; i < 3; i++)
		guest_u64(&g, guest_task_va(i) + G_PID - 8, i * 0x100000001ull);
	refused("2 places in the first task's memory may be its real_parent");
	/* still booting: pid 1 is a kernel thread yet */
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(1) + G_MM, 0);
	refused("0 places in the first task's memory may be its mm");
	guest_make(&g, false);
	guest_list(&g, (uint64_t[]){ guest_task_va(0) + G_CHILDREN }, 1);
	refused("real_parent");
	/* two with one pid */
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(4) + G_PID, 0x300000003ull);
	refused("not in order");
	/* a name that nobody has */
	guest_make(&g, false);
	guest_put(&g, guest_task_va(5) + G_COMM, "\x01\x02", 3);
	refused("comm");
	/* the list of tasks does not come back */
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(7) + G_TASKS, guest_task_va(3) + G_TASKS);
	refused("tasks");
	/* what should be the current task is none */
	guest_make(&g, false);
	guest_u64(&g, GUEST_CURRENT, guest_task_va(6) + 8);
	refused("is not a task");
	memset(g.bytes, 0, sizeof(g.bytes));
	refused("real_parent");
}

static struct symtab *symbols_of(const char *name, uint64_t va, uint64_t start, uint64_t end,
				 bool smp)
{
	struct symtab *s = symtab_create();

	assert_int_equal(symtab_add(s, va, 8, 'D', name), 0);
	if (end) {
		assert_int_equal(symtab_add(s, start, 0, 'D', "__per_cpu_start"), 0);
		assert_int_equal(symtab_add(s, end, 0, 'D', "__per_cpu_end"), 0);
	}
	if (smp)
		assert_int_equal(symtab_add(s, 0xffffffff82000000, 64, 'D', "__per_cpu_offset"), 0);
	assert_int_equal(symtab_freeze(s, NULL), 0);
	return s;
}

static void current_task(void **state)
{
	static const struct {
		const char *name;
		uint64_t va, start, end;
		bool smp;
		int ret;
		uint64_t current;
		bool per_cpu;
	} c[] = {
		{ "current_task", 0x1fb80, 0, 0x34000, true, 0, 0x1fb80, true },
		/* moved along with the kernel */
		{ "current_task", 0x501fb80, 0x5000000, 0x5034000, true, 0, 0x1fb80, true },
		{ "pcpu_hot", 0x35000, 0, 0x39000, true, 0, 0x35010, true },
		{ "current_task", 0xffffffff83001000, 0xffffffff83000000, 0xffffffff83020000, true,
		  0, 0xffffffff83001000, true },
		{ "current_task", 0xffffffff83001000, 0, 0, true, 0, 0xffffffff83001000, true },
		{ "current_task", 0xffffffff81838040, 0xffffffff819fd000, 0xffffffff819fd000, false,
		  0, 0xffffffff81838040, false },
		{ "current_task", 0xffffffff81838040, 0xffffffff819fd000, 0xffffffff81a00000, true,
		  -ENOENT, 0, false },
		{ "something", 0xffffffff81838040, 0, 0, false, -ENOENT, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct symtab *s = symbols_of(c[i].name, c[i].va, c[i].start, c[i].end, c[i].smp);

		memset(&l, 0, sizeof(l));
		err_clear(&e);
		assert_int_equal(linux_task_find_current(&l, &guest_types, s, &e), c[i].ret);
		assert_int_equal(l.current, c[i].current);
		assert_int_equal(l.per_cpu, c[i].per_cpu);
		symtab_destroy(s);
	}
	l = (struct linux_task_layout){ .current = 0x1000, .per_cpu = true };
	assert_int_equal(linux_task_current(&l, 0xffff888007800000), 0xffff888007801000);
}

static void one_task(void **state)
{
	struct linux_task t;

	(void)state;
	guest_make(&g, false);
	assert_int_equal(layout(&guest_types), 0);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(8), &t), LINUX_TASK_GOOD);
	assert_int_equal(t.pid, 19);
	assert_int_equal(t.tgid, 17);
	assert_int_equal(t.parent_pid, 1);
	assert_int_equal(t.parent_tgid, 1);
	assert_string_equal(t.comm, "w-alpha");
	assert_int_equal(t.mm, 0xffff888003006000);
	assert_int_equal(t.group_leader, guest_task_va(6));
	assert_int_equal(t.start_time, 5019000700ull);
	assert_false(t.is_kthread);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(0), &t), 0);
	assert_true(t.is_idle && t.is_kthread);
	assert_int_equal(linux_task_read(&l, &mem, 0, &t), LINUX_TASK_NO_POINTER);
	assert_int_equal(linux_task_read(&l, &mem, 0x7f0000001000, &t), LINUX_TASK_NO_POINTER);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(1) + 4, &t),
			 LINUX_TASK_NO_POINTER);
	assert_int_equal(linux_task_read(&l, &mem, UINT64_MAX - 7, &t), LINUX_TASK_NO_POINTER);
	assert_int_equal(linux_task_read(&l, &mem, GUEST_BASE + GUEST_BYTES - 1024, &t),
			 LINUX_TASK_UNREADABLE);
	guest_u32(&g, guest_task_va(3) + G_PID, LINUX_TASK_MAX_PID + 1);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(3), &t), LINUX_TASK_BAD_PID);
	guest_u32(&g, guest_task_va(4) + G_PID + 4, 0);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(4), &t), LINUX_TASK_BAD_PID);
	guest_put(&g, guest_task_va(5) + G_COMM, "0123456789abcdef", 16);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(5), &t), LINUX_TASK_BAD_COMM);
	guest_u64(&g, guest_task_va(6) + G_MM, 0x1000);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(6), &t), LINUX_TASK_BAD_POINTERS);
	/* a parent that is gone is no reason to doubt the task */
	guest_u64(&g, guest_task_va(7) + G_PARENT, 0xffff8880ffff0000);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(7), &t), LINUX_TASK_GOOD);
	assert_int_equal(t.parent_pid, 0);
	assert_int_equal(linux_task_check(0, 0, (char[LINUX_TASK_COMM]){ "swapper" }),
			 LINUX_TASK_GOOD);
	assert_int_equal(linux_task_check(1, 1, (char[LINUX_TASK_COMM]){ "\xc3\xa4" }),
			 LINUX_TASK_GOOD);
	assert_int_equal(linux_task_check(1, 1, (char[LINUX_TASK_COMM]){ "a\nb" }),
			 LINUX_TASK_BAD_COMM);
	assert_int_equal(linux_task_check(1, 1, (char[LINUX_TASK_COMM]){ "" }),
			 LINUX_TASK_BAD_COMM);
}

static void expect_list(size_t n, size_t skipped, bool cut)
{
	struct linux_task_list list;

	assert_int_equal(linux_task_list(&l, &mem, &list, &e), 0);
	assert_int_equal(list.n, n);
	assert_int_equal(list.skipped, skipped);
	assert_int_equal(list.cut, cut);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(list.task[i].task != list.task[j].task);
	linux_task_list_deinit(&list);
}

static void all_tasks(void **state)
{
	struct linux_task t;

	(void)state;
	guest_make(&g, false);
	assert_int_equal(layout(&guest_types), 0);
	expect_list(GUEST_TASKS, 0, false);
	/* one is just going: the others are found from both sides */
	guest_u32(&g, guest_task_va(4) + G_PID, 0xffffffff);
	expect_list(GUEST_TASKS - 1, 1, true);
	/* tasks may have any name, and none: nobody between two of them is hidden */
	guest_make(&g, false);
	guest_put(&g, guest_task_va(2) + G_COMM, "\0", 2);
	guest_put(&g, guest_task_va(5) + G_COMM, "\n\x7f", 3);
	guest_put(&g, guest_task_va(7) + G_COMM, "", 1);
	expect_list(GUEST_TASKS, 0, false);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(2), &t), LINUX_TASK_GOOD);
	assert_string_equal(t.comm, "");
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(5), &t), LINUX_TASK_GOOD);
	assert_string_equal(t.comm, "??");
	/* the idle task has one; memory that is all zero is no task */
	guest_put(&g, guest_task_va(0) + G_COMM, "", 1);
	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(0), &t), LINUX_TASK_BAD_COMM);
	guest_make(&g, false);
	/* a loop that does not lead home */
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(7) + G_TASKS, guest_task_va(2) + G_TASKS);
	expect_list(GUEST_TASKS, 0, true);
	/* threads that lead into the list of processes, or to nowhere */
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(8) + G_THREAD_NODE, guest_task_va(2) + G_THREAD_NODE);
	expect_list(GUEST_TASKS, 0, true);
	guest_make(&g, false);
	guest_u64(&g, guest_task_va(6) + G_SIGNAL, 0);
	expect_list(GUEST_TASKS - 1, 0, false);
	/* the ring without a head, as before 6.7 */
	guest_make(&g, false);
	l.signal = LINUX_TASK_NONE;
	l.thread_group = 1432;
	for (unsigned int i = 0; i + 1 < GUEST_TASKS; i++)
		guest_list(&g, (uint64_t[]){ guest_task_va(i) + 1432 }, 1);
	guest_list(&g, (uint64_t[]){ guest_task_va(6) + 1432, guest_task_va(8) + 1432 }, 2);
	expect_list(GUEST_TASKS, 0, false);
	l.tasks = LINUX_TASK_NONE;
	assert_int_equal(linux_task_list(&l, &mem, &(struct linux_task_list){ 0 }, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_types), cmocka_unit_test(by_content),
		cmocka_unit_test(no_guess), cmocka_unit_test(current_task),
		cmocka_unit_test(one_task), cmocka_unit_test(all_tasks),
	};

	return cmocka_run_group_tests_name("linux_task", tests, NULL, NULL);
}
