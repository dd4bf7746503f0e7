/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * comparable: tells whether two profiles were made under the same conditions, and whether they are
 * two runs at all.
 *
 * The totals of a run contain the conditions that its numbers depend on besides the guest's code:
 * engine, QEMU, plugin, processor, memory, vCPUs, command line, frequency, host, version of
 * kvmprof. If these differ, they may be the cause of a difference. The functions keep no state; any
 * thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H

#include "base/buf.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true if the conditions differ. a and b are the totals as JSON text (stackset.json); NULL:
 * none. Appends the differences to *out as words for a message: "QEMU 10.0.2 and 10.0.13, memory
 * 256 and 128 MiB"; out->failed is set if out of memory. A fact that one side lacks is unknown and
 * does not differ. Kernel and RAM disk are the subject of a comparison and are ignored.
 */
bool comparable_differs(const char *a, const char *b, struct buf *out);

/*
 * Returns the members of the totals that comparable_differs() reads, as JSON text that it accepts;
 * the caller frees it with free(). Returns NULL if out of memory.
 */
char *comparable_facts(const char *totals);

/*
 * Returns a hash of the samples: event, addresses and weights of stacks, and times. Every form of
 * one run (directory, file, pipe, other header) has the same hash. Another run has another hash,
 * because its samples have other times.
 */
uint64_t comparable_contents(const struct stackset *s);

#endif
