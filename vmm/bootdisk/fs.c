/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/fs.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/fs_ext.h"
#include "vmm/bootdisk/fat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct diskfs {
	struct volume volume;
	struct diskfs_ext *ext; /* NULL: it is FAT */
	struct fat fat;
};

int volume_read(void *volume, uint64_t off, void *dst, size_t len)
{
	const struct volume *v = volume;
	struct iovec iov = { .iov_base = dst, .iov_len = len };

	if (off > v->len || len > v->len - off)
		return -EIO;
	return len ? disk_readv(v->disk, v->off + off, &iov, 1) : 0;
}

int diskfs_open(struct diskfs **out, const struct volume *v, const char *type, struct err *e)
{
	cleanup_free struct diskfs *fs = calloc(1, sizeof(*fs));
	int ret;

	if (!fs)
		return err_set(e, ENOMEM, "out of memory");
	fs->volume = *v;
	if (!strcmp(type, "ext4") || !strcmp(type, "ext3") || !strcmp(type, "ext2"))
		ret = diskfs_ext_open(&fs->ext, v, e);
	else if (!strcmp(type, "vfat"))
		ret = fat_open(&fs->fat, volume_read, &fs->volume, v->len, e);
	else
		ret = err_set(e, ENOTSUP, "files of a file system %s can't be read",
			      *type ? type : "that is unknown");
	if (ret)
		return ret;
	*out = take_ptr(fs);
	return 0;
}

void diskfs_close(struct diskfs *fs)
{
	if (!fs)
		return;
	diskfs_ext_close(fs->ext);
	free(fs);
}

bool diskfs_exists(struct diskfs *fs, const char *path)
{
	struct fat_node node;

	return fs->ext ? diskfs_ext_exists(fs->ext, path)
		       : fat_find(&fs->fat, path, &node, NULL) == 0;
}

int diskfs_read(struct diskfs *fs, const char *path, size_t max, struct buf *out, struct err *e)
{
	struct fat_node node;
	struct err why = { 0 };
	int ret;

	if (fs->ext)
		return diskfs_ext_read(fs->ext, path, max, out, e);
	ret = fat_find(&fs->fat, path, &node, e);
	ret = ret ? ret : fat_read_file(&fs->fat, &node, max, out, &why);
	return why.code ? err_set(e, -ret, "%s: %s", path, why.text) : ret;
}

int diskfs_read_part(struct diskfs *fs, const char *path, struct diskfs_part part, struct buf *out,
		     uint64_t *size, struct err *e)
{
	struct fat_node node;
	struct err why = { 0 };
	int ret;

	if (fs->ext)
		return diskfs_ext_read_part(fs->ext, path, part, out, size, e);
	ret = fat_find(&fs->fat, path, &node, e);
	ret = ret ? ret : fat_read_part(&fs->fat, &node, part.off, part.len, out, &why);
	if (ret)
		return why.code ? err_set(e, -ret, "%s: %s", path, why.text) : ret;
	*size = node.len;
	return 0;
}

int diskfs_link(struct diskfs *fs, const char *path, char *to)
{
	return fs->ext ? diskfs_ext_link(fs->ext, path, to) : -EINVAL;
}

struct names {
	diskfs_list_fn *fn;
	void *ctx;
};

static int tell_name(void *ctx, const char *name, const struct fat_node *node)
{
	const struct names *n = ctx;

	(void)node;
	return n->fn(n->ctx, name);
}

int diskfs_list(struct diskfs *fs, const char *path, diskfs_list_fn *fn, void *ctx, struct err *e)
{
	struct names names = { .fn = fn, .ctx = ctx };
	struct fat_node node;
	int ret;

	if (fs->ext)
		return diskfs_ext_list(fs->ext, path, fn, ctx, e);
	ret = fat_find(&fs->fat, path, &node, e);
	return ret ? ret : fat_list(&fs->fat, &node, tell_name, &names, e);
}
