/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/launch.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACED_NAP_NS 200000
/* Limit of the VMM's wait for its tracer. */
#define TRACED_NS (60 * NSEC_PER_SEC)
#define MAX_ENDED 64u
#define CLOSE_MS 100u
/* Limit of the wait for a report of kvmprof-launch that is due. */
#define REPORT_MS 1000
#define END_NAP_NS 20000000

/* A request of kvmprof to kvmprof-launch. */
struct launch_ask {
	pid_t pid;
	bool end; /* end it; else only report */
	bool all; /* then end what it has started, too */
};

/* A report of kvmprof-launch. */
struct launch_report {
	pid_t pid;
	int status; /* wait(2)'s */
	int error;  /* errno of execve(2); then pid is 0 */
};

/* -- the VMM's process before execve(2) ---------------------------------------------------------- */

static bool is_traced(void)
{
	return proc_status_pid("/proc/self", "TracerPid") != 0;
}

static void wait_for_tracer(void)
{
	const struct timespec nap = { .tv_nsec = TRACED_NAP_NS };
	const uint64_t until = clock_mono_ns() + TRACED_NS;

	while (!is_traced()) {
		if (clock_mono_ns() > until || getppid() == 1)
			syscall(SYS_exit_group, 127);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

static _Noreturn void become_vmm(char *const *argv, int out, int error_fd)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	/* Handlers end with execve(2); these are ignored by kvmprof. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	wait_for_tracer();
	execvp(argv[0], argv);
	error = errno;
	(void)!write(error_fd, &error, sizeof(error));
	syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

/* -- kvmprof-launch ------------------------------------------------------------------------------- */

struct parent {
	int link, signals, error_fd;
	struct {
		pid_t pid;
		int status;
	} ended[MAX_ENDED];
	unsigned int nended;
	pid_t asked; /* process whose end is to be reported; 0: none yet */
	pid_t ends;  /* it has SIGTERM */
	bool all;    /* its descendants are to end with it */
	uint64_t kill_ns;
};

static void report_end(struct parent *p)
{
	for (unsigned int i = 0; i < p->nended; i++) {
		const struct launch_report r = { p->ended[i].pid, p->ended[i].status, 0 };

		if (p->ended[i].pid == p->asked)
			(void)send(p->link, &r, sizeof(r), MSG_NOSIGNAL);
	}
}

static void reap(struct parent *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (p->nended == MAX_ENDED)
			memmove(p->ended, p->ended + 1, --p->nended * sizeof(p->ended[0]));
		p->ended[p->nended].pid = pid;
		p->ended[p->nended++].status = status;
		if (pid == p->ends)
			p->ends = 0;
		if (pid == p->asked)
			report_end(p);
	}
}

static void carry_out(struct parent *p, const struct launch_ask *a)
{
	p->asked = a->pid;
	report_end(p);
	if (!a->end)
		return;
	p->ends = a->pid;
	p->all = a->all;
	p->kill_ns = clock_mono_ns() + LAUNCH_GRACE_MS * UINT64_C(1000000);
	(void)kill(a->pid, SIGTERM);
}

/* Sends a signal to each child. Processes whose parents have ended are children of this one. */
static void signal_children(int signo)
{
	cleanup_fclose FILE *f = proc_open("/proc/thread-self/children");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		(void)kill(pid, signo);
}

/*
 * Ends the processes that the VMM's command has left, such as a jailer's VMM that was not known
 * yet. Descendants of a child become children when it has ended.
 */
static void end_rest(struct parent *p)
{
	const struct timespec nap = { .tv_nsec = END_NAP_NS };
	siginfo_t child;

	while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
		reap(p);
		signal_children(clock_mono_ns() > p->kill_ns ? SIGKILL : SIGTERM);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

static void serve(struct parent *p)
{
	struct pollfd fd[3] = { { .fd = p->link, .events = POLLIN },
				{ .fd = p->signals, .events = POLLIN },
				{ .fd = p->error_fd, .events = POLLIN } };

	for (;;) {
		struct launch_report r = { 0 };
		struct launch_ask a;

		(void)poll(fd, 3, p->ends ? 50 : -1);
		if (p->ends && clock_mono_ns() > p->kill_ns) {
			(void)kill(p->ends, SIGKILL);
			p->ends = 0;
		}
		if (fd[2].revents) {
			if (read(p->error_fd, &r.error, sizeof(r.error)) == sizeof(r.error))
				(void)send(p->link, &r, sizeof(r), MSG_NOSIGNAL);
			fd[2].fd = -1;
		}
		if (fd[1].revents)
			reap(p);
		if (!fd[0].revents)
			continue;
		if (recv(p->link, &a, sizeof(a), 0) != sizeof(a))
			return;
		carry_out(p, &a);
	}
}

static _Noreturn void parent_main(int link, char *const *argv, int out)
{
	struct parent p = { .link = link };
	int keep[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, link, out };
	int error_fd[2];
	sigset_t all, child;
	pid_t pid;

	prctl(PR_SET_NAME, "kvmprof-launch");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	fds_close_others(keep, out < 0 ? 4 : 5);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)signal(SIGCHLD, SIG_DFL);
	p.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p.signals < 0 || pipe2(error_fd, O_CLOEXEC) < 0)
		syscall(SYS_exit_group, 1);
	p.error_fd = error_fd[0];
	pid = fork();
	if (!pid)
		become_vmm(argv, out, error_fd[1]);
	close(error_fd[1]);
	if (out >= 0)
		close(out);
	if (send(link, &pid, sizeof(pid), MSG_NOSIGNAL) == sizeof(pid) && pid > 0)
		serve(&p);
	if (p.all)
		end_rest(&p);
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

/* -- in kvmprof ------------------------------------------------------------------------------------ */

static int open_output(struct launch *l, enum launch_output output, int *out, struct err *e)
{
	int fd[2];

	*out = output == LAUNCH_TO_STDERR ? STDERR_FILENO : -1;
	if (output != LAUNCH_READ)
		return 0;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot open a pipe: %s", strerror(errno));
	l->out = fd[0];
	*out = fd[1];
	(void)fcntl(l->out, F_SETFL, O_NONBLOCK);
	return 0;
}

int launch_start(struct launch *l, char *const *argv, enum launch_output output, struct err *e)
{
	int link[2], out, ret;

	*l = (struct launch){ .link = -1, .out = -1 };
	ret = open_output(l, output, &out, e);
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
		return err_set(e, errno, "cannot open a socket: %s", strerror(errno));
	fflush(NULL);
	l->parent = fork();
	if (!l->parent)
		parent_main(link[1], argv, out);
	close(link[1]);
	l->link = link[0];
	if (output == LAUNCH_READ)
		close(out);
	if (l->parent < 0 || read(l->link, &l->child, sizeof(l->child)) != sizeof(l->child) ||
	    l->child <= 0)
		return err_set(e, EAGAIN, "cannot start a process for %s", argv[0]);
	return 0;
}

static bool child_has_ended(const struct launch *l)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)l->child);
	return proc_has_ended(task);
}

