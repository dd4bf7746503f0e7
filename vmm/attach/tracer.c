/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/tracer.h"

#include "base/clock.h"
#include "base/proc.h"
#include "vmm/attach/process.h"

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
#include <time.h>
#include <unistd.h>

#define SYSCALL_LEN 2 /* 0f 05 */
/*
 * include/linux/errno.h: what a wait with a time limit has returned when a stop has broken it off. The kernel
 * resumes it by restart_syscall, which a thread's seccomp filter may forbid although it allows the wait.
 */
#define ERESTART_RESTARTBLOCK 516
#define STOP_EVENT(status) ((status) >> 16)
/* Looks before the processor is given away: a thread that runs a guest stops at once. */
#define SPINS 200
/* Where PTRACE_SEIZE fails for no reason that is seen: so many tries more, so long apart. */
#define SEIZE_TRIES 20u
#define SEIZE_NAP_NS 1000000
/* Each try takes 10 ms. */
#define DETACH_TRIES 50

static pid_t status_pid(pid_t tid, const char *name)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)tid);
	return proc_status_pid(task, name);
}

/* The process that traces the thread (the kernel names the thread that does); 0: none. */
static pid_t tracer_of(pid_t tid)
{
	pid_t tracer = status_pid(tid, "TracerPid");

	return tracer ? status_pid(tracer, "Tgid") : 0;
}

static bool has_ended(pid_t tid)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)tid);
	return proc_has_ended(task);
}

static int not_seized(pid_t tid, int error, struct err *e)
{
	if (error == ESRCH || has_ended(tid))
		return err_set(e, ESRCH, "thread %d: it has ended", (int)tid);
	if (error != EPERM)
		return err_set(e, error, "thread %d: PTRACE_SEIZE: %s", (int)tid, strerror(error));
	if (!process_may_trace())
		return err_set(e, error,
			       "thread %d: cannot be traced: CAP_SYS_PTRACE is missing "
			       "(in a container: --cap-add SYS_PTRACE)",
			       (int)tid);
	return err_set(
		e, error,
		"thread %d: the kernel does not allow to trace it, though CAP_SYS_PTRACE is "
		"there: it may be in another user namespace, or a security module forbids it",
		(int)tid);
}

int tracer_check(pid_t tid, struct err *e)
{
	pid_t tracer = tracer_of(tid);

	return tracer ? err_set(e, EBUSY,
				"thread %d: process %d traces it already, and only one can: end "
				"that first (a debugger, strace, another kvmprof)",
				(int)tid, (int)tracer)
		      : 0;
}

/* EPERM says "not allowed", "traced" and "ending". The last two pass, perhaps before we look. */
int tracer_seize(struct tracee *t, pid_t tid, struct err *e)
{
	const struct timespec nap = { .tv_nsec = SEIZE_NAP_NS };

	*t = (struct tracee){ 0 };
	for (unsigned int i = 0; ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0; i++) {
		int error = errno;

		/* A thread of ours that traced it and has just ended is about to let it go. */
		if (error == EPERM && tracer_of(tid) != getpid() && tracer_check(tid, e))
			return -EBUSY;
		if (error != EPERM || i == SEIZE_TRIES)
			return not_seized(tid, error, e);
		nanosleep(&nap, NULL);
	}
	t->tid = tid;
	return 0;
}

/* A mask of signals of its status; all where it is not known. */
static uint64_t signal_mask(pid_t tid, const char *name)
{
	char task[32], value[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)tid);
	return proc_status(task, name, value, sizeof(value)) ? strtoull(value, NULL, 16)
							     : UINT64_MAX;
}

static uint64_t signal_bit(int signo)
{
	return UINT64_C(1) << (signo - 1);
}

int tracer_choose_own(pid_t tid, struct tracer_own *out, struct err *e)
{
	static const int silent[] = { SIGURG, SIGWINCH };
	/* Those that a thread brings about itself, that are no kicks, and glibc's own (nptl: 32 and 33). */
	static const int never[] = { SIGILL,  SIGTRAP, SIGBUS,	SIGFPE,	 SIGSEGV,
				     SIGSYS,  SIGABRT, SIGKILL, SIGSTOP, SIGCHLD,
				     SIGALRM, SIGPIPE, SIGIO,	32,	 33 };
	static const int usual[] = { SIGINT, SIGTERM, SIGHUP, SIGURG, SIGWINCH };
	uint64_t blocked = signal_mask(tid, "SigBlk"), caught = signal_mask(tid, "SigCgt"),
		 kicks = caught & ~blocked, all = 0;

	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		if (!((blocked | caught) & signal_bit(silent[i]))) {
			*out = (struct tracer_own){ .signo = silent[i] };
			return 0;
		}
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		kicks &= ~signal_bit(never[i]);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		all |= signal_bit(usual[i]);
	if ((blocked & all) != all || !kicks || kicks & (kicks - 1))
		return err_set(e, ENOTSUP,
			       "thread %d: no signal tells it of the host's clock: it blocks or "
			       "handles those that do nothing, and which one kicks its vCPU is not "
			       "known",
			       (int)tid);
	*out = (struct tracer_own){ .signo = __builtin_ctzll(kicks) + 1, .kick = true };
	return 0;
}

