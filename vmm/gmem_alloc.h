/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem_alloc: allocates the RAM of a guest in this process, between guard areas.
 *
 * The thread that creates the machine calls these functions, before vCPUs run and after they have
 * ended.
 */
#ifndef KVMPROF_VMM_GMEM_ALLOC_H
#define KVMPROF_VMM_GMEM_ALLOC_H

#include "base/err.h"
#include "base/gmem.h"

#include <stdbool.h>
#include <stdint.h>

/* The host pages that back guest RAM. */
enum gmem_pages {
	GMEM_PAGES_ANY = 0, /* default of other VMMs: transparent huge pages if the host has them */
	GMEM_PAGES_SMALL,   /* no transparent huge pages */
	GMEM_PAGES_THP,	    /* transparent huge pages; an error if the host has none */
	GMEM_PAGES_2M,	    /* hugetlb pages, all allocated at once */
	GMEM_PAGES_1G,
};

#define GMEM_MAX_NODE 1023u

struct gmem_config {
	/* Bytes of RAM. */
	uint64_t size;
	enum gmem_pages pages;
	bool bind; /* allocate on this NUMA node of the host only */
	unsigned int node;
};

/*
 * Allocates zeroed RAM (private, anonymous, MAP_NORESERVE except for 2M and 1G): from address 0 up
 * to the PCI hole at 3 GiB, and from 4 GiB on. Returns 0, or -errno with *e recorded: -EINVAL if
 * the size is 0, not a multiple of 1 MiB, or more than the host's physical memory. For 2M and 1G
 * each contiguous piece must be a multiple of the page size (-EINVAL), and enough free pages must
 * exist (-ENOMEM; the message says how to provide them). The caller frees it with
 * gmem_alloc_free().
 */
int gmem_alloc(struct gmem *m, const struct gmem_config *cfg, struct err *e);

/* Bytes before and after each mapping of guest RAM where every access faults. */
#define GMEM_GUARD (UINT64_C(64) << 10)
/*
 * Reserves address space for guest RAM between two guard areas. `size` is a multiple of 4 KiB. The
 * returned address is aligned to `align`, a power of two of at least 4 KiB. Every access faults
 * until the caller maps memory there with MAP_FIXED. Returns NULL with errno set on failure.
 * gmem_alloc_unreserve() unmaps all of it, including what is mapped there.
 */
void *gmem_alloc_reserve(uint64_t size, uint64_t align);
/*
 * Unmaps an area of gmem_alloc_reserve(size) and its guards, including everything that is mapped
 * there.
 */
void gmem_alloc_unreserve(void *p, uint64_t size);

/*
 * Keeps guest RAM out of processes forked from now on: they have neither its contents nor a
 * copy-on-write mapping.
 */
void gmem_alloc_dont_fork(const struct gmem *m);
/* Unmaps the RAM and makes *m empty. Remote memory is only forgotten. */
void gmem_alloc_free(struct gmem *m);

#endif
