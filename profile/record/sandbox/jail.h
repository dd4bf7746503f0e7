/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jail: a program that is started with as little of the host as it needs.
 *
 * Namespaces of its own, for as much as this host's kernel allows: a file system of read-only mounts of what it
 * needs, no other process, no network but a loopback that is down, another user where we are root. Then no
 * capabilities, Landlock, limits, and no environment but what is needed. All that it may use otherwise are descriptors that
 * it is given.
 *
 * jail_open() and jail_made() are for the parent, jail_enter() is for the child, between clone(2) and execve(2). The
 * parent must have no other threads that it needs in the child.
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
	bool in_root; /* it is seen in the child's file system, at the same place; else it is a descriptor's */
};

struct jail {
	uid_t uid; /* the child's */
	gid_t gid;
	bool other_user;	  /* than ours */
	unsigned long namespaces; /* CLONE_NEW*, as far as they can be had */
	uint64_t memory;	  /* bytes of address space; 0: no limit */
	uint64_t file_size;	  /* bytes of a file that it writes; 0: no limit */
	struct jail_path path[JAIL_MAX_PATHS];
	unsigned int npaths;
	bool failed; /* out of memory, or more paths than there is room for */
};

/* Looks what this host allows, by an attempt. `said` gets a clause for each protection that it does not have. */
int jail_open(struct jail *j, struct buf *said, struct err *e);
void jail_close(struct jail *j);

/* A file or a directory, with all below it, that is read and executed. One that is not there is none. */
void jail_add(struct jail *j, const char *path);
/* Adds the paths that programs of this system need: libraries, a shell, /dev/null. */
void jail_add_system(struct jail *j);
/* The file of a descriptor, which the child, where its number is `as`, opens anew through /proc/self/fd to read it. */
void jail_add_fd(struct jail *j, int fd, int as);

/* Once the child is there, and waits for a byte: its user. 0 or -errno. */
int jail_made(const struct jail *j, pid_t pid);
/* 0 or -errno; *what then says of what. The child must not go on. */
int jail_enter(const struct jail *j, const char **what);

#endif
