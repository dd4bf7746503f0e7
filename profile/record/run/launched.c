/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/launched.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/signals.h"
#include "profile/record/run/run.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/attach/machines.h"
#include "vmm/attach/process.h"
#include "vmm/vm.h"
#include "vmm/end.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Interval at which new processes are examined: a small VMM runs its guest 10 ms after its start.
 */
#define WAIT_MS 1
/*
 * A new process is examined for this many intervals, because execve(2) follows fork(2) some time
 * later.
 */
#define NEW_LOOKS 500u
#define MAX_NEW 256u
/* Bytes of a command line that are searched for a name. */
#define COMMAND_MAX 4096u
/* The end of the last vCPU's thread is noticed before that of the process. */
#define END_MS 2000u

void run_launched_init(struct run_launched *l)
{
	*l = (struct run_launched){ .launch = { .link = -1, .out = -1 } };
}

uint64_t run_launched_deadline_ns(const struct run *r)
{
	const double seconds = r->opt->launch.timeout_s;

	return seconds > 0 ? r->start_ns + (uint64_t)(seconds * 1e9) : UINT64_MAX;
}

/* -- --wait ----------------------------------------------------------------------------------- */

/* Returns whether the command line is that of a program, or of a machine, with this name. */
static bool is_called(const char *command, size_t len, const char *wanted)
{
	const char *slash = strrchr(command, '/');
	char name[MACHINES_NAME_MAX];

	if (!strcmp(slash ? slash + 1 : command, wanted))
		return true;
	machines_name(name, sizeof(name), command, len);
	return !strcmp(name, wanted);
}

static bool is_wanted(pid_t pid, const char *wanted)
{
	char task[32], command[COMMAND_MAX];
	size_t n;

	if (pid <= 0)
		return false;
	snprintf(task, sizeof(task), "/proc/%d", (int)pid);
	n = proc_arguments(task, command, sizeof(command) - 1);
	command[n] = 0;
	/* The name is an argument of kvmprof, too. */
	return n && is_called(command, n, wanted) && !proc_runs_program(task, "kvmprof");
}

/* Returns a process with this name, or 0. */
static pid_t find_called(const char *wanted)
{
	cleanup_closedir DIR *d = opendir("/proc");
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		const pid_t pid = atoi(entry->d_name);

		if (is_wanted(pid, wanted))
			return pid;
	}
	return 0;
}

/* Processes that were started recently; all zero: none is known. */
struct newcomers {
	pid_t last; /* the last number that the kernel has assigned */
	struct {
		pid_t pid;
		unsigned int looks; /* number of examinations left */
	} at[MAX_NEW];
	unsigned int next;
};

/* Returns the number of the process that was started last (proc(5), /proc/loadavg), or 0. */
static pid_t last_process(void)
{
	cleanup_fclose FILE *f = fopen("/proc/loadavg", "re");
	int last = 0;

	return f && fscanf(f, "%*s %*s %*s %*s %d", &last) == 1 ? last : 0;
}

/*
 * Returns a new process with this name, or 0. After a jump of the numbers all processes are
 * examined.
 */
static pid_t find_new(struct newcomers *n, const char *wanted)
{
	const pid_t last = last_process();

	if (last < n->last || last - n->last > (pid_t)MAX_NEW) {
		n->last = last;
		return find_called(wanted);
	}
	while (n->last < last) {
		n->at[n->next].pid = ++n->last;
		n->at[n->next].looks = NEW_LOOKS;
		n->next = (n->next + 1) % MAX_NEW;
	}
	for (unsigned int i = 0; i < MAX_NEW; i++) {
		if (!n->at[i].looks)
			continue;
		n->at[i].looks--;
		if (is_wanted(n->at[i].pid, wanted))
			return n->at[i].pid;
	}
	return 0;
}

static int wait_for(struct run *r, pid_t *pid, struct err *e)
{
	const char *wanted = r->opt->launch.wait_for;
	struct pollfd signals = { .fd = r->signals.fd, .events = POLLIN };
	struct newcomers n = { 0 };
	int ret = 0;

	while (!ret && !(*pid = find_new(&n, wanted))) {
		if (poll(&signals, 1, WAIT_MS) > 0 && run_must_end(r))
			ret = err_set(e, EINTR, "interrupted before a VMM called %.60s was started",
				      wanted);
		else if (clock_mono_ns() >= run_launched_deadline_ns(r))
			ret = err_set(e, ETIMEDOUT,
				      "--timeout: no VMM called %.60s was started in %g s", wanted,
				      r->opt->launch.timeout_s);
	}
	return ret;
}

/*
 * Returns whether the process has vCPUs already: it may then be in any state, and is attached to as
 * any other.
 */
static bool has_vcpus(pid_t pid)
{
	cleanup_free struct process *p = calloc(1, sizeof(*p));
	struct err ignored = { 0 };

	return p && process_look(p, pid, &ignored) == 0;
}

/* -- the start and the end -------------------------------------------------------------------- */

int run_launched_begin(struct run *r, struct attach_config *cfg, struct err *e)
{
	const struct run_launch_options *o = &r->opt->launch;
	const enum launch_output output =
		r->json || run_options_to_stdout(r->opt) ? LAUNCH_TO_STDERR : LAUNCH_INHERIT;
	int ret;

	if (!o->argv && !o->wait_for)
		return 0;
	cfg->until_ns = o->timeout_s > 0 ? run_launched_deadline_ns(r) : 0;
	if (o->wait_for) {
		ret = wait_for(r, &cfg->pid, e);
		cfg->follows = !ret && !has_vcpus(cfg->pid);
		return ret;
	}
	ret = launch_start(&r->launched.launch, o->argv, o->until ? LAUNCH_READ : output, e);
	r->launched.started = !ret;
	/* From here on a signal must not leave the VMM behind. */
	if (!ret)
		run_report_signals();
	cfg->gives_up = signals_pending;
	cfg->pid = r->launched.launch.child;
	cfg->follows = true;
	return ret;
}

void run_launched_fail(struct run *r, struct err *e)
{
	struct run_launched *l = &r->launched;

	l->timed_out |= e->code == ETIMEDOUT && clock_mono_ns() >= run_launched_deadline_ns(r);
	if (!l->started)
		return;
	l->ended = true;
	if (launch_failed(&l->launch, r->opt->launch.argv[0], e))
		return;
	launch_end(&l->launch, 0);
}

void run_launched_copy_output(struct run_launched *l, struct console *c)
{
	uint8_t bytes[4096];
	ssize_t n;

	while (l->launch.out >= 0 && (n = read(l->launch.out, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			console_put(c, bytes[i]);
	}
	if (l->launch.out >= 0)
		close(l->launch.out);
	l->launch.out = -1;
}

void run_launched_end(struct run *r)
{
	struct run_launched *l = &r->launched;
	struct attach_facts facts;
	int status;

	if (!l->started || l->ended)
		return;
	l->ended = true;
	foreign_facts(r->vm, &facts);
	if (vm_result(r->vm)->reason != VM_END_GONE) {
		launch_end(&l->launch, facts.pid);
	} else if (launch_wait(&l->launch, facts.pid, END_MS, &status)) {
		l->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	run_launched_copy_output(l, &r->console);
}

int run_launched_status(const struct run *r)
{
	return r->launched.timed_out ? RUN_STATUS_TIMEOUT : r->launched.status;
}

void run_launched_close(struct run_launched *l)
{
	launch_close(&l->launch);
}
