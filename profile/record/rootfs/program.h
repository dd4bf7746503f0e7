/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs_program: one program of the host with what it needs to start, for a guest that has
 * no root file system otherwise.
 *
 * A script's interpreter; an ELF file's interpreter (PT_INTERP) and libraries (DT_NEEDED and
 * theirs), looked for as ld.so(8) does: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the
 * directories of /etc/ld.so.conf, the usual ones. Everything keeps its path. What a program
 * opens while it runs (dlopen, data) is not found this way.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_PROGRAM_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_PROGRAM_H

#include "profile/record/rootfs/rootfs.h"

/*
 * Add the program that `word` names: a path, or a name looked for in our PATH. library_path
 * receives directories that the guest's loader would not look into by itself ("a:b", not
 * terminated), and name the program's absolute path (PATH_MAX bytes).
 */
int rootfs_add_program(struct rootfs *r, const char *word, char *name, struct buf *library_path,
		       struct err *e);

#endif
