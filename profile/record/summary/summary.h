/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary: what a run did, what it lost and what it cost, for people and as JSON.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_SUMMARY_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_SUMMARY_H

#include "base/buf.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/counters/cost.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/format/sink/markers.h"
#include "profile/record/options/options.h"
#include "profile/record/counters/stat.h"
#include "profile/record/guest/target.h"

#include <stdio.h>

struct run_control;
struct summary_panic;

struct summary {
	const struct run_options *opt;
	const struct events *events; /* of opt, as the host has them */
	const struct target *target; /* of the first kernel */
	const struct target *
		present; /* of the kernel that runs now, or ran last: `crash` and `last` are its stacks */
	const struct quirks *quirks;
	struct vm *vm;
	const struct pipeline_stats *stats;
	struct stat_reader *stat;
	bool host, host_names; /* the event host is sampled; its kernel's functions have names */
	const struct host_switches *switches; /* and who had a processor is known, or why not */
	const char *
		threads_note; /* why the VMM's other threads are not sampled, or not wholly; NULL: they are */
	const char *switches_why;
	const struct cost_bound *bound;
	const struct pipeline_options *asked;	/* whose breakpoints were set */
	struct markers *moments;		/* locked while it is read */
	struct io_requests *requests, *packets; /* the same */
	uint64_t begun_ns; /* when it began to collect, CLOCK_MONOTONIC; 0: not yet */
	uint64_t changes;  /* of settings, while it ran */
	/* Their list, as JSON members behind others. control: NULL if nobody could. */
	void (*changes_json)(struct run_control *control, struct json_writer *w);
	struct run_control *control;
	const struct attach_domain *domain; /* NULL: none */
	uint64_t overwritten;		    /* samples that gave way to newer ones */
	uint64_t console_dropped;	    /* bytes of the guest's that nobody read */
	const struct stack *crash;	    /* n = 0: none */
	const struct pipeline_last *last;   /* of the vCPU that ended it; NULL: none */
	const struct summary_panic *panic;  /* panic.h; NULL: not looked for yet */
	uint64_t mem_size;		    /* bytes of the guest's memory; of an own machine */
	const char *cmdline;		    /* the kernel's, NULL: none; likewise */
	const char *tuned;		    /* words added to the command line, "" none */
	uint64_t startup_ns; /* main() to the first guest instruction, less image loading */
	uint64_t load_ns;    /* reading, unpacking and parsing the image and symbols */
	uint64_t rss_extra;  /* bytes resident beyond guest RAM at the end */
};

/* A profile of whose timer periods more were missed gets a warning, in the summary and in report. */
#define SUMMARY_MISSED_MUCH 0.5

/* Prints facts about the end, losses, costs and host, a line each. */
void summary_print(const struct summary *s, FILE *out);
/* Appends the same facts as one JSON object, without a newline at its end. */
void summary_json(const struct summary *s, struct buf *out);
/* Prints a line for each vCPU: its samples, and what they cost. */
void summary_print_costs(struct vm *vm, FILE *out);

/* panic.c: prints the registers and stack of a vCPU that brought the guest down. */
void summary_print_crash(const struct summary *s, FILE *out);

#endif
