/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event: what ends a period of sampling, and moments in the guest that are watched for, as values.
 *
 * Options are parsed into them, and the machine carries them out.
 */
#ifndef KVMPROF_BASE_EVENT_H
#define KVMPROF_BASE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of event that ends a period. */
enum vm_event_kind {
	VM_EVENT_WALL, /* CLOCK_MONOTONIC: ticks while the vCPU is halted, too */
	VM_EVENT_CPU,  /* CPU time of the vCPU's thread */
	VM_EVENT_PERF, /* a perf_event counter on the vCPU's thread */
	VM_EVENT_EXIT, /* VM exits that come to us, by reason */
	VM_EVENT_HOST, /* the thread's time, on a processor and off it, with the host's side */
	VM_EVENT_IO,   /* notifications of disks, or of packets: a sample each, see vm_io_take() */
};

/* A perf_event counter; fields as in struct perf_event_attr (linux/perf_event.h). */
struct vm_counter {
	uint32_t type;
	uint64_t config;
	bool exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_guest;
	unsigned int precise_ip; /* 0 to 3 */
	bool clock;		 /* counts ns, by a timer */
	bool freq;	    /* the kernel chooses periods, so that there are `period` a second */
	bool chain;	    /* with the call chain of the host's kernel */
	const char *filter; /* filter of a tracepoint; NULL: none */
};

/* vm_event.exits: KVM_EXIT_* of 63 and above share the last bit. */
#define VM_EXIT_BIT(kind) (UINT64_C(1) << ((kind) < 63 ? (kind) : 63))
#define VM_EXIT_ANY UINT64_MAX

struct vm_event {
	enum vm_event_kind kind;
	uint64_t period;	   /* ns; PERF, EXIT: a count, or counter.freq. 1 or more */
	uint64_t exits;		   /* EXIT: VM_EXIT_BIT() of each reason */
	bool packets;		   /* IO: of the network card, not of the disks */
	bool jitter;		   /* draw each deadline at random, see trigger.h */
	bool timer;		   /* CPU: by a timer, since there is no counter */
	struct vm_counter counter; /* PERF, and CPU without `timer` */
};

/* The length of vm_config.event. */
#define VM_MAX_EVENTS 8u

/* Instructions that can be watched for: DR1 to DR3, DR0 is syscall_assist's. */
#define VM_MAX_BREAKPOINTS 3u

/* The action when the instruction is reached. A sample with reason SAMPLE_MARKER is taken in any case. */
enum vm_breakpoint_action {
	VM_BREAKPOINT_MARK,
	VM_BREAKPOINT_START, /* vm_collect() */
	VM_BREAKPOINT_PAUSE, /* stand still in front of it until vm_pause() and vm_resume() */
	VM_BREAKPOINT_STOP,  /* while samples are collected: no more of them, VM_END_MARKER */
};

struct vm_breakpoint {
	uint64_t addr; /* as linked, where it moves with the kernel (capture_plan); not 0 */
	enum vm_breakpoint_action action;
	bool once; /* the first time on any vCPU */
	bool with; /* reached together with the one before it: `once` is the first time of any of them */
};

#endif
