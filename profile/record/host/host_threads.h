/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_threads: samples the threads of a VMM that run no vCPU: its devices, its main loop, and
 * kvmprof's own threads.
 *
 * Each thread has a counter of its time on each processor (perf_event_open(2),
 * PERF_COUNT_SW_CPU_CLOCK), as have the threads that it starts later. A sample is a struct sample
 * of SAMPLE_THREAD: the functions of the host, innermost first, in its struct sample_host, and the
 * thread in its task. Times are CLOCK_MONOTONIC, weights ns on a processor.
 *
 * The main thread creates, opens and destroys the object; the other functions are called by the
 * consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_THREADS_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_THREADS_H

#include "base/err.h"
#include "base/sample.h"

#include <sys/types.h>

/*
 * The host's pids are offset by this in a profile, whose own pids are the guest's (at most 2^22,
 * linux/threads.h).
 */
#define HOST_THREADS_PID UINT32_C(1000000000)

/*
 * All functions except host_threads_create() and host_threads_open() accept NULL: no threads are
 * sampled.
 */
struct host_threads;

/*
 * Creates an object without counters. period_ns is a thread's time between samples. Returns 0 or
 * -ENOMEM. The caller frees *out with host_threads_destroy().
 */
int host_threads_create(struct host_threads **out, uint64_t period_ns, uint8_t event,
			struct err *e);
void host_threads_destroy(struct host_threads *t);

/*
 * Opens the counters of all existing threads of process pid (0: this one) except the n threads in
 * but[]. To be called at most once, by a thread that has the rights; the consumer thread may run
 * meanwhile. Returns 0, or -errno with the reason in *why, and then there are no samples. *note
 * describes what this host does not permit.
 */
int host_threads_open(struct host_threads *t, pid_t pid, const pid_t *but, unsigned int n,
		      struct err *note, struct err *why);

/*
 * Takes a sample, which is valid during the call. renamed: the task has a name that was not
 * reported before. A value other than 0 ends host_threads_take().
 */
typedef int (*host_threads_fn)(void *ctx, const struct sample *s, bool renamed);
/*
 * Passes new samples to take() in the order of time, so that the rings have room. To be called at
 * least every 0.1 s. Returns 0, or the value of take().
 */
int host_threads_take(struct host_threads *t, host_threads_fn take, void *ctx);

/* Reports each thread's name again, with its next sample. t may be NULL. */
void host_threads_repeat_names(struct host_threads *t);

struct host_threads_stats {
	unsigned int opened, seen; /* threads: opened at the start, and seen in samples */
	uint64_t samples, weight_ns;
	/*
	 * their time on processors, by the counters: samples stand for all of it but one period
	 * each
	 */
	uint64_t counted_ns;
	uint64_t lost; /* samples that found no room */
	/* The threads with the most time, by samples. */
	struct {
		char comm[SAMPLE_COMM];
		uint64_t weight_ns;
	} most[4];
};
/*
 * Copies the counters, after host_threads_take() or on the same thread. All zero: it was not
 * opened.
 */
void host_threads_stats(const struct host_threads *t, struct host_threads_stats *out);

#endif