bool launch_failed(struct launch *l, const char *name, struct err *e)
{
	const struct launch_ask a = { .pid = l->child };
	struct pollfd fd = { .fd = l->link, .events = POLLIN };
	struct launch_report r = { .pid = -1 };
	int ms = 0;

	/*
	 * The report of an error of execve(2) comes before that of the child's end, which may not
	 * have arrived yet.
	 */
	if (l->link >= 0 && child_has_ended(l) && write(l->link, &a, sizeof(a)) == sizeof(a))
		ms = REPORT_MS;
	while (l->link >= 0 && r.pid != l->child && poll(&fd, 1, ms) > 0 &&
	       read(l->link, &r, sizeof(r)) == sizeof(r))
		if (!r.pid) {
			err_clear(e);
			err_set(e, r.error, "cannot execute %.200s: %s", name, strerror(r.error));
			return true;
		}
	return false;
}

bool launch_wait(struct launch *l, pid_t pid, unsigned int ms, int *status)
{
	const struct launch_ask a = { .pid = pid ? pid : l->child };
	struct pollfd fd = { .fd = l->link, .events = POLLIN };
	struct launch_report r;

	if (write(l->link, &a, sizeof(a)) != sizeof(a))
		return false;
	while (poll(&fd, 1, (int)ms) > 0 && read(l->link, &r, sizeof(r)) == sizeof(r)) {
		if (r.pid != a.pid)
			continue;
		*status = r.status;
		return true;
	}
	return false;
}

void launch_end(struct launch *l, pid_t pid)
{
	const struct launch_ask a = { .pid = pid ? pid : l->child, .end = true, .all = !pid };
	int status;

	if (l->link < 0 || write(l->link, &a, sizeof(a)) != sizeof(a))
		return;
	(void)launch_wait(l, a.pid, 2 * LAUNCH_GRACE_MS, &status);
}

void launch_close(struct launch *l)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	if (l->link >= 0)
		close(l->link);
	if (l->out >= 0)
		close(l->out);
	for (unsigned int i = 0; l->parent > 0 && i < CLOSE_MS; i++) {
		if (waitpid(l->parent, NULL, WNOHANG))
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	*l = (struct launch){ .link = -1, .out = -1 };
}
