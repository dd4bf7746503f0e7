/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinding by ORC on stacks made by hand: each base of a frame, the ways across
 * pt_regs and stacks, the ends, and what must not be believed.
 *
 * Text: SLOTS pieces of 64 bytes. Each begins with a call at offset 0 (so that +5
 * is a return address) to the slot before, the first to the one after; the table has one entry per slot.
 */
#include "symbolizer/unwind/unwind.h"
#include "tests/text_bytes.h"
#include "tests/unit/symbolizer/unwind/memo_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TEXT 0xffffffff81000000ull
#define TABLE 0xffffffff82000000ull
#define TASK 0xffffc90000010000ull
#define IRQ 0xffffc90000003000ull
#define SLICE 2048u
#define SLOTS 64u
#define SLOT(i) (TEXT + 64ull * (i))
#define RET(i) (SLOT(i) + 5)
#define NFILL 2000u /* plain entries beyond, so that the table looks like one */

/* Indices of the slots. */
enum {
	SP8,
	SP24,
	BP16,
	BP_FROM_BP,
	SP_IND,
	BP_IND,
	R10,
	R13,
	DI,
	DX,
	REGS,
	PARTIAL,
	END,
	UNKNOWN,
	SIGNAL,
	PREV,
	REGS_IND,
	STUB,
	THUNK,
	POPPED,
	HANDLER, /* return_to_handler up to 6.3, and since */
	HANDLER_6_4,
	PROBE, /* a return probe's trampoline */
	PLAIN
};

static const struct {
	int sp, bp;
	unsigned int flags;
} kind[PLAIN] = {
	[SP8] = { 8, 0, 0x205 },	 [SP24] = { 24, -16, 0x215 },  [BP16] = { 16, -16, 0x214 },
	[BP_FROM_BP] = { 16, 0, 0x244 }, [SP_IND] = { 8, 0, 0x209 },   [BP_IND] = { -8, 0, 0x208 },
	[R10] = { 0, 0, 0x206 },	 [R13] = { 0, 0, 0x207 },      [DI] = { 0, 0, 0x203 },
	[DX] = { 0, 0, 0x202 },		 [REGS] = { 0, 0, 0xb05 },     [PARTIAL] = { 8, 0, 0xc05 },
	[END] = { 0, 0, 0x100 },	 [UNKNOWN] = { 0, 0, 0 },      [SIGNAL] = { 8, 0, 0xa05 },
	[PREV] = { 8, 0, 0x225 },	 [REGS_IND] = { 8, 0, 0xb09 }, [STUB] = { 0, 0, 0 },
	[THUNK] = { 0, 0, 0x100 },	 [POPPED] = { -56, 0, 0xb05 }, [HANDLER] = { 0, 0, 0x100 },
	[HANDLER_6_4] = { 0, 0, 0 },	 [PROBE] = { 8, 0, 0x205 },
};

static uint8_t text[SLOTS * 64];
static uint8_t mem[sizeof(struct sample) + 2 * SLICE + SAMPLE_MAX_RETURNS]
	__attribute__((aligned(16)));
static struct sample *const s = (struct sample *)mem;
static struct symtab *symbols;
static struct orc *orc;
static struct unwinder u;
static struct stack out;

static struct text_bytes text_bytes = { TEXT, text, sizeof(text) };

