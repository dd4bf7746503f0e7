/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that lead through modules, by ORC and by frame pointers. The kernel and
 * two modules consist of the same functions of 64 bytes: push %rbp; mov %rsp,%rbp;
 * at 16 a call to the function itself; at 53 leave; ret.
 */
#include "symbolizer/core/symtab.h"
#include "symbolizer/unwind/unwind.h"
#include "tests/text_bytes.h"
#include "tests/unit/symbolizer/unwind/memo_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KERNEL 0xffffffff81000000ull
#define FIRST 0xffffffffa0000000ull
#define SECOND 0xffffffffa0010000ull
#define STACK 0xffffc90000000000ull
#define STACK_BYTES 1024u
#define FUNCTIONS 16u
#define BYTES (64 * FUNCTIONS)
/* A function's body, its call's return address, its leave and its ret. */
#define BODY(base, i) ((base) + 64ull * (i) + 8)
#define RET(base, i) ((base) + 64ull * (i) + 21)
#define AT_RET(base, i) ((base) + 64ull * (i) + 54)

static uint8_t text[3][BYTES];
static const uint64_t base[3] = { KERNEL, FIRST, SECOND };
static struct symtab *symbols[3];
static struct orc *orc[3];
static struct unwind_region region[2];
static uint8_t mem[sizeof(struct sample) + STACK_BYTES] __attribute__((aligned(16)));
static struct sample *const s = (struct sample *)mem;
static struct unwinder u;
static struct stack out;

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	for (unsigned int i = 0; i < 3; i++) {
		struct text_bytes t = { base[i], text[i], BYTES };
		size_t n = text_bytes_read(&t, va, dst, len);

		if (n)
			return n;
	}
	return 0;
}

static void make_text(unsigned int m)
{
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		uint8_t *p = text[m] + 64 * i;

		memset(p, 0x90, 64);
		memcpy(p, "\x55\x48\x89\xe5", 4);
		memcpy(p + 16, "\xe8\xeb\xff\xff\xff", 5);
		p[53] = 0xc9;
		p[54] = 0xc3;
	}
}

static int make_tables(unsigned int m)
{
	static const struct {
		uint8_t at;
		int16_t sp, bp;
		uint16_t flags;
	} e[] = { { 0, 8, 0, 0x205 },
		  { 1, 16, -16, 0x215 },
		  { 4, 16, -16, 0x214 },
		  { 54, 8, 0, 0x205 } };
	static uint8_t ips[16 * FUNCTIONS], entries[24 * FUNCTIONS];
	struct orc_tables t = { .ips = ips,
				.entries = entries,
				.ips_va = base[m] + 0x8000,
				.n = 4 * FUNCTIONS,
				.text_start = base[m],
				.text_end = base[m] + BYTES };
	char name[16];

	for (unsigned int i = 0; i < 4 * FUNCTIONS; i++) {
		int32_t rel = (int32_t)(base[m] + i / 4 * 64 + e[i % 4].at - (t.ips_va + 4 * i));
		/* The kernel's first function is the outermost. */
		uint16_t flags = m == 0 && i < 4 ? 0x100 : e[i % 4].flags;

		memcpy(ips + 4 * i, &rel, 4);
		memcpy(entries + 6 * i, &e[i % 4].sp, 2);
		memcpy(entries + 6 * i + 2, &e[i % 4].bp, 2);
		memcpy(entries + 6 * i + 4, &flags, 2);
	}
	symbols[m] = symtab_create();
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "m%u_f%u", m, i);
		if (symtab_add(symbols[m], base[m] + 64 * i, 64, 't', name))
			return -1;
	}
	return symtab_freeze(symbols[m], NULL) || orc_build(&orc[m], &t, NULL);
}

static int setup(void **state)
{
	(void)state;
	for (unsigned int m = 0; m < 3; m++) {
		make_text(m);
		if (make_tables(m))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned int m = 0; m < 3; m++) {
		symtab_destroy(symbols[m]);
		orc_destroy(orc[m]);
	}
	return 0;
}

