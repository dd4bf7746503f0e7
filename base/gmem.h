/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem: the one checked door to guest RAM, in this process or in another one (gmem_remote.h).
 *
 * Regions are sorted by guest-physical address and do not change after boot,
 * so any thread may read without a lock. The guest changes the bytes behind
 * it at any time: copy a field once, check the copy, use the copy.
 */
#ifndef KVMPROF_BASE_GMEM_H
#define KVMPROF_BASE_GMEM_H

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

/* Bytes of RAM in all regions. */
uint64_t gmem_size(const struct gmem *m);

/*
 * Host pointer to [gpa, gpa+len) when it lies in one region of this process, else NULL.
 * len 0 gives NULL.
 */
void *gmem_ptr(const struct gmem *m, uint64_t gpa, uint64_t len);

/* Where the byte at gpa is mapped, in this process or the remote one; 0: it is not RAM. */
uint64_t gmem_host(const struct gmem *m, uint64_t gpa);

/*
 * Copies. Returns 0, or -EFAULT if the range is not all RAM. Remote: also the errors of gmem_remote_read(), which say that the
 * bytes could not be read. Nothing is copied then.
 */
int gmem_read(const struct gmem *m, uint64_t gpa, void *dst, size_t len);
int gmem_write(const struct gmem *m, uint64_t gpa, const void *src, size_t len);

#endif
