/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu: the guest's page tables, walked by hand.
 *
 * A pure function of (registers, guest RAM): no state is kept between calls.
 * Source: SDM vol. 3, 4.5 "4-level paging and 5-level paging".
 */
#ifndef KVMPROF_BASE_MMU_H
#define KVMPROF_BASE_MMU_H

#include "base/gmem.h"

#include <stdbool.h>

/* What the walk depends on, as read from one vCPU. */
struct mmu_root {
	uint64_t cr0, cr3, cr4, efer;
};

struct mmu_page {
	uint64_t gpa;  /* of the address that was asked for */
	uint64_t size; /* bytes of the page: 4 KiB, 2 MiB, 1 GiB */
	bool user;     /* U/S set at every level */
	bool write;    /* R/W set at every level */
	bool exec;     /* NX clear at every level (or EFER.NXE off) */
};

/*
 * Translate gva. PCID, PWT/PCD and LAM bits of cr3 are masked; paging off means
 * identity below 4 GiB; 32-bit and PAE tables are not walked (-EOPNOTSUPP).
 * Returns 0; -EFAULT when not present or the tables leave RAM; -EINVAL when the
 * address is not canonical; else the error of gmem_read(), if a table could not be read.
 */
int mmu_walk(const struct gmem *m, const struct mmu_root *root, uint64_t gva, struct mmu_page *out);

/*
 * Copy up to len bytes from gva on, page by page. Returns the number of bytes
 * copied before the first page that cannot be read (0 when none).
 */
size_t mmu_read(const struct gmem *m, const struct mmu_root *root, uint64_t gva, void *dst,
		size_t len);

/*
 * Pages of 4 KiB that were found by mmu_walk(), so that reads of the same ones need no further walk.
 * Bytes are read anew each time.
 *
 * A table belongs to its caller, who says by the number of its era how long what was found
 * counts: entries of another era are as good as none. Guest memory of this process alone: of a
 * remote one, and of virtual addresses, all is read by mmu_read().
 */

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
