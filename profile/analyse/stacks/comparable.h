/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * comparable: were two profiles made by the same means, and are they two runs at all?
 *
 * The totals of a run say what its numbers depend on besides the guest's code: engine, QEMU, plugin, processor,
 * memory, vCPUs, command line, frequency, host, version of kvmprof. Where these differ, a difference of the numbers
 * may be theirs.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H

#include "base/buf.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns whether the means differ. a, b: the totals as text (stackset.json), NULL: none. Appends what differs to *out,
 * as words for a message: "QEMU 10.0.2 and 10.0.13, memory 256 and 128 MiB". A fact that one side does not have is
 * not known, and does not differ. Kernel and RAM disk are what is compared, and are not looked at.
 */
bool comparable_differs(const char *a, const char *b, struct buf *out);

/*
 * Returns those members of the totals that comparable_differs() reads, as text that it accepts; the caller frees it.
 * NULL: out of memory.
 */
char *comparable_facts(const char *totals);

/*
 * Returns a hash of what was sampled: event, addresses and weights of stacks, and times. Each form of one run (directory, file,
 * pipe, other header) has the same hash. Another run has another one, since its samples have other times.
 */
uint64_t comparable_contents(const struct stackset *s);

#endif
