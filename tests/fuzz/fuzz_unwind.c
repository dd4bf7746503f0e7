/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile registers, stack and text. The input: 8 bytes of flags and shape, then
 * registers, symbols, stack and text in the order below, by unwind_input.h.
 */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/unwind/unwind.h"
#include "tests/fuzz/unwind_input.h"
#include "tests/sample_check.h"
#include "tests/text_bytes.h"

#include <stdlib.h>
#include <string.h>

#define TEXT 0xffffffff81000000ull
#define STACK 0xffffc90000000000ull

static const struct unwind_input in = { TEXT, STACK };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[sizeof(struct sample) + MAX_STACK] __attribute__((aligned(16)));
	static uint8_t bytes[MAX_TEXT];
	struct text_bytes text = { TEXT, bytes, 0 };
	static struct stack out;
	struct sample *s = (struct sample *)mem;
	struct symtab *t = NULL;
	struct unwinder u = { .read_text = text_bytes_read, .ctx = &text, .text_start = TEXT };
	struct cursor c;
	uint8_t flags, nsym, words;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	nsym = cursor_u8(&c) % 16;
	words = cursor_u8(&c);
	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = (flags & 1) ? SAMPLE_USER : SAMPLE_KERNEL;
	u.frame_pointers = !(flags & 2);
	s->nslices = cursor_u8(&c) % (SAMPLE_MAX_SLICES + 1);
	cursor_skip(&c, 4);
	s->regs.rip = input_address(&in, &c);
	s->regs.gpr[GPR_RSP] = input_address(&in, &c);
	s->regs.gpr[GPR_RBP] = input_address(&in, &c);
	s->regs.gpr[GPR_R10] = input_address(&in, &c);
	if (flags & 4) {
		t = symtab_create();
		for (unsigned int i = 0; i < nsym; i++)
			symtab_add(t, TEXT + cursor_u16(&c) % MAX_TEXT, cursor_u8(&c), 'T',
				   (flags & 8) && i % 2 ? "f.cold" : "f");
		symtab_freeze(t, NULL);
		u.symbols = t;
	}
	input_stack(&in, &c, s, words, (flags & 32) ? 1 : 0);
	for (unsigned int i = 0; i < s->nslices; i++) {
		uint32_t off = s->stack_len / SAMPLE_MAX_SLICES * i;

		s->slice[i] = (struct sample_slice){
			.va = STACK + ((flags & 64) ? 0 : off),
			.off = off,
			.len = (flags & 128) ? s->stack_len - off
					     : s->stack_len / SAMPLE_MAX_SLICES,
		};
	}
	text.len = cursor_left(&c) < MAX_TEXT ? cursor_left(&c) : MAX_TEXT;
	if (text.len)
		memcpy(bytes, cursor_bytes(&c, text.len), text.len);
	u.text_end = TEXT + text.len;
	if (flags & 16) {
		u.user_start = TEXT;
		u.user_end = TEXT + text.len / 2;
	}
	if (sample_check(s, sample_size(s)) < 0)
		abort();
	unwind(&u, s, &out);
	if (out.n == 0 || out.n > STACK_MAX_FRAMES || out.n_kernel > out.n || out.end == 0 ||
	    out.end >= STACK_END_COUNT || out.ip[0] != s->regs.rip)
		abort();
	for (unsigned int i = 1; i < out.n; i++)
		if (out.ip[i] < TEXT || out.ip[i] > u.text_end)
			abort();
	symtab_destroy(t);
	return 0;
}
