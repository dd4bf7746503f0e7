/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The time to wait for the end of a process after its socket was shut down, and once more at the
 * end of the run.
 */
#define LOST_WAIT_MS 100u
#define END_WAIT_MS 200u

#define HELPER_LIFE (HELPER_SOCKET + 1)

/* -- in the process --------------------------------------------------------------------- */

/*
 * Closes all descriptors except standard error (for messages of the sandbox), the socket and the
 * pipe.
 */
static int helper_close_all(int fd, int life)
{
	int null;

	/*
	 * The two may have low numbers if standard descriptors were closed when they were created.
	 */
	fd = fcntl(fd, F_DUPFD, HELPER_LIFE + 1);
	life = fcntl(life, F_DUPFD, HELPER_LIFE + 1);
	null = open("/dev/null", O_RDWR);
	if (fd < 0 || life < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(fd, HELPER_SOCKET) < 0 ||
	    dup2(life, HELPER_LIFE) < 0)
		return -errno;
	closefrom(HELPER_LIFE + 1);
	return 0;
}

/*
 * Returns whether the other end of the pipe was closed before the kernel was told to kill this
 * process for it.
 */
static bool helper_is_alone(int life)
{
	struct pollfd p = { .fd = life, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static int helper_child(const struct helper_work *work, int fd, int life)
{
	sigset_t all;

	sigfillset(&all); /* Ctrl-C is handled by the parent process */
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, thread_kind_name(work->kind));
	if (helper_close_all(fd, life) || helper_is_alone(HELPER_LIFE))
		return 1;
	return work->run(work->ctx);
}

/* -- in the parent process ---------------------------------------------------------------- */

/*
 * Lets the kernel kill the process when this one closes its end of the pipe, in helper_kill() or by
 * ending. A signal would not work: this process may be in a Landlock domain whose scope covers
 * signals (Linux 6.12), and PR_SET_PDEATHSIG is a signal of the process that dies. The signals of a
 * descriptor are checked against the rights of the process that set their owner, at that time
 * (security_file_send_sigiotask()). This is done here and not in the new process, which may be
 * stopped before it gets to it. Returns 0 or -errno.
 */
static int helper_tie(int life, pid_t pid)
{
	return fcntl(life, F_SETOWN, pid) < 0 || fcntl(life, F_SETSIG, SIGKILL) < 0 ||
			       fcntl(life, F_SETFL, O_ASYNC) < 0
		       ? -errno
		       : 0;
}

void helper_init(struct helper *h)
{
	*h = (struct helper){ .socket = -1, .pid = -1, .lost = true, .reaped = true };
	atomic_init(&h->life, -1);
}

int helper_fork(struct helper *h, const struct helper_work *work, struct err *e)
{
	int pair[2], life[2], ret;

	helper_init(h);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, errno, "a socket for %s: %s", work->what, strerror(errno));
	if (pipe2(life, O_CLOEXEC) < 0) {
		ret = err_set(e, errno, "a pipe for %s: %s", work->what, strerror(errno));
		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	h->pid = fork();
	/* Exits directly: exit(3) would flush and remove what belongs to the parent. */
	if (h->pid == 0)
		syscall(SYS_exit_group, helper_child(work, pair[1], life[0]));
	ret = h->pid < 0 ? -errno : helper_tie(life[0], h->pid);
	close(pair[1]);
	close(life[0]);
	h->socket = pair[0];
	atomic_store(&h->life, life[1]);
	h->lost = h->reaped = h->pid < 0;
	if (ret) {
		if (!h->reaped)
			kill(h->pid, SIGKILL);
		helper_end(h);
		return err_set(e, -ret, "a process for %s: %s", work->what, strerror(-ret));
	}
	return 0;
}

bool helper_wait(const struct helper *h, unsigned int ms)
{
	struct pollfd p = { .fd = h->socket, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, (int)ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

void helper_kill(struct helper *h)
{
	int life = atomic_exchange(&h->life, -1);

	if (life >= 0)
		close(life);
	/* If the process stays in a system call, this wakes the thread that waits for its reply. */
	if (h->socket >= 0)
		shutdown(h->socket, SHUT_RDWR);
}

/* Waits for the process's end, at most ms milliseconds, and sets h->how. */
static void helper_reap(struct helper *h, unsigned int ms)
{
	const struct timespec step = { 0, 1000000 };
	int status = 0;
	pid_t pid = -1;

	if (h->reaped)
		return;
	while (!h->reaped) {
		pid = waitpid(h->pid, &status, WNOHANG);
		h->reaped = pid == h->pid || (pid < 0 && errno != EINTR);
		if (h->reaped || !ms--)
			break;
		nanosleep(&step, NULL);
	}
	if (!h->reaped)
		snprintf(h->how, sizeof(h->how), "does not answer");
	else if (pid != h->pid)
		snprintf(h->how, sizeof(h->how), "ended");
	else if (WIFSIGNALED(status))
		snprintf(h->how, sizeof(h->how), "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(h->how, sizeof(h->how), "ended with status %d", WEXITSTATUS(status));
}

void helper_abandon(struct helper *h)
{
	if (h->lost)
		return;
	h->lost = true;
	if (h->socket >= 0)
		shutdown(h->socket, SHUT_RDWR);
	helper_reap(h, LOST_WAIT_MS);
	if (h->reaped)
		return;
	helper_kill(h);
	helper_reap(h, LOST_WAIT_MS);
	snprintf(h->how, sizeof(h->how), "does not answer");
}

void helper_end(struct helper *h)
{
	helper_abandon(h);
	helper_kill(h);
	helper_reap(h, END_WAIT_MS);
	if (h->socket >= 0)
		close(h->socket);
	h->socket = -1;
}
