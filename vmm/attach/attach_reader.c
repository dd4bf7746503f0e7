/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_reader.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define PATIENCE_NS NSEC_PER_SEC

static int read_process(pid_t pid, uint64_t host, void *dst, size_t len)
{
	struct iovec local = { dst, len };
	struct iovec remote = { (void *)(uintptr_t)host, len };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

static int read_file(int fd, uint64_t offset, void *dst, size_t len)
{
	const ssize_t n = pread(fd, dst, len, (off_t)offset);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

static void *reader_main(void *arg)
{
	struct attach_reader *r = arg;

	pthread_mutex_lock(&r->lock);
	while (r->phase != ATTACH_READER_ENDS) {
		if (r->phase == ATTACH_READER_ASKED) {
			const uint64_t host = r->host;
			const uint64_t offset = r->offset;
			const size_t len = r->len;
			const int fd = r->fd;
			int result;

			pthread_mutex_unlock(&r->lock);
			result = fd < 0 ? read_process(r->pid, host, r->bytes, len)
					: read_file(fd, offset, r->bytes, len);
			pthread_mutex_lock(&r->lock);
			r->result = result;
			if (r->phase == ATTACH_READER_ASKED)
				r->phase = ATTACH_READER_IDLE;
			pthread_cond_broadcast(&r->changed);
			continue;
		}
		pthread_cond_wait(&r->changed, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* The source from which an absent page is read: a file, or the process if fd is -1. */
struct reader_source {
	int fd;
	uint64_t offset;
};

/*
 * Makes the thread read bytes that may have to come from a disk or a network. Returns -ENODATA if
 * that takes too long.
 */
static int read_slowly(struct attach_reader *r, const struct reader_source *from, uint64_t host,
		       void *dst, size_t len)
{
	const uint64_t until = clock_mono_ns() + PATIENCE_NS;
	int ret;

	if (r->stuck)
		return -ENODATA;
	pthread_mutex_lock(&r->lock);
	r->host = host;
	r->len = len;
	r->fd = from->fd;
	r->offset = from->offset;
	r->phase = ATTACH_READER_ASKED;
	pthread_cond_broadcast(&r->changed);
	while (r->phase == ATTACH_READER_ASKED && !r->stuck)
		r->stuck = thread_cond_wait_until(&r->changed, &r->lock, until) == ETIMEDOUT &&
			   r->phase == ATTACH_READER_ASKED;
	ret = r->stuck ? -ENODATA : r->result;
	if (!ret)
		memcpy(dst, r->bytes, len);
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static size_t until_next_page(uint64_t host, size_t len)
{
	const size_t n = PAGE - host % PAGE;

	return n < len ? n : len;
}

/*
 * Reads bytes of an absent page from the file that they are mapped from. Returns -ENOENT if there
 * is none, or if the page has become present.
 */
static int read_backing(struct attach_reader *r, uint64_t host, void *dst, size_t len)
{
	const struct resident_file *f = resident_file_of(&r->resident, host);
	const struct reader_source from = { backing_of(&r->backing, f),
					    f ? f->offset + (host - f->start) : 0 };
	int ret;

	if (from.fd < 0)
		return -ENOENT;
	ret = read_slowly(r, &from, host, dst, len);
	if (ret == -ENODATA)
		return ret;
	/* The guest may have written to the page meanwhile. */
	if (ret || resident_bytes(&r->resident, host, 1))
		return -ENOENT;
	atomic_fetch_add(&r->from_file, backing_note(&r->backing, f, from.offset) ? PAGE : 0);
	return 0;
}

/*
 * Reads bytes of an absent page from the process, which brings the page into its memory, and counts
 * the bytes that came in.
 */
static int read_absent(struct attach_reader *r, bool tables, uint64_t host, void *dst, size_t len)
{
	static const struct reader_source process = { .fd = -1 };
	size_t before, after;
	int ret;

	if (!tables && r->others >= ATTACH_READER_BUDGET)
		return -ENODATA;
	before = resident_around(&r->resident, host);
	ret = read_slowly(r, &process, host, dst, len);
	after = resident_around(&r->resident, host);
	if (after > before) {
		atomic_fetch_add(&r->brought, after - before);
		r->others += tables ? 0 : after - before;
	}
	return ret;
}

static int fetch(struct gmem_remote *remote, uint64_t host, void *dst, size_t len)
{
	struct attach_reader *r = remote->ctx;
	uint8_t *to = dst;

	while (len) {
		size_t n = resident_bytes(&r->resident, host, len);
		int ret;

		if (n) {
			ret = read_process(r->pid, host, to, n);
		} else {
			n = until_next_page(host, len);
			ret = resident_is_served(&r->resident, host) ? -ENODATA
								     : read_backing(r, host, to, n);
			if (ret == -ENOENT)
				ret = read_absent(r, remote->tables, host, to, n);
		}
		if (ret == -ENODATA)
			atomic_fetch_add(&r->absent, 1);
		if (ret)
			return ret;
		host += n;
		to += n;
		len -= n;
	}
	return 0;
}

struct attach_reader *attach_reader_create(struct gmem_remote *out, pid_t pid, struct err *e)
{
	struct attach_reader *r = calloc(1, sizeof(*r));
	int ret;

	if (!r) {
		err_nomem(e);
		return NULL;
	}
	r->pid = pid;
	pthread_mutex_init(&r->lock, NULL);
	thread_cond_init(&r->changed);
	resident_open(&r->resident, pid);
	backing_open(&r->backing, pid, &r->resident);
	gmem_remote_init_by(out, fetch, r);
	ret = thread_start(&r->thread, THREAD_TRACER, reader_main, r);
	if (ret) {
		err_set(e, ret, "cannot start a thread: %s", strerror(ret));
		attach_reader_destroy(r);
		return NULL;
	}
	r->started = true;
	return r;
}

void attach_reader_destroy(struct attach_reader *r)
{
	if (!r || r->stuck)
		return;
	if (r->started) {
		pthread_mutex_lock(&r->lock);
		r->phase = ATTACH_READER_ENDS;
		pthread_cond_broadcast(&r->changed);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	backing_close(&r->backing);
	resident_close(&r->resident);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
