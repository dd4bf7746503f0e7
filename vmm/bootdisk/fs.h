/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskfs: files of a file system in a disk image, read without mounting it.
 *
 * ext2, ext3 and ext4 through libext2fs, FAT through fat.h. What is read comes through a
 * struct disk_reader, so with an overlay it is what the guest would see. A journal that was not
 * played back is not looked at. Paths begin at the file system's root, with or without
 * '/'; links are followed inside of the file system.
 */
#ifndef KVMPROF_VMM_BOOTDISK_FS_H
#define KVMPROF_VMM_BOOTDISK_FS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISKFS_MAX_NAMES 65536u /* of one directory; what follows is not seen */
#define DISKFS_MAX_PATH 4096u

/* The disk's bytes: all of dst from byte off on; returns 0 or -errno (-EIO past the end). */
struct disk_reader {
	int (*read)(void *disk, uint64_t off, void *dst, size_t len);
	void *disk;
};

/* A piece of a disk. */
struct volume {
	struct disk_reader disk;
	uint64_t off, len;
};

/* fat_read_fn; -EIO outside of the piece. */
int fs_volume_read(void *volume, uint64_t off, void *dst, size_t len);

struct diskfs;

/*
 * type as libblkid names it. -ENOTSUP: we can't read such; -EINVAL: damaged. The disk stays
 * the caller's, and must outlive the diskfs.
 */
int fs_open(struct diskfs **out, const struct volume *v, const char *type, struct err *e);
void fs_close(struct diskfs *fs);

/* A file or directory, links followed. */
bool fs_exists(struct diskfs *fs, const char *path);

/* A regular file's bytes, appended. -ENOENT, -EISDIR, -EFBIG (more than max), -EINVAL, -EIO. */
int fs_read(struct diskfs *fs, const char *path, size_t max, struct buf *out, struct err *e);

/* Of a file; it may end before. */
struct diskfs_part {
	uint64_t off;
	size_t len;
};

/* These of its bytes, appended, as far as there are; *size: bytes of all of it. Errors as above. */
int fs_read_part(struct diskfs *fs, const char *path, struct diskfs_part part, struct buf *out,
		 uint64_t *size, struct err *e);

/* What a link says, terminated, into to[DISKFS_MAX_PATH]. -EINVAL: no link. */
int fs_link(struct diskfs *fs, const char *path, char *to);

/* Each name but "." and ".."; another value than 0 ends it and is returned. */
typedef int diskfs_list_fn(void *ctx, const char *name);
int fs_list(struct diskfs *fs, const char *path, diskfs_list_fn *fn, void *ctx, struct err *e);

#endif
