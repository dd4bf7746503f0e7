/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/mm_path.h"

#include <stdio.h>

#define TRIES 4u
#define DELETED " (deleted)"
/* FMODE_BACKING: the file is in a struct backing_file, whose user_path is what was opened. */
#define FILE_MODE_BACKING (UINT32_C(1) << 25)

/* A path that is built from its end to its start. */
struct mm_path_path {
	const struct linux_mm_layout *l;
	const struct memory *m;
	uint64_t dentry, mnt; /* struct dentry, struct vfsmount */
	char *buf;
	size_t at; /* first byte in use; the last byte of buf is the NUL */
};

static bool prepend(struct mm_path_path *p, const char *s, size_t len)
{
	if (len > p->at)
		return false;
	p->at -= len;
	memcpy(p->buf + p->at, s, len);
	return true;
}

/*
 * Prepends '/' and the dentry's name. A rename changes pointer and length separately; they belong
 * together if there is a NUL at the end and none before it.
 */
static enum linux_why prepend_name(struct mm_path_path *p, bool slashes)
{
	char name[LINUX_NAME_MAX + 1];
	uint64_t at;
	uint32_t len;

	if (!memory_u64(p->m, p->dentry + p->l->dentry_name, &at) ||
	    !memory_u32(p->m, p->dentry + p->l->dentry_name_len, &len))
		return LINUX_UNREADABLE;
	if (!len || len > LINUX_NAME_MAX)
		return LINUX_CHANGING;
	if (!memory_read(p->m, MEMORY_KERNEL, at, name, len + 1))
		return LINUX_UNREADABLE;
	if (memchr(name, '\0', len + 1) != name + len || (!slashes && memchr(name, '/', len)))
		return LINUX_CHANGING;
	return prepend(p, name, len) && prepend(p, "/", 1) ? LINUX_OK : LINUX_TOO_MANY;
}

/* Moves from a file system's root to the directory on which it is mounted. *top: there is none. */
static enum linux_why cross_mount(struct mm_path_path *p, bool *top)
{
	const struct linux_mm_layout *l = p->l;
	uint64_t mount = p->mnt - l->mount_mnt, parent;

	if (!memory_u64(p->m, mount + l->mount_parent, &parent) ||
	    !memory_u64(p->m, mount + l->mount_mountpoint, &p->dentry))
		return LINUX_UNREADABLE;
	*top = parent == mount;
	p->mnt = parent + l->mount_mnt;
	return LINUX_OK;
}

static enum linux_why walk_up(struct mm_path_path *p)
{
	for (unsigned int depth = 0; depth < LINUX_PATH_MAX_DEPTH; depth++) {
		uint64_t root, parent;
		enum linux_why why;
		bool top = false;

		if (!memory_u64(p->m, p->mnt + p->l->mnt_root, &root) ||
		    !memory_u64(p->m, p->dentry + p->l->dentry_parent, &parent))
			return LINUX_UNREADABLE;
		if (p->dentry == root) {
			why = cross_mount(p, &top);
		} else if (parent == p->dentry) {
			return LINUX_CHANGING; /* a root, but not of this mount */
		} else {
			why = prepend_name(p, false);
			p->dentry = parent;
		}
		if (why != LINUX_OK || top)
			return why;
	}
	return LINUX_TOO_MANY;
}

/*
 * Builds the path of a file. Files that were never in a directory (memfd, shared anonymous memory,
 * SysV shared memory) have a dentry that is its own parent but is not the root of a mount. The
 * kernel shows them as deleted, regardless of d_unlinked().
 */
static enum linux_why path_from_file(struct mm_path_path *p)
{
	uint64_t root, parent, pprev;
	enum linux_why why;

	if (!memory_u64(p->m, p->mnt + p->l->mnt_root, &root) ||
	    !memory_u64(p->m, p->dentry + p->l->dentry_parent, &parent) ||
	    !memory_u64(p->m, p->dentry + p->l->dentry_pprev, &pprev))
		return LINUX_UNREADABLE;
	if (parent == p->dentry && p->dentry != root)
		return prepend(p, DELETED, strlen(DELETED)) ? prepend_name(p, true)
							    : LINUX_TOO_MANY;
	if (!pprev && parent != p->dentry)
		prepend(p, DELETED, strlen(DELETED));
	why = walk_up(p);
	if (why == LINUX_OK && p->buf[p->at] != '/' && !prepend(p, "/", 1))
		why = LINUX_TOO_MANY;
	return why;
}

