/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events: the events of one run: the requested ones, those that this host supports, and
 * replacements.
 *
 * All functions are called by the main thread, before a guest runs. Those that return int return 0
 * or -errno with the reason in *e.
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

/* The event of tasks that do not run, and its default and limits of the period. */
#define OFFCPU_EVENT "off-cpu"
#define OFFCPU_PERIOD_MS 100
#define OFFCPU_PERIOD_MIN_MS 1
#define OFFCPU_PERIOD_MAX_MS 60000

/* The event of the VMM's other threads, which accompanies the event host. */
#define HOST_THREADS_EVENT "host-threads"

struct event_state {
	struct event_name name; /* name of the event that is sampled */
	/* the name as requested */
	char asked[EVENT_NAME_MAX];
	char why[300]; /* why it differs from the request; "" if it does not */
	bool dropped;  /* refused without a replacement: it has no number in the machine */
	struct vm_event vm;
};

/* All zero: none. Nothing has to be freed. */
struct events {
	struct event_state at[VM_MAX_EVENTS];
	unsigned int n;
};

/* The rate of sampling, as -F, -c, --no-jitter and --strict-event give it. */
struct events_rate {
	double freq_hz;	 /* for clocks, and for counters without a period */
	uint64_t period; /* -c: for counters and exits; 0: not given */
	bool jitter, strict;
};

/* Appends the events of a list as in -e. Returns -EINVAL if it is wrong. */
int events_add(struct events *ev, const char *list, struct err *e);

/* Checks whether -c fits the events. */
int events_check(const struct events *ev, const struct events_rate *rate, struct err *e);

/*
 * Tries each event and fills in at[].vm. An event that this host refuses is replaced by `cpu` if
 * that means about the same, else dropped; `why` has the reason. Fails if rate->strict is set, or
 * if no event is left. Without any event, wall is added.
 */
int events_prepare(struct events *ev, const struct events_rate *rate, const struct kvm_host *host,
		   struct err *e);

/*
 * Prepares the only event of a machine that counts instructions, with a sample after each `period`
 * of them.
 */
int events_prepare_exact(struct events *ev, uint64_t period, struct err *e);

/*
 * Store the events for the machine and for the profile, in the same order, in arrays of at least
 * VM_MAX_EVENTS. Return their number. Strings are borrowed from *ev.
 */
unsigned int events_for_vm(const struct events *ev, struct vm_event *out);
unsigned int events_for_profile(const struct events *ev, double freq_hz, struct profile_event *out);
/*
 * Returns the event of tasks that do not run (offcpu.h). It is not an event of the machine, and
 * follows those in the profile.
 */
struct profile_event events_off_cpu(uint64_t period_ns);
/* Returns the event of the VMM's threads that run no vCPU (host_threads.h). */
struct profile_event events_host_threads(uint64_t period_ns);
/* Returns whether an event of this class is among them. */
bool events_contain(const struct events *ev, enum event_class class);
/* Returns the state of the machine's event i, or NULL if there is none. */
const struct event_state *events_of_vm(const struct events *ev, unsigned int i);

/*
 * Finds out what an event is on this host, and fills in *out except for jitter. If *host has no
 * descriptor, KVM is not tested for reporting its exits. Returns 0, or -errno with the reason in
 * *why.
 */
int events_probe(const struct event_name *name, const struct events_rate *rate,
		 const struct kvm_host *host, struct vm_event *out, struct err *why);

/*
 * Lists the tracepoints of a subsystem on this host, sorted. The caller frees each name and the
 * list with free(). Returns their number; 0 with the reason in *why if they cannot be listed.
 */
size_t events_tracepoints(const char *subsystem, char ***names, struct err *why);

#endif
