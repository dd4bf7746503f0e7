/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/perfmap.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/cursor.h"

#include <errno.h>
#include <string.h>

struct perfmap {
	struct symbol *sym; /* in the order of the lines */
	uint32_t n;
	size_t cap;
	char *names; /* all names, each with a NUL */
	/*
	 * The pieces, each owned by one symbol or NONE (a hole). A piece ends where the next one
	 * begins.
	 */
	uint64_t *start;
	uint32_t *owner;
	size_t npieces;
	bool *doubt; /* by symbol: an earlier line gave some of its bytes to another function */
};

#define NONE UINT32_MAX

void perfmap_destroy(struct perfmap *m)
{
	if (!m)
		return;
	free(m->sym);
	free(m->names);
	free(m->start);
	free(m->owner);
	free(m->doubt);
	free(m);
}

/* Reads a hexadecimal number and the blank after it. */
static bool take_hex(struct cursor *c, uint64_t *v)
{
	uint64_t x = 0;
	size_t digits = 0;

	if (cursor_left(c) > 2 && c->base[c->pos] == '0' && (c->base[c->pos + 1] | 32) == 'x')
		cursor_skip(c, 2);
	while (cursor_left(c)) {
		uint8_t ch = c->base[c->pos] | 32;
		unsigned int d;

		if (c->base[c->pos] >= '0' && c->base[c->pos] <= '9')
			d = c->base[c->pos] - '0';
		else if (ch >= 'a' && ch <= 'f')
			d = ch - 'a' + 10u;
		else
			break;
		if (x >> 60)
			return false;
		x = x << 4 | d;
		digits++;
		c->pos++;
	}
	*v = x;
	return digits && cursor_u8(c) == ' ';
}

static bool parse_line(struct cursor c, struct symbol *s, size_t *name_at, size_t *name_len)
{
	if (!take_hex(&c, &s->addr) || !take_hex(&c, &s->size) || s->size == 0 ||
	    s->size > UINT64_MAX - s->addr)
		return false;
	while (cursor_left(&c) && c.base[c.pos] == ' ')
		c.pos++;
	*name_at = c.pos;
	*name_len = cursor_left(&c);
	while (*name_len && (c.base[*name_at + *name_len - 1] == '\r' ||
			     c.base[*name_at + *name_len - 1] == ' '))
		--*name_len;
	if (*name_len > SYMTAB_MAX_NAME)
		*name_len = SYMTAB_MAX_NAME;
	return *name_len != 0;
}

static void put_name(char *to, const uint8_t *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] < 0x20 || from[i] == 0x7f ? '?' : (char)from[i];
	to[len] = 0;
}

static int add_symbol(struct perfmap *m, const struct symbol *s)
{
	if (ARRAY_ROOM(m->sym, m->n, m->cap))
		return -ENOMEM;
	m->sym[m->n++] = *s;
	return 0;
}

static int read_lines(struct perfmap *m, const uint8_t *data, size_t len, struct perfmap_info *info)
{
	size_t at = 0, used = 0;
	uint32_t line = 0;

	while (at < len) {
		const uint8_t *nl = memchr(data + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (data + at)) : len - at, name_at, name_len;
		struct symbol s = { .type = 't' };
		struct cursor c;

		if (m->n == PERFMAP_MAX_ENTRIES) {
			info->full = true;
			return 0;
		}
		line++;
		cursor_init(&c, data + at, n);
		if (parse_line(c, &s, &name_at, &name_len)) {
			/*
			 * A name is never longer than its line, whose newline makes room for the
			 * NUL.
			 */
			s.name = m->names + used;
			put_name(m->names + used, data + at + name_at, name_len);
			used += name_len + 1;
			if (add_symbol(m, &s) < 0)
				return -ENOMEM;
		} else if (n) {
			info->ignored++;
			if (!info->first_ignored)
				info->first_ignored = line;
		}
		at += n + (nl != NULL);
	}
	return 0;
}

/* -- pieces -------------------------------------------------------------------------- */

/* Orders by address; the order of equal addresses does not matter. */
static int by_addr(const void *pa, const void *pb, void *ctx)
{
	const struct symbol *sym = ctx;
	uint64_t a = sym[*(const uint32_t *)pa].addr, b = sym[*(const uint32_t *)pb].addr;

	return a < b ? -1 : a > b;
}

/* A heap of the open entries, with the latest line on top. */
struct heap {
	uint32_t *v;
	size_t n;
	size_t kept; /* number after the last pruning */
};

static void heap_push(struct heap *h, uint32_t x)
{
	size_t i = h->n++;

	for (; i && h->v[(i - 1) / 2] < x; i = (i - 1) / 2)
		h->v[i] = h->v[(i - 1) / 2];
	h->v[i] = x;
}

static void heap_pop(struct heap *h)
{
	uint32_t x = h->v[--h->n];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && h->v[child + 1] > h->v[child])
			child++;
		if (h->v[child] <= x)
			break;
		h->v[i] = h->v[child];
	}
	h->v[i] = x;
}

static void add_piece(struct perfmap *m, uint64_t start, uint32_t owner)
{
	if (m->npieces && m->start[m->npieces - 1] == start) {
		m->owner[m->npieces - 1] = owner;
		return;
	}
	if (m->npieces && m->owner[m->npieces - 1] == owner)
		return;
	m->start[m->npieces] = start;
	m->owner[m->npieces++] = owner;
}

static uint64_t end_of(const struct perfmap *m, uint32_t i)
{
	return m->sym[i].addr + m->sym[i].size;
}

