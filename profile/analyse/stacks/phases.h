/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phases: assigns moments to the phases of a Linux boot, from the samples' stacks.
 *
 * A boot passes through its phases in one order. A phase therefore begins with the first sample
 * whose stack only this phase can have, and lasts until a later one begins. The evidence is:
 *   first instruction  anything before the others: the kernel's entry code
 *   decompressor       code of the DSO [decompressor]
 *   start_kernel       the function of that name, unless the boot CPU idles in it
 *   initcalls          kernel_init_freeable, do_initcalls, do_one_initcall
 *   /init              pid 1 executes a program, is in user mode or makes a system call;
 *                      where pids are not known (0), any task does
 *   user               the same of another process after that: what /init has started
 * A profile that begins later than in the initcalls is not a boot profile.
 *
 * A run of --engine exact records the instruction at which start_kernel, initcalls and /init begin
 * ("engine" of its totals); stacks are then used for the other phases only. Counts of all
 * instructions (stackset.counted) have these three and the time before: there is no order within
 * one.
 *
 * The functions do no I/O and need a stackset with its samples, unfiltered. Times are in ns as in
 * the samples. Any thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_PHASES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_PHASES_H

#include "profile/format/sink/phase.h"
#include "profile/analyse/stacks/stackset.h"

struct phase_span {
	/* from the beginning of its first sample's time to the next phase */
	uint64_t from_ns, to_ns;
	uint64_t samples, weight;
	bool seen;
};

struct phases {
	bool boot; /* false: the spans are empty */
	struct phase_span span[PHASES];
};

/*
 * Finds the phases. Returns 0, or -ENOMEM. A profile without samples or of a later moment is not an
 * error: out->boot is false.
 */
int phases_find(struct phases *out, const struct stackset *s, struct err *e);

/*
 * Returns the phase of a moment, or the nearest phase for a moment outside. Allowed only if
 * p->boot.
 */
enum phase phases_at(const struct phases *p, uint64_t time_ns);

#endif
