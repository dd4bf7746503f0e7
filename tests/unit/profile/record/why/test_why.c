/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts of `why` about generated guests: each has one cause, or lies about its lists. */
#include "tests/why_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HANG (10 * WG_SECOND)
#define LOCK WG_OBJECT(4)
#define OTHER_LOCK WG_OBJECT(5)

static struct why *why;
static json_t *result;

static int fresh(void **state)
{
	(void)state;
	why_destroy(why);
	json_decref(result);
	why = NULL;
	result = NULL;
	return 0;
}

/* Looks twice with samples of idle vCPUs between, the clocks `moved` ns apart. */
static void judge(uint64_t moved, uint8_t mode, bool interrupts)
{
	struct err e = { 0 };

	why_destroy(why);
	json_decref(result);
	why = NULL;
	result = NULL;
	assert_int_equal(why_create(&why, HANG, &e), 0);
	assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
	wg_samples(why, mode, interrupts, 10);
	if (moved)
		wg_tick(100 * WG_SECOND + moved);
	assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
	assert_int_equal(why_judge(why, (struct guest *)&wg, &result, &e), 0);
}

static const json_t *check_of(const char *name)
{
	const json_t *list = json_object_get(result, "checks"), *o;
	size_t i;

	json_array_foreach(list, i, o) if (!strcmp(json_string_value(json_object_get(o, "name")),
						   name)) return o;
	fail_msg("no check %s", name);
	return NULL;
}

static const char *result_of(const char *name)
{
	return json_string_value(json_object_get(check_of(name), "result"));
}

static const json_t *proof(const char *name, const char *key)
{
	const json_t *o = json_object_get(json_object_get(check_of(name), "proof"), key);

	if (!o)
		fail_msg("%s has no proof %s", name, key);
	return o;
}

static void proves(const char *name, const char *key, uint64_t v)
{
	const json_t *o = proof(name, key);
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	if (json_is_string(o))
		assert_string_equal(json_string_value(o), text);
	else
		assert_int_equal((uint64_t)json_integer_value(o), v);
}

/* NULL: the guest is well. */
static void expect_cause(const char *cause)
{
	const char *is = json_string_value(json_object_get(result, "cause"));
	struct buf text;

	buf_init(&text);
	why_print(result, &text);
	buf_u8(&text, '\0');
	if ((!cause) != (!is) || (cause && strcmp(is, cause) != 0))
		fail_msg("cause %s, expected %s:\n%s", is ? is : "none", cause ? cause : "none",
			 (const char *)text.data);
	buf_deinit(&text);
	assert_int_equal(why_status(result), cause ? 10 : 0);
}

/* A guest whose vCPUs are idle, with tasks that sleep. */
static void make_idle(void)
{
	wg_make(true);
	for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++)
		wg.vcpu_frame[cpu][0] = "default_idle";
	wg_add("init", 'S', 50 * WG_SECOND);
	wg_add("flush", 'S', 99 * WG_SECOND);
}

static void healthy(void **state)
{
	const json_t *list, *o;
	size_t i;

	(void)state;
	make_idle();
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
	list = json_object_get(result, "checks");
	assert_int_equal(json_array_size(list), WHY_CAUSES);
	json_array_foreach(list, i, o)
	{
		assert_true(*json_string_value(json_object_get(o, "text")));
		assert_null(json_object_get(o, "proof"));
	}
	assert_int_equal(json_array_size(json_object_get(result, "vcpus")), WG_CPUS);
	assert_int_equal(json_array_size(json_object_get(result, "tasks")), 0);
}

static void without_types(void **state)
{
	(void)state;
	wg_make(false);
	wg_add("task", 'D', 0);
	judge(0, SAMPLE_IDLE, true);
	assert_string_equal(result_of("mutex"), "unknown");
	assert_string_equal(result_of("deadlock"), "unknown");
	assert_string_equal(result_of("disk"), "unknown");
	assert_string_equal(result_of("rcu-stall"), "unknown");
	assert_string_equal(result_of("workqueue"), "unknown");
	expect_cause(NULL);
}

