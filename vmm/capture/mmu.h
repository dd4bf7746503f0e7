/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu: the guest's page tables, walked by hand.
 *
 * A pure function of (registers, guest RAM): no state is kept between calls.
 * Source: SDM vol. 3, 4.5 "4-level paging and 5-level paging".
 */
#ifndef KVMPROF_VMM_CAPTURE_MMU_H
#define KVMPROF_VMM_CAPTURE_MMU_H

#include "vmm/gmem.h"

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
 * address is not canonical.
 */
int mmu_walk(const struct gmem *m, const struct mmu_root *root, uint64_t gva, struct mmu_page *out);

/*
 * Copy up to len bytes from gva on, page by page. Returns the number of bytes
 * copied before the first page that cannot be read (0 when none).
 */
size_t mmu_read(const struct gmem *m, const struct mmu_root *root, uint64_t gva, void *dst,
		size_t len);

#endif
