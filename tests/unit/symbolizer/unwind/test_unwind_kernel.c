/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cases of kernels only: interrupt entry, other stacks, the ways in which a stack ends.
 *
 * Text: handler() called from two entry stubs, one that marks pt_regs
 * (ENCODE_FRAME_POINTER) and one that does not; work() is interrupted.
 */
#include "symbolizer/unwind/unwind.h"
#include "tests/text_bytes.h"
#include "tests/unit/symbolizer/unwind/memo_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TEXT 0xffffffff81000000ull
#define TASK 0xffffc90000010000ull /* task stack */
#define IRQ 0xffffc90000003000ull  /* interrupt stack */
#define SLICE 2048u

static const uint8_t text[0x100] = {
	/* 00 work: push; mov; call work2; leave; ret */
	0x55,
	0x48,
	0x89,
	0xe5,
	0xe8,
	0x17,
	0,
	0,
	0,
	0x90,
	0xc9,
	0xc3,
	0x90,
	0x90,
	0x90,
	0x90,
	/* 10 frameless assembly that never returns */
	0xe8,
	0xeb,
	0xff,
	0xff,
	0xff,
	0x0f,
	0x0b,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	/* 20 work2: push; mov; nops; pop; ret */
	0x55,
	0x48,
	0x89,
	0xe5,
	0x90,
	0x90,
	0x90,
	0x90,
	0x5d,
	0xc3,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	/* 30 handler: push; mov; nops; call work2; pop; ret */
	0x55,
	0x48,
	0x89,
	0xe5,
	0x90,
	0x90,
	0x90,
	0xe8,
	0xe4,
	0xff,
	0xff,
	0xff,
	0x5d,
	0xc3,
	0x90,
	0x90,
	/* 40 stub: push rax, rcx; call handler; pop rcx, rax; add $8; iretq */
	0x50,
	0x51,
	0xe8,
	0xe9,
	0xff,
	0xff,
	0xff,
	0x59,
	0x58,
	0x48,
	0x83,
	0xc4,
	0x08,
	0x48,
	0xcf,
	0x90,
	/* 50 linux_stub: lea 1(%rsp),%rbp; call handler; jmp somewhere */
	0x48,
	0x8d,
	0x6c,
	0x24,
	0x01,
	0xe8,
	0xd6,
	0xff,
	0xff,
	0xff,
	0xe9,
	0xb1,
	0xff,
	0xff,
	0xff,
	0x90,
	/* 60 opaque_stub: call handler; jmp *%rax */
	0xe8,
	0xcb,
	0xff,
	0xff,
	0xff,
	0xff,
	0xe0,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	/* 70 start: ...; lretq; then */
	0x48,
	0xcb,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
};

static struct text_bytes text_bytes = { TEXT, text, sizeof(text) };

static uint8_t mem[sizeof(struct sample) + 2 * SLICE] __attribute__((aligned(16)));
static struct sample *const s = (struct sample *)mem;
static struct symtab *symbols;
static struct unwinder u;
static struct stack out;

static int setup(void **state)
{
	static const char *const names[] = { "work", "forever",	   "work2",	  "handler",
					     "stub", "linux_stub", "opaque_stub", "start" };

	(void)state;
	symbols = symtab_create();
	for (unsigned int i = 0; i < 8; i++)
		symtab_add(symbols, TEXT + 16 * i, 16, 't', names[i]);
	return symtab_freeze(symbols, NULL);
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	return 0;
}

static void put(uint64_t va, uint64_t v)
{
	for (unsigned int i = 0; i < s->nslices; i++)
		if (va >= s->slice[i].va && va - s->slice[i].va < s->slice[i].len)
			memcpy(s->stack + s->slice[i].off + (va - s->slice[i].va), &v, 8);
}

/* Stopped in handler's body at TEXT + 0x36, frame at IRQ + 0x20. Work's chain lies on the task stack. */
static void begin(uint64_t handler_rbp, uint64_t handler_ret)
{
	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->nslices = 2;
	s->stack_len = 2 * SLICE;
	s->slice[0] = (struct sample_slice){ .va = IRQ, .off = 0, .len = SLICE };
	s->slice[1] = (struct sample_slice){ .va = TASK, .off = SLICE, .len = SLICE };
	s->regs.rip = TEXT + 0x36;
	s->regs.gpr[GPR_RSP] = IRQ + 0x20;
	s->regs.gpr[GPR_RBP] = IRQ + 0x20;
	put(IRQ + 0x20, handler_rbp);
	put(IRQ + 0x28, handler_ret);
	/* work2 interrupted with its frame at TASK + 0x40, called from work, called from forever */
	put(TASK + 0x40, TASK + 0x80);
	put(TASK + 0x48, TEXT + 0x09);
	put(TASK + 0x80, 0);
	put(TASK + 0x88, TEXT + 0x15);
	u = (struct unwinder){ .read_text = text_bytes_read,
			       .ctx = &text_bytes,
			       .symbols = symbols,
			       .text_start = TEXT,
			       .text_end = TEXT + sizeof(text),
			       .frame_pointers = true };
}

