/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run: what the files of `kvmprof run` share. All calls come from its main thread, unless
 * it says otherwise.
 */
#ifndef KVMPROF_PROFILE_RUN_RUN_H
#define KVMPROF_PROFILE_RUN_RUN_H

#include "base/buf.h"
#include "base/file.h"
#include "profile/libvirt/attach_domain.h"
#include "profile/console/console.h"
#include "profile/libvirt/domain_xml.h"
#include "profile/counters/cost.h"
#include "profile/live/pipeline.h"
#include "profile/run/control.h"
#include "profile/run/image.h"
#include "profile/run/exec.h"
#include "profile/run/markers.h"
#include "profile/options/options.h"
#include "profile/options/machine.h"
#include "profile/run/snapshot.h"
#include "profile/counters/stat.h"
#include "profile/summary/summary.h"
#include "profile/live/target.h"
#include "vmm/vm.h"

/* All zero is "nothing yet". */
struct run {
	struct run_options opt;
	struct domain_xml definition; /* --domain; the options point into it */
	uint64_t start_ns, load_ns;
	struct target target;
	struct run_image image;
	struct file_map initrd;
	struct run_exec exec; /* --exec and the like */
	struct run_disks disks;
	struct run_modules modules;
	struct run_snapshot snapshot;
	struct kvm_host host;
	struct quirks quirks;
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
	struct pipeline *pipeline;
	bool pipeline_done;
	struct profile_info info;
	struct pipeline_stats stats;
	struct stack crash;
	struct err note;
	char hostname[256];
	int signal_fd;
	/* Each request to a disk: see pipeline_options. NULL: nobody asks. */
	void (*request)(void *ctx, const struct guest *g, const struct io_record *r,
			const struct io_who *who);
	void *request_ctx;
	struct status_figures status, status_before; /* of now, and of a second or more ago */
	uint64_t status_ns;			     /* when it was drawn last */
	/* Every now and then while the guest runs, and once at its end; may be NULL. */
	void (*tick)(struct run *r, uint64_t now_ns);
	void *tick_ctx;
};

/*
 * cmd_run.c: a run from its options to its exit status. r's options are there, all else
 * is zero; r is done with afterwards.
 */
int run_main(struct run *r, int argc, char **argv);
/* In parts: run_init(), all up to the machine, which does not run yet, and the end. */
void run_init(struct run *r);
int run_prepare(struct run *r, struct err *e);
void run_deinit(struct run *r);

/* run_summary.c */

/*
 * The run so far, or after vm_join() and pipeline_finish() at its end. Also on the
 * consumer's thread, with its own stats.
 */
void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s);

/* run_wait.c */

/* Ctrl-C must end the guest, not the profile: taken from a descriptor, on this thread. */
int run_take_signals(struct run *r, struct err *e);
/* Until the guest ends, or time, or a signal does it. */
void run_wait(struct run *r);

#endif
