/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "vmm/dev/disk_image.h"
#include "vmm/dev/disk_overlay.h"
#include "vmm/dev/disk_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Maximum number of buffers of one preadv(). */
#define PARTS 64u
/* The pieces that disk_identify() reads. */
#define CHECK_PIECES 16u
#define CHECK_PIECE 4096u

struct disk {
	int fd;			 /* the image, which is locked */
	struct disk_image image; /* what the guest sees of it; its bytes if image.fd is fd */
	uint64_t size;
	uint64_t stamp; /* time of the image's last change, ns; 0: a block device */
	enum disk_write write;
	atomic_int failed;	      /* -errno of the first flush of the image that failed */
	struct disk_overlay *overlay; /* NULL: the image is written, or nothing is */
	char path[];
};

/* The rest of a list of buffers. */
struct rest {
	const struct iovec *iov;
	unsigned int n;
	size_t skip; /* bytes of iov[0] to skip */
};

static void skip(struct rest *r, size_t len)
{
	while (len && r->n) {
		size_t left = r->iov->iov_len - r->skip;

		if (len < left) {
			r->skip += len;
			return;
		}
		len -= left;
		r->iov++;
		r->n--;
		r->skip = 0;
	}
}

/* Stores at most the next len bytes of r as buffers, and returns their number. */
static int rest_take(const struct rest *r, uint64_t len, struct iovec out[PARTS])
{
	size_t from = r->skip;
	int n = 0;

	for (unsigned int i = 0; i < r->n && len && n < (int)PARTS; i++, from = 0) {
		size_t left = r->iov[i].iov_len - from;

		if (!left)
			continue;
		out[n].iov_base = (char *)r->iov[i].iov_base + from;
		out[n].iov_len = left < len ? left : (size_t)len;
		len -= out[n++].iov_len;
	}
	return n;
}

enum way { READ, READ_NOW, WRITE };

static ssize_t call(int fd, enum way way, uint64_t off, const struct iovec *part, int n)
{
	if (way == WRITE)
		return pwritev(fd, part, n, (off_t)off);
	return preadv2(fd, part, n, (off_t)off, way == READ_NOW ? RWF_NOWAIT : 0);
}

/* Transfers len bytes between fd at off and r, which advances. */
static int transfer(int fd, enum way way, uint64_t off, struct rest *r, uint64_t len)
{
	while (len) {
		struct iovec part[PARTS];
		ssize_t done = call(fd, way, off, part, rest_take(r, len, part));

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EOPNOTSUPP && way == READ_NOW)
			return -EAGAIN;
		if (done < 0)
			return -errno;
		if (done == 0) /* another process has made the file shorter */
			return -EIO;
		skip(r, (size_t)done);
		off += (uint64_t)done;
		len -= (uint64_t)done;
	}
	return 0;
}

/* Reads len bytes of the image to r, which advances. */
static int read_image(const struct disk *d, enum way way, uint64_t off, struct rest *r,
		      uint64_t len)
{
	if (d->image.fd >= 0)
		return transfer(d->image.fd, way, off, r, len);
	if (way == READ_NOW)
		return -EAGAIN;
	while (len) {
		struct iovec part[PARTS];
		int ret, n = rest_take(r, len, part);

		for (int i = 0; i < n; i++) {
			ret = disk_image_read(&d->image, off, part[i].iov_base, part[i].iov_len,
					      (size_t)(len - part[i].iov_len));
			if (ret)
				return ret;
			skip(r, part[i].iov_len);
			off += part[i].iov_len;
			len -= part[i].iov_len;
		}
	}
	return 0;
}

/* Computes the length of iov. Returns 0, or -EIO if it passes the end. */
static int check_range(const struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n,
		       uint64_t *out)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < n; i++)
		if (__builtin_add_overflow(len, iov[i].iov_len, &len))
			return -EIO;
	if (off > d->size || len > d->size - off)
		return -EIO;
	*out = len;
	return 0;
}

