/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a thread's time goes: spans without a gap, and what it was off its processor in them. */
#include "base/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static struct account a;
static struct account_thread t;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	now = 500 * MS;
	t = (struct account_thread){ .have_delay = true, .cpu_ns = 70 * MS, .delay_ns = 9 * MS };
	account_begin(&a, now, &t);
	return 0;
}

/* The span that goes on ends after so much; it had a processor for `cpu` of it, and waited for `delay`. */
static void pass(enum account_span next, uint64_t wall, uint64_t cpu, uint64_t delay)
{
	now += wall;
	t.cpu_ns += cpu;
	t.delay_ns += delay;
	account_next(&a, next, now);
}

static uint64_t all(void)
{
	return a.wall[ACCOUNT_RUN] + a.wall[ACCOUNT_VMM] + a.wall[ACCOUNT_STOPPED];
}

static void walls(void **state)
{
	(void)state;
	pass(ACCOUNT_RUN, 3 * US, 3 * US, 0);
	pass(ACCOUNT_VMM, 40 * US, 40 * US, 0);
	pass(ACCOUNT_STOPPED, 2 * US, 2 * US, 0);
	pass(ACCOUNT_VMM, 7 * US, 7 * US, 0);
	pass(ACCOUNT_RUN, 1 * US, 1 * US, 0);
	assert_int_equal(a.wall[ACCOUNT_RUN], 40 * US);
	assert_int_equal(a.wall[ACCOUNT_VMM], 6 * US);
	assert_int_equal(a.wall[ACCOUNT_STOPPED], 7 * US);
	assert_int_equal(all(), now - a.begun_ns);
}

/* Off its processor in the span that was long. */
static void long_span(void **state)
{
	(void)state;
	pass(ACCOUNT_RUN, 3 * US, 3 * US, 0);
	pass(ACCOUNT_VMM, 10 * MS, 2 * MS, 5 * MS);
	account_update(&a, &t, ACCOUNT_RUN, 10 * MS);
	assert_int_equal(a.delay[ACCOUNT_RUN], 5 * MS);
	assert_int_equal(a.blocked[ACCOUNT_RUN], 3 * MS);
	assert_int_equal(account_ran(&a, ACCOUNT_RUN), 2 * MS);
	pass(ACCOUNT_RUN, 4 * MS, 1 * MS, 3 * MS);
	account_update(&a, &t, ACCOUNT_VMM, 4 * MS);
	assert_int_equal(a.delay[ACCOUNT_VMM], 3 * MS);
	assert_int_equal(a.blocked[ACCOUNT_VMM], 0);
	assert_int_equal(a.elsewhere, 0);
	assert_int_equal(all(), now - a.begun_ns);
}

/* In short ones: what does not fit into the VMM's was in KVM_RUN, the rest may have been in both. */
static void short_spans(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		pass(ACCOUNT_RUN, 5 * US, 5 * US, 0);
		pass(ACCOUNT_VMM, 90 * US, 20 * US, 10 * US);
	}
	account_update(&a, &t, ACCOUNT_RUN, 90 * US);
	assert_int_equal(a.delay[ACCOUNT_RUN] + a.blocked[ACCOUNT_RUN], 650 * US);
	assert_int_equal(a.elsewhere, 50 * US);
}

/* The two clocks differ a little, or the host counts a wait that began before. */
static void clocks_differ(void **state)
{
	(void)state;
	pass(ACCOUNT_RUN, 5 * US, 5 * US, 0);
	pass(ACCOUNT_VMM, 1 * MS, 1 * MS + 300, 2 * MS);
	account_update(&a, &t, ACCOUNT_RUN, 1 * MS);
	assert_int_equal(a.delay[ACCOUNT_RUN], 0);
	assert_int_equal(a.elsewhere, 0);
	assert_int_equal(account_ran(&a, ACCOUNT_RUN), 1 * MS);
	/* Time off the processor counts once. */
	pass(ACCOUNT_RUN, 8 * US, 8 * US, 0);
	pass(ACCOUNT_VMM, 1 * MS, 1 * MS, 0);
	account_update(&a, &t, ACCOUNT_RUN, 1 * MS);
	assert_int_equal(a.blocked[ACCOUNT_RUN] + a.blocked[ACCOUNT_VMM] + a.elsewhere, 0);
}

/* Without schedstat a wait for a processor is a sleep like others. */
static void no_delay(void **state)
{
	(void)state;
	t = (struct account_thread){ .cpu_ns = 1 };
	account_begin(&a, now, &t);
	pass(ACCOUNT_RUN, 1 * MS, 1 * MS, 0);
	pass(ACCOUNT_VMM, 4 * MS, 1 * MS, 0);
	account_update(&a, &t, ACCOUNT_RUN, 4 * MS);
	assert_int_equal(a.delay[ACCOUNT_RUN], 0);
	assert_int_equal(a.blocked[ACCOUNT_RUN], 3 * MS);
}

static void this_thread(void **state)
{
	struct account_thread before, after;
	int fd = account_open();

	(void)state;
	account_read_thread(fd, &before);
	do
		account_read_thread(fd, &after);
	while (after.cpu_ns - before.cpu_ns < 1 * MS);
	assert_int_equal(after.have_delay, fd >= 0);
	assert_true(after.delay_ns >= before.delay_ns);
	account_read_thread(-1, &after);
	assert_false(after.have_delay);
	assert_true(after.cpu_ns > before.cpu_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(walls, setup),
		cmocka_unit_test_setup(long_span, setup),
		cmocka_unit_test_setup(short_spans, setup),
		cmocka_unit_test_setup(clocks_differ, setup),
		cmocka_unit_test_setup(no_delay, setup),
		cmocka_unit_test(this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
