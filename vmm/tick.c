/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/tick.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "vmm/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A thread's CPU time by its id: make_thread_cpuclock() of include/linux/posix-timers.h. */
#define THREAD_CLOCK(tid) ((clockid_t)(~(unsigned int)(tid) << 3 | 6))

/* The letter of /proc/TID/stat (proc(5)): R is running or in the run queue. */
static bool is_runnable(int tid)
{
	char path[64], text[256], *after;
	cleanup_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name is in parentheses and may hold any character. */
	after = strrchr(text, ')');
	return after && after[1] == ' ' && after[2] == 'R';
}

bool tick_vcpu_runs(void *ctx, uint64_t *cpu_ns)
{
	struct vm *vm = ctx;
	int tid = atomic_load(&vm->vcpu[0].tid);
	struct timespec ts;

	if (!tid || !is_runnable(tid) || clock_gettime(THREAD_CLOCK(tid), &ts) < 0)
		return false;
	*cpu_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return true;
}
