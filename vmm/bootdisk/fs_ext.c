/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads ext file systems with libext2fs, which reads blocks through an io_manager. This one reads
 * them from a struct volume, so that nothing outside of the partition can be reached, and nothing
 * can be written.
 */
#include "vmm/bootdisk/fs_ext.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <errno.h>
#include <ext2fs/ext2fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions that are used of libext2fs, and of libcom_err, which libext2fs needs. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(error_message) \
	X(ext2fs_dir_iterate) \
	X(ext2fs_file_close) \
	X(ext2fs_file_llseek) \
	X(ext2fs_file_open) \
	X(ext2fs_file_read) \
	X(ext2fs_free) \
	X(ext2fs_is_fast_symlink) \
	X(ext2fs_namei) \
	X(ext2fs_namei_follow) \
	X(ext2fs_open2) \
	X(ext2fs_read_inode)
/* clang-format on */

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };
/* Only the main thread reads disks. */
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} ext;

/* Bytes of a file that are read at once. */
#define PIECE (1u << 20)

struct diskfs_ext {
	struct volume volume;
	ext2_filsys fs;
};

static struct struct_io_manager manager;

static errcode_t io_open(const char *name, int flags, io_channel *out)
{
	io_channel io;
	void *volume;

	(void)flags;
	/* ext2fs_open2() passes only the name: it is the address of the volume. */
	if (sscanf(name, "%p", &volume) != 1)
		return EXT2_ET_BAD_DEVICE_NAME;
	io = calloc(1, sizeof(*io));
	if (!io)
		return EXT2_ET_NO_MEMORY;
	io->magic = EXT2_ET_MAGIC_IO_CHANNEL;
	io->manager = &manager;
	io->name = strdup(name);
	io->block_size = 1024;
	io->refcount = 1;
	io->private_data = volume;
	if (!io->name) {
		free(io);
		return EXT2_ET_NO_MEMORY;
	}
	*out = io;
	return 0;
}

static errcode_t io_close(io_channel io)
{
	if (--io->refcount > 0)
		return 0;
	free(io->name);
	free(io);
	return 0;
}

static errcode_t io_set_blksize(io_channel io, int blksize)
{
	io->block_size = blksize;
	return 0;
}

/* Reads blocks. A negative count is a number of bytes. */
static errcode_t io_read64(io_channel io, unsigned long long block, int count, void *data)
{
	uint64_t off, len;

	len = count < 0 ? (uint64_t) - (int64_t)count : (uint64_t)count * (uint64_t)io->block_size;
	if (__builtin_mul_overflow(block, (uint64_t)io->block_size, &off))
		return EXT2_ET_SHORT_READ;
	return fs_volume_read(io->private_data, off, data, len) < 0 ? EXT2_ET_SHORT_READ : 0;
}

static errcode_t io_read(io_channel io, unsigned long block, int count, void *data)
{
	return io_read64(io, block, count, data);
}

static errcode_t io_write64(io_channel io, unsigned long long block, int count, const void *data)
{
	(void)io;
	(void)block;
	(void)count;
	(void)data;
	return EXT2_ET_RO_FILSYS;
}

static errcode_t io_write(io_channel io, unsigned long block, int count, const void *data)
{
	return io_write64(io, block, count, data);
}

static errcode_t io_flush(io_channel io)
{
	(void)io;
	return 0;
}

/* libext2fs takes it without const but only reads it. */
static struct struct_io_manager manager = {
	.magic = EXT2_ET_MAGIC_IO_MANAGER,
	.name = "kvmprof",
	.open = io_open,
	.close = io_close,
	.set_blksize = io_set_blksize,
	.read_blk = io_read,
	.write_blk = io_write,
	.flush = io_flush,
	.read_blk64 = io_read64,
	.write_blk64 = io_write64,
};

