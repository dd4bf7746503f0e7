/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_program: adds one program of the host with the files that it needs to start, for a guest
 * without another root file system.
 *
 * These are a script's interpreter, and an ELF file's interpreter (PT_INTERP) and libraries
 * (DT_NEEDED, recursively), searched as ld.so(8) does: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the
 * directories of /etc/ld.so.conf, and the default ones. All files keep their paths. Files that a
 * program opens while it runs (dlopen, data) are not found.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_PROGRAM_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_PROGRAM_H

#include "profile/record/rootfs/rootfs.h"

/*
 * Adds the program that `word` names: a path, or a name that is searched in our PATH. Appends to
 * *library_path the directories that the guest's loader would not search by itself ("a:b", not
 * terminated), and stores the program's absolute path in `name` (PATH_MAX bytes). Returns 0 or
 * -errno with the reason in *e. Called by the main thread.
 */
int rootfs_add_program(struct rootfs *r, const char *word, char *name, struct buf *library_path,
		       struct err *e);

#endif
