/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roles that wait, each in another system call and with a known stack; and one that prints what the
 * kernel reports about all its tasks.
 */
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec timespec_of(double seconds)
{
	return (struct timespec){ (time_t)seconds,
				  (long)((seconds - (double)(time_t)seconds) * 1e9) };
}

/* System calls without a library's function in between, so that the frames are ours. */
static worker_function long call4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	keep_frame();
	return ret;
}

static worker_function void sleep_for(double seconds)
{
	struct timespec t = timespec_of(seconds);

	call4(SYS_nanosleep, (long)&t, 0, 0, 0);
	keep_frame();
}

/* For who looks at the console: the wait that followed tell_truth() is over. */
static void tell_waited(const char *comm)
{
	printf("worker: waited %s\n", comm);
	fflush(stdout);
}

worker_function void role_sleep(void)
{
	tell_truth("w-sleep", "main;role_sleep;sleep_for;call4");
	while (time_is_left()) {
		sleep_for(seconds_left());
		keep_frame();
	}
	tell_waited("w-sleep");
}

/* A child that sleeps until the end, and does what the other one waits for by ending. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "w-sleepchild");
		sleep_for(seconds_left());
		_exit(0);
	}
	return pid;
}

worker_function void role_pipe(void)
{
	char byte;
	int fd[2];

	if (pipe(fd) || start_child() < 0) {
		printf("worker: failed: a pipe\n");
		return;
	}
	close(fd[1]);
	tell_truth("w-pipe", "main;role_pipe;call4");
	while (call4(SYS_read, fd[0], (long)&byte, 1, 0) > 0)
		keep_frame();
	tell_waited("w-pipe");
	waitpid(-1, NULL, 0);
}

worker_function void role_futex(void)
{
	static int word;
	struct timespec t;

	tell_truth("w-futex", "main;role_futex;call4");
	while (time_is_left()) {
		t = timespec_of(seconds_left());
		call4(SYS_futex, (long)&word, FUTEX_WAIT, 0, (long)&t);
		keep_frame();
	}
	tell_waited("w-futex");
}

worker_function void role_wait(void)
{
	if (start_child() < 0) {
		printf("worker: failed: fork\n");
		return;
	}
	tell_truth("w-wait", "main;role_wait;call4");
	call4(SYS_wait4, -1, 0, 0, 0);
	keep_frame();
	tell_waited("w-wait");
}

/* Half of the time it computes, half it sleeps: in turns of a tenth of a second. */
worker_function void role_half(void)
{
	struct timespec cpu;

	tell_truth("w-half", "main;role_half;sleep_for;call4");
	while (time_is_left()) {
		double until = seconds_left() - 0.1;

		while (seconds_left() > until && time_is_left())
			lib_outer(2000);
		sleep_for(0.1);
		keep_frame();
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("worker: cpu %d %.6f\n", (int)getpid(),
	       (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
}

static size_t read_file(const char *dir, const char *name, char *out, size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	n = n < 0 ? 0 : n;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return (size_t)n;
}

static void print_tasks(void)
{
	char stat[512], wchan[64], dir[64];
	struct dirent *e;
	DIR *proc = opendir("/proc");

	while (proc && (e = readdir(proc))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(dir, sizeof(dir), "/proc/%.20s", e->d_name);
		if (!read_file(dir, "stat", stat, sizeof(stat)))
			continue;
		if (!read_file(dir, "wchan", wchan, sizeof(wchan)))
			strcpy(wchan, "-");
		printf("worker: proc %s %s %s\n", e->d_name, wchan, stat);
	}
	if (proc)
		closedir(proc);
	printf("worker: proc end\n");
}

/* Once the others wait; after it there is time to compare. */
worker_function void role_proc(void)
{
	sleep_for(seconds_left() / 3);
	print_tasks();
	sleep_for(seconds_left());
}
