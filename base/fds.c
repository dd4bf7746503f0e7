/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fds.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A buffer for one control message, aligned as a header. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

ssize_t fds_send(int socket, const void *data, size_t len, const struct fds *fds, int flags)
{
	const size_t size = fds->n * sizeof(int);
	union control control = { .head = { .cmsg_len = CMSG_LEN(size),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)data, len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (size) {
		memcpy(CMSG_DATA(&control.head), fds->fd, size);
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(size);
	}
	do
		sent = sendmsg(socket, &m, flags);
	while (sent < 0 && errno == EINTR);
	return sent;
}

ssize_t fds_receive(int socket, void *data, size_t len, struct fds *fds, int flags)
{
	union control control;
	struct iovec part = { data, len };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_LEN(fds->n * sizeof(int)) };
	const struct cmsghdr *c;
	ssize_t came;

	do
		came = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
	while (came < 0 && errno == EINTR);
	fds->n = 0;
	c = came >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		fds->n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds->fd, CMSG_DATA(c), fds->n * sizeof(int));
	}
	/* The caller treats a message without bytes as the end of the socket. */
	if (!came)
		fds_close(fds);
	return came;
}

void fds_close(struct fds *fds)
{
	for (unsigned int i = 0; i < fds->n; i++)
		close(fds->fd[i]);
	fds->n = 0;
}

void fds_close_range(unsigned int first, unsigned int last)
{
	struct rlimit most;

	if (syscall(SYS_close_range, first, last, 0u) == 0)
		return;
	/*
	 * In a container a process may be allowed a billion descriptors; /proc lists the open ones.
	 */
	if (last == UINT_MAX) {
		closefrom((int)first);
		return;
	}
	if (getrlimit(RLIMIT_NOFILE, &most) < 0)
		return;
	for (unsigned int fd = first; fd <= last && fd < most.rlim_cur; fd++)
		close((int)fd);
}

/* Returns the least of keep[0, n) that is not below `from`, or UINT_MAX. */
static unsigned int next_kept(const int *keep, unsigned int n, unsigned int from)
{
	unsigned int least = UINT_MAX;

	for (unsigned int i = 0; i < n; i++)
		if (keep[i] >= 0 && (unsigned int)keep[i] >= from && (unsigned int)keep[i] < least)
			least = (unsigned int)keep[i];
	return least;
}

void fds_close_others(const int *keep, unsigned int n)
{
	unsigned int from = 0, kept;

	while ((kept = next_kept(keep, n, from)) < UINT_MAX) {
		if (kept > from)
			fds_close_range(from, kept - 1);
		from = kept + 1;
	}
	fds_close_range(from, UINT_MAX);
}
