/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trigger: decides when a vCPU is sampled.
 *
 * Time since the start is divided into periods; each contains one deadline, drawn uniformly from
 * the whole period (or at its end without jitter). So the rate is exact over any stretch, yet
 * nothing in the guest can run in step: every phase of a periodic workload is equally likely to be
 * sampled.
 *
 * A sample stands for its own period and for the missed ones before the next deadline could be
 * armed (the host had the CPU, or the sample itself took longer). So weights add up to the time
 * that has passed. The distance to the previous sample is not usable as a weight: it correlates
 * with the position in the period and brings the aliasing back.
 *
 * The timer signals the thread that owns the vCPU. All functions are called by that thread; the
 * signal handler does not touch this struct.
 */
#ifndef KVMPROF_VMM_CAPTURE_TRIGGER_H
#define KVMPROF_VMM_CAPTURE_TRIGGER_H

#include "base/err.h"
#include "vmm/machine_parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The rule by which deadlines are chosen. */
struct trigger_rule {
	uint64_t period_ns; /* 1 or more */
	bool jitter;	    /* draw each deadline at random; false: it is the period's end */
	uint64_t seed;	    /* seed of the random numbers */
};

/*
 * Creates a disarmed timer for the calling thread; signo is sent with si_code SI_TIMER and
 * si_value `value`. clock: CLOCK_MONOTONIC, or CLOCK_THREAD_CPUTIME_ID, which the kernel checks
 * only at its own ticks. Returns 0, or -errno with *e set. The caller frees it with
 * trigger_deinit().
 */
int trigger_init(struct trigger *t, clockid_t clock, int signo, int value,
		 const struct trigger_rule *rule, struct err *e);
/*
 * Initialises *t without a timer, for deadlines on another axis: the count of a counter, from 1,
 * for which `ns` in the names then stands. Sets the first deadline.
 */
void trigger_init_count(struct trigger *t, const struct trigger_rule *rule);
/* Deletes the timer, if there is one. May be called repeatedly. */
void trigger_deinit(struct trigger *t);

/* Sets the first deadline without a timer; the first period begins at now_ns, and the deadline lies in it. */
void trigger_begin(struct trigger *t, uint64_t now_ns);
/* Arms the first deadline; the first period begins at now_ns on the timer's clock. */
void trigger_start(struct trigger *t, uint64_t now_ns);

/*
 * Makes periods longer from now on. The new ones begin at the end of the periods that samples
 * already stand for, so that weights still add up to the time that has passed.
 */
void trigger_lengthen(struct trigger *t, uint64_t period_ns);

/*
 * Arms the next deadline in the future, after the current one was handled at now_ns. Returns how
 * many deadlines were missed in between.
 */
uint32_t trigger_next(struct trigger *t, uint64_t now_ns);

/*
 * Moves to the next future deadline without arming the timer. Returns like trigger_next(). Used
 * for counters and tests.
 */
uint32_t trigger_advance(struct trigger *t, uint64_t now_ns);

#endif
