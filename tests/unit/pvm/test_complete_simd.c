/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SSE and AVX instructions as complete.c finishes them, against the same bytes run by this
 * machine's CPU: vector registers, general registers, flags and memory. What must not run in
 * this process is refused, and an exception of what does run is survived.
 */
#include "vmm/pvm/complete.h"

#include "vmm/pvm/simd_form.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/insn_judge.h"
#include "tests/unit/skip.h"

#define MXCSR 24u /* in the area of XSAVE */
#define XMM 160u
#define HEADER 512u
#define YMM_HIGH 576u
#define TRIES 200

struct area {
	_Alignas(64) uint8_t b[4096];
};

static struct area own, with;

static uint8_t *guest_area(void)
{
	return (uint8_t *)xsave_area.region;
}

/* host_run() with the CPU's vector registers out of `with`, and back into it. */
static void host_run_vectors(struct host_state *s)
{
	unsigned int low = 6, high = 0;

	__asm__ volatile("sub $128, %%rsp\n\t" /* the red zone */
			 "xsave64 %[own]\n\t"
			 "xrstor64 %[with]\n\t"
			 "call host_run\n\t"
			 "mov $6, %%eax\n\t"
			 "xor %%edx, %%edx\n\t"
			 "xsave64 %[with]\n\t"
			 "xrstor64 %[own]\n\t"
			 "add $128, %%rsp"
			 : [own] "+m"(own), [with] "+m"(with), "+D"(s), "+a"(low), "+d"(high)
			 :
			 : "rcx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void random_vectors(void)
{
	uint64_t bv = 6;
	uint32_t mxcsr = 0x1f80;

	memset(&xsave_area, 0, sizeof(xsave_area));
	memcpy(guest_area() + MXCSR, &mxcsr, 4);
	memcpy(guest_area() + HEADER, &bv, 8);
	for (unsigned int i = 0; i < 256; i++) {
		guest_area()[XMM + i] = (uint8_t)rnd();
		guest_area()[YMM_HIGH + i] = (uint8_t)rnd();
	}
}

enum operands { REGISTERS = 1, MEMORY = 2, GENERAL = 4 /* one of them is a general register */ };

struct simd {
	uint8_t code[8];
	unsigned int n;	   /* up to ModRM, which is not among them */
	unsigned int tail; /* bytes of an immediate behind it: random */
	unsigned int operands;
};

static struct code encode(const struct simd *v, uint64_t at, struct host_state *s)
{
	bool mem = v->operands & MEMORY && (!(v->operands & REGISTERS) || rnd() % 2);
	unsigned int kind = mem ? (unsigned int)(rnd() % 4) : 9, reg, rm;
	struct code c = { .n = 0 };

	do {
		reg = rnd() % 8;
		rm = rnd() % 8;
	} while (reg == GPR_RSP || rm == GPR_RSP || reg == rm || reg == GPR_RSI || reg == GPR_RCX);
	if (kind == 2)
		byte(&c, 0x65); /* gs */
	for (unsigned int i = 0; i < v->n; i++)
		byte(&c, v->code[i]);
	switch (kind) {
	case 0: /* [base + disp8] */
		byte(&c, 0x40 | reg << 3 | rm);
		byte(&c, 0x20);
		s->gpr[rm] = at - 0x20;
		break;
	case 1: /* [rip + disp32] */
		byte(&c, reg << 3 | 5);
		dword(&c, (uint32_t)(at - (CODE + c.n + 4 + v->tail)));
		break;
	case 2: /* gs:[disp32] */
		byte(&c, reg << 3 | 4);
		byte(&c, 0x25);
		dword(&c, (uint32_t)(at - GS_BASE));
		break;
	case 3: /* [rsi + 4 * rcx + disp32] */
		byte(&c, 0x84 | reg << 3);
		byte(&c, 2 << 6 | GPR_RCX << 3 | GPR_RSI);
		dword(&c, 0x12345);
		s->gpr[GPR_RSI] = at - 0x12345 - (s->gpr[GPR_RCX] << 2);
		break;
	default:
		byte(&c, 0xc0 | reg << 3 | rm);
	}
	for (unsigned int i = 0; i < v->tail; i++)
		byte(&c, (uint8_t)rnd());
	return c;
}

static void against_cpu(const struct simd *v)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t at = DATA + 16 * (rnd() % ((DATA_SIZE - 16) / 16));
		struct host_state s;
		struct code c;

		if (i % 8 == 0) /* over the boundary of two pages, as far as it is long */
			at = DATA + 4096 - 16;
		random_state(&s);
		fill_data();
		random_vectors();
		kvm_answers = true;
		c = encode(v, at, &s);
		/* complete.c works on xsave_area, the CPU on `with`. */
		memcpy(&with, &xsave_area, sizeof(with));
		judge_with(&c, &s, ARITH, true, host_run_vectors);
		assert_memory_equal(guest_area() + XMM, with.b + XMM, 256);
		assert_memory_equal(guest_area() + YMM_HIGH, with.b + YMM_HIGH, 256);
		assert_memory_equal(guest_area() + MXCSR, with.b + MXCSR, 4);
	}
}

