/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disk images against an array of bytes that is written and read in the same way. */
#include "vmm/dev/disk.h"

#include "base/cleanup.h"
#include "vmm/image/disk_format.h"
#include "tests/unit/skip.h"
#include "vmm/dev/disk_budget.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE ((size_t)3 << 20)

static char dir[64];
static char image[96], overlay[96], state_file[96];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kvmprof-disk-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(image, sizeof(image), "%s/disk.img", dir);
	snprintf(overlay, sizeof(overlay), "%s/overlay", dir);
	snprintf(state_file, sizeof(state_file), "%s/state", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(image);
	unlink(overlay);
	unlink(state_file);
	return rmdir(dir);
}

/* Instead of the C library's: the next one may fail, as the kernel tells of a lost page once. */
static bool next_sync_fails;

int fdatasync(int fd)
{
	if (next_sync_fails) {
		next_sync_fails = false;
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 24) % below;
}

static void write_file(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static uint8_t *make_image(size_t len)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)any(256);
	write_file(image, bytes, len);
	return bytes;
}

static void assert_file_is(const char *path, const void *bytes, size_t len)
{
	cleanup_free char *got = malloc(len + 1);
	FILE *f = fopen(path, "rb");

	assert_non_null(got);
	assert_non_null(f);
	assert_int_equal(fread(got, 1, len + 1, f), len);
	fclose(f);
	assert_memory_equal(got, bytes, len);
}

static struct disk *open_disk(enum disk_write how)
{
	struct disk_config cfg = { .path = image, .write = how, .overlay = overlay };
	struct disk *d = NULL;
	struct err e = { 0 };

	if (disk_open(&d, &cfg, &e) != 0)
		fail_msg("%s", e.text);
	return d;
}

static int refused(enum disk_write how, struct err *e)
{
	struct disk_config cfg = { .path = image, .write = how, .overlay = overlay };
	struct disk *d = NULL;
	int ret;

	err_clear(e);
	ret = disk_open(&d, &cfg, e);
	assert_true(ret < 0);
	assert_null(d);
	assert_int_equal(e->code, -ret);
	assert_null(strchr(e->text, '\n'));
	return ret;
}

/* The whole disk, read in pieces of odd lengths into two buffers each. */
static void assert_disk_is(struct disk *d, const uint8_t *model)
{
	size_t size = (size_t)disk_size(d);
	cleanup_free uint8_t *got = malloc(size);

	assert_non_null(got);
	for (size_t off = 0; off < size;) {
		size_t len = 1 + any(200000);
		struct iovec iov[2];

		if (len > size - off)
			len = size - off;
		iov[0].iov_base = got + off;
		iov[0].iov_len = any(len + 1);
		iov[1].iov_base = got + off + iov[0].iov_len;
		iov[1].iov_len = len - iov[0].iov_len;
		assert_int_equal(disk_readv(d, off, iov, 2), 0);
		off += len;
	}
	assert_memory_equal(got, model, size);
}

/* Changes the disk as a guest does, and now and then as none would: parts of sectors. */
static void change(struct disk *d, uint8_t *model, unsigned int times)
{
	static uint8_t bytes[300000];
	uint64_t size = disk_size(d);

	for (unsigned int i = 0; i < times; i++) {
		uint64_t off = any(size), len = any(any(8) ? 9000 : sizeof(bytes));
		struct iovec iov[3];
		size_t a, b;

		if (any(4)) {
			off = off / DISK_SECTOR * DISK_SECTOR;
			len = (len / DISK_SECTOR + 1) * DISK_SECTOR;
		}
		if (len > size - off)
			len = size - off;
		if (any(6) == 0 && off % DISK_SECTOR == 0 && len % DISK_SECTOR == 0) {
			assert_int_equal(disk_discard(d, off, len), 0);
			memset(model + off, 0, len);
			continue;
		}
		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)any(256);
		a = any(len + 1);
		b = a + any(len - a + 1);
		iov[0] = (struct iovec){ bytes, a };
		iov[1] = (struct iovec){ bytes + a, b - a };
		iov[2] = (struct iovec){ bytes + b, len - b };
		assert_int_equal(disk_writev(d, off, iov, 3), 0);
		memcpy(model + off, bytes, len);
		if (any(10) == 0)
			assert_int_equal(disk_flush(d), 0);
	}
}

