/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_nbd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/library.h"

#include <errno.h>
#include <fcntl.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The functions of libnbd that are used. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(nbd_aio_command_completed) \
	X(nbd_aio_connect_socket) \
	X(nbd_aio_is_closed) \
	X(nbd_aio_is_dead) \
	X(nbd_aio_is_ready) \
	X(nbd_aio_pread) \
	X(nbd_close) \
	X(nbd_create) \
	X(nbd_get_errno) \
	X(nbd_get_error) \
	X(nbd_get_size) \
	X(nbd_poll)
/* clang-format on */

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };
/* Written by the main thread before a disk exists. */
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} lib;

/* Bytes that are read at once if the guest reads in order, and requests that are in flight. */
#define AHEAD (1u << 20)
#define PIECE (256u << 10)
#define PIECES (AHEAD / PIECE)
/* A thread that waits notices disk_nbd_stop() after this time. */
#define STEP_MS 100

struct disk_nbd {
	struct disk_program program;
	struct nbd_handle *nbd;
	uint64_t size;
	atomic_bool stop;
	pthread_mutex_t lock; /* covers what follows, and all calls for nbd */
	int failed;	      /* -errno after which the server is not asked again */
	bool stopped;	      /* ... because of disk_nbd_stop() */
	uint64_t next;	      /* the byte behind the last read */
	/* `have` bytes of the disk from `at` on, which do not change. */
	uint64_t at;
	size_t have;
	uint8_t *ahead;
};

/* -- the server ------------------------------------------------------------------------------ */

/*
 * Makes a listening socket and connects to it. Its name is in a directory of ours and is removed
 * at once, so no other process can connect. Stores both ends. Returns 0 or -errno.
 */
static int make_sockets(int *listens, int *ours)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char *tmp = getenv("TMPDIR");
	char dir[sizeof(at.sun_path) - 4];
	int ret = 0;

	/* A name of a socket is short. */
	if (!tmp || *tmp != '/' || strlen(tmp) > sizeof(dir) - 32)
		tmp = "/tmp";
	snprintf(dir, sizeof(dir), "%s/kvmprof-XXXXXX", tmp);
	if (!mkdtemp(dir))
		return -errno;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
	*listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*listens < 0 || *ours < 0 || bind(*listens, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(*listens, 1) < 0 || connect(*ours, (struct sockaddr *)&at, sizeof(at)) < 0)
		ret = -errno;
	unlink(at.sun_path);
	rmdir(dir);
	return ret;
}

/* How qemu-nbd's messages begin (block.c); the second has no reason behind it. */
#define FAILED_OPEN "Failed to blk_new_open '"
#define UNKNOWN_OPEN "Could not open '/proc/self/fd/"

/* Records why the server does not serve: what it reported, if it reported something. */
static int server_failed(struct disk_nbd *n, const char *path, const char *why, struct err *e)
{
	char said[320];
	const char *text = said;

	/* It writes the line before it closes its socket. */
	disk_program_said(&n->program, said, sizeof(said));
	if (!strncmp(text, "qemu-nbd: ", 10))
		text += 10;
	/* Its reason stands behind the options that it repeats. */
	if (!strncmp(text, FAILED_OPEN, strlen(FAILED_OPEN)) && strstr(text, "': "))
		text = strstr(text, "': ") + 3;
	if (!strncmp(text, UNKNOWN_OPEN, strlen(UNKNOWN_OPEN)))
		text = "its contents are damaged, or are of a kind that QEMU does not read";
	if (*text)
		return err_set(e, EINVAL, "%s: qemu-nbd cannot read this image: %s", path, text);
	return err_set(e, EIO, "%s: qemu-nbd does not serve this image: %s", path, why);
}

/* Waits for the end of the handshake. */
static int wait_ready(struct disk_nbd *n, const char *path, struct err *e)
{
	uint64_t end = clock_mono_ns() + HELPER_BEGIN_MS * UINT64_C(1000000);

	while (lib.nbd_aio_is_ready(n->nbd) <= 0) {
		uint64_t now = clock_mono_ns();

		if (lib.nbd_aio_is_dead(n->nbd) || lib.nbd_aio_is_closed(n->nbd))
			return server_failed(n, path, "it ended the connection", e);
		if (now >= end)
			return server_failed(n, path, "it does not answer", e);
		if (lib.nbd_poll(n->nbd, (int)((end - now) / 1000000) + 1) < 0)
			return server_failed(n, path, lib.nbd_get_error(), e);
	}
	return 0;
}

