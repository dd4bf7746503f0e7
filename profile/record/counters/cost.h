/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cost: what sampling took from the guest, and what it missed, for each vCPU.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_COST_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_COST_H

#include "base/event.h"
#include "base/limits.h"
#include "base/vcpu_stats.h"

struct vm;

/*
 * A bound on it. Sampling is taken to cost what a vCPU is stopped for a sample, by our own
 * clock, and the way out of the guest and back, which our clock does not see: for it
 * stands twice the kick latency that nine tenths of the samples reach or exceed, the part
 * of it that waits for nobody. tests/bench/bench_cost.c measures both.
 */
struct cost_bound {
	struct vm *vm;
	double limit; /* share of a vCPU's time; 0: no bound */
	unsigned int nevents;
	bool is_rate[VM_MAX_EVENTS]; /* the event's period is a number of samples a second */
	uint64_t seen_ns;	     /* of the last look */
	uint64_t seen_stop[VM_MAX_VCPUS], seen_samples[VM_MAX_VCPUS];
	double worst;	      /* share at the first look that was over it */
	double last;	      /* at the last look */
	unsigned int changes; /* of the rate */
};

void cost_bound_init(struct cost_bound *b, struct vm *vm, const struct vm_event *event,
		     unsigned int nevents, double limit);
/*
 * Look, every now and then; from one thread, while the machine runs. When too much was
 * spent since the last look all events' periods are made longer. True the first time.
 */
bool cost_bound_look(struct cost_bound *b, uint64_t now_ns);

/* Share of its time that sampling took: one vCPU, stopped so long for n samples. */
double cost_share(const struct vcpu_stats *s, uint64_t stop_ns, uint64_t n, uint64_t elapsed_ns);

#endif
