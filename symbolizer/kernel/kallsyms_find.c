/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search begins at token_index, whose 256 rising numbers starting with 0 are rare, and which
 * directly follows the token table in all versions. Markers end where that begins (or where the
 * preceding seqs_of_names begins); the names end where the markers begin; and the number of
 * symbols precedes the names. Each step leaves few places to try, and the next step rejects all
 * but the right one.
 */
#include "symbolizer/kernel/kallsyms_find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A token stands for two others; no name, and therefore no token, is longer than this. */
#define MAX_TOKEN KALLSYMS_MAX_NAME
/*
 * Required number of digits and lower-case letters (36 in all) that are their own tokens, as in
 * any real kernel.
 */
#define MIN_LETTERS 30u
/* A kernel has one; a few more may be data of the same form. */
#define MAX_TOKEN_TABLES 16u
#define NAMES_PER_MARKER 256u
/*
 * Each name has a length and at least one token; at most two bytes of length and KALLSYMS_MAX_NAME
 * tokens.
 */
#define MIN_MARKER_STEP (NAMES_PER_MARKER * 2u)
#define MAX_MARKER_STEP (NAMES_PER_MARKER * (2u + KALLSYMS_MAX_NAME))
/*
 * Limit for names read and places tried in the whole search. A typical kernel needs less than a
 * million; a hostile image could require thousands of times that.
 */
#define MAX_STEPS (64u << 20)
#define LARGEST_ALIGN 8u

void kallsyms_search_init(struct kallsyms_search *s)
{
	memset(s, 0, sizeof(*s));
	s->steps_left = MAX_STEPS;
}

static bool spend(struct kallsyms_search *s, uint64_t steps)
{
	if (s->steps_left < steps) {
		s->steps_left = 0;
		return false;
	}
	s->steps_left -= steps;
	return true;
}

static bool all_zero(const struct cursor *m, uint64_t from, uint64_t to)
{
	struct cursor c = cursor_window(m, from, to - from);

	for (size_t i = 0; i < c.len; i++)
		if (c.base[i])
			return false;
	return !c.bad;
}

static bool is_name_char(uint8_t c)
{
	return c > 0x20 && c < 0x7f;
}

/*
 * Returns whether c is one of nm's letters, or its ? for a section that is neither code nor data.
 */
static bool is_type(uint8_t c)
{
	return c && strchr("?AaBbCcDdGgiINnpPRrSsTtuUVvWw", c);
}

/* Returns whether the strings that the index describes are at off. */
static bool tokens_at(struct kallsyms_tables *t, uint64_t off, const uint16_t *index,
		      struct kallsyms_search *s)
{
	const struct cursor *m = &t->mem;
	unsigned int letters = 0;

	for (unsigned int i = 0; i < KALLSYMS_TOKENS; i++) {
		uint64_t at = off + index[i], room = t->token_index - at;
		const uint8_t *p = m->base + at;
		size_t len = i + 1 < KALLSYMS_TOKENS ? index[i + 1] - index[i] - 1u
						     : strnlen((const char *)p, (size_t)room);

		if (len >= room || len > MAX_TOKEN || p[len] != 0 || !spend(s, 1 + len / 16))
			return false;
		for (size_t k = 0; k < len; k++)
			if (!is_name_char(p[k]))
				return false;
		if (len == 1 && p[0] == i && ((i >= '0' && i <= '9') || (i >= 'a' && i <= 'z')))
			letters++;
		t->token_off[i] = (uint32_t)at;
		t->token_len[i] = (uint16_t)len;
	}
	off = t->token_off[KALLSYMS_TOKENS - 1] + t->token_len[KALLSYMS_TOKENS - 1] + 1u;
	return letters >= MIN_LETTERS && t->token_index - off < LARGEST_ALIGN &&
	       all_zero(m, off, t->token_index);
}

/* Returns whether a token index is at off, with its table before it. */
static bool read_tokens(struct kallsyms_tables *t, uint64_t off, struct kallsyms_search *s)
{
	struct cursor c = cursor_window(&t->mem, off, 2 * KALLSYMS_TOKENS);
	uint16_t index[KALLSYMS_TOKENS];

	for (unsigned int i = 0; i < KALLSYMS_TOKENS; i++) {
		index[i] = cursor_u16(&c);
		if (c.bad || (i == 0 ? index[i] != 0
				     : index[i] <= index[i - 1] ||
					       index[i] - index[i - 1] > (int)MAX_TOKEN + 1))
			return false;
	}
	t->token_index = off;
	/* The length of the last string is unknown, as is the padding. */
	for (uint64_t back = kallsyms_align(index[KALLSYMS_TOKENS - 1] + 1u, 4);
	     back <= index[KALLSYMS_TOKENS - 1] + MAX_TOKEN + 1 + LARGEST_ALIGN && back <= off;
	     back += 4)
		if (tokens_at(t, off - back, index, s)) {
			t->token_table = off - back;
			return true;
		}
	return false;
}

