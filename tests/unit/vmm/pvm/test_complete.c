/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The results of complete.c are compared with those of this machine's CPU (insn_judge.h). If the
 * CPU lacks an instruction, or only ring 0 could run it, they are compared with the manual instead.
 */
#include "vmm/pvm/complete.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/insn_judge.h"
#include "tests/unit/skip.h"

#define AC UINT64_C(0x40000)

/* -- instructions ----------------------------------------------------------------- */

struct form {
	uint8_t prefix;	   /* mandatory prefix, 0 none */
	uint8_t opcode[3]; /* with its escape bytes */
	unsigned int n;
	int digit; /* /digit in ModRM.reg, -1: a register */
	bool may_reg, may_mem;
	uint64_t flags; /* those that are defined behind it */
};

/*
 * Encode with random operands. size: of the operation in bytes. The registers in
 * *s are set so that a memory operand lies at `at`.
 */
static struct code encode(const struct form *form, unsigned int size, bool byte_rm, uint64_t at,
			  struct host_state *s)
{
	unsigned int reg = form->digit >= 0 ? (unsigned int)form->digit : rnd() % 16;
	unsigned int rm, index = 4, scale = 0, kind, modrm = 0, rex = size == 8 ? 0x48 : 0;
	bool mem = form->may_mem && (!form->may_reg || rnd() % 2);
	struct code c = { .n = 0 };
	bool need_rex, high = false;

	if (form->digit < 0)
		while (reg == GPR_RSP)
			reg = rnd() % 16;
	kind = mem ? (unsigned int)(rnd() % 5) : 99;
	do
		rm = rnd() % 16;
	while (rm == GPR_RSP || (mem && (rm == reg || rm <= GPR_RBX)));
	if (!mem && byte_rm && size == 4 && reg < 8 && rnd() % 3 == 0) {
		high = true; /* ah, ch, dh, bh: only without REX */
		rm = 4 + (unsigned int)(rnd() % 4);
	}
	need_rex = !high && byte_rm && !mem && rm >= 4;

	if (mem && kind >= 3)
		byte(&c, 0x65); /* gs */
	if (size == 2)
		byte(&c, 0x66);
	if (form->prefix)
		byte(&c, form->prefix);
	if (form->digit < 0)
		rex |= reg >= 8 ? 0x44 : 0;
	if (!mem || kind == 0 || kind == 1 || kind == 3)
		rex |= rm >= 8 ? 0x41 : 0;
	if (kind == 1) {
		do
			index = rnd() % 16;
		while (index == GPR_RSP || index == rm || index == reg || index <= GPR_RBX);
		rex |= index >= 8 ? 0x42 : 0;
		scale = rnd() % 4;
	}
	if (rex || need_rex)
		byte(&c, rex | 0x40);
	for (unsigned int i = 0; i < form->n; i++)
		byte(&c, form->opcode[i]);
	modrm = (reg & 7) << 3;
	switch (kind) {
	case 0: /* [base + disp8] */
	case 3: /* gs:[base + disp8] */
	{
		int8_t disp = (int8_t)rnd();

		byte(&c, 0x40 | modrm | (rm & 7));
		if ((rm & 7) == 4)
			byte(&c, 0x24);
		byte(&c, (uint8_t)disp);
		s->gpr[rm] = at - (uint64_t)(int64_t)disp - (kind == 3 ? GS_BASE : 0);
		break;
	}
	case 1: /* [base + index * scale + disp32] */
	{
		int32_t disp = (int32_t)rnd();

		byte(&c, 0x84 | modrm);
		byte(&c, scale << 6 | (index & 7) << 3 | (rm & 7));
		dword(&c, (uint32_t)disp);
		s->gpr[rm] = at - (uint64_t)(int64_t)disp - (s->gpr[index] << scale);
		break;
	}
	case 2: /* [rip + disp32] */
		byte(&c, modrm | 5);
		dword(&c, (uint32_t)(at - (CODE + c.n + 4)));
		break;
	case 4: /* gs:[disp32], as per-CPU variables are reached */
		byte(&c, modrm | 4);
		byte(&c, 0x25);
		dword(&c, (uint32_t)(at - GS_BASE));
		break;
	default:
		byte(&c, 0xc0 | modrm | (rm & 7));
	}
	return c;
}

