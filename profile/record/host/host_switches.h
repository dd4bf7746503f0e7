/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_switches: reads the host's scheduler: who had a processor that a vCPU's thread waited for.
 *
 * An event that counts nothing on each processor has records of each change of tasks (perf_event_open(2),
 * PERF_RECORD_SWITCH_CPU_WIDE). That takes CAP_PERFMON, or 0 or less in perf_event_paranoid. Opened while rights are there;
 * all else is the consumer's thread's.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_SWITCHES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_SWITCHES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct host_switches; /* NULL is fine in all calls but the first: nobody is known */
struct host_wait;

/* -errno with the reason where this host does not tell. */
int host_switches_open(struct host_switches **out, struct err *why);
void host_switches_close(struct host_switches *s);

/* Take what has been written, so that there is room: at least each 0.1 s. */
void host_switches_drain(struct host_switches *s, uint64_t now_ns);

/* The name of who had its processor (host_runs.h), of so many bytes. NULL: nobody is known. */
const char *host_switches_who(struct host_switches *s, const struct host_wait *w, char *buf,
			      size_t size);

/* How often records were lost: waits of those times are nobody's. */
uint64_t host_switches_lost(const struct host_switches *s);

#endif
