/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/tree.h"

#include <errno.h>

#define KERNEL_HALF (UINT64_C(1) << 63)

/* Finds one member, of 8 bytes or more (a list's head). */
static int resolve_one(const struct types *t, const char *structure, const char *path,
		       uint32_t *out, struct err *e)
{
	struct type_member m;
	int r = t->member(t->ctx, structure, path, &m);

	if (r < 0)
		return err_set(e, -r, "guest kernel's types: no %s in struct %s", path, structure);
	if (m.size < 8 || m.bit_count)
		return err_set(e, EINVAL, "guest kernel's types: %s.%s has %u bytes", structure,
			       path, m.size);
	*out = m.off;
	return 0;
}

int linux_tree_layout_init(struct linux_tree_layout *l, const struct types *t, struct err *e)
{
	struct linux_tree_layout n = { .ring = false };
	const struct {
		const char *structure, *path;
		uint32_t *to;
	} want[] = {
		{ "task_struct", "fs", &n.task_fs },
		{ "fs_struct", "root.mnt", &n.root_mnt },
		{ "fs_struct", "root.dentry", &n.root_dentry },
		{ "dentry", "d_inode", &n.dentry_inode },
		{ "inode", "i_mapping", &n.inode_mapping },
		{ "mount", "mnt_mounts", &n.mounts },
		{ "mount", "mnt_child", &n.mount_child },
	};
	struct err ignored = { 0 };
	int r;

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		r = resolve_one(t, want[i].structure, want[i].path, want[i].to, e);
		if (r)
			return r;
	}
	n.ring = resolve_one(t, "dentry", "d_children", &n.children, &ignored) != 0;
	if (n.ring) {
		r = resolve_one(t, "dentry", "d_subdirs", &n.children, e);
		if (r)
			return r;
	}
	r = resolve_one(t, "dentry", n.ring ? "d_child" : "d_sib", &n.sibling, e);
	if (r)
		return r;
	*l = n;
	return 0;
}

static bool kernel_word(const struct linux_tree *t, uint64_t at, uint64_t *out)
{
	return (at & KERNEL_HALF) && memory_u64(t->m, at, out);
}

enum linux_why linux_tree_root(const struct linux_tree *t, uint64_t task, struct linux_place *out)
{
	struct linux_place p;
	uint64_t fs;

	if (!kernel_word(t, task + t->l->task_fs, &fs))
		return LINUX_UNREADABLE;
	if (!fs) /* the task has ended */
		return LINUX_NOT_THERE;
	if (!kernel_word(t, fs + t->l->root_mnt, &p.mnt) ||
	    !kernel_word(t, fs + t->l->root_dentry, &p.dentry))
		return LINUX_UNREADABLE;
	*out = p;
	return LINUX_OK;
}

/* Returns whether a dentry has this name. */
static bool has_name(const struct linux_tree *t, uint64_t dentry, const char *name, size_t len)
{
	char is[LINUX_NAME_MAX + 1];
	uint64_t at;
	uint32_t n;

	return memory_u32(t->m, dentry + t->mm->dentry_name_len, &n) && n == len &&
	       kernel_word(t, dentry + t->mm->dentry_name, &at) &&
	       memory_read(t->m, MEMORY_KERNEL, at, is, len + 1) && !is[len] &&
	       !memcmp(is, name, len);
}

/* Finds the child of a directory with this name; a negative dentry does not count. */
static enum linux_why find_child(const struct linux_tree *t, uint64_t dir, const char *name,
				 size_t len, uint64_t *out)
{
	const uint64_t head = dir + t->l->children;
	uint64_t at;

	if (!kernel_word(t, head, &at))
		return LINUX_UNREADABLE;
	for (uint32_t n = 0; at && at != head; n++) {
		uint64_t dentry = at - t->l->sibling, parent, inode;

		if (n == LINUX_TREE_MAX_NAMES)
			return LINUX_TOO_MANY;
		if (!kernel_word(t, dentry + t->mm->dentry_parent, &parent))
			return LINUX_UNREADABLE;
		/* A cursor of a directory's reader has a parent, too, but no name. */
		if (parent != dir)
			return LINUX_CHANGING;
		if (has_name(t, dentry, name, len) &&
		    kernel_word(t, dentry + t->l->dentry_inode, &inode) && inode) {
			*out = dentry;
			return LINUX_OK;
		}
		if (!kernel_word(t, at, &at))
			return LINUX_UNREADABLE;
	}
	return LINUX_NOT_THERE;
}

/* Replaces the place by what is mounted there, if anything. */
static enum linux_why cross_mounts(const struct linux_tree *t, struct linux_place *p)
{
	for (unsigned int depth = 0; depth < LINUX_TREE_MAX_DEPTH; depth++) {
		const uint64_t head = p->mnt - t->mm->mount_mnt + t->l->mounts;
		uint64_t at, on = 0, mount = 0;

		if (!kernel_word(t, head, &at))
			return LINUX_UNREADABLE;
		for (uint32_t n = 0; at != head && on != p->dentry; n++) {
			if (n == LINUX_TREE_MAX_MOUNTS)
				return LINUX_TOO_MANY;
			mount = at - t->l->mount_child;
			if (!kernel_word(t, mount + t->mm->mount_mountpoint, &on) ||
			    !kernel_word(t, at, &at))
				return LINUX_UNREADABLE;
		}
		if (on != p->dentry)
			return LINUX_OK;
		p->mnt = mount + t->mm->mount_mnt;
		if (!kernel_word(t, p->mnt + t->mm->mnt_root, &p->dentry))
			return LINUX_UNREADABLE;
	}
	return LINUX_TOO_MANY;
}

enum linux_why linux_tree_find(const struct linux_tree *t, const struct linux_place *from,
			       const char *path, uint64_t *mapping)
{
	struct linux_place p = *from;
	enum linux_why why = LINUX_OK;
	uint64_t inode;

	for (unsigned int depth = 0; why == LINUX_OK && *path; depth++) {
		size_t len = strcspn(path, "/");

		if (depth == LINUX_TREE_MAX_DEPTH || !len || len > LINUX_NAME_MAX)
			return LINUX_TOO_MANY;
		why = find_child(t, p.dentry, path, len, &p.dentry);
		if (why == LINUX_OK)
			why = cross_mounts(t, &p);
		path += len;
		path += *path == '/';
	}
	if (why != LINUX_OK)
		return why;
	return kernel_word(t, p.dentry + t->l->dentry_inode, &inode) &&
			       kernel_word(t, inode + t->l->inode_mapping, mapping) && *mapping
		       ? LINUX_OK
		       : LINUX_UNREADABLE;
}
