/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_guard.h"

#include "base/clock.h"
#include "base/fds.h"
#include "base/proc.h"
#include "base/reporter.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Interval between two checks of the tracer. */
#define LOOK_MS 100
/* Interval at which the guard checks whether there is a tracer. It is not bound until then. */
#define BEGIN_MS 2
/* Limit of the wait for the guard's end. */
#define STOP_NS NSEC_PER_SEC
#define STOP_NAP_NS 1000000

/* -- the guard's process: a copy of one with threads, in which only system calls are made ------- */

static size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static bool enter_cgroup(const char *mount, const char *group, size_t len)
{
	char path[512];
	bool entered;
	int fd;

	snprintf(path, sizeof(path), "%s%.*s/cgroup.procs", mount, (int)len, group);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	entered = fd >= 0 && write(fd, "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return entered;
}

/*
 * Moves to the topmost cgroup (version 2) that accepts this process, so that what freezes kvmprof
 * does not freeze its guard. Without the right to do that, as in a container, the guard stays where
 * it is.
 */
static void leave_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char text[1024], *group, *end;

	read_file("/proc/self/cgroup", text, sizeof(text));
	group = !strncmp(text, "0::/", 4) ? text : strstr(text, "\n0::/");
	if (!group)
		return;
	group = strchr(group, '/');
	end = strchr(group, '\n');
	if (end)
		*end = 0;
	/* In the topmost group there is nothing to leave. */
	if (!group[1])
		return;
	for (size_t m = 0; m < sizeof(mounts) / sizeof(mounts[0]); m++)
		for (const char *at = group; at; at = strchr(at + 1, '/'))
			if (enter_cgroup(mounts[m], group, (size_t)(at - group)))
				return;
}

/* Returns the state of the tracer's thread (proc(5), stat), or 0 if the thread has ended. */
static char tracer_state(int stat_fd)
{
	char text[PROC_STAT_MAX];
	const char *stat = proc_stat_of(stat_fd, text);

	return stat ? *stat : 0;
}

/* Returns the time of the thread on processors (schedstat), or ATTACH_GUARD_RAN_UNKNOWN. */
static uint64_t tracer_ran_ns(int schedstat_fd)
{
	char text[96];
	const ssize_t n = schedstat_fd < 0 ? -1 : pread(schedstat_fd, text, sizeof(text) - 1, 0);
	uint64_t ran = ATTACH_GUARD_RAN_UNKNOWN;

	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%" SCNu64, &ran) == 1 ? ran : ATTACH_GUARD_RAN_UNKNOWN;
}

bool attach_guard_look(struct attach_guard_looks *l, char state, uint64_t ran_ns)
{
	/* The kernel has detached from all threads that an ended thread traced. */
	if (!state || state == 'Z' || state == 'X')
		return false;
	l->late +=
		state == 'R' && l->all && ran_ns == l->ran_ns && ran_ns != ATTACH_GUARD_RAN_UNKNOWN;
	l->ran_ns = ran_ns;
	l->all++;
	l->asleep += state != 'R';
	return l->asleep >= ATTACH_GUARD_LOOKS || l->all - l->late >= ATTACH_GUARD_LOOKS_RUNNABLE ||
	       l->all >= ATTACH_GUARD_LOOKS_LATE;
}

static void say_that_it_was_killed(pid_t process)
{
	char text[256];
	int n = snprintf(
		text, sizeof(text),
		"kvmprof: process %d was stopped, frozen or stuck while it traced a machine: its "
		"guard has ended it, so that the machine goes on\n",
		(int)process);

	reporter_write_raw(text, (size_t)n);
}

/* Waits until a thread traces. Returns that thread, or 0 if the guard is not needed any more. */
static pid_t wait_for_tracer(int pipe_fd, const struct attach_guard_page *page)
{
	struct pollfd end = { .fd = pipe_fd, .events = POLLIN };
	pid_t tracer;

	while (!(tracer = atomic_load(&page->tracer)))
		if (poll(&end, 1, BEGIN_MS))
			return 0;
	return tracer;
}

