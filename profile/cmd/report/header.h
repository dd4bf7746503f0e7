/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * header: prints the lines above the table of a report to stdout: the event, the engine, the
 * losses, and the run's own counters. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_HEADER_H
#define KVMPROF_PROFILE_CMD_REPORT_HEADER_H

#include "profile/cmd/report/row.h"

/* Time of an attached machine's vCPUs in ns that no sample represents. */
struct report_outside {
	uint64_t away_ns;      /* paused, or the thread slept in its VMM */
	uint64_t unstarted_ns; /* the vCPU was never started */
};

/* Returns the times that are stored in the profile; 0 if there are none. */
struct report_outside report_outside(const struct perfdata *p);

/* Prints the lines above each table; they begin with '#'. */
void report_header(const struct report *r);
/* Prints the counters of the run that its profile contains, for --header. */
void report_run_header(const struct report *r);

#endif
