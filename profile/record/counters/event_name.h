/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_name: the names of events, as `-e` accepts them.
 *
 *   name     := event [":" modifiers]
 *   event    := "wall" | "cpu" | "host" | "exit" [":" kind] | "io" [":bytes" | ":latency"] |
 *               "net" | perf's names of hardware, cache and software events | "r" hex digits |
 *               subsystem ":" tracepoint
 *   kind     := a word of the table (event_exit_kind) | KVM_EXIT_* number
 *   modifiers: u k h G H p, as perf's (man perf-list); of perf's events only
 *
 * The functions are pure, any thread; events.h finds out what a host supports.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_EVENT_NAME_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_EVENT_NAME_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_NAME_MAX 64u /* includes the NUL; tracepoints have the longest names */

enum event_class {
	EVENT_WALL,
	EVENT_CPU,
	EVENT_HOST,	   /* all time of a vCPU's thread, with the host's side */
	EVENT_EXIT,	   /* VM exits that reach the VMM */
	EVENT_IO,	   /* requests to disks, by bytes or by ns */
	EVENT_NET,	   /* packets that the guest sends, by bytes */
	EVENT_KERNEL_EXIT, /* VM exits that KVM handles: tracepoint kvm:kvm_exit */
	EVENT_HARDWARE,	   /* PERF_TYPE_HARDWARE, HW_CACHE, RAW */
	EVENT_SOFTWARE,	   /* PERF_TYPE_SOFTWARE */
	EVENT_TRACEPOINT,  /* the name is subsystem:tracepoint */
};

struct event_name {
	char text[EVENT_NAME_MAX]; /* the name as given */
	enum event_class class;
	uint32_t type;	    /* HARDWARE, SOFTWARE: PERF_TYPE_* */
	uint64_t config;    /* config of this type */
	uint64_t exits;	    /* EXIT: VM_EXIT_BIT()s */
	const char *filter; /* KERNEL_EXIT: filter of the tracepoint, static; NULL: all */
	bool latency;	    /* IO: by time, not by bytes */
	uint8_t base_len;   /* length of the text without modifiers */
	uint8_t precise;
	bool user, kernel, hv, guest, host; /* modifiers that were given */
	bool is_time;			    /* counts time or cycles: `cpu` can replace it */
	bool is_clock;			    /* counts ns */
};

/*
 * Parses a name of len bytes, which need not be terminated. Returns 0, or -EINVAL with the reason
 * in *e.
 */
int event_name_parse(struct event_name *out, const char *text, size_t len, struct err *e);

/* An event with a name, for lists. */
struct event_word {
	const char *name;
	const char *text; /* description, a static string; NULL: as in perf */
	enum event_class class;
};
/*
 * Returns event i of the list, or NULL beyond the last one. Valid until the next call by the same
 * thread.
 */
const struct event_word *event_word(unsigned int i);

#endif