static int setup(void **state)
{
	static uint8_t ips[4 * (SLOTS + NFILL)], entries[6 * (SLOTS + NFILL)];
	struct orc_tables t = { .ips = ips,
				.entries = entries,
				.ips_va = TABLE,
				.n = SLOTS + NFILL,
				.text_start = TEXT,
				.text_end = SLOT(SLOTS) + NFILL };
	char name[8] = "f00";

	(void)state;
	symbols = symtab_create();
	memset(text, 0x90, sizeof(text));
	for (unsigned int i = 0; i < SLOTS + NFILL; i++) {
		uint64_t va = i < SLOTS ? SLOT(i) : SLOT(SLOTS) + i - SLOTS;
		int32_t ip = (int32_t)(va - (TABLE + 4 * i)), rel = i ? -64 - 5 : 64 - 5;
		int16_t off[2] = { 8, 0 };
		uint16_t flags = 0x205;

		if (i < PLAIN) {
			off[0] = (int16_t)kind[i].sp;
			off[1] = (int16_t)kind[i].bp;
			flags = (uint16_t)kind[i].flags;
		}
		memcpy(ips + 4 * i, &ip, 4);
		memcpy(entries + 6 * i, off, 4);
		memcpy(entries + 6 * i + 4, &flags, 2);
		if (i >= SLOTS)
			continue;
		text[64 * i] = 0xe8;
		memcpy(text + 64 * i + 1, &rel, 4);
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		symtab_add(symbols, va, 64, 't',
			   i == HANDLER || i == HANDLER_6_4 ? "return_to_handler"
			   : i == PROBE			    ? "arch_rethook_trampoline"
							    : name);
	}
	/* testb; jmp to SP8: a part of it that sits elsewhere */
	memcpy(text + 64 * STUB + 16, "\xf6\x05\0\0\0\0\x01\xe9", 8);
	memcpy(text + 64 * STUB + 24, &(int32_t){ (int32_t)(SLOT(SP8) + 16 - (SLOT(STUB) + 28)) },
	       4);
	/* call 1f; pause; lfence; jmp; 1: mov %rax,(%rsp) */
	memcpy(text + 64 * THUNK, "\xe8\x07\0\0\0\xf3\x90\x0f\xae\xe8\xeb\xf9\x48\x89\x04\x24", 16);
	return symtab_freeze(symbols, NULL) || orc_build(&orc, &t, NULL);
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	orc_destroy(orc);
	return 0;
}

static void put(uint64_t va, uint64_t v)
{
	for (unsigned int i = 0; i < s->nslices; i++)
		if (va >= s->slice[i].va && va - s->slice[i].va < s->slice[i].len)
			memcpy(s->stack + s->slice[i].off + (va - s->slice[i].va), &v, 8);
}

static void begin(unsigned int slot, uint64_t rsp, uint64_t rbp)
{
	memset(mem, 0, sizeof(mem));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->nslices = 2;
	s->stack_len = 2 * SLICE;
	s->slice[0] = (struct sample_slice){ .va = IRQ, .off = 0, .len = SLICE };
	s->slice[1] = (struct sample_slice){ .va = TASK, .off = SLICE, .len = SLICE };
	s->regs.rip = SLOT(slot) + 16;
	s->regs.cs = 0x10;
	s->regs.gpr[GPR_RSP] = rsp;
	s->regs.gpr[GPR_RBP] = rbp;
	u = (struct unwinder){ .read_text = text_bytes_read,
			       .ctx = &text_bytes,
			       .symbols = symbols,
			       .orc = orc,
			       .text_start = TEXT,
			       .text_end = TEXT + sizeof(text) };
}

static void put_saved(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp)
{
	put(at, ip);
	put(at + 8, cs);
	put(at + 16, 0x246);
	put(at + 24, sp);
	put(at + 32, cs & 3 ? 0x2b : 0x18);
}

static void put_regs(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp, uint64_t bp)
{
	put(at + 32, bp);
	put_saved(at + 128, ip, cs, sp);
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
}

#define AT(slot) (SLOT(slot) + 16)

static void each_base(void **state)
{
	(void)state;
	begin(SP8, TASK, 0);
	put(TASK, RET(END));
	expect(STACK_END_ROOT, 2, AT(SP8), RET(END));
	assert_int_equal(out.quality[0], FRAME_REGS);
	assert_int_equal(out.quality[1], FRAME_ORC);
	/* SP, whose rbp is found below the CFA and leads on */
	begin(SP24, TASK, 1234);
	put(TASK + 8, TASK + 0x40);
	put(TASK + 16, RET(BP16));
	put(TASK + 0x40, 77);
	put(TASK + 0x48, RET(END));
	expect(STACK_END_ROOT, 3, AT(SP24), RET(BP16), RET(END));
	/* rbp through rbp */
	begin(BP_FROM_BP, TASK, TASK + 0x20);
	put(TASK + 0x20, TASK + 0x60);
	put(TASK + 0x28, RET(BP16));
	put(TASK + 0x68, RET(END));
	expect(STACK_END_ROOT, 3, AT(BP_FROM_BP), RET(BP16), RET(END));
	begin(BP_IND, TASK, TASK + 0x20);
	put(TASK + 0x18, TASK + 0x80);
	put(TASK + 0x78, RET(END));
	expect(STACK_END_ROOT, 2, AT(BP_IND), RET(END));
	for (int i = 0; i < 4; i++) {
		static const int gpr[] = { GPR_R10, GPR_R13, GPR_RDI, GPR_RDX };

		begin((unsigned int)(R10 + i), TASK, 0);
		s->regs.gpr[gpr[i]] = TASK + 0x80;
		put(TASK + 0x78, RET(END));
		expect(STACK_END_ROOT, 2, AT(R10 + i), RET(END));
		/* after a call nobody knows them */
		begin(SP8, TASK, 0);
		s->regs.gpr[gpr[i]] = TASK + 0x80;
		put(TASK, RET(R10 + i));
		put(TASK + 0x78, RET(END));
		expect(STACK_END_BAD_CHAIN, 2, AT(SP8), RET(R10 + i));
	}
	/* an interrupted caller: its own address decides, not the one before */
	begin(SIGNAL, TASK, 0);
	put(TASK, RET(SP8));
	put(TASK + 8, RET(END));
	expect(STACK_END_ROOT, 3, AT(SIGNAL), RET(SP8), RET(END));
	assert_int_equal(out.exact[1], 1);
	assert_int_equal(out.exact[2], 0);
}