static void against_cpu(const struct form *form, bool byte_rm)
{
	for (int i = 0; i < ROUNDS; i++) {
		static const unsigned int sizes[] = { 2, 4, 8 };
		unsigned int size = byte_rm ? sizes[1 + rnd() % 2] : sizes[rnd() % 3];
		struct host_state s;
		struct code c;

		random_state(&s);
		if (i % 64 == 0 || form->opcode[form->n - 1] == 0xf1)
			fill_data();
		c = encode(form, size, byte_rm, data_address(1), &s);
		judge(&c, &s, form->flags, true);
	}
}

static void popcnt(void **state)
{
	static const struct form form = { 0xf3, { 0x0f, 0xb8 }, 2, -1, true, true, ARITH };

	(void)state;
	NEEDS("popcnt");
	against_cpu(&form, false);
}

static void tzcnt(void **state)
{
	static const struct form form = { 0xf3, { 0x0f, 0xbc }, 2, -1, true, true, CF | ZF };

	(void)state;
	NEEDS("bmi");
	against_cpu(&form, false);
}

static void lzcnt(void **state)
{
	static const struct form form = { 0xf3, { 0x0f, 0xbd }, 2, -1, true, true, CF | ZF };

	(void)state;
	NEEDS("lzcnt");
	against_cpu(&form, false);
}

static void crc32(void **state)
{
	static const struct form wide = { 0xf2, { 0x0f, 0x38, 0xf1 }, 3, -1, true, true, ARITH };
	static const struct form narrow = { 0xf2, { 0x0f, 0x38, 0xf0 }, 3, -1, true, true, ARITH };

	(void)state;
	NEEDS("sse4.2");
	against_cpu(&wide, false);
	against_cpu(&narrow, true);
}

static void movbe(void **state)
{
	static const struct form load = { 0, { 0x0f, 0x38, 0xf0 }, 3, -1, false, true, ARITH };
	static const struct form store = { 0, { 0x0f, 0x38, 0xf1 }, 3, -1, false, true, ARITH };

	(void)state;
	if (!cpu_has(1, 2, 22)) {
		SKIP("this CPU has no movbe");
	}
	against_cpu(&load, false);
	against_cpu(&store, false);
}

static void cmpxchg16b(void **state)
{
	struct form form = { 0, { 0x0f, 0xc7 }, 2, 1, false, true, ARITH };
	unsigned int equal = 0;

	(void)state;
	if (!cpu_has(1, 2, 13)) {
		SKIP("this CPU has no cmpxchg16b");
	}
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t at = data_address(16);
		struct host_state s;
		struct code c;

		random_state(&s);
		fill_data();
		form.prefix = rnd() % 2 ? 0xf0 : 0; /* lock */
		c = encode(&form, 8, false, at, &s);
		if (rnd() % 2) {
			memcpy(&s.gpr[GPR_RAX], host_data + (at - DATA), 8);
			memcpy(&s.gpr[GPR_RDX], host_data + (at - DATA) + 8, 8);
			if (rnd() % 4 == 0)
				s.gpr[rnd() % 2 ? GPR_RAX : GPR_RDX] ^= UINT64_C(1) << (rnd() & 63);
		}
		judge(&c, &s, ARITH, true);
		equal += s.rflags >> 6 & 1;
	}
	assert_in_range(equal, ROUNDS / 5, ROUNDS - ROUNDS / 5); /* both outcomes were seen */
}

/* -- what only the manual can judge ------------------------------------------------ */

static void clac_and_stac(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;

	(void)state;
	r->rflags = 0x246;
	CODE_BYTES(0x0f, 0x01, 0xcb);
	completes(3);
	assert_int_equal(r->rflags, 0x246 | AC);
	CODE_BYTES(0x0f, 0x01, 0xca);
	completes(3);
	assert_int_equal(r->rflags, 0x246);
}

