/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu_stats: the counters of one vCPU, as a value. The vCPU's thread writes them; others read a
 * copy made with count_copy().
 */
#ifndef KVMPROF_BASE_VCPU_STATS_H
#define KVMPROF_BASE_VCPU_STATS_H

#include "base/event.h"
#include "base/hist.h"
#include "base/sample.h"

#include <stdint.h>

/* Number of exit counters. The index is KVM_EXIT_*; the last one counts all larger values. */
#define VCPU_EXIT_KINDS 48

/*
 * The maximum number of device indices: the devices of the bus, and work that belongs to no device.
 * sample.device and vcpu_stats.device use these indices for the work that the vCPU's thread does
 * for the guest between two KVM_RUN calls.
 */
#define VM_MAX_DEVICES SAMPLE_MAX_DEVICES

struct vcpu_device_stats {
	/* ns: CLOCK_MONOTONIC from KVM_RUN's return until ready to enter again */
	uint64_t exits, ns;
	uint64_t samples; /* number of samples whose period ended meanwhile */
};

/* A counter of perf_event_open(2) on one vCPU's thread. */
struct vm_counter_stats {
	uint64_t enabled_ns; /* time during which it should have counted while the thread ran */
	uint64_t running_ns; /* time during which it counted; less if others used the PMU, too */
	uint64_t throttled;  /* how often the kernel stopped it because it overflowed too often */
	uint64_t lost;	     /* number of overflow records that found no room in the ring */
};

struct vcpu_stats {
	uint64_t exits[VCPU_EXIT_KINDS];
	uint64_t samples, kernel, user, idle; /* committed samples, in total and by mode */
	uint64_t event_samples[VM_MAX_EVENTS];
	struct vm_counter_stats counter[VM_MAX_EVENTS]; /* all 0 for events without a counter */
	uint64_t offline;     /* deadlines while the vCPU waited to be started */
	uint64_t uncollected; /* periods that ended while no samples were collected */
	uint64_t overruns;    /* missed deadlines */
	/* Samples by sample_stack_end. */
	uint64_t stack_capped, stack_unmapped, stack_none;
	uint64_t breakpoints[VM_MAX_BREAKPOINTS]; /* how often each breakpoint was reached */
	/* Debug exceptions (#DB) passed on to the guest. */
	uint64_t debug_returned;
	uint64_t syscalls_assisted, syscalls_undone, faults_forwarded, insns_completed;
	uint64_t unknown_io, unknown_mmio;
	struct vcpu_device_stats device[VM_MAX_DEVICES];
	struct hist stop_ns;	/* from KVM_RUN's return until ready to enter again */
	struct hist latency_ns; /* from the deadline to the capture */
};

#endif