static int ext_load(struct err *e)
{
	const struct library want = {
		.soname = "libext2fs.so.2",
		.what = "ext file systems can't be read",
		.hint = "install libext2fs2",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	return library_load(&want, (void **)&ext, e);
}

int fs_ext_open(struct diskfs_ext **out, const struct volume *v, struct err *e)
{
	cleanup_free struct diskfs_ext *x = calloc(1, sizeof(*x));
	char name[32];
	errcode_t ret;
	int err;

	if (!x)
		return err_nomem(e);
	err = ext_load(e);
	if (err)
		return err;
	x->volume = *v;
	snprintf(name, sizeof(name), "%p", (void *)&x->volume);
	ret = ext.ext2fs_open2(name, NULL, EXT2_FLAG_64BITS, 0, 0, &manager, &x->fs);
	if (ret)
		return err_set(e, EINVAL, "ext file system: %s", ext.error_message(ret));
	*out = take_ptr(x);
	return 0;
}

void fs_ext_close(struct diskfs_ext *x)
{
	if (!x)
		return;
	ext.ext2fs_free(x->fs);
	free(x);
}

static int failed(const char *path, errcode_t ret, struct err *e)
{
	int code = ret == EXT2_ET_FILE_NOT_FOUND ? ENOENT
		   : ret == EXT2_ET_NO_DIRECTORY ? ENOTDIR
		   : ret == EXT2_ET_SYMLINK_LOOP ? ELOOP
		   : ret == EXT2_ET_NO_MEMORY	 ? ENOMEM
						 : EINVAL;

	return err_set(e, code, "%s: %s", path,
		       code == ENOENT ? "no such file" : ext.error_message(ret));
}

/* Finds a file and reads its inode. */
static errcode_t ext_find(struct diskfs_ext *x, const char *path, bool follow, ext2_ino_t *ino,
			  struct ext2_inode *inode)
{
	errcode_t ret =
		follow ? ext.ext2fs_namei_follow(x->fs, EXT2_ROOT_INO, EXT2_ROOT_INO, path, ino)
		       : ext.ext2fs_namei(x->fs, EXT2_ROOT_INO, EXT2_ROOT_INO, path, ino);

	return ret ? ret : ext.ext2fs_read_inode(x->fs, *ino, inode);
}

bool fs_ext_exists(struct diskfs_ext *x, const char *path)
{
	struct ext2_inode inode;
	ext2_ino_t ino;

	return ext_find(x, path, true, &ino, &inode) == 0;
}

static errcode_t read_part(struct diskfs_ext *x, ext2_ino_t ino, uint64_t off, uint64_t size,
			   struct buf *out)
{
	ext2_file_t file;
	errcode_t ret = ext.ext2fs_file_open(x->fs, ino, 0, &file);

	if (ret)
		return ret;
	if (off)
		ret = ext.ext2fs_file_llseek(file, off, EXT2_SEEK_SET, NULL);
	while (!ret && size) {
		unsigned int want = size < PIECE ? (unsigned int)size : PIECE, got = 0;
		uint8_t *p = buf_reserve(out, want);

		ret = p ? ext.ext2fs_file_read(file, p, want, &got) : EXT2_ET_NO_MEMORY;
		if (!ret && !got)
			ret = EXT2_ET_SHORT_READ;
		if (!ret)
			out->len += got;
		size -= got;
	}
	ext.ext2fs_file_close(file);
	return ret;
}

/* Finds a regular file. */
static int find_file(struct diskfs_ext *x, const char *path, ext2_ino_t *ino,
		     struct ext2_inode *inode, struct err *e)
{
	errcode_t ret = ext_find(x, path, true, ino, inode);

	if (ret)
		return failed(path, ret, e);
	if (!LINUX_S_ISREG(inode->i_mode))
		return err_set(e, LINUX_S_ISDIR(inode->i_mode) ? EISDIR : EINVAL,
			       "%s: not a regular file", path);
	return 0;
}

int fs_ext_read(struct diskfs_ext *x, const char *path, size_t max, struct buf *out, struct err *e)
{
	struct ext2_inode inode;
	ext2_ino_t ino;
	errcode_t ret;
	int err = find_file(x, path, &ino, &inode, e);

	if (err)
		return err;
	if (EXT2_I_SIZE(&inode) > max)
		return err_set(e, EFBIG, "%s: %llu bytes, more than the limit of %zu", path,
			       (unsigned long long)EXT2_I_SIZE(&inode), max);
	ret = read_part(x, ino, 0, EXT2_I_SIZE(&inode), out);
	return ret ? failed(path, ret, e) : 0;
}

int fs_ext_read_part(struct diskfs_ext *x, const char *path, struct diskfs_part part,
		     struct buf *out, uint64_t *size, struct err *e)
{
	struct ext2_inode inode;
	ext2_ino_t ino;
	errcode_t ret = 0;
	uint64_t all;
	int err = find_file(x, path, &ino, &inode, e);

	if (err)
		return err;
	all = EXT2_I_SIZE(&inode);
	if (part.off < all)
		ret = read_part(x, ino, part.off,
				part.len < all - part.off ? part.len : all - part.off, out);
	if (ret)
		return failed(path, ret, e);
	*size = all;
	return 0;
}

int fs_ext_link(struct diskfs_ext *x, const char *path, char *to)
{
	struct ext2_inode inode;
	ext2_ino_t ino;
	struct buf text;
	size_t len;
	int ret = 0;

	if (ext_find(x, path, false, &ino, &inode) || !LINUX_S_ISLNK(inode.i_mode))
		return -EINVAL;
	len = EXT2_I_SIZE(&inode);
	if (len >= DISKFS_MAX_PATH)
		return -EINVAL;
	buf_init(&text);
	if (ext.ext2fs_is_fast_symlink(&inode) && len <= sizeof(inode.i_block))
		buf_add(&text, inode.i_block, len);
	else
		ret = read_part(x, ino, 0, len, &text) ? -EINVAL : 0;
	if (!ret && (text.failed || text.len != len || (len && memchr(text.data, 0, len))))
		ret = -EINVAL;
	if (!ret) {
		if (len)
			memcpy(to, text.data, len);
		to[len] = 0;
	}
	buf_deinit(&text);
	return ret;
}

struct fs_ext_names {
	diskfs_list_fn *fn;
	void *ctx;
	unsigned int n;
	int ret;
};

static int tell_name(struct ext2_dir_entry *d, int off, int blocksize, char *buf, void *ctx)
{
	struct fs_ext_names *names = ctx;
	char name[EXT2_NAME_LEN + 1];
	size_t len = (size_t)ext2fs_dirent_name_len(d);

	(void)off;
	(void)blocksize;
	(void)buf;
	if (len > EXT2_NAME_LEN || names->n++ == DISKFS_MAX_NAMES)
		return DIRENT_ABORT;
	memcpy(name, d->name, len);
	name[len] = 0;
	if (!strcmp(name, ".") || !strcmp(name, "..") || strlen(name) != len)
		return 0;
	names->ret = names->fn(names->ctx, name);
	return names->ret ? DIRENT_ABORT : 0;
}

int fs_ext_list(struct diskfs_ext *x, const char *path, diskfs_list_fn *fn, void *ctx,
		struct err *e)
{
	struct fs_ext_names names = { .fn = fn, .ctx = ctx };
	struct ext2_inode inode;
	ext2_ino_t ino;
	errcode_t ret = ext_find(x, path, true, &ino, &inode);

	if (!ret && !LINUX_S_ISDIR(inode.i_mode))
		ret = EXT2_ET_NO_DIRECTORY;
	if (!ret)
		ret = ext.ext2fs_dir_iterate(x->fs, ino, 0, NULL, tell_name, &names);
	return ret ? failed(path, ret, e) : names.ret;
}
