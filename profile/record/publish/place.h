/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place: a result under its temporary name, and the step to its final name.
 *
 * Whoever wrote the temporary may have been taken over by a guest, and may still write to it. Every
 * name is a single path component below an open directory, and no symbolic link is followed.
 */
#ifndef KVMPROF_PROFILE_RECORD_PUBLISH_PLACE_H
#define KVMPROF_PROFILE_RECORD_PUBLISH_PLACE_H

#include "base/err.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum place_kind {
	PLACE_PROFILE, /* a profile's directory */
	PLACE_FILE,    /* a regular file */
	PLACE_SCRATCH, /* a directory without a final name: it can only be removed */
	PLACE_CACHE, /* a directory without a final name: its files are moved beside it (merge.h) */
	PLACE_STAGE, /* a directory whose entries get names one by one: place_publish_entry() */
	PLACE_SNAPSHOT, /* a regular file that replaces one of its name, which does not become NAME.old */
	PLACE_SOCKET, /* a socket: it can only be removed */
	PLACE_KINDS
};

struct place {
	enum place_kind kind;
	int dir;		/* the directory of both names; owned by the caller */
	char tmp[NAME_MAX + 1]; /* the temporary name, relative to dir */
	char name
		[NAME_MAX +
		 1]; /* PLACE_CACHE: the name of dir itself, which the run created; empty: it existed */
	int file; /* PLACE_SNAPSHOT: the file, if it has no name yet (O_TMPFILE); -1: tmp names it. Owned by the caller */
	void (*progress)(void *ctx); /* called for each entry that is removed; NULL: not */
	void *ctx;
	uid_t run; /* who may own what the run wrote; it gets the owner that the temporary had at first */
	dev_t dev; /* identity and owner of the temporary; place_note() sets them */
	ino_t ino;
	uid_t uid;
	gid_t gid;
};

/*
 * Checks the names of a new place and stores the identity of its temporary, which must exist. Returns 0, -EINVAL
 * for a name that is no single path component or for a temporary of another type, or another -errno.
 */
int place_note(struct place *p, struct err *e);

/*
 * Moves the entry `entry` of a PLACE_STAGE to `path`, relative to the directory that the stage lies in. The entry is a profile: a
 * directory, or a file that begins as one. No component of the path is hidden, none is a symbolic link. What is replaced
 * is a profile, too. Returns 0, -EINVAL for such a path, -EXDEV where it lies on another file system, or as place_publish().
 */
int place_publish_entry(const struct place *p, const char *entry, const char *path, struct err *e);

/*
 * Gives the temporary its final name. An existing file or directory of that name becomes NAME.old, as file_publish() does. A directory
 * must contain the files of a profile and nothing else. Sets the modes to 0600 and 0700, and the owner. A PLACE_CACHE
 * may be published again and again: its directory stays until place_remove().
 * Returns 0, -EPERM for contents that no profile has, or another -errno. On failure the temporary keeps its name, unless
 * the failure is one of removing what was there before.
 */
int place_publish(const struct place *p, struct err *e);

/*
 * Removes the temporary; of a PLACE_CACHE also the cache's own directory, if the run created it and it is empty. Returns 0 (also
 * if the temporary is gone) or -errno.
 */
int place_remove(const struct place *p, struct err *e);

#endif