static void overlays_keep_the_image(void **state)
{
	cleanup_free uint8_t *before = make_image(SIZE + 100); /* no whole sector at its end */
	cleanup_free uint8_t *one = malloc(SIZE), *two = malloc(SIZE);
	struct disk *a = open_disk(DISK_OVERLAY), *b = open_disk(DISK_OVERLAY);

	(void)state;
	assert_int_equal(disk_size(a), SIZE);
	assert_string_equal(disk_path(a), image);
	assert_false(disk_is_read_only(a));
	assert_int_equal(disk_overlay_bytes(a), 0);
	memcpy(one, before, SIZE);
	memcpy(two, before, SIZE);
	for (unsigned int i = 0; i < 20; i++) {
		change(a, one, 20);
		change(b, two, 10);
		assert_disk_is(a, one);
		assert_disk_is(b, two);
	}
	assert_true(disk_overlay_bytes(a) > 0);
	assert_true(disk_overlay_bytes(a) <= SIZE + 65536);
	disk_close(a, NULL);
	disk_close(b, NULL);
	assert_file_is(image, before, SIZE + 100);
}

static void overlay_file_is_kept(void **state)
{
	cleanup_free uint8_t *before = make_image(SIZE);
	cleanup_free uint8_t *model = malloc(SIZE);
	struct disk *d;
	struct err e = { 0 };

	(void)state;
	memcpy(model, before, SIZE);
	for (unsigned int i = 0; i < 5; i++) {
		d = open_disk(DISK_OVERLAY_FILE);
		assert_disk_is(d, model);
		change(d, model, 30);
		assert_disk_is(d, model);
		assert_int_equal(refused(DISK_OVERLAY_FILE, &e), -EBUSY); /* one at a time */
		disk_close(d, NULL);
	}
	assert_file_is(image, before, SIZE);

	/* Another image has come in its place. */
	before[0]++;
	write_file(image, before, SIZE);
	assert_int_equal(utimensat(AT_FDCWD, image, NULL, 0), 0);
	assert_int_equal(refused(DISK_OVERLAY_FILE, &e), -ESTALE);
	assert_int_equal(truncate(image, SIZE / 2), 0);
	assert_int_equal(refused(DISK_OVERLAY_FILE, &e), -EINVAL);
	assert_non_null(strstr(e.text, "3145728"));
}

/* A run that is killed has closed nothing: what was flushed is there all the same. */
static void flushed_is_there_without_close(void **state)
{
	cleanup_free uint8_t *model = make_image(SIZE);
	struct disk *d = open_disk(DISK_OVERLAY_FILE);
	char copy[128], command[300];

	(void)state;
	change(d, model, 40);
	assert_int_equal(disk_flush(d), 0);
	snprintf(copy, sizeof(copy), "%s.copy", overlay);
	snprintf(command, sizeof(command), "cp %s %s", overlay, copy);
	assert_int_equal(system(command), 0);
	disk_close(d, NULL);
	assert_int_equal(rename(copy, overlay), 0);
	d = open_disk(DISK_OVERLAY_FILE);
	assert_disk_is(d, model);
	disk_close(d, NULL);
}

static void writable_changes_the_image(void **state)
{
	cleanup_free uint8_t *model = make_image(SIZE);
	struct disk *d = open_disk(DISK_WRITABLE);
	struct err e = { 0 };

	(void)state;
	change(d, model, 100);
	assert_disk_is(d, model);
	assert_int_equal(disk_overlay_bytes(d), 0);
	assert_int_equal(refused(DISK_WRITABLE, &e), -EBUSY);
	assert_int_equal(refused(DISK_OVERLAY, &e), -EBUSY);
	assert_int_equal(disk_overlay_save(d, -1, &e), -ENOTSUP);
	disk_close(d, NULL);
	assert_file_is(image, model, SIZE);
	d = open_disk(DISK_OVERLAY);
	assert_int_equal(refused(DISK_WRITABLE, &e), -EBUSY);
	disk_close(d, NULL);
	d = open_disk(DISK_WRITABLE);
	disk_close(d, NULL);
}

