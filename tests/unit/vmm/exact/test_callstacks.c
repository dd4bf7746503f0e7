/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shadow stacks on streams of blocks that were made up: each chain and each count is known. */
#include "vmm/exact/callstacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KSTACK UINT64_C(0xffffc90000010000) /* stack of one task */
#define KSTACK2 UINT64_C(0xffffc90000020000)
#define IRQSTACK UINT64_C(0xffffc90000100000)
#define USTACK UINT64_C(0x7ffffffff000)

/* The processor as the stream left it. */
static struct {
	struct callstacks *c;
	struct callstacks_regs regs;
	uint64_t pc;
	uint64_t words[6]; /* at regs.sp */
} f;

static uint64_t cpu_sp(void *ctx)
{
	(void)ctx;
	return f.regs.sp;
}

static uint64_t cpu_pc(void *ctx)
{
	(void)ctx;
	return f.pc;
}

static void cpu_regs(void *ctx, struct callstacks_regs *out)
{
	(void)ctx;
	*out = f.regs;
}

static bool cpu_read(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (va != f.regs.sp || len > sizeof(f.words))
		return false;
	memcpy(dst, f.words, len);
	return true;
}

static int begin(void **state)
{
	static const struct callstacks_cpu cpu = { NULL, cpu_sp, cpu_pc, cpu_regs, cpu_read };

	(void)state;
	memset(&f, 0, sizeof(f));
	f.regs.sp = KSTACK;
	f.regs.cr3 = 0x5000;
	return callstacks_create(&f.c, &cpu, 2, CALLTREE_MAX_NODES, CALLTREE_MAX_COUNTS);
}

static int finish(void **state)
{
	(void)state;
	callstacks_destroy(f.c);
	return 0;
}

/* Four instructions of 4 bytes; the last is of that kind, to a target if there is one. */
static struct callstacks_block *block(uint64_t pc, enum blockend_kind kind, uint64_t target)
{
	static const uint16_t off[4] = { 0, 4, 8, 12 };
	struct callstacks_block b = { .pc = pc,
				      .end = pc + 16,
				      .target = target,
				      .insns = 4,
				      .off = off,
				      .kind = (uint8_t)kind,
				      .has_target = target != 0 };

	return callstacks_block(f.c, &b);
}

static void run(uint64_t pc, enum blockend_kind kind, uint64_t target)
{
	struct callstacks_block *b = block(pc, kind, target);

	assert_non_null(b);
	f.pc = pc;
	callstacks_run(f.c, b);
}

static void run_moving(uint64_t pc, enum blockend_kind kind, uint64_t target)
{
	struct callstacks_block b = *block(pc, kind, target);

	b.moves_sp = true;
	f.pc = pc;
	callstacks_run(f.c, callstacks_block(f.c, &b));
}

/* Does what the processor does with an interrupt of the kernel. */
static void interrupt(uint64_t ip, uint64_t sp, unsigned int cpl)
{
	uint64_t top = (cpl ? KSTACK : sp) & ~UINT64_C(15);

	f.regs.sp = top - 40;
	f.regs.cpl = 0;
	f.words[0] = ip;
	f.words[1] = cpl ? 0x33 : 0x10;
	f.words[2] = 0x202;
	f.words[3] = sp;
	f.words[4] = cpl ? 0x2b : 0x18;
}

/* The entries of the functions that run, innermost first: "30 20 10". */
static const char *chain(void)
{
	static char text[400];
	const struct calltree *t = callstacks_tree(f.c);
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = callstacks_node(f.c); i != CALLTREE_NONE; i = t->node[i].parent)
		if (t->node[i].entry)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llx", n ? " " : "",
					      (unsigned long long)t->node[i].entry);
	return text;
}

static uint64_t times_at(uint64_t pc, unsigned int insns)
{
	const struct calltree *t = callstacks_tree(f.c);
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->ncounts; i++) {
		const struct callstacks_block *b = callstacks_block_at(f.c, t->count[i].block);

		if (b->pc == pc && b->insns == insns)
			n += t->count[i].times;
	}
	return n;
}

static void call(uint64_t pc, uint64_t to)
{
	run(pc, BLOCKEND_CALL, to);
	f.regs.sp -= 8;
}

/* 1000 calls 2000, which calls 3000: after the call, before its first instruction. The stack pointer then. */
static uint64_t interrupt_a_call(void)
{
	uint64_t sp;

	call(0x1000, 0x2000);
	call(0x2000, 0x3000);
	sp = f.regs.sp;
	interrupt(0x3000, sp, 0);
	return sp;
}

