/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names in a guest's memory: /tmp, on which a file system with perf-7.map is mounted. It extends
 * linux_mm_fixture.h, whose dentries and mounts have no lists.
 */
#ifndef KVMPROF_TESTS_LINUX_TREE_FIXTURE_H
#define KVMPROF_TESTS_LINUX_TREE_FIXTURE_H

#include "symbolizer/linux/tree.h"
#include "tests/unit/linux_mm_fixture.h"

/* Offsets of the lists, after the members of linux_mm_fixture.h. */
enum {
	LT_CHILDREN = 32,
	LT_SIBLING = 48,
	LT_INODE = 64,
	LT_DENTRY = 72,
	LT_MOUNTS = 48,
	LT_MOUNT_CHILD = 64,
	LT_MOUNT = 80,
};

static inline struct linux_tree_layout lt_layout(bool ring)
{
	return (struct linux_tree_layout){
		.task_fs = 8,
		.root_mnt = 16,
		.root_dentry = 24,
		.children = LT_CHILDREN,
		.sibling = LT_SIBLING,
		.ring = ring,
		.dentry_inode = LT_INODE,
		.inode_mapping = 48,
		.mounts = LT_MOUNTS,
		.mount_child = LT_MOUNT_CHILD,
	};
}

/* Inserts `at` at the beginning of a list; `head` is the address of the head's first word. */
static inline void lt_link(struct lm *g, uint64_t head, uint64_t at)
{
	uint64_t first;

	memcpy(&first, lm_ptr(g, head, 8), 8);
	lm_put64(g, at, first);
	lm_put64(g, head, at);
}

/* Makes a child of parent (0: a root); mapping 0: the name of a file that does not exist. */
static inline uint64_t lt_dentry(struct lm *g, uint64_t parent, const char *name, uint64_t mapping,
				 bool ring)
{
	uint64_t d = lm_alloc(g, LT_DENTRY, 8), s = lm_alloc(g, strlen(name) + 1, 1);
	uint64_t inode = mapping ? lm_alloc(g, 56, 8) : 0;

	memcpy(lm_ptr(g, s, strlen(name) + 1), name, strlen(name) + 1);
	lm_put64(g, d, s);
	lm_put32(g, d + 8, (uint32_t)strlen(name));
	lm_put64(g, d + 16, parent ? parent : d);
	lm_put64(g, d + LT_CHILDREN, ring ? d + LT_CHILDREN : 0);
	lm_put64(g, d + LT_INODE, inode);
	if (inode)
		lm_put64(g, inode + 48, mapping);
	if (parent)
		lt_link(g, parent + LT_CHILDREN, d + LT_SIBLING);
	return d;
}

/* Makes a struct vfsmount on `on`, in the mount of the vfsmount parent (0: the top). */
static inline uint64_t lt_mount(struct lm *g, uint64_t root, uint64_t parent, uint64_t on)
{
	uint64_t m = lm_alloc(g, LT_MOUNT, 8);

	lm_put64(g, m, on);
	lm_put64(g, m + LM_MOUNT_MNT + 8, root);
	lm_put64(g, m + LT_MOUNTS, m + LT_MOUNTS);
	if (parent)
		lt_link(g, parent - LM_MOUNT_MNT + LT_MOUNTS, m + LT_MOUNT_CHILD);
	return m + LM_MOUNT_MNT;
}

#define LT_MAPPING UINT64_C(0xffff888000777000)

struct lt_scene {
	uint64_t task, tmp, below; /* below: the root of the file system mounted on tmp */
};

static inline struct lt_scene lt_scene(struct lm *g, bool ring)
{
	uint64_t root = lt_dentry(g, 0, "/", 1, ring), top = lt_mount(g, root, 0, 0);
	uint64_t fs = lm_alloc(g, 32, 8);
	struct lt_scene s = { .task = lm_alloc(g, 16, 8),
			      .tmp = lt_dentry(g, root, "tmp", 1, ring) };

	lt_dentry(g, root, "usr", 1, ring);
	/* The mounted file system hides it. */
	lt_dentry(g, s.tmp, "perf-7.map", 0x1234, ring);
	s.below = lt_dentry(g, 0, "/", 1, ring);
	lt_mount(g, s.below, top, s.tmp);
	lt_dentry(g, s.below, "perf-7.map", LT_MAPPING, ring);
	lt_dentry(g, s.below, "perf-8.map", 0, ring);
	lm_put64(g, s.task + 8, fs);
	lm_put64(g, fs + 16, top);
	lm_put64(g, fs + 24, root);
	return s;
}

#endif
