/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/buildid_map.h"

#include "base/array.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>

static int cmp_id(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
	int d = memcmp(a, b, alen < blen ? alen : blen);

	return d ? d : (alen > blen) - (alen < blen);
}

static int cmp_entry(const void *a, const void *b)
{
	const struct buildid_entry *x = a, *y = b;
	int d = cmp_id(x->id, x->len, y->id, y->len);

	return d ? d : strcmp(x->path, y->path);
}

int buildid_map_add(struct buildid_map *m, const uint8_t *id, size_t len, const char *path,
		    size_t path_len)
{
	struct buildid_entry x = { .len = (uint8_t)len };

	if (m->n >= BUILDID_MAP_MAX_ENTRIES)
		return -E2BIG;
	if (ARRAY_ROOM(m->at, m->n, m->cap))
		return -ENOMEM;
	memcpy(x.id, id, len);
	x.path = strndup(path, path_len);
	if (!x.path)
		return -ENOMEM;
	m->at[m->n++] = x;
	return 0;
}

void buildid_map_sort(struct buildid_map *m)
{
	size_t kept = 0;

	if (m->n)
		qsort(m->at, m->n, sizeof(*m->at), cmp_entry);
	for (size_t i = 0; i < m->n; i++) {
		if (kept && cmp_entry(&m->at[kept - 1], &m->at[i]) == 0)
			free(m->at[i].path);
		else
			m->at[kept++] = m->at[i];
	}
	m->n = kept;
}

void buildid_map_deinit(struct buildid_map *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->at[i].path);
	free(m->at);
	*m = (struct buildid_map){ 0 };
}

static int digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the length in bytes of the id at the beginning of a line, or 0 if there is none. */
static size_t take_id(const uint8_t *line, size_t len, uint8_t id[ELF_ID_MAX])
{
	size_t n = 0;

	while (2 * n + 1 < len && digit(line[2 * n]) >= 0 && digit(line[2 * n + 1]) >= 0) {
		if (n == ELF_ID_MAX)
			return 0;
		id[n] = (uint8_t)(digit(line[2 * n]) << 4 | digit(line[2 * n + 1]));
		n++;
	}
	return n;
}

static int parse_line(struct buildid_map *m, const uint8_t *line, size_t len, const char **why)
{
	uint8_t id[ELF_ID_MAX];
	size_t n;

	if (len == 0 || line[0] == '#')
		return 0;
	n = take_id(line, len, id);
	*why = "expected \"BUILD-ID PATH\", the id of 2 to 40 hexadecimal digits";
	if (n == 0 || 2 * n >= len || line[2 * n] != ' ')
		return -EINVAL;
	line += 2 * n + 1;
	len -= 2 * n + 1;
	*why = len ? "the path is longer than 4095 bytes or has a NUL byte in it"
		   : "there is no path behind the id";
	if (len == 0 || len > BUILDID_MAP_MAX_PATH || memchr(line, 0, len))
		return -EINVAL;
	*why = "too many entries, or out of memory";
	return buildid_map_add(m, id, n, (const char *)line, len);
}

int buildid_map_parse(struct buildid_map *m, const char *name, const uint8_t *data, size_t len,
		      struct err *e)
{
	struct buildid_map x = { 0 };
	const char *why = "";
	struct cursor c;

	cursor_init(&c, data, len);
	for (unsigned long number = 1; cursor_left(&c); number++) {
		const uint8_t *line = c.base + c.pos;
		const uint8_t *nl = memchr(line, '\n', cursor_left(&c));
		size_t n = nl ? (size_t)(nl - line) : cursor_left(&c);
		int ret = parse_line(&x, line, n, &why);

		if (ret) {
			buildid_map_deinit(&x);
			return err_set(e, -ret, "%s:%lu: %s; `kvmprof scan` writes such files",
				       name, number, why);
		}
		cursor_skip(&c, n + (nl ? 1 : 0));
	}
	buildid_map_sort(&x);
	*m = x;
	return 0;
}

const char *buildid_map_find(const struct buildid_map *m, const uint8_t *id, size_t len, size_t nth)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cmp_id(m->at[mid].id, m->at[mid].len, id, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (nth >= m->n - lo || cmp_id(m->at[lo + nth].id, m->at[lo + nth].len, id, len) != 0)
		return NULL;
	return m->at[lo + nth].path;
}
