/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu: walks the guest's page tables in software.
 *
 * A result depends only on the registers and guest RAM, and no state is kept between calls. Any
 * thread may call these functions (for a remote gmem: its thread). Source: SDM vol. 3, 4.5 "4-level
 * paging and 5-level paging".
 */
#ifndef KVMPROF_BASE_MMU_H
#define KVMPROF_BASE_MMU_H

#include "base/gmem.h"

#include <stdbool.h>

/* The registers that a walk depends on, as read from one vCPU. */
struct mmu_root {
	uint64_t cr0, cr3, cr4, efer;
};

/* A translated address and the rights of its page. */
struct mmu_page {
	uint64_t gpa;  /* guest-physical address of the requested byte */
	uint64_t size; /* bytes of the page: 4 KiB, 2 MiB, 1 GiB */
	bool user;     /* U/S set at every level */
	bool write;    /* R/W set at every level */
	bool exec;     /* NX clear at every level (or EFER.NXE off) */
};

/*
 * Translates gva. PCID, PWT/PCD and LAM bits of cr3 are ignored. With paging off, addresses below 4
 * GiB are identical. Returns 0; -EOPNOTSUPP for 32-bit and PAE tables; -EFAULT if the page is not
 * present or a table is not RAM; -EINVAL if the address is not canonical; else the error of
 * gmem_read() for a table that could not be read. *out is written only on success.
 */
int mmu_walk(const struct gmem *m, const struct mmu_root *root, uint64_t gva, struct mmu_page *out);

/*
 * Copies up to len bytes from gva on, page by page. Returns the number of bytes copied before the
 * first page that cannot be read (0: none).
 */
size_t mmu_read(const struct gmem *m, const struct mmu_root *root, uint64_t gva, void *dst,
		size_t len);

/*
 * A cache of translations of 4 KiB pages, which saves walks for repeated reads. The bytes are read
 * anew each time.
 *
 * The caller owns the table and defines by `era` how long a translation is valid: entries of
 * another era are ignored. The cache serves guest memory of this process only; for remote or
 * virtual memory mmu_tlb_read() uses mmu_read().
 */

/* One cached translation; all zero is an unused entry. */
struct mmu_tlb_page {
	uint64_t page, space; /* guest-virtual address >> 12, and CR3 */
	uint64_t era;	      /* not 0 */
	const uint8_t *host;  /* address of the page in this process; NULL: the page is not RAM */
};

/* The cache. The caller allocates and frees `page`, an array of n entries. */
struct mmu_tlb {
	struct mmu_tlb_page *page;
	unsigned int n; /* a power of two */
	uint64_t era;	/* current era, not 0; the caller changes it to invalidate all entries */
};

/*
 * Reads like mmu_read() and caches translations in *tlb. Only the CR3 of the root is compared: a
 * caller that changes its other members between two reads must begin another era. Not thread-safe:
 * the caller serialises calls on one cache.
 */
size_t mmu_tlb_read(const struct gmem *m, const struct mmu_root *root, const struct mmu_tlb *tlb,
		    uint64_t gva, void *dst, size_t len);

#endif
