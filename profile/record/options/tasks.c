/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/tasks.h"

#include "profile/record/counters/events.h"
#include "profile/record/options/options.h"

int run_options_tasks_check(const struct run_options *o)
{
	if (o->tasks.off_cpu_ms > 0 && !o->tasks.off_cpu)
		return run_options_wrong(o, "--off-cpu-period is about --off-cpu: give that, too");
	if (o->tasks.off_cpu && o->gdb)
		return run_options_wrong(
			o, "--off-cpu reads the guest's memory all the time, for which --gdb "
			   "would have to stop it: drop one");
	if (o->tasks.ps_at_end && o->gdb)
		return run_options_wrong(
			o, "--ps-at-end can't read the guest's memory any more with --gdb: "
			   "drop one");
	if (o->tasks.off_cpu && o->events.n >= PROFILE_MAX_EVENTS)
		return run_options_wrong(
			o, "--off-cpu is an event of its own: one event fewer with -e");
	return -1;
}

uint64_t run_options_off_cpu_ns(const struct run_options *o)
{
	double ms = o->tasks.off_cpu_ms > 0 ? o->tasks.off_cpu_ms : OFFCPU_PERIOD_MS;

	return o->tasks.off_cpu ? (uint64_t)(ms * 1e6) : 0;
}