/*
 * Returns the length of the record at *off and moves *off behind the length; 0 if there is no
 * record.
 */
static unsigned int record_len(const struct kallsyms_tables *t, uint64_t *off, uint64_t end)
{
	const uint8_t *p = t->mem.base;
	unsigned int len;

	if (*off >= end)
		return 0;
	len = p[(*off)++];
	if ((len & 0x80) && !t->byte_lengths) {
		if (*off >= end)
			return 0;
		len = (len & 0x7f) | (unsigned int)p[(*off)++] << 7;
	}
	return len <= end - *off ? len : 0;
}

bool kallsyms_next_name(const struct kallsyms_tables *t, uint64_t *off, char *type, char *buf)
{
	unsigned int len = record_len(t, off, t->names_end);
	const uint8_t *code = t->mem.base + *off;
	bool have_type = false;
	size_t n = 0;

	if (len == 0)
		return false;
	*off += len;
	for (unsigned int i = 0; i < len; i++) {
		const uint8_t *s = t->mem.base + t->token_off[code[i]];
		size_t part = t->token_len[code[i]];

		if (!have_type && part) {
			*type = (char)*s++;
			part--;
			have_type = true;
		}
		if (have_type && !buf)
			return true;
		if (part > KALLSYMS_MAX_NAME - n)
			return false;
		if (buf)
			memcpy(buf + n, s, part);
		n += part;
	}
	if (buf)
		buf[n] = 0;
	return have_type && n > 0;
}

static uint64_t marker_at(const struct kallsyms_tables *t, unsigned int i)
{
	uint64_t off = t->markers + (uint64_t)i * t->marker_size;

	return t->marker_size == 8 ? kallsyms_u64(&t->mem, off) : kallsyms_u32(&t->mem, off);
}

/*
 * Returns whether count names lead from t->names to the markers, passing through the place of each
 * marker.
 */
static bool walk_names(struct kallsyms_tables *t, struct kallsyms_search *s)
{
	uint64_t off = t->names;

	t->long_names = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t start = off;
		unsigned int len;

		if (i % NAMES_PER_MARKER == 0 &&
		    (marker_at(t, i / NAMES_PER_MARKER) != off - t->names ||
		     !spend(s, NAMES_PER_MARKER)))
			return false;
		len = record_len(t, &off, t->markers);
		if (len == 0)
			return false;
		t->long_names += off - start > 1;
		/* Usually the type letter begins the first token; an empty token proves nothing. */
		if (t->token_len[t->mem.base[off]] &&
		    !is_type(t->mem.base[t->token_off[t->mem.base[off]]]))
			return false;
		off += len;
	}
	t->names_end = off;
	return t->markers - off < LARGEST_ALIGN && all_zero(&t->mem, off, t->markers);
}

/* Returns whether exactly seqs_of_names fits between the markers and the token table. */
static bool seqs_fit(const struct kallsyms_tables *t)
{
	uint64_t off = kallsyms_align(t->markers + (uint64_t)t->nmarkers * t->marker_size, 8);

	return kallsyms_align(off + 3ull * t->count, 8) == t->token_table;
}

/* Finds the names when the markers are known; the number of symbols directly precedes the names. */
static bool find_names(struct kallsyms_tables *t, struct kallsyms_search *s)
{
	uint64_t last = marker_at(t, t->nmarkers - 1);
	uint64_t from = t->markers, to;

	if (last > from || from - last < 6)
		return false;
	from = (from - last - 2) & ~3ull;
	to = from > MAX_MARKER_STEP + LARGEST_ALIGN ? from - MAX_MARKER_STEP - LARGEST_ALIGN : 4;
	for (uint64_t at = from; at >= to && at >= 4; at -= 4) {
		uint32_t n = kallsyms_u32(&t->mem, at - 4);

		if (!spend(s, 1))
			return false;
		/* The number has eight bytes, or four and padding, before 7.0. */
		if (n == 0 && at % 8 == 0)
			n = kallsyms_u32(&t->mem, at - 8);
		if (n > KALLSYMS_MAX_SYMBOLS || n == 0 ||
		    (n + NAMES_PER_MARKER - 1) / NAMES_PER_MARKER != t->nmarkers)
			continue;
		t->names = at;
		t->count = n;
		if (t->seqs_before_tokens && !seqs_fit(t))
			continue;
		/*
		 * Before 6.1 a length byte of 128 meant a length of 128. That was almost
		 * impossible; if it occurs, the markers decide.
		 */
		t->byte_lengths = false;
		if (walk_names(t, s))
			return true;
		t->byte_lengths = true;
		if (walk_names(t, s))
			return true;
	}
	return false;
}

