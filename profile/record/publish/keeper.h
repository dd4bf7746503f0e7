/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper: a process that renames a run's results to their final names.
 *
 * It is forked before the run has a guest, and reads nothing of the guest's. keeper_add() registers
 * a place while the run is trusted. keeper_seal() ends that: the keeper confines itself, and from
 * then on accepts requests of eight bytes that name a place by its number. Only a run with a
 * control socket registers a stage, for profiles that a client requests during the run: then a
 * request also names an entry of the stage and a path below the stage's directory. The keeper
 * trusts nothing in the directories of the run (place.h).
 *
 * All functions are called by the thread that called keeper_start(), except keeper_publish(),
 * keeper_publish_entry() and keeper_remove(), which any thread may call. Each wait is limited: a
 * keeper that does not answer is lost, each later call returns -EPIPE, and the results keep their
 * temporary names. The functions that return int return 0 or -errno with the reason in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_PUBLISH_KEEPER_H
#define KVMPROF_PROFILE_RECORD_PUBLISH_KEEPER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define KEEPER_MAX_PLACES 8u

struct keeper;

enum keeper_kind {
	KEEPER_PROFILE, /* tmp is the directory of a profile */
	KEEPER_FILE,	/* tmp is a regular file */
	KEEPER_SCRATCH, /* tmp is a directory that is only removed */
	/* tmp is a directory whose files are moved into the cache that contains it */
	KEEPER_CACHE,
	/* tmp is a directory whose entries are published by keeper_publish_entry() */
	KEEPER_STAGE,
	/* keeper_add_file(): tmp is or will be a regular file that replaces `name` */
	KEEPER_SNAPSHOT,
	KEEPER_SOCKET, /* tmp is a socket that is only removed */
};

/* A directory that the keeper needs after it is sealed. */
struct keeper_dir {
	const char *path;
	/* it removes one empty directory in it; otherwise it renames and removes below it */
	bool only_rmdir;
};

/* Confines the keeper to dir[]; called in the keeper's process. Returns 0 or -errno. */
struct keeper_confine {
	int (*bind)(void *ctx, const struct keeper_dir *dir, unsigned int n, struct err *e);
	void *ctx;
	uid_t run; /* the user that the run's files may belong to: place.h */
};

/*
 * Forks the process, which copies the caller's memory, so call it early. *confine is copied. The
 * caller frees *out with keeper_end().
 */
int keeper_start(struct keeper **out, const struct keeper_confine *confine, struct err *e);

/*
 * Registers the temporary file or directory `tmp`, which exists, and its final name in the same
 * directory (unused for KEEPER_SCRATCH, KEEPER_STAGE and KEEPER_SOCKET; for KEEPER_CACHE the
 * cache's own path if the run created it, else NULL). Returns the number of the place, 0 or more,
 * or -errno: -E2BIG after KEEPER_MAX_PLACES, -EINVAL for names in different directories, -EPERM
 * once the keeper is sealed.
 */
int keeper_add(struct keeper *k, enum keeper_kind kind, const char *tmp, const char *name,
	       struct err *e);

/*
 * Registers a KEEPER_SNAPSHOT. fd is a file without a name (O_TMPFILE), which gets the name `tmp`
 * and then `name` when it is published; with fd -1 `tmp` exists. The keeper gets a descriptor of
 * its own. Returns as keeper_add().
 */
int keeper_add_file(struct keeper *k, int fd, const char *tmp, const char *name, struct err *e);

/*
 * keeper_seal() ends the registrations and starts the keeper's confinement; keeper_sealed() waits
 * for it, so that the caller can confine itself meanwhile. A keeper that cannot be confined removes
 * all registered files and ends, at the next request or at keeper_end().
 */
int keeper_seal(struct keeper *k, struct err *e);
int keeper_sealed(struct keeper *k, struct err *e);

/*
 * Publish and remove the place `index`, as place_publish() and place_remove() do. Return their
 * result, or -EPIPE if the keeper is lost.
 */
int keeper_publish(struct keeper *k, unsigned int index, struct err *e);
int keeper_remove(struct keeper *k, unsigned int index, struct err *e);

/*
 * Moves an entry of the KEEPER_STAGE `index` to `path`, as place_publish_entry() does. Returns its
 * result, or -EPIPE if the keeper is lost.
 */
int keeper_publish_entry(struct keeper *k, unsigned int index, const char *entry, const char *path,
			 struct err *e);

/*
 * Limits the wait for an answer to a second from now on, because a signal is to end this process.
 * NULL is allowed. Any thread.
 */
void keeper_limit_wait(struct keeper *k);

/*
 * Ends the keeper's process and frees *k; NULL is allowed. A keeper that does not end within a
 * moment, because it is stopped or its file system does not answer, is killed, even if this process
 * may send it no signal.
 */
void keeper_end(struct keeper *k);

#endif
