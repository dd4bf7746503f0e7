/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_modules: kernel modules of the host's files, at /lib/modules/VERSION in the guest.
 *
 * Out of a tree with a modules.dep (depmod), or out of a directory of *.ko files, whose
 * dependencies are read from their .modinfo. Compressed modules are decompressed: Linux does
 * that itself since 5.17 only, and only where it was built so (MODULE_DECOMPRESS).
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_MODULES_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_MODULES_H

#include "profile/record/rootfs/rootfs.h"

/*
 * names: those to load, with commas, and what they depend on is loaded before them; only these
 * are packed then. NULL: all are packed and none is loaded. load receives the guest's path of
 * each to load, in order, each with its NUL. osrelease: the kernel's version, "" unknown; a tree
 * of several versions is searched for it.
 */
int rootfs_add_modules(struct rootfs *r, const char *dir, const char *names, const char *osrelease,
		       struct buf *load, struct err *e);

#endif