static void mutex(void **state)
{
	unsigned int owner, waiter;

	(void)state;
	make_idle();
	owner = wg_add("owner", 'S', 40 * WG_SECOND);
	wg.task[owner].frame[1] = "wait_for_completion";
	waiter = wg_add("waiter", 'D', 60 * WG_SECOND);
	wg_wait_for_mutex(waiter, LOCK, (int)owner);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("mutex");
	proves("mutex", "lock", LOCK);
	proves("mutex", "owner", owner + 1);
	proves("mutex", "waiter", waiter + 1);
	proves("mutex", "owner_word", WG_TASK(owner) | 1);
	proves("mutex", "blocked_ns", 40 * WG_SECOND + WG_SECOND / 2);
	/* The owner runs: it is a matter of its processor. */
	wg.task[owner].s.state = 'R';
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	assert_string_equal(result_of("mutex"), "ok");
	/* Not for long. */
	wg.task[owner].s.state = 'S';
	wg_set(WG_TASK(waiter), LINUX_HANG_TASK_EXEC_START, 98 * WG_SECOND);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
}

static void rwsem(void **state)
{
	unsigned int owner, waiter;

	(void)state;
	for (unsigned int reader = 0; reader < 2; reader++) {
		make_idle();
		owner = wg_add("owner", 'S', 40 * WG_SECOND);
		waiter = wg_add("waiter", 'D', 60 * WG_SECOND);
		wg_wait_for_rwsem(waiter, LOCK, (int)owner, reader);
		judge(WG_SECOND / 2, SAMPLE_IDLE, true);
		expect_cause("mutex");
		proves("mutex", "lock", LOCK);
		proves("mutex", "owner", owner + 1);
	}
}

static void deadlock(void **state)
{
	unsigned int a, b;

	(void)state;
	make_idle();
	a = wg_add("first", 'D', 60 * WG_SECOND);
	b = wg_add("second", 'D', 60 * WG_SECOND);
	wg_wait_for_mutex(a, LOCK, (int)b);
	wg_wait_for_rwsem(b, OTHER_LOCK, (int)a, false);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("deadlock");
	assert_int_equal(json_array_size(proof("deadlock", "chain")), 2);
	/* One that waits for its own lock. */
	make_idle();
	a = wg_add("alone", 'D', 60 * WG_SECOND);
	wg_wait_for_mutex(a, LOCK, (int)a);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("deadlock");
	/* A chain that does not lead back is none. */
	make_idle();
	a = wg_add("first", 'D', 60 * WG_SECOND);
	b = wg_add("second", 'S', 60 * WG_SECOND);
	wg_wait_for_mutex(a, LOCK, (int)b);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	assert_string_equal(result_of("deadlock"), "ok");
}

/* Lists of waiters that do not end, point elsewhere, or are of other tasks: no lock is named. */
static void lying_locks(void **state)
{
	unsigned int owner, waiter;
	uint64_t node;

	(void)state;
	for (unsigned int kind = 0; kind < 6; kind++) {
		make_idle();
		owner = wg_add("owner", 'S', 40 * WG_SECOND);
		waiter = wg_add("waiter", 'D', 60 * WG_SECOND);
		wg_wait_for_mutex(waiter, LOCK, (int)owner);
		node = wg_at(WG_SP(waiter) + 0x40, LINUX_HANG_MUTEX_WAITER_LIST);
		if (kind == 0) { /* a ring without the lock */
			wg_u64(node, node);
			wg_u64(node + 8, node);
		} else if (kind == 1) { /* the next one does not lead back */
			wg_u64(wg_at(LOCK, LINUX_HANG_MUTEX_WAIT_LIST) + 8, node + 8);
		} else if (kind == 2) { /* nothing is there */
			wg_u64(node, 0xffffffffffff0000ull);
		} else if (kind == 3) { /* the owner is no task */
			wg_set(LOCK, LINUX_HANG_MUTEX_OWNER, 0xffff888000000401ull);
		} else if (kind == 4) { /* nobody waits, by the owner's word */
			wg_set(LOCK, LINUX_HANG_MUTEX_OWNER, WG_TASK(owner));
		} else {
			wg.gone[(LOCK - WG_BASE) / 0x1000] = true;
		}
		judge(WG_SECOND / 2, SAMPLE_IDLE, true);
		/* The lock's owner is the cause, and it could not be read. */
		assert_true(json_is_null(json_object_get(result, "cause")));
		assert_int_equal(why_status(result), 11);
		assert_string_equal(result_of("hung-task"), "unknown");
		assert_string_equal(result_of("mutex"), "ok");
	}
}

