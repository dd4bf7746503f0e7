/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BMI1, BMI2 and ADX as complete.c finishes them and as this machine's CPU runs them. */
#include "vmm/pvm/complete.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/insn_judge.h"
#include "tests/unit/skip.h"

enum { PP_NONE, PP_66, PP_F3, PP_F2 };
#define MAP_0F38 2
#define MAP_0F3A 3

struct vex {
	unsigned int map, pp, opcode;
	int digit; /* /digit in ModRM.reg, with the destination in VEX.vvvv; -1: a register */
	bool imm8;
	uint64_t flags; /* those that are defined behind it */
};

static unsigned int any_register(void)
{
	unsigned int n;

	do
		n = rnd() % 16;
	while (n == GPR_RSP);
	return n;
}

/* ModRM and, for a memory operand, what follows it: [rip + disp32]. tail: bytes behind that. */
static void rm_operand(struct code *c, unsigned int reg, int rm, unsigned int tail, uint64_t at)
{
	if (rm >= 0) {
		byte(c, 0xc0 | (reg & 7) << 3 | ((unsigned int)rm & 7));
		return;
	}
	byte(c, (reg & 7) << 3 | 5);
	dword(c, (uint32_t)(at - (CODE + c->n + 4 + tail)));
}

static struct code encode_vex(const struct vex *v, bool wide)
{
	struct code c = { .n = 0 };
	unsigned int reg = v->digit >= 0 ? (unsigned int)v->digit : any_register();
	unsigned int vvvv = v->imm8 ? 0 : any_register();
	int rm = rnd() % 2 ? (int)any_register() : -1;

	byte(&c, 0xc4);
	/* R and B are inverted, X is not used. */
	byte(&c, (reg < 8 ? 0x80 : 0) | 0x40 | (rm < 8 ? 0x20 : 0) | v->map);
	byte(&c, (wide ? 0x80 : 0) | (~vvvv & 15) << 3 | v->pp);
	byte(&c, v->opcode);
	rm_operand(&c, reg, rm, v->imm8, data_address(1));
	if (v->imm8)
		byte(&c, (uint8_t)rnd());
	return c;
}

static void vex_against_cpu(const struct vex *v)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct host_state s;
		struct code c = encode_vex(v, rnd() % 2);

		random_state(&s);
		if (i % 16 == 0)
			fill_data();
		judge(&c, &s, v->flags, true);
	}
}

#define VEX_TEST(name, feature, ...)                        \
	static void name(void **state)                      \
	{                                                   \
		static const struct vex form = __VA_ARGS__; \
                                                            \
		(void)state;                                \
		NEEDS(feature);                             \
		vex_against_cpu(&form);                     \
	}

#define LOGIC (CF | ZF | SF | OF)
VEX_TEST(andn, "bmi", { MAP_0F38, PP_NONE, 0xf2, -1, false, LOGIC })
VEX_TEST(bextr, "bmi", { MAP_0F38, PP_NONE, 0xf7, -1, false, CF | ZF | OF })
VEX_TEST(blsr, "bmi", { MAP_0F38, PP_NONE, 0xf3, 1, false, LOGIC })
VEX_TEST(blsmsk, "bmi", { MAP_0F38, PP_NONE, 0xf3, 2, false, LOGIC })
VEX_TEST(blsi, "bmi", { MAP_0F38, PP_NONE, 0xf3, 3, false, LOGIC })
VEX_TEST(bzhi, "bmi2", { MAP_0F38, PP_NONE, 0xf5, -1, false, LOGIC })
VEX_TEST(mulx, "bmi2", { MAP_0F38, PP_F2, 0xf6, -1, false, ARITH })
VEX_TEST(pdep, "bmi2", { MAP_0F38, PP_F2, 0xf5, -1, false, ARITH })
VEX_TEST(pext, "bmi2", { MAP_0F38, PP_F3, 0xf5, -1, false, ARITH })
VEX_TEST(rorx, "bmi2", { MAP_0F3A, PP_F2, 0xf0, -1, true, ARITH })
VEX_TEST(sarx, "bmi2", { MAP_0F38, PP_F3, 0xf7, -1, false, ARITH })
VEX_TEST(shlx, "bmi2", { MAP_0F38, PP_66, 0xf7, -1, false, ARITH })
VEX_TEST(shrx, "bmi2", { MAP_0F38, PP_F2, 0xf7, -1, false, ARITH })

/* ADCX and ADOX have a legacy encoding: a prefix, REX, 0F 38 F6 /r. */
static void carry_chain(void **state)
{
	(void)state;
	if (!cpu_has(7, 1, 19)) {
		SKIP("this CPU has no ADX");
	}
	for (int i = 0; i < 2 * ROUNDS; i++) {
		unsigned int reg = any_register(), rex = rnd() % 2 ? 0x48 : 0x40;
		int rm = rnd() % 2 ? (int)any_register() : -1;
		struct code c = { .n = 0 };
		struct host_state s;

		byte(&c, i % 2 ? 0x66 : 0xf3);
		byte(&c, rex | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0));
		byte(&c, 0x0f);
		byte(&c, 0x38);
		byte(&c, 0xf6);
		rm_operand(&c, reg, rm, 0, data_address(1));
		random_state(&s);
		if (i % 16 == 0)
			fill_data();
		judge(&c, &s, ARITH, true);
	}
}

/* Nothing is read from behind the end of what is mapped: the guest gets its page fault. */
static void not_mapped(void **state)
{
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	f.v->run->s.regs.regs.rdi = DATA + DATA_SIZE - 4;
	f.v->run->s.regs.regs.rcx = 0x1234;
	CODE_BYTES(0xc4, 0xe2, 0xf1, 0xf7, 0x07); /* shlx %rcx, (%rdi), %rax */
	assert_int_equal(complete_instruction(f.v, &e), 0);
	assert_int_equal(events.exception.injected, 1);
	assert_int_equal(events.exception.nr, 14);
	assert_int_equal(f.v->run->s.regs.sregs.cr2, DATA + DATA_SIZE);
	assert_int_equal(f.v->run->s.regs.regs.rip, CODE);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(andn), TEST(bextr), TEST(blsr), TEST(blsmsk),	TEST(blsi),
		TEST(bzhi), TEST(mulx),	 TEST(pdep), TEST(pext),	TEST(rorx),
		TEST(sarx), TEST(shlx),	 TEST(shrx), TEST(carry_chain), TEST(not_mapped),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
