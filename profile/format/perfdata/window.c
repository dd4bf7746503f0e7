/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/window.h"

#include "base/array.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_CHUNK (1u << 20)

int perfdata_fail(struct perfdata_writer *w, int err, struct err *e)
{
	if (!w->failed)
		w->failed = -err;
	return err_set(e, err, "%s: cannot write: %s", w->path, strerror(err));
}

int perfdata_no_memory(struct perfdata_writer *w, struct err *e)
{
	w->failed = w->failed ? w->failed : -ENOMEM;
	return err_set(e, ENOMEM, "%s: out of memory", w->path);
}

int perfdata_push(struct perfdata_writer *w, struct err *e)
{
	int ret;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	if (w->out.failed)
		return perfdata_no_memory(w, e);
	ret = file_write_all(w->fd, w->out.data, w->out.len);
	if (ret)
		return perfdata_fail(w, -ret, e);
	w->on_disk += w->out.len;
	w->out.len = 0;
	return 0;
}

/* Writes the size of the records to the header, so that a reader finds all that are in the file. */
static int put_data_size(struct perfdata_writer *w, struct err *e)
{
	uint64_t size = w->on_disk - w->data_off;
	ssize_t n;

	if (!w->data_off || w->on_disk < w->data_off || size == w->told_size)
		return 0;
	do
		n = pwrite(w->fd, &size, sizeof(size), PERFDATA_HDR_DATA + 8);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(size))
		return perfdata_fail(w, n < 0 ? errno : EIO, e);
	w->told_size = size;
	return 0;
}

static int compare_held(const void *a, const void *b)
{
	const struct perfdata_held *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	/* Keep the order of arrival: a COMM stays before samples of the same time. */
	return x->off < y->off ? -1 : x->off > y->off;
}

static void sort_held(struct perfdata_writer *w)
{
	bool sorted = true;

	for (size_t i = 1; sorted && i < w->nidx; i++)
		sorted = w->idx[i - 1].time_ns <= w->idx[i].time_ns;
	if (!sorted)
		qsort(w->idx, w->nidx, sizeof(*w->idx), compare_held);
}

/* Writes the n oldest held records. The index is sorted. */
static int write_oldest(struct perfdata_writer *w, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct perfdata_held *h = &w->idx[i];

		/* perf processes records with time 0 at once, regardless of rounds. */
		if (h->time_ns && h->time_ns < w->prev_round_ns) {
			w->late++;
			w->rounds_off = true;
		}
		if (h->time_ns > w->max_ns)
			w->max_ns = h->time_ns;
		buf_add(&w->out, w->held.data + h->off, h->len);
		w->pos += h->len;
		w->since_round += h->len;
		if (w->out.len >= OUT_CHUNK || w->out.failed) {
			int ret = perfdata_push(w, e);

			if (ret)
				return ret;
		}
	}
	return 0;
}

static void finish_round(struct perfdata_writer *w)
{
	if (w->rounds_off)
		return;
	buf_u32(&w->out, PERFDATA_RECORD_FINISHED_ROUND);
	buf_u16(&w->out, 0);
	buf_u16(&w->out, PERFDATA_RECORD_HEADER);
	w->pos += PERFDATA_RECORD_HEADER;
	w->prev_round_ns = w->round_ns;
	w->round_ns = w->max_ns;
	w->since_round = 0;
}

/* Keeps the records after the n oldest, which are written. */
static int keep_rest(struct perfdata_writer *w, size_t n, struct err *e)
{
	struct buf rest = w->spare;
	size_t len = 0;

	for (size_t i = n; i < w->nidx; i++)
		len += w->idx[i].len;
	if (!len) {
		w->nidx = 0;
		w->held.len = 0;
		return 0;
	}
	/* Swap the two buffers: freed memory would be faulted in again, page by page. */
	rest.len = 0;
	if (!buf_reserve(&rest, len)) {
		buf_init(&w->spare);
		buf_deinit(&rest);
		return perfdata_no_memory(w, e);
	}
	for (size_t i = n; i < w->nidx; i++) {
		struct perfdata_held h = w->idx[i];

		w->idx[i - n] = h;
		w->idx[i - n].off = (uint32_t)rest.len;
		buf_add(&rest, w->held.data + h.off, h.len);
	}
	w->nidx -= n;
	w->spare = w->held;
	w->held = rest;
	return 0;
}

/*
 * Writes the n oldest records of the sorted window. A round ends when its bytes and the held ones
 * make up a window: a record may be late by that much, however often the window is written.
 */
static int drain_oldest(struct perfdata_writer *w, size_t n, struct err *e)
{
	bool round = w->since_round + w->held.len >= PERFDATA_WINDOW;
	int ret = write_oldest(w, n, e);

	if (ret)
		return ret;
	if (round)
		finish_round(w);
	return keep_rest(w, n, e);
}

int perfdata_hold(struct perfdata_writer *w, size_t start, uint64_t time_ns, struct err *e)
{
	if (w->held.failed)
		return perfdata_no_memory(w, e);
	if (ARRAY_ROOM(w->idx, w->nidx, w->idx_cap))
		return perfdata_no_memory(w, e);
	w->idx[w->nidx++] = (struct perfdata_held){
		.time_ns = time_ns,
		.off = (uint32_t)start,
		.len = (uint32_t)(w->held.len - start),
	};
	if (w->held.len < PERFDATA_WINDOW)
		return 0;
	sort_held(w);
	return drain_oldest(w, (w->nidx + 1) / 2, e);
}

int perfdata_write_flush(struct perfdata_writer *w, uint64_t before_ns, struct err *e)
{
	size_t n = 0;
	int ret;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	sort_held(w);
	while (n < w->nidx && w->idx[n].time_ns < before_ns)
		n++;
	if (n) {
		ret = drain_oldest(w, n, e);
		if (ret)
			return ret;
	}
	ret = perfdata_push(w, e);
	return ret ? ret : put_data_size(w, e);
}

int perfdata_write_drain(struct perfdata_writer *w, struct err *e)
{
	int ret;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	if (w->drained && !w->nidx)
		return 0;
	w->drained = true;
	sort_held(w);
	ret = drain_oldest(w, w->nidx, e);
	if (ret)
		return ret;
	finish_round(w);
	ret = perfdata_push(w, e);
	return ret ? ret : put_data_size(w, e);
}