static void read_only_is(void **state)
{
	cleanup_free uint8_t *before = make_image(SIZE);
	struct disk *d = open_disk(DISK_READ_ONLY);
	struct iovec iov = { before, DISK_SECTOR };

	(void)state;
	assert_true(disk_is_read_only(d));
	assert_int_equal(disk_writev(d, 0, &iov, 1), -EROFS);
	assert_int_equal(disk_discard(d, 0, DISK_SECTOR), -EROFS);
	assert_int_equal(disk_flush(d), 0);
	assert_disk_is(d, before);
	disk_close(d, NULL);
}

static void ends_are_checked(void **state)
{
	static const enum disk_write how[] = { DISK_OVERLAY, DISK_OVERLAY_FILE, DISK_WRITABLE };
	static uint8_t bytes[DISK_SECTOR * 2];
	cleanup_free uint8_t *before = make_image(SIZE);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct disk *d = open_disk(how[i]);
		struct iovec one = { bytes, DISK_SECTOR };
		struct iovec huge[2] = { { bytes, SIZE_MAX }, { bytes, DISK_SECTOR } };

		assert_int_equal(disk_readv(d, SIZE - DISK_SECTOR, &one, 1), 0);
		assert_int_equal(disk_readv(d, SIZE - DISK_SECTOR + 1, &one, 1), -EIO);
		assert_int_equal(disk_readv(d, SIZE, &one, 1), -EIO);
		assert_int_equal(disk_readv(d, UINT64_MAX - 100, &one, 1), -EIO);
		assert_int_equal(disk_writev(d, SIZE, &one, 1), -EIO);
		assert_int_equal(disk_writev(d, UINT64_MAX, &one, 1), -EIO);
		assert_int_equal(disk_readv(d, 0, huge, 2), -EIO);
		assert_int_equal(disk_writev(d, 512, huge, 2), -EIO);
		assert_int_equal(disk_discard(d, 512, SIZE), -EIO);
		assert_int_equal(disk_discard(d, 1, 512), -EINVAL);
		assert_int_equal(disk_discard(d, 512, UINT64_MAX / 512 * 512), -EIO);
		assert_int_equal(disk_readv(d, SIZE, &one, 0), 0);
		assert_int_equal(disk_discard(d, SIZE, 0), 0);
		disk_close(d, NULL);
	}
	assert_file_is(image, before, SIZE);
}

/* Somebody cuts the image while it is in use: an I/O error, no crash. */
static void short_image_is_an_error(void **state)
{
	cleanup_free uint8_t *before = make_image(SIZE);
	struct disk *d = open_disk(DISK_OVERLAY);
	struct iovec iov = { before, 8192 };

	(void)state;
	assert_int_equal(truncate(image, 4096), 0);
	assert_int_equal(disk_readv(d, 0, &iov, 1), -EIO);
	disk_close(d, NULL);
}

/* Data lost by a flush stays lost: later flushes fail, too, and so does closing. */
static void failed_flushes_stay_failed(void **state)
{
	static const enum disk_write how[] = { DISK_OVERLAY_FILE, DISK_WRITABLE };
	cleanup_free uint8_t *bytes = make_image(SIZE);
	struct iovec iov = { bytes, 8192 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct disk *d = open_disk(how[i]);
		struct err e = { 0 };

		assert_int_equal(disk_writev(d, 0, &iov, 1), 0);
		assert_int_equal(disk_flush(d), 0);
		assert_int_equal(disk_writev(d, 8192, &iov, 1), 0);
		next_sync_fails = true;
		assert_int_equal(disk_flush(d), -EIO);
		assert_int_equal(disk_flush(d), -EIO);
		assert_int_equal(disk_writev(d, 0, &iov, 1), 0);
		assert_int_equal(disk_flush(d), -EIO);
		assert_int_equal(disk_close(d, &e), -EIO);
		assert_non_null(strstr(e.text, "not complete: Input/output error"));
		assert_non_null(strstr(e.text, image));
	}
}

