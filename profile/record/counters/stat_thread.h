/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat_thread: the host kernel's accounts of the time of one of our threads. Any thread may call
 * the functions; they cannot fail, and mark missing data as absent.
 *
 * Source: proc(5): /proc/PID/task/TID/schedstat (run time and wait for a processor, ns) and
 * .../stat (fields 14 utime, 15 stime, 43 guest_time, in clock ticks). On a host that accounts by
 * ticks the latter are samples of one tick each.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_STAT_THREAD_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_STAT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct stat_thread {
	bool have_sched, have_times;
	uint64_t run_ns, delay_ns; /* valid with have_sched */
	/* valid with have_times; user_ns is without guest_ns */
	uint64_t user_ns, system_ns, guest_ns;
	char state; /* valid with have_times: as ps prints it */
};

/* Descriptors of the two files; -1: unavailable. */
struct stat_thread_files {
	int sched, times;
};

/* Opens the files of a thread of this process. The caller closes them with stat_thread_close(). */
void stat_thread_open(struct stat_thread_files *f, int tid);
/* Reads the current values from the open files. */
void stat_thread_read_files(struct stat_thread *t, const struct stat_thread_files *f);
/* Closes the descriptors; -1 is allowed. */
void stat_thread_close(struct stat_thread_files *f);

/* Opens, reads and closes the files of a thread of this process. */
void stat_thread_read(struct stat_thread *t, int tid);

/*
 * Parse the texts of the two files. Return false, and mark the data as absent, if the format is
 * wrong. ticks: sysconf(_SC_CLK_TCK).
 */
bool stat_thread_parse_sched(struct stat_thread *t, const char *text);
bool stat_thread_parse_times(struct stat_thread *t, const char *text, long ticks);

#endif
