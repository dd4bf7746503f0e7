/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_nbd: reads disk images in other formats than raw through qemu-nbd and libnbd.
 *
 * qemu-nbd runs as a program of disk_program.h. It has the image read-only, by descriptor, and a
 * socket that no other process can reach. libnbd is loaded at run time, because few runs need it.
 * A read has a limit of DISK_NBD_WAIT_MS; a server that misses it is not asked again.
 *
 * disk_nbd_open() and disk_nbd_close() are for the main thread; any thread may read.
 */
#ifndef KVMPROF_VMM_DEV_DISK_NBD_H
#define KVMPROF_VMM_DEV_DISK_NBD_H

#include "base/err.h"
#include "vmm/dev/disk_program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_NBD_WAIT_MS 30000u
/* The most images of a chain: QEMU has no limit, and chains of management tools are short. */
#define DISK_NBD_MAX_FILES (DISK_PROGRAM_MAX_FILES - 1)

struct disk_nbd;

struct disk_nbd_image {
	const char *path; /* for messages */
	/*
	 * What qemu-nbd opens, as its --image-opts; file N is /proc/self/fd/(DISK_PROGRAM_FILE + N)
	 */
	const char *options;
	const int *file; /* descriptors, open for reading; the caller keeps them */
	unsigned int nfiles;
};

/*
 * Starts the server and connects to it. Returns 0; -ENOENT if qemu-nbd or libnbd is not installed;
 * or another -errno, with *e recorded, which has what qemu-nbd reported. The caller closes *out
 * with disk_nbd_close().
 */
int disk_nbd_open(struct disk_nbd **out, const struct disk_nbd_image *image,
		  const struct disk_confine *confine, struct err *e);
/* Ends the server, and frees *n. Accepts NULL. */
void disk_nbd_close(struct disk_nbd *n);

/* Makes a read that waits return -EIO soon, and all later ones at once. Any thread may call it. */
void disk_nbd_stop(struct disk_nbd *n);
/* Returns whether the server ended, or missed the limit, before disk_nbd_stop(). */
bool disk_nbd_failed(struct disk_nbd *n);

/* Returns the size of the disk in bytes. */
uint64_t disk_nbd_size(const struct disk_nbd *n);
/*
 * Reads all of dst at byte off, which lies within the disk. The caller will read `more` bytes behind
 * them next. Returns 0 or -errno.
 */
int disk_nbd_read(struct disk_nbd *n, uint64_t off, void *dst, size_t len, size_t more);

#endif