/* At rip, whose frame is at STACK + 64 or, at a ret, gone; then returns to these, 64 bytes apart. */
static void begin(bool by_orc, uint64_t rip, unsigned int n, ...)
{
	uint64_t at = 64;
	va_list ap;

	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->nslices = 1;
	s->stack_len = STACK_BYTES;
	s->slice[0] = (struct sample_slice){ .va = STACK, .len = STACK_BYTES };
	s->regs.rip = rip;
	s->regs.cs = 0x10;
	s->regs.gpr[GPR_RSP] = rip % 64 == 54 ? STACK + 72 : STACK;
	s->regs.gpr[GPR_RBP] = rip % 64 == 54 ? STACK + 128 : STACK + 64;
	va_start(ap, n);
	for (unsigned int i = 0; i < n; i++, at += 64) {
		uint64_t next = i + 1 < n ? STACK + at + 64 : 0, ret = va_arg(ap, uint64_t);

		memcpy(s->stack + at, &next, 8);
		memcpy(s->stack + at + 8, &ret, 8);
	}
	va_end(ap);
	for (unsigned int m = 1; m < 3; m++)
		region[m - 1] = (struct unwind_region){ .start = base[m],
							.end = base[m] + BYTES,
							.orc = orc[m],
							.symbols = symbols[m] };
	u = (struct unwinder){ .read_text = read_text,
			       .symbols = symbols[0],
			       .orc = by_orc ? orc[0] : NULL,
			       .frame_pointers = !by_orc,
			       .text_start = KERNEL,
			       .text_end = KERNEL + BYTES,
			       .region = region,
			       .nregions = 2 };
}

