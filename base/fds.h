/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fds: messages with descriptors over a UNIX socket (unix(7), SCM_RIGHTS), and many descriptors that are closed at once. Calls are
 * repeated after a signal. Any thread.
 */
#ifndef KVMPROF_BASE_FDS_H
#define KVMPROF_BASE_FDS_H

#include <stddef.h>
#include <sys/types.h>

#define FDS_MAX 4u /* most descriptors in a message */

struct fds {
	int fd[FDS_MAX];
	unsigned int n;
};

/* Sends len bytes with these descriptors, which stay the caller's. Returns as sendmsg(2). */
ssize_t fds_send(int socket, const void *data, size_t len, const struct fds *fds, int flags);

/*
 * Receives a message of at most len bytes, with at most fds->n (1 to FDS_MAX) descriptors, and stores these and their number in *fds. They
 * are the caller's, with close-on-exec. The kernel closes others, and those of a message without bytes are closed here. Returns
 * as recvmsg(2).
 */
ssize_t fds_receive(int socket, void *data, size_t len, struct fds *fds, int flags);

/* Closes the descriptors, and sets fds->n to 0. */
void fds_close(struct fds *fds);

/*
 * Closes descriptors from first to last, also on Linux before 5.9, which has no close_range(2). Async-signal-safe, as
 * fds_close_others().
 */
void fds_close_range(unsigned int first, unsigned int last);
/* Closes all descriptors of this process but keep[0, n), which may be in any order, and negative. */
void fds_close_others(const int *keep, unsigned int n);

#endif
