/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events: the events of one run: what was asked for, what this host has of it, what stands in.
 *
 * All of it is found out on the caller's thread before a guest runs.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_EVENTS_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_EVENTS_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/record/counters/event_name.h"
#include "profile/format/sink/sink.h"
#include "base/event.h"

#include <stdio.h>

struct kvm_host;

/* The event of tasks that do not run, and the periods that it may have. */
#define OFFCPU_EVENT "off-cpu"
#define OFFCPU_PERIOD_MS 100
#define OFFCPU_PERIOD_MIN_MS 1
#define OFFCPU_PERIOD_MAX_MS 60000

/* The event of the VMM's other threads, which comes with the event host. */
#define HOST_THREADS_EVENT "host-threads"

struct event_state {
	struct event_name name; /* of what is sampled */
	char asked[EVENT_NAME_MAX];
	char why[300]; /* it is not as asked, or not wholly; "" */
	bool dropped;  /* refused, and nothing stands in: it has no number in the machine */
	struct vm_event vm;
};

/* All zero: none. */
struct events {
	struct event_state at[VM_MAX_EVENTS];
	unsigned int n;
};

/* How often; what -F, -c, --no-jitter and --strict-event say. */
struct events_rate {
	double freq_hz;	 /* for clocks, and for counters when there is no period */
	uint64_t period; /* -c: for counters and exits; 0: not given */
	bool jitter, strict;
};

/* Take in a list as -e has it. err: what is wrong with it. */
int events_add(struct events *ev, const char *list, struct err *e);

/* Does -c fit the events? */
int events_check(const struct events *ev, const struct events_rate *rate, struct err *e);

/*
 * Try each one out and fill in at[].vm. An event that this host refuses is replaced by `cpu` where
 * that means about the same, else left out; `why` says so. It is an error when rate->strict, or
 * when none is left. Without any event: wall.
 */
int events_prepare(struct events *ev, const struct events_rate *rate, const struct kvm_host *host,
		   struct err *e);

/* Of a machine that counts instructions: that event alone, one sample at each `period` of them. */
int events_prepare_exact(struct events *ev, uint64_t period, struct err *e);

/* For the machine and for the profile, in the same order. Both have at least VM_MAX_EVENTS. */
unsigned int events_for_vm(const struct events *ev, struct vm_event *out);
unsigned int events_for_profile(const struct events *ev, double freq_hz, struct profile_event *out);
/* Of tasks that don't run (offcpu.h): no event of the machine, and behind those of it. */
struct profile_event events_off_cpu(uint64_t period_ns);
/* The same of the VMM's threads that run no vCPU (host_threads.h). */
struct profile_event events_host_threads(uint64_t period_ns);
/* Is one of them of this class? */
bool events_have(const struct events *ev, enum event_class class);
/* The state of the machine's event i; NULL: there is none. */
const struct event_state *events_of_vm(const struct events *ev, unsigned int i);

/*
 * What is an event here? Fills in *out, but for jitter. *host may have no descriptor: then it is
 * not tried whether KVM reports its exits. Returns 0, or -errno with the reason.
 */
int events_probe(const struct event_name *name, const struct events_rate *rate,
		 const struct kvm_host *host, struct vm_event *out, struct err *why);

/*
 * Names of a subsystem's tracepoints of this host, in order; freed by the caller, each and the list. Returns
 * how many; 0 with why set when they can't be listed.
 */
size_t events_tracepoints(const char *subsystem, char ***names, struct err *why);

#endif