static void expect(enum stack_end end, unsigned int n, ...)
{
	va_list ap;

	memo_unwind(&u, s, &out);
	if (out.end != end || out.n != n)
		fail_msg("%s with %u frames, not %s with %u", stack_end_name(out.end), out.n,
			 stack_end_name(end), n);
	va_start(ap, n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(out.ip[i], va_arg(ap, uint64_t));
	va_end(ap);
	assert_int_equal(out.n_kernel, n);
}

/* kernel <- second <- kernel <- first <- first <- kernel */
static void through(void **state)
{
	(void)state;
	for (int by_orc = 0; by_orc < 2; by_orc++) {
		begin(by_orc, BODY(KERNEL, 3), 5, RET(SECOND, 2), RET(KERNEL, 5), RET(FIRST, 15),
		      RET(FIRST, 1), RET(KERNEL, 0));
		expect(STACK_END_ROOT, 6, BODY(KERNEL, 3), RET(SECOND, 2), RET(KERNEL, 5),
		       RET(FIRST, 15), RET(FIRST, 1), RET(KERNEL, 0));
		for (unsigned int i = 1; i < 6; i++)
			assert_int_equal(out.quality[i], by_orc ? FRAME_ORC : FRAME_FP);
		/* stopped in a module, also where its frame is gone */
		begin(by_orc, BODY(FIRST, 0), 2, RET(KERNEL, 4), RET(KERNEL, 0));
		expect(STACK_END_ROOT, 3, BODY(FIRST, 0), RET(KERNEL, 4), RET(KERNEL, 0));
		begin(by_orc, AT_RET(SECOND, 3), 3, RET(SECOND, 4), RET(KERNEL, 4), RET(KERNEL, 0));
		expect(STACK_END_ROOT, 4, AT_RET(SECOND, 3), RET(SECOND, 4), RET(KERNEL, 4),
		       RET(KERNEL, 0));
		assert_int_equal(out.quality[1], by_orc ? FRAME_ORC : FRAME_LEAF);
	}
}

static void bounds(void **state)
{
	(void)state;
	for (int by_orc = 0; by_orc < 2; by_orc++) {
		/* the regions are the caller's, and may go */
		begin(by_orc, BODY(KERNEL, 3), 2, RET(FIRST, 2), RET(KERNEL, 0));
		expect(STACK_END_ROOT, 3, BODY(KERNEL, 3), RET(FIRST, 2), RET(KERNEL, 0));
		u.region++;
		u.nregions--;
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		u.nregions = 0;
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		/* not after a call; before and behind a module, and in between */
		begin(by_orc, BODY(KERNEL, 3), 2, RET(FIRST, 2) + 1, RET(KERNEL, 0));
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		begin(by_orc, BODY(KERNEL, 3), 2, FIRST, RET(KERNEL, 0));
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		begin(by_orc, BODY(KERNEL, 3), 2, FIRST + BYTES + 21, RET(KERNEL, 0));
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		/* a call to where nothing is */
		begin(by_orc, BODY(KERNEL, 3), 2, RET(FIRST, 2), RET(KERNEL, 0));
		memcpy(text[1] + 64 * 2 + 17, "\0\0\x10\0", 4);
		expect(STACK_END_BAD_CHAIN, 1, BODY(KERNEL, 3));
		make_text(1);
		/* the end of a module's text: a call that does not return */
		memcpy(text[1] + BYTES - 5, "\xe8\0\xfe\xff\xff", 5);
		begin(by_orc, BODY(KERNEL, 3), 2, FIRST + BYTES, RET(KERNEL, 0));
		region[0].symbols = NULL;
		memo_unwind(&u, s, &out);
		assert_true(out.n >= 2);
		assert_int_equal(out.ip[1], FIRST + BYTES);
		make_text(1);
	}
}

/* Modules return through the kernel's thunk where the processor asks for it. */
static void return_thunk(void **state)
{
	int32_t rel = (int32_t)(KERNEL + 64 * 9 - (FIRST + 64 * 2 + 54 + 5));

	(void)state;
	begin(false, AT_RET(FIRST, 2), 2, RET(KERNEL, 4), RET(KERNEL, 0));
	text[1][64 * 2 + 54] = 0xe9;
	memcpy(text[1] + 64 * 2 + 55, &rel, 4);
	memcpy(text[0] + 64 * 9, "\xc3\xcc", 2);
	expect(STACK_END_ROOT, 3, AT_RET(FIRST, 2), RET(KERNEL, 4), RET(KERNEL, 0));
	assert_int_equal(out.quality[1], FRAME_LEAF);
	/* whose place is not known to be text any more */
	u.text_start = KERNEL + 64 * 10;
	memo_unwind(&u, s, &out);
	assert_true(out.end != STACK_END_ROOT);
	make_text(0);
	make_text(1);
}

/* A module without a table, in a kernel that has one: only a search is left. */
static void no_table(void **state)
{
	(void)state;
	begin(true, BODY(KERNEL, 3), 3, RET(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
	/* an indirect call may have led anywhere */
	memcpy(text[0] + 64 * 5 + 16, "\x90\x90\x90\xff\xd0", 5);
	region[0].orc = NULL;
	expect(STACK_END_SCANNED, 4, BODY(KERNEL, 3), RET(FIRST, 2), RET(KERNEL, 5),
	       RET(KERNEL, 0));
	assert_int_equal(out.quality[1], FRAME_ORC);
	assert_int_equal(out.quality[2], FRAME_SCAN);
	/* neither names nor a table: a direct call from elsewhere is not believed */
	make_text(0);
	region[0].symbols = NULL;
	expect(STACK_END_NO_ORC, 2, BODY(KERNEL, 3), RET(FIRST, 2));
	/* generated code lies in no region */
	begin(true, FIRST + 0x8000, 2, RET(SECOND, 5), RET(KERNEL, 0));
	memcpy(text[2] + 64 * 5 + 16, "\x90\x90\x90\xff\xd0", 5);
	expect(STACK_END_SCANNED, 3, FIRST + 0x8000, RET(SECOND, 5), RET(KERNEL, 0));
	assert_int_equal(out.quality[1], FRAME_SCAN);
	make_text(2);
}

/* Code of BPF's JIT has frame pointers, also in a kernel with an unwind table. */
static void with_frames(void **state)
{
	(void)state;
	for (int by_orc = 0; by_orc < 2; by_orc++) {
		begin(by_orc, BODY(KERNEL, 3), 4, RET(FIRST, 2), RET(FIRST, 15), RET(KERNEL, 5),
		      RET(KERNEL, 0));
		region[0].orc = NULL;
		region[0].form = UNWIND_FORM_FRAMES;
		expect(STACK_END_ROOT, 5, BODY(KERNEL, 3), RET(FIRST, 2), RET(FIRST, 15),
		       RET(KERNEL, 5), RET(KERNEL, 0));
		assert_int_equal(out.quality[2], FRAME_FP);
		assert_int_equal(out.quality[4], by_orc ? FRAME_ORC : FRAME_FP);
		/* stopped in it, with its frame and where that is gone */
		begin(by_orc, BODY(FIRST, 2), 2, RET(KERNEL, 5), RET(KERNEL, 0));
		region[0].orc = NULL;
		region[0].form = UNWIND_FORM_FRAMES;
		expect(STACK_END_ROOT, 3, BODY(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
		begin(by_orc, AT_RET(FIRST, 2), 2, RET(KERNEL, 5), RET(KERNEL, 0));
		region[0].orc = NULL;
		region[0].form = UNWIND_FORM_FRAMES;
		expect(STACK_END_ROOT, 3, AT_RET(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
		assert_int_equal(out.quality[1], FRAME_LEAF);
		/* a frame that leads nowhere */
		begin(by_orc, BODY(FIRST, 2), 2, KERNEL + 64 * 5 + 3, RET(KERNEL, 0));
		region[0].orc = NULL;
		region[0].form = UNWIND_FORM_FRAMES;
		expect(STACK_END_BAD_CHAIN, 1, BODY(FIRST, 2));
	}
}

/* A trampoline goes by the table of the code that it is a copy of. */
static void copied(void **state)
{
	(void)state;
	begin(true, BODY(KERNEL, 3), 3, RET(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
	region[0] = (struct unwind_region){ .start = FIRST + 128,
					    .end = FIRST + 192,
					    .form = UNWIND_FORM_COPY,
					    .copy_of = KERNEL + 64 * 7 };
	expect(STACK_END_ROOT, 4, BODY(KERNEL, 3), RET(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
	assert_int_equal(out.quality[2], FRAME_ORC);
	begin(true, AT_RET(FIRST, 2), 2, RET(KERNEL, 5), RET(KERNEL, 0));
	region[0] = (struct unwind_region){ .start = FIRST + 128,
					    .end = FIRST + 192,
					    .form = UNWIND_FORM_COPY,
					    .copy_of = KERNEL + 64 * 7 };
	expect(STACK_END_ROOT, 3, AT_RET(FIRST, 2), RET(KERNEL, 5), RET(KERNEL, 0));
	assert_int_equal(out.quality[1], FRAME_ORC);
	/* a copy of what is no code, and of itself */
	region[0].copy_of = 8;
	memo_unwind(&u, s, &out);
	assert_int_not_equal(out.end, STACK_END_ROOT);
	region[0].copy_of = region[0].start;
	memo_unwind(&u, s, &out);
	assert_int_not_equal(out.end, STACK_END_ROOT);
}

/* An optimised kprobe: the registers of the probed place lie above the call of its handler. */
static void probed(void **state)
{
	enum { REGS = 80 };
	uint64_t cs = 0x10, flags = 2, sp = STACK + 512, ip = BODY(KERNEL, 6), bp = STACK + 576,
		 ret = RET(KERNEL, 0);

	(void)state;
	begin(true, BODY(KERNEL, 3), 1, RET(FIRST, 2));
	region[0].orc = NULL;
	region[0].form = UNWIND_FORM_REGS;
	memset(s->stack + REGS, 0x77, 168);
	memcpy(s->stack + REGS + 32, &bp, 8);
	memcpy(s->stack + REGS + 128, &ip, 8);
	memcpy(s->stack + REGS + 136, &cs, 8);
	memcpy(s->stack + REGS + 144, &flags, 8);
	memcpy(s->stack + REGS + 152, &sp, 8);
	memcpy(s->stack + 584, &ret, 8);
	expect(STACK_END_ROOT, 4, BODY(KERNEL, 3), RET(FIRST, 2), ip, RET(KERNEL, 0));
	assert_int_equal(out.exact[2], 1);
	/* before the handler has written them */
	memset(s->stack + REGS + 128, 0x77, 24);
	expect(STACK_END_BAD_CHAIN, 2, BODY(KERNEL, 3), RET(FIRST, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through),	cmocka_unit_test(bounds),
		cmocka_unit_test(return_thunk), cmocka_unit_test(no_table),
		cmocka_unit_test(with_frames),	cmocka_unit_test(copied),
		cmocka_unit_test(probed),
	};

	return cmocka_run_group_tests_name("unwind_module", tests, setup, teardown);
}
