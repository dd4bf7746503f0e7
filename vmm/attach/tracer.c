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
 * include/linux/errno.h: the result of a wait with a time limit that a stop has interrupted. The
 * kernel resumes it by restart_syscall, which a thread's seccomp filter may forbid although it
 * allows the wait.
 */
#define ERESTART_RESTARTBLOCK 516
#define STOP_EVENT(status) ((status) >> 16)
/* Number of checks before this thread yields: a thread that runs a guest stops at once. */
#define SPINS 200
/* Number of further tries, and their interval, if PTRACE_SEIZE fails for no visible reason. */
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

/* Returns the process that traces the thread (the kernel reports the tracing thread), or 0. */
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

/*
 * Seizes the thread, and repeats that after EPERM, which means "not allowed", "traced" or "ending".
 * The last two pass, perhaps before tracer_check() sees them.
 */
int tracer_seize(struct tracee *t, pid_t tid, struct err *e)
{
	const struct timespec nap = { .tv_nsec = SEIZE_NAP_NS };

	*t = (struct tracee){ 0 };
	for (unsigned int i = 0; ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0; i++) {
		int error = errno;

		/* A thread of kvmprof that traced it and has just ended is about to detach. */
		if (error == EPERM && tracer_of(tid) != getpid() && tracer_check(tid, e))
			return -EBUSY;
		if (error != EPERM || i == SEIZE_TRIES)
			return not_seized(tid, error, e);
		nanosleep(&nap, NULL);
	}
	t->tid = tid;
	return 0;
}

/* Returns a mask of signals of the thread's status; all signals if it cannot be read. */
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
	/*
	 * Signals that a thread causes itself, that are no kicks, and glibc's own (nptl: 32 and
	 * 33).
	 */
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

/*
 * Returns whether a wait with a time limit was interrupted, and the kernel is about to resume it.
 */
static bool is_broken_wait(const struct user_regs_struct *r)
{
	return (long)r->rax == -ERESTART_RESTARTBLOCK && (long)r->orig_rax >= 0;
}

/*
 * Returns whether the thread is before the system call that returned with `broken`, as before() has
 * put it there.
 */
static bool is_before(const struct user_regs_struct *broken, const struct user_regs_struct *r)
{
	return r->rip == broken->rip - SYSCALL_LEN && r->rax == broken->orig_rax &&
	       (long)r->orig_rax < 0 && r->rdi == broken->rdi && r->rsi == broken->rsi &&
	       r->rdx == broken->rdx && r->rsp == broken->rsp;
}

/* Returns the registers with which the system call that returned with `broken` begins anew. */
static struct user_regs_struct before(const struct user_regs_struct *broken)
{
	struct user_regs_struct r = *broken;

	r.rip -= SYSCALL_LEN;
	r.rax = r.orig_rax;
	r.orig_rax = (unsigned long long)-1;
	return r;
}

/*
 * Stores the registers with which an interrupted KVM_RUN is restarted in *r: before the call, and
 * without a second restart, as the kernel does it (arch/x86/kernel/signal.c,
 * arch_do_signal_or_restart). Returns false if no KVM_RUN was interrupted.
 */
static bool restart_regs(const struct tracee *t, struct user_regs_struct *r)
{
	if (!is_run(&t->regs) || (long)t->regs.rax != -EINTR)
		return false;
	*r = before(&t->regs);
	return true;
}

/*
 * Makes an interrupted wait begin anew, so that the kernel does not resume it by restart_syscall. A
 * call that stores the remaining time where it read its limit (nanosleep in most programs) waits no
 * longer than before. Called as soon as a stop is seen: if kvmprof is killed later, the thread
 * continues in the same way.
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

/*
 * Makes the interrupted call return EINTR after all. Some VMMs recognise a kick by EINTR alone, so
 * they get it together with a signal.
 */
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
 * Prepares a thread for a signal of others. A handler makes the call that it interrupted return
 * EINTR, on which the VMM may rely. After a signal without a handler the kernel resumes a wait by
 * restart_syscall.
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
 * Returns whether this may be kvmprof's own signal. A pending signal of the VMM with the same
 * number replaces it (kernel/signal.c, legacy_queue), so both count. If the VMM sees the signal, it
 * is made to look like one of its own kicks.
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
 * Handles a status of waitpid(2). Returns whether it is a stop that kvmprof caused, by a request or
 * by its own signal.
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
		/*
		 * A stop of the whole process by SIGSTOP or a similar signal: the thread stays
		 * stopped, and is listened to.
		 */
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
	 * Another signal is passed on. The kernel forgets a stop that was requested between a
	 * timer's signal and its stop (kernel/signal.c, dequeue_signal and ptrace_stop), so it is
	 * requested again.
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
			/* A late stop, for which the caller no longer waits. */
			tracer_skip_stop(t, TRACER_FREELY);
			continue;
		}
		/* After a stop at kvmprof's own signal the requested stop is still to come. */
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

/*
 * Resumes a thread by the ptrace request `how`, with the signal at which it is held if that is a
 * kick.
 */
static int resume(struct tracee *t, int how)
{
	long signo = t->by_own && t->own.kick ? t->own.signo : 0;

	/* The requested stop may be forgotten, see take_status(). */
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
		/* The thread is before KVM_RUN already; unhide() can still make it return EINTR. */
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

/*
 * Returns whether a handler of the VMM is about to run, so that the interrupted call must return
 * EINTR.
 */
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
	/* The thread must be stopped for a detach. */
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
