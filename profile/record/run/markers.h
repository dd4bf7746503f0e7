/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_markers: when a run collects samples, and the moments it notes: --start-on and its
 * like. The console's are found on the main thread, those of breakpoints on the vCPUs'.
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

/* All zero but wake_fd -1 is nothing. */
struct run_markers {
	const struct run_options *opt;
	struct markers list;
	bool have_list;
	struct console_marks marks;
	struct console_bytes taken;
	struct console *console;
	struct vm *vm;
	int wake_fd;	     /* readable when there is something to look at; -1: none */
	bool begun;	     /* a start marker was found, or there is none */
	uint64_t begin_ns;   /* ... then */
	bool collecting;     /* ... and the delay is over */
	uint64_t collect_ns; /* when it was */
	bool late;	     /* nothing can be watched before it is known where the kernel lies */
	bool stopped;	     /* a stop marker was found */
	bool snapshot_due;   /* --snapshot-on was found */
	unsigned int snapshot_at; /* breakpoint of --snapshot-at, from 1 on; 0: none */
};

/* Can there be markers in this run's profile? */
bool run_has_markers(const struct run_options *o);

/* Expressions and descriptors. -EINVAL: a bad option. */
int run_markers_init(struct run_markers *m, const struct run_options *o, struct console *c,
		     struct err *e);
void run_markers_deinit(struct run_markers *m);

/*
 * Fills in breakpoints with their symbols in cfg, and their names, the list of markers and the limit of samples in
 * *opt. m must outlive the machine and the pipeline.
 */
int run_markers_configure(struct run_markers *m, const struct target *t, struct vm_config *cfg,
			  struct pipeline_options *opt, struct err *e);

/*
 * While the machine runs, on the main thread: look at what has come. Returns when to call
 * again at the latest (CLOCK_MONOTONIC); it may end the machine.
 */
uint64_t run_markers_look(struct run_markers *m, struct vm *vm, uint64_t now);
/* After vm_join(): what the console has said last. */
void run_markers_finish(struct run_markers *m, const struct vm *vm);

/* Has the moment of --snapshot-save come? */
bool run_markers_snapshot_due(const struct run_markers *m, const struct vm *vm);

/* When --duration begins to count; 0: not yet. */
uint64_t run_markers_collect_ns(const struct run_markers *m, const struct vm *vm);

/*
 * After the run: 0, or -ENODATA when collection never began. Both may come with a note
 * (code 0: none) about a marker that was waited for in vain.
 */
int run_markers_verdict(const struct run_markers *m, const struct vm *vm, struct err *note);

#endif
