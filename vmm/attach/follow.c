/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/follow.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kvm.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Interval at which descriptors are listed: processes do not stop when they open one. */
#define LOOK_NS 1000000u
#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC)
#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define VM_LINK "anon_inode:kvm-vm"
#define VCPU_LINK "anon_inode:kvm-vcpu:"

/* -- threads and processes ---------------------------------------------------------------------- */

static struct follow_thread *thread_of(struct follow *f, pid_t tid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->thread[i].t.tid == tid)
			return &f->thread[i];
	return NULL;
}

/* Returns the process of a thread, or 0 if it has ended. */
static pid_t process_of(pid_t tid)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)tid);
	return proc_status_pid(task, "Tgid");
}

static struct follow_process *find_process(struct follow *f, pid_t pid)
{
	for (unsigned int i = 0; i < f->nprocesses; i++)
		if (f->process[i].pid == pid)
			return &f->process[i];
	return NULL;
}

static void add_process(struct follow *f, pid_t pid)
{
	if (pid && !find_process(f, pid) && f->nprocesses < FOLLOW_MAX_PROCESSES)
		f->process[f->nprocesses++] = (struct follow_process){ .pid = pid };
}

/*
 * Adds a thread and returns it, or returns NULL if out of memory. The thread is traced all the
 * same, but not held.
 */
static struct follow_thread *add_thread(struct follow *f, pid_t tid)
{
	struct follow_thread *t;

	if (ARRAY_ROOM(f->thread, f->n, f->cap))
		return NULL;
	t = &f->thread[f->n++];
	*t = (struct follow_thread){ .t = { .tid = tid }, .process = process_of(tid) };
	add_process(f, t->process);
	return t;
}

static void forget_thread(struct follow *f, const struct follow_thread *t)
{
	const pid_t process = t->process;
	size_t left = 0;

	f->thread[t - f->thread] = f->thread[--f->n];
	for (size_t i = 0; i < f->n; i++)
		left += f->thread[i].process == process;
	for (unsigned int i = 0; !left && i < f->nprocesses; i++)
		if (f->process[i].pid == process)
			f->process[i] = f->process[--f->nprocesses];
}

/* -- what a process has ------------------------------------------------------------------------- */

static void look_at_descriptors(struct follow *f, struct follow_process *p)
{
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;
	char path[320], link[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)p->pid, entry->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		p->has_vm |= !strcmp(link, VM_LINK);
		p->has_vcpu |= !strncmp(link, VCPU_LINK, strlen(VCPU_LINK));
	}
	p->has_vm |= p->has_vcpu;
	if (p->has_vm && !f->vm_ns)
		f->vm_ns = clock_mono_ns();
}

/*
 * Returns whether a stop changes nothing for the thread: it runs, or waits in a call that the
 * kernel restarts by itself. epoll_wait and others would return EINTR (signal(7)).
 */
static bool is_interruptible(const struct proc_syscall *c)
{
	static const long calls[] = { SYS_futex,     SYS_ppoll,		  SYS_poll,
				      SYS_nanosleep, SYS_clock_nanosleep, SYS_ioctl };

	if (c->runs)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (c->number == calls[i])
			return true;
	return false;
}

/*
 * Returns whether this is the first thread of its process. It makes many calls and rarely runs a
 * vCPU, so it is not stopped at its calls.
 */
static bool is_leader(const struct follow_thread *t)
{
	return t->t.tid == t->process;
}

/* Makes the threads of processes with vCPUs stop at their system calls, and no others. */
static void choose_stops(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct follow_thread *t = &f->thread[i];
		const struct follow_process *p = find_process(f, t->process);
		const bool wanted = p && p->has_vcpu && (!f->pid || f->pid == p->pid);
		struct proc_syscall call;
		char task[48];

		if (!wanted || t->calls || t->t.asked || t->at_run)
			continue;
		snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)t->process, (int)t->t.tid);
		if (proc_syscall(task, &call) &&
		    (is_leader(t) ? process_is_kvm_run(&call) : is_interruptible(&call)))
			t->t.asked = ptrace(PTRACE_INTERRUPT, t->t.tid, NULL, NULL) == 0;
	}
}

static void follow_look(struct follow *f)
{
	const uint64_t now = clock_mono_ns();

	if (f->settled || now - f->looked_ns < LOOK_NS)
		return;
	f->looked_ns = now;
	for (unsigned int i = 0; !f->pid && i < f->nprocesses; i++)
		look_at_descriptors(f, &f->process[i]);
	choose_stops(f);
}

/* -- stops -------------------------------------------------------------------------------------- */

