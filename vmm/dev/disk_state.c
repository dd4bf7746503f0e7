/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_state.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_MAGIC "kvmp-dov"
#define STATE_VERSION 1u
#define STATE_HEADER 32u
#define STATE_RECORD 24u
#define SECTOR 512u
#define PIECE 65536u

enum record { RECORD_END = 0, RECORD_DATA, RECORD_ZEROS };

static int write_record(int fd, enum record kind, uint64_t off, uint64_t len)
{
	uint64_t r[3] = { kind, off, len };

	return file_write_all(fd, r, sizeof(r));
}

static int copy_data(const struct disk_overlay *o, uint64_t off, uint64_t len, int fd)
{
	cleanup_free char *bytes = malloc(PIECE);
	int ret = bytes ? 0 : -ENOMEM;

	while (!ret && len) {
		size_t want = len < PIECE ? (size_t)len : PIECE;
		ssize_t n = pread(o->fd, bytes, want, (off_t)(o->data + off));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		ret = file_write_all(fd, bytes, (size_t)n);
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return ret;
}

/* Saves [off, off + len) of the overlay: data as data, holes of its file as zeros. */
static int save_run(const struct disk_overlay *o, uint64_t off, uint64_t len, int fd)
{
	uint64_t end = off + len;
	int ret = 0;

	while (!ret && off < end) {
		off_t data = lseek(o->fd, (off_t)(o->data + off), SEEK_DATA), hole;
		uint64_t from, to;

		if (data < 0 && errno != ENXIO)
			return -errno;
		/* Holes may end anywhere, but records end at sectors. */
		from = data < 0 ? end : ((uint64_t)data - o->data) / SECTOR * SECTOR;
		if (from > end)
			from = end;
		if (from > off)
			ret = write_record(fd, RECORD_ZEROS, off, from - off);
		if (ret || from == end)
			break;
		hole = lseek(o->fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		to = ((uint64_t)hole - o->data + SECTOR - 1) / SECTOR * SECTOR;
		if (to > end)
			to = end;
		ret = write_record(fd, RECORD_DATA, from, to - from);
		if (!ret)
			ret = copy_data(o, from, to - from, fd);
		off = to;
	}
	return ret;
}

int disk_state_save(const struct disk_overlay *o, const char *name, uint64_t size, uint64_t stamp,
		    int fd, struct err *e)
{
	struct buf b;
	int ret;

	buf_init(&b);
	buf_add(&b, STATE_MAGIC, 8);
	buf_u32(&b, STATE_VERSION);
	buf_u32(&b, 0);
	buf_u64(&b, size);
	buf_u64(&b, stamp);
	ret = b.failed ? -ENOMEM : file_write_all(fd, b.data, b.len);
	buf_deinit(&b);
	for (uint64_t sector = 0; !ret && o && sector < o->sectors;) {
		bool in;
		uint64_t n = disk_overlay_run(o, sector, o->sectors - sector, &in);

		if (in)
			ret = save_run(o, sector * SECTOR, n * SECTOR, fd);
		sector += n;
	}
	if (!ret)
		ret = write_record(fd, RECORD_END, 0, 0);
	if (ret)
		return err_set(e, -ret, "%s: cannot save what was written to the disk: %s", name,
			       strerror(-ret));
	return 0;
}

static int ends_early(const char *name, struct err *e)
{
	return err_set(e, EINVAL, "%s: the saved disk ends early", name);
}

static int check_header(struct cursor *c, const char *name, uint64_t size, uint64_t stamp,
			struct err *e)
{
	const uint8_t *magic = cursor_bytes(c, 8);
	uint32_t version = cursor_u32(c), zero = cursor_u32(c);
	uint64_t was = cursor_u64(c), then = cursor_u64(c);

	if (c->bad)
		return ends_early(name, e);
	if (memcmp(magic, STATE_MAGIC, 8) != 0)
		return err_set(e, EINVAL, "%s: the saved disk does not begin like one", name);
	if (version != STATE_VERSION || zero)
		return err_set(e, EINVAL, "%s: the saved disk is of version %u, expected %u", name,
			       version, STATE_VERSION);
	if (was != size)
		return err_set(e, EINVAL,
			       "%s: saved with an image of %llu bytes, this one has %llu", name,
			       (unsigned long long)was, (unsigned long long)size);
	if (then != stamp)
		return err_set(e, ESTALE, "%s: the image was changed since the snapshot was saved",
			       name);
	return 0;
}

static int restore_data(struct disk_overlay *o, uint64_t off, uint64_t len, struct cursor *c,
			const char *name, struct err *e)
{
	const uint8_t *p = cursor_bytes(c, len);
	uint64_t taken;
	int ret = 0;

	if (!p)
		return ends_early(name, e);
	if (disk_overlay_begin(o, off, len, &taken) < 0)
		return err_set(e, ENOSPC,
			       "%s: what the saved machine wrote over it takes more memory than "
			       "--overlay-max allows",
			       name);
	while (len && !ret) {
		ssize_t n = pwrite(o->fd, p, (size_t)len, (off_t)(o->data + off));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ret = err_set(e, n ? errno : EIO, "%s: cannot write the overlay: %s", name,
				      strerror(n ? errno : EIO));
			break;
		}
		p += n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	disk_overlay_end(o, taken);
	return ret;
}

int disk_state_restore(struct disk_overlay *o, const char *name, uint64_t size, uint64_t stamp,
		       struct cursor *in, struct err *e)
{
	uint64_t at = 0;
	int ret = check_header(in, name, size, stamp, e);

	if (!ret && o) {
		ret = disk_overlay_clear(o);
		if (ret)
			return err_set(e, -ret, "%s: cannot empty the overlay: %s", name,
				       strerror(-ret));
	}
	while (!ret) {
		uint64_t kind = cursor_u64(in), off = cursor_u64(in), len = cursor_u64(in);

		if (in->bad)
			return ends_early(name, e);
		if (kind == RECORD_END && !off && !len)
			break;
		if ((kind != RECORD_DATA && kind != RECORD_ZEROS) || off % SECTOR || len % SECTOR ||
		    !len || off < at || off > size || len > size - off)
			return err_set(e, EINVAL,
				       "%s: the saved disk has a record that can't be: kind %llu, "
				       "%llu bytes at %llu",
				       name, (unsigned long long)kind, (unsigned long long)len,
				       (unsigned long long)off);
		if (!o)
			return err_set(e, EINVAL,
				       "%s: was written to when saved, but is read-only now", name);
		at = off + len;
		/* Zeros need no write, because the overlay was emptied. */
		if (kind == RECORD_DATA)
			ret = restore_data(o, off, len, in, name, e);
		if (!ret)
			disk_overlay_add(o, off / SECTOR, len / SECTOR);
	}
	return ret;
}