static void hung_task(void **state)
{
	unsigned int i;

	(void)state;
	make_idle();
	i = wg_add("hung", 'D', 60 * WG_SECOND);
	wg.task[i].frame[1] = "wait_for_completion";
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("hung-task");
	proves("hung-task", "tid", i + 1);
	wg.task[i].s.raw_state = 0x102; /* TASK_KILLABLE */
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
	wg.task[i].s.raw_state = 0x402; /* TASK_IDLE */
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
}

static void panic(void **state)
{
	(void)state;
	make_idle();
	wg_u64(wg_find("panic_cpu"), 1);
	judge(0, SAMPLE_KERNEL, false);
	expect_cause("panic");
	proves("panic", "panic_cpu", 1);
	make_idle();
	wg_u64(wg_find("tainted_mask"), 1 << 7);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("panic");
}

static void stack_overflow(void **state)
{
	unsigned int i;

	(void)state;
	make_idle();
	i = wg_add("deep", 'S', 99 * WG_SECOND);
	wg_u64(WG_STACK(i), 0x1234);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("stack-overflow");
	proves("stack-overflow", "tid", i + 1);
	proves("stack-overflow", "word", 0x1234);
}

static void interrupts(void **state)
{
	(void)state;
	make_idle();
	judge(WG_SECOND / 2, SAMPLE_IDLE, false);
	expect_cause("halted-irqs-off");
	proves("halted-irqs-off", "rflags", 2);
	/* Clocks that stand, and a loop with interrupts off. */
	make_idle();
	for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++)
		wg.vcpu_frame[cpu][0] = "work_of_mine";
	wg_set(wg_percpu_at("runqueues", 0), LINUX_HANG_RQ_CLOCK, 50 * WG_SECOND);
	judge(0, SAMPLE_KERNEL, false);
	expect_cause("irqs-off");
	proves("irqs-off", "vcpu", 0);
}

static void rcu(void **state)
{
	uint64_t rcu = WG_OBJECT(0);
	unsigned int i;

	(void)state;
	make_idle();
	i = wg_add("reader", 'S', 60 * WG_SECOND);
	wg_set(WG_TASK(i), LINUX_HANG_TASK_RCU_NESTING, 1);
	wg_set(rcu, LINUX_HANG_RCU_GP_SEQ, 0x101);
	wg_set(rcu, LINUX_HANG_RCU_GP_START, 0xffffffff + 60 * WG_SECOND / WG_JIFFY);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("rcu-stall");
	proves("rcu-stall", "tid", i + 1);
	proves("rcu-stall", "gp_seq", 0x101);
	wg_set(rcu, LINUX_HANG_RCU_GP_SEQ, 0x100); /* none is under way */
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
}

static uint64_t make_stalled_pool(bool endless)
{
	uint64_t pool = wg_percpu_at("cpu_worker_pools", 1), worker = WG_OBJECT(6),
		 work = WG_OBJECT(7);
	uint64_t node = work + 8;
	unsigned int i = wg_add("kworker/1:0", 'R', 60 * WG_SECOND);

	wg.task[i].s.running = true;
	wg_list(wg_at(pool, LINUX_HANG_POOL_WORKLIST), &node, 1);
	node = wg_at(worker, LINUX_HANG_WORKER_NODE);
	wg_list(wg_at(pool, LINUX_HANG_POOL_WORKERS), &node, 1);
	wg_set(worker, LINUX_HANG_WORKER_TASK, WG_TASK(i));
	wg_set(worker, LINUX_HANG_WORKER_FUNC, wg_find("work_of_mine"));
	wg_set(pool, LINUX_HANG_POOL_WATCHDOG, 0xffffffff + 60 * WG_SECOND / WG_JIFFY);
	if (endless) { /* a circle of workers that are none */
		wg_u64(node, node);
		wg_set(worker, LINUX_HANG_WORKER_FUNC, 0);
	}
	return pool;
}

static void workqueue(void **state)
{
	uint64_t pool;

	(void)state;
	make_idle();
	pool = make_stalled_pool(false);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("workqueue");
	proves("workqueue", "pool", pool);
	proves("workqueue", "cpu", 1);
	proves("workqueue", "worker", wg.ntasks);
	make_idle();
	make_stalled_pool(true);
	wg.reads = 0;
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	assert_true(wg.reads < 20000);
}

