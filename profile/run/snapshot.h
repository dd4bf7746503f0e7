/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_snapshot: a run that saves its machine, and one that goes on with a saved one.
 */
#ifndef KVMPROF_PROFILE_RUN_SNAPSHOT_H
#define KVMPROF_PROFILE_RUN_SNAPSHOT_H

#include "base/err.h"
#include "base/file.h"
#include "profile/run/snapshot_facts.h"
#include "vmm/snapshot.h"
#include "vmm/snapshot_devices.h"
#include "vmm/vm.h"

struct run;

struct run_snapshot {
	struct snapshot *from; /* NULL: the machine is booted */
	struct snapshot_facts facts;
	struct snapshot_devices *devices; /* of from; owned */
	struct file_map image, symbols;	  /* to save: the files as they were at the start */
	bool done;			  /* it was saved, or that has failed */
	uint64_t saved_ns;		  /* what it took */
	struct err err;			  /* why it could not be saved */
};

/* Open what --snapshot names; its facts take the place of options and files. */
int run_snapshot_open(struct run *r, struct err *e);
/* Keep the files that --snapshot-save will want. */
int run_snapshot_keep(struct run *r, struct err *e);
void run_snapshot_deinit(struct run_snapshot *s);

/* The rest of the machine's configuration out of the snapshot, if there is one. */
int run_snapshot_configure(struct run *r, struct vm_config *cfg, struct err *e);
/* Save the machine, if the moment has come; it may end with that. Main thread. */
void run_snapshot_look(struct run *r);
/* After the run: -errno with the reason when it should have been saved and was not. */
int run_snapshot_verdict(const struct run *r, struct err *e);

#endif
