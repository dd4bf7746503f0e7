/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memprobe: from a sample to the memory that its instruction was about to use.
 *
 * Decodes the instruction, computes addresses from the sample's registers, walks them
 * through the page tables of the sample's own CR3, and looks up what the host has there.
 * On the consumer's thread, some ms after the sample: registers and bytes are the
 * sample's, tables and regions those of a little later. What was unmapped in between is
 * MEM_GONE; what was mapped anew at the same address is taken for the old.
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
	uint64_t without;	       /* instructions that access no memory */
	uint64_t why[MEMOP_WHY_COUNT]; /* samples whose instruction was not understood */
	uint64_t status[MEM_STATUS_COUNT];
};

struct memprobe;

/* mem must outlive it. */
int memprobe_create(struct memprobe **out, const struct gmem *mem, struct err *e);
void memprobe_destroy(struct memprobe *m);

/* The kernel's place is known. */
struct mem_layout *memprobe_layout(struct memprobe *m);

/*
 * vmas and owner: may be NULL. kernel: reads in the kernel's space. Returns what is valid
 * until the next call; a halted vCPU's has no operands.
 */
const struct mem_refs *memprobe_take(struct memprobe *m, const struct sample *s,
				     const struct memory *kernel, struct guest_vmas *vmas,
				     struct guest_owner *owner);

const struct memprobe_stats *memprobe_stats(const struct memprobe *m);

#endif
