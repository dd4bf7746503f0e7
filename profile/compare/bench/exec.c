/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/bench/exec.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail_child(int report, int what)
{
	ssize_t n = write(report, &what, sizeof(what));

	(void)n;
	return 127;
}

/* Between fork and exec: system calls only. Returns the status to end with. */
static int child(const struct bench_exec *x, pid_t parent, int log, int null, int report)
{
	sigset_t none;

	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
		return fail_child(report, ESRCH);
	if (x->pin && sched_setaffinity(0, sizeof(*x->pin), x->pin))
		return fail_child(report, errno);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0)
		return fail_child(report, errno);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(x->argv[0], x->argv);
	return fail_child(report, errno);
}

static int exec_start(const struct bench_exec *x, pid_t *pid, struct err *e)
{
	cleanup_close int log = open(x->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_close int from = -1;
	cleanup_close int to = -1;
	pid_t parent = getpid();
	int ends[2], why = 0;

	if (log < 0)
		return err_set(e, errno, "cannot write %s: %s", x->log, strerror(errno));
	if (null < 0 || pipe2(ends, O_CLOEXEC))
		return err_set(e, errno, "cannot start a run: %s", strerror(errno));
	from = ends[0];
	to = ends[1];
	*pid = fork();
	if (*pid < 0)
		return err_set(e, errno, "cannot start a run: %s", strerror(errno));
	if (!*pid)
		_Exit(child(x, parent, log, null, to));
	close(cleanup_take_fd(&to));
	/* Closed by exec, or the reason why there was none */
	if (read(from, &why, sizeof(why)) == sizeof(why)) {
		waitpid(*pid, NULL, 0);
		return err_set(e, why, "cannot start %s%s: %s", x->argv[0],
			       x->pin ? " on the CPUs of --pin" : "", strerror(why));
	}
	return 0;
}

/* true: it has ended. */
static bool wait_ms(int pidfd, int ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	while (poll(&p, 1, ms) < 0)
		if (errno != EINTR)
			return false;
	return p.revents;
}

static void end_child(const struct bench_exec *x, pid_t pid, int pidfd)
{
	kill(pid, SIGTERM);
	if (!wait_ms(pidfd, x->grace_ms))
		kill(pid, SIGKILL);
}

/* Until the child has ended; BENCH_FINE: by itself. */
static enum bench_end watch(const struct bench_exec *x, pid_t pid, int pidfd)
{
	uint64_t deadline = clock_mono_ns() + (uint64_t)(x->timeout_s * 1e9);
	struct pollfd p[2] = { { .fd = pidfd, .events = POLLIN },
			       { .fd = x->stop_fd, .events = POLLIN } };

	for (;;) {
		uint64_t now = clock_mono_ns();
		uint64_t left_ms = now < deadline ? (deadline - now) / 1000000 + 1 : 0;

		if (poll(p, 2, left_ms < 60000 ? (int)left_ms : 60000) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			return BENCH_FINE;
		if (p[1].revents & POLLIN) {
			end_child(x, pid, pidfd);
			return BENCH_INTERRUPTED;
		}
		if (clock_mono_ns() >= deadline) {
			end_child(x, pid, pidfd);
			return BENCH_TIMED_OUT;
		}
	}
	end_child(x, pid, pidfd);
	return BENCH_KILLED;
}

int bench_exec(const struct bench_exec *x, struct bench_outcome *out, struct err *e)
{
	uint64_t began = clock_mono_ns();
	cleanup_close int pidfd = -1;
	int status = 0, ret;
	pid_t pid = -1;

	ret = exec_start(x, &pid, e);
	if (ret)
		return ret;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		ret = err_set(e, errno, "pidfd_open: %s", strerror(errno));
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
		return ret;
	}
	out->end = watch(x, pid, pidfd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	out->seconds = (double)(clock_mono_ns() - began) / 1e9;
	out->status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	if (out->end == BENCH_FINE && WIFSIGNALED(status))
		out->end = BENCH_KILLED;
	else if (out->end == BENCH_FINE && out->status)
		out->end = BENCH_FAILED;
	return 0;
}

void bench_outcome_text(const struct bench_outcome *o, char text[64])
{
	switch (o->end) {
	case BENCH_FINE:
		snprintf(text, 64, "fine");
		break;
	case BENCH_FAILED:
		snprintf(text, 64, "exit status %d", o->status);
		break;
	case BENCH_KILLED:
		snprintf(text, 64, "ended by signal %d", o->status);
		break;
	case BENCH_TIMED_OUT:
		snprintf(text, 64, "no end after %.0f s", o->seconds);
		break;
	case BENCH_INTERRUPTED:
		snprintf(text, 64, "interrupted");
		break;
	}
}
