/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpio_write: an archive that Linux unpacks as its first file system.
 *
 * Format "newc" (Documentation/driver-api/early-userspace/buffer-format.rst): for each
 * entry a header of 110 ASCII bytes, the name with its NUL, and the data, both padded to
 * 4 bytes. Names are relative; directories come before what is in them. Entries with
 * links > 1 and one inode number are hard links of each other: the first one has the data.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_CPIO_WRITE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_CPIO_WRITE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

#define CPIO_NAME_MAX 4095u	 /* PATH_MAX of Linux, less the NUL */
#define CPIO_FILE_MAX UINT32_MAX /* eight hexadecimal digits */
#define CPIO_HEADER_LEN 110u

struct cpio_entry {
	const char *name; /* "" is not one; "." is the root */
	uint32_t mode;	  /* as in struct stat */
	uint32_t uid, gid, mtime;
	uint32_t ino, links;
	uint32_t major, minor; /* of a device */
	uint64_t size;	       /* bytes of data that follow, up to CPIO_FILE_MAX */
};

/* One thread. */
struct cpio_writer {
	int fd; /* borrowed, written in order */
	uint64_t len, max;
	uint64_t data_left; /* of the current entry */
	struct buf buf;
};

/* No more than max bytes in all. */
void cpio_write_begin(struct cpio_writer *w, int fd, uint64_t max);
void cpio_write_deinit(struct cpio_writer *w);

/*
 * Each begins an entry, adds to its data, and ends the archive: 0, or -errno with e set;
 * -EFBIG: more than max. An entry needs all of its data before the next one.
 */
int cpio_write_entry(struct cpio_writer *w, const struct cpio_entry *entry, struct err *e);
int cpio_write_data(struct cpio_writer *w, const void *data, size_t len, struct err *e);
int cpio_write_end(struct cpio_writer *w, struct err *e);

#endif
