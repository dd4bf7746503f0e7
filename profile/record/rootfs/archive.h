/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archive: a root file system out of an archive, through libarchive: tar and cpio, with any of the
 * compressions that it reads without running a program.
 *
 * The initramfs must say of a file's first name already that there are more, and archives
 * say so at the second one: so the archive is read twice, and first only for links.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_ARCHIVE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_ARCHIVE_H

#include "profile/record/rootfs/rootfs.h"

/* Adds what is in a tar or cpio archive, compressed or not. It replaces what has its name. */
int rootfs_add_archive(struct rootfs *r, const char *path, struct err *e);

#endif
