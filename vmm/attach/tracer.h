/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracer: stops and resumes the vCPU threads of another process, for some microseconds at a time.
 *
 * PTRACE_SEIZE neither stops a thread nor sends it a signal; PTRACE_INTERRUPT makes KVM_RUN return
 * as any signal would. If kvmprof's thread dies in whatever way, the kernel detaches from all
 * tracees, and nothing of kvmprof is left in them. Signals for a held thread are passed on. A
 * KVM_RUN that only kvmprof has interrupted is restarted, so that the VMM does not see it return.
 * With a signal of its own the VMM sees that, as always. The same is done for waits with a time
 * limit, which the kernel would resume by restart_syscall: not every VMM's seccomp filter allows
 * that call.
 *
 * All functions are called by the thread of kvmprof that called tracer_seize(), because ptrace(2)
 * binds a tracee to the thread that seized it.
 */
#ifndef KVMPROF_VMM_ATTACH_TRACER_H
#define KVMPROF_VMM_ATTACH_TRACER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * A signal that the kernel sends to the thread at an event of kvmprof, an overflow of a counter
 * (counter.h). The thread stops at it, like at any signal while it is traced, and is held exactly
 * at the event, which a requested stop cannot achieve. Others may send the same signal: the caller
 * must check whether there was an event.
 */
struct tracer_own {
	int signo; /* 0: there is none */
	/*
	 * The VMM uses this signal to kick its vCPU. It is delivered, because a signal of the VMM
	 * may have merged with it. Any other signal is hidden from the VMM.
	 */
	bool kick;
};

struct tracee {
	pid_t tid; /* 0: none */
	bool asked, held;
	struct tracer_own own;
	bool by_own;		      /* held: at that signal */
	bool gone;		      /* it has ended */
	struct user_regs_struct regs; /* registers of the thread, while it is held */
	/* KVM_RUN, or a wait, is about to restart, so that the VMM does not see the stop. */
	bool hidden;
	struct user_regs_struct broken; /* hidden: the registers with which that had returned */
	uint64_t passed_on;		/* signals */
};

/* The place at which a thread is held. */
enum tracer_place {
	TRACER_ELSEWHERE, /* not in KVM_RUN: the VMM works, or waits */
	TRACER_IN_RUN,	  /* in KVM_RUN, which has returned for kvmprof or is about to */
	/* before a KVM_RUN that kvmprof interrupted: no guest has run since the last stop */
	TRACER_BEFORE_RUN,
};

/*
 * Begins to trace a thread, which runs on. Waits some milliseconds for a tracer that is detaching.
 * Returns 0; -EBUSY if another process traces the thread; -EPERM if it is not allowed, and *e says
 * whether CAP_SYS_PTRACE is missing; -ESRCH if the thread has ended. tracer_detach() or
 * tracer_abandon() ends it.
 */
int tracer_seize(struct tracee *t, pid_t tid, struct err *e);
/* Returns -EBUSY, with *e naming the process, if another process traces the thread; else 0. */
int tracer_check(pid_t tid, struct err *e);

/* Asks the thread to stop, without waiting for that. Returns 0, or -ESRCH if it has ended. */
int tracer_request_stop(struct tracee *t);
/*
 * Handles all events of the thread, without waiting: signals, its end, stops. Returns whether it
 * has stopped as requested, or at t->own. It is then held, and t->regs are its registers.
 */
bool tracer_has_stopped(struct tracee *t);

/*
 * Asks the thread to stop and waits until it has. Returns 0 if it is held, with its registers in
 * t->regs; -ESRCH if it has ended; or -EAGAIN if it did not stop within timeout_ns, because it is
 * busy in the kernel. The caller may then call it again.
 */
int tracer_hold(struct tracee *t, uint64_t timeout_ns);

/*
 * Returns the place at which a thread is held. Unless that is TRACER_ELSEWHERE, stores the vCPU's
 * descriptor in *fd.
 */
enum tracer_place tracer_place_of(const struct tracee *t, int *fd);

/*
 * Chooses a signal that can be sent at an event: one that the thread neither blocks nor handles and
 * that does nothing by default; or, if it blocks all usual signals but handles a single one, that
 * one, which is its kick. Returns 0, or -ENOTSUP if there is none.
 */
int tracer_choose_own(pid_t tid, struct tracer_own *out, struct err *e);

enum tracer_resume_mode {
	TRACER_FREELY,
	TRACER_TO_CALL, /* up to the thread's next system call */
};

/* Resumes a thread from a stop that needs no handling. */
void tracer_skip_stop(struct tracee *t, enum tracer_resume_mode way);

/* Resumes a held thread. A KVM_RUN that was interrupted restarts, unless a kick interrupted it. */
void tracer_release(struct tracee *t);

/*
 * Stops the thread if it runs, detaches from it, and clears *t. Returns 0, or -EAGAIN if it is busy
 * in the kernel and did not stop within half a second. The caller then calls it again.
 */
int tracer_detach(struct tracee *t);
/*
 * Detaches from a thread that is held or was asked to stop. From any other thread the kernel
 * detaches when this thread of kvmprof ends; nothing that it waits in is interrupted for that.
 * Clears *t. Called before the tracer's thread ends, as the last function for *t.
 */
void tracer_abandon(struct tracee *t);

#endif
