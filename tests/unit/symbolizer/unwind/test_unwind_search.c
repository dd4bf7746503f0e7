/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel without frame pointers and tables: frames by the code's way to its return,
 * by a search of the stack where that leads nowhere, and what must not be believed.
 */
#include "symbolizer/unwind/unwind.h"
#include "tests/text_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TEXT 0xffffffff81000000ull
#define STACK 0xffffc90000010000ull
#define LEN 1024u /* length of the stack, up to a page's end */
#define TOP (STACK + 4096)
#define USER_IP 0x401000ull

/* Functions, 64 bytes each. */
enum { ENTRY, OUTER, INNER, LEAF, DIES, TOP_DIES, BY_POINTER, COUNT };
#define AT(f) (TEXT + 64ull * (f))

static uint8_t text[64 * COUNT];
static struct text_bytes text_bytes = { TEXT, text, sizeof(text) };
static uint8_t mem[sizeof(struct sample) + LEN] __attribute__((aligned(16)));
static struct sample *const s = (struct sample *)mem;
static struct symtab *symbols;
static struct stack out;
static struct unwinder u;

/* Puts code; a call of `callee` (COUNT: by a register) behind it. Returns the return address. */
static uint64_t put_code(unsigned int f, const char *before, size_t n, unsigned int callee,
			 const char *after, size_t m)
{
	uint8_t *p = text + 64 * f;
	size_t call = callee == COUNT ? 2 : 5;

	memcpy(p, before, n);
	if (callee == COUNT) {
		memcpy(p + n, "\xff\xd0", 2);
	} else {
		int32_t rel = (int32_t)(AT(callee) - (AT(f) + n + 5));

		p[n] = 0xe8;
		memcpy(p + n + 1, &rel, 4);
	}
	memcpy(p + n + call, after, m);
	return AT(f) + n + call;
}

static uint64_t in_entry, in_outer, in_inner, in_dies, in_top, in_pointer;

static int setup(void **state)
{
	static const char *const name[] = { "entry", "outer",	 "inner",     "leaf",
					    "dies",  "top_dies", "by_pointer" };

	(void)state;
	memset(text, 0x90, sizeof(text));
	symbols = symtab_create();
	for (unsigned int i = 0; i < COUNT; i++)
		symtab_add(symbols, AT(i), 64, 't', name[i]);
	/* call; iretq */
	in_entry = put_code(ENTRY, "", 0, OUTER, "\x48\xcf", 2);
	/* push %rbx; sub $16,%rsp; call; test; jne; add $16,%rsp; pop %rbx; ret */
	in_outer = put_code(OUTER, "\x53\x48\x83\xec\x10", 5, INNER,
			    "\x85\xc0\x75\x02\x90\x90\x48\x83\xc4\x10\x5b\xc3", 12);
	/* push %rbp; call; pop %rbp; ret */
	in_inner = put_code(INNER, "\x55", 1, LEAF, "\x5d\xc3", 2);
	text[64 * LEAF + 8] = 0xc3;
	/* sub $24,%rsp; call; ud2 */
	in_dies = put_code(DIES, "\x48\x83\xec\x18", 4, LEAF, "\x0f\x0b", 2);
	in_top = put_code(TOP_DIES, "", 0, DIES, "\xc3", 1);
	in_pointer = put_code(BY_POINTER, "\x53", 1, COUNT, "\x5b\xc3", 2);
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
	memcpy(s->stack + (va - s->slice[0].va), &v, 8);
}

/* rip in leaf(); rsp `words` below the stack's end, where a program's registers are. */
static void begin(unsigned int words)
{
	static const uint64_t iret[] = { USER_IP, 0x33, 0x246, 0x7fff0000, 0x2b };

	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->nslices = 1;
	s->stack_len = LEN;
	s->slice[0] = (struct sample_slice){ .va = TOP - LEN, .len = LEN };
	s->regs.rip = AT(LEAF) + 4;
	s->regs.cs = 0x10;
	s->regs.gpr[GPR_RSP] = TOP - 8 * words;
	for (unsigned int i = 0; i < 5; i++)
		put(TOP - 40 + 8 * i, iret[i]);
	u = (struct unwinder){ .read_text = text_bytes_read,
			       .ctx = &text_bytes,
			       .symbols = symbols,
			       .text_start = TEXT,
			       .text_end = TEXT + sizeof(text) };
}

static void expect(enum stack_end end, unsigned int n, ...)
{
	va_list ap;

	unwind(&u, s, &out);
	if (out.end != end || out.n != n)
		fail_msg("%s with %u frames, not %s with %u", stack_end_name(out.end), out.n,
			 stack_end_name(end), n);
	va_start(ap, n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(out.ip[i], va_arg(ap, uint64_t));
		assert_int_equal(out.quality[i], i ? FRAME_SCAN : FRAME_REGS);
	}
	va_end(ap);
}

static void by_the_code(void **state)
{
	uint64_t sp;

	(void)state;
	begin(12);
	sp = s->regs.gpr[GPR_RSP];
	put(sp, in_inner);
	put(sp + 8, 0x1234); /* rbp */
	put(sp + 16, in_outer);
	put(sp + 24, in_dies); /* locals, with an old address in one */
	put(sp + 48, in_entry);
	expect(STACK_END_SCANNED, 4, AT(LEAF) + 4, in_inner, in_outer, in_entry);
	/* without names nothing shows which function is called */
	u.symbols = NULL;
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_NO_FP);
	assert_int_equal(out.n, 1);
	/* what a pointer led to */
	begin(12);
	put(sp, in_pointer);
	put(sp + 16, in_entry);
	expect(STACK_END_SCANNED, 3, AT(LEAF) + 4, in_pointer, in_entry);
}

/* A function that does not come back has no way to a return; its caller calls it. */
static void by_the_stack(void **state)
{
	uint64_t sp;

	(void)state;
	begin(20);
	sp = s->regs.gpr[GPR_RSP];
	put(sp, in_dies);
	put(sp + 8, in_outer); /* behind a call, but of another */
	put(sp + 32, in_top);
	put(sp + 40, in_entry);
	expect(STACK_END_SCANNED, 4, AT(LEAF) + 4, in_dies, in_top, in_entry);
	/* nothing calls it: the stack's end is still a program's */
	put(sp + 32, in_outer);
	expect(STACK_END_SCANNED, 2, AT(LEAF) + 4, in_dies);
}

static void ends(void **state)
{
	uint64_t sp;

	(void)state;
	/* a kernel thread: zeros at the stack's end */
	begin(30);
	sp = s->regs.gpr[GPR_RSP];
	memset(s->stack, 0, LEN);
	put(sp, in_dies);
	expect(STACK_END_SCANNED, 2, AT(LEAF) + 4, in_dies);
	/* no caller at all, and a stack that does not end in sight */
	put(sp, 0x1234);
	s->slice[0].len = s->stack_len = LEN - 8;
	expect(STACK_END_NO_FP, 1, AT(LEAF) + 4);
	s->regs.rip = TEXT - 64;
	unwind(&u, s, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.end, STACK_END_NO_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_code),
		cmocka_unit_test(by_the_stack),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
