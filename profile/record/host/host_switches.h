/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_switches: reads the host's scheduler, to find the task that had a processor for which a
 * vCPU's thread waited.
 *
 * An event on each processor that counts nothing records each task switch (perf_event_open(2),
 * PERF_RECORD_SWITCH_CPU_WIDE). That requires CAP_PERFMON, or 0 or less in perf_event_paranoid. The
 * main thread opens and closes it, while it has the rights; all other functions are called by the
 * consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_SWITCHES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_SWITCHES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct host_switches; /* all functions except host_switches_open() accept NULL: no task is known */
struct host_wait;

/*
 * Returns 0, or -errno with the reason in *why if this host does not permit it. The caller frees
 * *out with host_switches_close().
 */
int host_switches_open(struct host_switches **out, struct err *why);
void host_switches_close(struct host_switches *s);

/*
 * Reads new records, so that the rings have room. To be called at least every 0.1 s; now_ns is
 * CLOCK_MONOTONIC.
 */
void host_switches_drain(struct host_switches *s, uint64_t now_ns);

/*
 * Returns the name of the task that had the processor (host_runs.h), in buf of `size` bytes, or
 * NULL if unknown.
 */
const char *host_switches_find_task(struct host_switches *s, const struct host_wait *w, char *buf,
				    size_t size);

/* Returns how often records were lost: waits at those times are attributed to no task. */
uint64_t host_switches_lost(const struct host_switches *s);

#endif
