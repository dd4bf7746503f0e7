/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers of requests about directory entries: list, create, rename, remove. */
#include "vmm/dev/p9_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define L_EXCL 00000200u
#define L_ACCMODE 00000003u
#define L_TRUNC 00001000u
#define L_REMOVEDIR 0x200u /* AT_REMOVEDIR */
/* Set-user-ID, set-group-ID and sticky bits are not allowed, because the file is on the host. */
#define MODE_BITS 0777u

/* Finds the fid of the directory that a request names first. */
static int take_dir(struct p9 *p, struct cursor *c, struct p9_fid **out)
{
	*out = p9_find(p, cursor_u32(c));
	return *out && !c->bad ? 0 : -EBADF;
}

static int put_entry(struct p9 *p, int dir, const char *name, struct p9_out *o)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	p9_put_qid(p, o, &st);
	return 0;
}

/*
 * Opens the regular file `name`, which may be new. An existing file is checked before it is opened:
 * opening a device of the host can have effects (a tape rewinds), and so can opening one end of a
 * FIFO.
 */
static int create_file(const struct p9 *p, int dir, const char *name, uint32_t flags, uint32_t mode)
{
	int open_flags =
		O_NOCTTY | O_CLOEXEC | (int)(flags & L_ACCMODE) | (flags & L_TRUNC ? O_TRUNC : 0);
	struct stat st;
	int path, fd = p9_open_beneath(dir, name, (uint64_t)open_flags | O_CREAT | O_EXCL,
				       mode & MODE_BITS);

	if (fd != -EEXIST || (flags & L_EXCL))
		return fd;
	path = p9_open_beneath(dir, name, O_PATH, 0);
	if (path < 0)
		return path;
	if (fstat(path, &st) < 0)
		fd = -errno;
	else if (S_ISLNK(st.st_mode))
		fd = -ELOOP;
	else if (!S_ISREG(st.st_mode))
		fd = S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	else
		fd = p9_open_again(p, path, open_flags);
	close(path);
	return fd;
}

int p9_do_lcreate(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char name[P9_NAME_MAX + 1];
	struct p9_node *node;
	uint32_t flags, mode;
	struct p9_fid *f;
	struct stat st;
	int fd, path, ret = take_dir(p, c, &f);

	if (ret)
		return ret;
	ret = p9_get_name(c, name);
	if (ret)
		return ret;
	flags = cursor_u32(c);
	mode = cursor_u32(c);
	if (c->bad)
		return -EINVAL;
	if (f->fd >= 0 || f->dir)
		return -EINVAL;
	if (p9_files_left(p, 2)) /* one for the open file and one for the node */
		return -EMFILE;
	fd = create_file(p, f->node->fd, name, flags, mode);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENXIO;
	}
	path = p9_open_beneath(f->node->fd, name, O_PATH, 0);
	node = path < 0 ? NULL : p9_node_new(p, f->node, path);
	if (!node) {
		close(fd);
		return path < 0 ? path : -ENOMEM;
	}
	p9_node_put(f->node);
	f->node = node;
	f->fd = fd;
	p->nfiles++;
	f->writable = (flags & L_ACCMODE) != O_RDONLY;
	p9_put_qid(p, o, &st);
	p9_put32(o, 0);
	return 0;
}

int p9_do_mkdir(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char name[P9_NAME_MAX + 1];
	struct p9_fid *f;
	uint32_t mode;
	int ret = take_dir(p, c, &f);

	if (ret)
		return ret;
	ret = p9_get_name(c, name);
	if (ret)
		return ret;
	mode = cursor_u32(c);
	if (c->bad)
		return -EINVAL;
	if (mkdirat(f->node->fd, name, mode & MODE_BITS) < 0)
		return -errno;
	return put_entry(p, f->node->fd, name, o);
}

/*
 * Creates a symbolic link. The target is not checked: this server follows no links, and the guest
 * follows its own.
 */
int p9_do_symlink(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char name[P9_NAME_MAX + 1], target[P9_LINK_MAX + 1];
	struct p9_fid *f;
	int ret = take_dir(p, c, &f);

	if (ret)
		return ret;
	ret = p9_get_name(c, name);
	if (ret)
		return ret;
	ret = p9_get_string(c, target, sizeof(target));
	if (ret)
		return ret;
	if (symlinkat(target, f->node->fd, name) < 0)
		return -errno;
	return put_entry(p, f->node->fd, name, o);
}

int p9_do_unlinkat(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char name[P9_NAME_MAX + 1];
	struct p9_fid *f;
	uint32_t flags;
	int ret = take_dir(p, c, &f);

	(void)o;
	if (ret)
		return ret;
	ret = p9_get_name(c, name);
	if (ret)
		return ret;
	flags = cursor_u32(c);
	if (c->bad)
		return -EINVAL;
	return unlinkat(f->node->fd, name, flags & L_REMOVEDIR ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

int p9_do_renameat(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char from[P9_NAME_MAX + 1], to[P9_NAME_MAX + 1];
	struct p9_fid *old, *new;
	int ret = take_dir(p, c, &old);

	(void)o;
	if (ret)
		return ret;
	ret = p9_get_name(c, from);
	if (ret)
		return ret;
	ret = take_dir(p, c, &new);
	if (ret)
		return ret;
	ret = p9_get_name(c, to);
	if (ret)
		return ret;
	return renameat(old->node->fd, from, new->node->fd, to) < 0 ? -errno : 0;
}

/* Converts the type of a struct dirent to that of a qid. */
static uint8_t qid_type(unsigned char d_type)
{
	return d_type == DT_DIR ? 0x80 : d_type == DT_LNK ? 0x02 : 0;
}

int p9_do_readdir(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint64_t off = cursor_u64(c);
	uint32_t count = cursor_u32(c), used = 0;
	size_t at = o->len;
	struct dirent *d;
	struct stat st;

	if (!f || c->bad || !f->dir)
		return -EBADF;
	if (off > INT64_MAX || fstat(dirfd(f->dir), &st) < 0)
		return -EINVAL;
	if (off)
		seekdir(f->dir, (long)off);
	else
		rewinddir(f->dir);
	p9_put32(o, 0);
	while (errno = 0, (d = readdir(f->dir))) {
		size_t len = strlen(d->d_name);
		/* qid[13] offset[8] type[1] name[s] */
		uint32_t need = P9_QID + 8 + 1 + 2 + (uint32_t)len;

		if (need > count - used || need > o->cap - o->len)
			break;
		p9_put8(o, qid_type(d->d_type));
		p9_put32(o, 0);
		p9_put64(o, p9_path(p, st.st_dev, d->d_ino));
		p9_put64(o, (uint64_t)telldir(f->dir));
		p9_put8(o, d->d_type);
		p9_put_string(o, d->d_name, len);
		used += need;
	}
	/* With not even one entry the guest would assume the end. */
	if (d && !used)
		return -EINVAL;
	if (!d && errno)
		return -errno;
	if (!o->full)
		memcpy(o->data + at, &used, sizeof(used));
	return 0;
}
