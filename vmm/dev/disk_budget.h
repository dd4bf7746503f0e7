/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_budget: how much of the host's memory guests may fill with what they write over images.
 *
 * An overlay in memory is a memfd as long as the image, of which a page exists once it was
 * written. All overlays of a run share one limit. A write takes what it may need before it is made
 * and gives it back afterwards, when the kernel has counted the pages.
 */
#ifndef KVMPROF_VMM_DEV_DISK_BUDGET_H
#define KVMPROF_VMM_DEV_DISK_BUDGET_H

#include <pthread.h>
#include <stdint.h>

#define DISK_BUDGET_FILES 16u

struct disk_budget {
	pthread_mutex_t lock;
	uint64_t limit;	  /* bytes */
	uint64_t left;	  /* of it, at least; what was written since is taken off */
	uint64_t writing; /* taken and not given back */
	int fd[DISK_BUDGET_FILES];
	unsigned int n;
};

void disk_budget_init(struct disk_budget *b, uint64_t limit);
void disk_budget_deinit(struct disk_budget *b);

/* Before any write, and after the last one. fd is borrowed. -ENOSPC: too many. */
int disk_budget_join(struct disk_budget *b, int fd);
void disk_budget_leave(struct disk_budget *b, int fd);

/*
 * Room for [off, off+len) of fd: 0 and how much was taken, to be given back when it is written;
 * -ENOSPC when memory for it would exceed the limit. Pages that are there cost nothing.
 * Any thread.
 */
int disk_budget_take(struct disk_budget *b, int fd, uint64_t off, uint64_t len, uint64_t *taken);
void disk_budget_give(struct disk_budget *b, uint64_t taken);

#endif
