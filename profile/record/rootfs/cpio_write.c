/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/cpio_write.h"

#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FLUSH_LEN (256u << 10)
#define TRAILER "TRAILER!!!"
/* The kernel needs only 4; other programs round an archive up to a block. */
#define ARCHIVE_ALIGN 512u

void cpio_write_begin(struct cpio_writer *w, int fd, uint64_t max)
{
	*w = (struct cpio_writer){ .fd = fd, .max = max };
	buf_init(&w->buf);
}

void cpio_write_deinit(struct cpio_writer *w)
{
	buf_deinit(&w->buf);
}

static int flush(struct cpio_writer *w, struct err *e)
{
	int ret = file_write_all(w->fd, w->buf.data, w->buf.len);

	w->buf.len = 0;
	return ret ? err_set(e, -ret, "cannot write the archive: %s", strerror(-ret)) : 0;
}

/* data NULL: writes zeros. */
static int cpio_write_put(struct cpio_writer *w, const void *data, size_t len, struct err *e)
{
	if (len > w->max - w->len)
		return err_set(e, EFBIG, "the archive has more than %llu MiB",
			       (unsigned long long)(w->max >> 20));
	w->len += len;
	buf_add(&w->buf, data, len);
	if (w->buf.failed)
		return err_nomem(e);
	return w->buf.len >= FLUSH_LEN ? flush(w, e) : 0;
}

static int pad(struct cpio_writer *w, unsigned int to, struct err *e)
{
	return cpio_write_put(w, NULL, (to - w->len % to) % to, e);
}

int cpio_write_entry(struct cpio_writer *w, const struct cpio_entry *x, struct err *e)
{
	size_t name_len = strlen(x->name) + 1;
	char header[CPIO_HEADER_LEN + 1];
	int ret;

	assert(!w->data_left);
	if (name_len - 1 > CPIO_NAME_MAX)
		return err_set(e, ENAMETOOLONG, "%.100s...: a name of %zu bytes, more than %u",
			       x->name, name_len - 1, CPIO_NAME_MAX);
	if (x->size > CPIO_FILE_MAX)
		return err_set(e, EFBIG,
			       "%.200s: %llu MiB, and a file in an initramfs has at most "
			       "4095 MiB",
			       x->name, (unsigned long long)(x->size >> 20));
	/* Magic, inode, mode, uid, gid, links, mtime, size, device (2), rdev (2), name, check. */
	snprintf(header, sizeof(header),
		 "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", x->ino, x->mode,
		 x->uid, x->gid, x->links, x->mtime, (uint32_t)x->size, 0u, 0u, x->major, x->minor,
		 (uint32_t)name_len, 0u);
	if ((ret = pad(w, 4, e)) || (ret = cpio_write_put(w, header, CPIO_HEADER_LEN, e)) ||
	    (ret = cpio_write_put(w, x->name, name_len, e)) || (ret = pad(w, 4, e)))
		return ret;
	w->data_left = x->size;
	return 0;
}

int cpio_write_data(struct cpio_writer *w, const void *data, size_t len, struct err *e)
{
	assert(len <= w->data_left);
	w->data_left -= len;
	return cpio_write_put(w, data, len, e);
}

int cpio_write_end(struct cpio_writer *w, struct err *e)
{
	struct cpio_entry last = { .name = TRAILER, .links = 1 };
	int ret;

	if ((ret = cpio_write_entry(w, &last, e)) || (ret = pad(w, ARCHIVE_ALIGN, e)))
		return ret;
	return flush(w, e);
}
