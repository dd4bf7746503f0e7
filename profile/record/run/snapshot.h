/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_snapshot: a run that saves its machine, and one that continues with a saved one. All
 * functions are called by the main thread; those that return int return 0 or -errno with the reason
 * in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_H
#define KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_H

#include "base/err.h"
#include "base/file.h"
#include "profile/record/run/snapshot_facts.h"
#include "vmm/snapshot/snapshot.h"
#include "vmm/snapshot/snapshot_devices.h"

struct vm;
struct vm_config;

struct exec_share;
struct run_exec;
struct run_options;
struct run_snapshot_options;
struct run_source;

/* All zero except that file.fd is -1 (run_snapshot_init()): neither is the case. */
struct run_snapshot {
	struct snapshot *from; /* NULL: the machine is booted */
	struct snapshot_facts facts;
	struct snapshot_devices *devices; /* the devices of `from`; owned */
	/* for saving: copies of the files as they were at the start */
	struct file_map image, symbols;
	struct snapshot_file file; /* for saving: the file to write, once it is open */
	/* Renames the file to its final name; NULL: the run does so itself. */
	int (*publish)(void *ctx, struct err *e);
	void *publish_ctx;
	bool done;	   /* it was saved, or saving has failed */
	uint64_t saved_ns; /* duration of saving */
	struct err err;	   /* why it could not be saved */
};

/* Opens the file of --snapshot as the source of the run, which borrows from *n. */
int run_snapshot_open(struct run_snapshot *n, const struct run_options *o, struct run_source *s,
		      struct err *e);
/* Opens the files that --snapshot-save will contain. */
int run_snapshot_keep(struct run_snapshot *n, const struct run_options *o,
		      const struct run_source *s, struct err *e);
/* Initializes *s to "neither". It cannot fail. */
void run_snapshot_init(struct run_snapshot *s);
/* Frees what *s owns, after the source of the run. */
void run_snapshot_deinit(struct run_snapshot *s);

/* Fills in the rest of the machine's configuration from the snapshot, if there is one. */
int run_snapshot_configure(const struct run_snapshot *n, const struct run_options *o,
			   const struct exec_share *share, struct vm_config *cfg, struct err *e);

/* The machine that is saved; all members are borrowed. */
struct run_machine {
	const struct run_options *opt;
	const struct run_source *source;
	struct run_exec *exec;
	struct vm *vm;
	const char *cmdline; /* the command line of the guest's kernel */
};
/*
 * Saves the machine once, if that was requested, and ends it if that was requested. The result is
 * stored in *n.
 */
void run_snapshot_take(struct run_snapshot *n, const struct run_machine *m);
/* Appends the options that a run from the file at `path` needs, for a shell. */
void run_snapshot_options(const char *path, struct buf *out);
/*
 * Returns, after the run, 0, or -errno with the reason in *e if the machine should have been saved
 * and was not.
 */
int run_snapshot_verdict(const struct run_snapshot *n, const struct run_snapshot_options *o,
			 struct err *e);

#endif
