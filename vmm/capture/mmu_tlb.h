/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu_tlb: pages of 4 KiB that were found by mmu_walk(), so that reads of the same ones need no
 * further walk. Bytes are read anew each time.
 *
 * A table belongs to its caller, who says by the number of its era how long what was found
 * counts: entries of another era are as good as none. Guest memory of this process alone: of a
 * remote one, and of virtual addresses, all is read by mmu_read().
 */
#ifndef KVMPROF_VMM_CAPTURE_MMU_TLB_H
#define KVMPROF_VMM_CAPTURE_MMU_TLB_H

#include "vmm/capture/mmu.h"

/* All zero: nothing is known. */
struct mmu_tlb_page {
	uint64_t page, space; /* va >> 12; CR3 */
	uint64_t era;	      /* not 0 */
	const uint8_t *host;  /* NULL: the page is not RAM */
};

struct mmu_tlb {
	struct mmu_tlb_page *page;
	unsigned int n; /* a power of two */
	uint64_t era;	/* not 0 */
};

/*
 * As mmu_read(). Of the root CR3 alone is compared: who changes its other members between two
 * reads begins another era.
 */
size_t mmu_tlb_read(const struct gmem *m, const struct mmu_root *root, const struct mmu_tlb *tlb,
		    uint64_t gva, void *dst, size_t len);

#endif
