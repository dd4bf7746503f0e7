/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_budget: a limit for the host memory that guests may use by writing over images.
 *
 * An overlay in memory is a memfd of the image's length, in which a page exists once it was
 * written. All overlays of a run share one limit. A write reserves what it may need before it is
 * made, and returns the reservation afterwards, when the kernel has counted the pages.
 */
#ifndef KVMPROF_VMM_DEV_DISK_BUDGET_H
#define KVMPROF_VMM_DEV_DISK_BUDGET_H

#include <pthread.h>
#include <stdint.h>

#define DISK_BUDGET_FILES 16u

struct disk_budget {
	pthread_mutex_t lock;
	uint64_t limit;	  /* in bytes */
	uint64_t left;	  /* lower bound of the rest; reduced by later writes */
	uint64_t writing; /* reserved for writes in progress */
	int fd[DISK_BUDGET_FILES];
	unsigned int n;
};

/* Initialises a budget of `limit` bytes. disk_budget_deinit() releases it. */
void disk_budget_init(struct disk_budget *b, uint64_t limit);
void disk_budget_deinit(struct disk_budget *b);

/*
 * Adds an overlay, before any write to it. fd is borrowed until disk_budget_leave(). Returns 0, or
 * -ENOSPC if there are too many. Any thread.
 */
int disk_budget_join(struct disk_budget *b, int fd);
/* Removes an overlay, after the last write to it. Any thread. */
void disk_budget_leave(struct disk_budget *b, int fd);

/*
 * Reserves memory for a write to [off, off + len) of fd. Returns 0 and stores the reserved bytes in
 * *taken; the caller passes them to disk_budget_return() after the write. Returns -ENOSPC if the
 * write would exceed the limit. Pages that exist already cost nothing. Any thread.
 */
int disk_budget_reserve(struct disk_budget *b, int fd, uint64_t off, uint64_t len, uint64_t *taken);
/* Returns the reservation of disk_budget_reserve(). Any thread. */
void disk_budget_return(struct disk_budget *b, uint64_t taken);

#endif
