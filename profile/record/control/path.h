/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_path: the path of a run's control socket, for those who listen and those who connect.
 * Rules: docs/control.md. All functions are called by the main thread. Those that return int return
 * 0 (or a descriptor) or -errno with the reason in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_PATH_H
#define KVMPROF_PROFILE_RECORD_CONTROL_PATH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define CONTROL_PATH_AUTO "auto"
#define CONTROL_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path) /* includes the NUL */
/* The most runs that control_find() returns. */
#define CONTROL_MAX_FOUND 64u

/* Whether a missing directory of sockets is an error or is created. */
enum control_missing { CONTROL_MISSING_FAILS, CONTROL_MISSING_IS_MADE };

/* Stores the default path of a process's socket. */
int control_path_of(char out[CONTROL_PATH_MAX], pid_t pid, enum control_missing missing,
		    struct err *e);

/* A listening socket. */
struct control_listener {
	int fd; /* -1: none */
	char path[CONTROL_PATH_MAX];
	dev_t dev;
	ino_t ino;
	int file;  /* result of signals_remove() for the path */
	uid_t uid; /* the user who may connect, besides root: a run may change its user later */
};

/*
 * Listens at path, or with CONTROL_PATH_AUTO at this process's default path. The socket of a run
 * that is gone is replaced. Changes the umask for a moment, so no other thread may exist. The
 * caller closes *l with control_unlisten().
 */
int control_listen(struct control_listener *l, const char *path, struct err *e);
/*
 * Closes the socket, and removes its path if that still belongs to it. A listener with fd -1 is
 * allowed.
 */
void control_unlisten(struct control_listener *l);

/*
 * Stores in *e why connecting to path failed; cause is a positive errno value. Returns -cause, or
 * -errno of a clearer cause.
 */
int control_connect_failed(const char *path, int cause, struct err *e);

/*
 * Finds the path of the only run that was started with --control auto. Returns 0, -ENOENT if there
 * is none, or -EINVAL if there are several.
 */
int control_path_only(char path[CONTROL_PATH_MAX], struct err *e);

/*
 * Returns a connected socket, which the caller closes, or -errno: -ETIMEDOUT if a program listens
 * but does not answer.
 */
int control_connect(const char *path, struct err *e);
/*
 * Stores the PID of the run that listens at path; with CONTROL_PATH_AUTO of the only run that was started with --control
 * auto. Returns 0 or -errno.
 */
int control_run_of(const char *path, pid_t *pid, struct err *e);
/* Limits connecting and sending on fd to some seconds; they then fail with EAGAIN. */
void control_limit_waits(int fd);

/* Stores the PIDs of the runs that answer at their default paths. Returns their number. */
unsigned int control_find(pid_t pid[CONTROL_MAX_FOUND]);

#endif
