/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define LOAD 0x8b, 0x03 /* mov (%rbx), %eax */
#define JNE 0x75, 0xfc	/* back to the load */
#define RET 0xc3
#define BOTH                                   \
	{ .data = file[0], .len = len[0] },    \
	{                                      \
		.data = file[1], .len = len[1] \
	}

static uint8_t file[2][4096];
static size_t len[2];

static void put(unsigned int side, const void *p, size_t n)
{
	memcpy(file[side] + len[side], p, n);
	len[side] += n;
}

/* A block of two instructions of two bytes: a load, and what is given. */
static void block(unsigned int side, uint64_t before, uint64_t pc, const uint8_t second[2],
		  const struct exact_regs *regs)
{
	const struct trace_block b = {
		.kind = TRACE_BLOCK, .insns = 2, .len = 4, .before = before, .pc = pc, .regs = *regs
	};
	const uint8_t code[8] = { 2, 2, LOAD, second[0], second[1] };

	put(side, &b, sizeof(b));
	put(side, code, sizeof(code));
}

static void reads(unsigned int side, uint64_t va, uint64_t value)
{
	const struct trace_access a = { .kind = TRACE_READ, .size = 4, .va = va, .value = value };

	put(side, &a, sizeof(a));
}

static const uint8_t jne[2] = { JNE }, other[2] = { 0x39, 0xd8 };

static int begin(void **state)
{
	(void)state;
	memset(file, 0, sizeof(file));
	len[0] = len[1] = 0;
	for (unsigned int i = 0; i < 2; i++)
		block(i, 10, 0x1000, jne, &(struct exact_regs){ .rflags = 0x202 });
	return 0;
}

static void find_flow(struct difference_flow *f)
{
	struct trace_reader r[2] = { BOTH };
	struct err e = { 0 };

	assert_int_equal(difference_find_flow(f, r, &e), 0);
}

static void same_runs_do_not_part(void **state)
{
	struct difference_flow f;

	(void)state;
	find_flow(&f);
	assert_false(f.found);
}

/* Cut otherwise they are the same. */
static void cuts_do_not_matter(void **state)
{
	const struct trace_block one = {
		.kind = TRACE_BLOCK, .insns = 1, .len = 2, .before = 12, .pc = 0x1000
	};
	struct trace_block two = one;
	const uint8_t first[8] = { 2, LOAD }, second[8] = { 2, JNE };
	struct difference_flow f;

	(void)state;
	block(0, 12, 0x1000, jne, &(struct exact_regs){ 0 });
	put(1, &one, sizeof(one));
	put(1, first, sizeof(first));
	two.before = 13;
	two.pc = 0x1002;
	put(1, &two, sizeof(two));
	put(1, second, sizeof(second));
	find_flow(&f);
	assert_false(f.found);
}

static void a_jump_leads_elsewhere(void **state)
{
	struct difference_flow f;

	(void)state;
	block(0, 12, 0x1000, jne, &(struct exact_regs){ 0 });
	block(1, 12, 0x1004, jne, &(struct exact_regs){ 0 });
	find_flow(&f);
	assert_true(f.found);
	assert_int_equal(f.how, DIFFERENCE_JUMP);
	assert_int_equal(f.last.number, 12);
	assert_int_equal(f.last.pc, 0x1002);
	assert_int_equal(f.next[0].number, 13);
	assert_int_equal(f.next[1].pc, 0x1004);
}

static void code_is_another(void **state)
{
	struct difference_flow f;

	(void)state;
	block(0, 12, 0x1000, jne, &(struct exact_regs){ 0 });
	block(1, 12, 0x1000, other, &(struct exact_regs){ 0 });
	find_flow(&f);
	assert_int_equal(f.how, DIFFERENCE_CODE);
	assert_int_equal(f.next[0].number, 14);
	assert_memory_equal(f.next[1].code, other, 2);
}

