/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper: a process that gives a run's results their final names.
 *
 * It is forked before the run has a guest, and reads nothing of the guest's. keeper_add() registers a place while the run is
 * trusted. keeper_seal() ends that: the keeper confines itself, and from then on takes requests of eight bytes that name a
 * place by its number. Only a run with a control socket registers a stage, for profiles that a client requests meanwhile: then a request
 * names an entry of the stage and a path below the stage's directory, too. The keeper trusts nothing in the directories of the
 * run (place.h).
 *
 * All calls come from the thread that called keeper_start(), but for keeper_publish(), keeper_publish_entry() and
 * keeper_remove(), which any thread may call. Each wait is bounded: a keeper that does not answer is
 * lost, each later call returns -EPIPE, and the results keep their temporary names.
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
	KEEPER_SCRATCH, /* tmp is a directory that is only ever removed */
	KEEPER_CACHE, /* tmp is a directory whose files are moved into the cache that it lies in */
	KEEPER_STAGE, /* tmp is a directory whose entries keeper_publish_entry() names */
	KEEPER_SNAPSHOT, /* keeper_add_file(): tmp is, or will be, a regular file that replaces `name` */
	KEEPER_SOCKET, /* tmp is a socket that is only ever removed */
};

/* A directory that the keeper, once it is sealed, still needs. */
struct keeper_dir {
	const char *path;
	bool only_rmdir; /* it removes one empty directory in it; else it renames and removes below it */
};

/* Confines the keeper, in it, to dir[]. Returns 0 or -errno. */
struct keeper_confine {
	int (*bind)(void *ctx, const struct keeper_dir *dir, unsigned int n, struct err *e);
	void *ctx;
	uid_t run; /* whose the run's files may be: place.h */
};

/* Forks the process; its memory is that of the caller, so call it early. *confine is copied. Returns 0 or -errno. */
int keeper_start(struct keeper **out, const struct keeper_confine *confine, struct err *e);

/*
 * Registers the temporary file or directory `tmp`, which exists, and its final name in the same directory (unused
 * for KEEPER_SCRATCH, KEEPER_STAGE and KEEPER_SOCKET; for KEEPER_CACHE the cache's own path if the run created it, else NULL).
 * Returns the number of the place, or -errno: -E2BIG after KEEPER_MAX_PLACES, -EINVAL for names
 * in different directories, -EPERM once the keeper is sealed.
 */
int keeper_add(struct keeper *k, enum keeper_kind kind, const char *tmp, const char *name,
	       struct err *e);

/*
 * Registers a KEEPER_SNAPSHOT. fd is the file: one without a name (O_TMPFILE), which gets the name `tmp` and then `name` when it is
 * published; or -1, then `tmp` exists. The keeper has a descriptor of its own. Returns as keeper_add().
 */
int keeper_add_file(struct keeper *k, int fd, const char *tmp, const char *name, struct err *e);

/*
 * Ends the registration and starts the keeper's confinement; keeper_sealed() waits for it, so that the caller can
 * confine itself meanwhile. Both return 0 or -errno. A keeper that cannot be confined removes all that was registered, and ends,
 * when it is next asked for something or keeper_end() is called.
 */
int keeper_seal(struct keeper *k, struct err *e);
int keeper_sealed(struct keeper *k, struct err *e);

/* Publishes or removes the place `index`: place_publish(), place_remove(). Returns 0, -errno, or -EPIPE. */
int keeper_publish(struct keeper *k, unsigned int index, struct err *e);
int keeper_remove(struct keeper *k, unsigned int index, struct err *e);

/* Moves an entry of the KEEPER_STAGE `index` to `path`: place_publish_entry(). Returns 0, -errno, or -EPIPE. */
int keeper_publish_entry(struct keeper *k, unsigned int index, const char *entry, const char *path,
			 struct err *e);

/* A signal is to end this process: from now on an answer is awaited for a second. NULL is fine. */
void keeper_hurry(struct keeper *k);

/*
 * Ends the process and frees *k; NULL is fine. A keeper that does not end within a moment, because it is stopped or its
 * file system does not answer, is killed, also where this process may send it no signal.
 */
void keeper_end(struct keeper *k);

#endif
