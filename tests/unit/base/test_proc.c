/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A thread whose name looks like the fields that follow it. */
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

/* A child that sleeps in read(2), has ended, and is gone. */
static void what_a_child_does(void **state)
{
	struct proc_syscall call;
	char task[32], args[256];
	int held[2], status;
	pid_t child;
	size_t n = 0;

	(void)state;
	assert_int_equal(pipe(held), 0);
	child = fork();
	if (!child) {
		(void)!read(held[0], args, 1);
		_exit(0);
	}
	snprintf(task, sizeof(task), "/proc/%d", (int)child);
	do
		assert_true(proc_syscall(task, &call));
	while (call.runs || call.number != SYS_read);
	assert_int_equal(call.argument[0], held[0]);
	assert_false(proc_has_ended(task));
	assert_int_equal(proc_status_pid(task, "Tgid"), child);
	assert_int_equal(proc_status_pid(task, "PPid"), getpid());
	assert_int_equal(proc_status_pid(task, "TracerPid"), 0);
	n = proc_arguments(task, args, sizeof(args));
	assert_true(n > 1 && !args[n - 1]);
	assert_int_equal(proc_arguments(task, args, 2), 2);
	assert_int_equal(write(held[1], "", 1), 1);
	while (!proc_has_ended(task))
		;
	assert_int_equal(proc_arguments(task, args, sizeof(args)), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(proc_has_ended(task));
	assert_false(proc_syscall(task, &call));
	assert_int_equal(proc_status_pid(task, "Tgid"), 0);
	close(held[0]);
	close(held[1]);
}

/* The forms of proc(5): a running thread, one outside of system calls, a call, and other texts. */
static void forms_of_syscall(void **state)
{
	static const struct {
		const char *text;
		bool known, runs;
		long number;
		uint64_t first, second;
	} form[] = {
		{ "running\n", true, true, 0, 0, 0 },
		{ "-1 0x7ffc0 0x401000\n", true, false, -1, 0, 0 },
		{ "16 0x9 0xae80 0x0 0x0 0x0 0x0 0x7ffc0 0x401000\n", true, false, 16, 9, 0xae80 },
		{ "16 0x9\n", false, false, 0, 0, 0 },
		{ "what\n", false, false, 0, 0, 0 },
		{ "", false, false, 0, 0, 0 },
	};
	struct proc_syscall call;

	(void)state;
	for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
		FILE *f = tmpfile();

		assert_non_null(f);
		assert_true(fputs(form[i].text, f) >= 0 && !fflush(f));
		assert_int_equal(proc_syscall_of(fileno(f), &call), form[i].known);
		if (form[i].known) {
			assert_int_equal(call.runs, form[i].runs);
			assert_int_equal(call.number, form[i].number);
			assert_int_equal(call.argument[0], form[i].first);
			assert_int_equal(call.argument[1], form[i].second);
		}
		fclose(f);
	}
	assert_false(proc_syscall_of(-1, &call));
}

/* The other case, a loader beside a script, is of the release's archive: tests/e2e/release_archive.py. */
static void program_of(void **state)
{
	char out[PATH_MAX];

	(void)state;
	assert_string_equal(proc_program(out), "/proc/self/exe");
}

/* Starts a copy of sleep(1) at this path, and returns once it runs. */
static pid_t run_as(const char *path)
{
	char command[256];
	int ready[2];
	char byte;
	pid_t child;

	snprintf(command, sizeof(command), "cp -L \"$(command -v sleep)\" %s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		execl(path, "sleep", "600", (char *)NULL);
		_exit(1);
	}
	/* execve(2) closes the child's end. */
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return child;
}

static void programs_are_known_by_their_file(void **state)
{
	static const struct {
		const char *path;
		bool is;
	} file[] = {
		{ "kvmprof", true },
		{ "kvmprof-old", false },
		{ "sleep", false },
		{ "lib/kvmprof/ld-linux-x86-64.so.2", true },
		{ "lib/ld-linux-x86-64.so.2", false },
	};
	char top[] = "/tmp/kvmprof-proc-XXXXXX", path[128], task[32];

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "mkdir -p %s/lib/kvmprof", top);
	assert_int_equal(system(path), 0);
	for (size_t i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		pid_t child;

		snprintf(path, sizeof(path), "%s/%s", top, file[i].path);
		child = run_as(path);
		snprintf(task, sizeof(task), "/proc/%d", (int)child);
		assert_int_equal(proc_runs_program(task, "kvmprof"), file[i].is);
		/* A new release takes its place. */
		assert_int_equal(unlink(path), 0);
		assert_int_equal(proc_runs_program(task, "kvmprof"), file[i].is);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_false(proc_runs_program(task, "kvmprof"));
	}
	snprintf(path, sizeof(path), "rm -r %s", top);
	assert_int_equal(system(path), 0);
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
		cmocka_unit_test(what_a_child_does),
		cmocka_unit_test(forms_of_syscall),
		cmocka_unit_test(program_of),
		cmocka_unit_test(programs_are_known_by_their_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