static bool is_step(uint64_t from, uint64_t to)
{
	return to > from && to - from >= MIN_MARKER_STEP && to - from <= MAX_MARKER_STEP;
}

/* Finds markers that end at `end`, from there backward to the first one, which is 0. */
static bool markers_before(struct kallsyms_tables *t, uint64_t end, unsigned int size)
{
	uint64_t next = 0;

	t->marker_size = size;
	t->nmarkers = 0;
	for (uint64_t off = end; off >= size;) {
		uint64_t v;

		off -= size;
		v = size == 8 ? kallsyms_u64(&t->mem, off) : kallsyms_u32(&t->mem, off);
		if (t->nmarkers && !is_step(v, next))
			return false;
		next = v;
		t->nmarkers++;
		if (v == 0) {
			t->markers = off;
			return t->nmarkers > 1; /* no kernel has fewer than 257 symbols */
		}
	}
	return false;
}

/* Handles Linux 6.2 and 6.3: three bytes for each symbol are between the markers and the tokens. */
static bool find_before_seqs(struct kallsyms_tables *t, struct kallsyms_search *s, bool *markers)
{
	const uint64_t per_marker = 4 + 3 * NAMES_PER_MARKER;
	uint64_t reach = (uint64_t)KALLSYMS_MAX_SYMBOLS / NAMES_PER_MARKER * per_marker;
	uint64_t to = t->token_table > reach ? t->token_table - reach : 0;

	t->marker_size = 4;
	t->seqs_before_tokens = true;
	for (uint64_t off = t->token_table & ~7ull; off >= to + 8;) {
		uint64_t m;

		off -= 8;
		if (kallsyms_u32(&t->mem, off) != 0 || !is_step(0, kallsyms_u32(&t->mem, off + 4)))
			continue;
		/* The number of markers that fit, together with the symbols that they imply. */
		/* The number of markers that fit together with the symbols that they imply. */
		m = (t->token_table - off) / per_marker;
		for (t->nmarkers = (unsigned int)m; t->nmarkers <= m + 1; t->nmarkers++) {
			unsigned int i = 1;

			if (t->nmarkers < 2)
				continue;
			t->markers = off;
			while (i < t->nmarkers && is_step(marker_at(t, i - 1), marker_at(t, i)))
				i++;
			if (!spend(s, i))
				return false;
			if (i < t->nmarkers)
				continue;
			*markers = true;
			if (find_names(t, s))
				return true;
		}
	}
	return false;
}

/* Finds everything else from the token table. */
static bool find_rest(struct kallsyms_tables *t, struct kallsyms_search *s)
{
	static const struct {
		unsigned int size, padding;
	} shapes[] = { { 4, 0 }, { 4, 4 }, { 8, 0 } };
	bool markers = false;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (t->token_table < shapes[i].padding ||
		    !all_zero(&t->mem, t->token_table - shapes[i].padding, t->token_table) ||
		    !markers_before(t, t->token_table - shapes[i].padding, shapes[i].size))
			continue;
		markers = true;
		t->seqs_before_tokens = false;
		if (find_names(t, s))
			return true;
	}
	if (find_before_seqs(t, s, &markers))
		return true;
	snprintf(s->why, sizeof(s->why), "a token table lies at 0x%llx, but %s",
		 (unsigned long long)(t->va + t->token_table),
		 markers ? "the names and the markers before it don't agree"
			 : "no markers lie before it");
	return false;
}

int kallsyms_find(const struct kallsyms_range *r, struct kallsyms_search *s,
		  struct kallsyms_tables *out, unsigned int max)
{
	struct kallsyms_tables t = { .va = r->va };
	unsigned int n = 0;

	/* Offsets of tokens are stored in 32 bits. */
	if (r->va % LARGEST_ALIGN || r->len > UINT32_MAX)
		return 0;
	cursor_init(&t.mem, r->bytes, r->len);
	for (uint64_t off = 0; off + 2 * KALLSYMS_TOKENS <= r->len; off += 4) {
		uint32_t head;

		/*
		 * The loop guarantees that these bytes exist. Every place is examined, and most
		 * are rejected here.
		 */
		memcpy(&head, r->bytes + off, sizeof(head));
		/* 0, then a small number */
		if ((head & 0xffff) != 0 || head == 0 || head >> 16 > MAX_TOKEN + 1)
			continue;
		if (read_tokens(&t, off, s)) {
			if (++s->token_tables > MAX_TOKEN_TABLES)
				return -E2BIG;
			if (find_rest(&t, s) && n < max)
				out[n++] = t;
		}
		if (s->steps_left == 0)
			return -E2BIG;
	}
	return (int)n;
}
