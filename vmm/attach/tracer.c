/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/tracer.h"

#include "base/clock.h"
#include "base/proc.h"

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

#define SYSCALL_LEN 2 /* 0f 05 */
#define STOP_EVENT(status) ((status) >> 16)
/* Looks before the processor is given away: a thread that runs a guest stops at once. */
#define SPINS 200

static pid_t status_pid(pid_t tid, const char *name)
{
	char task[32], value[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)tid);
	return proc_status(task, name, value, sizeof(value)) ? atoi(value) : 0;
}

/* The process that traces the thread (the kernel names the thread that does); 0: nobody. */
static pid_t tracer_of(pid_t tid)
{
	pid_t tracer = status_pid(tid, "TracerPid");

	return tracer ? status_pid(tracer, "Tgid") : 0;
}

static int not_seized(pid_t tid, int error, struct err *e)
{
	pid_t tracer = tracer_of(tid);

	if (tracer)
		return err_set(e, EBUSY,
			       "thread %d: process %d traces it already, and only one can: end "
			       "that first (a debugger, strace, another kvmprof)",
			       (int)tid, (int)tracer);
	if (error == EPERM)
		return err_set(e, error, "thread %d: cannot be traced: CAP_SYS_PTRACE is missing",
			       (int)tid);
	return err_set(e, error, "thread %d: PTRACE_SEIZE failed", (int)tid);
}

int tracer_seize(struct tracee *t, pid_t tid, struct err *e)
{
	*t = (struct tracee){ 0 };
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return not_seized(tid, errno, e);
	t->tid = tid;
	return 0;
}

/*
 * As the kernel itself restarts a system call: back in front of it, and no second restart
 * (arch/x86/kernel/signal.c, arch_do_signal_or_restart). Only what was broken off.
 */
static bool restart_regs(const struct tracee *t, struct user_regs_struct *r)
{
	int fd;

	if (!tracer_is_in_run(t, &fd) || (long)t->regs.rax != -EINTR)
		return false;
	*r = t->regs;
	r->rip -= SYSCALL_LEN;
	r->rax = SYS_ioctl;
	r->orig_rax = (unsigned long long)-1;
	return true;
}

/* Some VMMs know by EINTR alone that they were kicked: with a signal they get it back. */
static void unhide(struct tracee *t)
{
	struct user_regs_struct now, ours;

	if (!t->hidden)
		return;
	t->hidden = false;
	if (restart_regs(t, &ours) && ptrace(PTRACE_GETREGS, t->tid, NULL, &now) == 0 &&
	    now.rip == ours.rip && now.rax == ours.rax)
		ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
}

/* What a status of wait tells; true: it is the stop that we asked for. */
static bool take_status(struct tracee *t, int status)
{
	int signo;

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		t->gone = true;
		t->held = false;
		return false;
	}
	if (!WIFSTOPPED(status))
		return false;
	signo = WSTOPSIG(status);
	if (STOP_EVENT(status) == PTRACE_EVENT_STOP) {
		/* SIGSTOP and its like for the whole process: stay stopped, and listen. */
		if (signo != SIGTRAP) {
			ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
			return false;
		}
		return true;
	}
	/*
	 * Somebody else's signal: on with it. A stop that was asked for between a timer's signal
	 * and its stop is forgotten (kernel/signal.c, dequeue_signal and ptrace_stop): ask again.
	 */
	t->passed_on++;
	unhide(t);
	if (t->asked)
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)signo);
	return false;
}

static bool look(struct tracee *t)
{
	int status;

	if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid)
		return false;
	return take_status(t, status);
}

int tracer_ask(struct tracee *t)
{
	if (t->gone || (!t->asked && ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)) {
		t->gone = true;
		return -ESRCH;
	}
	t->asked = true;
	return 0;
}

bool tracer_has_stopped(struct tracee *t)
{
	while (!t->gone && look(t)) {
		if (!t->asked) {
			/* A stop that nobody waits for any more. */
			ptrace(PTRACE_CONT, t->tid, NULL, NULL);
			continue;
		}
		t->asked = false;
		if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0) {
			t->gone = true;
			return false;
		}
		t->held = true;
		return true;
	}
	return false;
}

int tracer_hold(struct tracee *t, uint64_t timeout_ns)
{
	uint64_t until = clock_mono_ns() + timeout_ns;

	if (tracer_ask(t) < 0)
		return -ESRCH;
	for (unsigned int i = 0; !tracer_has_stopped(t); i++) {
		if (t->gone)
			return -ESRCH;
		if (i > SPINS) {
			if (clock_mono_ns() > until)
				return -EAGAIN;
			sched_yield();
		}
	}
	return 0;
}

bool tracer_is_in_run(const struct tracee *t, int *fd)
{
	if ((long)t->regs.orig_rax != SYS_ioctl || (unsigned int)t->regs.rsi != KVM_RUN)
		return false;
	*fd = (int)t->regs.rdi;
	return true;
}

void tracer_release(struct tracee *t, bool hide)
{
	struct user_regs_struct r;

	if (!t->held)
		return;
	t->held = false;
	t->hidden = hide && restart_regs(t, &r) && ptrace(PTRACE_SETREGS, t->tid, NULL, &r) == 0;
	if (ptrace(PTRACE_CONT, t->tid, NULL, NULL) < 0)
		t->gone = errno == ESRCH;
}

static bool has_pending(pid_t tid)
{
	siginfo_t info;
	struct __ptrace_peeksiginfo_args own = { .nr = 1 },
					 shared = { .flags = PTRACE_PEEKSIGINFO_SHARED, .nr = 1 };

	return ptrace(PTRACE_PEEKSIGINFO, tid, &own, &info) > 0 ||
	       ptrace(PTRACE_PEEKSIGINFO, tid, &shared, &info) > 0;
}

void tracer_detach(struct tracee *t)
{
	if (!t->tid || t->gone)
		return;
	/* It has to stand still for that. */
	for (int i = 0; i < 1000 && !t->held && !t->gone; i++)
		tracer_hold(t, NSEC_PER_SEC / 100);
	if (t->held) {
		struct user_regs_struct r;

		/* What waits for it is delivered when we are gone: it must see EINTR then. */
		if (!has_pending(t->tid) && restart_regs(t, &r))
			ptrace(PTRACE_SETREGS, t->tid, NULL, &r);
		ptrace(PTRACE_DETACH, t->tid, NULL, NULL);
	}
	*t = (struct tracee){ 0 };
}
