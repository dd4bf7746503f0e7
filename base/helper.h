/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper: a process that does one thing for this one, such as serving a device. It has a socket to this
 * one, standard error, and nothing else.
 *
 * It ends with this process. One that is stopped, or that waits for the kernel, is killed when helper_kill() closes a pipe:
 * also where this process may send it no signal.
 */
#ifndef KVMPROF_BASE_HELPER_H
#define KVMPROF_BASE_HELPER_H

#include "base/err.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The socket's number in the process. */
#define HELPER_SOCKET 3

/* How long a process may take until it serves: what it opens may be on a file system that does not answer. */
#define HELPER_BEGIN_MS 30000u
/* An answer of a process is 0 to -HELPER_MAX_ERRNO (include/linux/err.h, MAX_ERRNO), or the process is taken over. */
#define HELPER_MAX_ERRNO 4095

struct helper {
	int socket;	 /* SOCK_SEQPACKET; -1: none */
	atomic_int life; /* the process ends when this end of a pipe is closed; -1: it is */
	pid_t pid;
	bool lost, reaped; /* true, too, before it is forked */
	char how[64];	   /* once it is reaped, or given up: how it ended, as words behind "it " */
};

struct helper_work {
	const char *what; /* "a share", in messages */
	enum thread_kind kind;
	int (*run)(void *ctx); /* in the process; returns its exit status */
	void *ctx;
};

/* Makes *h one without a process, which helper_end() takes. */
void helper_init(struct helper *h);
/* Starts the process. Called before this one has threads whose locks the new one could find taken. Returns 0 or -errno with e set. */
int helper_fork(struct helper *h, const struct helper_work *work, struct err *e);
/* Waits until a message has come or the socket has ended. Returns false after that time. */
bool helper_wait(const struct helper *h, unsigned int ms);
/* Ends the conversation, and the process. Any thread, also while another one waits for an answer. */
void helper_kill(struct helper *h);
/*
 * Lets a process go that is not asked again. It ends when its socket does; one that a guest has taken over, that is
 * stopped, or that waits for a file system does not, and is killed after a moment. A second call does nothing.
 */
void helper_lose(struct helper *h);
/* Lets the process go as helper_lose() does, and closes the socket. For one that was never forked, too. */
void helper_end(struct helper *h);

#endif