static void interrupt_stack(void **state)
{
	(void)state;
	/* handler on the interrupt stack, called by who switched to it; then the task's stack */
	begin(SP8, IRQ + 0x100, 0);
	put(IRQ + 0x100, RET(SP_IND));
	put(IRQ + 0x108, TASK + 0x10);
	put(TASK + 0x10, RET(REGS));
	put_regs(TASK + 0x18, AT(SP8), 0x10, TASK + 0x200, 5);
	put(TASK + 0x200, RET(END));
	expect(STACK_END_ROOT, 5, AT(SP8), RET(SP_IND), RET(REGS), AT(SP8), RET(END));
	assert_int_equal(out.exact[3], 1);
	assert_int_equal(out.quality[3], FRAME_REGS);
	/* the task's stack was not copied */
	s->nslices = 1;
	expect(STACK_END_CUT, 2, AT(SP8), RET(SP_IND));
	/* until 5.12 an offset came before the look */
	begin(REGS_IND, IRQ, 0);
	put(IRQ + 8, TASK);
	put_regs(TASK, AT(SP8), 0x10, TASK + 0x200, 0);
	put(TASK + 0x200, RET(END));
	expect(STACK_END_ROOT, 3, AT(REGS_IND), AT(SP8), RET(END));
}

static void registers(void **state)
{
	uint64_t regs = TASK + 0x40;

	(void)state;
	/* rbp, r13 come from the registers saved */
	begin(REGS, regs, 0);
	put_regs(regs, AT(BP16), 0x10, TASK + 0x200, TASK + 0x240);
	put(TASK + 0x248, RET(END));
	expect(STACK_END_ROOT, 3, AT(REGS), AT(BP16), RET(END));
	put_regs(regs, AT(R13), 0x10, TASK + 0x200, 0);
	put(regs + 16, TASK + 0x250);
	expect(STACK_END_ROOT, 3, AT(REGS), AT(R13), RET(END));
	put_regs(regs, 0x401000, 0x33, 0x7fff0000, 0);
	expect(STACK_END_USER, 1, AT(REGS));
	put_regs(regs, 0x8048000, 0x23, 0xffff0000, 0);
	expect(STACK_END_USER, 1, AT(REGS));
	/* the word of cs has more in it where the processor has FRED */
	put_regs(regs, 0x401000, 0x1200050033, 0x7fff0000, 0);
	expect(STACK_END_USER, 1, AT(REGS));
	put_regs(regs, AT(R13), 0x1000020010, TASK + 0x200, 0);
	put(regs + 16, TASK + 0x250);
	expect(STACK_END_ROOT, 3, AT(REGS), AT(R13), RET(END));
	memset(s->stack, 0, s->stack_len);
	expect(STACK_END_ROOT, 1, AT(REGS));
	/* neither a segment nor flags that a processor would save */
	put_regs(regs, AT(SP8), 0x18, TASK + 0x200, 0);
	expect(STACK_END_BAD_CHAIN, 1, AT(REGS));
	put_regs(regs, AT(SP8), 0x10, TASK + 0x200, 0);
	put(regs + 144, 0);
	expect(STACK_END_BAD_CHAIN, 1, AT(REGS));
	put_regs(regs, 0x1000, 0x10, TASK + 0x200, 0);
	expect(STACK_END_BAD_CHAIN, 1, AT(REGS));
	/* inward */
	put_regs(regs, AT(SP8), 0x10, TASK + 0x20, 0);
	put(TASK + 0x20, RET(END));
	expect(STACK_END_BAD_CHAIN, 2, AT(REGS), AT(SP8));
	/* half of them popped: rbp is live again, and what lay below rsp was not copied */
	begin(POPPED, TASK + 0x38, TASK + 0x240);
	put_regs(TASK, AT(BP16), 0x10, TASK + 0x200, 1);
	put(TASK + 0x248, RET(END));
	s->slice[1] = (struct sample_slice){ TASK + 0x38, SLICE + 0x38, SLICE - 0x38 };
	expect(STACK_END_ROOT, 3, AT(POPPED), AT(BP16), RET(END));
}

