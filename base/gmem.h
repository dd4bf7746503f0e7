/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem: the only way to access guest RAM, with bounds checks; in this process or in another one
 * (gmem_remote.h).
 *
 * Regions are sorted by guest-physical address and do not change after boot, so any thread may read
 * without a lock (remote: one thread). The guest may change the bytes at any time: copy a field
 * once, check the copy, use the copy.
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
	uint8_t *host; /* address of the mapping in this process, or in the remote one; borrowed */
};

struct gmem {
	struct gmem_region region[GMEM_MAX_REGIONS];
	unsigned int n;
	/* Borrowed; NULL: this process. Else RAM is read with gmem_read() only, on one thread. */
	struct gmem_remote *remote;
	/*
	 * Remote only: addresses are virtual ones of the address space virtual_cr3, and the remote
	 * side walks the page tables. mmu.h then reads other address spaces only in the kernel's
	 * half.
	 */
	bool is_virtual;
	uint64_t virtual_cr3;
};

/* Returns the bytes of RAM in all regions. */
uint64_t gmem_size(const struct gmem *m);

/*
 * Returns the host pointer to [gpa, gpa + len) if the range lies in one region of this process,
 * else NULL (also if len is 0). The memory is borrowed.
 */
void *gmem_ptr(const struct gmem *m, uint64_t gpa, uint64_t len);

/*
 * Returns the address at which the byte at gpa is mapped, in this process or the remote one; 0 if
 * it is not RAM.
 */
uint64_t gmem_host(const struct gmem *m, uint64_t gpa);

/*
 * Copies len bytes from guest RAM. Returns 0, or -EFAULT if the range does not lie in one region.
 * Remote: also the errors of gmem_remote_read(). After an error nothing is copied.
 */
int gmem_read(const struct gmem *m, uint64_t gpa, void *dst, size_t len);
/*
 * Copies len bytes to guest RAM of this process. Returns 0, or -EFAULT if the range does not lie in
 * one region or is remote.
 */
int gmem_write(const struct gmem *m, uint64_t gpa, const void *src, size_t len);

#endif
