/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_overlay: what was written over an image that is not to be changed.
 *
 * A sparse file, or one in memory (memfd), has each written sector at the offset that it
 * has in the image, behind a header and a bitmap that says which sectors these are:
 *
 *	u8  magic[8]	"kvmp-ovl"
 *	u32 version	1
 *	u32 sector	512
 *	u64 size	of the image, bytes
 *	u64 stamp	when the image was last changed, ns since 1970; 0: a block device
 *	u64 data	offset of the image's byte 0 in this file
 *	0 up to OVERLAY_BITMAP
 *	bitmap		one bit for each sector, little endian; 0 up to `data`
 *	data
 *
 * While it is open the bitmap is in memory; flush and close write what has changed of it.
 * Nothing is truncated or deleted, so the file is as good as the last flush at any time.
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
	struct disk_budget *budget;   /* of memory, borrowed; NULL: a file, or no limit */
	atomic_uint_fast64_t refused; /* writes that it had no room for */
	uint64_t data;		      /* offset of byte 0 in fd */
	uint64_t sectors;	      /* of the image */
	uint64_t stamp;
	atomic_uint_least64_t *bitmap; /* mapped; a page exists once it was written */
	size_t bitmap_len;	       /* bytes, whole pages */
	atomic_uchar *dirty;	       /* one for each page of it */
	pthread_mutex_t lock;	       /* flushes, and sectors that are written in part */
	int failed;		       /* -errno of the first flush that failed; under lock */
};

/* path NULL: in memory, as far as budget (NULL: no limit) has room. size is a multiple of 512. */
int disk_overlay_open(struct disk_overlay **out, const char *path, uint64_t size, uint64_t stamp,
		      struct disk_budget *budget, struct err *e);
/*
 * 0, or -errno: what was written is not all in the file, now or since a flush that failed.
 * NULL is fine.
 */
int disk_overlay_close(struct disk_overlay *o);

/* How many sectors from `sector` on, n at most, are the same in being in the overlay or not. */
uint64_t disk_overlay_run(const struct disk_overlay *o, uint64_t sector, uint64_t n, bool *in);
/*
 * Before [off, off+len) of the image is written to the overlay, and afterwards: 0, or -ENOSPC,
 * counted in `refused`.
 */
int disk_overlay_begin(struct disk_overlay *o, uint64_t off, uint64_t len, uint64_t *taken);
void disk_overlay_end(struct disk_overlay *o, uint64_t taken);
/* From now on [sector, sector+n) is read from the overlay: call it after they were written. */
void disk_overlay_add(struct disk_overlay *o, uint64_t sector, uint64_t n);
/* Nothing is in the overlay. */
int disk_overlay_clear(struct disk_overlay *o);
/*
 * Once one has failed all do: the kernel tells of lost pages once, and calls them clean.
 */
int disk_overlay_flush(struct disk_overlay *o);
/* Make [off, off+len) of fd zeros, as holes where the file system has such: 0 or -errno. */
int disk_fill_zeros(int fd, uint64_t off, uint64_t len);

#endif
