/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/end.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WALK_CHUNK (1u << 20)
/* Bytes removed to make room for the features: their size plus this, doubled after each failure. */
#define CUT_MORE 8192u
#define CUT_TRIES 12

/* -- the whole file ----------------------------------------------------------------- */

static int put_final_header(struct perfdata_writer *w, uint64_t data_end, const uint64_t bits[4],
			    struct err *e)
{
	struct buf head;
	int ret = 0;

	buf_init(&head);
	perfdata_put_header(&head, w, data_end, bits);
	if (head.failed)
		ret = perfdata_no_memory(w, e);
	else if (lseek(w->fd, 0, SEEK_SET) < 0)
		ret = perfdata_fail(w, errno, e);
	else if ((ret = file_write_all(w->fd, head.data, head.len)) != 0)
		ret = perfdata_fail(w, -ret, e);
	buf_deinit(&head);
	return ret;
}

/* Some file systems report a full disk only here. */
static int sync_file(struct perfdata_writer *w, struct err *e)
{
	int ret;

	do
		ret = fsync(w->fd);
	while (ret < 0 && errno == EINTR);
	/* Some file systems do not support it. */
	if (ret < 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
		return perfdata_fail(w, errno, e);
	return 0;
}

/* Appends the totals in the form of format.h; nothing if there are none. */
static void put_totals(struct buf *b, const struct perfdata_writer *w, const char *json)
{
	size_t start = b->len, len;

	buf_add(b, PERFDATA_TOTALS_MAGIC, 8);
	buf_u64(b, 0);
	perfdata_put_totals(b, w, json);
	if (b->failed)
		return;
	len = b->len - start - PERFDATA_TOTALS_HEADER;
	if (len) {
		buf_put64(b, start + 8, len);
		buf_add(b, NULL, -len & 7);
	} else {
		b->len = start;
	}
}

/*
 * Writes the totals and features after the records, and the final header. The records are in the
 * file already.
 */
static int put_features(struct perfdata_writer *w, const struct perfdata_about *about,
			struct err *e)
{
	uint64_t bits[4] = { 0 }, data_end;
	struct buf blobs, index, totals;
	int ret;

	ret = perfdata_push(w, e);
	if (ret)
		return ret;
	data_end = w->pos;
	buf_init(&blobs);
	buf_init(&index);
	buf_init(&totals);
	perfdata_put_features(&blobs, &index, bits, w, about);
	put_totals(&totals, w, about->json);
	/* Offsets are absolute. */
	for (size_t i = 0; !index.failed && i < index.len; i += 16) {
		uint64_t off;

		memcpy(&off, index.data + i, 8);
		buf_put64(&index, i, data_end + index.len + totals.len + off);
	}
	buf_add(&w->out, index.data, index.len);
	buf_add(&w->out, totals.data, totals.len);
	buf_add(&w->out, blobs.data, blobs.len);
	w->out.failed |= index.failed || totals.failed || blobs.failed;
	buf_deinit(&blobs);
	buf_deinit(&index);
	buf_deinit(&totals);
	/* Do not use perfdata_push(): on_disk counts records only. */
	if (w->out.failed)
		return perfdata_no_memory(w, e);
	ret = file_write_all(w->fd, w->out.data, w->out.len);
	if (ret)
		return perfdata_fail(w, -ret, e);
	w->out.len = 0;
	ret = put_final_header(w, data_end, bits, e);
	return ret ? ret : sync_file(w, e);
}

static int put_all(struct perfdata_writer *w, const struct perfdata_about *about, struct err *e)
{
	int ret = perfdata_write_drain(w, e);

	w->kept_samples = w->samples;
	return ret ? ret : put_features(w, about, e);
}

/* -- what fits ---------------------------------------------------------------------- */

/* The records up to `end`. */
struct kept {
	uint64_t end;
	uint64_t samples, first_ns, last_ns;
};

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void count_sample(const struct perfdata_writer *w, const uint8_t *fields, struct kept *k)
{
	uint64_t t;

	if (perfdata_has_identifier(w)) {
		if (word_at(fields) == PERFDATA_EVENT_ID + w->marker_event)
			return;
		fields += 8;
	}
	t = word_at(fields + 16);
	k->samples++;
	if (!k->first_ns || t < k->first_ns)
		k->first_ns = t;
	if (t > k->last_ns)
		k->last_ns = t;
}

/*
 * Walks the whole records of the file that end at or before limit. Returns 0, or -errno if the file
 * cannot be read.
 */
static int end_walk(const struct perfdata_writer *w, uint64_t limit, struct kept *k)
{
	cleanup_free uint8_t *chunk = malloc(WALK_CHUNK);
	uint64_t at = 0;
	size_t have = 0;

	*k = (struct kept){ .end = w->data_off };
	if (!chunk)
		return -ENOMEM;
	while (k->end + PERFDATA_RECORD_HEADER <= limit) {
		const uint8_t *r;
		uint32_t type;
		uint16_t size;

		if (k->end < at || k->end + PERFDATA_RECORD_MAX > at + have) {
			size_t want =
				limit - k->end < WALK_CHUNK ? (size_t)(limit - k->end) : WALK_CHUNK;
			ssize_t n = pread(w->fd, chunk, want, (off_t)k->end);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
			at = k->end;
			have = (size_t)n;
		}
		if (k->end + PERFDATA_RECORD_HEADER > at + have)
			return 0;
		r = chunk + (k->end - at);
		memcpy(&type, r, sizeof(type));
		memcpy(&size, r + 6, sizeof(size));
		if (size < PERFDATA_RECORD_HEADER || k->end + size > limit)
			return 0;
		if (type == PERFDATA_RECORD_SAMPLE && size >= 48)
			count_sample(w, r + PERFDATA_RECORD_HEADER, k);
		k->end += size;
	}
	return 0;
}

/* Truncates the file to the records up to k->end. */
static int cut_back(struct perfdata_writer *w, const struct kept *k)
{
	static const uint64_t none[4];

	w->failed = 0;
	w->out.len = 0;
	w->out.failed = false;
	w->nidx = 0;
	w->held.len = 0;
	if (ftruncate(w->fd, (off_t)k->end) < 0)
		return -errno;
	w->on_disk = w->pos = k->end;
	w->kept_samples = k->samples;
	w->first_ns = k->first_ns;
	w->last_ns = k->last_ns;
	/* Write a header as after a flush: if nothing else can be written, the file is readable. */
	if (put_final_header(w, k->end, none, NULL))
		return w->failed;
	w->readable = true;
	return lseek(w->fd, (off_t)k->end, SEEK_SET) < 0 ? -errno : 0;
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/* Truncates the file until the features fit; in the worst case it has none. */
static void salvage(struct perfdata_writer *w, const struct perfdata_about *about)
{
	uint64_t all = w->samples, cut = 0, early = w->early_off + PERFDATA_EARLY;
	struct kept k;
	int ret;

	/* Without the kernel's map the file has nothing to show. */
	if (!w->early_off || w->on_disk < early || end_walk(w, w->on_disk, &k) || cut_back(w, &k))
		return;
	for (int i = 0; i < CUT_TRIES; i++) {
		if (all > k.samples) {
			perfdata_put_lost(&w->out, w, 0, all - k.samples, k.last_ns);
			w->pos += w->out.len;
		}
		ret = put_features(w, about, NULL);
		if (!ret)
			return;
		cut = cut ? cut * 2 : w->out.len + CUT_MORE;
		if (cut_back(w, &k) || !is_full(ret) || k.end < early + cut ||
		    end_walk(w, k.end - cut, &k) || k.end < early || cut_back(w, &k))
			return;
	}
}

/* -- the end ------------------------------------------------------------------------ */

void perfdata_put_totals(struct buf *b, const struct perfdata_writer *w, const char *json)
{
	size_t len = json ? strlen(json) : 0;
	struct json_writer j;

	if (!w->cause || !len || json[len - 1] != '}') {
		buf_add(b, json, len);
		return;
	}
	buf_add(b, json, len - 1);
	json_begin_members(&j, b);
	json_put_object(&j, "profile", "complete", json_of_bool(false), "samples", w->kept_samples,
			"missing", w->samples - w->kept_samples, "error", strerror(-w->cause));
	buf_u8(b, '}');
}

int perfdata_write_end(struct perfdata_writer *w, const struct perfdata_about *about, struct err *e)
{
	struct err first = { 0 };
	int ret = put_all(w, about, &first);
	int fd;

	w->readable = !ret;
	if (ret) {
		w->cause = ret;
		w->kept_samples = 0;
		salvage(w, about);
	}
	fd = cleanup_take_fd(&w->fd);
	if (close(fd) < 0 && !ret)
		ret = w->cause = perfdata_fail(w, errno, &first);
	return ret ? err_set(e, -ret, "%s", first.text) : 0;
}
