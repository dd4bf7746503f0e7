/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_runs: which task had which processor of the host, lately, by the records of its scheduler.
 *
 * Records are those of perf_event_open(2): PERF_RECORD_SWITCH_CPU_WIDE, _FORK, _COMM and _LOST, of an event for each
 * processor with sample_id_all and a sample_type of TID | TIME. Pure: no system calls, one thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_RUNS_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_RUNS_H

#include <stddef.h>
#include <stdint.h>

/* Kept of each processor: at 10,000 switches a second those of 0.4 s. A power of two. */
#define HOST_RUNS_KEPT 4096u
#define HOST_COMM 16u

struct host_runs;

/* For processors 0 to n - 1. NULL: no memory. */
struct host_runs *host_runs_create(unsigned int n);
void host_runs_destroy(struct host_runs *r);

/*
 * A record of that processor, in the order in which they were written; len: its header's size, and so
 * many bytes are there. Others than those above, and damaged ones, are passed over.
 */
void host_runs_add(struct host_runs *r, unsigned int cpu, const void *record, size_t len);

/*
 * Thread tid waited for a processor for wait_ns in all, at some times in (from, to], CLOCK_MONOTONIC.
 * Who had the processor that it then got? The whole wait is one task's: of those that had a part in it, the one that
 * such answers have given least so far, measured by its parts. So each task's sum of waits is that of its parts, to
 * within one wait. 0: nobody is known. After it was preempted, all who ran until it came back count. After a sleep
 * the host does not tell when it was woken: who ran before it do, as far back as what is left of wait_ns.
 */
struct host_wait {
	uint32_t tid;
	uint64_t from, to, wait_ns;
};
uint32_t host_runs_who(struct host_runs *r, const struct host_wait *w);

/* The name of a task, of the records; NULL: they have none. Until the next call of host_runs_add(). */
const char *host_runs_comm(const struct host_runs *r, uint32_t tid);
/* As it was read elsewhere. */
void host_runs_name(struct host_runs *r, uint32_t tid, const char *comm);

/* How often records were lost (PERF_RECORD_LOST), of any processor. */
uint64_t host_runs_lost(const struct host_runs *r);

#endif
