/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports to the sink about tasks that start, change and end between samples. */
#include "tests/unit/guest_fixture.h"

#include <setjmp.h>

#include <cmocka.h>

#define MM(i) (LM_DIRECT + 0x10000 + 0x40 * (uint64_t)(i))

static struct lm g;
static struct memory mem;
static struct linux_task_layout layout;
static struct gf_sink sink;
static struct guest_tasks *tasks;
static const struct guest_task *seen;
static uint32_t pid, tid;
static uint64_t now;

static void create_without_members(void)
{
	guest_tasks_destroy(tasks);
	assert_int_equal(guest_tasks_create(&tasks, &layout, &mem, &sink.sink, NULL), 0);
}

static void create(void)
{
	create_without_members();
	guest_tasks_members_known(tasks);
}

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	layout = gf_task_layout();
	gf_sink_init(&sink);
	now = 1000;
	create();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guest_tasks_destroy(tasks);
	tasks = NULL;
	gf_sink_deinit(&sink);
	return 0;
}

static void see_sample(const struct sample *s)
{
	struct err e = { 0 };

	if (guest_tasks_identify(tasks, s, &pid, &tid, &seen, &e) < 0)
		fail_msg("%s", e.text);
}

static void see(uint64_t task)
{
	struct sample s = gf_sample(&g, task, now);

	now += 10;
	see_sample(&s);
}

static void sweep(void)
{
	now += 1000;
	do
		assert_int_equal(guest_tasks_sweep(tasks, now, NULL), 0);
	while (!guest_tasks_swept(tasks));
}

static void process_once(void **state)
{
	uint64_t init = gf_task(&g, 1, 1, "init", MM(1), 5, 0);
	uint64_t t = gf_task(&g, 70, 70, "worker", MM(2), 6, 0);

	(void)state;
	lm_put64(&g, t + GF_PARENT, init);
	see(t);
	gf_expect(&sink, "fork 70/70 of 1/1\ncomm 70/70 worker exec\n");
	assert_int_equal(sink.last_ns, 1000);
	assert_int_equal(pid, 70);
	assert_int_equal(tid, 70);
	assert_int_equal(seen->mm, MM(2));
	assert_int_equal(seen->addr, t);
	see(t);
	gf_expect(&sink, "");
	assert_int_equal(guest_tasks_stats(tasks)->seen, 1);
}

static void kernel_thread(void **state)
{
	(void)state;
	see(gf_task(&g, 2, 2, "kthreadd", 0, 5, 0));
	gf_expect(&sink, "fork 2/2 of 0/0\ncomm 2/2 kthreadd\n");
}

/* The process comes first, so that it is no news when it is sampled itself. */
static void thread_before_its_process(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "main", MM(2), 6, 0);
	uint64_t t = gf_task(&g, 71, 70, "thread", MM(2), 7, p), program;

	(void)state;
	see(t);
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 main exec\n"
			 "fork 70/71 of 70/70\ncomm 70/71 thread\n");
	assert_int_equal(pid, 70);
	assert_int_equal(tid, 71);
	program = seen->program;
	see(p);
	gf_expect(&sink, "");
	assert_int_equal(seen->program, program);
	see(gf_task(&g, 72, 70, "other", MM(2), 8, p));
	gf_expect(&sink, "fork 70/72 of 70/70\ncomm 70/72 other\n");
	assert_int_equal(seen->program, program);
}

/* Its structure can't be read: what is known of the thread serves until it is sampled. */
static void thread_of_an_unreadable_process(void **state)
{
	uint64_t t = gf_task(&g, 71, 70, "thread", MM(2), 7, 0x1000), program;

	(void)state;
	see(t);
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 thread exec\n"
			 "fork 70/71 of 70/70\ncomm 70/71 thread\n");
	program = seen->program;
	sweep();
	sweep();
	gf_expect(&sink, "");
	see(gf_task(&g, 70, 70, "main", MM(2), 6, 0));
	gf_expect(&sink, "comm 70/70 main\n");
	assert_int_equal(seen->program, program);
	/* A leader that is another's by now. */
	lm_put64(&g, t + GF_LEADER, gf_task(&g, 99, 99, "foreign", MM(9), 9, 0));
	lm_put32(&g, t + GF_PID, 73);
	see(t);
	gf_expect(&sink, "fork 70/73 of 70/70\ncomm 70/73 thread\n");
}