static int open_of_thread(pid_t process, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)process, (int)tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Checks the tracer until the guard is not needed any more. The tracer is one thread during an
 * attach, so that its files in /proc are opened once.
 */
static void watch(int pipe_fd, const struct attach_guard_page *page)
{
	const pid_t process = getppid();
	const int pidfd = (int)syscall(SYS_pidfd_open, process, 0);
	const pid_t tracer = wait_for_tracer(pipe_fd, page);
	const int stat_fd = tracer ? open_of_thread(process, tracer, "stat") : -1;
	const int schedstat_fd = tracer ? open_of_thread(process, tracer, "schedstat") : -1;
	struct pollfd end = { .fd = pipe_fd, .events = POLLIN };
	struct attach_guard_looks looks = { 0 };
	uint64_t seen = 0;

	if (pidfd < 0 || stat_fd < 0)
		return;
	/*
	 * All system calls from here on are in the list of THREAD_ATTACH_GUARD
	 * (profile/record/sandbox/calls.c).
	 */
	thread_bind(THREAD_ATTACH_GUARD);
	/* The pipe is closed when the parent ends or stops the guard. */
	while (poll(&end, 1, LOOK_MS) == 0) {
		const uint64_t beats = atomic_load(&page->beats);

		if (!atomic_load(&page->tracer) || beats != seen) {
			seen = beats;
			looks = (struct attach_guard_looks){ 0 };
			continue;
		}
		if (!attach_guard_look(&looks, tracer_state(stat_fd), tracer_ran_ns(schedstat_fd)))
			continue;
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
			say_that_it_was_killed(process);
		return;
	}
}

static void guard_main(int pipe_fd, const struct attach_guard_page *page)
{
	const int keep[] = { STDERR_FILENO, pipe_fd };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "kvmprof-guard");
	fds_close_others(keep, 2);
	leave_cgroup();
	watch(pipe_fd, page);
	/* exit_group(2) directly, because exit handlers are for kvmprof's own process. */
	syscall(SYS_exit_group, 0);
}

/* -- in kvmprof ---------------------------------------------------------------------------- */

int attach_guard_start(struct attach_guard *g, struct err *e)
{
	int fd[2], ret;
	pid_t pid;

	*g = (struct attach_guard){ .pipe_fd = -1 };
	/* The guard, a copy of this process, allocates nothing. */
	ret = thread_bind_prepare(THREAD_ATTACH_GUARD);
	if (ret)
		return err_set(e, ret, "cannot bind a process: %s", strerror(ret));
	g->page = mmap(NULL, sizeof(*g->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (g->page == MAP_FAILED) {
		g->page = NULL;
		return err_nomem(e);
	}
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot open a pipe: %s", strerror(errno));
	g->pipe_fd = fd[1];
	pid = fork();
	if (pid == 0) {
		/* The guard must see the end of the pipe when kvmprof has ended. */
		close(fd[1]);
		guard_main(fd[0], g->page);
	}
	close(fd[0]);
	if (pid < 0)
		return err_set(e, errno, "cannot start a process: %s", strerror(errno));
	g->pid = pid;
	return 0;
}

void attach_guard_stop(struct attach_guard *g)
{
	const uint64_t end = clock_mono_ns() + STOP_NS;
	const struct timespec nap = { .tv_nsec = STOP_NAP_NS };

	if (g->pipe_fd >= 0)
		close(g->pipe_fd);
	while (g->pid && waitpid(g->pid, NULL, WNOHANG) == 0 && clock_mono_ns() < end)
		nanosleep(&nap, NULL);
	if (g->page)
		munmap(g->page, sizeof(*g->page));
	*g = (struct attach_guard){ .pipe_fd = -1 };
}

void attach_guard_watch(struct attach_guard *g)
{
	attach_guard_beat(g);
	if (g->page)
		atomic_store(&g->page->tracer, (pid_t)syscall(SYS_gettid));
}

void attach_guard_unwatch(struct attach_guard *g)
{
	if (g->page)
		atomic_store(&g->page->tracer, 0);
}
