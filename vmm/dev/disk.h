/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk: a disk image on the host as an array of bytes.
 *
 * By default the image is opened read-only and never changed: written data goes to an overlay, in
 * memory or in a sparse file, which is read first. Two machines may share one image. Any thread may
 * call the functions for reads, writes, flushes and discards at the same time; overlapping requests
 * that are in flight together have no order, as on any disk. The thread that owns the disk calls
 * the other functions.
 */
#ifndef KVMPROF_VMM_DEV_DISK_H
#define KVMPROF_VMM_DEV_DISK_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct disk_budget;
struct disk_confine;

#define DISK_SECTOR 512u
#define DISK_SERIAL_LEN 20u /* bytes of a serial number, VIRTIO 1.2, 5.2.6 */
/* The maximum size of an image, in bytes. */
#define DISK_MAX_SIZE (UINT64_C(1) << 44)

enum disk_write {
	/* In memory, lost at the end of the run; counted in disk_overlay_bytes(). */
	DISK_OVERLAY = 0,
	DISK_OVERLAY_FILE, /* in the file `overlay`, which is kept and continued if it exists */
	/* In the image itself, which is locked (flock) against all other users. */
	DISK_WRITABLE,
	DISK_READ_ONLY, /* writes fail */
};

struct disk_config {
	const char *path;
	enum disk_write write;
	const char *overlay; /* path, for DISK_OVERLAY_FILE */
	/*
	 * DISK_OVERLAY: memory budget shared with other disks, borrowed; NULL: limited by the
	 * host's memory only
	 */
	struct disk_budget *budget;
	/* The image's format, "raw" or a name of disk_format_name(); NULL: detected. Borrowed. */
	const char *format;
	bool follow; /* other files that the image refers to, such as a backing file, are read */
	/* How programs that read other formats are confined, borrowed; NULL: they are not. */
	const struct disk_confine *confine;
};

struct disk;

/*
 * Opens an image or a block device. A compressed image is unpacked to a file without a name;
 * qcow2, vmdk, vdi, vhdx and similar formats are read by a process of their own (disk_nbd.h), and
 * both are never changed. The size is rounded down to whole sectors; 0 sectors is an error.
 * The image stays locked (flock) while it is open: shared, or exclusive if it is written. Returns
 * 0, or -errno with *e recorded; -EBUSY if another process holds a conflicting lock. The caller
 * closes it with disk_close().
 */
int disk_open(struct disk **out, const struct disk_config *cfg, struct err *e);
/*
 * Closes the disk and frees it. Returns 0, or -errno with *e recorded: some data that was written,
 * or flushed earlier, did not reach its file, or the process that reads the image failed. On success an overlay file is complete. Accepts NULL.
 */
int disk_close(struct disk *d, struct err *e);
/*
 * Lets reads that wait for another process fail soon, and all later ones at once. Any thread may call
 * it; disk_close() follows. Accepts NULL.
 */
void disk_stop(struct disk *d);

/* Returns the size in bytes, a multiple of DISK_SECTOR. */
uint64_t disk_size(const struct disk *d);
/* Returns whether writes are refused. */
bool disk_is_read_only(const struct disk *d);
/* Returns whether the image itself is written (DISK_WRITABLE). */
bool disk_is_writable(const struct disk *d);
/* Returns the image's path, which belongs to the disk. */
const char *disk_path(const struct disk *d);
/*
 * Returns a descriptor that has the disk's bytes and belongs to the disk; read-only except for
 * DISK_WRITABLE. Returns -1 if the bytes are read by disk_readv() only.
 */
int disk_fd(const struct disk *d);
/* Returns "raw" or the name of the image's format (static text). */
const char *disk_format(const struct disk *d);
/* Returns the name of the image's compression (static text), or NULL. */
const char *disk_compression(const struct disk *d);
/* Returns the bytes that the overlay occupies in memory or in its file system. */
uint64_t disk_overlay_bytes(const struct disk *d);
/* Returns the number of writes that failed with -ENOSPC because the budget was exhausted. */
uint64_t disk_overlay_refused(const struct disk *d);

/*
 * Reads all of iov from byte off, which need not be aligned. Returns 0, or -errno (-EIO beyond the
 * end).
 */
int disk_readv(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/*
 * Writes all of iov to byte off, which need not be aligned. Returns 0, or -errno (-EIO beyond the
 * end, -EROFS). If two requests write different parts of one sector, both are kept only if one
 * waits for the other.
 */
int disk_writev(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/*
 * Flushes written data to the host's storage. Returns 0 or -errno. After one failure all later
 * flushes fail, because the lost data stays lost.
 */
int disk_flush(struct disk *d);
/*
 * Does the same as disk_readv() if the bytes are in the host's memory, so that it need not wait for
 * a device. Returns -EAGAIN otherwise; a part of iov may have been filled then.
 */
int disk_readv_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/*
 * Does the same as disk_writev() if the bytes go to the host's memory. Returns -EAGAIN otherwise.
 */
int disk_writev_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/* Does the same as disk_flush() if it need not wait for a device. Returns -EAGAIN otherwise. */
int disk_flush_now(struct disk *d);
/*
 * Makes [off, off + len) read as zeros, and frees what is stored of it in an overlay or in a
 * writable image that may have holes. Both are whole sectors. Returns 0, or -errno (-EINVAL, -EIO,
 * -EROFS).
 */
int disk_discard(struct disk *d, uint64_t off, uint64_t len);

/* Properties by which an image is recognised. */
struct disk_identity {
	uint64_t size;	/* bytes */
	uint64_t stamp; /* time of the last change, ns since 1970; 0: a block device */
	uint32_t check; /* CRC-32 of 16 pieces of 4 KiB, spread evenly over the image */
};
/*
 * Computes the identity of the image. Returns 0, or -errno with *e recorded; -ESTALE if it was
 * changed since it was opened.
 */
int disk_identify(const struct disk *d, struct disk_identity *out, struct err *e);

/*
 * Writes the contents of the overlay at fd's position, for a snapshot, while no request is in
 * flight. Returns 0, or -errno with *e recorded; -ENOTSUP for DISK_WRITABLE, whose state exists
 * only in the image.
 */
int disk_overlay_save(const struct disk *d, int fd, struct err *e);
/*
 * Replaces the overlay by what disk_overlay_save() has written, while no request is in flight.
 * Returns 0, or -errno with *e recorded: -EINVAL if the image had another size, -ESTALE if it had
 * another time of change, -ENOTSUP for DISK_WRITABLE.
 */
int disk_overlay_restore(struct disk *d, struct cursor *in, struct err *e);

#endif
