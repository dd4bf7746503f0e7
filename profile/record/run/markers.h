/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_markers: when a run collects samples, and the moments that it marks (--start-on and similar
 * options). Markers of the console are found by the main thread, those of breakpoints by the vCPUs'
 * threads. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_MARKERS_H
#define KVMPROF_PROFILE_RECORD_RUN_MARKERS_H

#include "base/err.h"
#include "profile/record/console/console.h"
#include "profile/record/console/marks.h"
#include "profile/format/sink/markers.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/options/options.h"
#include "profile/record/guest/target.h"
#include "base/event.h"

struct vm;
struct vm_config;

/* All zero except that wake_fd is -1: nothing. */
#define MARKERS_NAMES_NS UINT64_C(2000000000)

struct run_markers {
	const struct run_options *opt;
	struct markers list;
	bool have_list;
	struct console_marks marks;
	struct console_bytes taken;
	struct console *console;
	struct vm *vm;
	/* readable when run_markers_handle() has something to do; -1: none */
	int wake_fd;
	bool begun;	     /* a start marker was found, or there is none */
	uint64_t begin_ns;   /* time of the start marker */
	bool collecting;     /* collecting has begun: the delay after that is over */
	uint64_t collect_ns; /* the time when it did */
	/* breakpoints cannot be set before the kernel's address is known */
	bool late;
	bool stopped;		  /* a stop marker was found */
	bool snapshot_due;	  /* --snapshot-on was found */
	unsigned int snapshot_at; /* 1 + index of the breakpoint of --snapshot-at; 0: none */
	uint64_t named_ns;	  /* when names became known; 0: not yet */
};

/* Returns whether this run's profile may contain markers. */
bool run_has_markers(const struct run_options *o);

/*
 * Compiles the expressions and opens descriptors. Returns 0, -EINVAL for a bad option, or another
 * -errno. run_markers_deinit() is necessary in either case.
 */
int run_markers_init(struct run_markers *m, const struct run_options *o, struct console *c,
		     struct err *e);
/* Frees what *m owns, after the machine and the pipeline. */
void run_markers_deinit(struct run_markers *m);

/*
 * Sets the breakpoints in *cfg, and their names, the list of markers and the limit of samples in
 * *opt. m must outlive the machine and the pipeline. Returns 0 or -errno with the reason in *e.
 */
int run_markers_configure(struct run_markers *m, const struct target *t, struct vm_config *cfg,
			  struct pipeline_options *opt, struct err *e);

/*
 * Handles new markers while the machine runs. Returns the latest time of the next call
 * (CLOCK_MONOTONIC in ns); UINT64_MAX: any time. It may end the machine.
 */
uint64_t run_markers_handle(struct run_markers *m, struct vm *vm, uint64_t now);
/* Handles the last output of the console, after vm_join(). */
void run_markers_finish(struct run_markers *m, const struct vm *vm);

/* Returns whether the moment of --snapshot-save has come. */
bool run_markers_snapshot_due(const struct run_markers *m, const struct vm *vm);

/*
 * Returns the time from which --duration counts (CLOCK_MONOTONIC in ns), or 0 if it does not count
 * yet.
 */
uint64_t run_markers_collect_ns(const struct run_markers *m, const struct vm *vm);

/*
 * Returns, after the run, 0, or -ENODATA if collecting never began. In both cases *note may
 * describe a marker that was never found (code 0: none).
 */
int run_markers_verdict(const struct run_markers *m, const struct vm *vm, struct err *note);

#endif