static void go_on(struct follow *f, struct follow_thread *t, int signo)
{
	/* Only the VMM's process is still needed. */
	if (f->pid && t->process != f->pid) {
		ptrace(PTRACE_DETACH, t->t.tid, NULL, (void *)(intptr_t)signo);
		forget_thread(f, t);
		return;
	}
	t->calls = t->calls && !f->settled;
	ptrace(t->calls ? PTRACE_SYSCALL : PTRACE_CONT, t->t.tid, NULL, (void *)(intptr_t)signo);
}

/*
 * Holds the thread if it is at a KVM_RUN, at its beginning or interrupted. Returns whether it is.
 */
static bool hold_at_run(struct follow *f, struct follow_thread *t)
{
	struct user_regs_struct r;

	if (f->settled || ptrace(PTRACE_GETREGS, t->t.tid, NULL, &r) < 0 ||
	    (long)r.orig_rax != SYS_ioctl || (unsigned int)r.rsi != KVM_RUN ||
	    process_is_worker(t->process, t->t.tid))
		return false;
	if (!f->pid) {
		f->pid = t->process;
		f->run_ns = clock_mono_ns();
	}
	t->t.regs = r;
	t->t.held = t->at_run = true;
	t->t.asked = false;
	return true;
}

static void stopped_by_event(struct follow *f, struct follow_thread *t, int status)
{
	struct follow_process *p = find_process(f, t->process);
	const bool is_vmm = p && p->has_vcpu && (!f->pid || f->pid == p->pid);

	/* A stop of the whole process by SIGSTOP or a similar signal: it stays stopped. */
	if (WSTOPSIG(status) != SIGTRAP) {
		ptrace(PTRACE_LISTEN, t->t.tid, NULL, NULL);
		return;
	}
	t->t.asked = false;
	if (is_vmm && hold_at_run(f, t))
		return;
	t->calls = is_vmm && !is_leader(t) && !f->settled;
	if (f->pid && t->process != f->pid)
		go_on(f, t, 0);
	else
		tracer_skip_stop(&t->t, t->calls ? TRACER_TO_CALL : TRACER_FREELY);
}

/*
 * Handles a new thread, which is stopped before its first instruction. The descriptors of its
 * process decide how it is resumed.
 */
static void see_new(struct follow *f, struct follow_thread *t)
{
	struct follow_process *p = find_process(f, t->process);

	if (p && !p->has_vcpu && !f->pid)
		look_at_descriptors(f, p);
}

static void see_exec(struct follow *f, struct follow_thread *t)
{
	unsigned long before = 0;
	struct follow_thread *old;
	const pid_t tid = t->t.tid;

	/* The thread that calls execve(2) takes the number of its process; all others end. */
	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &before) == 0 && (pid_t)before != tid) {
		old = thread_of(f, (pid_t)before);
		if (old)
			forget_thread(f, old);
		t = thread_of(f, tid);
	}
	if (!f->exec_ns)
		f->exec_ns = clock_mono_ns();
	t->calls = false;
}

static void follow_status(struct follow *f, pid_t tid, int status)
{
	struct follow_thread *t = thread_of(f, tid);
	const int event = status >> 16;
	bool is_new = !t;

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		if (t)
			forget_thread(f, t);
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	t = t ? t : add_thread(f, tid);
	if (!t) {
		ptrace(PTRACE_CONT, tid, NULL, NULL);
		return;
	}
	if (is_new)
		see_new(f, t);
	if (event == PTRACE_EVENT_STOP) {
		stopped_by_event(f, t, status);
	} else if (event) {
		if (event == PTRACE_EVENT_EXEC)
			see_exec(f, t);
		t = thread_of(f, tid);
		if (t)
			go_on(f, t, 0);
	} else if (WSTOPSIG(status) == SYSCALL_STOP) {
		if (!hold_at_run(f, t))
			go_on(f, t, 0);
	} else {
		t->t.passed_on++;
		go_on(f, t, WSTOPSIG(status));
	}
}

/* -- from the beginning to the first KVM_RUN ---------------------------------------------------- */

static int seize_all(struct follow *f, pid_t pid, struct err *e)
{
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		const pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || thread_of(f, tid) || process_is_worker(pid, tid))
			continue;
		if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(intptr_t)OPTIONS) == 0) {
			if (!add_thread(f, tid))
				return err_nomem(e);
		} else if (tid == pid && errno != ESRCH) {
			const int error = errno;

			return tracer_check(tid, e) ? -e->code
						    : err_set(e, error,
							      "process %d: cannot be traced: %s: "
							      "run as root, or "
							      "set kernel.yama.ptrace_scope to 0",
							      (int)pid, strerror(error));
		}
	}
	return 0;
}