static bool is_run(const struct user_regs_struct *r)
{
	return (long)r->orig_rax == SYS_ioctl && (unsigned int)r->rsi == KVM_RUN;
}

/* Returns whether a wait with a time limit has been broken off, and the kernel is about to resume it. */
static bool is_broken_wait(const struct user_regs_struct *r)
{
	return (long)r->rax == -ERESTART_RESTARTBLOCK && (long)r->orig_rax >= 0;
}

/* In front of the system call that returned with `broken`, as restart_regs() has put it there. */
static bool is_before(const struct user_regs_struct *broken, const struct user_regs_struct *r)
{
	return r->rip == broken->rip - SYSCALL_LEN && r->rax == broken->orig_rax &&
	       (long)r->orig_rax < 0 && r->rdi == broken->rdi && r->rsi == broken->rsi &&
	       r->rdx == broken->rdx && r->rsp == broken->rsp;
}

/* The registers with which the system call that returned with `broken` begins anew. */
static struct user_regs_struct before(const struct user_regs_struct *broken)
{
	struct user_regs_struct r = *broken;

	r.rip -= SYSCALL_LEN;
	r.rax = r.orig_rax;
	r.orig_rax = (unsigned long long)-1;
	return r;
}

/*
 * As the kernel itself restarts a system call: back in front of it, and no second restart
 * (arch/x86/kernel/signal.c, arch_do_signal_or_restart). Only what was broken off.
 */
static bool restart_regs(const struct tracee *t, struct user_regs_struct *r)
{
	if (!is_run(&t->regs) || (long)t->regs.rax != -EINTR)
		return false;
	*r = before(&t->regs);
	return true;
}

/*
 * Makes a wait that was broken off begin anew, so that the kernel does not resume it by restart_syscall. A call that stores what
 * remains where it found its time limit (nanosleep in most programs) waits for no longer than before. Called as soon as a stop is seen: if
 * this process is killed later, the thread goes on in the same way.
 */
static void begin_wait_anew(struct tracee *t, const struct user_regs_struct *now)
{
	struct user_regs_struct r;

	if (!is_broken_wait(now))
		return;
	r = before(now);
	if (ptrace(PTRACE_SETREGS, t->tid, NULL, &r) < 0)
		return;
	t->hidden = true;
	t->broken = *now;
}

/* Some VMMs know by EINTR alone that they were kicked: with a signal they get it back. */
static void unhide(struct tracee *t)
{
	struct user_regs_struct now;

	if (!t->hidden)
		return;
	t->hidden = false;
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &now) == 0 && is_before(&t->broken, &now))
		ptrace(PTRACE_SETREGS, t->tid, NULL, &t->broken);
}

void tracer_skip_stop(struct tracee *t, enum tracer_resume_mode way)
{
	struct user_regs_struct now;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &now) == 0)
		begin_wait_anew(t, &now);
	ptrace(way == TRACER_TO_CALL ? PTRACE_SYSCALL : PTRACE_CONT, t->tid, NULL, NULL);
}

/*
 * Before a signal of others is passed on. A handler makes the call that it broke off return EINTR, which the VMM may
 * rely on. After a signal without a handler the kernel resumes a wait by restart_syscall.
 */
static void prepare_signal(struct tracee *t, int signo)
{
	struct user_regs_struct now;
	const bool waits = ptrace(PTRACE_GETREGS, t->tid, NULL, &now) == 0 && is_broken_wait(&now);

	if (!waits && !(t->hidden && is_broken_wait(&t->broken)))
		unhide(t);
	else if (signal_mask(t->tid, "SigCgt") & signal_bit(signo))
		unhide(t);
	else if (waits)
		begin_wait_anew(t, &now);
}

/*
 * Is it the number of our signal? One of the VMM's that is pending takes the place of ours (kernel/signal.c, legacy_queue), so
 * that both are looked at. To the VMM, if it sees it, ours is one of its own kicks.
 */
static bool is_own(const struct tracee *t, int signo)
{
	siginfo_t info;

	if (!t->own.signo || signo != t->own.signo)
		return false;
	if (t->own.kick && ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) == 0 &&
	    (info.si_code == POLL_IN || info.si_code == POLL_HUP)) {
		info = (siginfo_t){ .si_signo = signo, .si_code = SI_TKILL };
		info.si_pid = t->tid;
		ptrace(PTRACE_SETSIGINFO, t->tid, NULL, &info);
	}
	return true;
}

