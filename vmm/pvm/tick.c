/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/tick.h"

#include "base/clock.h"
#include "base/proc.h"
#include "vmm/machine.h"

#include <stdio.h>
#include <time.h>

/* A thread's CPU time by its id: make_thread_cpuclock() of include/linux/posix-timers.h. */
#define THREAD_CLOCK(tid) ((clockid_t)(~(unsigned int)(tid) << 3 | 6))

/* Its state is R: running or in the run queue. */
static bool is_runnable(int tid)
{
	char task[48], text[PROC_STAT_MAX];
	const char *stat;

	snprintf(task, sizeof(task), "/proc/self/task/%d", tid);
	stat = proc_stat(task, text);
	return stat && *stat == 'R';
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
