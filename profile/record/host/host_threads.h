/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_threads: samples the threads of a VMM that run no vCPU: its devices, its main loop, and kvmprof's own.
 *
 * Each has a counter of its time on each processor (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), and so have the threads that it
 * starts later. A sample is a struct sample of SAMPLE_THREAD: the functions of the host, innermost first, in its
 * struct sample_host, and who it was in its task. Times are CLOCK_MONOTONIC, weights ns on a processor.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_THREADS_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_THREADS_H

#include "base/err.h"
#include "base/sample.h"

#include <sys/types.h>

/* The host's pids begin here in a profile, whose own are the guest's (at most 2^22, linux/threads.h). */
#define HOST_THREADS_PID UINT32_C(1000000000)

struct host_threads; /* NULL is fine in all calls but the first two: there are none */

/* Nothing is opened yet. period_ns: of a thread's time. -ENOMEM. */
int host_threads_create(struct host_threads **out, uint64_t period_ns, uint8_t event,
			struct err *e);
void host_threads_destroy(struct host_threads *t);

/*
 * All threads of process pid (0: ours) that are there, but for those n of `but`. Once, by a thread that has the rights to;
 * the others may go on meanwhile. -errno with the reason, and then there are no samples. *note: what is left out where
 * this host gives less than all.
 */
int host_threads_open(struct host_threads *t, pid_t pid, const pid_t *but, unsigned int n,
		      struct err *note, struct err *why);

/* renamed: the sample's task has a name that was not told of it before. s is valid during the call. */
typedef int (*host_threads_fn)(void *ctx, const struct sample *s, bool renamed);
/* Consumer's thread: hand on what has been written, so that there is room, at least each 0.1 s. 0, or what take() returned. */
int host_threads_take(struct host_threads *t, host_threads_fn take, void *ctx);

/* Reports each thread's name again, with its next sample. t may be NULL. */
void host_threads_name_again(struct host_threads *t);

struct host_threads_stats {
	unsigned int opened, seen; /* threads: at the start, and in samples */
	uint64_t samples, weight_ns;
	uint64_t
		counted_ns; /* their time on processors, by the counters: samples stand for all but a period of each */
	uint64_t lost; /* samples that found no room */
	/* Those with the most time, by samples. */
	struct {
		char comm[SAMPLE_COMM];
		uint64_t weight_ns;
	} most[4];
};
/* After the last take(), or on the same thread. All zero: it was not opened. */
void host_threads_stats(const struct host_threads *t, struct host_threads_stats *out);

#endif
