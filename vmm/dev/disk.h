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
};

struct disk;

/*
 * Opens a raw image or a block device. qcow2, vmdk, vdi, vhdx and similar formats are refused with
 * the command that converts them. The size is rounded down to whole sectors; 0 sectors is an error.
 * The image stays locked (flock) while it is open: shared, or exclusive if it is written. Returns
 * 0, or -errno with *e recorded; -EBUSY if another process holds a conflicting lock. The caller
 * closes it with disk_close().
 */
int disk_open(struct disk **out, const struct disk_config *cfg, struct err *e);
/*
 * Closes the disk and frees it. Returns 0, or -errno with *e recorded: some data that was written,
 * or flushed earlier, did not reach its file. On success an overlay file is complete. Accepts NULL.
 */
int disk_close(struct disk *d, struct err *e);

uint64_t disk_size(const struct disk *d); /* bytes, a multiple of DISK_SECTOR */
bool disk_is_read_only(const struct disk *d);
bool disk_is_writable(const struct disk *d); /* DISK_WRITABLE: the image itself is written */
/* Returns the image's path, which belongs to the disk. */
const char *disk_path(const struct disk *d);
/* Returns the image's descriptor, which belongs to the disk; read-only except for DISK_WRITABLE. */
int disk_fd(const struct disk *d);
/* Returns the bytes that the overlay occupies in memory or in its file system. */
uint64_t disk_overlay_bytes(const struct disk *d);
/* Returns the number of writes that failed with -ENOSPC because the budget was exhausted. */
uint64_t disk_overlay_refused(const struct disk *d);

/*
 * Transfer all of iov at byte off, which need not be aligned. Return 0, or -errno (-EIO beyond the
 * end, -EROFS). If two requests write different parts of one sector, both are kept only if one
 * waits for the other.
 */
int disk_readv(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
int disk_writev(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/*
 * Flushes written data to the host's storage. Returns 0 or -errno. After one failure all later
 * flushes fail, because the lost data stays lost.
 */
int disk_flush(struct disk *d);
/*
 * Do the same if it needs no waiting for a device, because the bytes are in the host's memory or go
 * there. Return -EAGAIN otherwise; a part of a read's iov may have been filled then.
 */
int disk_readv_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
int disk_writev_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
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
 * Save and restore the contents of the overlay for a snapshot, while no request is in flight.
 * disk_overlay_save() writes at fd's position. disk_overlay_restore() replaces the overlay; it
 * accepts only data of an image with this size (-EINVAL) and time of change (-ESTALE). Both return
 * 0, or -errno with *e recorded; -ENOTSUP for DISK_WRITABLE, whose state exists only in the image.
 */
int disk_overlay_save(const struct disk *d, int fd, struct err *e);
int disk_overlay_restore(struct disk *d, struct cursor *in, struct err *e);

#endif
