/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_tree: finds a file by its path, through the names that a Linux guest has in memory.
 *
 *	task_struct.fs	fs_struct: root, a mount and a dentry
 *	dentry		d_subdirs, a list of d_child; since 6.8 d_children, of d_sib: the names
 *			below it that were used, or all of them on file systems in memory
 *	mount		mnt_mounts, a list of mnt_child: what is mounted on a dentry of it
 *	inode		i_mapping: the file's pages (file.h)
 *
 * A name that was not used lately is missing, like one that does not exist. Links and ".." are not
 * followed. An entry is accepted only if it names its parent itself. The lists change meanwhile,
 * and may be hostile: each is limited.
 *
 * Sources: include/linux/dcache.h, fs_struct.h, fs/mount.h of Linux 5.10 to 7.0. No state: any
 * thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_TREE_H
#define KVMPROF_SYMBOLIZER_LINUX_TREE_H

#include "symbolizer/linux/mm.h"

#define LINUX_TREE_MAX_NAMES 262144u /* names in one directory */
#define LINUX_TREE_MAX_MOUNTS 65536u /* on one mount */
#define LINUX_TREE_MAX_DEPTH 16u     /* names of a path, and mounts on top of each other */

/* Offsets of members. Computed once per kernel, then constant. */
struct linux_tree_layout {
	uint32_t task_fs, root_mnt, root_dentry;
	/* offsets of the lists in a dentry; both begin with the pointer to the next entry */
	uint32_t children, sibling;
	bool ring; /* the list ends at its head; false: with 0 */
	uint32_t dentry_inode, inode_mapping;
	uint32_t mounts, mount_child;
};

/*
 * Finds the offsets. Returns 0; -ENOENT if the kernel lacks something (the message names it); or
 * -EINVAL for damaged types.
 */
int linux_tree_layout_init(struct linux_tree_layout *l, const struct types *t, struct err *e);

struct linux_tree {
	const struct linux_tree_layout *l;
	const struct linux_mm_layout *mm;
	const struct memory *m;
};

/* A name in a mounted file system: struct vfsmount and struct dentry. */
struct linux_place {
	uint64_t mnt, dentry;
};

/* Finds the root directory of a task. Returns LINUX_OK, or a reason with *out unchanged. */
enum linux_why linux_tree_root(const struct linux_tree *t, uint64_t task, struct linux_place *out);

/*
 * Finds a file by its path from a directory, such as "tmp/perf-1.map". *mapping receives its
 * struct address_space, for linux_file_of_mapping(). Returns LINUX_OK, LINUX_NOT_THERE if there is
 * no such name in memory, or another reason.
 */
enum linux_why linux_tree_find(const struct linux_tree *t, const struct linux_place *from,
			       const char *path, uint64_t *mapping);

#endif
