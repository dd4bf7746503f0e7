/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_name: the names of events, as `-e` takes them.
 *
 *   name     := event [":" modifiers]
 *   event    := "wall" | "cpu" | "host" | "exit" [":" kind] | "io" [":bytes" | ":latency"] | "net" | perf's names of hardware, cache and software
 *               events | "r" hex digits | subsystem ":" tracepoint
 *   kind     := a word of the table (event_exit_kind) | KVM_EXIT_* number
 *   modifiers: u k h G H p, as perf's (man perf-list); of perf's events only
 *
 * Pure: what a host has is looked at elsewhere (events.h).
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_EVENT_NAME_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_EVENT_NAME_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_NAME_MAX 64u /* with the NUL; tracepoints' names are the longest */

enum event_class {
	EVENT_WALL,
	EVENT_CPU,
	EVENT_HOST,	   /* all of a vCPU thread's time, with the host's side */
	EVENT_EXIT,	   /* VM exits that come to the VMM */
	EVENT_IO,	   /* requests of disks, by bytes or by ns */
	EVENT_NET,	   /* packets that the guest sends, by bytes */
	EVENT_KERNEL_EXIT, /* those that KVM handles: tracepoint kvm:kvm_exit */
	EVENT_HARDWARE,	   /* PERF_TYPE_HARDWARE, HW_CACHE, RAW */
	EVENT_SOFTWARE,	   /* PERF_TYPE_SOFTWARE */
	EVENT_TRACEPOINT,  /* name is subsystem:tracepoint */
};

struct event_name {
	char text[EVENT_NAME_MAX]; /* as it was given */
	enum event_class class;
	uint32_t type;	    /* HARDWARE, SOFTWARE: PERF_TYPE_* */
	uint64_t config;    /* and what of it */
	uint64_t exits;	    /* EXIT: VM_EXIT_BIT()s */
	const char *filter; /* KERNEL_EXIT: of the tracepoint, static; NULL: all */
	bool latency;	    /* IO: by time, not by bytes */
	uint8_t base_len;   /* of the text without modifiers */
	uint8_t precise;
	bool user, kernel, hv, guest, host; /* modifiers that were given */
	bool is_time;			    /* counts time or cycles: `cpu` can stand in for it */
	bool is_clock;			    /* counts ns */
};

/* text need not end with a NUL. err says what is wrong with it. Returns 0 or -EINVAL. */
int event_name_parse(struct event_name *out, const char *text, size_t len, struct err *e);

/* For lists: the events that have names, by number; NULL at the end. */
struct event_word {
	const char *name;
	const char *text; /* what it is; NULL: as in perf */
	enum event_class class;
};
/* Valid until the thread's next call. */
const struct event_word *event_word(unsigned int i);

#endif
