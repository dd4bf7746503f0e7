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
	struct diskfs_ext *ext; /* NULL: FAT */
	struct fat fat;
};

int fs_volume_read(void *volume, uint64_t off, void *dst, size_t len)
{
	const struct volume *v = volume;

	if (off > v->len || len > v->len - off)
		return -EIO;
	return len ? v->disk.read(v->disk.disk, v->off + off, dst, len) : 0;
}

int fs_open(struct diskfs **out, const struct volume *v, const char *type, struct err *e)
{
	cleanup_free struct diskfs *fs = calloc(1, sizeof(*fs));
	int ret;

	if (!fs)
		return err_nomem(e);
	fs->volume = *v;
	if (!strcmp(type, "ext4") || !strcmp(type, "ext3") || !strcmp(type, "ext2"))
		ret = fs_ext_open(&fs->ext, v, e);
	else if (!strcmp(type, "vfat"))
		ret = fat_open(&fs->fat, fs_volume_read, &fs->volume, v->len, e);
	else
		ret = err_set(e, ENOTSUP, "files of a file system %s can't be read",
			      *type ? type : "that is unknown");
	if (ret)
		return ret;
	*out = take_ptr(fs);
	return 0;
}

void fs_close(struct diskfs *fs)
{
	if (!fs)
		return;
	fs_ext_close(fs->ext);
	free(fs);
}

bool fs_exists(struct diskfs *fs, const char *path)
{
	struct fat_node node;

	return fs->ext ? fs_ext_exists(fs->ext, path) : fat_find(&fs->fat, path, &node, NULL) == 0;
}

int fs_read(struct diskfs *fs, const char *path, size_t max, struct buf *out, struct err *e)
{
	struct fat_node node;
	struct err why = { 0 };
	int ret;

	if (fs->ext)
		return fs_ext_read(fs->ext, path, max, out, e);
	ret = fat_find(&fs->fat, path, &node, e);
	ret = ret ? ret : fat_read_file(&fs->fat, &node, max, out, &why);
	return why.code ? err_set(e, -ret, "%s: %s", path, why.text) : ret;
}

int fs_read_part(struct diskfs *fs, const char *path, struct diskfs_part part, struct buf *out,
		 uint64_t *size, struct err *e)
{
	struct fat_node node;
	struct err why = { 0 };
	int ret;

	if (fs->ext)
		return fs_ext_read_part(fs->ext, path, part, out, size, e);
	ret = fat_find(&fs->fat, path, &node, e);
	ret = ret ? ret : fat_read_part(&fs->fat, &node, part.off, part.len, out, &why);
	if (ret)
		return why.code ? err_set(e, -ret, "%s: %s", path, why.text) : ret;
	*size = node.len;
	return 0;
}

int fs_link(struct diskfs *fs, const char *path, char *to)
{
	return fs->ext ? fs_ext_link(fs->ext, path, to) : -EINVAL;
}

struct fs_names {
	diskfs_list_fn *fn;
	void *ctx;
};

static int tell_name(void *ctx, const char *name, const struct fat_node *node)
{
	const struct fs_names *n = ctx;

	(void)node;
	return n->fn(n->ctx, name);
}

int fs_list(struct diskfs *fs, const char *path, diskfs_list_fn *fn, void *ctx, struct err *e)
{
	struct fs_names names = { .fn = fn, .ctx = ctx };
	struct fat_node node;
	int ret;

	if (fs->ext)
		return fs_ext_list(fs->ext, path, fn, ctx, e);
	ret = fat_find(&fs->fat, path, &node, e);
	return ret ? ret : fat_list(&fs->fat, &node, tell_name, &names, e);
}
