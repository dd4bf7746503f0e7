/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/proc.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

/* Of a thread whose name looks like what follows it. */
static void own_lines(void **state)
{
	char task[32], text[PROC_STAT_MAX], value[64];
	const char *stat;
	int parent;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "a) Z 1 (b"), 0);
	snprintf(task, sizeof(task), "/proc/%d", (int)getpid());
	stat = proc_stat(task, text);
	assert_non_null(stat);
	assert_int_equal(*stat, 'R');
	assert_int_equal(sscanf(stat, "%*c %d", &parent), 1);
	assert_int_equal(parent, getppid());

	assert_true(proc_status(task, "Name", value, sizeof(value)));
	assert_string_equal(value, "a) Z 1 (b");
	assert_true(proc_status(task, "Pid", value, sizeof(value)));
	assert_int_equal(atoi(value), getpid());
	assert_true(proc_status(task, "Name", value, 4));
	assert_string_equal(value, "a) ");
	assert_false(proc_status(task, "PPi", value, sizeof(value)));
}

/* The other case, a loader beside a script, is of the release's archive: tests/e2e/release_archive.py. */
static void program_of(void **state)
{
	char out[PATH_MAX];

	(void)state;
	assert_string_equal(proc_program(out), "/proc/self/exe");
}

static void nobody(void **state)
{
	char text[PROC_STAT_MAX], value[8];

	(void)state;
	assert_null(proc_stat("/proc/0", text));
	assert_false(proc_status("/proc/0", "Pid", value, sizeof(value)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_lines),
		cmocka_unit_test(nobody),
		cmocka_unit_test(program_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
