/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers of requests about one file: open, read, write, attributes. */
#include "vmm/dev/p9_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Flags of open in 9P2000.L: those of Linux on x86 (include/net/9p/9p.h). */
#define L_ACCMODE 00000003u
#define L_TRUNC 00001000u
#define L_APPEND 00002000u

/* Bits of Tgetattr and Tsetattr. */
#define GETATTR_BASIC UINT64_C(0x7ff)
#define SETATTR_MODE 0x001u
#define SETATTR_SIZE 0x008u
#define SETATTR_ATIME 0x010u
#define SETATTR_MTIME 0x020u
#define SETATTR_ATIME_SET 0x080u
#define SETATTR_MTIME_SET 0x100u

#define SETATTR_CHANGES (SETATTR_MODE | SETATTR_SIZE | SETATTR_ATIME | SETATTR_MTIME)

#define LOCK_SUCCESS 0u
#define LOCK_TYPE_UNLCK 2u

int p9_do_lopen(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint32_t flags = cursor_u32(c), mode = flags & L_ACCMODE;
	bool writes = mode != O_RDONLY || (flags & L_TRUNC);
	struct stat st;
	int fd;

	if (!f || c->bad)
		return -EBADF;
	if (f->fd >= 0 || f->dir)
		return -EINVAL;
	if (writes && p->read_only)
		return -EROFS;
	if (fstat(f->node->fd, &st) < 0)
		return -errno;
	/* Opening a FIFO would wait, and a device belongs to the host. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -ENXIO;
	if (S_ISDIR(st.st_mode) && writes)
		return -EISDIR;
	if (p9_files_left(p, 1))
		return -EMFILE;
	fd = p9_open_again(p, f->node->fd, (int)mode | (flags & L_TRUNC ? O_TRUNC : 0));
	if (fd < 0)
		return fd;
	if (S_ISDIR(st.st_mode)) {
		f->dir = fdopendir(fd);
		if (!f->dir) {
			close(fd);
			return -ENOMEM;
		}
	} else {
		f->fd = fd;
		f->writable = mode != O_RDONLY;
	}
	p->nfiles++;
	p9_put_qid(p, o, &st);
	p9_put32(o, 0); /* iounit: limited by msize */
	return 0;
}

int p9_do_read(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint64_t off = cursor_u64(c);
	uint32_t count = cursor_u32(c);
	size_t room = o->cap - o->len;
	ssize_t n;

	if (!f || c->bad || f->fd < 0)
		return -EBADF;
	if (room < sizeof(uint32_t) || off > INT64_MAX)
		return -EINVAL;
	room -= sizeof(uint32_t);
	do
		n = pread(f->fd, o->data + o->len + sizeof(uint32_t), count < room ? count : room,
			  (off_t)off);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	p->stats.read_bytes += (uint64_t)n;
	p9_put32(o, (uint32_t)n);
	o->len += (size_t)n;
	return 0;
}

int p9_do_write(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint64_t off = cursor_u64(c);
	uint32_t count = cursor_u32(c);
	const uint8_t *data = cursor_bytes(c, count);
	ssize_t n;

	if (!f || f->fd < 0)
		return -EBADF;
	if (!data || off > (uint64_t)INT64_MAX - count)
		return -EINVAL;
	if (!f->writable)
		return -EBADF;
	do
		n = pwrite(f->fd, data, count, (off_t)off);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	p->stats.written_bytes += (uint64_t)n;
	p9_put32(o, (uint32_t)n);
	return 0;
}

static void put_time(struct p9_out *o, const struct timespec *t)
{
	p9_put64(o, (uint64_t)t->tv_sec);
	p9_put64(o, (uint64_t)t->tv_nsec);
}

int p9_do_getattr(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint64_t asked = cursor_u64(c);
	struct stat st;

	if (!f || c->bad)
		return -EBADF;
	if (fstat(f->node->fd, &st) < 0)
		return -errno;
	p9_put64(o, asked & GETATTR_BASIC);
	p9_put_qid(p, o, &st);
	p9_put32(o, st.st_mode);
	p9_put32(o, st.st_uid);
	p9_put32(o, st.st_gid);
	p9_put64(o, st.st_nlink);
	p9_put64(o, st.st_rdev);
	p9_put64(o, (uint64_t)st.st_size);
	p9_put64(o, (uint64_t)st.st_blksize);
	p9_put64(o, (uint64_t)st.st_blocks);
	put_time(o, &st.st_atim);
	put_time(o, &st.st_mtim);
	put_time(o, &st.st_ctim);
	for (unsigned int i = 0; i < 4; i++) /* birth time, generation, version: unknown */
		p9_put64(o, 0);
	return 0;
}

