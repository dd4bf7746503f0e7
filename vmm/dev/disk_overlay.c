/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_overlay.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OVERLAY_MAGIC "kvmp-ovl"
#define OVERLAY_VERSION 1u
#define OVERLAY_HEADER 40u
#define SECTOR 512u
#define PAGE 4096u
#define WORD 64u
#define DATA_ALIGN 65536u

static int pwrite_all(int fd, const void *data, size_t len, uint64_t off)
{
	const char *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)off);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			off += (uint64_t)n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Returns 0, -errno, or -EIO if the file is shorter. */
static int pread_all(int fd, void *data, size_t len, uint64_t off)
{
	char *p = data;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)off);

		if (n == 0)
			return -EIO;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			off += (uint64_t)n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int disk_fill_zeros(int fd, uint64_t off, uint64_t len)
{
	static const char zeros[65536];

	if (!len ||
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return -errno;
	while (len) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);
		int ret = pwrite_all(fd, zeros, n, off);

		if (ret)
			return ret;
		off += n;
		len -= n;
	}
	return 0;
}

static int write_header(const struct disk_overlay *o)
{
	struct buf b;
	int ret;

	buf_init(&b);
	buf_add(&b, OVERLAY_MAGIC, 8);
	buf_u32(&b, OVERLAY_VERSION);
	buf_u32(&b, SECTOR);
	buf_u64(&b, o->sectors * SECTOR);
	buf_u64(&b, o->stamp);
	buf_u64(&b, o->data);
	ret = b.failed ? -ENOMEM : pwrite_all(o->fd, b.data, b.len, 0);
	buf_deinit(&b);
	return ret;
}

static int read_header(const struct disk_overlay *o, const char *path, struct err *e)
{
	uint8_t bytes[OVERLAY_HEADER];
	struct cursor c;
	uint32_t version, sector;
	uint64_t size, stamp, data;

	if (pread_all(o->fd, bytes, sizeof(bytes), 0) != 0 || memcmp(bytes, OVERLAY_MAGIC, 8) != 0)
		return err_set(
			e, EINVAL,
			"%s: not an overlay that kvmprof made; name a file that is not there yet",
			path);
	cursor_init(&c, bytes, sizeof(bytes));
	cursor_skip(&c, 8);
	version = cursor_u32(&c);
	sector = cursor_u32(&c);
	size = cursor_u64(&c);
	stamp = cursor_u64(&c);
	data = cursor_u64(&c);
	if (version != OVERLAY_VERSION || sector != SECTOR)
		return err_set(e, EINVAL, "%s: an overlay of version %u, this kvmprof knows %u",
			       path, version, OVERLAY_VERSION);
	if (size != o->sectors * SECTOR || data != o->data)
		return err_set(e, EINVAL,
			       "%s: the overlay of an image of %llu bytes, this one has %llu", path,
			       (unsigned long long)size, (unsigned long long)(o->sectors * SECTOR));
	if (stamp != o->stamp)
		return err_set(
			e, ESTALE,
			"%s: the image was changed since this overlay was made, they no longer "
			"fit; remove the overlay",
			path);
	return 0;
}

/* Reads the bitmap. Bits beyond the image's end are ignored. */
static int read_bitmap(struct disk_overlay *o, const char *path, struct err *e)
{
	uint64_t words = o->bitmap_len / 8, used = o->sectors / WORD;
	uint64_t at = OVERLAY_BITMAP, end = OVERLAY_BITMAP + o->bitmap_len;

	/*
	 * Reads only data, not holes: otherwise the bitmap of a large image would use all of its
	 * memory here.
	 */
	while (at < end) {
		off_t from = lseek(o->fd, (off_t)at, SEEK_DATA), to;
		int ret;

		if (from < 0 && errno == ENXIO)
			break;
		to = from < 0 ? -1 : lseek(o->fd, from, SEEK_HOLE);
		if (to < 0)
			return err_set(e, errno, "%s: cannot read: %s", path, strerror(errno));
		if ((uint64_t)from >= end)
			break;
		if ((uint64_t)to > end)
			to = (off_t)end;
		at = (uint64_t)from - OVERLAY_BITMAP;
		ret = pread_all(o->fd, (char *)o->bitmap + at, (size_t)(to - from), (uint64_t)from);
		if (ret)
			return err_set(e, -ret, "%s: cannot read: %s", path, strerror(-ret));
		at = (uint64_t)to;
	}
	for (uint64_t w = used; w < words; w++) {
		uint64_t keep = w == used ? (UINT64_C(1) << o->sectors % WORD) - 1 : 0;

		if (o->bitmap[w] & ~keep)
			o->bitmap[w] &= keep;
	}
	return 0;
}

