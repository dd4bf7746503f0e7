/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symident.h"

#include "base/hash.h"

#include "symbolizer/core/insn.h"

/* Windows of text that are decoded, and their length: a megabyte of a large kernel. */
#define WINDOWS 256u
#define WINDOW_BYTES 4096u
/* Decoding that begins inside an instruction falls into step after a few. */
#define SETTLE_BYTES 64u

uint64_t symident_text_hash(const struct kimage *k, uint64_t max, uint64_t *hash)
{
	uint64_t len;
	size_t avail;
	const uint8_t *p = kimage_ptr(k, k->text, &avail);

	len = k->etext - k->text;
	if (!p)
		len = 0;
	else if (len > avail)
		len = avail;
	if (len > max)
		len = max;
	*hash = hash_bytes(HASH_START, p, len);
	return len;
}

static bool starts_symbol(const struct symtab *t, uint64_t va)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(t, va, &off);

	return s && off == 0;
}

struct symident_calls symident_count_calls(const struct kimage *k, const struct symtab *t)
{
	struct symident_calls n = { 0 };
	uint64_t len = k->etext - k->text, stride = len / WINDOWS;

	if (stride < WINDOW_BYTES)
		stride = WINDOW_BYTES;
	for (uint64_t off = 0, w = 0; off < len && w < WINDOWS; off += stride, w++) {
		size_t avail, at = 0;
		const uint8_t *p = kimage_ptr(k, k->text + off, &avail);

		if (!p)
			continue;
		if (avail > len - off)
			avail = (size_t)(len - off);
		if (avail > WINDOW_BYTES)
			avail = WINDOW_BYTES;
		while (at < avail) {
			struct insn i;

			if (!insn_decode(&i, k->text + off + at, p + at, avail - at)) {
				at++;
				continue;
			}
			if (i.kind == INSN_CALL && (at >= SETTLE_BYTES || off == 0) &&
			    (uint64_t)i.value >= k->text && (uint64_t)i.value < k->etext) {
				n.calls++;
				n.hits += starts_symbol(t, (uint64_t)i.value);
			}
			at += i.len;
		}
	}
	return n;
}
