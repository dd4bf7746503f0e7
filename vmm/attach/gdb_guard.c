/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/gdb_guard.h"

#include "base/clock.h"
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Limit of the detach; a stub that answers does so within some ms. */
#define DETACH_MS 500
#define DETACH_LOOK_MS 50
/*
 * Limit of the wait for the guard's end. After that it is left to end by itself; it has the
 * connection and a pipe only. The sandbox does not allow kill(2).
 */
#define STOP_MS 1000
#define STOP_NAP_NS 2000000

/*
 * Stops the machine if it runs (by the first byte, which is ignored otherwise), ends a packet that
 * may be incomplete, and detaches, which resumes the machine. A close with unread bytes would reset
 * the connection and discard the request, so all answers are read first.
 */
static void detach(int fd)
{
	static const char words[] = "\003#00+$D#44";
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = clock_mono_ns() + DETACH_MS * UINT64_C(1000000);
	char answer[4096];

	(void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_WR);
	while (clock_mono_ns() < end) {
		ssize_t n = poll(&p, 1, DETACH_LOOK_MS) > 0 ? read(fd, answer, sizeof(answer)) : 1;

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return;
	}
}

/*
 * Runs the guard's process. It is a copy of a process with threads, so it makes only system calls.
 */
static void guard(int pipe_fd, int socket_fd)
{
	const int keep[] = { pipe_fd, socket_fd };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t all;
	ssize_t n;
	char word;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setsid();
	prctl(PR_SET_NAME, "kvmprof-guard");
	fds_close_others(keep, 2);
	do
		n = read(pipe_fd, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		detach(socket_fd);
	/* exit_group(2) directly, because exit handlers are for kvmprof's own process. */
	syscall(SYS_exit_group, 0);
}

int gdb_guard_start(struct gdb_guard *g, int socket_fd, struct err *e)
{
	int fd[2];
	pid_t pid;

	*g = (struct gdb_guard){ .pipe_fd = -1 };
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot open a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		guard(fd[0], socket_fd);
	close(fd[0]);
	if (pid < 0) {
		int cause = errno;

		close(fd[1]);
		return err_set(e, cause, "cannot start a process: %s", strerror(cause));
	}
	*g = (struct gdb_guard){ pid, fd[1] };
	return 0;
}

/* Returns whether the guard has ended, and reaps it. */
static bool gdb_guard_has_ended(const struct gdb_guard *g)
{
	pid_t got;

	do
		got = waitpid(g->pid, NULL, WNOHANG);
	while (got < 0 && errno == EINTR);
	return got;
}

void gdb_guard_stop(struct gdb_guard *g, enum gdb_guard_end end)
{
	uint64_t last = clock_mono_ns() + STOP_MS * UINT64_C(1000000);
	const struct timespec nap = { .tv_nsec = STOP_NAP_NS };
	const char word = 1;

	if (!g->pid)
		return;
	if (end == GDB_GUARD_DOES_NOTHING)
		(void)!write(g->pipe_fd, &word, 1);
	close(g->pipe_fd);
	while (!gdb_guard_has_ended(g) && clock_mono_ns() < last)
		nanosleep(&nap, NULL);
	*g = (struct gdb_guard){ .pipe_fd = -1 };
}
