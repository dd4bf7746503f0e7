/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jail: starts a program with as few of the host's resources as it needs.
 *
 * The program gets its own namespaces, as far as this host's kernel allows: a file system of
 * read-only mounts of what it needs, no other process, no network except a loopback that is down,
 * and another user if we are root. In addition it has no capabilities, Landlock, limits, and only
 * the environment that it needs. Otherwise it can use only the descriptors that it is given.
 *
 * jail_open() to jail_map_user() are for the parent, jail_enter() is for the child between clone(2) and
 * execve(2). The parent must have no other threads that it needs in the child. Not thread-safe.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_JAIL_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_JAIL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JAIL_MAX_PATHS 48u

struct jail_path {
	char *path;
	/*
	 * it is visible in the child's file system at the same path; otherwise it is the file of a
	 * descriptor
	 */
	bool in_root;
};

struct jail {
	uid_t uid; /* user of the child */
	gid_t gid;
	bool other_user;	  /* `uid` is not ours */
	unsigned long namespaces; /* CLONE_NEW*, as far as they are available */
	uint64_t memory;	  /* bytes of address space; 0: no limit */
	uint64_t file_size;	  /* bytes of a file that it writes; 0: no limit */
	struct jail_path path[JAIL_MAX_PATHS];
	unsigned int npaths;
	bool failed; /* out of memory, or too many paths */
};

/*
 * Initializes *j, and finds out by an attempt what this host allows. `said` gets a clause for each
 * protection that is missing. Returns 0 or -ENOMEM. The caller frees *j with jail_close().
 */
int jail_open(struct jail *j, struct buf *said, struct err *e);
/* Frees the paths. */
void jail_close(struct jail *j);

/*
 * Adds a file or a directory with everything below it, to be read and executed. A missing path is
 * ignored. A lack of memory or of room sets j->failed.
 */
void jail_add(struct jail *j, const char *path);
/* Adds the paths that programs of this system need: libraries, a shell, /dev/null. */
void jail_add_system(struct jail *j);
/*
 * Adds the file of the descriptor fd, which the child, where its number is `as`, reopens through
 * /proc/self/fd to read it.
 */
void jail_add_fd(struct jail *j, int fd, int as);

/*
 * Maps the child's user. To be called while the child exists and waits for a byte. Returns 0 or
 * -errno.
 */
int jail_map_user(const struct jail *j, pid_t pid);
/*
 * Enters the jail in the child. Returns 0, or -errno with the step that failed in *what; the child
 * must then not continue.
 */
int jail_enter(const struct jail *j, const char **what);

#endif
