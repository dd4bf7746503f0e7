/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/textstore.h"

#include "base/array.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "KVMPTEXT"
#define VERSION 1u
#define HAS_IMAGE 1u
/* Differences closer than this are joined: each costs 8 bytes. */
#define JOIN 8u

struct textstore {
	struct textstore_range *range;
	size_t n, cap;
};

/* -- reading ---------------------------------------------------------------------- */

static bool read_diffs(struct cursor *c, struct textstore_range *r)
{
	uint32_t end = 0;

	r->diff = c->base + c->pos;
	for (uint32_t i = 0; i < r->ndiff && !c->bad; i++) {
		uint32_t off = cursor_u32(c), len = cursor_u32(c);

		if (off < end || off >= r->len || !len || len > r->len - off)
			return false;
		end = off + len;
		cursor_skip(c, len);
	}
	return !c->bad;
}

static bool read_range(struct cursor *c, struct textstore_range *r)
{
	uint16_t name_len, flags;

	r->addr = cursor_u64(c);
	r->len = cursor_u32(c);
	r->ndiff = cursor_u32(c);
	name_len = cursor_u16(c);
	flags = cursor_u16(c);
	r->has_image = flags & HAS_IMAGE;
	r->name = (const char *)cursor_bytes(c, name_len);
	r->live = cursor_bytes(c, r->len);
	if (c->bad || !r->len || r->len > TEXTSTORE_MAX_LEN || r->len > UINT64_MAX - r->addr)
		return false;
	if (!name_len || name_len > TEXTSTORE_MAX_NAME ||
	    strnlen(r->name, name_len) + 1 != name_len)
		return false;
	return (r->has_image || !r->ndiff) && read_diffs(c, r);
}

static int add_range(struct textstore *t, const struct textstore_range *r, struct err *e,
		     const char *name)
{
	if (t->n >= TEXTSTORE_MAX_RANGES)
		return err_set(e, E2BIG, "%s: more than %u functions", name, TEXTSTORE_MAX_RANGES);
	if (ARRAY_ROOM(t->range, t->n, t->cap))
		return err_set(e, ENOMEM, "%s: out of memory", name);
	t->range[t->n++] = *r;
	return 0;
}

int textstore_parse(struct textstore **out, const char *name, const uint8_t *data, size_t len,
		    struct err *e)
{
	struct textstore *t;
	struct cursor c;
	const uint8_t *magic;
	uint32_t version;
	int ret = 0;

	cursor_init(&c, data, len);
	magic = cursor_bytes(&c, sizeof(MAGIC) - 1);
	version = cursor_u32(&c);
	if (c.bad || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
		return err_set(e, EINVAL, "%s: not a file of code that kvmprof wrote", name);
	if (version != VERSION)
		return err_set(e, EINVAL, "%s: version %u, this kvmprof reads %u", name, version,
			       VERSION);
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	while (!ret && cursor_left(&c)) {
		size_t at = c.pos;
		struct textstore_range r = { 0 };

		if (!read_range(&c, &r))
			ret = err_set(e, EINVAL, "%s: damaged at byte %zu of %zu", name, at, len);
		else
			ret = add_range(t, &r, e, name);
	}
	if (ret)
		textstore_destroy(t);
	else
		*out = t;
	return ret;
}

void textstore_destroy(struct textstore *t)
{
	if (!t)
		return;
	free(t->range);
	free(t);
}

/* A command makes few lookups, so there is no index. */
const struct textstore_range *textstore_find(const struct textstore *t, const char *name,
					     uint64_t addr)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct textstore_range *r = &t->range[i];

		if (addr >= r->addr && addr - r->addr < r->len && !strcmp(r->name, name))
			return r;
	}
	return NULL;
}

void textstore_image(const struct textstore_range *r, uint8_t *dst)
{
	const uint8_t *p = r->diff;

	memcpy(dst, r->live, r->len);
	for (uint32_t i = 0; i < r->ndiff; i++) {
		uint32_t off, len;

		memcpy(&off, p, sizeof(off));
		memcpy(&len, p + 4, sizeof(len));
		memcpy(dst + off, p + 8, len);
		p += 8 + len;
	}
}

/* -- writing ---------------------------------------------------------------------- */

void textstore_write_begin(struct buf *out)
{
	buf_add(out, MAGIC, sizeof(MAGIC) - 1);
	buf_u32(out, VERSION);
}

static uint32_t write_diffs(struct buf *out, const uint8_t *live, const uint8_t *image, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++) {
		size_t end = i + 1;

		if (live[i] == image[i])
			continue;
		for (size_t k = end; k < len && k - end < JOIN; k++)
			if (live[k] != image[k])
				end = k + 1;
		buf_u32(out, (uint32_t)i);
		buf_u32(out, (uint32_t)(end - i));
		buf_add(out, image + i, end - i);
		n++;
		i = end - 1;
	}
	return n;
}

bool textstore_write(struct buf *out, const char *name, uint64_t addr, const uint8_t *live,
		     const uint8_t *image, size_t len)
{
	size_t name_len = strlen(name) + 1, ndiff_at;
	uint32_t ndiff = 0;

	if (!len || len > TEXTSTORE_MAX_LEN || len > UINT64_MAX - addr ||
	    name_len > TEXTSTORE_MAX_NAME)
		return false;
	buf_u64(out, addr);
	buf_u32(out, (uint32_t)len);
	ndiff_at = out->len;
	buf_u32(out, 0);
	buf_u16(out, (uint16_t)name_len);
	buf_u16(out, image ? HAS_IMAGE : 0);
	buf_add(out, name, name_len);
	buf_add(out, live, len);
	if (image)
		ndiff = write_diffs(out, live, image, len);
	if (!out->failed)
		buf_put32(out, ndiff_at, ndiff);
	return true;
}
