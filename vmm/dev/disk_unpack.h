/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_unpack: unpacks a compressed disk image to a file without a name.
 *
 * gzip, xz, zstd, bzip2 or lz4 unpack it as programs of disk_program.h. A common compressed image
 * is one stream, which can be read from its beginning only; so it is unpacked once, when the disk is
 * opened, to a file in $TMPDIR or /var/tmp. Blocks of zeros take no room there.
 *
 * The functions are for the main thread.
 */
#ifndef KVMPROF_VMM_DEV_DISK_UNPACK_H
#define KVMPROF_VMM_DEV_DISK_UNPACK_H

#include "base/err.h"
#include "vmm/dev/disk_program.h"
#include "vmm/image/disk_format.h"

#include <stdint.h>
#include <sys/types.h>

/* The limit for the unpacking program to produce more bytes. */
#define DISK_UNPACK_WAIT_MS 30000u

struct disk_unpack {
	const char *path; /* for messages */
	int fd;		  /* the compressed file, read from its beginning */
	const struct disk_compression *how;
	const struct disk_confine *confine;
};

/*
 * Unpacks the image. Returns 0; -ENOENT if the program is not installed; -EINVAL if the file is
 * damaged or truncated; or another -errno, with *e recorded. The caller closes *out.
 */
int disk_unpack(int *out, const struct disk_unpack *from, struct err *e);
/*
 * Creates the file that an image is unpacked to. It has no name, and whoever gets a descriptor may read
 * it, so a confined program can. Returns the descriptor, or -errno with *e recorded.
 */
int disk_unpack_file(const char *path, struct err *e);
/*
 * Unpacks at most the first cap bytes to dst. Returns their number, or -errno as disk_unpack().
 */
ssize_t disk_unpack_head(const struct disk_unpack *from, void *dst, size_t cap, struct err *e);

#endif
