/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpio_write: writes an archive that Linux unpacks as its initial root file system.
 *
 * Format "newc" (Documentation/driver-api/early-userspace/buffer-format.rst): for each entry a
 * header of 110 ASCII bytes, the name with its NUL, and the data, both padded to 4 bytes. Names are
 * relative; directories precede their content. Entries with links > 1 and the same inode number are
 * hard links of each other: the first one has the data.
 *
 * Not thread-safe: one thread uses a writer.
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
	const char *name; /* "." is the root; "" is not allowed */
	uint32_t mode;	  /* as in struct stat */
	uint32_t uid, gid, mtime;
	uint32_t ino, links;
	uint32_t major, minor; /* numbers of a device */
	uint64_t size;	       /* bytes of data that follow, at most CPIO_FILE_MAX */
};

/* A writer. */
struct cpio_writer {
	int fd; /* borrowed; written sequentially */
	/* bytes written, and at most */
	uint64_t len, max;
	uint64_t data_left; /* bytes of the current entry that are still missing */
	struct buf buf;
};

/* Initializes a writer that writes at most max bytes to fd. It cannot fail. */
void cpio_write_begin(struct cpio_writer *w, int fd, uint64_t max);
/* Frees the buffer; unwritten bytes are discarded, and fd stays open. */
void cpio_write_deinit(struct cpio_writer *w);

/*
 * Begin an entry, append to its data, and end the archive. All data of an entry must be written
 * before the next entry begins. Each returns 0, or -errno with the reason in *e: -EFBIG beyond max,
 * -ENAMETOOLONG, -ENOMEM, or the error of write(2).
 */
int cpio_write_entry(struct cpio_writer *w, const struct cpio_entry *entry, struct err *e);
int cpio_write_data(struct cpio_writer *w, const void *data, size_t len, struct err *e);
int cpio_write_end(struct cpio_writer *w, struct err *e);

#endif