#define SIMD_TEST(name, feature, ...)                     \
	static void name(void **state)                    \
	{                                                 \
		static const struct simd v = __VA_ARGS__; \
                                                          \
		(void)state;                              \
		NEEDS("avx");                             \
		NEEDS(feature);                           \
		against_cpu(&v);                          \
	}

/* punpcklqdq is where kernels from 6.16 on stopped. */
SIMD_TEST(punpcklqdq, "sse2", { { 0x66, 0x0f, 0x6c }, 3, 0, REGISTERS | MEMORY })
SIMD_TEST(paddd_rex, "sse2", { { 0x66, 0x44, 0x0f, 0xfe }, 4, 0, REGISTERS | MEMORY })
SIMD_TEST(pshufd, "sse2", { { 0x66, 0x0f, 0x70 }, 3, 1, REGISTERS | MEMORY })
SIMD_TEST(addps, "sse2", { { 0x0f, 0x58 }, 2, 0, REGISTERS | MEMORY })
SIMD_TEST(divsd, "sse2", { { 0xf2, 0x0f, 0x5e }, 3, 0, REGISTERS })
SIMD_TEST(store_low, "sse2", { { 0x66, 0x0f, 0xd6 }, 3, 0, MEMORY })
SIMD_TEST(store_unaligned, "sse2", { { 0xf3, 0x0f, 0x7f }, 3, 0, MEMORY })
SIMD_TEST(from_general, "sse2", { { 0x66, 0x48, 0x0f, 0x6e }, 4, 0, REGISTERS | MEMORY | GENERAL })
SIMD_TEST(to_general, "sse2", { { 0x66, 0x48, 0x0f, 0x7e }, 4, 0, REGISTERS | MEMORY | GENERAL })
SIMD_TEST(convert, "sse2", { { 0xf2, 0x48, 0x0f, 0x2c }, 4, 0, REGISTERS | MEMORY | GENERAL })
SIMD_TEST(byte_mask, "sse2", { { 0x66, 0x0f, 0xd7 }, 3, 0, REGISTERS | GENERAL })
SIMD_TEST(pshufb, "ssse3", { { 0x66, 0x0f, 0x38, 0x00 }, 4, 0, REGISTERS | MEMORY })
SIMD_TEST(palignr, "ssse3", { { 0x66, 0x0f, 0x3a, 0x0f }, 4, 1, REGISTERS | MEMORY })
SIMD_TEST(ptest, "sse4.1", { { 0x66, 0x0f, 0x38, 0x17 }, 4, 0, REGISTERS | MEMORY })
SIMD_TEST(pextrq, "sse4.1",
	  { { 0x66, 0x48, 0x0f, 0x3a, 0x16 }, 5, 1, REGISTERS | MEMORY | GENERAL })
