/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_disk: makes an ext4 file system in a file from a directory, by `mke2fs -d` (e2fsprogs).
 *
 * No privileges are needed. Owners are those of the directory's files. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_DISK_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_DISK_H

#include "base/err.h"

#include <limits.h>

/*
 * Makes the image file in $TMPDIR, or /var/tmp, and stores its name in `path` (PATH_MAX bytes). The
 * caller removes it. Half of the size of its files and 64 MiB are free in it. Returns 0, or -errno
 * with the reason in *e; no file is left on failure. Waits for mke2fs without a limit.
 */
int rootfs_disk_make(const char *dir, char *path, struct err *e);

#endif