/*
 * Handles a status of waitpid(2). Returns whether it is a stop that we caused, by request or by our
 * own signal.
 */
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
		t->by_own = false;
		return true;
	}
	/* An event or a system call of a thread that was followed (follow.h). */
	if (STOP_EVENT(status) || signo == (SIGTRAP | 0x80)) {
		ptrace(PTRACE_CONT, t->tid, NULL, NULL);
		return false;
	}
	if (is_own(t, signo)) {
		t->by_own = true;
		return true;
	}
	/*
	 * Somebody else's signal: on with it. A stop that was asked for between a timer's signal
	 * and its stop is forgotten (kernel/signal.c, dequeue_signal and ptrace_stop): ask again.
	 */
	t->passed_on++;
	prepare_signal(t, signo);
	if (t->asked)
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)signo);
	return false;
}

static bool tracer_look(struct tracee *t)
{
	int status;

	if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid)
		return false;
	return take_status(t, status);
}

int tracer_request_stop(struct tracee *t)
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
	while (!t->gone && tracer_look(t)) {
		if (!t->asked && !t->by_own) {
			/* A late stop: the caller has given up waiting for it. */
			tracer_skip_stop(t, TRACER_FREELY);
			continue;
		}
		/* After a stop at our own signal the requested one is still to come. */
		t->asked = t->asked && t->by_own;
		if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0) {
			t->gone = true;
			return false;
		}
		t->held = true;
		t->hidden = t->hidden && is_before(&t->broken, &t->regs);
		begin_wait_anew(t, &t->regs);
		return true;
	}
	return false;
}

int tracer_hold(struct tracee *t, uint64_t timeout_ns)
{
	uint64_t until = clock_mono_ns() + timeout_ns;

	if (tracer_request_stop(t) < 0)
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

enum tracer_place tracer_place_of(const struct tracee *t, int *fd)
{
	const bool before_run = t->hidden && is_run(&t->broken);

	if (!before_run && !is_run(&t->regs))
		return TRACER_ELSEWHERE;
	*fd = (int)t->regs.rdi;
	return before_run ? TRACER_BEFORE_RUN : TRACER_IN_RUN;
}

/* With the signal that it stands at, if that is a kick. */
static int resume(struct tracee *t, int how)
{
	long signo = t->by_own && t->own.kick ? t->own.signo : 0;

	/* See take_status(): a stop that was asked for may be forgotten. */
	if (t->by_own && t->asked)
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	t->by_own = t->held = false;
	return ptrace((enum __ptrace_request)how, t->tid, NULL, (void *)signo) < 0 ? -errno : 0;
}

void tracer_release(struct tracee *t)
{
	struct user_regs_struct r;

	if (!t->held)
		return;
	if (t->by_own && t->own.kick) {
		unhide(t);
	} else if (!t->hidden && restart_regs(t, &r) &&
		   ptrace(PTRACE_SETREGS, t->tid, NULL, &r) == 0) {
		/* In front of KVM_RUN already: the EINTR that is owed stays the same. */
		t->hidden = true;
		t->broken = t->regs;
	}
	if (resume(t, PTRACE_CONT) == -ESRCH)
		t->gone = true;
}

static bool has_pending(pid_t tid)
{
	siginfo_t info;
	struct __ptrace_peeksiginfo_args own = { .nr = 1 },
					 shared = { .flags = PTRACE_PEEKSIGINFO_SHARED, .nr = 1 };

	return ptrace(PTRACE_PEEKSIGINFO, tid, &own, &info) > 0 ||
	       ptrace(PTRACE_PEEKSIGINFO, tid, &shared, &info) > 0;
}

/* Whether a handler of the VMM is about to run, so that what was broken off must return EINTR. */
static bool is_owed_eintr(const struct tracee *t)
{
	if (t->by_own && t->own.kick)
		return true;
	if (!t->hidden || !is_broken_wait(&t->broken))
		return has_pending(t->tid);
	return (signal_mask(t->tid, "SigPnd") | signal_mask(t->tid, "ShdPnd")) &
	       signal_mask(t->tid, "SigCgt") & ~signal_mask(t->tid, "SigBlk");
}

int tracer_detach(struct tracee *t)
{
	if (!t->tid || t->gone)
		return 0;
	/* It has to stand still for that. */
	for (int i = 0; i < DETACH_TRIES && !t->held && !t->gone; i++)
		tracer_hold(t, NSEC_PER_SEC / 100);
	if (t->held) {
		struct user_regs_struct r;

		/* A pending signal is delivered after the detach; the system call must return EINTR then. */
		if (is_owed_eintr(t))
			unhide(t);
		else if (!t->hidden && restart_regs(t, &r))
			ptrace(PTRACE_SETREGS, t->tid, NULL, &r);
		t->asked = false;
		resume(t, PTRACE_DETACH);
	} else if (!t->gone) {
		return -EAGAIN;
	}
	*t = (struct tracee){ 0 };
	return 0;
}

void tracer_abandon(struct tracee *t)
{
	if (t->tid && !t->gone && !t->held)
		(void)tracer_has_stopped(t);
	if (t->tid && !t->gone && (t->held || t->asked))
		(void)tracer_detach(t);
	*t = (struct tracee){ 0 };
}
