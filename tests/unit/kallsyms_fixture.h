/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms_fixture: a kernel of a few kilobytes with kallsyms tables of any layout.
 *
 * It has text without code, a banner, and the tables as scripts/kallsyms of the version would write
 * them (symbolizer/kernel/kallsyms.h). Tokens are fixed; names are encoded with the longest token
 * that fits.
 */
#ifndef KVMPROF_TESTS_UNIT_KALLSYMS_FIXTURE_H
#define KVMPROF_TESTS_UNIT_KALLSYMS_FIXTURE_H

#include "base/buf.h"
#include "symbolizer/kernel/kallsyms.h"

#include <stdio.h>
#include <string.h>

#define KF_TEXT 0xffffffff81000000ull
#define KF_RODATA 0x4000u
#define KF_LOW 20u /* per-CPU and absolute symbols */
#define KF_BANNER "Linux version 6.1.0-kf (test@test) #1 SMP\n"

/* An additional symbol, above all functions and below KF_RODATA. */
struct kf_extra {
	const char *name;
	uint32_t off; /* offset from KF_TEXT; rising */
};

struct kf_shape {
	const char *name;
	enum kallsyms_encoding encoding;
	bool first;	       /* addresses before the names */
	bool seqs;	       /* seqs_of_names before the tokens */
	bool wide;	       /* eight-byte count and markers */
	unsigned int align;    /* 8 or 4 */
	unsigned int long_len; /* length of one long name; 0: none is long */
	bool byte_lengths;
	unsigned int count;	      /* number of symbols, 300 to 1000 */
	bool text_only;		      /* no CONFIG_KALLSYMS_ALL: no banner symbol */
	uint64_t slide;		      /* slide in the memory of a guest with KASLR */
	const struct kf_extra *extra; /* these replace the last functions */
	unsigned int nextra;
};

/* Offsets from the image's start. */
struct kf_places {
	size_t count, names, markers, seqs, tokens, index, addresses, base, end;
};

static const struct kf_shape kf_shapes[] = {
	{ "4.4: absolute", KALLSYMS_ABSOLUTE, .first = true, .wide = true, .align = 8,
	  .count = 700 },
	{ "4.9: base-relative", KALLSYMS_RELATIVE, .first = true, .wide = true, .align = 8,
	  .count = 513 },
	{ "4.19: percpu", KALLSYMS_PERCPU, .first = true, .wide = true, .align = 8, .count = 769 },
	{ "5.10: percpu", KALLSYMS_PERCPU, .first = true, .align = 8, .count = 700 },
	{ "5.10: absolute", KALLSYMS_ABSOLUTE, .first = true, .align = 8, .count = 640 },
	{ "5.10: text only", KALLSYMS_PERCPU, .first = true, .align = 8, .count = 600,
	  .text_only = true },
	{ "5.10: length 128", KALLSYMS_RELATIVE, .first = true, .align = 8, .count = 600,
	  .long_len = 127, .byte_lengths = true },
	{ "6.1: two-byte lengths", KALLSYMS_PERCPU, .first = true, .align = 8, .count = 600,
	  .long_len = 500 },
	{ "6.2: seqs", KALLSYMS_PERCPU, .first = true, .seqs = true, .align = 8, .count = 514 },
	{ "6.2: seqs, UP", KALLSYMS_RELATIVE, .first = true, .seqs = true, .align = 8, .count = 512,
	  .long_len = 127 },
	{ "6.4: new order", KALLSYMS_PERCPU, .align = 8, .count = 700, .long_len = 300 },
	{ "6.4: absolute", KALLSYMS_ABSOLUTE, .align = 8, .count = 701 },
	{ "6.15: base-relative", KALLSYMS_RELATIVE, .align = 8, .count = 1000, .long_len = 128 },
	{ "7.0: place-relative", KALLSYMS_PLACE, .align = 4, .count = 701, .long_len = 511 },
	{ "7.0: other padding", KALLSYMS_PLACE, .align = 4, .count = 300 },
};
#define KF_SHAPES (sizeof(kf_shapes) / sizeof(kf_shapes[0]))

static const char *const kf_pairs[] = { "Tf",	"tf",		"fun",		 "ction",
					"_of_", "function_of_", "Tfunction_of_", "__",
					"Aper", "cpu_" };

/* Makes symbol i. Low values exist in versions that have them; the rest is code from KF_TEXT on. */
static inline void kf_symbol(const struct kf_shape *s, unsigned int i, uint64_t *addr, char *type,
			     char *name)
{
	bool low = s->encoding == KALLSYMS_PERCPU || s->encoding == KALLSYMS_ABSOLUTE;
	unsigned int k = low ? i - KF_LOW : i;

	if (low && i < KF_LOW) {
		*addr = 64ull * i;
		*type = 'A';
		sprintf(name, "percpu_%u", i);
		return;
	}
	*addr = KF_TEXT + s->slide + (k < 3 ? 0 : 16ull * k);
	*type = k % 3 ? 'T' : 't';
	if (k < 3) {
		*type = 'T';
		strcpy(name, k == 0 ? "startup_64" : k == 1 ? "_stext" : "_text");
	} else if (i + 1 == s->count && !s->text_only) {
		*addr = KF_TEXT + s->slide + KF_RODATA;
		*type = 'R';
		strcpy(name, "linux_banner");
	} else if (i + 1 + s->nextra >= s->count && i + 1 < s->count) {
		const struct kf_extra *x = &s->extra[i + 1 + s->nextra - s->count];

		*addr = KF_TEXT + s->slide + x->off;
		*type = 'R';
		strcpy(name, x->name);
	} else if (k == 5 && s->long_len) {
		for (unsigned int c = 0; c < s->long_len; c++)
			name[c] = (char)('a' + (c * 7 + 3) % 23);
		name[s->long_len] = 0;
	} else {
		sprintf(name, "function_of_%u__%x", k, k * 2654435761u);
	}
}

