/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem: the one checked door to guest RAM.
 *
 * Regions are sorted by guest-physical address and do not change after boot,
 * so any thread may read without a lock. The guest changes the bytes behind
 * it at any time: copy a field once, check the copy, use the copy.
 */
#ifndef KVMPROF_VMM_GMEM_H
#define KVMPROF_VMM_GMEM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMEM_MAX_REGIONS 16

struct gmem_region {
	uint64_t gpa;  /* 4 KiB aligned */
	uint64_t size; /* bytes, multiple of 4 KiB */
	uint8_t *host; /* mapping in this process, or in the remote one */
};

struct gmem {
	struct gmem_region region[GMEM_MAX_REGIONS];
	unsigned int n;
	/* Borrowed; NULL: this process. Else only gmem_read() leads to RAM, on one thread. */
	struct gmem_remote *remote;
	/*
	 * Remote: addresses are virtual, those of one address space (its CR3), and the other
	 * side walks the tables. mmu.h knows no other space then, but for the kernel's half.
	 */
	bool is_virtual;
	uint64_t virtual_cr3;
};

/* What backs it. */
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
 * gmem_alloc() with a say in what backs it. 2M, 1G: each piece of RAM is a multiple of
 * that (-EINVAL), and so many free pages are there (-ENOMEM; the message says where to
 * make them).
 */
int gmem_alloc_config(struct gmem *m, const struct gmem_config *cfg, struct err *e);

/*
 * Allocate size bytes of zeroed RAM (MAP_NORESERVE, private, anonymous): from 0
 * up to the PCI hole at 3 GiB and from 4 GiB on. Fails when size is 0, not a
 * multiple of 1 MiB, or more than the host's physical memory.
 */
int gmem_alloc(struct gmem *m, uint64_t size, struct err *e);
/* A process that is forked off from now on does not have it: neither its content nor a copy on write. */
void gmem_dont_fork(const struct gmem *m);
void gmem_free(struct gmem *m);

/* Bytes of RAM in all regions. */
uint64_t gmem_size(const struct gmem *m);

/*
 * Host pointer to [gpa, gpa+len) when it lies in one region of this process, else NULL.
 * len 0 gives NULL.
 */
void *gmem_ptr(const struct gmem *m, uint64_t gpa, uint64_t len);

/* Where the byte at gpa is mapped, in this process or the remote one; 0: it is not RAM. */
uint64_t gmem_host(const struct gmem *m, uint64_t gpa);

/* Copy. 0, or -EFAULT when the range is not all RAM (nothing copied then). */
int gmem_read(const struct gmem *m, uint64_t gpa, void *dst, size_t len);
int gmem_write(const struct gmem *m, uint64_t gpa, const void *src, size_t len);

#endif
