/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memprobe: finds the memory that a sample's instruction was about to access.
 *
 * Decodes the instruction, computes addresses from the sample's registers, walks the page tables of
 * the sample's own CR3, and looks up what the host has there. Registers and instruction bytes are
 * the sample's, page tables and regions those of some milliseconds later: memory that was unmapped
 * in between is MEM_GONE; memory that was mapped anew at the same address is taken for the old.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MEMPROBE_H
#define KVMPROF_PROFILE_RECORD_GUEST_MEMPROBE_H

#include "profile/record/guest/vmas.h"
#include "profile/record/guest/memregion.h"
#include "base/gmem.h"

/* For the summary of the run. */
struct memprobe_stats {
	uint64_t samples, idle;
	uint64_t operands;
	uint64_t without; /* instructions that access no memory */
	/* samples by the reason why the instruction was not decoded */
	uint64_t why[MEMOP_WHY_COUNT];
	uint64_t status[MEM_STATUS_COUNT];
};

struct memprobe;

/*
 * Creates a probe of this memory, which must outlive it. Returns 0, -ENOMEM, or the error of the
 * decoder or of the host's page tables, with the reason in *e. The caller frees it with
 * memprobe_destroy(), which accepts NULL.
 */
int memprobe_create(struct memprobe **out, const struct gmem *mem, struct err *e);
void memprobe_destroy(struct memprobe *m);

/*
 * Returns the layout of the kernel, which the caller initializes once the kernel's address is
 * known. Valid as long as m.
 */
struct mem_layout *memprobe_layout(struct memprobe *m);

/*
 * Returns the memory accesses of a sample, valid until the next call. `kernel` reads the kernel's
 * address space; vmas and owner may be NULL. A halted vCPU has no accesses.
 */
const struct mem_refs *memprobe_sample(struct memprobe *m, const struct sample *s,
				       const struct memory *kernel, struct guest_vmas *vmas,
				       struct guest_owner *owner);

/* Returns the counters, valid as long as m. */
const struct memprobe_stats *memprobe_stats(const struct memprobe *m);

#endif
