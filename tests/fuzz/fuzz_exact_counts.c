/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exact counts: shadow stacks follow any stream of blocks within their caps, and lose none of it but
 * what they count as lost; a file of counts is what it says, or refused.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "vmm/exact/countfile.h"

#include <stdlib.h>
#include <string.h>

static struct callstacks_regs regs;
static uint64_t pc;
static struct cursor memory;

static uint64_t cpu_sp(void *ctx)
{
	(void)ctx;
	return regs.sp;
}

static uint64_t cpu_pc(void *ctx)
{
	(void)ctx;
	return pc;
}

static void cpu_regs(void *ctx, struct callstacks_regs *out)
{
	(void)ctx;
	*out = regs;
}

static bool cpu_read(void *ctx, uint64_t va, void *dst, size_t len)
{
	const uint8_t *p = cursor_bytes(&memory, len);

	(void)ctx;
	(void)va;
	if (p)
		memcpy(dst, p, len);
	return p != NULL;
}

static void check_file(const uint8_t *data, size_t size)
{
	struct countfile f;
	struct err e = { 0 };

	if (countfile_parse(&f, data, size, &e)) {
		if (!e.text[0])
			abort();
		return;
	}
	for (uint32_t i = 0; i < f.ncounts; i++)
		if (f.count[i].node >= f.nnodes || f.count[i].block >= f.nblocks)
			abort();
	countfile_deinit(&f);
}

/* Few addresses, so that they meet: a byte each. */
static void feed(struct callstacks *c, struct cursor *in, uint64_t *fed)
{
	static const uint16_t off[4] = { 0, 1, 2, 3 };
	uint8_t a = cursor_u8(in), b = cursor_u8(in), d = cursor_u8(in);
	struct callstacks_block x = { .pc = 0x1000 + a,
				      .insns = (uint16_t)(1 + (b & 3)),
				      .off = off,
				      .kind = (uint8_t)((b >> 2 & 15) % (BLOCKEND_SYSRET + 1)),
				      .has_target = b & 64,
				      .moves_sp = b & 128 };
	struct callstacks_block *block;

	x.end = x.pc + x.insns;
	x.target = x.has_target ? 0x1000 + cursor_u8(in) : 0;
	regs.sp += (uint64_t)(int64_t)(int8_t)d * (d & 1 ? 8 : 0x1000);
	if (b & 1 && d & 2)
		regs.cpl = regs.cpl ? 0 : 3;
	regs.cr3 = (uint64_t)(a & 3) << 13;
	block = callstacks_block(c, &x);
	if (!block)
		return;
	pc = x.pc + (d & 4 ? 0x100000 : 0);
	callstacks_run(c, block);
	++*fed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct callstacks_cpu cpu = { NULL, cpu_sp, cpu_pc, cpu_regs, cpu_read };
	struct callstacks_stats st;
	struct callstacks *c;
	struct cursor in;
	uint64_t fed = 0, counted = 0;

	check_file(data, size);
	if (size)
		blockend_of(data, size < 15 ? size : 15);
	if (callstacks_create(&c, &cpu, 1, 64, 256))
		return 0;
	memset(&regs, 0, sizeof(regs));
	regs.sp = UINT64_C(0xffffc90000010000);
	cursor_init(&in, data, size);
	cursor_init(&memory, data, size);
	while (cursor_left(&in))
		feed(c, &in, &fed);
	callstacks_stats(c, &st);
	for (uint32_t i = 0; i < callstacks_tree(c)->ncounts; i++)
		counted += callstacks_tree(c)->count[i].times;
	/* A block of which nothing ran is not there; each other is counted once. */
	if (counted + st.lost > fed || counted + st.lost + st.partial < fed)
		abort();
	callstacks_destroy(c);
	return 0;
}