static void put_regs(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp, uint64_t bp)
{
	put(at + 32, bp);
	put(at + 128, ip);
	put(at + 136, cs);
	put(at + 152, sp);
}

static void expect(enum stack_end end, unsigned int n, ...)
{
	va_list ap;

	memo_unwind(&u, s, &out);
	if (out.end != end)
		fail_msg("ended with %s, not %s (%u frames)", stack_end_name(out.end),
			 stack_end_name(end), out.n);
	assert_int_equal(out.n, n);
	va_start(ap, n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(out.ip[i] - TEXT, va_arg(ap, int));
	va_end(ap);
}

static void across_pt_regs(void **state)
{
	(void)state;
	begin((IRQ + 0x100) | 1, TEXT + 0x5a);
	put_regs(IRQ + 0x100, TEXT + 0x24, 0x10, TASK + 0x40, TASK + 0x40);
	expect(STACK_END_ROOT, 5, 0x36, 0x5a, 0x24, 0x09, 0x15);
	assert_int_equal(out.quality[2], FRAME_REGS);
	assert_int_equal(out.exact[2], 1);
	assert_int_equal(out.exact[1], 0);
	assert_int_equal(out.n_kernel, 5);
	/* interrupted before work2's push, and between push and mov */
	put_regs(IRQ + 0x100, TEXT + 0x20, 0x10, TASK + 0x48, TASK + 0x80);
	expect(STACK_END_ROOT, 5, 0x36, 0x5a, 0x20, 0x09, 0x15);
	put_regs(IRQ + 0x100, TEXT + 0x21, 0x10, TASK + 0x40, TASK + 0x80);
	expect(STACK_END_ROOT, 5, 0x36, 0x5a, 0x21, 0x09, 0x15);
	assert_int_equal(out.quality[3], FRAME_LEAF);
	/* from user mode; a kernel thread's empty registers; a register block that is not there */
	put_regs(IRQ + 0x100, 0x401000, 0x33, 0x7fff0000, 0x7fff0010);
	expect(STACK_END_USER, 2, 0x36, 0x5a);
	put_regs(IRQ + 0x100, 0, 0, 0, 0);
	expect(STACK_END_ROOT, 2, 0x36, 0x5a);
	put_regs(IRQ + 0x100, 0x1234, 0x10, 0, 0);
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x5a);
	put(IRQ + 0x20, (IRQ + SLICE - 8) | 1);
	expect(STACK_END_CUT, 2, 0x36, 0x5a);
	put(IRQ + 0x20, (IRQ + 0x10) | 1); /* inward */
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x5a);
	/* stopped in the stub itself, marked already */
	begin(0, 0);
	s->regs.rip = TEXT + 0x55;
	s->regs.gpr[GPR_RBP] = (IRQ + 0x100) | 1;
	put_regs(IRQ + 0x100, TEXT + 0x24, 0x10, TASK + 0x40, TASK + 0x40);
	expect(STACK_END_ROOT, 4, 0x55, 0x24, 0x09, 0x15);
}

/* The stub's return address, two registers, an error code, then the processor's frame. */
static void across_iret(void **state)
{
	uint64_t frame = IRQ + 0x48;

	(void)state;
	for (int names = 0; names < 2; names++) {
		begin(TASK + 0x40, TEXT + 0x47);
		u.symbols = names ? symbols : NULL;
		put(frame, TEXT + 0x24);
		put(frame + 8, 0x10);
		put(frame + 24, TASK + 0x40);
		expect(STACK_END_ROOT, 5, 0x36, 0x47, 0x24, 0x09, 0x15);
		assert_int_equal(out.exact[2], 1);
		put(frame + 8, 0x33);
		expect(STACK_END_USER, 2, 0x36, 0x47);
		put(frame + 8, 0x10);
		put(frame + 24, IRQ + 0x200); /* not where the processor would have pushed */
		expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x47);
	}
	/* A stub that cannot be followed: the interrupted function must not be skipped. */
	begin(TASK + 0x40, TEXT + 0x65);
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x65);
}