static void main_thread_that_has_ended(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "main", 0, 6, 0);

	(void)state;
	see(gf_task(&g, 71, 70, "thread", MM(2), 7, p));
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 main exec\n"
			 "fork 70/71 of 70/70\ncomm 70/71 thread\n");
}

static void another_program(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "sh", MM(2), 6, 0), program;

	(void)state;
	see(t);
	program = seen->program;
	sink.log.len = 0;
	lm_put64(&g, t + GF_MM, MM(3));
	gf_rename(&g, t, "ls");
	see(t);
	gf_expect(&sink, "comm 70/70 ls exec\n");
	assert_int_not_equal(seen->program, program);
	program = seen->program;
	/* The name comes once more, at an address space that was used before. */
	lm_put64(&g, t + GF_MM, MM(2));
	see(t);
	gf_expect(&sink, "comm 70/70 ls exec\n");
	assert_int_not_equal(seen->program, program);
	/* Its end: no program any more. */
	lm_put64(&g, t + GF_MM, 0);
	see(t);
	gf_expect(&sink, "");
}

/* exec A, B, C: the address of A's mm is C's, and the name may be the same one. */
static void programs_one_after_the_other(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "sh", MM(2), 6, 0), program;
	struct guest_task first;

	(void)state;
	lm_put32(&g, t + GF_EXEC, 5);
	see(t);
	first = *seen;
	program = seen->program;
	sink.log.len = 0;
	assert_true(guest_tasks_has_mm(tasks, &first));
	/* All is as it was but for the number. */
	lm_put32(&g, t + GF_EXEC, 7);
	assert_false(guest_tasks_has_mm(tasks, &first));
	see(t);
	gf_expect(&sink, "comm 70/70 sh exec\n");
	assert_int_not_equal(seen->program, program);
	/* Another mm without an exec: its own number says so. */
	lm_put64(&g, t + GF_MM, MM(3));
	see(t);
	gf_expect(&sink, "");
}

/* The thread becomes the process: its number moves to another structure. */
static void thread_that_starts_a_program(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "main", MM(2), 6, 0);
	uint64_t t = gf_task(&g, 71, 70, "thread", MM(2), 7, p);

	(void)state;
	see(p);
	see(t);
	sink.log.len = 0;
	gf_put_task(&g, t, 70, 70, "ls", MM(3), 6, 0);
	lm_put32(&g, p + GF_PID, 0x6b6b6b6b);
	see(t);
	gf_expect(&sink, "comm 70/70 ls exec\n");
	sweep();
	sweep();
	gf_expect(&sink, "exit 70/71\n");
	see(t);
	gf_expect(&sink, "");
}

/* vhost and io_uring work for a process in its address space. */
static void kernel_thread_that_borrows_a_space(void **state)
{
	uint64_t t = gf_task(&g, 9, 9, "vhost-70", 0, 6, 0);

	(void)state;
	see(t);
	sink.log.len = 0;
	for (unsigned int i = 0; i < 3; i++) {
		lm_put64(&g, t + GF_MM, MM(2));
		see(t);
		lm_put64(&g, t + GF_MM, 0);
		see(t);
	}
	gf_expect(&sink, "");
	/* But a helper that the kernel starts is a new program. */
	lm_put64(&g, t + GF_MM, MM(4));
	gf_rename(&g, t, "modprobe");
	see(t);
	gf_expect(&sink, "comm 9/9 modprobe exec\n");
}

static void names(void **state)
{
	static const struct {
		char raw[17];
		const char *shown;
	} name[] = {
		{ "a\033[31mred\n", "a?[31mred?" },
		{ "\177", "?" },
		{ "", "" },
		{ "gr\303\274n b c", "gr\303\274n b c" },
		{ "123456789012345", "123456789012345" },
	};
	uint64_t t = gf_task(&g, 70, 70, "first", MM(2), 6, 0);
	struct sample s;
	char expected[64];

	(void)state;
	see(t);
	sink.log.len = 0;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		gf_rename(&g, t, name[i].raw);
		see(t);
		snprintf(expected, sizeof(expected), "comm 70/70 %s\n", name[i].shown);
		gf_expect(&sink, expected);
		assert_int_equal(pid, 70);
		sweep();
		sweep();
		gf_expect(&sink, "");
	}
	/* The kernel always ends a name: this is no task. */
	s = gf_sample(&g, t, now);
	memset(s.task.comm, 'x', sizeof(s.task.comm));
	see_sample(&s);
	assert_null(seen);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
}

