/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_disk: a directory as an ext4 file system in a file, by `mke2fs -d` (e2fsprogs).
 *
 * No rights are needed. Owners are those of the directory's files.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_DISK_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_DISK_H

#include "base/err.h"

#include <limits.h>

/*
 * Make the file in $TMPDIR, or /var/tmp; its name is in path (PATH_MAX bytes), and it is the
 * caller's to remove. Half as much again as the files have, and 64 MiB, are free in it.
 */
int rootfs_disk_make(const char *dir, char *path, struct err *e);

#endif
