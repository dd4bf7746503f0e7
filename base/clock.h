/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock: the time in nanoseconds, as one number. Any thread; no system call
 * where the vDSO knows the clock (CLOCK_MONOTONIC).
 */
#ifndef KVMPROF_BASE_CLOCK_H
#define KVMPROF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ull

/* id: one of the CLOCK_* of clock_gettime(2). */
static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Returns this time as waits until a moment take it. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

/* The clock of samples, deadlines and everything that is compared with them. */
static inline uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Has so much time passed? last_ns may be a little later: samples of several vCPUs are. */
static inline bool clock_is_due(uint64_t now_ns, uint64_t last_ns, uint64_t every_ns)
{
	return now_ns > last_ns && now_ns - last_ns > every_ns;
}

#endif
