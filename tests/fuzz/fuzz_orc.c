/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile ORC tables, and unwinding by those that pass. The input: a byte of
 * flags, one of stack words, two of the number of entries; then per entry its
 * distance from the one before (u8) and six bytes; then stack words and text.
 * With flag 1 the input is an image instead.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/unwind/unwind.h"
#include "tests/text_bytes.h"

#include <stdlib.h>
#include <string.h>

#define TEXT 0xffffffff81000000ull
#define TABLE 0xffffffff82000000ull
#define STACK 0xffffc90000000000ull
#define MAX_TEXT 4096u
#define MAX_ENTRIES 512u
#define MAX_STACK 2048u

static uint8_t text[MAX_TEXT];

static struct text_bytes text_bytes = { TEXT, text, sizeof(text) };

static void check_table(const struct orc *o)
{
	uint64_t va, last = 0;

	for (size_t i = 0; i < orc_count(o); i++) {
		const struct orc_entry *x = orc_at(o, i, &va), *y = orc_lookup(o, va);

		if (va < last || x->type > ORC_REGS_PARTIAL || x->sp_reg > ORC_AX)
			abort();
		/* If several entries have one address, the last one counts. */
		if (y && y < x)
			abort();
		last = va;
	}
	(void)orc_lookup(o, 0);
	(void)orc_lookup(o, UINT64_MAX);
}

static int fuzz_image(const uint8_t *data, size_t size)
{
	struct orc *o = NULL;
	struct kimage k;
	bool percpu;

	if (kimage_parse(&k, "fuzz", data, size, NULL) < 0 || orc_open(&o, &k, NULL) < 0)
		return 0;
	check_table(o);
	(void)orc_irq_stack_ptr(o, &k, &percpu);
	if (orc_slide(o, 0x1c400000, NULL) == 0) {
		check_table(o);
		(void)orc_irq_stack_ptr(o, &k, &percpu);
	}
	orc_destroy(o);
	return 0;
}

static uint64_t address(struct cursor *c)
{
	uint16_t v = cursor_u16(c);

	switch (v & 3) {
	case 0:
		return STACK + (v >> 2) % MAX_STACK / 8 * 8;
	case 1:
		return TEXT + (v >> 2) % MAX_TEXT;
	case 2:
		return v >> 2;
	default:
		return (uint64_t)v << 48;
	}
}

static void fuzz_unwind(struct cursor *c, const struct orc *o, unsigned int words, uint8_t flags)
{
	static uint8_t mem[sizeof(struct sample) + MAX_STACK] __attribute__((aligned(16)));
	static struct stack out;
	struct unwinder u = { .read_text = text_bytes_read,
			      .ctx = &text_bytes,
			      .orc = o,
			      .text_start = TEXT,
			      .text_end = TEXT + MAX_TEXT,
			      .frame_pointers = flags & 2 };
	/* With flag 8 the last three quarters are modules, one of them without a table. */
	const struct unwind_region region[] = {
		{ .start = TEXT + MAX_TEXT / 4, .end = TEXT + MAX_TEXT / 2, .orc = o },
		{ .start = TEXT + MAX_TEXT / 2,
		  .end = TEXT + MAX_TEXT / 4 * 3,
		  .form = (enum unwind_form)(flags >> 4 & 3),
		  .copy_of = TEXT + (flags & 64 ? MAX_TEXT / 2 + 8 : 16) },
		{ .start = TEXT + MAX_TEXT / 4 * 3 + 64, .end = TEXT + MAX_TEXT, .orc = o },
	};
	struct sample *s = (struct sample *)mem;
	size_t n;

	if (flags & 8) {
		u.text_end = TEXT + MAX_TEXT / 4;
		u.region = region;
		u.nregions = 3;
	}

	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->regs.rip = address(c);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		s->regs.gpr[i] = address(c);
	s->stack_len = words * 8;
	for (unsigned int i = 0; i < words; i++) {
		uint64_t v = address(c);

		memcpy(s->stack + 8 * i, &v, 8);
	}
	s->nslices = 2;
	s->slice[0] = (struct sample_slice){ .va = STACK, .len = words / 2 * 8 };
	s->slice[1] = (struct sample_slice){ .va = STACK + ((flags & 4) ? 1024 : words / 2 * 8),
					     .off = words / 2 * 8,
					     .len = (words - words / 2) * 8 };
	n = cursor_left(c) < MAX_TEXT ? cursor_left(c) : MAX_TEXT;
	memset(text, 0xe8, sizeof(text));
	if (n)
		memcpy(text, cursor_bytes(c, n), n);
	unwind(&u, s, &out);
	if (out.n == 0 || out.n > STACK_MAX_FRAMES || out.end == 0 || out.end >= STACK_END_COUNT ||
	    out.ip[0] != s->regs.rip)
		abort();
	for (unsigned int i = 1; i < out.n; i++)
		if (!(out.ip[i] >> 63) || out.quality[i] == 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t ips[4 * MAX_ENTRIES], entries[6 * MAX_ENTRIES];
	struct orc_tables t = { .ips = ips,
				.entries = entries,
				.ips_va = TABLE,
				.text_start = TEXT,
				.text_end = TEXT + MAX_TEXT };
	struct orc *o = NULL;
	unsigned int words;
	uint64_t at = TEXT;
	struct cursor c;
	uint8_t flags;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	if (flags & 1)
		return fuzz_image(data + 1, size - 1);
	words = cursor_u8(&c);
	t.n = cursor_u16(&c) % (MAX_ENTRIES + 1);
	for (size_t i = 0; i < t.n; i++) {
		int32_t rel;

		at += (uint64_t)(int64_t)(int8_t)cursor_u8(&c);
		rel = (int32_t)(at - (TABLE + 4 * i));
		memcpy(ips + 4 * i, &rel, 4);
		for (unsigned int k = 0; k < 6; k++)
			entries[6 * i + k] = cursor_u8(&c);
	}
	if (orc_build(&o, &t, NULL) < 0)
		return 0;
	check_table(o);
	fuzz_unwind(&c, o, words, flags);
	orc_destroy(o);
	return 0;
}