SIMD_TEST(pcmpestri, "sse4.2", { { 0x66, 0x0f, 0x3a, 0x61 }, 4, 1, REGISTERS | MEMORY })
SIMD_TEST(aesenc, "aes", { { 0x66, 0x0f, 0x38, 0xdc }, 4, 0, REGISTERS | MEMORY })
SIMD_TEST(pclmulqdq, "pclmul", { { 0x66, 0x0f, 0x3a, 0x44 }, 4, 1, REGISTERS | MEMORY })
SIMD_TEST(vpaddd, "avx", { { 0xc5, 0xe9, 0xfe }, 3, 0, REGISTERS | MEMORY })
SIMD_TEST(vmovdqa_high, "avx", { { 0xc5, 0x79, 0x6f }, 3, 0, REGISTERS | MEMORY })
SIMD_TEST(vpshufb_ymm, "avx2", { { 0xc4, 0xe2, 0x6d, 0x00 }, 4, 0, REGISTERS | MEMORY })
SIMD_TEST(vpermq, "avx2", { { 0xc4, 0xe3, 0xfd, 0x00 }, 4, 1, REGISTERS | MEMORY })
SIMD_TEST(vfmadd, "fma", { { 0xc4, 0xe2, 0xe9, 0x98 }, 4, 0, REGISTERS })

static void sha(void **state)
{
	static const struct simd rounds = { { 0x0f, 0x38, 0xcb }, 3, 0, REGISTERS | MEMORY };
	static const struct simd sha1 = { { 0x0f, 0x3a, 0xcc }, 3, 1, REGISTERS | MEMORY };

	(void)state;
	if (!cpu_has(7, 1, 29)) {
		SKIP("this CPU has no SHA instructions");
	}
	against_cpu(&rounds);
	against_cpu(&sha1);
}

static void vzeroupper(void **state)
{
	static const uint8_t zero[256];
	uint8_t before[256];

	(void)state;
	NEEDS("avx");
	random_vectors();
	kvm_answers = true;
	memcpy(before, guest_area() + XMM, sizeof(before));
	CODE_BYTES(0xc5, 0xf8, 0x77);
	completes(3);
	assert_memory_equal(guest_area() + XMM, before, sizeof(before));
	if (guest_area()[HEADER] & 4) /* else the area is not looked at */
		assert_memory_equal(guest_area() + YMM_HIGH, zero, sizeof(zero));
}

/* -- what is refused ------------------------------------------------------------------ */

static void refuses(void)
{
	struct err e = { 0 };

	kvm_answers = true;
	random_vectors();
	xsave_set = 0;
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_int_equal(f.v->run->s.regs.regs.rip, CODE);
	assert_int_equal(f.v->run->kvm_dirty_regs, 0);
	assert_int_equal(xsave_set, 0);
}
#define REFUSES(...)                                                                 \
	do {                                                                         \
		static const uint8_t b_[15] = { __VA_ARGS__ };                       \
		struct simd_form form_;                                              \
                                                                                     \
		assert_int_equal(simd_form_parse(b_, sizeof(b_), &form_), -ENOTSUP); \
		put_code(b_, sizeof(b_));                                            \
		refuses();                                                           \
	} while (0)