static void user_frames(void **state)
{
	(void)state;
	begin((IRQ + 0x100) | 1, TEXT + 0x5a);
	/* Let work and work2 be the user's. */
	u.user_start = TEXT;
	u.user_end = TEXT + 0x30;
	put_regs(IRQ + 0x100, TEXT + 0x24, 0x33, TASK + 0x40, TASK + 0x40);
	expect(STACK_END_USER, 5, 0x36, 0x5a, 0x24, 0x09, 0x15);
	assert_int_equal(out.user_end, STACK_END_ROOT);
	assert_int_equal(out.n_kernel, 2);
	s->mode = SAMPLE_USER;
	s->regs.rip = TEXT + 0x24;
	s->regs.gpr[GPR_RSP] = s->regs.gpr[GPR_RBP] = TASK + 0x40;
	expect(STACK_END_ROOT, 3, 0x24, 0x09, 0x15);
	assert_int_equal(out.n_kernel, 0);
	u.user_start = u.user_end = 0;
	expect(STACK_END_NO_FP, 1, 0x24);
}

/* Before its own page tables are on a kernel runs where it was loaded. */
static void where_it_was_loaded(void **state)
{
	(void)state;
	begin(0, 0);
	s->regs.rip = 0x1000000 + 0x36;
	memo_unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_NO_TEXT);
	u.load_start = 0x1000000;
	u.load_len = sizeof(text);
	expect(STACK_END_ROOT, 1, 0x36);
	s->regs.rip = 0x1000000 + sizeof(text);
	memo_unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_NO_TEXT);
	/* a program may have that address, too */
	s->regs.rip = 0x1000000 + 0x36;
	s->mode = SAMPLE_USER;
	memo_unwind(&u, s, &out);
	assert_int_equal(out.ip[0], 0x1000000 + 0x36);
}

static void ends(void **state)
{
	(void)state;
	begin(TASK + 0x40, TEXT + 0x0c); /* not after a call */
	expect(STACK_END_BAD_CHAIN, 1, 0x36);
	begin(0, TEXT + 0x72); /* after the lretq that starts a CPU */
	expect(STACK_END_ROOT, 2, 0x36, 0x72);
	begin(TASK + 0x44, TEXT + 0x09); /* misaligned */
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x09);
	begin(IRQ + 0x20, TEXT + 0x09); /* a loop */
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x09);
	begin(IRQ + SLICE + 64, TEXT + 0x09); /* beyond the copied bytes */
	expect(STACK_END_CUT, 2, 0x36, 0x09);
	begin(0x1000, TEXT + 0x09); /* no stack at all */
	expect(STACK_END_BAD_CHAIN, 2, 0x36, 0x09);
	begin(0, 0);
	expect(STACK_END_ROOT, 1, 0x36);
	s->nslices = 0;
	expect(STACK_END_CUT, 1, 0x36);
	u.frame_pointers = false;
	expect(STACK_END_NO_FP, 1, 0x36);
	u.frame_pointers = true;
	s->regs.rip = TEXT + 0x100;
	expect(STACK_END_NO_TEXT, 1, 0x100);
	u.text_end = TEXT + 0x200; /* text, but no bytes of it */
	expect(STACK_END_NO_TEXT, 1, 0x100);
	for (int i = 1; i < STACK_END_COUNT; i++)
		assert_string_not_equal(stack_end_name(i), "unknown");
}

static void too_deep(void **state)
{
	static uint8_t big[sizeof(struct sample) + 8192] __attribute__((aligned(16)));
	struct sample *d = (struct sample *)big;

	(void)state;
	begin(0, 0);
	memcpy(d, s, sizeof(*d));
	d->nslices = 1;
	d->slice[0] = (struct sample_slice){ .va = TASK, .len = 8192 };
	d->stack_len = 8192;
	d->regs.gpr[GPR_RSP] = d->regs.gpr[GPR_RBP] = TASK;
	for (unsigned int i = 0; i < 511; i++) {
		uint64_t frame[2] = { TASK + 16 * (i + 1), TEXT + 0x09 };

		memcpy(d->stack + 16 * i, frame, 16);
	}
	memo_unwind(&u, d, &out);
	assert_int_equal(out.n, STACK_MAX_FRAMES);
	assert_int_equal(out.end, STACK_END_DEPTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(across_pt_regs),      cmocka_unit_test(across_iret),
		cmocka_unit_test(user_frames),	       cmocka_unit_test(ends),
		cmocka_unit_test(where_it_was_loaded), cmocka_unit_test(too_deep),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
