/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trigger: when a vCPU is looked at.
 *
 * Time since the start is cut into periods; each holds one deadline, at a place
 * drawn uniformly from the whole period (or at its end without jitter). So the
 * rate is exact over any stretch, yet nothing in the guest can run in step:
 * every phase of a periodic workload is equally likely to be hit.
 *
 * A sample stands for its own period and for the missed ones before
 * the next deadline could be armed (the host had the CPU, or the sample itself
 * took longer). Weights therefore add up to the time that passed. The distance
 * to the previous sample would not do as a weight: it correlates with the
 * position in the period and brings the aliasing back.
 *
 * The timer signals the thread that owns the vCPU. All calls come from that
 * thread; the signal handler does not touch this struct.
 */
#ifndef KVMPROF_VMM_CAPTURE_TRIGGER_H
#define KVMPROF_VMM_CAPTURE_TRIGGER_H

#include "base/err.h"
#include "vmm/machine_parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Where deadlines lie. */
struct trigger_rule {
	uint64_t period_ns; /* 1 or more */
	bool jitter;	    /* draw each deadline at random; else it is the period's end */
	uint64_t seed;	    /* of the draws */
};

/*
 * Create the timer for the calling thread; signo is sent with si_code SI_TIMER and this value.
 * clock: CLOCK_MONOTONIC, or CLOCK_THREAD_CPUTIME_ID, which the kernel looks at only in its own
 * ticks. 0, or a negative error.
 */
int trigger_init(struct trigger *t, clockid_t clock, int signo, int value,
		 const struct trigger_rule *rule, struct err *e);
/*
 * Without a timer, for deadlines on another axis: what a counter counts. `ns` in the names is
 * that count then, from 1 for the first one. The first deadline is set.
 */
void trigger_init_count(struct trigger *t, const struct trigger_rule *rule);
void trigger_deinit(struct trigger *t);

/* Arm the first deadline. */
void trigger_start(struct trigger *t, uint64_t now_ns);

/*
 * From now on periods are so much longer: they begin where those end that samples stand
 * for already, so that weights still add up to the time that passed.
 */
void trigger_lengthen(struct trigger *t, uint64_t period_ns);

/*
 * The deadline has been served at now_ns: arm the next one that lies in the
 * future. Returns how many deadlines were missed meanwhile.
 */
uint32_t trigger_next(struct trigger *t, uint64_t now_ns);

/* The arithmetic alone, for tests: moves to the next future deadline without arming. */
uint32_t trigger_advance(struct trigger *t, uint64_t now_ns);

#endif
