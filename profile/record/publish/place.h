/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place: renames a result from its temporary to its final name.
 *
 * A guest may have taken over the process that wrote the temporary, and may still write to it.
 * Every name is a single path component below an open directory, and no symbolic link is followed.
 * The functions are called in the keeper's process; they return 0 or -errno with the reason in *e.
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
	PLACE_SCRATCH, /* a directory without a final name, which can only be removed */
	/* a directory without a final name, whose files are moved beside it (merge.h) */
	PLACE_CACHE,
	/* a directory whose entries are renamed one by one: place_publish_entry() */
	PLACE_STAGE,
	PLACE_SNAPSHOT, /* a regular file that replaces one of its name, without a copy NAME.old */
	PLACE_SOCKET,	/* a socket, which can only be removed */
	PLACE_KINDS
};

struct place {
	enum place_kind kind;
	int dir;		/* the directory of both names; owned by the caller */
	char tmp[NAME_MAX + 1]; /* temporary name, relative to dir */
	/*
	 * PLACE_CACHE: the name of dir itself if the run created it; empty: it existed before
	 */
	char name[NAME_MAX + 1];
	/*
	 * PLACE_SNAPSHOT: the file, if it has no name yet (O_TMPFILE); -1: tmp names it. Owned by
	 * the caller
	 */
	int file;
	void (*progress)(void *ctx); /* called for each entry that is removed; may be NULL */
	void *ctx;
	/*
	 * the user that the run's files may belong to; they get the owner that the temporary had at
	 * first
	 */
	uid_t run;
	dev_t dev; /* identity and owner of the temporary; set by place_check() */
	ino_t ino;
	uid_t uid;
	gid_t gid;
};

/*
 * Checks the names of a new place and stores the identity of its temporary, which must exist.
 * Returns -EINVAL for a name that is not a single path component or for a temporary of another
 * type.
 */
int place_check(struct place *p, struct err *e);

/*
 * Moves the entry `entry` of a PLACE_STAGE to `path`, relative to the directory that contains the
 * stage. The entry is a profile: a directory, or a file that begins as one. No component of the
 * path may be hidden or a symbolic link. Only a profile is replaced. Returns -EINVAL for another
 * path, -EXDEV if it is on another file system, or as place_publish().
 */
int place_publish_entry(const struct place *p, const char *entry, const char *path, struct err *e);

/*
 * Renames the temporary to its final name. An existing file or directory of that name becomes
 * NAME.old, as for file_publish(). A directory must contain the files of a profile and nothing
 * else. Sets the modes to 0600 and 0700, and the owner. A PLACE_CACHE may be published repeatedly:
 * its directory stays until place_remove(). Returns -EPERM for content that no profile has. On
 * failure the temporary keeps its name, unless only the removal of an earlier result failed.
 */
int place_publish(const struct place *p, struct err *e);

/*
 * Removes the temporary; for a PLACE_CACHE also the cache's own directory, if the run created it
 * and it is empty. It is not an error if the temporary is gone.
 */
int place_remove(const struct place *p, struct err *e);

#endif
