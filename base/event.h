/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event: the events that end a sampling period, and the breakpoints in the guest, as values.
 *
 * The options are parsed into these structures, and the machine executes them.
 */
#ifndef KVMPROF_BASE_EVENT_H
#define KVMPROF_BASE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of event that ends a period. */
enum vm_event_kind {
	VM_EVENT_WALL, /* CLOCK_MONOTONIC, which advances while the vCPU is halted, too */
	VM_EVENT_CPU,  /* CPU time of the vCPU's thread */
	VM_EVENT_PERF, /* a perf_event counter on the vCPU's thread */
	VM_EVENT_EXIT, /* VM exits to user space, by reason */
	VM_EVENT_HOST, /* the vCPU thread's time on and off a processor, with the host's side */
	VM_EVENT_IO,   /* notifications of disks or packets, one sample each; see vm_io_take() */
};

/* A perf_event counter; fields as in struct perf_event_attr (linux/perf_event.h). */
struct vm_counter {
	uint32_t type;
	uint64_t config;
	bool exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_guest;
	unsigned int precise_ip; /* 0 to 3 */
	bool clock;		 /* counts ns, with a timer */
	bool freq;	    /* the kernel chooses the periods to get `period` samples a second */
	bool chain;	    /* record the call chain of the host's kernel */
	const char *filter; /* tracepoint filter; NULL: none */
};

/* A bit of vm_event.exits. All KVM_EXIT_* of 63 and above share the last bit. */
#define VM_EXIT_BIT(kind) (UINT64_C(1) << ((kind) < 63 ? (kind) : 63))
#define VM_EXIT_ANY UINT64_MAX

struct vm_event {
	enum vm_event_kind kind;
	/* At least 1: ns, or a count (PERF, EXIT), or a frequency (counter.freq). */
	uint64_t period;
	uint64_t exits;		   /* EXIT: VM_EXIT_BIT() of each reason */
	bool packets;		   /* IO: packets of the network card, not requests of the disks */
	bool jitter;		   /* draw each deadline at random; see trigger.h */
	bool timer;		   /* CPU: use a timer, because there is no counter */
	struct vm_counter counter; /* PERF, and CPU without `timer` */
};

/* The maximum number of events of a machine (vm_config.event). */
#define VM_MAX_EVENTS 8u

/* The maximum number of breakpoints: DR1 to DR3. DR0 belongs to syscall_assist. */
#define VM_MAX_BREAKPOINTS 3u

/*
 * The action when the breakpoint is reached. A sample with reason SAMPLE_MARKER is taken in any
 * case.
 */
enum vm_breakpoint_action {
	VM_BREAKPOINT_MARK,
	VM_BREAKPOINT_START, /* start collecting samples: vm_collect() */
	VM_BREAKPOINT_PAUSE, /* stop before the instruction until vm_pause() and vm_resume() */
	VM_BREAKPOINT_STOP,  /* while samples are collected: end the collection, VM_END_MARKER */
};

struct vm_breakpoint {
	uint64_t addr; /* link-time address if it moves with the kernel (capture_plan); not 0 */
	enum vm_breakpoint_action action;
	bool once; /* only the first time on any vCPU */
	/* Shares `once` with the breakpoint before it: the first time of any of the group. */
	bool with;
};

#endif