static void disk(void **state)
{
	(void)state;
	make_idle();
	wg_make_disk(1, 1);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause("disk");
	assert_string_equal(json_string_value(proof("disk", "disk")), "vda");
	proves("disk", "requests", 1);
	proves("disk", "request", WG_OBJECT(16));
	proves("disk", "oldest_ns", 40 * WG_SECOND + WG_SECOND / 2);
	/* Not yet old. */
	wg_set(WG_OBJECT(16), LINUX_HANG_RQ_START, 99 * WG_SECOND);
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	expect_cause(NULL);
}

/* By its own account a guest has any number of requests. */
static void endless_disk(void **state)
{
	(void)state;
	make_idle();
	wg_make_disk(UINT32_MAX, UINT32_MAX);
	wg_set(WG_OBJECT(16), LINUX_HANG_RQ_START, 99 * WG_SECOND);
	wg_u64(wg_at(wg_at(WG_OBJECT(9), LINUX_HANG_BDEV_INODE), LINUX_HANG_INODE_SB_LIST),
	       wg_at(wg_at(WG_OBJECT(9), LINUX_HANG_BDEV_INODE), LINUX_HANG_INODE_SB_LIST));
	wg.reads = 0;
	judge(WG_SECOND / 2, SAMPLE_IDLE, true);
	assert_true(wg.reads < 3ull * WHY_MAX_READS);
}

/* Of a saved machine, clocks that stand prove nothing. */
static void still(void **state)
{
	struct err e = { 0 };

	(void)state;
	for (unsigned int saved = 0; saved < 2; saved++) {
		fresh(state);
		make_idle();
		for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++)
			wg.vcpu_frame[cpu][0] = "work_of_mine";
		assert_int_equal(why_create(&why, 1, &e), 0);
		if (saved)
			why_set_still(why);
		assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
		wg_samples(why, SAMPLE_KERNEL, false, 10);
		assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
		assert_int_equal(why_judge(why, (struct guest *)&wg, &result, &e), 0);
		expect_cause(saved ? NULL : "irqs-off");
	}
	assert_non_null(
		strstr(json_string_value(json_object_get(check_of("paused"), "text")), "saved"));
}

/* The limit of reads is reached: what seems to be in order is not known. */
static void gives_up(void **state)
{
	struct err e = { 0 };

	(void)state;
	make_idle();
	assert_int_equal(why_create(&why, HANG, &e), 0);
	assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
	wg_samples(why, SAMPLE_IDLE, true, 10);
	assert_int_equal(why_look(why, (struct guest *)&wg, &e), 0);
	why->gave_up = true;
	assert_int_equal(why_judge(why, (struct guest *)&wg, &result, &e), 0);
	for (unsigned int i = 0; i < WHY_CAUSES; i++)
		assert_int_equal(why->finding[i].result, WHY_NOT_KNOWN);
	assert_int_equal(why_status(result), 0);
}

static void not_yet(void **state)
{
	struct err e = { 0 };
	struct why *w = NULL;
	json_t *out = NULL;

	(void)state;
	make_idle();
	err_set(&wg.unknown, EAGAIN, "the guest's tasks are not found yet");
	assert_int_equal(why_create(&w, HANG, &e), 0);
	assert_int_equal(why_look(w, (struct guest *)&wg, &e), -EAGAIN);
	assert_int_equal(why_judge(w, (struct guest *)&wg, &out, &e), -EAGAIN);
	assert_null(out);
	why_destroy(w);
}

static int last(void **state)
{
	fresh(state);
	symtab_destroy(wg.target.symbols);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(healthy, fresh),
		cmocka_unit_test_teardown(without_types, fresh),
		cmocka_unit_test_teardown(mutex, fresh),
		cmocka_unit_test_teardown(rwsem, fresh),
		cmocka_unit_test_teardown(deadlock, fresh),
		cmocka_unit_test_teardown(lying_locks, fresh),
		cmocka_unit_test_teardown(hung_task, fresh),
		cmocka_unit_test_teardown(panic, fresh),
		cmocka_unit_test_teardown(stack_overflow, fresh),
		cmocka_unit_test_teardown(interrupts, fresh),
		cmocka_unit_test_teardown(rcu, fresh),
		cmocka_unit_test_teardown(workqueue, fresh),
		cmocka_unit_test_teardown(disk, fresh),
		cmocka_unit_test_teardown(endless_disk, fresh),
		cmocka_unit_test_teardown(still, fresh),
		cmocka_unit_test_teardown(gives_up, fresh),
		cmocka_unit_test_teardown(not_yet, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, last);
}