static void number_of_another(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "old", MM(2), 6, 0), program;

	(void)state;
	see(t);
	program = seen->program;
	sink.log.len = 0;
	/* All is the same but when it started: slabs give back what was freed last. */
	lm_put64(&g, t + GF_START, 60);
	see(t);
	gf_expect(&sink, "exit 70/70\nfork 70/70 of 0/0\ncomm 70/70 old exec\n");
	assert_int_not_equal(seen->program, program);
	assert_int_equal(guest_tasks_stats(tasks)->exits, 1);
	assert_int_equal(guest_tasks_stats(tasks)->seen, 2);
}

static void number_of_another_without_start_times(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "old", MM(2), 0, 0);

	(void)state;
	layout.start_time = LINUX_TASK_NONE;
	see(t);
	see(t);
	sink.log.len = 0;
	see(gf_task(&g, 70, 70, "new", MM(2), 0, 0));
	gf_expect(&sink, "exit 70/70\nfork 70/70 of 0/0\ncomm 70/70 new exec\n");
}

/* A new process whose thread is sampled before it, while the old one's number is known. */
static void thread_of_another_process_of_that_number(void **state)
{
	uint64_t old = gf_task(&g, 70, 70, "old", MM(2), 6, 0), p, program;

	(void)state;
	see(old);
	program = seen->program;
	sink.log.len = 0;
	p = gf_task(&g, 70, 70, "new", MM(2), 60, 0);
	see(gf_task(&g, 80, 70, "thread", MM(2), 61, p));
	gf_expect(&sink, "exit 70/70\nfork 70/70 of 0/0\ncomm 70/70 new exec\n"
			 "fork 70/80 of 70/70\ncomm 70/80 thread\n");
	assert_int_not_equal(seen->program, program);
}

static void exits(void **state)
{
	uint64_t a = gf_task(&g, 70, 70, "a", MM(2), 6, 0),
		 b = gf_task(&g, 71, 71, "b", MM(3), 7, 0);
	struct sample late;

	(void)state;
	see(a);
	see(b);
	sink.log.len = 0;
	late = gf_sample(&g, a, now);
	lm_put64(&g, a + GF_START, 99); /* the structure is another task's */
	sweep();
	gf_expect(&sink, "");
	/* One that was still in a ring. */
	see_sample(&late);
	gf_expect(&sink, "");
	assert_int_equal(pid, 70);
	sweep();
	gf_expect(&sink, "");
	sweep();
	gf_expect(&sink, "exit 70/70\n");
	assert_int_equal(sink.last_ns, now - 1000); /* when it was first missing */
	sweep();
	gf_expect(&sink, "");
	assert_int_equal(guest_tasks_stats(tasks)->exits, 1);
	/* The number comes back. */
	gf_put_task(&g, a, 70, 70, "again", MM(2), 100, 0);
	see(a);
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 again exec\n");
}

static void memory_that_is_gone_for_a_moment(void **state)
{
	uint64_t a = gf_task(&g, 70, 70, "a", MM(2), 6, 0);

	(void)state;
	see(a);
	sink.log.len = 0;
	lm_put32(&g, a, 0);
	sweep();
	lm_put32(&g, a, 70);
	sweep();
	lm_put32(&g, a, 0);
	sweep();
	gf_expect(&sink, "");
}

