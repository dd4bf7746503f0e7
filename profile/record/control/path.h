/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_path: where a run's control socket lies, for those who listen and those who
 * connect. Rules: docs/control.md. Main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_PATH_H
#define KVMPROF_PROFILE_RECORD_CONTROL_PATH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define CONTROL_PATH_AUTO "auto"
#define CONTROL_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path) /* with the NUL */
#define CONTROL_MAX_FOUND 64u

enum control_missing { CONTROL_MISSING_FAILS, CONTROL_MISSING_IS_MADE };

/* The socket of a process in it. */
int control_path_of(char out[CONTROL_PATH_MAX], pid_t pid, enum control_missing missing,
		    struct err *e);

/* A listening socket. */
struct control_listener {
	int fd; /* -1: none */
	char path[CONTROL_PATH_MAX];
	dev_t dev;
	ino_t ino;
	int file;  /* the result of signals_remove() */
	uid_t uid; /* who may connect, beside root: a run may have another user later */
};

/*
 * Listen at path, or with CONTROL_PATH_AUTO at this process's. What a dead run left there
 * is replaced. Changes the umask for a moment: call it while there are no other threads.
 */
int control_listen(struct control_listener *l, const char *path, struct err *e);
/* Closes, and removes the socket if it still is ours. Fine when there is none. */
void control_unlisten(struct control_listener *l);

/* Records why connecting to path failed; cause: positive errno value. Returns -errno. */
int control_connect_failed(const char *path, int cause, struct err *e);

/* Returns the path of the only run that was started with --control auto; -ENOENT, -EINVAL: none, several. */
int control_path_only(char path[CONTROL_PATH_MAX], struct err *e);

/* A connected socket, or -errno. -ETIMEDOUT: somebody listens, who does not answer. */
int control_connect(const char *path, struct err *e);
/* Connecting and sending take seconds at most from now on: then they fail with EAGAIN. */
void control_limit_waits(int fd);

/* Runs with a socket in the default directory that answer; how many, CONTROL_MAX_FOUND at most. */
unsigned int control_find(pid_t pid[CONTROL_MAX_FOUND]);

#endif