static int read_disk(struct disk *d, enum way way, uint64_t off, const struct iovec *iov,
		     unsigned int n)
{
	struct rest r = { .iov = iov, .n = n };
	uint64_t len = 0;
	int ret = check_range(d, off, iov, n, &len);

	while (!ret && len) {
		uint64_t sector = off / DISK_SECTOR, some = len;
		bool in = false;

		if (d->overlay) {
			uint64_t sectors = (off + len - 1) / DISK_SECTOR - sector + 1;

			some = disk_overlay_run(d->overlay, sector, sectors, &in) * DISK_SECTOR -
			       off % DISK_SECTOR;
			if (some > len)
				some = len;
		}
		if (in)
			ret = transfer(d->overlay->fd, d->overlay->in_memory ? READ : way,
				       d->overlay->data + off, &r, some);
		else
			ret = read_image(d, way, off, &r, some);
		off += some;
		len -= some;
	}
	return ret;
}

int disk_readv(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n)
{
	return read_disk(d, READ, off, iov, n);
}

int disk_readv_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n)
{
	return read_disk(d, READ_NOW, off, iov, n);
}

/* Copies a sector from the image to the overlay before only a part of it is written. */
static int fill_sector(struct disk *d, uint64_t sector)
{
	uint8_t bytes[DISK_SECTOR];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct rest r = { .iov = &iov, .n = 1 };
	bool in;
	int ret = 0;

	pthread_mutex_lock(&d->overlay->lock);
	(void)disk_overlay_run(d->overlay, sector, 1, &in);
	if (!in) {
		ret = read_image(d, READ, sector * DISK_SECTOR, &r, sizeof(bytes));
		r = (struct rest){ .iov = &iov, .n = 1 };
		if (!ret)
			ret = transfer(d->overlay->fd, WRITE,
				       d->overlay->data + sector * DISK_SECTOR, &r, sizeof(bytes));
		if (!ret)
			disk_overlay_add(d->overlay, sector, 1);
	}
	pthread_mutex_unlock(&d->overlay->lock);
	return ret;
}

int disk_writev(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n)
{
	struct rest r = { .iov = iov, .n = n };
	uint64_t len = 0, first = off / DISK_SECTOR, end, taken;
	int ret = check_range(d, off, iov, n, &len);

	if (ret)
		return ret;
	if (d->write == DISK_READ_ONLY)
		return -EROFS;
	if (!len)
		return 0;
	if (!d->overlay)
		return transfer(d->fd, WRITE, off, &r, len);
	ret = disk_overlay_begin(d->overlay, off, len, &taken);
	if (ret)
		return ret;
	end = (off + len + DISK_SECTOR - 1) / DISK_SECTOR;
	if (off % DISK_SECTOR)
		ret = fill_sector(d, first);
	if (!ret && (off + len) % DISK_SECTOR)
		ret = fill_sector(d, end - 1);
	if (!ret)
		ret = transfer(d->overlay->fd, WRITE, d->overlay->data + off, &r, len);
	if (!ret)
		disk_overlay_add(d->overlay, first, end - first);
	disk_overlay_end(d->overlay, taken);
	return ret;
}

static bool writes_to_memory(const struct disk *d)
{
	return d->overlay && d->overlay->in_memory;
}

int disk_writev_now(struct disk *d, uint64_t off, const struct iovec *iov, unsigned int n)
{
	uint64_t len = 0;
	int ret = check_range(d, off, iov, n, &len);

	if (ret)
		return ret;
	/* A partial sector may need its rest from the image. */
	if (!writes_to_memory(d) || off % DISK_SECTOR || len % DISK_SECTOR)
		return d->write == DISK_READ_ONLY ? -EROFS : -EAGAIN;
	return disk_writev(d, off, iov, n);
}

int disk_flush_now(struct disk *d)
{
	return writes_to_memory(d) || d->write == DISK_READ_ONLY ? 0 : -EAGAIN;
}

int disk_flush(struct disk *d)
{
	if (d->overlay)
		return disk_overlay_flush(d->overlay);
	if (d->write != DISK_WRITABLE)
		return 0;
	if (!atomic_load(&d->failed) && fdatasync(d->fd) < 0)
		atomic_store(&d->failed, -errno);
	return atomic_load(&d->failed);
}

