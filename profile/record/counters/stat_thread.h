/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat_thread: what the host's kernel knows of the time of one of our threads.
 *
 * Source: proc(5): /proc/PID/task/TID/schedstat (run and waited for a processor, ns) and
 * .../stat (fields 14 utime, 15 stime, 43 guest_time, in clock ticks). Where a host
 * accounts by ticks, the latter are samples of one tick each.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_STAT_THREAD_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_STAT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct stat_thread {
	bool have_sched, have_times;
	uint64_t run_ns, delay_ns;	       /* have_sched */
	uint64_t user_ns, system_ns, guest_ns; /* have_times; user_ns without guest_ns */
	char state;			       /* have_times: as ps has it */
};

/* Descriptors of its two files; -1: this host has none. */
struct stat_thread_files {
	int sched, times;
};

/* Opens the files of a thread of this process. The caller closes them. Any thread. */
void stat_thread_open(struct stat_thread_files *f, int tid);
void stat_thread_read_files(struct stat_thread *t, const struct stat_thread_files *f);
void stat_thread_close(struct stat_thread_files *f);

/* Reads the figures of a thread of this process. Those that cannot be read are marked as absent. Any thread. */
void stat_thread_read(struct stat_thread *t, int tid);

/* The texts of the two files; false: not of their form. ticks: sysconf(_SC_CLK_TCK). */
bool stat_thread_parse_sched(struct stat_thread *t, const char *text);
bool stat_thread_parse_times(struct stat_thread *t, const char *text, long ticks);

#endif
