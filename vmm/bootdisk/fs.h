/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskfs: reads files of a file system in a disk image without mounting it.
 *
 * ext2, ext3 and ext4 are read by libext2fs, FAT by fat.h. All reads go through a struct
 * disk_reader, so that with an overlay they return what the guest would see. An unplayed journal
 * is ignored. Paths begin at the file system's root, with or without '/'; links are followed
 * within the file system. Only the main thread reads disks.
 */
#ifndef KVMPROF_VMM_BOOTDISK_FS_H
#define KVMPROF_VMM_BOOTDISK_FS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISKFS_MAX_NAMES 65536u /* names of one directory; further ones are ignored */
#define DISKFS_MAX_PATH 4096u

/* Reads all of dst from byte `off` of the disk; returns 0 or -errno (-EIO past the end). */
struct disk_reader {
	int (*read)(void *disk, uint64_t off, void *dst, size_t len);
	void *disk;
	/* Bytes of the disk if its file does not have them as they are; 0: the file has them. */
	uint64_t size;
};

/* A part of a disk, in bytes. */
struct volume {
	struct disk_reader disk;
	uint64_t off, len;
};

/*
 * Reads all of dst from byte `off` of the struct volume at `volume`. Returns 0 or -errno (-EIO
 * outside of the volume). Has the type fat_read_fn.
 */
int fs_volume_read(void *volume, uint64_t off, void *dst, size_t len);

struct diskfs;

/*
 * Opens a file system. type is its name in libblkid. Returns 0, -ENOTSUP if this type cannot be
 * read, -EINVAL if it is damaged, or another -errno, with *e set. Copies *v; the disk remains the
 * caller's and must outlive the diskfs. The caller frees *out with fs_close(), which accepts NULL.
 */
int fs_open(struct diskfs **out, const struct volume *v, const char *type, struct err *e);
/* Closes the file system and frees it. Accepts NULL. */
void fs_close(struct diskfs *fs);

/* Returns whether a file or directory exists at path, following links. */
bool fs_exists(struct diskfs *fs, const char *path);

/*
 * Appends a regular file's bytes to *out. Returns 0, -ENOENT, -EISDIR, -EFBIG (more than max
 * bytes), -EINVAL, -EIO or -ENOMEM, with *e set.
 */
int fs_read(struct diskfs *fs, const char *path, size_t max, struct buf *out, struct err *e);

/* A range of a file's bytes; it may extend past the end. */
struct diskfs_part {
	uint64_t off;
	size_t len;
};

/*
 * Appends this range of a file, as far as it exists, and stores the file's size in bytes in *size.
 * Returns as fs_read().
 */
int fs_read_part(struct diskfs *fs, const char *path, struct diskfs_part part, struct buf *out,
		 uint64_t *size, struct err *e);

/*
 * Stores a link's target with a NUL in to[DISKFS_MAX_PATH]. Returns 0, or -EINVAL if it is not a
 * link.
 */
int fs_link(struct diskfs *fs, const char *path, char *to);

/*
 * Calls fn for each name in a directory except "." and "..". If fn does not return 0, the listing
 * ends and returns that value. Returns 0 at the end, or -errno with *e set.
 */
typedef int diskfs_list_fn(void *ctx, const char *name);
int fs_list(struct diskfs *fs, const char *path, diskfs_list_fn *fn, void *ctx, struct err *e);

#endif
