/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fds: messages with descriptors over a UNIX socket (unix(7), SCM_RIGHTS), and functions that close
 * many descriptors. Interrupted calls are repeated. Any thread may call these functions.
 */
#ifndef KVMPROF_BASE_FDS_H
#define KVMPROF_BASE_FDS_H

#include <stddef.h>
#include <sys/types.h>

#define FDS_MAX 4u /* maximum number of descriptors in a message */

struct fds {
	int fd[FDS_MAX];
	unsigned int n;
};

/*
 * Sends len bytes with these descriptors, which the caller keeps. Returns the bytes sent, or -1
 * with errno set, as sendmsg(2).
 */
ssize_t fds_send(int socket, const void *data, size_t len, const struct fds *fds, int flags);

/*
 * Receives a message of at most len bytes with at most fds->n (1 to FDS_MAX) descriptors, and
 * stores the descriptors and their number in *fds. The caller closes them with fds_close(); they
 * are close-on-exec. The kernel closes surplus descriptors, and this function closes those of a
 * message without bytes. Returns the bytes received, or -1 with errno set, as recvmsg(2).
 */
ssize_t fds_receive(int socket, void *data, size_t len, struct fds *fds, int flags);

/* Closes the descriptors, and sets fds->n to 0. */
void fds_close(struct fds *fds);

/*
 * Closes the descriptors from first to last, also on Linux before 5.9, which lacks close_range(2).
 * Async-signal-safe, like fds_close_others().
 */
void fds_close_range(unsigned int first, unsigned int last);
/*
 * Closes all descriptors of this process except keep[0, n), which may be in any order; negative
 * ones are ignored.
 */
void fds_close_others(const int *keep, unsigned int n);

#endif
