/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * comparable: were two profiles made by the same means?
 *
 * The totals of an exact run say what its counts depend on besides the guest's code: engine, QEMU,
 * plugin, processor, memory, vCPUs. Where these differ, a difference of counts may be theirs.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_COMPARABLE_H

#include "base/buf.h"

#include <stdbool.h>

/*
 * a, b: the totals as text (stackset.json), NULL: none. What differs goes to *out, as words for a
 * message: "QEMU 10.0.2 and 10.0.13, memory 256 and 128 MiB". false: nothing does. Kernel, RAM disk
 * and command line are what is compared, and are not looked at.
 */
bool comparable_differs(const char *a, const char *b, struct buf *out);

#endif