static void partial_registers(void **state)
{
	(void)state;
	/* an error code, then what the processor saved */
	begin(PARTIAL, TASK, TASK + 0x240);
	put_saved(TASK + 8, AT(BP16), 0x10, TASK + 0x30);
	put(TASK + 0x248, RET(END));
	expect(STACK_END_ROOT, 3, AT(PARTIAL), AT(BP16), RET(END));
	put_saved(TASK + 8, 0x401000, 0x33, 0x7fff0000);
	expect(STACK_END_USER, 1, AT(PARTIAL));
	/* right after error_entry() a whole pt_regs lies there */
	begin(PARTIAL, TASK, 3);
	put(TASK + 8, 0x1234);
	put_regs(TASK, AT(BP16), 0x10, TASK + 168, TASK + 0x240);
	put(TASK + 0x248, RET(END));
	expect(STACK_END_ROOT, 3, AT(PARTIAL), AT(BP16), RET(END));
	put_regs(TASK, AT(BP16), 0x99, TASK + 168, TASK + 0x240);
	expect(STACK_END_BAD_CHAIN, 1, AT(PARTIAL));
	/* and in the function that its last jump goes to, when mov %rax,%rsp is what follows */
	begin(SP8, TASK, 3);
	put(TASK, RET(PARTIAL));
	put(TASK + 16, 0x1234);
	put_regs(TASK + 8, AT(BP16), 0x10, TASK + 176, TASK + 0x240);
	put(TASK + 0x248, RET(END));
	expect(STACK_END_BAD_CHAIN, 2, AT(SP8), RET(PARTIAL));
	memcpy(text + 64 * PARTIAL + 5, "\x48\x89\xc4", 3);
	expect(STACK_END_ROOT, 4, AT(SP8), RET(PARTIAL), AT(BP16), RET(END));
	put_regs(TASK + 8, AT(BP16), 0x99, TASK + 176, TASK + 0x240);
	expect(STACK_END_BAD_CHAIN, 2, AT(SP8), RET(PARTIAL));
	memset(text + 64 * PARTIAL + 5, 0x90, 3);
}

static void ends(void **state)
{
	(void)state;
	begin(END, TASK, 0);
	expect(STACK_END_ROOT, 1, AT(END));
	/* the first instructions of a system call */
	s->regs.gpr[GPR_RSP] = 0x7ffe1000;
	expect(STACK_END_USER, 1, AT(END));
	/* a new task returns to where nobody called; a processor's first function to behind lretq */
	begin(SP8, TASK, 0);
	put(TASK, SLOT(END));
	expect(STACK_END_ROOT, 2, AT(SP8), SLOT(END));
	assert_int_equal(out.exact[1], 1);
	put(TASK, SLOT(END + 1));
	expect(STACK_END_ROOT, 2, AT(SP8), SLOT(END + 1));
	assert_int_equal(out.exact[1], 0);
	/* no return address, misaligned, not copied, nothing known of the base */
	put(TASK, AT(SP8));
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	begin(SP8, TASK + 4, 0);
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	begin(SP8, TASK + SLICE, 0);
	expect(STACK_END_CUT, 1, AT(SP8));
	begin(BP16, TASK, 0x10);
	expect(STACK_END_BAD_CHAIN, 1, AT(BP16));
	begin(BP16, TASK + 0x40, TASK); /* inward */
	put(TASK + 8, RET(END));
	expect(STACK_END_BAD_CHAIN, 1, AT(BP16));
	/* code that the table does not reach */
	begin(SP8, TASK, 0);
	s->regs.rip = 0x10005b3;
	expect(STACK_END_NO_TEXT, 1, 0x10005b3ull);
	s->regs.rip = SLOT(SLOTS) + 5000;
	expect(STACK_END_NO_TEXT, 1, SLOT(SLOTS) + 5000);
}

