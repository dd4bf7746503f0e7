/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * write_copy: an unfinished perf.data file and its writer, twice.
 */
#include "profile/format/perfdata/write.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (1u << 20)

/* For file systems between which the kernel does not copy. */
static int copy_by_hand(int to, int from, uint64_t off, uint64_t end)
{
	cleanup_free uint8_t *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	while (off < end) {
		size_t want = end - off < CHUNK ? (size_t)(end - off) : CHUNK;
		ssize_t n = pread(from, chunk, want, (off_t)off);
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		ret = file_write_all(to, chunk, (size_t)n);
		if (ret)
			return ret;
		off += (uint64_t)n;
	}
	return 0;
}

/* The first len bytes. `from` is written at its own position, which stays. */
static int copy_bytes(int to, int from, uint64_t len)
{
	off_t in = 0;

	while ((uint64_t)in < len) {
		ssize_t n = copy_file_range(from, &in, to, NULL, len - (uint64_t)in, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return copy_by_hand(to, from, (uint64_t)in, len);
	}
	return 0;
}

static void copy_buf(struct buf *to, const struct buf *from)
{
	buf_init(to);
	if (from->len)
		buf_add(to, from->data, from->len);
	to->failed |= from->failed;
}

static bool copy_tables(struct perfdata_writer *out, const struct perfdata_writer *w)
{
	copy_buf(&out->out, &w->out);
	copy_buf(&out->held, &w->held);
	copy_buf(&out->kept, &w->kept);
	if (w->nidx) {
		out->idx = malloc(w->idx_cap * sizeof(*w->idx));
		if (!out->idx)
			return false;
		memcpy(out->idx, w->idx, w->nidx * sizeof(*w->idx));
		out->nidx = w->nidx;
		out->idx_cap = w->idx_cap;
	}
	for (size_t i = 0; i < w->ids.n; i++) {
		const struct perfdata_build_id *id =
			(const struct perfdata_build_id *)w->ids.item + i;

		if (perfdata_write_build_id(out,
					    id->kernel ? PERFDATA_MISC_KERNEL : PERFDATA_MISC_USER,
					    id->id, id->len, id->name, NULL))
			return false;
	}
	return !out->out.failed && !out->held.failed && !out->kept.failed;
}

int perfdata_writer_copy(struct perfdata_writer *out, const struct perfdata_writer *w,
			 const char *path, struct err *e)
{
	struct perfdata_writer fresh;
	int ret;

	*out = (struct perfdata_writer){ .fd = -1 };
	if (w->failed)
		return err_set(e, -w->failed, "%s: cannot be copied, as writing it has failed: %s",
			       w->path, strerror(-w->failed));
	ret = perfdata_writer_open(&fresh, path, e);
	/* All but what is owned, which copy_tables() fills in. */
	*out = *w;
	out->fd = fresh.fd;
	out->path = fresh.path;
	out->idx = NULL;
	out->ids = TABLE_OF(struct perfdata_build_id, w->ids.equal);
	out->nidx = out->idx_cap = 0;
	buf_init(&out->out);
	buf_init(&out->held);
	buf_init(&out->spare);
	buf_init(&out->kept);
	if (ret)
		return ret;
	ret = copy_bytes(out->fd, w->fd, w->on_disk);
	if (ret)
		return err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret));
	return copy_tables(out, w) ? 0 : err_set(e, ENOMEM, "%s: out of memory", path);
}
