/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run: shared by the files of `kvmprof run`. All functions are called by the main thread unless
 * their comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_RUN_H
#define KVMPROF_PROFILE_RECORD_RUN_RUN_H

#include "base/buf.h"
#include "profile/record/console/console.h"
#include "profile/record/counters/cost.h"
#include "profile/record/options/options.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/alarm.h"
#include "profile/record/run/exact_counts.h"
#include "profile/record/run/exec.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/keep.h"
#include "profile/record/run/launched.h"
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

/* The sink that the pipeline writes to, and the facts about the run that the profile contains. */
struct run_profile {
	struct sink *sink; /* the first sink, which owns those behind it */
	struct sink *ring; /* one of them, with --overwrite; else NULL */
	struct profile_info info;
	char **argv; /* owned; used by `info` if it differs from the command line */
	char hostname[256];
	struct err note;
};

/* All zero: nothing yet. */
struct run {
	struct run_options asked;      /* set by the command before run_init() */
	const struct run_options *opt; /* the same options after run_init() */
	FILE *json;		       /* --json: where the summary is written; NULL: nowhere */
	uint64_t start_ns, load_ns;
	/* The guest and its inputs. */
	struct events events;	  /* the options' events, as this host supports them */
	struct run_source source; /* the source that is booted or attached to */
	struct run_exec exec;	  /* --exec and similar options */
	struct run_modules modules;
	struct run_snapshot snapshot;
	struct buf cmdline, tuned;
	struct run_launched launched; /* a VMM that the run starts or waits for */
	struct attach_domain *domain; /* the libvirt domain that is attached to; NULL: none */
	/* The machine on this host. */
	struct kvm_host host;
	struct quirks quirks;
	struct run_host host_side;
	struct vm *vm;
	struct stat_reader *stat;
	struct cost_bound bound;
	struct sandbox_plan sandbox;
	struct run_keep keep;
	/* From samples to the profile. A command may set `request` and `stages` of the options. */
	struct pipeline_options pipeline_options;
	struct pipeline *pipeline;
	bool pipeline_done;
	bool crashed; /* see run_has_crashed() */
	struct pipeline_stats stats;
	struct stack crash;
	struct io_requests requests; /* used with an event of disks */
	struct io_requests packets;  /* used with an event of packets */
	struct run_counts counts;
	struct run_profile profile;
	/* While the guest runs. */
	struct run_markers markers;
	struct run_panic panic;
	struct run_alarm alarm;
	struct run_control *control; /* NULL: none */
	struct console console;
	struct run_signals signals;
	struct run_status status;
	/* Called periodically while the guest runs, and once at its end; may be NULL. */
	void (*tick)(struct run *r, uint64_t now_ns);
	void *tick_ctx;
};

#define RUN_STATUS_PANIC 4 /* exit status: the guest's kernel panicked */
/* Exit statuses with --on-hang: the guest hung, and the cause is known; and is not known. */
#define RUN_STATUS_HUNG 10
#define RUN_STATUS_HUNG_UNKNOWN 11

/*
 * Carries out a run from its options to its exit status, which it returns. Only the options in *r
 * are set before; all else is zero. Everything in *r is freed afterwards.
 */
int run_main(struct run *r, int argc, char **argv);

/* Begins a run in separate steps: run_prepare() follows, and run_deinit() at the end. */
void run_init(struct run *r);
/*
 * Frees everything in *r. Returns 0, or 1 after a message if data that the guest wrote to a disk
 * was lost.
 */
int run_deinit(struct run *r);

/*
 * Fills in *s for the run so far; or for the complete run after vm_join() and pipeline_finish().
 * May also be called by the consumer thread, with the stats that it was given.
 */
void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s);

/*
 * Returns whether the consumer thread has crashed. On the first detection it publishes the profile
 * as it is and prints a line about it. The guest continues; one that cannot run without this
 * thread, or that another process runs, is released. To be called while the guest runs, and after
 * pipeline_finish().
 */
bool run_has_crashed(struct run *r);

#endif