/* The callers of what the function graph tracer traces are not on the stack: no whole one. */
static void traced_functions(void **state)
{
	(void)state;
	for (unsigned int i = HANDLER; i <= HANDLER_6_4; i++) {
		begin(i, TASK, 0);
		put(TASK + 8, RET(SP24));
		expect(STACK_END_NO_ORC, 1, AT(i));
	}
	begin(SP8, TASK, 0);
	put(TASK, SLOT(HANDLER));
	put(TASK + 16, RET(SP24));
	expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(HANDLER));
}

/* An entry of the tracer's own stack: the first word and the last one count. */
static void put_entry(unsigned int i, uint64_t ret, uint64_t retp)
{
	const uint64_t entry[4] = { ret, SLOT(PLAIN), 12345, retp };

	memcpy(s->stack + 2 * SLICE + i * sizeof(entry), entry, sizeof(entry));
	s->returns = (struct sample_slice){ .va = TASK - 0x8000,
					    .off = 2 * SLICE,
					    .len = 3 * (uint32_t)sizeof(entry) };
	s->stack_len = 2 * SLICE + s->returns.len;
	u.graph = (struct unwind_graph){ .known = true, .ret = 0, .retp = 24 };
}

/* The tracer's entries came with the sample. */
static void traced_callers(void **state)
{
	(void)state;
	for (unsigned int i = HANDLER; i <= HANDLER_6_4; i++) {
		/* two traced functions; an older entry says another thing of the same place */
		begin(SP8, TASK, 0);
		put(TASK, SLOT(i));
		put(TASK + 24, SLOT(i));
		put(TASK + 32, RET(END));
		put_entry(0, RET(SP8), TASK + 24);
		put_entry(1, RET(SP24), TASK);
		put_entry(2, RET(PREV), TASK + 24);
		expect(STACK_END_ROOT, 4, AT(SP8), RET(SP24), RET(SP8), RET(END));
		assert_int_equal(out.quality[1], FRAME_ORC);
		/* jumped to from the end of a traced function: another entry has the caller */
		put_entry(1, SLOT(i), TASK);
		put_entry(2, RET(SP24), TASK);
		expect(STACK_END_ROOT, 4, AT(SP8), RET(SP24), RET(SP8), RET(END));
		/* no entry of that place, one that is no return address, half of one */
		put_entry(2, RET(SP24), TASK + 8);
		expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(i));
		put_entry(2, RET(SP24) + 1, TASK);
		expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(i));
		put_entry(2, RET(SP24), TASK);
		s->returns.len -= 1;
		expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(i));
		s->returns.len += 1;
		u.graph.retp = 0xfffffff8;
		expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(i));
		u.graph.known = false;
		expect(STACK_END_NO_ORC, 2, AT(SP8), SLOT(i));
		/* any other address in its place is what it is */
		put_entry(0, RET(SP24), TASK);
		put(TASK, RET(END));
		expect(STACK_END_ROOT, 2, AT(SP8), RET(END));
	}
}

/* Return probes do the same; a function may be probed and traced. */
static void probed_callers(void **state)
{
	(void)state;
	begin(SP8, TASK, 0);
	put(TASK, SLOT(PROBE));
	put(TASK + 24, RET(END));
	put_entry(0, RET(SP8), TASK + 64);
	put_entry(1, RET(PREV), TASK + 64);
	put_entry(2, RET(PREV), TASK + 64);
	/* the words that are 8 bytes apart are the probe's */
	memcpy(s->stack + s->returns.off + 40, (uint64_t[]){ RET(SP24), TASK }, 16);
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	u.rethook = (struct unwind_graph){ .known = true, .ret = 24, .retp = 32 };
	expect(STACK_END_ROOT, 3, AT(SP8), RET(SP24), RET(END));
	/* first traced, then probed: each has the other's address or the caller's */
	put_entry(0, RET(SP24), TASK);
	memcpy(s->stack + s->returns.off + 40, (uint64_t[]){ SLOT(HANDLER), TASK }, 16);
	expect(STACK_END_ROOT, 3, AT(SP8), RET(SP24), RET(END));
	/* two that name each other */
	put_entry(0, SLOT(PROBE), TASK);
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	u.rethook.ret = 0xfffffff8;
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
}