int disk_discard(struct disk *d, uint64_t off, uint64_t len)
{
	int ret;

	if (off % DISK_SECTOR || len % DISK_SECTOR)
		return -EINVAL;
	if (off > d->size || len > d->size - off)
		return -EIO;
	if (d->write == DISK_READ_ONLY)
		return -EROFS;
	if (!d->overlay)
		return disk_fill_zeros(d->fd, off, len);
	ret = disk_fill_zeros(d->overlay->fd, d->overlay->data + off, len);
	if (!ret)
		disk_overlay_add(d->overlay, off / DISK_SECTOR, len / DISK_SECTOR);
	return ret;
}

static uint64_t stamp_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)
		       ? (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec
		       : 0;
}

static int open_image(struct disk *d, struct err *e)
{
	bool writable = d->write == DISK_WRITABLE;
	struct stat st;
	uint64_t size;

	/* O_NONBLOCK keeps a FIFO from waiting for its other end. */
	d->fd = open(d->path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	if (d->fd < 0)
		return err_set(e, errno, "%s: cannot open the disk image%s: %s", d->path,
			       writable ? " to write it" : "", strerror(errno));
	if (fstat(d->fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", d->path, strerror(errno));
	if (S_ISBLK(st.st_mode)) {
		if (ioctl(d->fd, BLKGETSIZE64, &size) < 0)
			return err_set(e, errno, "%s: cannot get the size of the device: %s",
				       d->path, strerror(errno));
	} else if (S_ISREG(st.st_mode)) {
		size = (uint64_t)st.st_size;
		d->stamp = stamp_of(&st);
	} else {
		return err_set(e, EINVAL, "%s: a disk image is a regular file or a block device",
			       d->path);
	}
	d->size = size;
	/* Some network file systems have no locks; the image is used without one there. */
	if (flock(d->fd, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, EBUSY,
			       writable ? "%s: in use by another run, it can't be written now"
					: "%s: being written by another run, it can't be used now",
			       d->path);
	return 0;
}

static int check_size(struct disk *d, struct err *e)
{
	uint64_t size = d->size;

	d->size = size / DISK_SECTOR * DISK_SECTOR;
	if (!d->size)
		return err_set(e, EINVAL, "%s: %llu bytes are too few for a disk: a sector has %u",
			       d->path, (unsigned long long)size, DISK_SECTOR);
	if (d->size > DISK_MAX_SIZE)
		return err_set(e, EFBIG, "%s: %llu bytes, more than the limit of %llu", d->path,
			       (unsigned long long)size, (unsigned long long)DISK_MAX_SIZE);
	return 0;
}

/* Finds out the image's format, and d->size as the guest sees it. */
static int open_format(struct disk *d, const struct disk_config *cfg, struct err *e)
{
	const struct disk_image_config image = {
		.path = d->path,
		.fd = d->fd,
		.format = cfg->format,
		.follow = cfg->follow,
		.confine = cfg->confine,
	};
	int ret = disk_image_open(&d->image, &image, e);

	if (ret)
		return ret;
	if (d->image.fd == d->fd)
		return check_size(d, e);
	if (d->write == DISK_WRITABLE)
		return err_set(e, ENOTSUP,
			       "%s: only raw images are written, and this one is %s: without "
			       "'writable' what is written is kept in memory",
			       d->path, d->image.how ? "compressed" : d->image.format);
	d->size = d->image.size;
	return check_size(d, e);
}

static int open_overlay(struct disk *d, const char *path, struct disk_budget *budget, struct err *e)
{
	struct stat image, overlay;

	if (path && stat(path, &overlay) == 0 && fstat(d->fd, &image) == 0 &&
	    image.st_dev == overlay.st_dev && image.st_ino == overlay.st_ino)
		return err_set(e, EINVAL, "%s: the image can't be its own overlay", path);
	return disk_overlay_open(&d->overlay, path, d->size, d->stamp, budget, e);
}

int disk_open(struct disk **out, const struct disk_config *cfg, struct err *e)
{
	size_t len = strlen(cfg->path) + 1;
	struct disk *d = calloc(1, sizeof(*d) + len);
	int ret;

	if (!d)
		return err_set(e, ENOMEM, "%s: out of memory", cfg->path);
	memcpy(d->path, cfg->path, len);
	d->fd = -1;
	disk_image_init(&d->image);
	d->write = cfg->write;
	ret = open_image(d, e);
	if (!ret)
		ret = open_format(d, cfg, e);
	if (!ret && cfg->write == DISK_OVERLAY)
		ret = open_overlay(d, NULL, cfg->budget, e);
	if (!ret && cfg->write == DISK_OVERLAY_FILE)
		ret = open_overlay(d, cfg->overlay, NULL, e);
	if (ret) {
		disk_close(d, NULL);
		return ret;
	}
	*out = d;
	return 0;
}

void disk_stop(struct disk *d)
{
	if (d)
		disk_image_stop(&d->image);
}

int disk_close(struct disk *d, struct err *e)
{
	bool failed;
	int ret;

	if (!d)
		return 0;
	ret = disk_overlay_close(d->overlay);
	failed = disk_image_failed(&d->image);
	disk_image_close(&d->image);
	if (d->fd >= 0 && close(d->fd) < 0 && !ret && d->write == DISK_WRITABLE)
		ret = -errno;
	if (!ret)
		ret = atomic_load(&d->failed);
	if (ret)
		err_set(e, -ret, "%s: %s is not complete: %s", d->path,
			d->overlay ? "what the guest wrote over it" : "what the guest wrote to it",
			strerror(-ret));
	else if (failed)
		ret = err_set(e, EIO,
			      "%s: the process that reads it ended or did not answer: the guest's "
			      "reads failed from then on",
			      d->path);
	free(d);
	return ret;
}

uint64_t disk_size(const struct disk *d)
{
	return d->size;
}

bool disk_is_read_only(const struct disk *d)
{
	return d->write == DISK_READ_ONLY;
}

bool disk_is_writable(const struct disk *d)
{
	return d->write == DISK_WRITABLE;
}

const char *disk_path(const struct disk *d)
{
	return d->path;
}

int disk_fd(const struct disk *d)
{
	return d->image.fd;
}

const char *disk_format(const struct disk *d)
{
	return d->image.format;
}

const char *disk_compression(const struct disk *d)
{
	return d->image.how;
}

uint64_t disk_overlay_bytes(const struct disk *d)
{
	struct stat st;

	if (!d->overlay || file_fstat(d->overlay->fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

uint64_t disk_overlay_refused(const struct disk *d)
{
	return d->overlay ? atomic_load_explicit(&d->overlay->refused, memory_order_relaxed) : 0;
}

int disk_identify(const struct disk *d, struct disk_identity *out, struct err *e)
{
	uint64_t step = d->size / CHECK_PIECES / DISK_SECTOR * DISK_SECTOR;
	uint8_t bytes[CHECK_PIECE];
	uint32_t check = 0;
	struct stat st;

	if (fstat(d->fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", d->path, strerror(errno));
	if (stamp_of(&st) != d->stamp)
		return err_set(e, ESTALE, "%s: the image was changed since it was opened", d->path);
	for (unsigned int i = 0; i < CHECK_PIECES; i++) {
		size_t len = d->size < sizeof(bytes) ? (size_t)d->size : sizeof(bytes);
		uint64_t off = i + 1 < CHECK_PIECES ? i * step : d->size - len;
		struct iovec iov = { .iov_base = bytes, .iov_len = len };
		struct rest r = { .iov = &iov, .n = 1 };
		int ret;

		if (off > d->size - len)
			off = d->size - len;
		ret = read_image(d, READ, off, &r, len);
		if (ret)
			return err_set(e, -ret, "%s: cannot read: %s", d->path, strerror(-ret));
		check = (uint32_t)crc32_z(check, bytes, len);
	}
	*out = (struct disk_identity){ .size = d->size, .stamp = d->stamp, .check = check };
	return 0;
}

int disk_overlay_save(const struct disk *d, int fd, struct err *e)
{
	if (d->write == DISK_WRITABLE)
		return err_set(
			e, ENOTSUP,
			"%s: is written directly, but a snapshot needs an overlay: drop 'writable'",
			d->path);
	return disk_state_save(d->overlay, d->path, d->size, d->stamp, fd, e);
}

int disk_overlay_restore(struct disk *d, struct cursor *in, struct err *e)
{
	if (d->write == DISK_WRITABLE)
		return err_set(
			e, ENOTSUP,
			"%s: is written directly, but a snapshot needs an overlay: drop 'writable'",
			d->path);
	return disk_state_restore(d->overlay, d->path, d->size, d->stamp, in, e);
}
