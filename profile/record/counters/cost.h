/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cost: what sampling costs the guest, and what it missed, for each vCPU. Not thread-safe: the main
 * thread makes all calls; cost_share() is pure.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_COST_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_COST_H

#include "base/event.h"
#include "base/limits.h"
#include "base/vcpu_stats.h"

struct vm;

/*
 * A bound for the cost. Its estimate is the time for which a vCPU is stopped for a sample, by our
 * own clock, and the way out of the guest and back, which that clock does not see: it is estimated
 * as twice the kick latency that nine tenths of the samples reach or exceed, which is the part that
 * waits for nothing else. tests/bench/bench_cost.c measures both.
 */
struct cost_bound {
	struct vm *vm;
	double limit; /* share of a vCPU's time; 0: no bound */
	unsigned int nevents;
	bool is_rate[VM_MAX_EVENTS]; /* the event's period is a number of samples per second */
	uint64_t seen_ns;	     /* time of the last check */
	uint64_t seen_stop[VM_MAX_VCPUS], seen_samples[VM_MAX_VCPUS];
	double worst;	      /* share at the first check that exceeded the bound */
	double last;	      /* share at the last check */
	unsigned int changes; /* number of changes of the rate */
};

/* Initializes *b for these events of vm, which must outlive it. Nothing has to be freed. */
void cost_bound_init(struct cost_bound *b, struct vm *vm, const struct vm_event *event,
		     unsigned int nevents, double limit);
/*
 * Checks the cost; to be called periodically while the machine runs, with now_ns in
 * CLOCK_MONOTONIC. If it exceeded the bound since the last check, the periods of all events are
 * lengthened. Returns true only the first time that this happens.
 */
bool cost_bound_check(struct cost_bound *b, uint64_t now_ns);

/*
 * Returns the share of elapsed_ns that n samples took of one vCPU, which was stopped for stop_ns
 * for them.
 */
double cost_share(const struct vcpu_stats *s, uint64_t stop_ns, uint64_t n, uint64_t elapsed_ns);

#endif
