/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary: what a run did, what it lost and what it cost, for people and as JSON.
 */
#ifndef KVMPROF_PROFILE_SUMMARY_SUMMARY_H
#define KVMPROF_PROFILE_SUMMARY_SUMMARY_H

#include "base/buf.h"
#include "profile/libvirt/attach_domain.h"
#include "profile/counters/cost.h"
#include "profile/live/pipeline.h"
#include "profile/run/control.h"
#include "profile/run/markers.h"
#include "profile/options/options.h"
#include "profile/counters/stat.h"
#include "profile/live/target.h"

#include <stdio.h>

struct summary {
	const struct run_options *opt;
	const struct target *target;
	const struct quirks *quirks;
	struct vm *vm;
	const struct pipeline_stats *stats;
	struct stat *stat;
	const struct cost_bound *bound;
	struct run_markers *markers;
	struct run_control *control;	    /* NULL: none */
	const struct attach_domain *domain; /* NULL: none */
	uint64_t overwritten;		    /* samples that gave way to newer ones */
	const struct stack *crash;	    /* n = 0: none */
	const char *tuned;		    /* words added to the command line, "" none */
	uint64_t startup_ns; /* main() to the first guest instruction, less image loading */
	uint64_t load_ns;    /* reading, unpacking and parsing the image and symbols */
	uint64_t rss_extra;  /* bytes resident beyond guest RAM at the end */
};

/* Facts about the end, losses, costs and host, a line each. */
void summary_print(const struct summary *s, FILE *out);
/* The same as one JSON object, no newline at its end. */
void summary_json(const struct summary *s, struct buf *out);

/* Registers and stack of a vCPU that brought the guest down. */
void summary_print_crash(const struct summary *s, FILE *out);

#endif