/*
 * Opens a regular file or a directory to change its mode, times or size. None of the calls that
 * change them takes a path, because Landlock does not restrict chmod(2) and utimensat(2). A file
 * that may be neither read nor written is refused.
 */
static int open_to_change(const struct p9 *p, const struct p9_fid *f, uint32_t valid, mode_t mode)
{
	bool writes = valid & SETATTR_SIZE;
	int fd;

	/* Its mode may forbid opening it once more. */
	if (f->fd >= 0 && (f->writable || !writes)) {
		fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	fd = p9_open_again(p, f->node->fd, (writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK);

	if (fd == -EACCES && !writes && S_ISREG(mode))
		fd = p9_open_again(p, f->node->fd, O_WRONLY | O_NONBLOCK);
	return fd;
}

static int set_times(int fd, uint32_t valid, const struct timespec given[2])
{
	struct timespec t[2] = { { 0, UTIME_OMIT }, { 0, UTIME_OMIT } };

	if (valid & SETATTR_ATIME)
		t[0] = valid & SETATTR_ATIME_SET ? given[0] : (struct timespec){ 0, UTIME_NOW };
	if (valid & SETATTR_MTIME)
		t[1] = valid & SETATTR_MTIME_SET ? given[1] : (struct timespec){ 0, UTIME_NOW };
	return futimens(fd, t) < 0 ? -errno : 0;
}

int p9_do_setattr(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint32_t valid = cursor_u32(c), mode = cursor_u32(c);
	struct timespec t[2];
	uint64_t size;
	cleanup_close int fd = -1;
	struct stat st;

	(void)o;
	cursor_skip(c, 8); /* owner and group stay those of the user who runs kvmprof */
	size = cursor_u64(c);
	for (unsigned int i = 0; i < 2; i++) {
		t[i].tv_sec = (time_t)cursor_u64(c);
		t[i].tv_nsec = (long)cursor_u64(c);
		if (t[i].tv_nsec < 0 || t[i].tv_nsec > 999999999)
			return -EINVAL;
	}
	if (!f || c->bad)
		return -EBADF;
	if (fstat(f->node->fd, &st) < 0)
		return -errno;
	/* A link cannot be opened, and a FIFO or a device must not be. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -EOPNOTSUPP;
	if ((valid & SETATTR_SIZE) && (size > INT64_MAX || !S_ISREG(st.st_mode)))
		return -EINVAL;
	if (!(valid & SETATTR_CHANGES))
		return 0;
	fd = open_to_change(p, f, valid, st.st_mode);
	if (fd < 0)
		return fd;
	if ((valid & SETATTR_MODE) && fchmod(fd, mode & 0777) < 0)
		return -errno;
	if ((valid & SETATTR_SIZE) && ftruncate(fd, (off_t)size) < 0)
		return -errno;
	return valid & (SETATTR_ATIME | SETATTR_MTIME) ? set_times(fd, valid, t) : 0;
}

int p9_do_fsync(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));

	(void)o;
	if (!f || (f->fd < 0 && !f->dir))
		return -EBADF;
	return fsync(f->dir ? dirfd(f->dir) : f->fd) < 0 ? -errno : 0;
}

/*
 * Grants every lock: the guest's kernel manages the locks among its programs, and the host has no
 * part in them.
 */
int p9_do_lock(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	if (!p9_find(p, cursor_u32(c)))
		return -EBADF;
	p9_put8(o, LOCK_SUCCESS);
	return 0;
}

int p9_do_getlock(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	char client[P9_NAME_MAX + 1];
	uint64_t start, length;
	uint32_t proc;
	int ret;

	if (!p9_find(p, cursor_u32(c)))
		return -EBADF;
	cursor_u8(c);
	start = cursor_u64(c);
	length = cursor_u64(c);
	proc = cursor_u32(c);
	ret = p9_get_string(c, client, sizeof(client));
	if (ret)
		return ret;
	p9_put8(o, LOCK_TYPE_UNLCK);
	p9_put64(o, start);
	p9_put64(o, length);
	p9_put32(o, proc);
	p9_put_string(o, client, strlen(client));
	return 0;
}

int p9_do_readlink(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	char target[P9_LINK_MAX + 1];
	ssize_t n;

	if (!f || c->bad)
		return -EBADF;
	n = readlinkat(f->node->fd, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n > (ssize_t)P9_LINK_MAX)
		return -ENAMETOOLONG;
	p9_put_string(o, target, (size_t)n);
	return 0;
}
