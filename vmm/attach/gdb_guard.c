/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/gdb_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 2000

/* Everything but these two, which may be one another's neighbours. */
static void close_others(int a, int b)
{
	unsigned int low = (unsigned int)(a < b ? a : b), high = (unsigned int)(a < b ? b : a);

	if (low > 0)
		syscall(SYS_close_range, 0u, low - 1, 0u);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0u);
	syscall(SYS_close_range, high + 1, ~0u, 0u);
}

/*
 * Stop it when it runs (the first byte does that, and is lost), end what may be half a
 * packet, and detach, which lets it go on. A close with bytes unread would reset the
 * connection, and with it what was said: so read until there is nothing more.
 */
static void detach(int fd)
{
	static const char words[] = "\003#00+$D#44";
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[4096];

	(void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while (poll(&p, 1, ANSWER_MS) > 0)
		if (read(fd, answer, sizeof(answer)) <= 0)
			return;
}

/* A copy of a process with threads: no more than system calls from here on. */
static void guard(int pipe_fd, int socket_fd)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t all;
	ssize_t n;
	char word;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setsid();
	prctl(PR_SET_NAME, "kvmprof-guard");
	close_others(pipe_fd, socket_fd);
	do
		n = read(pipe_fd, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		detach(socket_fd);
	/* At once: what is to be done at kvmprof's end is not ours to do. */
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

void gdb_guard_stop(struct gdb_guard *g, enum gdb_guard_end end)
{
	const char word = 1;

	if (!g->pid)
		return;
	if (end == GDB_GUARD_DOES_NOTHING)
		(void)!write(g->pipe_fd, &word, 1);
	close(g->pipe_fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*g = (struct gdb_guard){ .pipe_fd = -1 };
}
