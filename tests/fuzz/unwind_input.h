/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads addresses and stacks from an input, for fuzz_unwind and fuzz_unwind_user. Each is made from
 * a word whose low two bits choose what it is relative to, so that random inputs can form
 * consistent chains.
 */
#ifndef KVMPROF_TESTS_FUZZ_UNWIND_INPUT_H
#define KVMPROF_TESTS_FUZZ_UNWIND_INPUT_H

#include "base/cursor.h"
#include "base/sample.h"

#include <string.h>

#define MAX_TEXT 4096u
#define MAX_STACK 2048u

/* Addresses of text and stack. */
struct unwind_input {
	uint64_t text, stack;
};

static uint64_t input_address(const struct unwind_input *in, struct cursor *c)
{
	uint16_t v = cursor_u16(c);

	switch (v & 3) {
	case 0:
		return in->stack + (v >> 2) % MAX_STACK / 8 * 8;
	case 1:
		return in->text + (v >> 2) % MAX_TEXT;
	case 2:
		return in->stack + (v >> 2) % MAX_STACK;
	default:
		return (v >> 2) ? (uint64_t)v << 48 : 0;
	}
}

/*
 * Fills the stack of a sample. odd: 1 adds 1 to each second word, as in tagged frame pointers; else
 * 0.
 */
static void input_stack(const struct unwind_input *in, struct cursor *c, struct sample *s,
			unsigned int words, unsigned int odd)
{
	s->stack_len = words * 8u;
	for (unsigned int i = 0; i < words; i++) {
		uint64_t v = input_address(in, c) + (i & odd);

		memcpy(s->stack + i * 8u, &v, 8);
	}
}

#endif
