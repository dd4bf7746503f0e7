/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracefs: the host's tracepoints (Documentation/trace/events.rst).
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_TRACEFS_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_TRACEFS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* The number of a tracepoint for perf_event_open; name is "subsystem:event". err says why not. */
int tracefs_id(const char *name, uint64_t *id, struct err *why);

/*
 * Names of a subsystem's tracepoints, in order; freed by the caller, each and the list. Returns
 * how many; 0 with why set when they can't be listed.
 */
size_t tracefs_list(const char *subsystem, char ***names, struct err *why);

#endif