/* The function has returned to the handler, which asks where to. */
static void in_the_handler(void **state)
{
	uint8_t *p = text + 64 * HANDLER, old[16];

	(void)state;
	memcpy(old, p, sizeof(old));
	/* sub $16,%rsp; nop... */
	memcpy(p, "\x48\x83\xec\x10\x90", 5);
	begin(HANDLER, TASK + 32, 0);
	/* reached from the place at TASK + 40, which has been left */
	put_entry(0, RET(SP8), TASK + 80);
	put_entry(1, RET(SP24), TASK + 40);
	put_entry(2, RET(PREV), TASK + 16);
	put(TASK + 48 + 16, RET(END));
	expect(STACK_END_ROOT, 3, AT(HANDLER), RET(SP24), RET(END));
	/* an entry that does not exist yields nothing */
	put_entry(1, RET(SP24), TASK + 32);
	expect(STACK_END_NO_ORC, 1, AT(HANDLER));
	memcpy(p, old, sizeof(old));
}

static void code_elsewhere(void **state)
{
	(void)state;
	begin(STUB, TASK, 0);
	put(TASK, RET(END));
	expect(STACK_END_ROOT, 2, AT(STUB), RET(END));
	/* each instruction of a retpoline; at its ret the function it goes to is on the stack */
	begin(THUNK, TASK, 0);
	s->regs.rip = SLOT(THUNK);
	put(TASK, RET(END));
	expect(STACK_END_ROOT, 2, SLOT(THUNK), RET(END));
	s->regs.rip = SLOT(THUNK) + 12;
	put(TASK, RET(THUNK));
	put(TASK + 8, RET(END));
	expect(STACK_END_ROOT, 2, SLOT(THUNK) + 12, RET(END));
	begin(SP8, TASK, 0);
	put(TASK, SLOT(SP8));
	put(TASK + 8, RET(END));
	expect(STACK_END_ROOT, 2, AT(SP8), RET(END));
	/* right behind the store, whatever it goes to; elsewhere, an address after a call is a caller's */
	put(TASK, RET(SP24));
	put(TASK + 16, RET(END));
	memcpy(text + 64 * SP8 + 12, "\x48\x89\x0c\x24\xc3", 5);
	expect(STACK_END_ROOT, 2, AT(SP8), RET(END));
	/* other code stores there, too, and goes on */
	text[64 * SP8 + 16] = 0x90;
	put(TASK + 24, RET(END));
	expect(STACK_END_ROOT, 3, AT(SP8), RET(SP24), RET(END));
	memset(text + 64 * SP8 + 12, 0x90, 4);
	put(TASK + 24, RET(END));
	expect(STACK_END_ROOT, 3, AT(SP8), RET(SP24), RET(END));
}

static void searched(void **state)
{
	(void)state;
	/* the slot after it calls UNKNOWN; others do not, and are passed over */
	begin(UNKNOWN, TASK, 0);
	put(TASK + 8, RET(END));
	put(TASK + 16, RET(UNKNOWN + 1));
	put(TASK + 24, RET(END));
	expect(STACK_END_SCANNED, 3, AT(UNKNOWN), RET(SIGNAL), RET(END));
	assert_int_equal(out.quality[1], FRAME_SCAN);
	assert_int_equal(out.quality[2], FRAME_ORC);
	u.symbols = NULL;
	expect(STACK_END_SCANNED, 3, AT(UNKNOWN), RET(SIGNAL), RET(END));
	put(TASK + 16, 0);
	expect(STACK_END_NO_ORC, 1, AT(UNKNOWN));
	/* generated code keeps rbp; only an indirect call may have come there */
	begin(SP8, TASK, TASK + 0x20);
	s->regs.rip = 0xffffffffc0001000;
	put(TASK + 0x20, TASK + 0x80);
	put(TASK + 0x28, RET(END));
	expect(STACK_END_NO_TEXT, 1, 0xffffffffc0001000);
	text[64 * BP16 + 32] = 0xff; /* call *%rax */
	text[64 * BP16 + 33] = 0xd0;
	put(TASK + 0x28, SLOT(BP16) + 34);
	put(TASK + 0x88, RET(END));
	expect(STACK_END_SCANNED, 3, 0xffffffffc0001000, SLOT(BP16) + 34, RET(END));
	/* frame pointers, where the kernel keeps them, before any search */
	begin(UNKNOWN, TASK, TASK + 0x20);
	u.frame_pointers = true;
	put(TASK + 0x20, 0);
	put(TASK + 0x28, RET(END));
	memo_unwind(&u, s, &out);
	assert_int_not_equal(out.end, STACK_END_SCANNED);
}

