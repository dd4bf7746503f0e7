/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper: child processes that do one task for this process, such as serving a device. A helper has
 * a socket to this process and standard error, and no other descriptors.
 *
 * A helper ends with this process. helper_kill() also ends one that is stopped or blocked in the
 * kernel, by closing a pipe: this works even where this process may not send it signals.
 *
 * Not thread-safe except where stated: the caller serialises calls on one helper.
 */
#ifndef KVMPROF_BASE_HELPER_H
#define KVMPROF_BASE_HELPER_H

#include "base/err.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The descriptor of the socket in the helper. */
#define HELPER_SOCKET 3

/*
 * The limit for a helper to begin serving, in ms: the files that it opens may be on a file system
 * that does not answer.
 */
#define HELPER_BEGIN_MS 30000u
/*
 * Replies of a helper are 0 to -HELPER_MAX_ERRNO (include/linux/err.h, MAX_ERRNO); any other value
 * means that it is compromised.
 */
#define HELPER_MAX_ERRNO 4095

struct helper {
	int socket;	 /* SOCK_SEQPACKET; -1: none */
	atomic_int life; /* write end of a pipe, whose closing kills the helper; -1: closed */
	pid_t pid;
	bool lost, reaped; /* no longer used; waited for. Both are true before helper_fork() */
	/* How it ended, as words that follow "it "; set when it is reaped or given up. */
	char how[64];
};

/* The task of a helper. */
struct helper_work {
	const char *what; /* for messages, such as "a share"; borrowed */
	/* Kind, which also gives the process its name. */
	enum thread_kind kind;
	int (*run)(void *ctx); /* runs in the helper; returns its exit status */
	void *ctx;
};

/* Makes *h a helper without a process, which helper_end() accepts. */
void helper_init(struct helper *h);
/*
 * Starts the process. Returns 0, or -errno with *e recorded. The caller ends it with helper_end().
 * Call it before this process has threads whose locks the child could inherit locked.
 */
int helper_fork(struct helper *h, const struct helper_work *work, struct err *e);
/*
 * Waits until a message has arrived or the socket has been closed, at most ms milliseconds. Returns
 * false on timeout.
 */
bool helper_wait(const struct helper *h, unsigned int ms);
/*
 * Shuts down the socket and kills the helper. Any thread may call it, also while another one waits
 * for a reply.
 */
void helper_kill(struct helper *h);
/*
 * Stops using a helper: shuts down the socket and waits for its end. The helper ends by itself when
 * its socket is shut down; one that is compromised, stopped or blocked by a file system does not
 * and is killed after 100 ms. Sets h->how. A second call does nothing.
 */
void helper_abandon(struct helper *h);
/*
 * Stops the helper like helper_abandon(), waits up to 200 ms more, and closes the socket. Also accepts
 * a helper that was never started.
 */
void helper_end(struct helper *h);

#endif
