/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run: what the files of `kvmprof run` share. All calls come from its main thread, unless
 * it says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_RUN_H
#define KVMPROF_PROFILE_RECORD_RUN_RUN_H

#include "base/buf.h"
#include "profile/record/console/console.h"
#include "profile/record/counters/cost.h"
#include "profile/record/options/options.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/exact_counts.h"
#include "profile/record/run/exec.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/keep.h"
#include "profile/record/run/markers.h"
#include "profile/record/run/panic.h"
#include "profile/record/run/prepare.h"
#include "profile/record/run/snapshot.h"
#include "profile/record/run/source.h"
#include "profile/record/run/wait.h"
#include "vmm/kvm.h"
#include "vmm/quirks.h"

#include <stdio.h>

struct vm;

struct attach_domain;
struct run_control;
struct stat_reader;
struct summary;

/* The sink that the pipeline writes to, and the facts that the profile has about the run. */
struct run_profile {
	struct sink *sink; /* the first; owns those behind it */
	struct sink *ring; /* one of them, with --overwrite; else NULL */
	struct profile_info info;
	char **argv; /* owned: of info, where it is not the command line as it is */
	char hostname[256];
	struct err note;
};

/* All zero is "nothing yet". */
struct run {
	struct run_options asked;      /* by the command, before run_init() */
	const struct run_options *opt; /* the same, from then on */
	FILE *json;		       /* --json: where the summary goes; NULL: nowhere */
	uint64_t start_ns, load_ns;
	/* The guest and its inputs. */
	struct events events;	  /* of the options, as this host has them */
	struct run_source source; /* what boots or runs */
	struct run_exec exec;	  /* --exec and the like */
	struct run_modules modules;
	struct run_snapshot snapshot;
	struct buf cmdline, tuned;
	struct attach_domain *domain; /* attached to: libvirt's; NULL: none */
	/* The machine on this host. */
	struct kvm_host host;
	struct quirks quirks;
	struct run_host host_side;
	struct vm *vm;
	struct stat_reader *stat;
	struct cost_bound bound;
	struct sandbox_plan sandbox;
	struct run_keep keep;
	/* From samples to the profile. A command may set `request` and `stages`. */
	struct pipeline_options pipeline_options;
	struct pipeline *pipeline;
	bool pipeline_done;
	bool crashed; /* run_has_crashed() */
	struct pipeline_stats stats;
	struct stack crash;
	struct io_requests requests; /* with an event of disks */
	struct io_requests packets;  /* with one of packets */
	struct run_counts counts;
	struct run_profile profile;
	/* While the guest runs. */
	struct run_markers markers;
	struct run_panic panic;
	struct run_control *control; /* NULL: none */
	struct console console;
	struct run_signals signals;
	struct run_status status;
	/* Every now and then while the guest runs, and once at its end; may be NULL. */
	void (*tick)(struct run *r, uint64_t now_ns);
	void *tick_ctx;
};

#define RUN_STATUS_PANIC 4 /* exit status: the guest's kernel panicked */

/*
 * A run from its options to its exit status. r's options are there, all else is zero; r is done with
 * afterwards.
 */
int run_main(struct run *r, int argc, char **argv);

/* Begins a run in parts: run_prepare() follows, and the end. */
void run_init(struct run *r);
/* 0, or 1 after words about it: what the guest wrote to a disk is not all there. */
int run_deinit(struct run *r);

/*
 * The run so far, or after vm_join() and pipeline_finish() at its end. Also on the
 * consumer's thread, with its own stats.
 */
void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s);

/*
 * Has the consumer's thread crashed? When that is found first, the profile is published as it is
 * and a line tells of it. The guest goes on; one that does not without this thread, or that others
 * run, is let go. To be asked while the guest runs, and after pipeline_finish().
 */
bool run_has_crashed(struct run *r);

#endif
