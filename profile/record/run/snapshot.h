/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_snapshot: a run that saves its machine, and one that goes on with a saved one.
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

struct run_snapshot {
	struct snapshot *from; /* NULL: the machine is booted */
	struct snapshot_facts facts;
	struct snapshot_devices *devices; /* of from; owned */
	struct file_map image, symbols;	  /* to save: the files as they were at the start */
	struct snapshot_file file;	  /* to save: where to, once it is open */
	/* Gives the file its final name; NULL: the run does so itself. */
	int (*publish)(void *ctx, struct err *e);
	void *publish_ctx;
	bool done;	   /* it was saved, or that has failed */
	uint64_t saved_ns; /* what it took */
	struct err err;	   /* why it could not be saved */
};

/* Open what --snapshot names, as the source of the run, which borrows from n. */
int run_snapshot_open(struct run_snapshot *n, const struct run_options *o, struct run_source *s,
		      struct err *e);
/* Keep the files that --snapshot-save will want. */
int run_snapshot_keep(struct run_snapshot *n, const struct run_options *o,
		      const struct run_source *s, struct err *e);
void run_snapshot_init(struct run_snapshot *s);
void run_snapshot_deinit(struct run_snapshot *s);

/* The rest of the machine's configuration out of the snapshot, if there is one. */
int run_snapshot_configure(const struct run_snapshot *n, const struct run_options *o,
			   const struct exec_share *share, struct vm_config *cfg, struct err *e);

/* What is saved; all borrowed. */
struct run_machine {
	const struct run_options *opt;
	const struct run_source *source;
	struct run_exec *exec;
	struct vm *vm;
	const char *cmdline; /* of the guest's kernel */
};
/* The moment has come: save the machine once, where that was asked for; it may end. Main thread. */
void run_snapshot_take(struct run_snapshot *n, const struct run_machine *m);
/* After saving: the options that going on with the file at `path` needs. */
void run_snapshot_options(const char *path, struct buf *out);
/* After the run: -errno with the reason when it should have been saved and was not. */
int run_snapshot_verdict(const struct run_snapshot *n, const struct run_snapshot_options *o,
			 struct err *e);

#endif