static void calls_and_returns(void **state)
{
	(void)state;
	call(0x1000, 0x2000);
	call(0x2000, 0x3000);
	run(0x3000, BLOCKEND_JUMP, 0x3000);
	assert_string_equal(chain(), "3000 2000 1000");
	run(0x3000, BLOCKEND_RET, 0);
	f.regs.sp += 8;
	run(0x2010, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "2000 1000");
	f.regs.sp += 8;
	run(0x1010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "1000");
	assert_int_equal(times_at(0x3000, 4), 2);
}

/* How many instructions a part of the run has; a chain's root says which it is of. */
static uint64_t insns_of_part(uint64_t part)
{
	const struct calltree *t = callstacks_tree(f.c);
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->ncounts; i++) {
		uint32_t at = t->count[i].node;

		while (t->node[at].parent != CALLTREE_NONE)
			at = t->node[at].parent;
		if (t->node[at].entry == part)
			n += t->count[i].times * callstacks_block_at(f.c, t->count[i].block)->insns;
	}
	return n;
}

/* Entries only: a root's is its part. */
static uint64_t calls_to(uint64_t entry)
{
	const struct calltree *t = callstacks_tree(f.c);
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->nnodes; i++)
		n += t->node[i].entry == entry && t->node[i].parent != CALLTREE_NONE
			     ? t->node[i].calls
			     : 0;
	return n;
}