static void without_effect(void **state)
{
	static const struct {
		uint8_t b[4];
		unsigned int n;
	} insn[] = {
		{ { 0x9b }, 1 },		   /* wait */
		{ { 0x0f, 0x77 }, 2 },		   /* emms */
		{ { 0xdb, 0xe2 }, 2 },		   /* fnclex */
		{ { 0xdb, 0x44, 0x24, 0x10 }, 4 }, /* fild dword [rsp+16] */
		{ { 0x0f, 0x00, 0xe8 }, 3 },	   /* verw ax */
		{ { 0xf3, 0x90 }, 2 },		   /* pause */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(insn) / sizeof(insn[0]); i++) {
		struct kvm_regs *r = &f.v->run->s.regs.regs, before;

		put_code(insn[i].b, insn[i].n);
		r->rsp = 0x1234; /* not mapped: nothing may look there */
		r->rflags = 0xad7;
		before = *r;
		completes(insn[i].n);
		before.rip = r->rip;
		assert_memory_equal(&before, r, sizeof(before));
	}
}

static void exceptions(void **state)
{
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	events.exception.has_error_code = 1;
	CODE_BYTES(0xcc);
	completes(1); /* a trap: rip is behind it */
	assert_int_equal(events.exception.injected, 1);
	assert_int_equal(events.exception.nr, 3);
	assert_int_equal(events.exception.has_error_code, 0);
	CODE_BYTES(0x0f, 0x0b);
	completes(0); /* a fault: rip is at it */
	assert_int_equal(events.exception.nr, 6);

	kvm_answers = false;
	CODE_BYTES(0x0f, 0x0b);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "ud2"));
}

/* A GDT with one descriptor of each kind that LSL tells apart (SDM vol. 2, table 3-52). */
static void lsl(void **state)
{
	static const struct {
		uint64_t desc;
		bool ok;
		uint32_t limit;
	} gdt[] = {
		{ 0, false, 0 },				    /* selector 0 */
		{ UINT64_C(0x00af9b000000ffff), true, 0xffffffff }, /* code, pages */
		{ UINT64_C(0x00cf93000000ffff), true, 0xffffffff }, /* data, pages */
		{ UINT64_C(0x0040f50000005003), true, 0x5003 }, /* data, bytes, ring 3: getcpu's */
		{ UINT64_C(0x000f93000000abcd), true, 0xfabcd },
		{ UINT64_C(0x008f93000000abcd), true, 0xfabcdfff },
		{ UINT64_C(0x00008b0000004087), true, 0x4087 }, /* busy TSS, 64 bit */
		{ UINT64_C(0x0000890000004087), true, 0x4087 }, /* the same, available */
		{ UINT64_C(0x0000820000000017), true, 0x17 },	/* LDT */
		{ 0, false, 0 },				/* a hole in the table */
		{ UINT64_C(0x00008e0000104087), false, 0 },	/* interrupt gate */
		{ UINT64_C(0x00008c0000104087), false, 0 },	/* call gate */
	};
	struct kvm_sregs *s = &f.v->run->s.regs.sregs;
	struct kvm_regs *r = &f.v->run->s.regs.regs;

	(void)state;
	for (unsigned int i = 0; i < sizeof(gdt) / sizeof(gdt[0]); i++)
		fake_put64(&f, DATA + 0x100 + i * 8, gdt[i].desc);
	s->gdt.base = DATA + 0x100;
	s->gdt.limit = sizeof(gdt) / sizeof(gdt[0]) * 8 - 1;
	CODE_BYTES(0x0f, 0x03, 0xc1); /* lsl eax, ecx */
	for (unsigned int i = 0; i < sizeof(gdt) / sizeof(gdt[0]); i++) {
		r->rip = CODE;
		r->rcx = 0xffffffffffff0000 | i << 3;
		r->rax = 0x5555555555555555;
		r->rflags = 0x8d7 ^ (gdt[i].ok ? ZF : 0);
		completes(3);
		assert_int_equal(r->rflags, gdt[i].ok ? 0x8d7 : 0x8d7 & ~ZF);
		assert_int_equal(r->rax, gdt[i].ok ? gdt[i].limit : 0x5555555555555555);
	}
	/* outside of the table, and an LDT, which there is none */
	for (unsigned int i = 0; i < 3; i++) {
		static const uint64_t selector[] = { sizeof(gdt) / sizeof(gdt[0]) * 8, 0xfff8,
						     0x0c };

		r->rip = CODE;
		r->rcx = selector[i];
		r->rflags = 0x46;
		completes(3);
		assert_int_equal(r->rflags, 0x06);
	}
	s->gdt.limit = 0x0e; /* the last byte of descriptor 1 is not in it */
	r->rip = CODE;
	r->rcx = 8;
	r->rflags = 0x46;
	completes(3);
	assert_int_equal(r->rflags, 0x06);
	s->gdt.limit = 0x0f;
	CODE_BYTES(0x66, 0x0f, 0x03, 0xc1); /* lsl ax, cx */
	r->rax = 0x5555555555555555;
	completes(4);
	assert_int_equal(r->rax, 0x555555555555ffff);
	CODE_BYTES(0x48, 0x0f, 0x03, 0xc1); /* lsl rax, ecx */
	completes(4);
	assert_int_equal(r->rax, 0xffffffff);
}

