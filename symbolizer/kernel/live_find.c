/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/live_find.h"

#include <string.h>

#define WORDS (LIVE_PAGE / sizeof(uint32_t))
/* Steps in a page that must rise, and those that must not be equal, as symbols are rarely at one address. */
#define LEAST_STEPS 1015u
#define LEAST_CHANGES 256u
#define LARGEST_STEP 0x40000
/* Distances of the pages that are looked at, and how many of them at most. */
#define FIRST_STRIDE (UINT64_C(1) << 20)
#define LAST_STRIDE (UINT64_C(8) << 10)
#define MAX_PROBES 256u
/* What the tables are extended by at a time, and what is read around the addresses at once: per-CPU symbols precede the others. */
#define EXTEND (UINT64_C(256) << 10)
#define MARGIN (UINT64_C(32) << 10)
/* Bytes for each symbol in the other tables, at most. */
#define PER_SYMBOL 40u
/* Up to two pages that do not rise may lie among the addresses. */
#define MAX_GAP (3 * LIVE_PAGE)
#define MAX_ADDRESSES (UINT64_C(4) * KALLSYMS_MAX_SYMBOLS)

/* Returns whether the page is full of numbers that rise, or that fall as distances of the encoding KALLSYMS_PERCPU do. */
static bool is_rising(const uint8_t *page)
{
	unsigned int up = 0, down = 0, changes = 0;
	uint32_t before, now;

	memcpy(&before, page, sizeof(before));
	for (unsigned int i = 1; i < WORDS; i++, before = now) {
		int32_t step;

		memcpy(&now, page + i * sizeof(now), sizeof(now));
		step = (int32_t)(now - before);
		/* A distance from the entry's own place falls by its size (KALLSYMS_PLACE). */
		up += step >= -4 && step <= LARGEST_STEP;
		down += step <= 0 && step >= -LARGEST_STEP;
		changes += step != 0 && step != -4;
	}
	return (up >= LEAST_STEPS || down >= LEAST_STEPS) && changes >= LEAST_CHANGES;
}

static bool rises_at(struct live_copy *c, uint64_t va)
{
	if (va < c->va || va - c->va >= c->len)
		return false;
	live_copy_need(c, va, LIVE_PAGE, true);
	return (c->state[(va - c->va) / LIVE_PAGE] & LIVE_READ) &&
	       is_rising(c->bytes + (va - c->va));
}

static bool read_for_kallsyms(void *ctx, uint64_t va, void *dst, size_t len)
{
	struct live_copy *c = ctx;

	if (va < c->va || va - c->va >= c->len || len > c->len - (va - c->va))
		return false;
	live_copy_need(c, va, len, false);
	memcpy(dst, c->bytes + (va - c->va), len);
	return true;
}

/* Decodes the names if all tables are in [from, to). */
static bool decode(struct live_copy *c, uint64_t from, uint64_t to, struct symtab **out,
		   struct kallsyms_info *info)
{
	const struct kallsyms_range r = { from, c->bytes + (from - c->va), (size_t)(to - from) };
	const struct kallsyms_source source = { .range = &r,
						.nrange = 1,
						.name = "the running kernel",
						.image_start = c->va,
						.image_end = c->va + c->len,
						.read = read_for_kallsyms,
						.ctx = c };

	return kallsyms_decode(&source, out, info, NULL) == 0;
}

struct live_span {
	uint64_t from, to;
};

static struct live_span clip(const struct live_copy *c, uint64_t below, uint64_t from, uint64_t to,
			     uint64_t above)
{
	struct live_span s = { from - c->va > below ? from - below : c->va,
			       c->va + c->len - to > above ? to + above : c->va + c->len };

	return s;
}

/* Extends the addresses in [from, to) forward or backward until the tables decode. */
static bool extend(struct live_copy *c, const struct live_span *at, bool forward,
		   struct symtab **out, struct kallsyms_info *info)
{
	const uint64_t limit = (at->to - at->from) / 4 * PER_SYMBOL + EXTEND;
	struct live_span before = { 0 };

	for (uint64_t more = EXTEND; more <= limit; more += EXTEND) {
		const struct live_span s = forward ? clip(c, MARGIN, at->from, at->to, more)
						   : clip(c, more, at->from, at->to, MARGIN);

		if (s.from == before.from && s.to == before.to)
			return false;
		live_copy_need(c, s.from, s.to - s.from, true);
		if (decode(c, s.from, s.to, out, info))
			return true;
		before = s;
	}
	return false;
}

