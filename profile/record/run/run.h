/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run: what the files of `kvmprof run` share. All calls come from its main thread, unless
 * it says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_RUN_H
#define KVMPROF_PROFILE_RECORD_RUN_RUN_H

#include "base/buf.h"
#include "base/file.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/console/console.h"
#include "profile/record/libvirt/domain_xml.h"
#include "profile/record/counters/cost.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/control.h"
#include "profile/record/run/exact_counts.h"
#include "profile/record/run/exec.h"
#include "profile/record/run/markers.h"
#include "profile/record/run/modules.h"
#include "profile/record/sandbox/sandbox.h"
#include "profile/record/options/options.h"
#include "profile/record/run/snapshot.h"
#include "profile/record/run/source.h"
#include "profile/record/counters/stat.h"
#include "profile/record/summary/summary.h"
#include "vmm/vm.h"

#include <stdio.h>

/* All zero is "nothing yet". */
struct run {
	struct run_options asked;      /* by the command, before run_init() */
	const struct run_options *opt; /* the same, from then on */
	FILE *json;		       /* --json: where the summary goes; NULL: nowhere */
	struct domain_xml definition;  /* --domain; the options point into it */
	uint64_t start_ns, load_ns;
	bool has_host;		      /* the event host is one of them: */
	struct host_names host_names; /* then: of the functions of the host */
	struct host_switches *host_switches; /* and who had a processor; NULL: it is not told, ... */
	struct err switches_why;	      /* ... because of this */
	struct host_threads *host_threads; /* the VMM's that run no vCPU; NULL: they are not sampled, ... */
	struct err threads_note;	   /* ... or not wholly, because of this */
	struct events events;	      /* of the options, as this host has them */
	struct source source;	      /* what boots or runs */
	struct run_exec exec;	      /* --exec and the like */
	struct run_modules modules;
	struct run_snapshot snapshot;
	struct kvm_host host;
	struct quirks quirks;
	struct run_counts counts;
	struct buf cmdline, tuned;
	struct sink *sink;	     /* what the pipeline tells; owns those behind it */
	struct sink *ring;	     /* one of them, with --overwrite; else NULL */
	struct run_control *control; /* NULL: none */
	struct console console;
	struct run_markers markers;
	struct vm *vm;
	struct attach_domain *domain; /* attached to: libvirt's; NULL: none */
	struct stat *stat;
	struct cost_bound bound;
	struct sandbox_plan sandbox;
	struct pipeline *pipeline;
	bool pipeline_done;
	bool crashed; /* run_has_crashed() */
	struct profile_info info;
	char **argv; /* owned: of info, where it is not the command line as it is */
	struct pipeline_stats stats;
	struct stack crash;
	struct err note;
	char hostname[256];
	int signal_fd;
	bool takes_stops; /* run_take_stops() */
	/* Each request to a disk: see pipeline_options. NULL: nobody asks. */
	void (*request)(void *ctx, const struct guest *g, const struct io_record *r,
			const struct io_who *who);
	/* The same once it is whole: see io_stages.h. NULL: nobody asks. */
	void (*stages)(void *ctx, const struct io_stages *s);
	void *request_ctx;
	struct io_requests requests; /* with an event of disks */
	struct io_requests packets;  /* with one of packets */
	struct status_figures status, status_before; /* of now, and of a second or more ago */
	uint64_t status_ns;			     /* when it was drawn last */
	/* Every now and then while the guest runs, and once at its end; may be NULL. */
	void (*tick)(struct run *r, uint64_t now_ns);
	void *tick_ctx;
};

/*
 * run.c: a run from its options to its exit status. r's options are there, all else
 * is zero; r is done with afterwards.
 */
int run_main(struct run *r, int argc, char **argv);
/* In parts: run_init(), all up to the machine, which does not run yet, and the end. */
void run_init(struct run *r);
int run_prepare(struct run *r, struct err *e); /* prepare.c */
/* 0, or 1 after words about it: what the guest wrote to a disk is not all there. */
int run_deinit(struct run *r);

/* summarize.c */

/*
 * The run so far, or after vm_join() and pipeline_finish() at its end. Also on the
 * consumer's thread, with its own stats.
 */
void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s);

/* crash.c */

/*
 * Has the consumer's thread crashed? When that is found first, the profile is published as it is
 * and a line tells of it. The guest goes on; one that does not without this thread, or that others
 * run, is let go. To be asked while the guest runs, and after pipeline_finish().
 */
bool run_has_crashed(struct run *r);

/* wait.c */

/*
 * Ctrl-C must end the guest, not the profile: taken from a descriptor on this thread, and in run_wait() by a handler.
 */
int run_take_signals(struct run *r, struct err *e);
/*
 * Attached to another process: signals that stop this one (Ctrl-Z) come to r->signal_fd, too, as
 * nothing of that process may be held then; and are given back, once nothing can be.
 */
int run_take_stops(struct run *r, struct err *e);
void run_give_stops_back(struct run *r);
/* Has a signal come? True: the run is to end. A stop is made in here, and has passed. */
bool run_is_to_end(struct run *r);
/* Until the guest ends, or time, or a signal does it. */
void run_wait(struct run *r);
/*
 * What the guest has put on its console is written, as far as somebody reads it: after an end
 * that was asked for within seconds, after the guest's own until there is another signal.
 */
void run_drain_console(struct run *r);
/* From here on, up to run_deinit(), signals do to this process what they do to any. */
void run_leave_signals(struct run *r);
void run_block_signals(void);

#endif
