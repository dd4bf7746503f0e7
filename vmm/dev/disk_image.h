/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_image: the bytes that a guest sees of a disk image, whatever its format: raw, compressed, or
 * one that qemu-nbd reads. An image is never changed through this interface.
 *
 * Opening and closing are for the main thread. Any thread may read.
 */
#ifndef KVMPROF_VMM_DEV_DISK_IMAGE_H
#define KVMPROF_VMM_DEV_DISK_IMAGE_H

#include "base/err.h"
#include "vmm/dev/disk_program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_nbd;

struct disk_image {
	/*
	 * The disk's bytes, to be read with pread(2): the caller's own descriptor, or `unpacked`; -1:
	 * disk_image_read() only
	 */
	int fd;
	int unpacked;	      /* owned; -1: none */
	struct disk_nbd *nbd; /* owned; NULL: none */
	/* Descriptors of other files that the image refers to, owned. */
	int other[DISK_PROGRAM_MAX_FILES];
	unsigned int nothers;
	const char *format; /* "raw", or a name of disk_format_name(); static */
	const char *how;    /* name of the compression; NULL: none; static */
	uint64_t size;	    /* bytes; valid if `fd` is not the caller's descriptor */
};

struct disk_image_config {
	const char *path;
	int fd;		    /* the file, open for reading; the caller keeps it */
	const char *format; /* required format, or "raw" for no detection; NULL: detected */
	bool follow;	    /* other files that the image refers to are read, too */
	const struct disk_confine *confine;
};

/*
 * Detects the format by the first bytes, and prepares the image for reading. Returns 0, or -errno
 * with *e recorded; -ENOTSUP for an image that is encrypted or needs other files. The caller closes
 * *out with disk_image_close(), also after a failure.
 */
int disk_image_open(struct disk_image *out, const struct disk_image_config *cfg, struct err *e);
/* Closes the image. Accepts one that is all zero except for descriptors of -1. */
void disk_image_close(struct disk_image *m);
/* Makes *m an image that is not open. */
void disk_image_init(struct disk_image *m);
/*
 * Makes a read that waits for qemu-nbd return -EIO soon, and all later ones at once. Does nothing
 * for another image. Any thread may call it.
 */
void disk_image_stop(const struct disk_image *m);
/*
 * Returns whether qemu-nbd ended, or missed the limit, before disk_image_stop(); false for another
 * image.
 */
bool disk_image_failed(const struct disk_image *m);
/*
 * Reads all of dst at byte off, which lies within the disk, through qemu-nbd. The caller will read
 * `more` bytes behind them next. Returns 0 or -errno; -EIO for an image with a descriptor in m->fd.
 * Any thread may call it.
 */
int disk_image_read(const struct disk_image *m, uint64_t off, void *dst, size_t len, size_t more);

#endif