int follow_begin(struct follow *f, pid_t pid, struct err *e)
{
	int ret;

	*f = (struct follow){ 0 };
	/* Twice, for threads that began meanwhile. New threads of traced threads are traced. */
	for (unsigned int i = 0; i < 2; i++) {
		ret = seize_all(f, pid, e);
		if (ret)
			return ret;
	}
	return f->n ? 0 : err_set(e, ESRCH, "process %d: there is none", (int)pid);
}

int follow_step(struct follow *f, struct err *e)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG)) > 0)
		follow_status(f, tid, status);
	if (!f->n)
		return err_set(e, ECHILD,
			       "the VMM has ended before it ran a virtual machine under KVM");
	follow_look(f);
	return f->pid != 0;
}

static bool is_taken(const struct follow *f, pid_t tid)
{
	for (unsigned int i = 0; i < f->ntaken; i++)
		if (f->taken[i] == tid)
			return true;
	return false;
}

void follow_handle_stops(struct follow *f)
{
	siginfo_t info;
	int status;

	if (!f->n)
		return;
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info,
			   WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) < 0 ||
		    !info.si_pid)
			return;
		/* The caller of follow_hand_over_next() handles a vCPU's thread. */
		if (is_taken(f, info.si_pid))
			return;
		if (waitpid(info.si_pid, &status, __WALL | __WNOTHREAD | WNOHANG) != info.si_pid)
			return;
		follow_status(f, info.si_pid, status);
	}
}

unsigned int follow_held_count(const struct follow *f)
{
	unsigned int held = 0;

	for (size_t i = 0; i < f->n; i++)
		held += f->thread[i].at_run;
	return held;
}

void follow_hold_again(struct follow *f)
{
	f->settled = false;
	f->ntaken = 0;
}

void follow_settle(struct follow *f)
{
	f->settled = true;
}

bool follow_hand_over_next(struct follow *f, struct tracee *out)
{
	for (size_t i = 0; i < f->n; i++) {
		struct follow_thread *t = &f->thread[i];

		if (!t->at_run || f->ntaken == ATTACH_MAX_VCPUS)
			continue;
		f->taken[f->ntaken++] = t->t.tid;
		/* Without these options, further events would look like signals. */
		ptrace(PTRACE_SETOPTIONS, t->t.tid, NULL, NULL);
		*out = t->t;
		f->thread[i] = f->thread[--f->n];
		return true;
	}
	return false;
}

/*
 * Returns whether the requested stop has happened, and the thread is held. Handles all other events
 * of the thread; *t may be removed then.
 */
static bool has_been_held(struct follow *f, pid_t tid)
{
	struct follow_thread *t;
	siginfo_t info;
	int status;

	while ((t = thread_of(f, tid))) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)tid, &info,
			   WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) < 0 ||
		    !info.si_pid)
			return false;
		if (info.si_code == CLD_TRAPPED &&
		    info.si_status == (SIGTRAP | PTRACE_EVENT_STOP << 8))
			return tracer_has_stopped(&t->t);
		if (waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) != tid)
			return false;
		follow_status(f, tid, status);
	}
	return false;
}

bool follow_hand_over(struct follow *f, pid_t tid, uint64_t timeout_ns, struct tracee *out)
{
	const uint64_t until = clock_mono_ns() + timeout_ns;
	struct follow_thread *t = thread_of(f, tid);

	if (!t || f->ntaken == ATTACH_MAX_VCPUS || tracer_request_stop(&t->t) < 0)
		return false;
	while (!has_been_held(f, tid)) {
		if (!thread_of(f, tid) || clock_mono_ns() > until)
			return false;
		sched_yield();
	}
	t = thread_of(f, tid);
	f->taken[f->ntaken++] = tid;
	ptrace(PTRACE_SETOPTIONS, tid, NULL, NULL);
	*out = t->t;
	f->thread[t - f->thread] = f->thread[--f->n];
	return true;
}

void follow_readd(struct follow *f, struct tracee *t)
{
	struct follow_thread *again;
	unsigned int i = 0;

	while (i < f->ntaken && f->taken[i] != t->tid)
		i++;
	if (i < f->ntaken)
		f->taken[i] = f->taken[--f->ntaken];
	ptrace(PTRACE_SETOPTIONS, t->tid, NULL, (void *)(intptr_t)OPTIONS);
	tracer_release(t);
	again = add_thread(f, t->tid);
	if (again)
		again->t = *t;
}

void follow_suspend(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++)
		while (tracer_detach(&f->thread[i].t))
			;
	f->n = 0;
}

void follow_end(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->thread[i].at_run)
			(void)tracer_detach(&f->thread[i].t);
	free(f->thread);
	f->thread = NULL;
	f->n = f->cap = 0;
}