static int load(const char *path, struct err *e)
{
	char what[300];
	const struct library want = {
		.soname = "libnbd.so.0",
		.what = what,
		.hint = "install libnbd0",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	snprintf(what, sizeof(what), "%s: only raw images are read without libnbd", path);
	return library_load(&want, (void **)&lib, e);
}

static int start_server(struct disk_nbd *n, const struct disk_nbd_image *image,
			const struct disk_confine *confine, struct err *e)
{
	char path[PATH_MAX];
	const char *argv[] = { path, "--read-only", "--image-opts", image->options, NULL };
	cleanup_close int listens = -1, ours = -1;
	struct disk_program_work work = { .argv = argv,
					  .in = -1,
					  .out = -1,
					  .file = image->file,
					  .nfiles = image->nfiles,
					  .confine = confine };
	int ret;

	if (disk_program_find("qemu-nbd", path))
		return err_set(e, ENOENT,
			       "%s: only raw images are read without qemu-nbd: install qemu-utils",
			       image->path);
	ret = make_sockets(&listens, &ours);
	if (ret)
		return err_set(e, -ret, "%s: a socket for qemu-nbd: %s", image->path,
			       strerror(-ret));
	work.socket = listens;
	ret = disk_program_start(&n->program, &work, e);
	if (ret)
		return ret;
	/* The server notices the end of the connection only if nobody else has this end. */
	if (lib.nbd_aio_connect_socket(n->nbd, ours) < 0)
		return server_failed(n, image->path, lib.nbd_get_error(), e);
	cleanup_take_fd(&ours); /* it belongs to the handle */
	return 0;
}

int disk_nbd_open(struct disk_nbd **out, const struct disk_nbd_image *image,
		  const struct disk_confine *confine, struct err *e)
{
	struct disk_nbd *n = calloc(1, sizeof(*n));
	int64_t size;
	int ret;

	if (!n)
		return err_nomem(e);
	disk_program_init(&n->program);
	pthread_mutex_init(&n->lock, NULL);
	n->ahead = malloc(AHEAD);
	ret = n->ahead ? load(image->path, e) : err_nomem(e);
	n->nbd = ret ? NULL : lib.nbd_create();
	if (!ret && !n->nbd)
		ret = err_nomem(e);
	ret = ret ? ret : start_server(n, image, confine, e);
	ret = ret ? ret : wait_ready(n, image->path, e);
	if (!ret) {
		size = lib.nbd_get_size(n->nbd);
		if (size < 0)
			ret = server_failed(n, image->path, lib.nbd_get_error(), e);
		n->size = (uint64_t)size;
	}
	if (ret)
		disk_nbd_close(n);
	else
		*out = n;
	return ret;
}

void disk_nbd_close(struct disk_nbd *n)
{
	if (!n)
		return;
	if (n->nbd)
		lib.nbd_close(n->nbd);
	disk_program_end(&n->program);
	pthread_mutex_destroy(&n->lock);
	free(n->ahead);
	free(n);
}

void disk_nbd_stop(struct disk_nbd *n)
{
	atomic_store(&n->stop, true);
}

bool disk_nbd_failed(struct disk_nbd *n)
{
	return n->failed && !n->stopped;
}

uint64_t disk_nbd_size(const struct disk_nbd *n)
{
	return n->size;
}

/* -- reads ----------------------------------------------------------------------------------- */

/* Waits for the replies to k requests. Returns 0 or -errno; n->failed is set if there is none. */
static int wait_for(struct disk_nbd *n, const int64_t *cookie, unsigned int k)
{
	uint64_t end = clock_mono_ns() + DISK_NBD_WAIT_MS * UINT64_C(1000000);
	unsigned int done = 0;
	int ret = 0;

	while (done < k) {
		uint64_t now;
		int got = lib.nbd_aio_command_completed(n->nbd, (uint64_t)cookie[done]);

		if (got > 0) {
			done++;
			continue;
		}
		if (got < 0) {
			int code = lib.nbd_get_errno();

			ret = code ? -code : -EIO;
			done++;
			if (lib.nbd_aio_is_dead(n->nbd) || lib.nbd_aio_is_closed(n->nbd))
				return n->failed = -EIO;
			continue;
		}
		/* libnbd may still write to the buffer, which is freed after nbd_close() only. */
		n->stopped = atomic_load(&n->stop);
		if (n->stopped || lib.nbd_poll(n->nbd, STEP_MS) < 0)
			return n->failed = -EIO;
		now = clock_mono_ns();
		if (now >= end)
			return n->failed = -EIO;
	}
	return ret;
}

/* Fills n->ahead from off on with len bytes, at most AHEAD. */
static int fetch(struct disk_nbd *n, uint64_t off, size_t len)
{
	int64_t cookie[PIECES];
	unsigned int k = 0;
	int ret;

	n->have = 0;
	for (size_t at = 0; at < len; at += PIECE) {
		size_t some = len - at < PIECE ? len - at : PIECE;

		cookie[k] = lib.nbd_aio_pread(n->nbd, n->ahead + at, some, off + at,
					      NBD_NULL_COMPLETION, 0);
		if (cookie[k++] < 0)
			return n->failed = -EIO;
	}
	ret = wait_for(n, cookie, k);
	if (!ret) {
		n->at = off;
		n->have = len;
	}
	return ret;
}

int disk_nbd_read(struct disk_nbd *n, uint64_t off, void *dst, size_t len, size_t more)
{
	uint8_t *to = dst;
	int ret;

	pthread_mutex_lock(&n->lock);
	ret = atomic_load(&n->stop) ? -EIO : n->failed;
	while (!ret && len) {
		size_t some = more < AHEAD ? len + more : AHEAD;

		if (off >= n->at && off - n->at < n->have) {
			some = n->have - (size_t)(off - n->at);
			some = some < len ? some : len;
			memcpy(to, n->ahead + (off - n->at), some);
			to += some;
			off += some;
			len -= some;
			n->next = off;
			continue;
		}
		if (off == n->next || some > AHEAD) /* in order: read ahead */
			some = AHEAD;
		if (some > n->size - off)
			some = (size_t)(n->size - off);
		ret = fetch(n, off, some);
	}
	pthread_mutex_unlock(&n->lock);
	return ret;
}
