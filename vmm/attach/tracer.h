/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracer: the vCPU threads of another process, held for some microseconds at a time.
 *
 * PTRACE_SEIZE, which neither stops nor signals; PTRACE_INTERRUPT, which makes KVM_RUN
 * return as any signal would. When this thread dies in whatever way, the kernel lets the
 * others go: nothing of ours is left in them. Signals that are meant for a held thread
 * are passed on. A KVM_RUN that was broken off for us alone is begun again, so that the
 * VMM does not see it return; with a signal of its own it sees that, as always. The same holds for waits with a time
 * limit, which the kernel would resume by restart_syscall: not every VMM's seccomp filter allows that call.
 *
 * All calls of one thread of ours, that which called tracer_seize(): ptrace(2) binds a
 * tracee to the thread that seized it.
 */
#ifndef KVMPROF_VMM_ATTACH_TRACER_H
#define KVMPROF_VMM_ATTACH_TRACER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * A signal that the kernel sends the thread at an event of ours (a counter, counter.h). The thread stops at it, like at any signal
 * while it is traced, and is held: at the very moment of the event, which a stop that is asked for can't be. Others may send the
 * same signal: whether there was an event is for the caller to see.
 */
struct tracer_own {
	int signo; /* 0: there is none */
	bool kick; /* the VMM takes it for a kick: it gets it, as one of its own may have been lost on ours; else it never sees it */
};

struct tracee {
	pid_t tid; /* 0: none */
	bool asked, held;
	struct tracer_own own;
	bool by_own;		      /* held: at that signal */
	bool gone;		      /* it has ended */
	struct user_regs_struct regs; /* registers of the thread, while it is held */
	bool hidden; /* that it was held: KVM_RUN, or a wait, is about to begin again */
	struct user_regs_struct broken; /* hidden: the registers with which that had returned */
	uint64_t passed_on;		/* signals */
};

/* Where a held thread is. */
enum tracer_place {
	TRACER_ELSEWHERE,  /* not in KVM_RUN: the VMM works, or waits */
	TRACER_IN_RUN,	   /* in KVM_RUN, which has returned for us or is about to */
	TRACER_BEFORE_RUN, /* a KVM_RUN that was broken off for us has not begun again: no guest
			    * has run since the last stop */
};

/*
 * -EBUSY: another process traces it. -EPERM: not allowed; the message says whether CAP_SYS_PTRACE
 * is missing. -ESRCH: it has ended. Waits some milliseconds for a tracer that is letting it go.
 */
int tracer_seize(struct tracee *t, pid_t tid, struct err *e);
/* -EBUSY: another process traces this thread, and the message says which. 0: none does. */
int tracer_check(pid_t tid, struct err *e);

/* Ask it to stop, soon. -ESRCH: it has ended. */
int tracer_request_stop(struct tracee *t);
/*
 * Has it stopped, as it was asked to? Then it is held, and t->regs are its own. Sees to
 * everything else that has happened to it: signals, its end.
 */
bool tracer_has_stopped(struct tracee *t);

/*
 * Both, and wait. 0: it is held, and t->regs are its own. -ESRCH: it has ended.
 * -EAGAIN: it did not stop within timeout_ns (it is deep in the kernel); ask again.
 */
int tracer_hold(struct tracee *t, uint64_t timeout_ns);

/*
 * Returns where a held thread is. Unless that is TRACER_ELSEWHERE, stores the vCPU's descriptor in
 * *fd.
 */
enum tracer_place tracer_place_of(const struct tracee *t, int *fd);

/*
 * Which signal can be sent so: one that it neither blocks nor handles, and that does nothing by default; else, where it blocks all
 * that it can but one, its kick. -ENOTSUP: there is none.
 */
int tracer_choose_own(pid_t tid, struct tracer_own *out, struct err *e);

enum tracer_resume_mode {
	TRACER_FREELY,
	TRACER_TO_CALL, /* up to the thread's next system call */
};

/* Lets a thread go on from a stop of which nothing else is wanted. */
void tracer_skip_stop(struct tracee *t, enum tracer_resume_mode way);

/* Let it go on. A KVM_RUN that was broken off begins again, unless it was by a kick. */
void tracer_release(struct tracee *t);

/* Give it back. -EAGAIN: it is deep in the kernel and can't be yet; ask again. */
int tracer_detach(struct tracee *t);
/*
 * Detaches from a thread that is held or that was asked to stop. Leaves any other to the end of this thread of ours, at which the
 * kernel detaches: a thread need not stop for that, and nothing that it waits in is broken off. To be called last.
 */
void tracer_abandon(struct tracee *t);

#endif