static void random_numbers(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	uint64_t first = 0, differ = 0;
	bool have = __builtin_cpu_supports("rdrnd");

	(void)state;
	for (int i = 0; i < 32; i++) {
		r->rflags = 0x8d6;
		if (i % 2)
			CODE_BYTES(0x48, 0x0f, 0xc7, 0xf0); /* rdrand rax */
		else
			CODE_BYTES(0x48, 0x0f, 0xc7, 0xf8); /* rdseed rax */
		completes(4);
		/* the hardware may be out of numbers: then CF is 0 and so is the destination */
		assert_int_equal(r->rflags & ~CF, 0x002);
		if (!(r->rflags & CF))
			assert_int_equal(r->rax, 0);
		if (!i)
			first = r->rax;
		differ |= first ^ r->rax;
	}
	assert_int_equal(differ != 0, have);
	r->rbx = UINT64_MAX;
	CODE_BYTES(0x0f, 0xc7, 0xf3); /* rdrand ebx */
	completes(3);
	assert_int_equal(r->rbx >> 32, 0);
	r->rbx = UINT64_C(0x1122334455667788);
	CODE_BYTES(0x66, 0x0f, 0xc7, 0xf3); /* rdrand bx */
	completes(4);
	assert_int_equal(r->rbx >> 16, UINT64_C(0x112233445566));
}

static void rdtscp(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	r->rax = r->rcx = r->rdx = UINT64_MAX;
	CODE_BYTES(0x0f, 0x01, 0xf9);
	completes(3);
	assert_int_equal(r->rax, 0x55667788);
	assert_int_equal(r->rdx, 0x11223344);
	assert_int_equal(r->rcx, 5);
	kvm_answers = false;
	CODE_BYTES(0x0f, 0x01, 0xf9);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "rdtscp"));
}

static void xcr0(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	xcrs.nr_xcrs = 1;
	xcrs.xcrs[0].value = UINT64_C(0x8000000000000007);
	r->rax = r->rdx = UINT64_MAX;
	r->rcx = UINT64_C(0x100000000); /* only ecx counts */
	CODE_BYTES(0x0f, 0x01, 0xd0);	/* xgetbv */
	completes(3);
	assert_int_equal(r->rax, 7);
	assert_int_equal(r->rdx, 0x80000000);
	r->rax = UINT64_C(0xffffffff00000003);
	r->rdx = UINT64_C(0xffffffff00000001);
	CODE_BYTES(0x0f, 0x01, 0xd1); /* xsetbv */
	completes(3);
	assert_int_equal(xcrs.nr_xcrs, 1);
	assert_int_equal(xcrs.xcrs[0].xcr, 0);
	assert_int_equal(xcrs.xcrs[0].value, UINT64_C(0x100000003));
	r->rcx = 1;
	CODE_BYTES(0x0f, 0x01, 0xd1);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_int_equal(xcrs.xcrs[0].value, UINT64_C(0x100000003));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(popcnt),	  TEST(tzcnt),	    TEST(lzcnt),	  TEST(crc32),
		TEST(movbe),	  TEST(cmpxchg16b), TEST(clac_and_stac),  TEST(without_effect),
		TEST(exceptions), TEST(lsl),	    TEST(random_numbers), TEST(rdtscp),
		TEST(xcr0),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
