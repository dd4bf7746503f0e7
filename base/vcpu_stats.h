/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vcpu_stats: what was counted on one vCPU, as a value. */
#ifndef KVMPROF_BASE_VCPU_STATS_H
#define KVMPROF_BASE_VCPU_STATS_H

#include "base/event.h"
#include "base/hist.h"
#include "base/sample.h"

#include <stdint.h>

/* Exit counters: index is KVM_EXIT_*; the last one takes everything above. */
#define VCPU_EXIT_KINDS 48

/*
 * What the vCPU's thread does for the guest between two KVM_RUNs: the devices of the bus,
 * and work that is no device's. sample.device and vcpu_stats.device count by these.
 */
#define VM_MAX_DEVICES SAMPLE_MAX_DEVICES

struct vcpu_device_stats {
	uint64_t exits, ns; /* ns: CLOCK_MONOTONIC, from KVM_RUN's return to ready to enter */
	uint64_t samples;   /* whose period ended meanwhile */
};

/* A counter of perf_event_open(2) on one vCPU's thread. */
struct vm_counter_stats {
	uint64_t enabled_ns; /* it was to count while the thread ran */
	uint64_t running_ns; /* it did; less than enabled_ns where others had the PMU, too */
	uint64_t throttled;  /* how often the kernel stopped it for overflowing too often */
	uint64_t lost;	     /* overflow records that found no room in the ring */
};

struct vcpu_stats {
	uint64_t exits[VCPU_EXIT_KINDS];
	uint64_t samples, kernel, user, idle; /* committed samples by mode */
	uint64_t event_samples[VM_MAX_EVENTS];
	struct vm_counter_stats counter[VM_MAX_EVENTS]; /* 0 for events that have no counter */
	uint64_t offline;     /* deadlines while the vCPU waited to be started */
	uint64_t uncollected; /* periods that ended while no samples were wanted */
	uint64_t overruns;    /* missed deadlines */
	uint64_t stack_capped, stack_unmapped, stack_none;
	uint64_t breakpoints[VM_MAX_BREAKPOINTS]; /* how often each was reached */
	uint64_t debug_returned;		  /* #DB of the guest's own */
	uint64_t syscalls_assisted, syscalls_undone, faults_forwarded, insns_completed;
	uint64_t unknown_io, unknown_mmio;
	struct vcpu_device_stats device[VM_MAX_DEVICES];
	struct hist stop_ns;	/* from KVM_RUN's return to ready to enter again */
	struct hist latency_ns; /* from deadline to capture */
};

#endif
