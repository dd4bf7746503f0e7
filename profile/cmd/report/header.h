/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * header: the lines above the table of a report: the event, the engine, what was lost, and the run's own counters.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_HEADER_H
#define KVMPROF_PROFILE_CMD_REPORT_HEADER_H

#include "profile/cmd/report/row.h"

/* Time of an attached machine's vCPUs for which no sample stands, ns. */
struct report_outside {
	uint64_t away_ns;      /* paused, or the thread slept in its VMM */
	uint64_t unstarted_ns; /* the vCPU was never started */
};

/* Returns the times that are stored in the profile; 0 if there are none. */
struct report_outside report_outside(const struct perfdata *p);

void report_header(const struct report *r);
/* Prints the counters that the run left in its profile, for --header. */
void report_run_header(const struct report *r);

#endif