static void dangerous_forms(void **state)
{
	(void)state;
	f.v->run->s.regs.regs.rdi = DATA;
	REFUSES(0x66, 0x0f, 0xf7, 0xc1);	     /* maskmovdqu: to [rdi] */
	REFUSES(0xc5, 0xf9, 0xf7, 0xc1);	     /* the same by VEX */
	REFUSES(0x0f, 0xf7, 0xc1);		     /* maskmovq */
	REFUSES(0x0f, 0xef, 0xc1);		     /* pxor mm0, mm1 */
	REFUSES(0x0f, 0x6f, 0x07);		     /* movq mm0, [rdi] */
	REFUSES(0x0f, 0x38, 0x00, 0xc1);	     /* pshufb mm0, mm1 */
	REFUSES(0xf2, 0x0f, 0xd6, 0xc1);	     /* movdq2q mm0, xmm1 */
	REFUSES(0x66, 0x0f, 0x2c, 0xc1);	     /* cvttpd2pi mm0, xmm1 */
	REFUSES(0xc4, 0xe2, 0x69, 0x90, 0x04, 0x0f); /* vpgatherdd */
	REFUSES(0x66, 0x0f, 0x38, 0xf8, 0x07);	     /* movdir64b */
	REFUSES(0xf2, 0x0f, 0x38, 0xf8, 0x07);	     /* enqcmd */
	REFUSES(0x0f, 0x05);			     /* syscall */
	REFUSES(0x0f, 0xc7, 0x3f);		     /* vmptrst */
	REFUSES(0x0f, 0xae, 0x0f);		     /* fxrstor */
	REFUSES(0xf0, 0x0f, 0x58, 0x07);	     /* lock */
	REFUSES(0x62, 0xf1, 0x7d, 0x48, 0x6f, 0xc1); /* EVEX */
	REFUSES(0xc5, 0xf8, 0x92, 0xc8);	     /* kmovw k1, eax */
	REFUSES(0xc4, 0xe2, 0x78, 0x49, 0xc0);	     /* tilerelease */
	REFUSES(0x66, 0xc5, 0xf9, 0xfe, 0xc1);	     /* a prefix that VEX forbids */
	CODE_BYTES(0x66, 0x48, 0x0f, 0x6e, 0xc4);    /* movq xmm0, rsp */
	refuses();
}

/* An operand that is not mapped is the guest's page fault. */
static void page_fault(void **state)
{
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	random_vectors();
	f.v->run->s.regs.regs.rdi = DATA + DATA_SIZE - 8;
	CODE_BYTES(0x66, 0x0f, 0x6c, 0x07); /* punpcklqdq xmm0, [rdi] */
	assert_int_equal(complete_instruction(f.v, &e), 0);
	assert_int_equal(f.v->run->s.regs.regs.rip, CODE);
	assert_int_equal(events.exception.nr, 14);
	assert_int_equal(f.v->run->s.regs.sregs.cr2, DATA + DATA_SIZE);
	assert_int_equal(xsave_set, 0);
	/* A load of 8 bytes there has all that it needs. */
	CODE_BYTES(0xf3, 0x0f, 0x7e, 0x07); /* movq xmm0, [rdi] */
	completes(4);
	assert_memory_equal(guest_area() + XMM, fake_host(&f, DATA + 4096) + 4088, 8);
}

/* vpmovzx and such with a ModRM that has no meaning: the CPU's #UD is caught, more than once. */
static void exceptions_are_caught(void **state)
{
	uint32_t mxcsr = 0, after;

	(void)state;
	NEEDS("avx");
	for (int i = 0; i < 3; i++) {
		CODE_BYTES(0xc5, 0xfd, 0x6c,
			   0xc1); /* VEX.vvvv is 15 here: vpunpcklqdq is fine ... */
		kvm_answers = true;
		random_vectors();
		if (__builtin_cpu_supports("avx2"))
			completes(4);
		CODE_BYTES(0xc4, 0xe2, 0x39, 0x17, 0xc1); /* ... but no vptest with a vvvv */
		refuses();
	}
	/* All SIMD exceptions unmasked: 0 / 0 sets a flag and kills nobody. */
	CODE_BYTES(0x0f, 0x5e, 0xc1); /* divps xmm0, xmm1 */
	random_vectors();
	memset(guest_area() + XMM, 0, 32);
	memcpy(guest_area() + MXCSR, &mxcsr, 4);
	completes(3);
	memcpy(&after, guest_area() + MXCSR, 4);
	assert_int_equal(after, 1); /* invalid operation */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(punpcklqdq),	T(paddd_rex),	    T(pshufd),		T(addps),
		T(divsd),	T(store_low),	    T(store_unaligned), T(from_general),
		T(to_general),	T(convert),	    T(byte_mask),	T(pshufb),
		T(palignr),	T(ptest),	    T(pextrq),		T(pcmpestri),
		T(aesenc),	T(pclmulqdq),	    T(vpaddd),		T(vmovdqa_high),
		T(vpshufb_ymm), T(vpermq),	    T(vfmadd),		T(sha),
		T(vzeroupper),	T(dangerous_forms), T(page_fault),	T(exceptions_are_caught),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