/*
 * Returns whether the number of symbols follows the addresses, as it did before Linux 6.4: then the other tables do, too. n: the number of words
 * that rise, without the per-CPU symbols.
 */
static bool is_first(const struct live_copy *c, uint64_t to, uint64_t n)
{
	const uint64_t off = to - LIVE_PAGE - c->va, end = off + MARGIN;

	for (uint64_t at = off; at + 8 <= end && at + 8 <= c->len; at += 4) {
		uint32_t word;

		memcpy(&word, c->bytes + at, sizeof(word));
		if (word > n - n / 16 && word < n + n / 16 + 2 * WORDS)
			return true;
	}
	return false;
}

/* Returns whether the index of the tokens precedes the addresses, as since Linux 6.4: 256 rising numbers from 0 on. */
static bool is_behind_tokens(const struct live_copy *c, uint64_t from)
{
	const uint64_t end = from + LIVE_PAGE - c->va;

	for (uint64_t at = end > MARGIN ? end - MARGIN : 0; at + 512 <= end; at += 4) {
		uint16_t before = 0, now;
		unsigned int i;

		for (i = 0; i < 256; i++, before = now) {
			memcpy(&now, c->bytes + at + 2 * (size_t)i, sizeof(now));
			if (i ? now <= before : now != 0)
				break;
		}
		if (i == 256)
			return true;
	}
	return false;
}

/*
 * Returns the distance to the end of the next page that rises in this direction, or 0. Steps from one section of the kernel to the next are large, so
 * that pages with several of them do not count as rising.
 */
static uint64_t rising_step(struct live_copy *c, uint64_t va, bool forward)
{
	for (uint64_t step = LIVE_PAGE; step <= MAX_GAP; step += LIVE_PAGE)
		if (rises_at(c, forward ? va + step - LIVE_PAGE : va - step))
			return step;
	return 0;
}

static bool try_place(struct live_copy *c, uint64_t va, struct symtab **out,
		      struct kallsyms_info *info)
{
	struct live_span at = { va, va + LIVE_PAGE };
	uint64_t step;

	while (at.to - at.from < MAX_ADDRESSES && (step = rising_step(c, at.from, false)))
		at.from -= step;
	while (at.to - at.from < MAX_ADDRESSES && (step = rising_step(c, at.to, true)))
		at.to += step;
	live_copy_need(c, at.from - MARGIN, at.to - at.from + 2 * MARGIN, true);
	if (is_first(c, at.to, (at.to - at.from) / 4) && extend(c, &at, true, out, info))
		return true;
	return is_behind_tokens(c, at.from) && extend(c, &at, false, out, info);
}

/* Looks at pages that have the right `kind`, from the offset `from` on. */
static bool find_among(struct live_copy *c, uint8_t kind, uint64_t from, struct symtab **out,
		       struct kallsyms_info *info)
{
	unsigned int probes = 0;

	for (uint64_t stride = FIRST_STRIDE; stride >= LAST_STRIDE; stride /= 2) {
		for (uint64_t off = from / stride * stride; off < c->len; off += stride) {
			uint8_t *state = &c->state[off / LIVE_PAGE];

			if (!(*state & kind) || (*state & LIVE_PROBED))
				continue;
			*state |= LIVE_PROBED;
			if (++probes > MAX_PROBES)
				return false;
			if (rises_at(c, c->va + off) && try_place(c, c->va + off, out, info))
				return true;
		}
	}
	return false;
}

bool live_find(struct live_copy *c, uint64_t inside, struct symtab **out,
	       struct kallsyms_info *info)
{
	const uint64_t from = inside > c->va && inside - c->va < c->len ? inside - c->va : 0;
	uint8_t all = 0;

	for (size_t i = 0; i < c->len / LIVE_PAGE; i++)
		all |= c->state[i];
	/* With rodata=off, or before the kernel has finished booting, there is no constant data. */
	if (all & LIVE_CONST)
		return find_among(c, LIVE_CONST, 0, out, info);
	return find_among(c, LIVE_MAPPED, from, out, info);
}
