/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * visit: attaches to a machine of another VMM for as long as a command examines it.
 *
 * No profile is written. The consumer thread calls the command's look, between two samples. The main thread
 * calls everything else.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_VISIT_H
#define KVMPROF_PROFILE_RECORD_RUN_VISIT_H

#include "profile/record/guest/guest.h"
#include "profile/record/libvirt/attach_domain.h"

struct visit;

struct visit_request {
	const char *command;		   /* for messages: "ps" */
	const struct reporter *reporter;   /* borrowed */
	const struct attach_request *what; /* the machine; not used with gdb and still */
	const char *gdb;		   /* HOST:PORT of a gdbstub; NULL: none */
	const char *still;		   /* path of a snapshot, which is not run; NULL: none */
	double freq_hz;			   /* samples a second of each vCPU */
	bool explains;			   /* guest_options.explains */
	/*
	 * Called with the machine's process before attaching to it. Returns 0, 1 to end the visit with success,
	 * or a negative error. May be NULL.
	 */
	int (*found)(pid_t pid, void *ctx, struct err *e);
	/* Called by the consumer thread with each sample after it was processed. May be NULL. */
	void (*seen)(void *ctx, const struct guest *g, const struct sample *s);
	void *ctx; /* passed to the functions here and to looks */
	/* Called when no more samples are taken. May be NULL. */
	void (*ended)(struct visit *v, void *ctx);
	/* Called when the machine is sampled. Its result is that of the visit. */
	int (*body)(struct visit *v, void *ctx, struct err *e);
};

/*
 * Attaches, calls body(), and detaches. Returns the result of body(), or a negative error if that was not
 * called. -EINTR: a signal ended the visit.
 */
int visit_machine(const struct visit_request *q, struct err *e);

/* Makes a look. Returns 0 or -errno; after -EAGAIN, the kernel is not known yet, it is called again. */
typedef int (*visit_look_fn)(void *ctx, struct guest *g, struct err *e);

/*
 * Has the consumer thread call look() until that does not return -EAGAIN, and returns its result. Returns
 * -ETIMEDOUT, with the last reason in *e, after 20 s of -EAGAIN, and -EFAULT if the consumer thread has crashed.
 */
int visit_look(struct visit *v, visit_look_fn look, struct err *e);

/* Waits while samples are taken. Returns 0, -EINTR after a signal, or -ESRCH if the machine has ended. */
int visit_nap(struct visit *v, double ms, struct err *e);

/* Stops or continues sampling. Without it no vCPU is stopped, and looks read memory only. */
void visit_sample(struct visit *v, bool on);

/* The cost of a visit for the machine. */
struct visit_cost {
	/* Number, sum and maximum of the stops of the vCPU that was stopped for the longest time in all. */
	uint64_t stops, stopped_ns, longest_ns;
};

/* Returns the cost so far; ended() calls it. */
void visit_cost(const struct visit *v, struct visit_cost *out);

#endif
