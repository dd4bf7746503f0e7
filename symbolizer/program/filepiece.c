/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/filepiece.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the index of the piece's page that contains byte `at`. */
static size_t page_of(const struct filepiece *p, uint64_t at)
{
	return (size_t)((p->off + at) / FILEPIECE_PAGE - p->off / FILEPIECE_PAGE);
}

static void filepiece_fill(struct filepiece *p, const struct file_source *s)
{
	size_t at = 0;

	while (at < p->len) {
		size_t n = s->read(s->ctx, p->off + at, p->data + at, p->len - at), page, skip;

		if (n >= p->len - at)
			return;
		at += n;
		page = page_of(p, at);
		if (!p->missing[page])
			p->nmissing++;
		p->missing[page] = 1;
		skip = FILEPIECE_PAGE - (size_t)((p->off + at) % FILEPIECE_PAGE);
		at += skip < p->len - at ? skip : p->len - at;
	}
}

int filepiece_read(struct filepiece *p, const struct file_source *s, uint64_t off, uint64_t len,
		   uint64_t max)
{
	struct filepiece x = { .off = off, .len = (size_t)len };

	if (off > s->len || len > s->len - off)
		return -EINVAL;
	if (len > max)
		return -E2BIG;
	x.data = calloc(1, len + 1);
	x.missing = calloc(1, len / FILEPIECE_PAGE + 2);
	if (!x.data || !x.missing) {
		filepiece_deinit(&x);
		return -ENOMEM;
	}
	filepiece_fill(&x, s);
	*p = x;
	return 0;
}

void filepiece_deinit(struct filepiece *p)
{
	free(p->data);
	free(p->missing);
	memset(p, 0, sizeof(*p));
}

bool filepiece_has(const struct filepiece *p, uint64_t at, uint64_t len)
{
	if (at > p->len || len > p->len - at)
		return false;
	if (p->nmissing == 0 || len == 0)
		return true;
	for (size_t i = page_of(p, at); i <= page_of(p, at + len - 1); i++)
		if (p->missing[i])
			return false;
	return true;
}

const char *filepiece_str(const struct filepiece *p, uint64_t at, size_t max)
{
	const uint8_t *end;

	if (at >= p->len)
		return NULL;
	if (max > p->len - at)
		max = (size_t)(p->len - at);
	end = memchr(p->data + at, 0, max);
	if (!end || !filepiece_has(p, at, (uint64_t)(end - (p->data + at)) + 1))
		return NULL;
	return (const char *)p->data + at;
}

bool filepiece_str_start(const struct filepiece *p, uint64_t at, char *dst, size_t n)
{
	if (at >= p->len || n > p->len - at || !filepiece_has(p, at, n) ||
	    memchr(p->data + at, 0, n))
		return false;
	memcpy(dst, p->data + at, n);
	dst[n] = 0;
	return true;
}

static size_t read_bytes(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct file_bytes *b = ctx;

	if (off >= b->len)
		return 0;
	if (len > b->len - off)
		len = (size_t)(b->len - off);
	memcpy(dst, b->data + off, len);
	return len;
}

struct file_source filepiece_source_of_bytes(struct file_bytes *b)
{
	return (struct file_source){ .read = read_bytes, .ctx = b, .len = b->len };
}