static void bounded(void **state)
{
	(void)state;
	/* registers that lead to themselves, and the deepest chain there is room for */
	begin(REGS, TASK, 0);
	put_regs(TASK, AT(REGS), 0x10, TASK, 0);
	expect(STACK_END_BAD_CHAIN, 2, AT(REGS), AT(REGS));
	begin(SP8, TASK, 0);
	for (unsigned int i = 0; i < SLICE / 8; i++)
		put(TASK + 8 * i, RET(SP8));
	memo_unwind(&u, s, &out);
	assert_int_equal(out.n, STACK_MAX_FRAMES);
	assert_int_equal(out.end, STACK_END_DEPTH);
	begin(SP_IND, IRQ, 0);
	put(IRQ, IRQ);
	expect(STACK_END_BAD_CHAIN, 1, AT(SP_IND));
}

/*
 * Only the fact that an address follows a call is cached; it is forgotten when the code is freed.
 */
static void remembered(void **state)
{
	(void)state;
	begin(SP8, TASK, 0);
	put(TASK, RET(SP24));
	put(TASK + 24, RET(PLAIN));
	put(TASK + 32, RET(END));
	u.memo = orc_memo_create();
	assert_non_null(u.memo);
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_ROOT);
	assert_int_equal(out.n, 4);
	/* the call is patched to something else while the function that was called has not returned */
	memset(text + 64 * SP24, 0x90, 5);
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_ROOT);
	assert_int_equal(out.n, 4);
	/* an address that was no return address is not known to be none */
	put(TASK + 24, SLOT(PLAIN) + 40);
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_BAD_CHAIN);
	text[64 * PLAIN + 35] = 0xe8;
	memset(text + 64 * PLAIN + 36, 0, 4);
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_ROOT);
	memset(text + 64 * PLAIN + 35, 0x90, 5);
	orc_memo_clear(u.memo);
	unwind(&u, s, &out);
	assert_int_equal(out.end, STACK_END_BAD_CHAIN);
	assert_int_equal(out.n, 1);
	memcpy(text + 64 * SP24, text + 64 * BP16, 5);
	orc_memo_destroy(u.memo);
	u.memo = NULL;
}

/* Behind no call, as in code whose memory was given back. */
#define FREED(slot) (SLOT(slot) + 40)

static void put_start(uint64_t at, uint64_t last)
{
	put(at, FREED(SP24));
	put(at + 24, FREED(PLAIN));
	put(at + 32, last);
}

static void start_of_kernel(void **state)
{
	const uint64_t top = TASK + 4096, base = top - SLICE;

	(void)state;
	begin(SP8, top - 0x100, 0);
	s->slice[1].va = base;
	put_start(top - 0x100, FREED(END));
	expect(STACK_END_ROOT, 4, AT(SP8), FREED(SP24), FREED(PLAIN), FREED(END));
	/* It leads to nothing known. */
	put_start(top - 0x100, FREED(R10));
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	put_start(top - 0x100, 0x1234);
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	/* Not at the top. */
	begin(SP8, top - 0x600, 0);
	s->slice[1].va = base;
	put_start(top - 0x600, FREED(END));
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	/* A stack that was not copied to its end. */
	begin(SP8, top - 0x100, 0);
	s->slice[1].va = base;
	s->slice[1].len = SLICE - 0x40;
	put_start(top - 0x100, FREED(END));
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
	/* Beyond its end. */
	begin(SP8, top - 0x20, 0);
	s->slice[1].va = base;
	put_start(top - 0x20, FREED(END));
	expect(STACK_END_BAD_CHAIN, 1, AT(SP8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_of_kernel),   cmocka_unit_test(each_base),
		cmocka_unit_test(interrupt_stack),   cmocka_unit_test(registers),
		cmocka_unit_test(partial_registers), cmocka_unit_test(ends),
		cmocka_unit_test(traced_functions),  cmocka_unit_test(traced_callers),
		cmocka_unit_test(in_the_handler),    cmocka_unit_test(probed_callers),
		cmocka_unit_test(code_elsewhere),    cmocka_unit_test(searched),
		cmocka_unit_test(bounded),	     cmocka_unit_test(remembered),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