static void idle_tasks(void **state)
{
	struct sample s = gf_sample(&g, gf_task(&g, 0, 0, "swapper/3", 0, 0, 0), now);

	(void)state;
	see_sample(&s);
	gf_expect(&sink, "comm 0/0 swapper\n");
	assert_null(seen);
	assert_int_equal(pid | tid, 0);
	s.task.state = SAMPLE_TASK_NOT_YET;
	see_sample(&s);
	assert_int_equal(pid | tid, 0);
	gf_expect(&sink, "");
	assert_int_equal(guest_tasks_stats(tasks)->not_yet, 1);
	/* Where tasks are not asked for, the kernel that boots is the one that idles later on. */
	s.task.state = SAMPLE_TASK_UNASKED;
	see_sample(&s);
	assert_int_equal(pid, 0);
	/* Code that boots has its stack at low addresses, too. */
	s.nslices = 1;
	s.slice[0].va = UINT64_C(0x7ffc00000000);
	s.regs.rip = 0x1000200;
	see_sample(&s);
	assert_int_equal(pid, 0);
	assert_int_equal(guest_tasks_stats(tasks)->not_yet, 3);
	s.nslices = 0;
	/* A program whose task was not asked for (its vCPU was never seen in the kernel) is not idle. */
	s.task.state = SAMPLE_TASK_UNASKED;
	s.mode = SAMPLE_USER;
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
	/* Nor is the kernel that works for one. */
	s.mode = SAMPLE_KERNEL;
	s.regs.rip = UINT64_C(0xffffffff81000000);
	s.nslices = 1;
	s.slice[0].va = UINT64_C(0x7ffc00000000);
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
	/* And the boot is over: this may be any of the kernel's own threads. */
	s.slice[0].va = s.regs.rip;
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
	assert_int_equal(guest_tasks_stats(tasks)->not_yet, 3);
	s.mode = SAMPLE_IDLE;
	see_sample(&s);
	assert_int_equal(pid, 0);
	/* A processor that is only now set up. */
	s.mode = SAMPLE_KERNEL;
	s.task.state = SAMPLE_TASK_NOT_YET;
	see_sample(&s);
	assert_int_equal(pid, 0);
}

/* Before tasks are asked for, a guest that ran already is in some task's code, not in the boot. */
static void joined_guest_has_no_boot(void **state)
{
	struct sample s = { .mode = SAMPLE_KERNEL, .regs.rip = UINT64_C(0xffffffff81000000) };

	(void)state;
	guest_tasks_set_running(tasks);
	s.task.state = SAMPLE_TASK_UNASKED;
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
	s.task.state = SAMPLE_TASK_NOT_YET;
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
	s.mode = SAMPLE_IDLE;
	see_sample(&s);
	assert_int_equal(pid | tid, 0);
	gf_expect(&sink, "comm 0/0 swapper\n");
	/* Not with a program's stack: the vCPU's state and its stack are then of two moments. */
	s.regs.rip = UINT64_C(0xffffffff81000000);
	s.nslices = 1;
	s.slice[0].va = 0x7ffd0000;
	see_sample(&s);
	assert_int_equal(pid, GUEST_TASK_UNKNOWN);
}

static void unknown_tasks(void **state)
{
	static const uint32_t bad[][2] = { { LINUX_TASK_MAX_PID + 1, 1 },
					   { 1, UINT32_MAX },
					   { UINT32_MAX, UINT32_MAX },
					   { 0, 5 },
					   { 5, 0 } };
	struct sample s = gf_sample(&g, 0, now);

	(void)state;
	see_sample(&s);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
	assert_int_equal(tid, GUEST_TASK_UNKNOWN);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s = gf_sample(&g, gf_task(&g, bad[i][0], bad[i][1], "x", MM(2), 6, 0), now);
		see_sample(&s);
		assert_int_equal(tid, GUEST_TASK_UNKNOWN);
		assert_null(seen);
	}
	gf_expect(&sink, "");
	assert_int_equal(guest_tasks_stats(tasks)->unreadable, 6);
}

/* Without types only the first idle task is known, until the others' members are found. */
static void members_found_later(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "a", MM(2), 6, 0);
	struct sample s = gf_sample(&g, p, now);

	(void)state;
	create_without_members();
	s.task.state = SAMPLE_TASK_POINTER;
	s.task.addr = GF_INIT_TASK;
	see_sample(&s);
	gf_expect(&sink, "comm 0/0 swapper\n");
	s.task.addr = p;
	see_sample(&s);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
	sweep();
	guest_tasks_members_known(tasks);
	see(p);
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 a exec\n");
	assert_true(guest_tasks_has_mm(tasks, seen));
}

