/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_program: runs a program that reads a disk image, such as qemu-nbd, with no more than the
 * files that it needs.
 *
 * Two processes are started: a helper (base/helper.h), and the program as its child. The helper
 * reads nothing that the program writes. The program ends when the helper ends, and the helper ends
 * with this process, so no program survives a run that is killed. A signal of ours may not reach
 * the program, because a run gives up its right to send signals.
 *
 * Not thread-safe: the main thread starts and ends programs.
 */
#ifndef KVMPROF_VMM_DEV_DISK_PROGRAM_H
#define KVMPROF_VMM_DEV_DISK_PROGRAM_H

#include "base/err.h"
#include "base/helper.h"

#include <limits.h>
#include <sys/types.h>

/* The descriptor of the listening socket in the program (sd_listen_fds(3)). */
#define DISK_PROGRAM_SOCKET 3
/* Number of the first file's descriptor in the program; the others follow. */
#define DISK_PROGRAM_FILE 10
#define DISK_PROGRAM_MAX_FILES 20u

struct disk_program_work {
	const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
	int in, out;		 /* standard input and output; -1: /dev/null */
	int socket;		 /* a listening socket; -1: none */
	/* Files that the program opens again through /proc/self/fd. */
	const int *file;
	unsigned int nfiles;
	const struct disk_confine *confine;
};

/* How a program is confined; NULL: it keeps all our rights. */
struct disk_confine {
	void *ctx;
	/*
	 * Called before the processes exist. Stores CLONE_NEW* of clone(2) in *namespaces. Returns
	 * 0, or -errno with *e recorded. done() follows in any case.
	 */
	int (*prepare)(void *ctx, const struct disk_program_work *work, unsigned long *namespaces,
		       struct err *e);
	/* Called in the helper while the program's process waits. Returns 0 or -errno. */
	int (*made)(void *ctx, pid_t pid);
	/*
	 * Called in the program's process before execve(2). Returns 0, or -errno with *what set to
	 * the name of the step that failed.
	 */
	int (*enter)(void *ctx, const char **what);
	/* Called in this process when the program was started, or could not be. */
	void (*done)(void *ctx);
};

struct disk_program {
	struct helper helper;
	int errors; /* read end of its standard error, non-blocking; -1: none */
};

/* Makes *p a program that does not run, which disk_program_end() accepts. */
void disk_program_init(struct disk_program *p);
/*
 * Finds a program in $PATH and in the directories of the system. Returns 0, or -ENOENT. *out is an
 * absolute path.
 */
int disk_program_find(const char *name, char out[PATH_MAX]);
/*
 * Starts the program. The caller keeps its descriptors. Returns 0, or -errno with *e recorded. The
 * caller ends the program with disk_program_end(). Not to be called while other threads of this
 * process run that have locks of the C library.
 */
int disk_program_start(struct disk_program *p, const struct disk_program_work *work, struct err *e);
/*
 * Stores the last line that the program wrote to standard error so far in out, without control
 * characters, or "".
 */
void disk_program_said(struct disk_program *p, char *out, size_t cap);
/*
 * Waits at most ms milliseconds until the program has ended. Returns its exit status, 128 + N for
 * signal N, or -ETIMEDOUT.
 */
int disk_program_wait(struct disk_program *p, unsigned int ms);
/* Kills the program if it still runs. May be called repeatedly. */
void disk_program_end(struct disk_program *p);

#endif