static inline void kf_tokens(char token[256][16])
{
	unsigned int n = 0;

	memset(token, 0, 256 * 16);
	for (unsigned int c = 0; c < 256; c++)
		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    c == '_')
			token[c][0] = (char)c;
		else if (c % 3 == 0 && n < sizeof(kf_pairs) / sizeof(kf_pairs[0]))
			strcpy(token[c], kf_pairs[n++]);
}

static inline void kf_name(struct buf *b, char token[256][16], const char *s, bool byte_length)
{
	uint8_t code[1024];
	unsigned int n = 0;

	while (*s) {
		unsigned int best = (uint8_t)*s;

		for (unsigned int c = 0; c < 256; c++)
			if (token[c][0] == *s && strlen(token[c]) > strlen(token[best]) &&
			    !strncmp(s, token[c], strlen(token[c])))
				best = c;
		code[n++] = (uint8_t)best;
		s += strlen(token[best]);
	}
	if (n > 127 && !byte_length) {
		buf_u8(b, (uint8_t)(n | 0x80));
		buf_u8(b, (uint8_t)(n >> 7));
	} else {
		buf_u8(b, (uint8_t)n);
	}
	buf_add(b, code, n);
}

static inline void kf_addresses(const struct kf_shape *s, struct buf *b, struct kf_places *p)
{
	uint64_t base = KF_TEXT + s->slide, addr;
	char type, name[600];

	buf_align(b, s->align);
	p->addresses = b->len;
	for (unsigned int i = 0; i < s->count; i++) {
		kf_symbol(s, i, &addr, &type, name);
		if (s->encoding == KALLSYMS_ABSOLUTE)
			buf_u64(b, addr);
		else if (s->encoding == KALLSYMS_RELATIVE)
			buf_u32(b, (uint32_t)(addr - base));
		else if (s->encoding == KALLSYMS_PLACE)
			buf_u32(b, (uint32_t)(addr - (base + b->len)));
		else
			buf_u32(b, (uint32_t)(addr < base ? addr : base - 1 - addr));
	}
	p->base = 0;
	if (s->encoding == KALLSYMS_RELATIVE || s->encoding == KALLSYMS_PERCPU) {
		buf_align(b, s->align);
		p->base = b->len;
		buf_u64(b, base);
	}
}

static inline void kf_seqs(const struct kf_shape *s, struct buf *b, struct kf_places *p)
{
	buf_align(b, s->align);
	p->seqs = b->len;
	for (unsigned int i = 0; i < s->count; i++) {
		unsigned int seq = i * 77 % s->count;

		buf_u8(b, (uint8_t)(seq >> 16));
		buf_u8(b, (uint8_t)(seq >> 8));
		buf_u8(b, (uint8_t)seq);
	}
}

static inline void kf_number(const struct kf_shape *s, struct buf *b, uint32_t v)
{
	if (s->wide)
		buf_u64(b, v);
	else
		buf_u32(b, v);
}

/* Appends the image to b, which is empty; the image begins at KF_TEXT + slide. */
static inline void kf_build(const struct kf_shape *s, struct buf *b, struct kf_places *p)
{
	char token[256][16], name[600];
	uint32_t marker[8], off = 0;
	uint64_t addr;

	kf_tokens(token);
	buf_add(b, NULL, KF_RODATA);
	memset(b->data, 0xcc, KF_RODATA);
	buf_add(b, KF_BANNER, sizeof(KF_BANNER));
	if (s->first)
		kf_addresses(s, b, p);
	buf_align(b, s->align);
	p->count = b->len;
	kf_number(s, b, s->count);
	buf_align(b, s->align);
	p->names = b->len;
	for (unsigned int i = 0; i < s->count; i++) {
		if (i % 256 == 0)
			marker[i / 256] = (uint32_t)(b->len - p->names);
		kf_symbol(s, i, &addr, name, name + 1);
		kf_name(b, token, name, s->byte_lengths);
	}
	buf_align(b, s->align);
	p->markers = b->len;
	for (unsigned int i = 0; i < (s->count + 255) / 256; i++)
		kf_number(s, b, marker[i]);
	if (s->seqs)
		kf_seqs(s, b, p);
	buf_align(b, s->align);
	p->tokens = b->len;
	for (unsigned int i = 0; i < 256; i++)
		buf_add(b, token[i], strlen(token[i]) + 1);
	buf_align(b, s->align);
	p->index = b->len;
	for (unsigned int i = 0; i < 256; i++) {
		buf_u16(b, (uint16_t)off);
		off += (uint32_t)strlen(token[i]) + 1;
	}
	if (!s->first) {
		kf_addresses(s, b, p);
		kf_seqs(s, b, p);
	}
	buf_align(b, 8);
	p->end = b->len;
}

static inline int kf_decode(const struct kf_shape *s, const struct buf *b, struct symtab **t,
			    struct kallsyms_info *info, struct err *e)
{
	struct kallsyms_range r = { .va = KF_TEXT + s->slide, .bytes = b->data, .len = b->len };

	return kallsyms_decode(&(struct kallsyms_source){ .range = &r,
							  .nrange = 1,
							  .text = KF_TEXT + s->slide,
							  .end = KF_TEXT + s->slide + b->len,
							  .name = s->name },
			       t, info, e);
}

#endif
