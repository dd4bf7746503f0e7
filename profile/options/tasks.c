/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/tasks.h"

#include "profile/live/offcpu.h"
#include "profile/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong(const struct run_options *o, const char *what, const char *arg)
{
	fprintf(stderr, "kvmprof %s: %s%s; see `kvmprof %s --help`\n", o->command, what, arg,
		o->command);
	return 2;
}

static bool parse_ms(const char *s, double *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	/* Written so that what is no number fails, too. */
	if (errno || end == s || *end || !(v >= OFFCPU_PERIOD_MIN_MS && v <= OFFCPU_PERIOD_MAX_MS))
		return false;
	*out = v;
	return true;
}

int run_options_tasks_take(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case RUN_OPT_OFF_CPU:
		o->tasks.off_cpu = true;
		return -1;
	case RUN_OPT_OFF_CPU_PERIOD:
		if (!parse_ms(arg, &o->tasks.off_cpu_ms))
			return wrong(o, "--off-cpu-period: expected 1 to 60000 milliseconds, not ",
				     arg);
		return -1;
	case RUN_OPT_PS_AT_END:
		o->tasks.ps_at_end = true;
		return -1;
	default: /* RUN_OPT_NO_STATUS */
		o->tasks.no_status = true;
		return -1;
	}
}

int run_options_tasks_check(const struct run_options *o)
{
	if (o->tasks.off_cpu_ms > 0 && !o->tasks.off_cpu)
		return wrong(o, "--off-cpu-period is about --off-cpu: give that, too", "");
	if (o->tasks.off_cpu && o->gdb)
		return wrong(o,
			     "--off-cpu reads the guest's memory all the time, for which --gdb "
			     "would have to stop it: drop one",
			     "");
	if (o->tasks.ps_at_end && o->gdb)
		return wrong(o,
			     "--ps-at-end can't read the guest's memory any more with --gdb: "
			     "drop one",
			     "");
	if (o->tasks.off_cpu && o->events.n >= PROFILE_MAX_EVENTS)
		return wrong(o, "--off-cpu is an event of its own: one event fewer with -e", "");
	return -1;
}

uint64_t run_options_off_cpu_ns(const struct run_options *o)
{
	double ms = o->tasks.off_cpu_ms > 0 ? o->tasks.off_cpu_ms : OFFCPU_PERIOD_MS;

	return o->tasks.off_cpu ? (uint64_t)(ms * 1e6) : 0;
}
