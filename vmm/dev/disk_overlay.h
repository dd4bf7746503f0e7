/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_overlay: the data that was written over an image that must not change.
 *
 * A sparse file, or a file in memory (memfd), has each written sector at its offset in the image,
 * after a header and a bitmap that shows which sectors these are:
 *
 * 	u8  magic[8]	"kvmp-ovl"
 * 	u32 version	1
 * 	u32 sector	512
 * 	u64 size	of the image, bytes
 * 	u64 stamp	when the image was last changed, ns since 1970; 0: a block device
 * 	u64 data	offset of the image's byte 0 in this file
 * 	0 up to OVERLAY_BITMAP
 * 	bitmap		one bit for each sector, little endian; 0 up to `data`
 * 	data
 *
 * While the overlay is open, the bitmap is in memory; flush and close write its changed pages.
 * Nothing is truncated or deleted, so the file is valid as of the last flush at any time. Any
 * thread may call these functions, except open, close and clear, which need exclusive use.
 */
#ifndef KVMPROF_VMM_DEV_DISK_OVERLAY_H
#define KVMPROF_VMM_DEV_DISK_OVERLAY_H

#include "base/err.h"
#include "vmm/dev/disk_budget.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OVERLAY_BITMAP 4096u

struct disk_overlay {
	int fd;
	bool in_memory;
	struct disk_budget *budget;   /* limit for memory, borrowed; NULL: a file, or no limit */
	atomic_uint_fast64_t refused; /* writes refused for lack of room */
	uint64_t data;		      /* offset of the image's byte 0 in fd */
	uint64_t sectors;	      /* number of sectors of the image */
	uint64_t stamp;
	atomic_uint_least64_t *bitmap; /* anonymous mapping; a page exists once it was written */
	size_t bitmap_len;	       /* bytes, whole pages */
	atomic_uchar *dirty;	       /* one for each page of the bitmap */
	pthread_mutex_t lock;	       /* protects flushes, and sectors that are written in part */
	/* -errno of the first flush that failed; protected by lock */
	int failed;
};

/*
 * Opens or creates the overlay file at path, or an overlay in memory if path is NULL, which is then
 * limited by the budget (NULL: no limit). size is a multiple of 512. Returns 0, or -errno with *e
 * recorded. The caller closes it with disk_overlay_close().
 */
int disk_overlay_open(struct disk_overlay **out, const char *path, uint64_t size, uint64_t stamp,
		      struct disk_budget *budget, struct err *e);
/*
 * Closes and frees the overlay. Returns 0, or -errno if some written data is not in the file, now
 * or since a flush that failed. Accepts NULL.
 */
int disk_overlay_close(struct disk_overlay *o);

/*
 * Returns how many sectors from `sector` on, at most n, are all in the overlay or all not in it,
 * and stores in *in which of the two.
 */
uint64_t disk_overlay_run(const struct disk_overlay *o, uint64_t sector, uint64_t n, bool *in);
/*
 * Reserves memory for a write to [off, off + len) of the image, and stores the number of reserved
 * bytes in *taken, which the caller passes to disk_overlay_end() after the write. Returns 0, or
 * -ENOSPC, which is counted in `refused`.
 */
int disk_overlay_begin(struct disk_overlay *o, uint64_t off, uint64_t len, uint64_t *taken);
/* Ends the reservation of disk_overlay_begin(). */
void disk_overlay_end(struct disk_overlay *o, uint64_t taken);
/* Marks [sector, sector + n) as stored in the overlay. Call it after they were written. */
void disk_overlay_add(struct disk_overlay *o, uint64_t sector, uint64_t n);
/* Removes all data from the overlay. Returns 0 or -errno. */
int disk_overlay_clear(struct disk_overlay *o);
/*
 * Writes data and bitmap to the disk. Returns 0 or -errno. After one failure all later flushes
 * fail: the kernel reports lost pages only once, and then treats them as clean.
 */
int disk_overlay_flush(struct disk_overlay *o);
/* Makes [off, off + len) of fd zeros, as holes if the file system has them. Returns 0 or -errno. */
int disk_fill_zeros(int fd, uint64_t off, uint64_t len);

#endif
