/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A generated kernel for benchmarks of unwinding: KT_FUNCTIONS functions of KT_FUNC_BYTES bytes
 * with the usual prologue, a direct call and an epilogue, their ORC entries, and stacks of KT_DEPTH
 * random functions, so that code, tables and stacks are as cold as with a real profile.
 */
#ifndef KVMPROF_TESTS_BENCH_KERNEL_TEXT_H
#define KVMPROF_TESTS_BENCH_KERNEL_TEXT_H

#include "base/sample.h"
#include "symbolizer/unwind/orc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KT_TEXT 0xffffffff81000000ull
#define KT_STACK 0xffffc90000004000ull
#define KT_FUNCTIONS 20000u
#define KT_FUNC_BYTES 64u
#define KT_BYTES (KT_FUNCTIONS * KT_FUNC_BYTES)
#define KT_DEPTH 15u
#define KT_STACK_BYTES 4096u
#define KT_ORCS (KT_FUNCTIONS * 4) /* four entries for a function */

/* endbr64; push; mov; sub; work; call; work; leave; ret */
static inline void kt_make_text(uint8_t *text, unsigned int *seed)
{
	static const uint8_t head[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48,
					0x89, 0xe5, 0x48, 0x83, 0xec, 0x20 };

	for (unsigned int i = 0; i < KT_FUNCTIONS; i++) {
		uint8_t *p = text + i * KT_FUNC_BYTES;
		int32_t rel = (int32_t)((rand_r(seed) % KT_FUNCTIONS) * KT_FUNC_BYTES) -
			      (int32_t)(i * KT_FUNC_BYTES + 37);

		memset(p, 0x90, KT_FUNC_BYTES);
		memcpy(p, head, sizeof(head));
		for (unsigned int at = 12; at < 32; at += 4)
			memcpy(p + at, "\x48\x8b\x45\xf8", 4);
		p[32] = 0xe8;
		memcpy(p + 33, &rel, 4);
		for (unsigned int at = 37; at < 53; at += 4)
			memcpy(p + at, "\x48\x89\x45\xf0", 4);
		p[53] = 0xc9;
		p[54] = 0xc3;
	}
}

/* Returns a sample with random text addresses. The caller frees it with free(). */
static inline struct sample *kt_sample(unsigned int *seed)
{
	struct sample *s = calloc(1, sizeof(*s) + KT_STACK_BYTES);
	uint64_t at = 64, next, ret;

	if (!s)
		abort();
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->nslices = 1;
	s->stack_len = KT_STACK_BYTES;
	s->slice[0] = (struct sample_slice){ .va = KT_STACK, .len = KT_STACK_BYTES };
	s->regs.rip = KT_TEXT + (1 + rand_r(seed) % (KT_FUNCTIONS - 1)) * KT_FUNC_BYTES + 12 +
		      rand_r(seed) % 10 * 4;
	if (s->regs.rip % KT_FUNC_BYTES == 36)
		s->regs.rip++;
	s->regs.gpr[GPR_RSP] = KT_STACK;
	s->regs.gpr[GPR_RBP] = KT_STACK + at;
	for (unsigned int d = 1; d < KT_DEPTH; d++) {
		next = d + 1 < KT_DEPTH ? KT_STACK + at + 64 + rand_r(seed) % 8 * 16 : 0;
		ret = KT_TEXT + (1 + rand_r(seed) % (KT_FUNCTIONS - 1)) * KT_FUNC_BYTES + 37;
		/* Function 0 is the outermost one: ORC marks the end in no other way. */
		if (d + 1 == KT_DEPTH)
			ret = KT_TEXT + 37;
		memcpy(s->stack + at, &next, 8);
		memcpy(s->stack + at + 8, &ret, 8);
		at = next - KT_STACK;
	}
	return s;
}

/* Stores four entries for each function, for its prologue and epilogue; ips will be at va. */
static inline void kt_orc_bytes(uint8_t ips[KT_ORCS * 4], uint8_t entries[KT_ORCS * 6], uint64_t va)
{
	static const struct {
		uint8_t at;
		int16_t sp, bp;
		uint16_t flags;
	} e[] = {
		{ 0, 8, 0, 0x205 },
		{ 5, 16, -16, 0x215 },
		{ 8, 16, -16, 0x214 },
		{ 54, 8, 0, 0x205 },
	};

	for (unsigned int i = 0; i < KT_ORCS; i++) {
		int32_t rel =
			(int32_t)(KT_TEXT + i / 4 * KT_FUNC_BYTES + e[i % 4].at - (va + 4ull * i));
		uint16_t flags = i < 4 ? 0x100 : e[i % 4].flags;

		memcpy(ips + 4 * i, &rel, 4);
		memcpy(entries + 6 * i, &e[i % 4].sp, 2);
		memcpy(entries + 6 * i + 2, &e[i % 4].bp, 2);
		memcpy(entries + 6 * i + 4, &flags, 2);
	}
}

/* Returns the table of the first `functions` functions. The caller frees it with orc_destroy(). */
static inline struct orc *kt_orc(unsigned int functions)
{
	static uint8_t ips[KT_ORCS * 4], entries[KT_ORCS * 6];
	const uint64_t va = KT_TEXT + (1u << 24);
	struct orc_tables t = { .ips = ips,
				.entries = entries,
				.ips_va = va,
				.n = functions * 4,
				.text_start = KT_TEXT,
				.text_end = KT_TEXT + functions * KT_FUNC_BYTES };
	struct orc *o = NULL;
	struct err e_orc = { 0 };

	kt_orc_bytes(ips, entries, va);
	if (orc_build(&o, &t, &e_orc) < 0) {
		fprintf(stderr, "%s\n", e_orc.text);
		exit(1);
	}
	return o;
}

#endif
