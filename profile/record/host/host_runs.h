/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_runs: which task had which processor of the host recently, by the records of its scheduler.
 *
 * The records are those of perf_event_open(2): PERF_RECORD_SWITCH_CPU_WIDE, _FORK, _COMM and _LOST,
 * of an event for each processor with sample_id_all and a sample_type of TID | TIME. The functions
 * make no system calls. Not thread-safe: one thread uses an object.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_RUNS_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_RUNS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The number of runs kept for each processor: at 10,000 switches a second those of 0.4 s. A power
 * of two.
 */
#define HOST_RUNS_KEPT 4096u
#define HOST_COMM 16u

struct host_runs;

/*
 * Creates an object for processors 0 to n - 1. Returns NULL if out of memory. The caller frees it
 * with host_runs_destroy(), which accepts NULL.
 */
struct host_runs *host_runs_create(unsigned int n);
void host_runs_destroy(struct host_runs *r);

/*
 * Adds a record of that processor, in the order in which they were written; len is the size in its
 * header, and as many bytes are valid. Other and damaged records are ignored.
 */
void host_runs_add(struct host_runs *r, unsigned int cpu, const void *record, size_t len);

/*
 * A wait: thread tid waited for a processor for wait_ns in total, at some times in (from, to],
 * CLOCK_MONOTONIC.
 */
struct host_wait {
	uint32_t tid;
	uint64_t from, to, wait_ns;
};
/*
 * Returns the tid of the task that had the processor that the thread then got, or 0 if unknown.
 *
 * The whole wait is attributed to one task: of those with a part in it, the one to which such
 * answers have attributed least so far, relative to its parts. Thus each task's sum of waits equals
 * that of its parts, to within one wait. If the thread was preempted, all tasks that ran until it
 * came back count. After a sleep the host does not report when the thread was woken: then the tasks
 * that ran before it count, as far back as the rest of wait_ns.
 */
uint32_t host_runs_find_task(struct host_runs *r, const struct host_wait *w);

/* Returns the name of a task from the records, or NULL. Valid until the next host_runs_add(). */
const char *host_runs_comm(const struct host_runs *r, uint32_t tid);
/* Sets the name of a task that was read elsewhere. */
void host_runs_name(struct host_runs *r, uint32_t tid, const char *comm);

/* Returns how often records were lost (PERF_RECORD_LOST), on any processor. */
uint64_t host_runs_lost(const struct host_runs *r);

#endif
