/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phases: which part of a Linux boot a moment belongs to, told by the samples' stacks.
 *
 * A boot goes through its phases in one order, so a phase begins with the first sample
 * whose stack only it can have, and lasts until a later one begins. What each is known by:
 *   first instruction  anything before the others: the kernel's entry code
 *   decompressor       code of the DSO [decompressor]
 *   start_kernel       the function of that name, unless the boot CPU idles in it
 *   initcalls          kernel_init_freeable, do_initcalls, do_one_initcall
 *   /init              pid 1 executes a program, is in user mode or makes a system call;
 *                      where pids are not known (0), any task does
 *   user               the same of another process after that: what /init has started
 * A profile that begins later than in the initcalls is no boot profile.
 *
 * A run of --engine exact tells by itself at which instruction start_kernel, initcalls and /init
 * begin ("engine" of its totals); then stacks are asked for the others only. Counts of all
 * instructions (stackset.counted) have these three and what is before: there is no order within one.
 *
 * Pure; needs a stackset with its samples, unfiltered. Times are ns as in the samples.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_PHASES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_PHASES_H

#include "profile/format/sink/phase.h"
#include "profile/analyse/stacks/stackset.h"

struct phase_span {
	uint64_t from_ns, to_ns; /* from where its first sample's time begins to the next phase's */
	uint64_t samples, weight;
	bool seen;
};

struct phases {
	bool boot; /* else the spans are empty */
	struct phase_span span[PHASES];
};

/* 0, or -ENOMEM with e set. Without samples, or of a later moment: not a boot, no error. */
int phases_find(struct phases *out, const struct stackset *s, struct err *e);

/* The phase of a moment; of moments outside, the nearest one. Only of a boot. */
enum phase phases_at(const struct phases *p, uint64_t time_ns);

#endif