static int open_file(struct disk_overlay *o, const char *path, struct err *e)
{
	struct stat st;
	int ret;

	o->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (o->fd < 0)
		return err_set(e, errno, "%s: cannot create the overlay: %s", path,
			       strerror(errno));
	if (fstat(o->fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s: not a regular file, an overlay has to be one", path);
	if (flock(o->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, EBUSY, "%s: the overlay is in use by another run", path);
	/* Checked again, because no other process can be creating it now. */
	if (fstat(o->fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (st.st_size) {
		ret = read_header(o, path, e);
		if (ret)
			return ret;
	}
	/* A full disk may have left only a header, or a part of the data. */
	ret = ftruncate(o->fd, (off_t)(o->data + o->sectors * SECTOR)) < 0 ? -errno : 0;
	if (!ret && !st.st_size)
		ret = write_header(o);
	if (ret)
		return err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret));
	return st.st_size ? read_bitmap(o, path, e) : 0;
}

int disk_overlay_begin(struct disk_overlay *o, uint64_t off, uint64_t len, uint64_t *taken)
{
	int ret;

	*taken = 0;
	ret = o->budget ? disk_budget_reserve(o->budget, o->fd, o->data + off, len, taken) : 0;
	if (ret)
		atomic_fetch_add_explicit(&o->refused, 1, memory_order_relaxed);
	return ret;
}

void disk_overlay_end(struct disk_overlay *o, uint64_t taken)
{
	if (o->budget)
		disk_budget_return(o->budget, taken);
}

static int open_memory(struct disk_overlay *o, struct disk_budget *budget, struct err *e)
{
	o->in_memory = true;
	o->fd = memfd_create("kvmprof-overlay", MFD_CLOEXEC);
	if (o->fd < 0 || ftruncate(o->fd, (off_t)(o->data + o->sectors * SECTOR)) < 0)
		return err_set(e, errno, "cannot make an overlay in memory: %s", strerror(errno));
	if (budget && disk_budget_join(budget, o->fd) < 0)
		return err_set(e, ENOSPC, "too many overlays in memory");
	o->budget = budget;
	return 0;
}

int disk_overlay_open(struct disk_overlay **out, const char *path, uint64_t size, uint64_t stamp,
		      struct disk_budget *budget, struct err *e)
{
	struct disk_overlay *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return err_set(e, ENOMEM, "out of memory for a disk's overlay");
	o->fd = -1;
	o->sectors = size / SECTOR;
	o->stamp = stamp;
	o->bitmap_len = (size_t)((o->sectors / 8 + PAGE) / PAGE * PAGE);
	o->data = (OVERLAY_BITMAP + o->bitmap_len + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	pthread_mutex_init(&o->lock, NULL);
	o->dirty = calloc(o->bitmap_len / PAGE, sizeof(*o->dirty));
	o->bitmap = mmap(NULL, o->bitmap_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (o->bitmap == MAP_FAILED)
		o->bitmap = NULL;
	if (!o->bitmap || !o->dirty)
		ret = err_set(e, ENOMEM, "out of memory for a disk's overlay");
	else
		ret = path ? open_file(o, path, e) : open_memory(o, budget, e);
	if (ret) {
		disk_overlay_close(o);
		return ret;
	}
	*out = o;
	return 0;
}

/* State of a page of the bitmap: same as in the file, changed, or changed and being written. */
enum { CLEAN = 0, DIRTY, WRITING };

/*
 * Writes the pages that were changed when it began. With `sync`, the data that they describe
 * reaches the disk before they do.
 */
static int write_bitmap(struct disk_overlay *o, bool sync)
{
	size_t pages = o->bitmap_len / PAGE, pos = 0;
	struct buf copy; /* number and bytes of each page */
	int ret = 0;

	buf_init(&copy);
	for (size_t i = 0; i < pages; i++) {
		if (atomic_load(&o->dirty[i]) == CLEAN)
			continue;
		atomic_store(&o->dirty[i], WRITING);
		buf_u64(&copy, i);
		for (size_t w = i * PAGE / 8; w < (i + 1) * PAGE / 8; w++)
			buf_u64(&copy, atomic_load_explicit(&o->bitmap[w], memory_order_acquire));
	}
	if (copy.failed)
		ret = -ENOMEM;
	if (!ret && sync && fdatasync(o->fd) < 0)
		ret = -errno;
	for (; !ret && pos < copy.len; pos += 8 + PAGE) {
		uint64_t page;

		memcpy(&page, copy.data + pos, sizeof(page));
		ret = pwrite_all(o->fd, copy.data + pos + 8, PAGE, OVERLAY_BITMAP + page * PAGE);
	}
	if (!ret && sync && copy.len && fdatasync(o->fd) < 0)
		ret = -errno;
	for (size_t i = 0; !ret && i < pages; i++) {
		unsigned char writing = WRITING;

		atomic_compare_exchange_strong(&o->dirty[i], &writing, CLEAN);
	}
	buf_deinit(&copy);
	return ret;
}

int disk_overlay_flush(struct disk_overlay *o)
{
	int ret = 0;

	if (o->in_memory)
		return 0;
	pthread_mutex_lock(&o->lock);
	if (!o->failed)
		o->failed = write_bitmap(o, true);
	ret = o->failed;
	pthread_mutex_unlock(&o->lock);
	return ret;
}

int disk_overlay_close(struct disk_overlay *o)
{
	int ret;

	if (!o)
		return 0;
	ret = o->failed;
	if (!ret && o->fd >= 0 && !o->in_memory && o->bitmap && o->dirty)
		ret = write_bitmap(o, false);
	if (o->budget)
		disk_budget_leave(o->budget, o->fd);
	if (o->fd >= 0 && close(o->fd) < 0 && !ret)
		ret = -errno;
	if (o->bitmap)
		munmap((void *)o->bitmap, o->bitmap_len);
	free((void *)o->dirty);
	pthread_mutex_destroy(&o->lock);
	free(o);
	return ret;
}

uint64_t disk_overlay_run(const struct disk_overlay *o, uint64_t sector, uint64_t n, bool *in)
{
	uint64_t done = 0;

	*in = atomic_load_explicit(&o->bitmap[sector / WORD], memory_order_acquire) >>
		      sector % WORD &
	      1;
	while (done < n) {
		uint64_t at = sector + done, room = WORD - at % WORD;
		uint64_t w = atomic_load_explicit(&o->bitmap[at / WORD], memory_order_acquire);
		uint64_t same;

		/* Bits that differ from the first one, starting at `at`. */
		w = (*in ? ~w : w) >> at % WORD;
		same = w ? (uint64_t)__builtin_ctzll(w) : WORD;
		if (same < room)
			return done + same < n ? done + same : n;
		done += room;
	}
	return n;
}

void disk_overlay_add(struct disk_overlay *o, uint64_t sector, uint64_t n)
{
	while (n) {
		uint64_t bit = sector % WORD, room = WORD - bit, some = n < room ? n : room;
		uint64_t mask = (some == WORD ? UINT64_MAX : (UINT64_C(1) << some) - 1) << bit;
		atomic_uint_least64_t *w = &o->bitmap[sector / WORD];

		if ((atomic_load_explicit(w, memory_order_relaxed) & mask) != mask) {
			atomic_fetch_or_explicit(w, mask, memory_order_release);
			atomic_store(&o->dirty[sector / 8 / PAGE], DIRTY);
		}
		sector += some;
		n -= some;
	}
}

int disk_overlay_clear(struct disk_overlay *o)
{
	uint64_t sector = 0;

	while (sector < o->sectors) {
		bool in;
		uint64_t n = disk_overlay_run(o, sector, o->sectors - sector, &in);

		for (uint64_t w = sector / WORD; in && w <= (sector + n - 1) / WORD; w++) {
			atomic_store(&o->bitmap[w], 0);
			atomic_store(&o->dirty[w * 8 / PAGE], DIRTY);
		}
		/* A word at the edge of this run has lost its other bits, too, as intended. */
		sector += n;
	}
	return disk_fill_zeros(o->fd, o->data, o->sectors * SECTOR);
}
