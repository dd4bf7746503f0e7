/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_program.h"

#include "base/fds.h"
#include "base/reporter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What follows the descriptors of the program when they are passed on. */
enum { PASS_IN, PASS_OUT, PASS_ERRORS, PASS_SOCKET, PASS_FILE };
#define PASS_MAX (PASS_FILE + DISK_PROGRAM_MAX_FILES)
/* A number above those of the descriptors in the program. */
#define ABOVE (DISK_PROGRAM_FILE + (int)DISK_PROGRAM_MAX_FILES)
#define STATUS_FAILED 127

struct program_start {
	const struct disk_program_work *work;
	unsigned long namespaces;
};

/* -- in the program's process ------------------------------------------------------------ */

/* Ends the process after one line on standard error, which the parent process reads. */
static void program_fails(const char *what, const char *why)
{
	char text[300];
	int n = snprintf(text, sizeof(text), "%s: %s\n", what, why);

	reporter_write_raw(text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
	syscall(SYS_exit_group, STATUS_FAILED);
}

/* Gives the descriptors their numbers in the program, and closes all others except sync. */
static void program_set_fds(const int *from, unsigned int n, int *sync)
{
	int to[PASS_MAX], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int moved[PASS_MAX], up = fcntl(*sync, F_DUPFD_CLOEXEC, ABOVE);

	for (unsigned int i = 0; i < n; i++) {
		to[i] = i < PASS_SOCKET	   ? (int)i
			: i == PASS_SOCKET ? DISK_PROGRAM_SOCKET
					   : DISK_PROGRAM_FILE + (int)(i - PASS_FILE);
		moved[i] = fcntl(from[i] < 0 && i < PASS_SOCKET ? null : from[i], F_DUPFD_CLOEXEC,
				 ABOVE);
	}
	for (unsigned int i = 0; i < n; i++)
		if (moved[i] >= 0 && dup2(moved[i], to[i]) < 0)
			program_fails("descriptors", strerror(errno));
	if (up < 0 || dup2(up, ABOVE) < 0)
		program_fails("descriptors", strerror(errno));
	*sync = ABOVE;
	fcntl(ABOVE, F_SETFD, FD_CLOEXEC);
	fds_close_range(ABOVE + 1, UINT_MAX);
	/* Numbers in between that the helper had, such as that of its pipe. */
	for (int fd = DISK_PROGRAM_SOCKET + (n > PASS_SOCKET && from[PASS_SOCKET] >= 0);
	     fd < DISK_PROGRAM_FILE; fd++)
		close(fd);
}

/* Executes the program without our environment, which may contain secrets. */
static void program_execs(const struct disk_program_work *work)
{
	char pid[40];
	const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C",
				    work->socket < 0 ? NULL : "LISTEN_FDS=1", pid, NULL };

	snprintf(pid, sizeof(pid), "LISTEN_PID=%d", (int)getpid());
	execve(work->argv[0], (char *const *)work->argv, (char *const *)env);
	program_fails(work->argv[0], strerror(errno));
}

static void program_becomes(const struct program_start *s, const int *from, int sync)
{
	const struct disk_confine *confine = s->work->confine;
	const char *what = "";
	struct pollfd alone;
	sigset_t none;
	char byte;
	int ret;

	program_set_fds(from, PASS_FILE + s->work->nfiles, &sync);
	if (read(sync, &byte, 1) != 1)
		syscall(SYS_exit_group, STATUS_FAILED);
	ret = confine ? confine->enter(confine->ctx, &what) : 0;
	if (ret) {
		char text[200];

		snprintf(text, sizeof(text), "it cannot be confined: %s", what);
		program_fails(text, strerror(-ret));
	}
	/* A change of the user ID would reset it, so it is set after that. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alone = (struct pollfd){ .fd = sync, .events = POLLIN };
	if (poll(&alone, 1, 0) != 0)
		syscall(SYS_exit_group, STATUS_FAILED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	program_execs(s->work);
}

/* -- in the helper ------------------------------------------------------------------------- */

/* Receives the descriptors, which helper_fork() has closed. Returns whether all have come. */
static bool helper_receive(int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct fds one = { .n = 1 };
		char has;

		fd[i] = -1;
		if (fds_receive(HELPER_SOCKET, &has, 1, &one, 0) != 1 || (has && one.n != 1))
			return false;
		if (has)
			fd[i] = one.fd[0];
	}
	return true;
}

