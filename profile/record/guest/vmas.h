/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_vmas: all that the guest's processes have mapped, to tell heap, stack and files
 * apart. (guest_maps knows the mappings with code, which the profile needs for names.)
 *
 * Read out of guest memory when an address lies in no mapping that is known, not more
 * often than every GUEST_VMAS_RETRY_NS for a process. Used by the consumer's thread
 * alone, some ms after the sample: a process may have unmapped it, or be gone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_VMAS_H
#define KVMPROF_PROFILE_RECORD_GUEST_VMAS_H

#include "base/err.h"
#include "profile/record/guest/tasks.h"
#include "profile/record/guest/memregion.h"

#define GUEST_VMAS_RETRY_NS 50000000u
#define GUEST_VMAS_REFRESH_NS 1000000000u
#define GUEST_VMAS_MAX_PROCESSES 4096u /* beyond it all are discarded */

struct guest_vmas;

/*
 * Creates an empty cache. All pointers must outlive it. Returns 0 or -ENOMEM. The caller frees it
 * with guest_vmas_destroy(), which accepts NULL.
 */
int guest_vmas_create(struct guest_vmas **out, const struct linux_mm_layout *layout,
		      const struct memory *memory, const struct guest_tasks *tasks, struct err *e);
void guest_vmas_destroy(struct guest_vmas *g);

/*
 * Returns what is known of the process of owner->task (not NULL), and reads its mappings if va lies
 * in no known one. Returns NULL for a task without an mm or if out of memory. Valid until the next
 * call. time_ns is the sample's time.
 */
const struct mem_process *guest_vmas_find(struct guest_vmas *g, struct guest_owner *owner,
					  uint64_t va, uint64_t time_ns);

#endif
