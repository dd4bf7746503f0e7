/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into a VMM: one more thread, which waits in epoll_wait(2) as an event loop does. That
 * returns EINTR when its thread was stopped, as it never begins again by itself (signal(7)). Each
 * time a line is added to the file that EINTR_COUNT names.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static void *count(void *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	while (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR)
		if (write(fd, "EINTR\n", 6) != 6)
			abort();
	abort();
}

__attribute__((constructor)) static void begin(void)
{
	char *path = getenv("EINTR_COUNT");
	pthread_t thread;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!path || pthread_create(&thread, NULL, count, path))
		abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