static void whose_mm(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "a", MM(2), 6, 0);

	(void)state;
	see(p);
	assert_true(guest_tasks_has_mm(tasks, seen));
	lm_put64(&g, p + GF_MM, 0);
	assert_false(guest_tasks_has_mm(tasks, seen));
	lm_put64(&g, p + GF_MM, MM(2));
	lm_put64(&g, p + GF_START, 7);
	assert_false(guest_tasks_has_mm(tasks, seen));
	lm_put64(&g, p + GF_START, 6);
	lm_put32(&g, p + GF_PID, 71);
	assert_false(guest_tasks_has_mm(tasks, seen));
}

/* With a full table of numbers, those of ended tasks make room. */
static void full_table(void **state)
{
	uint64_t t = gf_task(&g, 1, 1, "a", MM(2), 6, 0),
		 keep = gf_task(&g, 1, 1, "b", MM(3), 5, 0);
	uint64_t program;

	(void)state;
	see(keep);
	program = seen->program;
	for (uint32_t i = 2; i < GUEST_TASKS_MAX; i++) {
		lm_put32(&g, t, i);
		lm_put32(&g, t + 4, i);
		see(t);
	}
	assert_int_equal(guest_tasks_stats(tasks)->seen, GUEST_TASKS_MAX - 1);
	sweep();
	/* In parts, so that no sample waits for all of them. */
	assert_int_equal(guest_tasks_sweep(tasks, now + 1000, NULL), 0);
	assert_true(guest_tasks_stats(tasks)->exits <= GUEST_TASKS_SWEEP);
	assert_false(guest_tasks_swept(tasks));
	sweep();
	/* All but these two. */
	assert_int_equal(guest_tasks_stats(tasks)->exits, GUEST_TASKS_MAX - 3);
	sink.log.len = 0;
	see(keep);
	gf_expect(&sink, "");
	for (uint32_t i = 100000; i < 100010; i++) {
		lm_put32(&g, t, i);
		lm_put32(&g, t + 4, i);
		see(t);
		assert_int_equal(tid, i);
	}
	sink.log.len = 0;
	see(keep);
	gf_expect(&sink, "");
	assert_int_equal(seen->program, program);
}

/* No task is known to have ended: everything starts again, with numbers that no program had. */
static void table_full_of_tasks(void **state)
{
	uint64_t t = gf_task(&g, 1, 1, "a", MM(2), 6, 0), program;

	(void)state;
	see(t);
	program = seen->program;
	for (uint32_t i = 2; i <= GUEST_TASKS_MAX + 2; i++) {
		lm_put32(&g, t, i);
		lm_put32(&g, t + 4, i);
		see(t);
	}
	lm_put32(&g, t, 1);
	lm_put32(&g, t + 4, 1);
	sink.log.len = 0;
	see(t);
	gf_expect(&sink, "fork 1/1 of 0/0\ncomm 1/1 a exec\n");
	assert_true(seen->program > program);
}

static void sink_that_fails(void **state)
{
	uint64_t p = gf_task(&g, 70, 70, "main", MM(2), 6, 0);
	struct sample s = gf_sample(&g, gf_task(&g, 71, 70, "t", MM(2), 7, p), now);

	(void)state;
	for (unsigned int i = 1; i <= 4; i++) {
		struct err e = { 0 };

		create();
		sink.fail_at = i;
		sink.calls = 0;
		assert_int_equal(guest_tasks_identify(tasks, &s, &pid, &tid, &seen, &e), -ENOSPC);
		assert_non_null(strstr(e.text, "full"));
		assert_int_equal(pid, 70);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(process_once),
		T(kernel_thread),
		T(thread_before_its_process),
		T(thread_of_an_unreadable_process),
		T(main_thread_that_has_ended),
		T(another_program),
		T(programs_one_after_the_other),
		T(thread_that_starts_a_program),
		T(kernel_thread_that_borrows_a_space),
		T(names),
		T(number_of_another),
		T(number_of_another_without_start_times),
		T(thread_of_another_process_of_that_number),
		T(exits),
		T(memory_that_is_gone_for_a_moment),
		T(idle_tasks),
		T(joined_guest_has_no_boot),
		T(unknown_tasks),
		T(members_found_later),
		T(whose_mm),
		T(full_table),
		T(table_full_of_tasks),
		T(sink_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
