/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archive: adds the content of an archive to a root file system, through libarchive: tar and cpio,
 * with all compressions that it reads without running a program.
 *
 * An initramfs must state the number of a file's names with its first name, but archives do so only
 * at the second one. Therefore the archive is read twice, the first time only for links.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_ARCHIVE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_ARCHIVE_H

#include "profile/record/rootfs/rootfs.h"

/*
 * Adds the content of a tar or cpio archive, compressed or not. An entry replaces an earlier one
 * with its name. Returns 0 or -errno with the reason in *e. Called by the main thread only, because
 * of the library.
 */
int rootfs_add_archive(struct rootfs *r, const char *path, struct err *e);

#endif
