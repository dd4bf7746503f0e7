/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_memory: the address spaces of the running guest, as the symbolizer reads them.
 *
 * The kernel's own page tables are found once from those of a sample. Until then, and if the kernel
 * is not known, those of the last sample in the kernel are used. All functions are called by the
 * consumer thread only, while the guest runs.
 *
 * Translations are cached, but never the bytes behind them: those of a program's space for one
 * sample, those of the kernel's for GUEST_MEMORY_ERA_NS. A page that was freed in that time shows
 * its new content, as does a page that is freed between a walk and a read.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MEMORY_H
#define KVMPROF_PROFILE_RECORD_GUEST_MEMORY_H

#include "base/sample.h"
#include "symbolizer/core/memory.h"
#include "base/mmu.h"

/* How long samples share the kernel's translations. */
#define GUEST_MEMORY_ERA_NS 1000000u
#define GUEST_MEMORY_TLB 512u

struct guest_memory {
	const struct gmem *mem;
	struct mmu_root root; /* cr3 0: no sample with the kernel's tables was seen yet */
	uint64_t init_tables; /* run-time address of Linux's init_top_pgt; 0: unknown */
	bool settled;	      /* root is that table, which never changes */
	uint64_t eras;	      /* number of eras of both kinds */
	uint64_t kernel_era, sample_era;
	uint64_t era_ns; /* CLOCK_MONOTONIC: start of the kernel's era */
	bool stands;	 /* memory is as it was at the sample, and changes before the next one */
	struct mmu_tlb_page tlb[GUEST_MEMORY_TLB];
};

/* Initializes g for this memory, which must outlive it. Nothing has to be freed. */
void guest_memory_init(struct guest_memory *g, const struct gmem *mem);
/* Sets the run-time address of the kernel's first page table; 0: unknown. */
void guest_memory_set_tables(struct guest_memory *g, uint64_t init_tables);
/* Starts a sample. To be called before memory that the sample refers to is read. */
void guest_memory_begin_sample(struct guest_memory *g, const struct sample *s);

/*
 * Drops the cached translations, because the following reads are of this moment, not of a sample.
 */
void guest_memory_renew(struct guest_memory *g);
/* Drops copies of another process's memory as well, so that nothing older than this call is read. */
void guest_memory_read_anew(struct guest_memory *g);

/*
 * Returns a reader that is valid as long as g. An address space other than MEMORY_KERNEL is given
 * by its CR3.
 */
struct memory guest_memory_reader(struct guest_memory *g);

/*
 * Stores the guest-physical address of va in the kernel's address space. Returns false if it is not
 * mapped.
 */
bool guest_memory_walk(const struct guest_memory *g, uint64_t va, uint64_t *gpa);

#endif