/*
 * Returns whether two names are the same function. V8 writes a mark of the compiler before the
 * function's name: "JS:*f", and "JS:^f" for the previous compiler.
 */
static bool same_function(const char *a, const char *b)
{
	static const char marks[] = "~^+*";
	size_t n = strcspn(a, ":");

	if (strncmp(a, b, n) || !a[n] || b[n] != ':')
		return !strcmp(a, b);
	a += n + 1;
	b += n + 1;
	return !strcmp(a + strspn(a, marks), b + strspn(b, marks));
}

/* Removes entries that have ended under later lines. */
static void heap_prune(const struct perfmap *m, struct heap *h, uint64_t at)
{
	size_t n = h->n;

	h->n = 0;
	for (size_t i = 0; i < n; i++)
		if (end_of(m, h->v[i]) > at)
			heap_push(h, h->v[i]);
	h->kept = h->n;
}

/*
 * Records doubts before x is pushed at its start: of two lines that share bytes, the later one is
 * doubtful.
 */
static void note_doubt(struct perfmap *m, struct heap *h, uint32_t x)
{
	bool many;

	if (h->n < PERFMAP_MAX_OVER)
		h->kept = 0;
	else if (h->n >= 2 * h->kept)
		heap_prune(m, h, m->sym[x].addr);
	many = h->n >= PERFMAP_MAX_OVER;
	m->doubt[x] = m->doubt[x] || many;
	/*
	 * If there are more, later entries are marked when they are pushed, and these were marked
	 * already.
	 */
	for (size_t i = 0; i < h->n && h->n <= PERFMAP_MAX_OVER; i++) {
		uint32_t y = h->v[i], later = x > y ? x : y;

		if (many || (end_of(m, y) > m->sym[x].addr &&
			     !same_function(m->sym[x].name, m->sym[y].name)))
			m->doubt[many ? y : later] = true;
	}
}

/*
 * Cuts the pieces from low to high addresses. An entry that ends under a later line stays in the
 * heap until it is on top, so each entry is pushed and popped once.
 */
static void cut_pieces(struct perfmap *m, const uint32_t *order, struct heap *h)
{
	uint32_t i = 0;

	while (i < m->n || h->n) {
		uint64_t next = i < m->n ? m->sym[order[i]].addr : UINT64_MAX;

		while (h->n && end_of(m, h->v[0]) <= next) {
			uint64_t end = end_of(m, h->v[0]);

			while (h->n && end_of(m, h->v[0]) <= end)
				heap_pop(h);
			add_piece(m, end, h->n ? h->v[0] : NONE);
		}
		if (i == m->n)
			break;
		while (i < m->n && m->sym[order[i]].addr == next) {
			note_doubt(m, h, order[i]);
			heap_push(h, order[i++]);
		}
		add_piece(m, next, h->v[0]);
	}
}

static int index_lines(struct perfmap *m)
{
	cleanup_free uint32_t *order = malloc((m->n + 1) * sizeof(*order));
	cleanup_free uint32_t *open = malloc((m->n + 1) * sizeof(*open));
	struct heap h = { .v = open };

	m->start = malloc((2 * (size_t)m->n + 1) * sizeof(*m->start));
	m->owner = malloc((2 * (size_t)m->n + 1) * sizeof(*m->owner));
	m->doubt = calloc(m->n + 1, sizeof(*m->doubt));
	if (!order || !open || !m->start || !m->owner || !m->doubt)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++)
		order[i] = i;
	qsort_r(order, m->n, sizeof(*order), by_addr, m->sym);
	cut_pieces(m, order, &h);
	return 0;
}

static uint32_t count_hidden(const struct perfmap *m)
{
	cleanup_free uint8_t *seen = calloc(1, m->n + 1);
	uint32_t n = m->n;

	for (size_t i = 0; seen && i < m->npieces; i++)
		if (m->owner[i] != NONE && !seen[m->owner[i]]) {
			seen[m->owner[i]] = 1;
			n--;
		}
	return seen ? n : 0;
}

int perfmap_parse(struct perfmap **out, const char *name, const uint8_t *data, size_t len,
		  struct perfmap_info *info, struct err *e)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	struct perfmap_info x = { 0 };
	int ret = -ENOMEM;

	if (m)
		m->names = malloc(len + 1);
	if (m && m->names)
		ret = read_lines(m, data, len, &x);
	if (ret == 0)
		ret = index_lines(m);
	if (ret < 0) {
		perfmap_destroy(m);
		return err_set(e, ENOMEM, "%s: no memory for its names", name);
	}
	x.entries = m->n;
	if (m->n == 0) {
		perfmap_destroy(m);
		return err_set(e, ENOENT,
			       "%s: no line of it is \"START SIZE name\" in hexadecimal (%u lines)",
			       name, x.ignored);
	}
	x.hidden = count_hidden(m);
	if (info)
		*info = x;
	*out = m;
	return 0;
}

bool perfmap_is_uncertain(const struct perfmap *m, const struct symbol *s)
{
	return m->doubt[s - m->sym];
}

size_t perfmap_pieces(const struct perfmap *m)
{
	return m->npieces;
}

const struct symbol *perfmap_piece(const struct perfmap *m, size_t i, uint64_t *start,
				   uint64_t *end)
{
	*start = m->start[i];
	*end = i + 1 < m->npieces ? m->start[i + 1] : UINT64_MAX;
	return m->owner[i] == NONE ? NULL : &m->sym[m->owner[i]];
}
