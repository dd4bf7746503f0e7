/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keep: the keeper of a run (profile/record/publish/keeper.h), which renames the run's results: the
 * profile, additions to the build-id cache, profiles that `kvmprof ctl snapshot` requests, and the
 * file of --snapshot-save. It also removes the control socket.
 *
 * All functions are called by the main thread unless their comment says otherwise. Those that
 * return int return 0 or -errno with the reason in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_KEEP_H
#define KVMPROF_PROFILE_RECORD_RUN_KEEP_H

#include "base/err.h"
#include "profile/format/perfdata/sink.h"
#include "profile/record/publish/keeper.h"
#include "profile/record/sandbox/rights.h"

#include <limits.h>

/* The most directories in which requested profiles are prepared. */
#define RUN_KEEP_MAX_STAGES 2u

struct run;

/*
 * A directory of the user (`dir`), and a new one in it (`path`) in which the run writes; the keeper
 * renames results from there to names below `dir`.
 */
struct run_stage {
	char *dir, *path; /* without symbolic links; owned */
	/* number of the keeper's place */
	unsigned int place;
};

/* A profile that a client of the control socket has requested. */
struct run_keep_entry {
	unsigned int place;
	char entry[16];	     /* its name in the stage */
	char file[PATH_MAX]; /* the stage's path and that name: the file that the run writes */
	char name[PATH_MAX]; /* its final name, relative to the stage's directory */
};

/* All zero: no keeper. */
struct run_keep {
	struct keeper *keeper; /* NULL: the run renames its results itself */
	struct sink_publisher publisher;
	unsigned int place; /* number of the profile's place */
	char *own;	    /* temporary name of the profile, where the run may write; owned */
	/* where the run may write additions to the build-id cache; NULL: nowhere; owned */
	char *cache;
	unsigned int cache_place;
	char *cache_made; /* the cache's directory, if this run created it; else NULL; owned */
	struct run_stage stage[RUN_KEEP_MAX_STAGES];
	unsigned int nstages;
	/* number of requested profiles so far; used by the consumer thread only */
	unsigned int entries;
	bool has_socket, has_snapshot;
	unsigned int socket_place, snapshot_place;
	bool has_user; /* the run changes to this user: */
	struct rights_user user;
};

/*
 * Starts the keeper of a run that will be confined and that writes a profile or a snapshot or has a
 * control socket; does nothing for others. Must be called before the guest's memory is allocated.
 */
int run_keep_start(struct run *r, struct err *e);
/*
 * run_keep_seal() ends the registrations, and the keeper confines itself; run_keep_sealed() waits
 * until that has happened.
 */
int run_keep_seal(struct run *r, struct err *e);
int run_keep_sealed(struct run *r, struct err *e);
/*
 * Creates and registers a directory for additions to the build-id cache. If it cannot be created
 * nothing is added to the cache, which is not an error: returns 0 or -ENOMEM. Must be called before
 * run_keep_seal().
 */
int run_keep_cache(struct run *r, struct err *e);
/*
 * run_keep_control() registers the control socket, and creates and registers directories for
 * profiles that its clients request. run_keep_snapshot() opens and registers the file of
 * --snapshot-save. Both must be called before run_keep_seal().
 */
int run_keep_control(struct run *r, struct err *e);
int run_keep_snapshot(struct run *r, struct err *e);
/*
 * Determines where the run may write a profile whose final name is `path`. Returns 0, -EACCES if
 * the keeper cannot move a file there, or another -errno. Called by the consumer thread.
 */
int run_keep_begin_entry(struct run_keep *k, const char *path, struct run_keep_entry *out,
			 struct err *e);
/*
 * Renames the profile to its final name, after it was written, and moves the files for the build-id
 * cache. Called by the server's thread of the control socket.
 */
int run_keep_publish_entry(struct run_keep *k, const struct run_keep_entry *x, struct err *e);
/*
 * Changes the owner of the directories in which the run still writes to the user that the run
 * becomes, so that it can create and remove files there. Does nothing unless has_user.
 */
int run_keep_change_owner(struct run *r, struct err *e);
/*
 * Moves the remaining files to the build-id cache, removes the temporary directories, and ends the
 * keeper. Frees what r->keep owns.
 */
void run_keep_end(struct run *r);

#endif