/* Waits until the program ends, or until nobody needs it any more. Returns the exit status. */
static int helper_wait_for(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	struct pollfd p[] = { { .fd = HELPER_SOCKET, .events = POLLIN },
			      { .fd = pidfd, .events = POLLIN } };

	if (pidfd >= 0 && poll(p, 2, -1) > 0 && p[0].revents && !p[1].revents)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int helper_main(void *ctx)
{
	const struct program_start *s = ctx;
	const struct disk_confine *confine = s->work->confine;
	unsigned int n = PASS_FILE + s->work->nfiles;
	int fd[PASS_MAX], sync[2];
	pid_t pid;

	if (!helper_receive(fd, n) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
		return STATUS_FAILED;
	/* This process has one thread. */
	pid = s->namespaces
		      ? (pid_t)syscall(SYS_clone, s->namespaces | SIGCHLD, NULL, NULL, NULL, NULL)
		      : fork();
	if (pid == 0) {
		close(sync[0]);
		program_becomes(s, fd, sync[1]);
	}
	if (pid < 0 || (confine && confine->made(confine->ctx, pid)) || write(sync[0], "", 1) != 1)
		return STATUS_FAILED;
	close(sync[1]);
	for (unsigned int i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return helper_wait_for(pid);
}

/* -- in the run ------------------------------------------------------------------------------ */

void disk_program_init(struct disk_program *p)
{
	helper_init(&p->helper);
	p->errors = -1;
}

int disk_program_find(const char *name, char out[PATH_MAX])
{
	const char *path = getenv("PATH");
	char all[2 * PATH_MAX];
	char *rest = all, *dir;

	snprintf(all, sizeof(all), "%s:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		 path ? path : "");
	while ((dir = strsep(&rest, ":")))
		if (*dir == '/' && snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX &&
		    access(out, X_OK) == 0)
			return 0;
	return -ENOENT;
}

/* Sends the helper its descriptors, one message for each. */
static int program_send(struct disk_program *p, const struct disk_program_work *work, int errors)
{
	int fd[PASS_MAX] = { work->in, work->out, errors, work->socket };

	for (unsigned int i = 0; i < work->nfiles; i++)
		fd[PASS_FILE + i] = work->file[i];
	for (unsigned int i = 0; i < PASS_FILE + work->nfiles; i++) {
		const struct fds one = { .fd = { fd[i] }, .n = fd[i] >= 0 };
		const char has = fd[i] >= 0;

		if (fds_send(p->helper.socket, &has, 1, &one, MSG_NOSIGNAL) != 1)
			return -errno;
	}
	return 0;
}

int disk_program_start(struct disk_program *p, const struct disk_program_work *work, struct err *e)
{
	struct program_start s = { .work = work };
	const struct helper_work helper = { work->argv[0], THREAD_IMAGE, helper_main, &s };
	const struct disk_confine *confine = work->confine;
	int errors[2], ret;

	disk_program_init(p);
	if (work->nfiles > DISK_PROGRAM_MAX_FILES)
		return err_set(e, E2BIG, "%s: more than %u files", work->argv[0],
			       DISK_PROGRAM_MAX_FILES);
	/* A program that writes a lot must not wait for a reader. */
	if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, errno, "%s: no descriptors: %s", work->argv[0], strerror(errno));
	p->errors = errors[0];
	ret = confine ? confine->prepare(confine->ctx, work, &s.namespaces, e) : 0;
	ret = ret ? ret : helper_fork(&p->helper, &helper, e);
	if (confine)
		confine->done(confine->ctx);
	if (!ret) {
		ret = program_send(p, work, errors[1]);
		if (ret)
			err_set(e, -ret, "%s: cannot be started: %s", work->argv[0],
				strerror(-ret));
	}
	close(errors[1]);
	if (ret)
		disk_program_end(p);
	return ret;
}

void disk_program_said(struct disk_program *p, char *out, size_t cap)
{
	char text[4096], *line;
	ssize_t n = p->errors < 0 ? 0 : read(p->errors, text, sizeof(text) - 1);

	*out = '\0';
	if (n <= 0)
		return;
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	snprintf(out, cap, "%s", line ? line + 1 : text);
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

int disk_program_wait(struct disk_program *p, unsigned int ms)
{
	int status;

	/* The helper has nothing to send, so its end is all that can arrive. */
	if (p->helper.reaped || !helper_wait(&p->helper, ms))
		return -ETIMEDOUT;
	if (waitpid(p->helper.pid, &status, 0) != p->helper.pid)
		return -ETIMEDOUT;
	p->helper.reaped = p->helper.lost = true;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void disk_program_end(struct disk_program *p)
{
	helper_end(&p->helper);
	if (p->errors >= 0)
		close(p->errors);
	p->errors = -1;
}
