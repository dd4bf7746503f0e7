/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_modules: adds kernel modules of the host to the guest, at /lib/modules/VERSION.
 *
 * The source is a tree with a modules.dep (depmod), or a directory of *.ko files, whose
 * dependencies are read from their .modinfo. Compressed modules are decompressed: Linux itself does
 * so only since 5.17, and only if it was built with MODULE_DECOMPRESS.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_MODULES_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_MODULES_H

#include "profile/record/rootfs/rootfs.h"

/*
 * names: the modules to load, separated by commas; their dependencies are loaded before them, and
 * only these modules are packed. NULL: all are packed and none is loaded. Appends to *load the
 * guest's path of each module to load, in order, each with its NUL. osrelease: the kernel's
 * release, "" if unknown; it is searched for in a tree of several versions. Returns 0 or -errno
 * with the reason in *e. Called by the main thread.
 */
int rootfs_add_modules(struct rootfs *r, const char *dir, const char *names, const char *osrelease,
		       struct buf *load, struct err *e);

#endif
