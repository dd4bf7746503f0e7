/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskfs_ext: the part of diskfs that uses libext2fs. Each function works like the one in fs.h
 * without "ext", for ext2 to ext4 only; only the main thread calls them. fs_ext_open() loads
 * libext2fs, and returns -ENOENT if that is not installed.
 */
#ifndef KVMPROF_VMM_BOOTDISK_FS_EXT_H
#define KVMPROF_VMM_BOOTDISK_FS_EXT_H

#include "vmm/bootdisk/fs.h"

struct diskfs_ext;

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