static void chains_go_on_in_the_next_part(void **state)
{
	uint64_t sp;

	(void)state;
	sp = interrupt_a_call();
	run(0x8000, BLOCKEND_FALL, 0);
	assert_int_equal(insns_of_part(0), 12);
	callstacks_set_part(f.c, 3);
	/* An interrupt returns into what had called before the part began, and that returns, too. */
	run(0x8010, BLOCKEND_IRET, 0);
	assert_string_equal(chain(), "8000 3");
	f.regs.sp = sp;
	run(0x3000, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "3000 2000 1000 3");
	f.regs.sp += 8;
	run(0x2010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 1000 3");
	/* A block that both parts ran. */
	run(0x2020, BLOCKEND_JUMP, 0x2000);
	call(0x2000, 0x3000);
	run(0x3000, BLOCKEND_FALL, 0);
	assert_int_equal(insns_of_part(0), 12);
	assert_int_equal(insns_of_part(3), 24);
	assert_int_equal(times_at(0x2000, 4), 2);
	/* A continued function was called once. */
	assert_int_equal(calls_to(0x2000), 1);
	assert_int_equal(calls_to(0x3000), 2);
	assert_int_equal(calls_to(0x8000), 1);
}

static void longjmp_leaves_frames(void **state)
{
	uint64_t sp = f.regs.sp;

	(void)state;
	call(0x1000, 0x2000);
	call(0x2000, 0x3000);
	call(0x3000, 0x4000);
	/* it loads its caller's caller's stack pointer, and jumps */
	run_moving(0x4000, BLOCKEND_JUMP_IND, 0);
	f.regs.sp = sp - 8;
	run(0x2100, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 1000");
}

static void a_changed_return_address_pops_too(void **state)
{
	(void)state;
	/* a retpoline: call, then its return address is another one */
	call(0x1000, 0x2000);
	call(0x2000, 0x9000);
	run(0x9000, BLOCKEND_RET, 0);
	f.regs.sp += 8;
	run(0x7000, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 1000");
}

static void interrupts_have_chains_of_their_own(void **state)
{
	struct callstacks_stats st;
	uint64_t sp;

	(void)state;
	sp = interrupt_a_call();
	call(0x8000, 0x8800);
	run(0x8800, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "8800 8000");
	f.regs.sp += 8;
	run(0x8010, BLOCKEND_IRET, 0);
	assert_string_equal(chain(), "8000");
	f.regs.sp = sp;
	run(0x3000, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "3000 2000 1000");
	callstacks_stats(f.c, &st);
	assert_int_equal(st.interrupts, 1);
	assert_int_equal(st.strange, 0);
}

static void a_fault_cuts_its_block(void **state)
{
	uint64_t sp = f.regs.sp;

	(void)state;
	run(0x1000, BLOCKEND_FALL, 0);
	assert_int_equal(times_at(0x1000, 4), 1);
	interrupt(0x1008, sp, 0); /* its third instruction */
	run(0x8000, BLOCKEND_IRET, 0);
	assert_int_equal(times_at(0x1000, 4), 0);
	assert_int_equal(times_at(0x1000, 2), 1);
	f.regs.sp = sp;
	run(0x1008, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "1000");
}

static void an_access_to_a_device_cuts_its_block(void **state)
{
	struct callstacks_stats st;

	(void)state;
	run(0x1000, BLOCKEND_FALL, 0);
	run(0x100c, BLOCKEND_FALL, 0);
	assert_int_equal(times_at(0x1000, 4), 0);
	assert_int_equal(times_at(0x1000, 3), 1);
	callstacks_stats(f.c, &st);
	assert_int_equal(st.partial, 1);
	assert_int_equal(st.strange, 0);
}

static void tasks_have_stacks_of_their_own(void **state)
{
	uint64_t sp;

	(void)state;
	call(0x1000, 0x2000);
	call(0x2000, 0x5000);
	sp = f.regs.sp;
	/* the switch: another stack, whose first return nobody had called */
	run_moving(0x5000, BLOCKEND_RET, 0);
	f.regs.sp = KSTACK2 - 0x100;
	call(0x6000, 0x6800);
	run(0x6800, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "6800 6000");
	call(0x6810, 0x5000);
	run_moving(0x5000, BLOCKEND_RET, 0);
	/* back in the first task, in the same function */
	f.regs.sp = sp + 8;
	run(0x2010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 1000");
}

static void an_interrupt_stack_goes_on_from_its_caller(void **state)
{
	uint64_t sp = f.regs.sp;

	(void)state;
	run(0x1000, BLOCKEND_FALL, 0);
	interrupt(0x1010, sp, 0);
	run_moving(0x8000, BLOCKEND_FALL, 0);
	sp = f.regs.sp;
	f.regs.sp = IRQSTACK;
	call(0x8010, 0x8800);
	run(0x8800, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "8800 8000");
	f.regs.sp += 8;
	run_moving(0x8020, BLOCKEND_FALL, 0);
	f.regs.sp = sp;
	run(0x8030, BLOCKEND_IRET, 0);
	assert_string_equal(chain(), "8000");
	f.regs.sp = KSTACK;
	run(0x1010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "1000");
}

static void programs_go_on_behind_system_calls(void **state)
{
	uint64_t sp = USTACK;

	(void)state;
	f.regs.cpl = 3;
	f.regs.sp = sp;
	call(0x401000, 0x402000);
	sp -= 8;
	run(0x402000, BLOCKEND_SYSCALL, 0);
	f.regs.cpl = 0;
	run_moving(0x8000, BLOCKEND_FALL, 0);
	f.regs.sp = KSTACK;
	call(0x8010, 0x8800);
	run(0x8800, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "8800 8000");
	assert_int_equal(callstacks_tree(f.c)->node[callstacks_node(f.c)].kind, CALLTREE_SYSCALL);
	f.regs.sp += 8;
	run_moving(0x8020, BLOCKEND_SYSRET, 0);
	f.regs.cpl = 3;
	f.regs.sp = sp;
	run(0x402010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "402000 401000");
	/* the same address in another address space is another program */
	run(0x402020, BLOCKEND_SYSCALL, 0);
	f.regs.cpl = 0;
	run(0x8000, BLOCKEND_SYSRET, 0);
	f.regs.cpl = 3;
	f.regs.cr3 = 0x9000;
	run(0x402030, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "402030");
}

/* The calls of one processor, and its unfinished ones, do not affect the other. */
static void processors_take_turns(void **state)
{
	const struct calltree *t = callstacks_tree(f.c);
	uint64_t sp;

	(void)state;
	call(0x1000, 0x2000);
	run(0x2000, BLOCKEND_FALL, 0);
	sp = f.regs.sp;
	callstacks_switch_cpu(f.c, 1);
	f.regs.sp = KSTACK2;
	call(0x5000, 0x6000);
	/* The same block elsewhere in the tree, before the first one's run of it is cut. */
	call(0x6000, 0x2000);
	run(0x2000, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 6000 5000");
	callstacks_switch_cpu(f.c, 0);
	interrupt(0x2004, sp, 0);
	run(0x9000, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "9000");
	/* 0x2000 was called twice: of the first run one instruction is left, of the second all four. */
	assert_int_equal(times_at(0x2000, 1), 1);
	assert_int_equal(times_at(0x2000, 4), 1);
	for (uint32_t i = 0; i < t->ncounts; i++) {
		const struct calltree_count *x = &t->count[i];

		if (callstacks_block_at(f.c, x->block)->pc != 0x2000 || !x->times)
			continue;
		assert_int_equal(t->node[t->node[x->node].parent].entry,
				 callstacks_block_at(f.c, x->block)->insns == 1 ? 0x1000 : 0x6000);
	}
	callstacks_switch_cpu(f.c, 1);
	f.regs.sp = KSTACK2 - 16;
	run(0x2010, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "2000 6000 5000");
}

static void counts_begin_anew(void **state)
{
	(void)state;
	call(0x1000, 0x2000);
	run(0x2000, BLOCKEND_FALL, 0);
	callstacks_zero(f.c);
	assert_int_equal(times_at(0x1000, 4) + times_at(0x2000, 4), 0);
	call(0x2010, 0x3000);
	run(0x3000, BLOCKEND_RET, 0);
	assert_string_equal(chain(), "3000 2000 1000");
	assert_int_equal(times_at(0x2010, 4), 1);
	for (uint32_t i = 0; i < callstacks_tree(f.c)->nnodes; i++)
		assert_int_equal(callstacks_tree(f.c)->node[i].calls,
				 callstacks_tree(f.c)->node[i].entry == 0x3000);
}

/* QEMU has translated it where it ran first, and lets it run at each address that its page has. */
static void shared_code_counts_where_it_runs(void **state)
{
	struct callstacks_block *early = block(0x402000, BLOCKEND_RET, 0);
	struct callstacks_stats st;

	(void)state;
	call(0x401000, 0x402000);
	run(0x402000, BLOCKEND_RET, 0);
	f.regs.sp += 8;
	run(0x401010, BLOCKEND_FALL, 0);
	call(0xffffffff81401000, 0xffffffff81402000);
	f.pc = 0xffffffff81402000;
	callstacks_run(f.c, early);
	assert_string_equal(chain(), "ffffffff81402000 401000");
	f.regs.sp += 8;
	run(0xffffffff81401010, BLOCKEND_CALL_IND, 0);
	f.regs.sp -= 8;
	/* Where nothing says where it leads, it is known already, and the address is another one again. */
	f.pc = 0xffffffff81402000;
	callstacks_run(f.c, early);
	assert_int_equal(times_at(0x402000, 4), 1);
	assert_int_equal(times_at(0xffffffff81402000, 4), 2);
	f.regs.sp += 8;
	run(0xffffffff81401020, BLOCKEND_FALL, 0);
	assert_string_equal(chain(), "401000");
	callstacks_stats(f.c, &st);
	/* From 0x401020 to ...401000 nothing leads. */
	assert_int_equal(st.strange, 1);
	/* The address of 16-bit code is relative to its segment. */
	f.pc = 0x1000;
	callstacks_run(f.c, block(0xf1000, BLOCKEND_FALL, 0));
	assert_int_equal(times_at(0xf1000, 4), 1);
}

static void what_does_not_fit_is_counted(void **state)
{
	static const struct callstacks_cpu cpu = { NULL, cpu_sp, cpu_pc, cpu_regs, cpu_read };
	struct callstacks_stats st;

	(void)state;
	callstacks_destroy(f.c);
	assert_int_equal(callstacks_create(&f.c, &cpu, 1, 3, 2), 0);
	call(0x1000, 0x2000);
	call(0x2000, 0x3000);
	call(0x3000, 0x4000);
	call(0x4000, 0x5000);
	run(0x5000, BLOCKEND_FALL, 0);
	callstacks_stats(f.c, &st);
	assert_int_equal(callstacks_tree(f.c)->nnodes, 3);
	assert_int_equal(callstacks_tree(f.c)->ncounts, 2);
	assert_int_equal(st.folded, 3);
	assert_int_equal(st.lost, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, finish)
		T(calls_and_returns),
		T(longjmp_leaves_frames),
		T(a_changed_return_address_pops_too),
		T(interrupts_have_chains_of_their_own),
		T(a_fault_cuts_its_block),
		T(an_access_to_a_device_cuts_its_block),
		T(tasks_have_stacks_of_their_own),
		T(an_interrupt_stack_goes_on_from_its_caller),
		T(programs_go_on_behind_system_calls),
		T(processors_take_turns),
		T(counts_begin_anew),
		T(chains_go_on_in_the_next_part),
		T(shared_code_counts_where_it_runs),
		T(what_does_not_fit_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
