/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary: the results, losses and costs of a run, for people and as JSON. The main thread calls
 * the functions, or the consumer thread for a snapshot of a run.
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
struct summary_hang;
struct summary_panic;

/* The input; all pointers are borrowed. */
struct summary {
	const struct run_options *opt;
	const struct events *events; /* the events of opt, as this host supports them */
	const struct target *target; /* the first kernel */
	/* the kernel that runs now, or ran last: `crash` and `last` are its stacks */
	const struct target *present;
	const struct quirks *quirks;
	struct vm *vm;
	const struct pipeline_stats *stats;
	struct stat_reader *stat;
	/* the event host is sampled; its kernel's functions have names */
	bool host, host_names;
	/* switches of processors; NULL: unknown, for the reason in switches_why */
	const struct host_switches *switches;
	/* why the VMM's other threads are not sampled, or not completely; NULL: they are */
	const char *threads_note;
	const char *switches_why;
	const struct cost_bound *bound;
	const struct pipeline_options *asked;	/* has the names of the breakpoints that were set */
	struct markers *moments;		/* locked while they are read */
	struct io_requests *requests, *packets; /* locked while they are read */
	/* start of collecting, CLOCK_MONOTONIC; 0: not yet */
	uint64_t begun_ns;
	/* number of settings that were changed during the run */
	uint64_t changes;
	/*
	 * Writes the list of changes as JSON members after others. control: NULL if there is no
	 * control socket.
	 */
	void (*changes_json)(struct run_control *control, struct json_writer *w);
	struct run_control *control;
	const struct attach_domain *domain; /* NULL: none */
	/* what the command of --exec took of the guest's time; valid if have_times */
	bool have_times;
	uint64_t real_ns, user_ns, system_ns;
	uint64_t overwritten;	   /* samples that were overwritten by newer ones */
	uint64_t console_dropped;  /* bytes of the guest's console that were not read */
	const struct stack *crash; /* n = 0: none */
	/* the newest sample of the vCPU that ended the run; NULL: none */
	const struct pipeline_last *last;
	const struct summary_panic *panic; /* panic.h; NULL: not searched for yet */
	const struct summary_hang *hang;   /* panic.h; NULL: none */
	/* bytes of the guest's memory; valid for an own machine */
	uint64_t mem_size;
	/* the kernel's command line, NULL: none; valid for an own machine */
	const char *cmdline;
	/* words that were added to the command line; "": none */
	const char *tuned;
	/* from main() to the guest's first instruction, without load_ns */
	uint64_t startup_ns;
	/* duration of reading, unpacking and parsing the image and symbols */
	uint64_t load_ns;
	uint64_t rss_extra; /* resident bytes beyond guest RAM at the end */
};

/*
 * A profile with a larger share of missed timer periods gets a warning, in the summary and in
 * report.
 */
#define SUMMARY_MISSED_MUCH 0.5

/* Prints facts about the end, losses, costs and host, one line each. */
void summary_print(const struct summary *s, FILE *out);
/*
 * Appends the same facts as one JSON object, without a newline. A lack of memory sets out->failed.
 */
void summary_json(const struct summary *s, struct buf *out);
/* Prints a line for each vCPU with its samples and their cost. */
void summary_print_costs(struct vm *vm, FILE *out);

/* Prints the registers and stack of a vCPU that crashed the guest; defined in panic.c. */
void summary_print_crash(const struct summary *s, FILE *out);

#endif
