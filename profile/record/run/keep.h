/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keep: the keeper of a run (profile/record/publish/keeper.h), which renames the run's results: the profile, additions to the
 * build-id cache, profiles that `kvmprof ctl snapshot` requests, and the file of --snapshot-save. It removes the control socket.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_KEEP_H
#define KVMPROF_PROFILE_RECORD_RUN_KEEP_H

#include "base/err.h"
#include "profile/format/perfdata/sink.h"
#include "profile/record/publish/keeper.h"
#include "profile/record/sandbox/rights.h"

#include <limits.h>

#define RUN_KEEP_MAX_STAGES 2u

struct run;

/* A directory of the user's, and one that the run created in it: what it writes there gets a name below the first. */
struct run_stage {
	char *dir, *path; /* without links */
	unsigned int place;
};

/* A profile that a client of the control socket has requested. */
struct run_keep_entry {
	unsigned int place;
	char entry[16];	     /* its name in the stage */
	char file[PATH_MAX]; /* the stage's path and that name: where the run writes it */
	char name[PATH_MAX]; /* its final name, below the stage's directory */
};

struct run_keep {
	struct keeper *keeper; /* NULL: the run renames by itself */
	struct sink_publisher publisher;
	unsigned int place; /* the number of the profile's place */
	char *own;	    /* the profile's temporary name, where the run may write */
	char *cache; /* where it may write what becomes part of the build-id cache; NULL: nowhere */
	unsigned int cache_place;
	char *cache_made; /* the cache's directory, if this run created it; NULL: it did not */
	struct run_stage stage[RUN_KEEP_MAX_STAGES];
	unsigned int nstages;
	unsigned int entries; /* how many were requested so far; the consumer's thread */
	bool has_socket, has_snapshot;
	unsigned int socket_place, snapshot_place;
	bool has_user; /* the run becomes: */
	struct rights_user user;
};

/*
 * Starts the keeper of a run that will be confined and writes a profile or a snapshot or has a control socket; a no-op for others. Must be
 * called before the guest's memory is allocated. Returns 0 or -errno.
 */
int run_keep_start(struct run *r, struct err *e);
/* Ends the keeper's registration, then waits until it is confined. Both return 0 or -errno. */
int run_keep_seal(struct run *r, struct err *e);
int run_keep_sealed(struct run *r, struct err *e);
/*
 * Creates and registers a directory for additions to the build-id cache; without one, nothing is added. Called before
 * run_keep_seal(). Returns 0 or -ENOMEM.
 */
int run_keep_cache(struct run *r, struct err *e);
/*
 * Registers the control socket, and creates and registers directories for profiles that its clients request; opens and registers the file
 * of --snapshot-save. Called before run_keep_seal(). Return 0 or -errno.
 */
int run_keep_control(struct run *r, struct err *e);
int run_keep_snapshot(struct run *r, struct err *e);
/*
 * Finds where the run may write a profile that shall be called `path`. Returns 0, or -EACCES where it may write none that the keeper
 * could move there. The consumer's thread.
 */
int run_keep_begin_entry(struct run_keep *k, const char *path, struct run_keep_entry *out,
			 struct err *e);
/*
 * Gives the profile its name, once it is written, and moves what was added to the build-id cache so far there. Returns 0 or
 * -errno. The control thread.
 */
int run_keep_publish_entry(struct run_keep *k, const struct run_keep_entry *x, struct err *e);
/*
 * Gives what the run still writes to the user that it will become (has_user), and removes names that this user could not.
 * Returns 0 or -errno.
 */
int run_keep_give(struct run *r, struct err *e);
/* Adds to the cache what was written for it, removes what was only needed meanwhile, and ends the keeper. */
void run_keep_end(struct run *r);

#endif
