/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threadstat: what the host's kernel knows of one of our threads' time.
 *
 * Source: proc(5): /proc/PID/task/TID/schedstat (run and waited for a processor, ns) and
 * .../stat (fields 14 utime, 15 stime, 43 guest_time, in clock ticks). Where a host
 * accounts by ticks, the latter are samples of one tick each.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_THREADSTAT_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_THREADSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct threadstat {
	bool have_sched, have_times;
	uint64_t run_ns, delay_ns;	       /* have_sched */
	uint64_t user_ns, system_ns, guest_ns; /* have_times; user_ns without guest_ns */
	char state;			       /* have_times: as ps has it */
};

/* Of a thread of this process; what can't be read is not there. Any thread. */
void threadstat_read(struct threadstat *t, int tid);

/* The texts of the two files; false: not of their form. ticks: sysconf(_SC_CLK_TCK). */
bool threadstat_parse_sched(struct threadstat *t, const char *text);
bool threadstat_parse_times(struct threadstat *t, const char *text, long ticks);

#endif
