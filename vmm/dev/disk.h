/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk: a disk image on the host as an array of bytes.
 *
 * By default the image is opened read-only and never changed: what is written goes to an
 * overlay, in memory or in a sparse file, that is looked at first. Two machines may share
 * one image. Reads, writes and flushes may come from several threads at a time; two that
 * overlap and are in flight together have no order, as on any disk.
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
#define DISK_MAX_SIZE (UINT64_C(1) << 44)

enum disk_write {
	DISK_OVERLAY = 0,  /* in memory, gone with the run; counted in disk_overlay_bytes() */
	DISK_OVERLAY_FILE, /* in the file `overlay`, which is kept, and gone on with if there */
	DISK_WRITABLE,	   /* the image itself; locked (flock) against everybody else */
	DISK_READ_ONLY,	   /* writes fail */
};

struct disk_config {
	const char *path;
	enum disk_write write;
	const char *overlay; /* DISK_OVERLAY_FILE */
	/* DISK_OVERLAY: shared with others, outlives the disk; NULL: the host's memory is the limit */
	struct disk_budget *budget;
};

struct disk;

/*
 * Raw images and block devices. qcow2, vmdk, vdi, vhdx and the like are recognised and
 * refused with the command that converts them. Size is rounded down to sectors; 0 sectors
 * is an error. While it is open the image is locked (flock): shared, or alone where it is
 * written; -EBUSY when another has it in a way that does not go with that.
 */
int disk_open(struct disk **out, const struct disk_config *cfg, struct err *e);
/*
 * What is in an overlay file is complete then, or -errno with e: something that was written, or
 * flushed before, did not get to its file. NULL is fine.
 */
int disk_close(struct disk *d, struct err *e);

uint64_t disk_size(const struct disk *d); /* bytes, a multiple of DISK_SECTOR */
bool disk_is_read_only(const struct disk *d);
bool disk_is_writable(const struct disk *d); /* DISK_WRITABLE: the image itself is */
const char *disk_path(const struct disk *d);
/* The image's descriptor: borrowed, read-only but for DISK_WRITABLE. */
int disk_fd(const struct disk *d);
/* What the overlay takes of memory or of its file system, bytes. */
uint64_t disk_overlay_bytes(const struct disk *d);
/* Writes that failed with -ENOSPC, as the budget had no room. */
uint64_t disk_overlay_refused(const struct disk *d);

/*
 * All of iov at byte off: 0, or -errno (-EIO past the end, -EROFS). Any off and length;
 * what is written on a sector's part is together with what others write on its other part
 * only when these wait for each other.
 */
int disk_readv(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
int disk_writev(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
/* Once one has failed all do, as what it lost stays lost. */
int disk_flush(struct disk *d);
/*
 * The same where it needs no waiting for a device, as the bytes are in the host's memory
 * or go there: -EAGAIN otherwise, and some of a read's iov may be filled then.
 */
int disk_readv_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
int disk_writev_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n);
int disk_flush_now(struct disk *d);
/*
 * [off, off+len), whole sectors (-EINVAL), reads as zeros afterwards; what is stored of
 * it in an overlay, or in a writable image that may have holes, is freed.
 */
int disk_discard(struct disk *d, uint64_t off, uint64_t len);

/* By what an image is known again. */
struct disk_identity {
	uint64_t size;	/* bytes */
	uint64_t stamp; /* when it was last changed, ns since 1970; 0: a block device */
	uint32_t check; /* CRC-32 of 16 pieces of 4 KiB, spread evenly from its start to its end */
};
/* -ESTALE: it was changed since it was opened. */
int disk_identify(const struct disk *d, struct disk_identity *out, struct err *e);

/*
 * What the overlay holds, for a snapshot; nothing may be in flight. save() writes it at
 * fd's position. restore() replaces what there is, and takes what was saved of an image of
 * this size and time of change only (-EINVAL, -ESTALE). -ENOTSUP for DISK_WRITABLE, whose
 * state no file but the image has.
 */
int disk_overlay_save(const struct disk *d, int fd, struct err *e);
int disk_overlay_restore(struct disk *d, struct cursor *in, struct err *e);

#endif