/* Where the jump can't lead. */
static void an_interrupt_comes(void **state)
{
	struct difference_flow f;

	(void)state;
	block(0, 12, 0x1004, jne, &(struct exact_regs){ 0 });
	block(1, 12, 0x9000, jne, &(struct exact_regs){ 0 });
	find_flow(&f);
	assert_int_equal(f.how, DIFFERENCE_INTERRUPT);
	assert_int_equal(f.side, 1);
}

/* Behind what may lead anywhere it is told by the stack, and by interrupts that are off. */
static void an_interrupt_comes_behind_a_return(void **state)
{
	static const uint8_t nop_ret[2] = { 0x90, RET };
	struct exact_regs off = { .rflags = 2 }, on = { .rflags = 0x202 };
	struct difference_flow f;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		const struct trace_block b = {
			.kind = TRACE_BLOCK, .insns = 1, .len = 1, .before = 12, .pc = 0x1000
		};
		const uint8_t code[8] = { 1, RET };

		put(i, &b, sizeof(b));
		put(i, code, sizeof(code));
	}
	off.gpr[4] = 0x7fd8;
	on.gpr[4] = 0x8000;
	block(0, 13, 0x9000, nop_ret, &off);
	block(1, 13, 0x2000, nop_ret, &on);
	find_flow(&f);
	assert_int_equal(f.how, DIFFERENCE_INTERRUPT);
	assert_int_equal(f.side, 0);
}

static void one_side_ends(void **state)
{
	struct difference_flow f;

	(void)state;
	block(1, 12, 0x1000, jne, &(struct exact_regs){ 0 });
	find_flow(&f);
	assert_int_equal(f.how, DIFFERENCE_END);
	assert_int_equal(f.side, 0);
}

static void a_value_and_what_it_changes(void **state)
{
	struct trace_reader r[2] = { { 0 } };
	struct difference_value v;
	struct difference_regs g;
	struct err e = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct exact_regs regs = { .rflags = 0x202 };

		reads(i, 0x2000, 7);
		block(i, 12, 0x1000, jne, &regs);
		reads(i, 0x2008, 8 + i);
		regs.gpr[0] = 8 + i;
		block(i, 14, 0x1000, jne, &regs);
	}
	for (unsigned int i = 0; i < 2; i++)
		r[i] = (struct trace_reader){ .data = file[i], .len = len[i] };
	assert_int_equal(difference_find_value(&v, r, UINT64_MAX, &e), 0);
	assert_true(v.found);
	assert_int_equal(v.insn.number, 13);
	assert_int_equal(v.access[0].va, 0x2008);
	assert_int_equal(v.access[1].value, 9);
	r[0].at = r[1].at = 0;
	assert_int_equal(difference_find_value(&v, r, 13, &e), 0);
	assert_false(v.found);
	r[0].at = r[1].at = 0;
	assert_int_equal(difference_find_regs(&g, r, UINT64_MAX, &e), 0);
	assert_true(g.found && !g.before);
	assert_int_equal(g.number, 15);
	assert_int_equal(g.insn.number, 13);
	assert_int_equal(g.access[0].value, 8);
}

static void damage_is_told(void **state)
{
	struct difference_flow f;
	struct err e = { 0 };

	(void)state;
	for (size_t cut = 8; cut < len[0]; cut += 8) {
		struct trace_reader r[2] = { BOTH };

		r[0].len = cut;
		assert_int_equal(difference_find_flow(&f, r, &e), -EINVAL);
		assert_non_null(strstr(e.text, "damaged"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(same_runs_do_not_part, begin),
		cmocka_unit_test_setup(cuts_do_not_matter, begin),
		cmocka_unit_test_setup(a_jump_leads_elsewhere, begin),
		cmocka_unit_test_setup(code_is_another, begin),
		cmocka_unit_test_setup(an_interrupt_comes, begin),
		cmocka_unit_test_setup(an_interrupt_comes_behind_a_return, begin),
		cmocka_unit_test_setup(one_side_ends, begin),
		cmocka_unit_test_setup(a_value_and_what_it_changes, begin),
		cmocka_unit_test_setup(damage_is_told, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
