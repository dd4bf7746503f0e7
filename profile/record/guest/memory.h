/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_memory: the running guest's address spaces, for the symbolizer to read.
 *
 * The kernel's own tables are found once from those of a sample; until then, and
 * where the kernel is not known, the tables of the last sample in the kernel serve.
 * Used by the consumer's thread alone, while the guest runs.
 *
 * Translations are remembered, the bytes behind them never: of a program's space for one sample,
 * of the kernel's for some that were taken before they were looked up. A page that was given
 * back in that time has what came there since, as one has that goes between a walk and a read.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MEMORY_H
#define KVMPROF_PROFILE_RECORD_GUEST_MEMORY_H

#include "base/sample.h"
#include "symbolizer/core/memory.h"
#include "base/mmu.h"

/* Samples share the kernel's translations for so long at most. */
#define GUEST_MEMORY_ERA_NS 1000000u
#define GUEST_MEMORY_TLB 512u

struct guest_memory {
	const struct gmem *mem;
	struct mmu_root root; /* cr3 0: no sample with the kernel's tables was seen yet */
	uint64_t init_tables; /* run-time address of Linux's init_top_pgt; 0 unknown */
	bool settled;	      /* root is that table, which stays for ever */
	uint64_t eras;	      /* counts both kinds */
	uint64_t kernel_era, sample_era;
	uint64_t era_ns; /* CLOCK_MONOTONIC: when the kernel's began */
	bool stands;	 /* memory is as it was at the sample, and changes before the next one */
	struct mmu_tlb_page tlb[GUEST_MEMORY_TLB];
};

void guest_memory_init(struct guest_memory *g, const struct gmem *mem);
/* The kernel's first page table is there; 0 when that is not known. */
void guest_memory_set_tables(struct guest_memory *g, uint64_t init_tables);
/* Before what a sample leads to is read. */
void guest_memory_see(struct guest_memory *g, const struct sample *s);

/* What is read next is of this moment, not of a sample: nothing is remembered. */
void guest_memory_renew(struct guest_memory *g);

/* Valid as long as g; spaces other than MEMORY_KERNEL are values of CR3. */
struct memory guest_memory_reader(struct guest_memory *g);

/* Guest-physical address of va in the kernel's space; false when it is not mapped. */
bool guest_memory_walk(const struct guest_memory *g, uint64_t va, uint64_t *gpa);

#endif
