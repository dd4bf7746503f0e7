/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * visit: a machine that another VMM runs, attached to for as long as a command needs to look at it.
 *
 * No profile is written. The command's look is called on the consumer's thread, between two samples; everything else is the
 * main thread's.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_VISIT_H
#define KVMPROF_PROFILE_RECORD_RUN_VISIT_H

#include "profile/record/guest/guest.h"
#include "profile/record/libvirt/attach_domain.h"

struct visit;

struct visit_request {
	const char *command;		   /* for messages: "ps" */
	const struct reporter *reporter;   /* borrowed */
	const struct attach_request *what; /* not used with gdb */
	const char *gdb;		   /* HOST:PORT of a gdbstub; NULL: none */
	const char *still;		   /* a snapshot, which is not run; NULL: none */
	double freq_hz;			   /* samples a second of each vCPU */
	/*
	 * Called with the machine's process before it is attached to. 1: that was enough, and the visit ends with 0. NULL: nothing
	 * is to be done.
	 */
	int (*found)(pid_t pid, void *ctx, struct err *e);
	/* Called once the machine is attached to, while files may still be opened. NULL: nothing is to be done. */
	void (*prepared)(struct visit *v, void *ctx);
	/* Called on the consumer's thread with each sample once it has been processed. NULL: nobody wants it. */
	void (*seen)(void *ctx, const struct guest *g, const struct sample *s);
	void *ctx; /* of the functions here and of looks */
	/* Called once no sample is taken any more. NULL: nothing is to be done. */
	void (*ended)(struct visit *v, void *ctx);
	/* Called once the machine is sampled. Its result is that of the visit. */
	int (*body)(struct visit *v, void *ctx, struct err *e);
};

/*
 * Attaches, calls body(), and leaves. Returns body()'s result, or a negative error if it was not called. -EINTR: a signal ended
 * the visit.
 */
int visit_machine(const struct visit_request *q, struct err *e);

/* A look. -EAGAIN: the kernel is not known yet, and the look is made again. */
typedef int (*visit_look_fn)(void *ctx, struct guest *g, struct err *e);

/*
 * Calls look() on the consumer's thread until it does not return -EAGAIN, for some seconds at most, and returns its result.
 * -ETIMEDOUT: it returned -EAGAIN for all that time; e has its reason. -EFAULT: the consumer's thread has crashed.
 */
int visit_look(struct visit *v, visit_look_fn look, struct err *e);

/* Waits while samples are taken. -EINTR: a signal came; -ESRCH: the machine has ended. */
int visit_nap(struct visit *v, double ms, struct err *e);

/* What a visit has cost the machine. */
struct visit_cost {
	uint64_t stops, stopped_ns,
		longest_ns; /* of the vCPU that was stopped for the longest time in all */
};

/* Reports the cost. To be called by ended(). */
void visit_cost(const struct visit *v, struct visit_cost *out);

/* Returns the process of the machine, or 0 with a gdbstub or a snapshot. */
int visit_pid(const struct visit *v);
struct vm *visit_vm(const struct visit *v);

#endif