/*
 * Sets the start of the path. Since 6.8, an overlay's mapping refers to the lower file, with the
 * file that was opened stored next to it. Before, f_path itself is the overlay's.
 */
static enum linux_why start_at(struct mm_path_path *p, uint64_t file)
{
	const struct linux_mm_layout *l = p->l;
	uint32_t mnt = l->file_mnt, dentry = l->file_dentry, mode = 0;

	if (l->file_mode != LINUX_NO_MEMBER && !memory_u32(p->m, file + l->file_mode, &mode))
		return LINUX_UNREADABLE;
	if ((mode & FILE_MODE_BACKING) && l->user_mnt != LINUX_NO_MEMBER &&
	    l->user_dentry != LINUX_NO_MEMBER) {
		mnt = l->user_mnt;
		dentry = l->user_dentry;
	}
	p->at = LINUX_PATH_MAX - 1;
	p->buf[p->at] = '\0';
	return memory_u64(p->m, file + mnt, &p->mnt) && memory_u64(p->m, file + dentry, &p->dentry)
		       ? LINUX_OK
		       : LINUX_UNREADABLE;
}

enum linux_why linux_file_path(const struct linux_mm_layout *l, const struct memory *m,
			       uint64_t file, char *buf)
{
	struct mm_path_path p = { .l = l, .m = m, .buf = buf };
	enum linux_why why = LINUX_CHANGING;

	for (unsigned int i = 0; i < TRIES && why != LINUX_OK; i++) {
		why = start_at(&p, file);
		if (why == LINUX_OK)
			why = path_from_file(&p);
	}
	if (why == LINUX_OK)
		memmove(buf, buf + p.at, LINUX_PATH_MAX - p.at);
	else
		buf[0] = '\0';
	return why;
}

enum linux_why linux_vma_name(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			      const struct linux_vma *v, char *buf)
{
	uint64_t vdso;

	if (v->file)
		return linux_file_path(l, m, v->file, buf);
	vdso = linux_mm_vdso(l, m, mm);
	snprintf(buf, LINUX_PATH_MAX, "%s",
		 vdso >= v->start && vdso < v->end ? "[vdso]" : "//anon");
	return LINUX_OK;
}

/* Read a number, which stays 0 if its offset is unknown. */
static bool optional_u64(const struct memory *m, uint64_t at, uint32_t off, uint64_t *v)
{
	return off == LINUX_NO_MEMBER || memory_u64(m, at + off, v);
}

static bool optional_u32(const struct memory *m, uint64_t at, uint32_t off, uint32_t *v)
{
	return off == LINUX_NO_MEMBER || memory_u32(m, at + off, v);
}

enum linux_why linux_file_identify(const struct linux_mm_layout *l, const struct memory *m,
				   uint64_t file, struct linux_file_id *out)
{
	struct linux_file_id id;
	uint64_t sb, mtime = 0;

	memset(&id, 0, sizeof(id));
	if (!memory_u64(m, file + l->file_inode, &id.inode) ||
	    !optional_u64(m, id.inode, l->inode_ino, &id.ino) ||
	    !optional_u64(m, id.inode, l->inode_size, &id.size) ||
	    !optional_u64(m, id.inode, l->inode_mtime, &mtime) ||
	    !optional_u32(m, id.inode, l->inode_mtime_ns, &id.mtime_ns) ||
	    !optional_u32(m, id.inode, l->inode_generation, &id.generation))
		return LINUX_UNREADABLE;
	if (l->inode_sb != LINUX_NO_MEMBER && l->sb_dev != LINUX_NO_MEMBER &&
	    (!memory_u64(m, id.inode + l->inode_sb, &sb) ||
	     !memory_u32(m, sb + l->sb_dev, &id.dev)))
		return LINUX_UNREADABLE;
	id.mtime_s = (int64_t)mtime;
	*out = id;
	return LINUX_OK;
}
