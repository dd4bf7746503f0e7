/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_memory: the running guest's address spaces, for the symbolizer to read.
 *
 * The kernel's own tables are found once from those of a sample; until then, and
 * where the kernel is not known, the tables of the last sample in the kernel serve.
 * Used by the consumer's thread alone, while the guest runs.
 */
#ifndef KVMPROF_PROFILE_LIVE_MEMORY_H
#define KVMPROF_PROFILE_LIVE_MEMORY_H

#include "base/sample.h"
#include "symbolizer/core/memory.h"
#include "vmm/mmu.h"

struct guest_memory {
	const struct gmem *mem;
	struct mmu_root root; /* cr3 0: no sample with the kernel's tables was seen yet */
	uint64_t init_tables; /* run-time address of Linux's init_top_pgt; 0 unknown */
	bool settled;	      /* root is that table, which stays for ever */
};

void guest_memory_init(struct guest_memory *g, const struct gmem *mem);
/* The kernel's first page table is there; 0 when that is not known. */
void guest_memory_set_tables(struct guest_memory *g, uint64_t init_tables);
/* Before what a sample leads to is read. */
void guest_memory_see(struct guest_memory *g, const struct sample *s);

/* Valid as long as g; spaces other than MEMORY_KERNEL are values of CR3. */
struct memory guest_memory_reader(struct guest_memory *g);

/* Guest-physical address of va in the kernel's space; false when it is not mapped. */
bool guest_memory_walk(const struct guest_memory *g, uint64_t va, uint64_t *gpa);

#endif
