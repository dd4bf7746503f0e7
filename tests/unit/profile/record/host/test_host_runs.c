/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attribution of processor time: waits after preemption and after sleep, on one processor and after
 * moving to another, and unknown time.
 */
#include "profile/record/host/host_runs.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VCPU 100u
#define THIEF 200u
#define OTHER 300u
#define PREEMPT (PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)

static struct host_runs *r;

struct record {
	struct perf_event_header h;
	uint32_t word[10];
};

static int setup(void **state)
{
	(void)state;
	r = host_runs_create(2);
	assert_non_null(r);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host_runs_destroy(r);
	return 0;
}

/* A record of n words, and who wrote it when. */
static void add(unsigned int cpu, uint32_t type, uint16_t misc, unsigned int n,
		const uint32_t *word, uint64_t time)
{
	struct record rec = { .h = { type, misc, (uint16_t)(sizeof(rec.h) + 4 * n + 16) } };

	memcpy(rec.word, word, 4 * n);
	memcpy(&rec.word[n + 2], &time, sizeof(time));
	host_runs_add(r, cpu, &rec, rec.h.size);
}

/* On that processor tid follows whoever was there, as the kernel tells it: by both of them. */
static void comes(unsigned int cpu, uint32_t tid, uint16_t out, uint64_t time)
{
	add(cpu, PERF_RECORD_SWITCH_CPU_WIDE, out, 2, (uint32_t[]){ tid, tid }, time);
	add(cpu, PERF_RECORD_SWITCH_CPU_WIDE, 0, 2, (uint32_t[]){ 1, 1 }, time + 1);
}

static uint32_t who(uint64_t from, uint64_t to, uint64_t wait)
{
	return host_runs_find_task(r, &(struct host_wait){ VCPU, from, to, wait });
}

/* How many of 1,000 such waits are said to be his? */
static unsigned int share(uint32_t tid, uint64_t from, uint64_t to, uint64_t wait)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 1000; i++)
		n += who(from, to, wait) == tid;
	return n;
}

static void preempted(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, THIEF, PREEMPT, 2000);
	comes(0, OTHER, PERF_RECORD_MISC_SWITCH_OUT, 2750);
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 3000);
	assert_int_equal(share(THIEF, 1500, 4000, 1000), 750);
	assert_int_equal(share(OTHER, 1500, 4000, 1000), 250);
	/* Before it came back, or after. */
	assert_int_equal(who(1500, 2900, 1000), 0);
	assert_int_equal(who(3100, 4000, 1000), 0);
}

static void slept(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, OTHER, PERF_RECORD_MISC_SWITCH_OUT, 2000);
	comes(0, THIEF, PREEMPT, 8000);
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 9000);
	/* When it was woken is not known, but when its wait ended. */
	assert_int_equal(share(THIEF, 1500, 10000, 500), 1000);
	assert_int_equal(share(OTHER, 1500, 10000, 4000), 750);
	/* No wait that is known: not a guess. */
	assert_int_equal(who(1500, 10000, 0), 0);
}

/* A wait that is known goes before one that may be. */
static void both(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, THIEF, PREEMPT, 2000);
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 2900);
	comes(0, OTHER, PERF_RECORD_MISC_SWITCH_OUT, 4000);
	comes(0, VCPU, PREEMPT, 5000);
	assert_int_equal(share(OTHER, 1500, 6000, 1000), 100);
	assert_int_equal(share(THIEF, 1500, 6000, 1000), 900);
	assert_int_equal(share(OTHER, 1500, 6000, 900), 0);
}

static void moved(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(1, OTHER, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, THIEF, PREEMPT, 2000);
	comes(1, VCPU, PREEMPT, 3000);
	/* The one on the processor that it got. */
	assert_int_equal(share(OTHER, 1500, 4000, 1000), 1000);
}

static void idle(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, 0, PERF_RECORD_MISC_SWITCH_OUT, 2000);
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 3000);
	assert_int_equal(who(1500, 4000, 1000), 0);
}

static void lost(void **state)
{
	(void)state;
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 1000);
	comes(0, THIEF, PERF_RECORD_MISC_SWITCH_OUT, 2000);
	add(0, PERF_RECORD_LOST, 0, 4, (uint32_t[4]){ 0 }, 2500);
	comes(0, VCPU, PERF_RECORD_MISC_SWITCH_OUT, 3000);
	assert_int_equal(host_runs_lost(r), 1);
	assert_int_equal(who(1500, 4000, 1000), 0);
}

/* More than is kept: the oldest is gone, the rest is right. */
static void many(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * HOST_RUNS_KEPT; i++)
		comes(0, i & 1 ? VCPU : THIEF, PREEMPT, 1000 * i);
	assert_int_equal(share(THIEF, 0, 2000 * HOST_RUNS_KEPT, 1000000), 1000);
	assert_int_equal(who(0, 1000, 1000), 0);
}

static void names(void **state)
{
	(void)state;
	assert_null(host_runs_comm(r, THIEF));
	host_runs_name(r, THIEF, "thief");
	assert_string_equal(host_runs_comm(r, THIEF), "thief");
	/* pid, ppid, tid, ptid, time: called as who made it. */
	add(0, PERF_RECORD_FORK, 0, 6, (uint32_t[]){ OTHER, THIEF, OTHER, THIEF, 0, 0 }, 1);
	assert_string_equal(host_runs_comm(r, OTHER), "thief");
	add(1, PERF_RECORD_COMM, 0, 4, (uint32_t[]){ OTHER, OTHER, 0x6c6c6163, 0x6465 }, 2);
	assert_string_equal(host_runs_comm(r, OTHER), "called");
	/* The number again, of a parent that is not known: it is not called as the one before. */
	add(0, PERF_RECORD_FORK, 0, 6, (uint32_t[]){ OTHER, 7, OTHER, 7, 0, 0 }, 3);
	assert_null(host_runs_comm(r, OTHER));
}

/* Records of any length and kind, and of processors that do not exist. */
static void damaged(void **state)
{
	uint8_t bytes[64];

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t type = 1u + i % 16;
		size_t len = i % (sizeof(bytes) + 1);

		for (unsigned int k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(i * 7 + k * (i >> 4));
		memcpy(bytes, &type, sizeof(type));
		host_runs_add(r, i % 3, bytes, len);
		(void)who(0, UINT64_MAX, UINT64_MAX);
	}
	assert_true(host_runs_lost(r) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(preempted, setup, teardown),
		cmocka_unit_test_setup_teardown(slept, setup, teardown),
		cmocka_unit_test_setup_teardown(both, setup, teardown),
		cmocka_unit_test_setup_teardown(moved, setup, teardown),
		cmocka_unit_test_setup_teardown(idle, setup, teardown),
		cmocka_unit_test_setup_teardown(lost, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
