/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A VMM that cannot be executed is told from one that ends soon, also where kvmprof-launch gets no processor meanwhile. */
#include "vmm/attach/launch.h"

#include "tests/unit/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LATE_NS 100000000

/* Starts the command, traces it until it has ended, and returns whether it could not be executed. late: kvmprof-launch runs later. */
static bool fails(const char *command, bool late, struct err *e)
{
	char *argv[] = { (char *)(uintptr_t)command, NULL };
	const struct timespec nap = { .tv_nsec = LATE_NS };
	struct launch l;
	struct err why = { 0 };
	pid_t waker = 0;
	bool failed;
	int status;

	assert_int_equal(launch_start(&l, argv, LAUNCH_INHERIT, &why), 0);
	if (late)
		assert_int_equal(kill(l.parent, SIGSTOP), 0);
	if (ptrace(PTRACE_SEIZE, l.child, NULL, NULL) < 0 && errno == EPERM)
		SKIP("no process may be traced here");
	assert_int_equal(waitpid(l.child, &status, __WALL), l.child);
	assert_true(WIFEXITED(status));
	if (late) {
		waker = fork();
		if (!waker) {
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
			kill(l.parent, SIGCONT);
			_exit(0);
		}
	}
	err_set(e, ESRCH, "the VMM has ended");
	failed = launch_failed(&l, command, e);
	launch_close(&l);
	if (waker)
		(void)waitpid(waker, NULL, 0);
	return failed;
}

static void no_such_program(void **state)
{
	static const bool late[] = { false, true };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct err e = { 0 };

		assert_true(fails("./no-such-vmm", late[i], &e));
		assert_int_equal(e.code, ENOENT);
		assert_non_null(strstr(e.text, "cannot execute ./no-such-vmm"));
	}
}

static void ends_soon(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_false(fails("true", false, &e));
	assert_int_equal(e.code, ESRCH);
	assert_false(fails("true", true, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_such_program),
		cmocka_unit_test(ends_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
