/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock: times in nanoseconds, as one number. Any thread may call these functions. CLOCK_MONOTONIC
 * is read without a system call where the vDSO provides it.
 */
#ifndef KVMPROF_BASE_CLOCK_H
#define KVMPROF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ull

/* Returns the time of a CLOCK_* of clock_gettime(2), in ns. */
static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Returns ns as a timespec, as functions with an absolute timeout take it. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

/*
 * Returns CLOCK_MONOTONIC in ns: the clock of samples, deadlines and everything compared with them.
 */
static inline uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * Returns whether more than every_ns have passed since last_ns. last_ns may be later than now_ns,
 * because samples of several vCPUs are not in order.
 */
static inline bool clock_is_due(uint64_t now_ns, uint64_t last_ns, uint64_t every_ns)
{
	return now_ns > last_ns && now_ns - last_ns > every_ns;
}

#endif