/* The bitmap, written at the end: without it the overlay file has lost what was written. */
static void a_failed_end_is_told(void **state)
{
	cleanup_free uint8_t *bytes = make_image(SIZE);
	struct rlimit old, none = { 0, 0 };
	struct iovec iov = { bytes, 8192 };
	struct err e = { 0 };
	struct disk *d = open_disk(DISK_OVERLAY_FILE);
	struct stat st;

	(void)state;
	assert_int_equal(stat(overlay, &st), 0);
	assert_int_equal(st.st_mode & 077, 0); /* what a guest wrote is not everybody's */
	assert_int_equal(disk_writev(d, 0, &iov, 1), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(disk_close(d, &e), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(e.text, "what the guest wrote over it is not complete"));
}

static struct disk *open_limited(struct disk_budget *budget)
{
	struct disk_config cfg = { .path = image, .budget = budget };
	struct err e = { 0 };
	struct disk *d = NULL;

	if (disk_open(&d, &cfg, &e) < 0)
		fail_msg("%s", e.text);
	return d;
}

/* A guest that writes all over its disks gets errors, the host keeps its memory. */
static void memory_is_limited(void **state)
{
	cleanup_free uint8_t *bytes = make_image(SIZE);
	const uint64_t limit = 1 << 20;
	struct iovec iov = { bytes, 12288 }, got;
	uint64_t failed = 0, written = 0;
	cleanup_free uint8_t *back = malloc(iov.iov_len);
	struct disk_budget budget;
	struct disk *d[2];

	(void)state;
	assert_non_null(back);
	disk_budget_init(&budget, limit);
	for (unsigned int i = 0; i < 2; i++)
		d[i] = open_limited(&budget);
	for (uint64_t off = 0; off + iov.iov_len <= SIZE; off += iov.iov_len)
		for (unsigned int i = 0; i < 2; i++) {
			int ret = disk_writev(d[i], off, &iov, 1);

			assert_true(!ret || ret == -ENOSPC);
			failed += ret != 0;
			written += ret ? 0 : iov.iov_len;
		}
	assert_true(failed > 0 && written > limit - 65536);
	assert_true(disk_overlay_bytes(d[0]) + disk_overlay_bytes(d[1]) <= limit);
	assert_int_equal(disk_overlay_refused(d[0]) + disk_overlay_refused(d[1]), failed);
	/* Existing sectors may be written again, also in part; missing ones may be read. */
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(disk_writev_now(d[0], 0, &iov, 1), 0);
	iov.iov_len = 100;
	assert_int_equal(disk_writev(d[0], 4000, &iov, 1), 0);
	iov.iov_len = 12288 - 14;
	assert_int_equal(disk_writev(d[0], SIZE - 12288 + 7, &iov, 1), -ENOSPC);
	got = (struct iovec){ back, 12288 };
	assert_int_equal(disk_readv(d[0], SIZE - 12288, &got, 1), 0);
	assert_memory_equal(back, bytes + SIZE - 12288, 12288);
	/* Discarded room is available to others, and not to the disk itself once they have it. */
	iov.iov_len = 12288;
	assert_int_equal(disk_discard(d[0], 0, 12288), 0);
	assert_int_equal(disk_writev(d[1], SIZE - 12288, &iov, 1), 0);
	assert_int_equal(disk_writev(d[0], 0, &iov, 1), -ENOSPC);
	assert_int_equal(disk_discard(d[0], 12288, 12288), 0);
	assert_int_equal(disk_writev(d[0], 0, &iov, 1), 0);
	assert_true(disk_overlay_bytes(d[0]) + disk_overlay_bytes(d[1]) <= limit);
	/* A disk that is closed frees what it had. */
	disk_close(d[1], NULL);
	assert_int_equal(disk_writev(d[0], SIZE - 12288, &iov, 1), 0);
	disk_close(d[0], NULL);
	disk_budget_deinit(&budget);
}

struct worker {
	struct disk *d;
	uint8_t *model; /* model of this worker's part */
	uint64_t from, size;
	pthread_t thread;
};

/* Sectors of its own, between those of others: words of the bitmap are shared. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t random = w->from + 1;
	uint8_t bytes[DISK_SECTOR];
	struct iovec iov = { bytes, sizeof(bytes) };

	for (unsigned int i = 0; i < 4000; i++) {
		uint64_t sector;

		random = random * 6364136223846793005u + 1442695040888963407u;
		sector = (random >> 30) % (w->size / DISK_SECTOR / 4) * 4 + w->from;
		if (i % 3) {
			memset(bytes, (int)(random >> 50), sizeof(bytes));
			if (disk_writev(w->d, sector * DISK_SECTOR, &iov, 1) != 0)
				return "write";
			memcpy(w->model + sector * DISK_SECTOR, bytes, sizeof(bytes));
		} else {
			if (disk_readv(w->d, sector * DISK_SECTOR, &iov, 1) != 0)
				return "read";
			if (memcmp(w->model + sector * DISK_SECTOR, bytes, sizeof(bytes)) != 0)
				return "other bytes than written";
		}
		if (i % 500 == 0 && disk_flush(w->d) != 0)
			return "flush";
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	static const enum disk_write how[] = { DISK_OVERLAY, DISK_OVERLAY_FILE, DISK_WRITABLE };
	(void)state;

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		cleanup_free uint8_t *model = make_image(SIZE);
		struct disk *d = open_disk(how[i]);
		struct worker w[4];

		for (unsigned int k = 0; k < 4; k++) {
			w[k] = (struct worker){ .d = d, .model = model, .from = k, .size = SIZE };
			assert_int_equal(pthread_create(&w[k].thread, NULL, work, &w[k]), 0);
		}
		for (unsigned int k = 0; k < 4; k++) {
			void *problem;

			assert_int_equal(pthread_join(w[k].thread, &problem), 0);
			if (problem)
				fail_msg("%s", (char *)problem);
		}
		assert_disk_is(d, model);
		disk_close(d, NULL);
		if (how[i] == DISK_OVERLAY_FILE) {
			d = open_disk(DISK_OVERLAY_FILE);
			assert_disk_is(d, model);
			disk_close(d, NULL);
		}
	}
}

/* Returns what save() wrote, and the rest of the file after it. */
static size_t read_state(int fd, uint8_t **out)
{
	off_t size = lseek(fd, 0, SEEK_END);

	assert_true(size > 0);
	*out = malloc((size_t)size);
	assert_non_null(*out);
	assert_int_equal(pread(fd, *out, (size_t)size, 0), size);
	return (size_t)size;
}

static void overlay_is_saved_and_restored(void **state)
{
	cleanup_free uint8_t *model = make_image(SIZE), *other = malloc(SIZE), *bytes = NULL;
	struct disk *d = open_disk(DISK_OVERLAY);
	struct err e = { 0 };
	struct cursor in;
	size_t len;
	int fd;

	(void)state;
	memcpy(other, model, SIZE);
	fd = open(state_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	change(d, model, 60);
	assert_int_equal(disk_overlay_save(d, fd, &e), 0);
	assert_int_equal(write(fd, "next", 4), 4);
	disk_close(d, NULL);
	len = read_state(fd, &bytes);
	close(fd);

	d = open_disk(DISK_OVERLAY);
	change(d, other, 60);
	cursor_init(&in, bytes, len);
	if (disk_overlay_restore(d, &in, &e) != 0)
		fail_msg("%s", e.text);
	assert_disk_is(d, model);
	assert_int_equal(cursor_left(&in), 4); /* no byte more than it wrote */
	change(d, model, 20);
	assert_disk_is(d, model);
	disk_close(d, NULL);

	/* Cut anywhere, or with a byte that is another: an error or another disk, no crash. */
	for (unsigned int i = 0; i < 300; i++) {
		size_t at = any(i % 2 ? 200 : len - 4);
		uint8_t old = bytes[at];
		int ret;

		d = open_disk(DISK_OVERLAY);
		err_clear(&e);
		bytes[at] = (uint8_t)any(256);
		cursor_init(&in, bytes, i % 3 ? len : at);
		ret = disk_overlay_restore(d, &in, &e);
		assert_int_equal(e.code, -ret);
		bytes[at] = old;
		disk_close(d, NULL);
	}
	cursor_init(&in, bytes, 100);
	d = open_disk(DISK_OVERLAY);
	assert_int_equal(disk_overlay_restore(d, &in, &e), -EINVAL);
	disk_close(d, NULL);
}

/* An image is known again by its contents at some places, and by when it was changed. */
static void image_is_known_again(void **state)
{
	cleanup_free uint8_t *model = make_image(SIZE);
	struct disk *d = open_disk(DISK_OVERLAY);
	struct disk_identity a, b;
	struct err e = { 0 };
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(disk_identify(d, &a, &e), 0);
	assert_int_equal(a.size, SIZE);
	change(d, model, 20); /* the overlay is not the image */
	assert_int_equal(disk_identify(d, &b, &e), 0);
	assert_true(a.size == b.size && a.stamp == b.stamp && a.check == b.check);
	disk_close(d, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		const struct timespec old[2] = { { .tv_nsec = UTIME_OMIT },
						 { .tv_sec = (time_t)(a.stamp / 1000000000u),
						   .tv_nsec = (long)(a.stamp % 1000000000u) } };
		uint8_t byte;

		fd = open(image, O_RDWR);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(pread(fd, &byte, 1, i ? st.st_size / 512 * 512 - 1 : 0), 1);
		byte++;
		assert_int_equal(pwrite(fd, &byte, 1, i ? st.st_size / 512 * 512 - 1 : 0), 1);
		assert_int_equal(futimens(fd, old), 0);
		close(fd);
		d = open_disk(DISK_OVERLAY);
		assert_int_equal(disk_identify(d, &b, &e), 0);
		assert_int_equal(a.stamp, b.stamp);
		assert_int_not_equal(a.check, b.check);
		a = b;
		disk_close(d, NULL);
	}
	/* Changed while it is open. */
	d = open_disk(DISK_OVERLAY);
	fd = open(image, O_RDWR);
	assert_int_equal(futimens(fd, NULL), 0);
	close(fd);
	assert_int_equal(disk_identify(d, &b, &e), -ESTALE);
	disk_close(d, NULL);
}

/* Whether an image with this beginning is taken for this format, and as raw bytes if that is said. */
static void formats_are_recognised(void **state)
{
	static const struct {
		const char *name;
		size_t off;
		const char *magic;
	} formats[] = {
		{ "qcow2", 0, "QFI\xfb" },
		{ "vmdk", 0, "KDMV" },
		{ "vmdk", 0, "COWD" },
		{ "vmdk", 0, "# Disk DescriptorFile\n" },
		{ "vdi", 64, "\x7f\x10\xda\xbe" },
		{ "vhdx", 0, "vhdxfile" },
		{ "vpc", 0, "conectix" },
		{ "qed", 0, "QED" },
	};
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		uint8_t bytes[4096] = { 0 };
		struct disk_config cfg = { .path = image, .format = "raw" };
		struct disk *d = NULL;

		memcpy(bytes + formats[i].off, formats[i].magic, strlen(formats[i].magic));
		write_file(image, bytes, sizeof(bytes));
		assert_string_equal(disk_format_name(bytes, sizeof(bytes)), formats[i].name);
		assert_string_equal(disk_format_find(formats[i].name), formats[i].name);
		assert_int_equal(disk_open(&d, &cfg, &e), 0);
		assert_int_equal(disk_size(d), sizeof(bytes));
		assert_string_equal(disk_format(d), "raw");
		assert_int_equal(disk_close(d, &e), 0);
		cfg.format = i ? "qcow2" : "vdi";
		assert_int_equal(disk_open(&d, &cfg, &e), -EINVAL);
		assert_non_null(strstr(e.text, formats[i].name));
		err_clear(&e);
		/* Whatever is missing, it is never taken for a raw image. */
		assert_true(refused(DISK_OVERLAY, &e) < 0);
		assert_non_null(strstr(e.text, image));
		err_clear(&e);
	}
	assert_null(disk_format_name((const uint8_t *)"QFI", 3));
	assert_null(disk_format_find("raw"));
}

static void compressions_are_recognised(void **state)
{
	static const struct {
		const char *program, *head;
		size_t len;
	} rows[] = {
		{ "gzip", "\x1f\x8b\x08", 3 },
		{ "xz", "\xfd\x37zXZ\0", 6 },
		{ "zstd", "\x28\xb5\x2f\xfd", 4 },
		{ "lz4", "\x04\x22\x4d\x18", 4 },
		{ "bzip2", "BZh91AY&SY", 10 },
		{ "bzip2", "BZh1\x17rE8P\x90", 10 },
		{ NULL, "BZh91AY&S", 9 },
		{ NULL, "BZhx1AY&SY", 10 },
		{ NULL, "BZh9 text ", 10 },
		{ NULL, "\x1f\x8b", 2 },
		{ NULL, "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct disk_compression *how =
			disk_format_compression((const uint8_t *)rows[i].head, rows[i].len);

		if (rows[i].program)
			assert_string_equal(how->program, rows[i].program);
		else
			assert_null(how);
	}
}

static void bad_images_are_refused(void **state)
{
	cleanup_free uint8_t *bytes = make_image(SIZE);
	struct disk_config cfg = { .path = "/nonexistent/disk" };
	struct disk *d = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(disk_open(&d, &cfg, &e), -ENOENT);
	cfg.path = dir;
	assert_true(disk_open(&d, &cfg, &e) < 0);
	cfg.path = "/dev/null";
	err_clear(&e);
	assert_int_equal(disk_open(&d, &cfg, &e), -EINVAL);
	unlink(image);
	assert_int_equal(mkfifo(image, 0600), 0);
	assert_int_equal(refused(DISK_READ_ONLY, &e), -EINVAL);
	unlink(image);
	write_file(image, bytes, 511);
	assert_int_equal(refused(DISK_OVERLAY, &e), -EINVAL);
	write_file(image, bytes, 0);
	assert_int_equal(refused(DISK_OVERLAY, &e), -EINVAL);
	if (truncate(image, (off_t)DISK_MAX_SIZE + 512) == 0) /* else the file system has no such */
		assert_int_equal(refused(DISK_OVERLAY, &e), -EFBIG);

	/* Overlays that are none are not touched. */
	write_file(image, bytes, SIZE);
	write_file(overlay, bytes, 4096);
	assert_int_equal(refused(DISK_OVERLAY_FILE, &e), -EINVAL);
	assert_file_is(overlay, bytes, 4096);
	unlink(overlay);
	assert_int_equal(link(image, overlay), 0);
	assert_int_equal(refused(DISK_OVERLAY_FILE, &e), -EINVAL);
	assert_non_null(strstr(e.text, "own overlay"));
	assert_file_is(image, bytes, SIZE);
}

/* The bitmap of a disk of the largest size takes no memory before something is written. */
static void large_disks_are_cheap(void **state)
{
	uint8_t bytes[DISK_SECTOR], got[DISK_SECTOR * 2];
	struct iovec out = { bytes, sizeof(bytes) }, in = { got, sizeof(got) };
	enum disk_write how[] = { DISK_OVERLAY, DISK_OVERLAY_FILE, DISK_OVERLAY_FILE };
	uint64_t size = UINT64_C(1) << 42, last = size - 2 * DISK_SECTOR;

	(void)state;
	write_file(image, "", 0);
	if (truncate(image, (off_t)size) < 0)
		SKIP("this file system has no files of 4 TiB");
	memset(bytes, 7, sizeof(bytes));
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct disk *d = open_disk(how[i]);

		if (i < 2)
			assert_int_equal(disk_writev(d, last, &out, 1), 0);
		assert_int_equal(disk_readv(d, last, &in, 1), 0);
		assert_memory_equal(got, bytes, sizeof(bytes));
		assert_int_equal(got[DISK_SECTOR], 0);
		assert_true(disk_overlay_bytes(d) < 4 << 20);
		disk_close(d, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(overlays_keep_the_image),
		TEST(overlay_file_is_kept),
		TEST(flushed_is_there_without_close),
		TEST(writable_changes_the_image),
		TEST(read_only_is),
		TEST(ends_are_checked),
		TEST(short_image_is_an_error),
		TEST(memory_is_limited),
		TEST(failed_flushes_stay_failed),
		TEST(a_failed_end_is_told),
		TEST(threads_do_not_disturb_each_other),
		TEST(overlay_is_saved_and_restored),
		TEST(image_is_known_again),
		TEST(formats_are_recognised),
		TEST(compressions_are_recognised),
		TEST(bad_images_are_refused),
		TEST(large_disks_are_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
