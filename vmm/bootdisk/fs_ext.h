/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskfs_ext: the part of diskfs that uses libext2fs. Each function does the same as the one in
 * fs.h without "ext", for ext2 to ext4 only, and returns the same errors. Only the main thread
 * calls them.
 */
#ifndef KVMPROF_VMM_BOOTDISK_FS_EXT_H
#define KVMPROF_VMM_BOOTDISK_FS_EXT_H

#include "vmm/bootdisk/fs.h"

struct diskfs_ext;

/*
 * Loads libext2fs, once for the process, and opens a file system as fs_open(). Returns -ENOENT if
 * the library is not installed. The caller frees *out with fs_ext_close().
 */
int fs_ext_open(struct diskfs_ext **out, const struct volume *v, struct err *e);
void fs_ext_close(struct diskfs_ext *x);
bool fs_ext_exists(struct diskfs_ext *x, const char *path);
int fs_ext_read(struct diskfs_ext *x, const char *path, size_t max, struct buf *out, struct err *e);
int fs_ext_read_part(struct diskfs_ext *x, const char *path, struct diskfs_part part,
		     struct buf *out, uint64_t *size, struct err *e);
int fs_ext_link(struct diskfs_ext *x, const char *path, char *to);
int fs_ext_list(struct diskfs_ext *x, const char *path, diskfs_list_fn *fn, void *ctx,
		struct err *e);

#endif
