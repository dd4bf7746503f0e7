/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guard of attach decides by the states of the tracer's thread at its looks whether that thread is stuck. */
#include "vmm/attach/attach_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MANY 1000u

/*
 * Looks at a thread that has these states in turn, again and again, and gets so much time on a processor between two looks. Returns the look that
 * finds it stuck, from 1 on; 0: none of MANY.
 */
static unsigned int stuck_after(const char *states, uint64_t step_ns)
{
	struct attach_guard_looks looks = { 0 };
	const size_t n = strlen(states);

	for (unsigned int i = 0; i < MANY; i++)
		if (attach_guard_look(&looks, n ? states[i % n] : 0, i * step_ns))
			return i + 1;
	return 0;
}

static unsigned int stuck_at(const char *states)
{
	return stuck_after(states, 1000000);
}

/* SIGSTOP (T), a debugger (t), a frozen cgroup (S or D, by the kernel's version), a page that never comes (D). */
static void a_thread_that_does_not_run_is_stuck(void **state)
{
	static const char *const still[] = { "T", "t", "S", "D", "I" };

	(void)state;
	for (size_t i = 0; i < sizeof(still) / sizeof(still[0]); i++)
		assert_int_equal(stuck_at(still[i]), ATTACH_GUARD_LOOKS);
}

static void a_thread_in_an_endless_loop_is_stuck(void **state)
{
	struct attach_guard_looks looks = { 0 };

	(void)state;
	assert_int_equal(stuck_at("R"), ATTACH_GUARD_LOOKS_RUNNABLE);
	/* A kernel without schedstat does not tell a loop from a wait for a processor. */
	for (unsigned int i = 1; i < ATTACH_GUARD_LOOKS_RUNNABLE; i++)
		assert_false(attach_guard_look(&looks, 'R', ATTACH_GUARD_RAN_UNKNOWN));
	assert_true(attach_guard_look(&looks, 'R', ATTACH_GUARD_RAN_UNKNOWN));
}

/* On a busy host, where the guard's session has a share of the processors of its own. */
static void a_thread_without_a_processor_is_given_longer(void **state)
{
	(void)state;
	assert_int_equal(stuck_after("R", 0), ATTACH_GUARD_LOOKS_LATE);
	assert_int_equal(stuck_after("S", 0), ATTACH_GUARD_LOOKS);
}

/* On a busy host a thread waits for a processor at nearly all looks, and sleeps at one. */
static void one_look_does_not_decide(void **state)
{
	struct attach_guard_looks looks = { 0 };

	(void)state;
	for (unsigned int i = 1; i < ATTACH_GUARD_LOOKS; i++)
		assert_false(attach_guard_look(&looks, 'R', i));
	assert_false(attach_guard_look(&looks, 'S', 0));
	for (unsigned int i = 2; i < ATTACH_GUARD_LOOKS; i++)
		assert_false(attach_guard_look(&looks, 'S', 0));
	assert_true(attach_guard_look(&looks, 'S', 0));
}

static void a_thread_that_alternates_is_stuck_in_the_end(void **state)
{
	(void)state;
	assert_int_equal(stuck_at("RS"), 2 * ATTACH_GUARD_LOOKS);
	assert_int_equal(stuck_at("SRR"), 3 * (ATTACH_GUARD_LOOKS - 1) + 1);
	assert_int_equal(stuck_at("RRRRRRRRRS"), ATTACH_GUARD_LOOKS_RUNNABLE);
}

static void a_thread_that_has_ended_traces_nothing(void **state)
{
	(void)state;
	assert_int_equal(stuck_at(""), 0);
	assert_int_equal(stuck_at("Z"), 0);
	assert_int_equal(stuck_at("X"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_does_not_run_is_stuck),
		cmocka_unit_test(a_thread_in_an_endless_loop_is_stuck),
		cmocka_unit_test(a_thread_without_a_processor_is_given_longer),
		cmocka_unit_test(one_look_does_not_decide),
		cmocka_unit_test(a_thread_that_alternates_is_stuck_in_the_end),
		cmocka_unit_test(a_thread_that_has_ended_traces_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
