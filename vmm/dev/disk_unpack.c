/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_unpack.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "vmm/dev/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (64u << 10) /* blocks of zeros of this size are left out */
#define PIPE_SIZE (1 << 20)
#define END_MS 5000 /* the time that a program has between its last byte and its end */

/* Starts the program; *pipe_end has what it produces. */
static int unpack_start(struct disk_program *p, const struct disk_unpack *from, int *pipe_end,
			struct err *e)
{
	char path[PATH_MAX];
	const char *argv[] = { path, "-dc", NULL };
	struct disk_program_work work = { .argv = argv, .socket = -1, .confine = from->confine };
	char again[40];
	cleanup_close int in = -1;
	int pair[2], ret;

	disk_program_init(p);
	if (disk_program_find(from->how->program, path))
		return err_set(e, ENOENT, "%s: %s is needed to unpack this image: install %s",
			       from->path, from->how->program, from->how->package);
	/* The program gets an offset of its own. */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", from->fd);
	in = open(again, O_RDONLY | O_CLOEXEC);
	if (in < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_set(e, errno, "%s: cannot be unpacked: %s", from->path, strerror(errno));
	fcntl(pair[0], F_SETPIPE_SZ, PIPE_SIZE);
	work.in = in;
	work.out = pair[1];
	ret = disk_program_start(p, &work, e);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	else
		*pipe_end = pair[0];
	return ret;
}

/* Reads until cap bytes or the end. Returns the number of bytes or -errno. */
static ssize_t read_block(int fd, uint8_t *dst, size_t cap)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;

	while (have < cap) {
		int ready = poll(&p, 1, (int)DISK_UNPACK_WAIT_MS);
		ssize_t n;

		if (ready == 0)
			return -ETIMEDOUT;
		n = ready < 0 ? -1 : read(fd, dst + have, cap - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return !n || (!p[0] && memcmp(p, p + 1, n - 1) == 0);
}

/* Returns 0 if the program has ended without an error. */
static int unpack_end(struct disk_program *p, const struct disk_unpack *from, struct err *e)
{
	int status = disk_program_wait(p, END_MS);
	char said[300];

	if (!status)
		return 0;
	disk_program_said(p, said, sizeof(said));
	return err_set(e, EINVAL, "%s: the image cannot be unpacked: %s%s%s", from->path,
		       from->how->program, *said ? " reports: " : " failed", said);
}

static const char *unpack_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/var/tmp";
}

static int unpack_copy(int to, int pipe_end, const struct disk_unpack *from, struct err *e)
{
	cleanup_free uint8_t *block = malloc(BLOCK);
	uint64_t at = 0;
	ssize_t n;

	if (!block)
		return err_nomem(e);
	while ((n = read_block(pipe_end, block, BLOCK)) > 0) {
		if (at > DISK_MAX_SIZE)
			return err_set(e, EFBIG,
				       "%s: it has more than %llu bytes when it is unpacked",
				       from->path, (unsigned long long)DISK_MAX_SIZE);
		if (!is_zero(block, (size_t)n) && pwrite(to, block, (size_t)n, (off_t)at) != n)
			return err_set(e, errno ? errno : ENOSPC,
				       "%s: no room to unpack it in %s: %s; TMPDIR names another "
				       "directory",
				       from->path, unpack_dir(), strerror(errno ? errno : ENOSPC));
		at += (uint64_t)n;
	}
	if (n < 0)
		return err_set(e, (int)-n, "%s: cannot be unpacked: %s", from->path,
			       n == -ETIMEDOUT ? "the program does not answer" : strerror((int)-n));
	return ftruncate(to, (off_t)at) < 0 ? err_set(e, errno, "%s: cannot be unpacked: %s",
						      from->path, strerror(errno))
					    : 0;
}

int disk_unpack_file(const char *path, struct err *e)
{
	int fd = open(unpack_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0444);

	return fd >= 0 ? fd
		       : err_set(e, errno, "%s: no file for its bytes in %s: %s", path,
				 unpack_dir(), strerror(errno));
}

int disk_unpack(int *out, const struct disk_unpack *from, struct err *e)
{
	cleanup_close int to = disk_unpack_file(from->path, e);
	cleanup_close int pipe_end = -1;
	struct disk_program p;
	int ret;

	if (to < 0)
		return to;
	ret = unpack_start(&p, from, &pipe_end, e);
	if (!ret)
		ret = unpack_copy(to, pipe_end, from, e);
	if (!ret)
		ret = unpack_end(&p, from, e);
	disk_program_end(&p);
	if (!ret)
		*out = cleanup_take_fd(&to);
	return ret;
}

ssize_t disk_unpack_head(const struct disk_unpack *from, void *dst, size_t cap, struct err *e)
{
	cleanup_close int pipe_end = -1;
	struct disk_program p;
	ssize_t n = unpack_start(&p, from, &pipe_end, e);

	if (!n) {
		n = read_block(pipe_end, dst, cap);
		if (n < 0)
			err_set(e, (int)-n, "%s: cannot be unpacked: %s", from->path,
				strerror((int)-n));
		else if ((size_t)n < cap && unpack_end(&p, from, e))
			n = -EINVAL;
	}
	disk_program_end(&p);
	return n;
}
