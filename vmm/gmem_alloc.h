/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem_alloc: RAM for a guest of this process, between guards.
 *
 * Threads: the one that makes the machine, before vCPUs run and after they have ended.
 */
#ifndef KVMPROF_VMM_GMEM_ALLOC_H
#define KVMPROF_VMM_GMEM_ALLOC_H

#include "base/err.h"
#include "base/gmem.h"

#include <stdbool.h>
#include <stdint.h>

/* The host's pages that back guest RAM. */
enum gmem_pages {
	GMEM_PAGES_ANY =
		0,	  /* as other VMMs do it: transparent huge pages where the host has some */
	GMEM_PAGES_SMALL, /* no transparent huge pages */
	GMEM_PAGES_THP,	  /* transparent huge pages; the host must have them */
	GMEM_PAGES_2M,	  /* hugetlb pages, all of them taken at once */
	GMEM_PAGES_1G,
};

#define GMEM_MAX_NODE 1023u

struct gmem_config {
	uint64_t size;
	enum gmem_pages pages;
	bool bind; /* to this NUMA node of the host */
	unsigned int node;
};

/*
 * Allocate zeroed RAM (MAP_NORESERVE, private, anonymous): from 0
 * up to the PCI hole at 3 GiB and from 4 GiB on. Fails when the size is 0, not a
 * multiple of 1 MiB, or more than the host's physical memory. 2M, 1G: each piece of RAM is a multiple of
 * that (-EINVAL), and so many free pages are there (-ENOMEM; the message says where to
 * make them).
 */
int gmem_alloc(struct gmem *m, const struct gmem_config *cfg, struct err *e);

/* Bytes before and behind each mapping of guest RAM at which every access faults. */
#define GMEM_GUARD (UINT64_C(64) << 10)
/*
 * Reserves address space for guest RAM between two guards. `size` is a multiple of 4 KiB, and the returned address one of `align`,
 * a power of two of at least 4 KiB. Every access faults until the caller maps memory there, with MAP_FIXED. Returns NULL with
 * errno set. gmem_alloc_unreserve() unmaps all of it, and what is mapped there.
 */
void *gmem_alloc_reserve(uint64_t size, uint64_t align);
void gmem_alloc_unreserve(void *p, uint64_t size);

/* A process that is forked off from now on does not have it: neither its content nor a copy on write. */
void gmem_alloc_dont_fork(const struct gmem *m);
void gmem_alloc_free(struct gmem *m);

#endif
