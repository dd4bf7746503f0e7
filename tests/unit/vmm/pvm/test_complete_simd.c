/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SSE and AVX instructions as complete.c finishes them, against the same bytes run by this
 * machine's CPU: vector registers, general registers, flags and memory. What must not run in
 * this process is refused, and an exception of what does run is survived.
 */
#include "vmm/pvm/complete.h"

#include "vmm/pvm/guest_insn.h"
#include "vmm/pvm/simd_form.h"
#include "vmm/pvm/simd_run.h"

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
static int tries = TRIES;
static unsigned int operand = 16; /* alignment of memory operands */

struct area {
	_Alignas(64) uint8_t b[4096];
};

static struct area own, with;

static uint8_t *guest_area(void)
{
	return (uint8_t *)xsave_area.region;
}

static struct kvm_host simd_host;
static struct simd_place *simd_place;

static void simd_open(void)
{
	struct err e = { 0 };

	if (kvm_host_open(&simd_host, &e) == 0)
		simd_place = simd_place_create(&simd_host);
	err_clear(&e);
}

static int simd_group_teardown(void **state)
{
	(void)state;
	simd_place_destroy(simd_place);
	kvm_host_close(&simd_host);
	return 0;
}

static int simd_setup(void **state)
{
	int ret = setup(state);

	f.v->pvm_state.simd = simd_place;
	return ret;
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
	for (int i = 0; i < tries; i++) {
		uint64_t at = DATA + operand * (rnd() % ((DATA_SIZE - operand) / operand));
		struct host_state s;
		struct code c;

		if (i % 8 == 0) /* over the boundary of two pages, as far as it is long */
			at = DATA + 4096 - operand;
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

/* Whether this CPU has the instruction: it runs once, with zeros. */
static bool cpu_runs(const struct simd_form *form)
{
	struct simd_values v = { .rflags = 2 };

	random_vectors();
	memcpy(&v.vectors, &xsave_area, sizeof(v.vectors));
	return simd_run(simd_place, form, &v) == 0;
}

/* The address of the operand comes from capstone, which lacks some instructions. */
static bool decoder_knows(const uint8_t *code, const struct simd_form *form)
{
	struct guest_insn g;

	put_code(code, SIMD_FORM_MAX);
	return guest_insn_decode(&g, f.v) == 0 && g.insn->size == form->source_len;
}

/* Compares one opcode, in the forms that its row has, with the CPU. Returns whether it ran. */
static bool against_cpu_row(const struct simd_row *r, unsigned int op, bool vex, bool w, bool l)
{
	static const uint8_t prefix[] = { 0, 0x66, 0xf3, 0xf2 }, map[] = { 0, 0, 0x38, 0x3a };
	struct simd v = { .n = 0, .tail = r->flags & SIMD_IMM ? 1 : 0 };
	/* vvvv is 3 where it names a register. A form in memory may want 15, though. */
	bool v_used = r->flags & SIMD_V;
	uint8_t alone[15];
	struct simd_form form;

	v.operands = (r->flags & SIMD_NO_REG || r->flags & SIMD_V_REG ? 0 : REGISTERS) |
		     (r->flags & SIMD_NO_MEM ? 0 : MEMORY);
	if (vex) {
		v.code[v.n++] = 0xc4;
		v.code[v.n++] = 0xe0 | r->map;
		v.code[v.n++] = (uint8_t)((w ? 0x80 : 0) | (v_used ? 12 << 3 : 15 << 3) |
					  (l ? 4 : 0) | r->pp);
	} else {
		if (r->pp)
			v.code[v.n++] = prefix[r->pp];
		if (w)
			v.code[v.n++] = 0x48;
		v.code[v.n++] = 0x0f;
		if (map[r->map])
			v.code[v.n++] = map[r->map];
	}
	v.code[v.n++] = (uint8_t)op;
	if (r->flags & SIMD_GROUP)
		return false; /* ModRM.reg is not free */
	memset(alone, 0, sizeof(alone));
	memcpy(alone, v.code, v.n);
	/* The form in registers last: it is what runs to see whether this CPU has it. */
	for (unsigned int k = 0; k < 2; k++) {
		if (!(v.operands & (k ? REGISTERS : MEMORY)))
			continue;
		alone[v.n] = k ? 0xc1 : 0x07;
		if (simd_form_parse(alone, sizeof(alone), &form) < 0 ||
		    !decoder_knows(alone, &form))
			return false;
	}
	if (!cpu_runs(&form))
		return false;
	tries = 12;
	operand = 32;
	against_cpu(&v);
	tries = TRIES;
	operand = 16;
	return true;
}

/* Each opcode of the table, each of W and L, against the CPU. */
static void every_row(void **state)
{
	unsigned int ran = 0;

	(void)state;
	NEEDS("avx");
	for (unsigned int map = 1; map <= 3; map++)
		for (unsigned int k = 0; k < 4 * 256 * 8; k++) {
			bool vex = k & 1, w = k & 2, l = k & 4;
			struct simd_opcode o = { (uint8_t)map, (uint8_t)(k >> 3 & 3),
						 (uint8_t)(k >> 5), vex };
			const struct simd_row *r = simd_table_find(&o);

			if (r && (vex || !l) && (w || r->size != 0 || vex))
				ran += against_cpu_row(r, o.opcode, vex, w, l);
		}
	print_message("%u forms compared with the CPU\n", ran);
	assert_true(ran > 500);
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
	REFUSES(0xf2, 0x66, 0x48, 0x0f, 0x2a, 0xc4); /* cvtsi2sd xmm0, rsp with a 66 */
	REFUSES(0x66, 0xf3, 0x0f, 0x2c, 0xe0);	     /* cvttss2si esp, xmm0 with a 66 */
}

/* The guest's rsp is a register like any other; the host's is never seen. */
static void rsp_is_a_value(void **state)
{
	const uint64_t value = UINT64_C(0x1122334455667788);

	(void)state;
	kvm_answers = true;
	random_vectors();
	f.v->run->s.regs.regs.rsp = value;
	CODE_BYTES(0x66, 0x48, 0x0f, 0x6e, 0xc4); /* movq xmm0, rsp */
	completes(5);
	assert_memory_equal(guest_area() + XMM, &value, 8);
	f.v->run->s.regs.regs.rsp = 0;
	CODE_BYTES(0x66, 0x48, 0x0f, 0x7e, 0xc4); /* movq rsp, xmm0 */
	completes(5);
	assert_int_equal(f.v->run->s.regs.regs.rsp, value);
	CODE_BYTES(0xf2, 0x0f, 0x2c, 0xe0); /* cvttsd2si esp, xmm0 */
	completes(4);
	assert_int_equal(f.v->run->s.regs.regs.rsp, 0); /* 0x1.2334...p-238 */
	f.v->run->s.regs.regs.r12 = 7;
	CODE_BYTES(0xf2, 0x49, 0x0f, 0x2a, 0xcc); /* cvtsi2sd xmm1, r12 */
	completes(5);
	assert_memory_equal(guest_area() + XMM + 16, &(double){ 7 }, 8);
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
	struct simd_form form;

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
		CODE_BYTES(0xc4, 0xe2, 0xf9, 0x0e, 0xc1); /* vtestps has no W: #UD */
		assert_int_equal(simd_form_parse(fake_host(&f, CODE), 15, &form), 0);
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
#define T(name) cmocka_unit_test_setup_teardown(name, simd_setup, teardown)
	const struct CMUnitTest tests[] = {
		T(punpcklqdq),	T(paddd_rex),	    T(pshufd),		T(addps),
		T(divsd),	T(store_low),	    T(store_unaligned), T(from_general),
		T(to_general),	T(convert),	    T(byte_mask),	T(pshufb),
		T(palignr),	T(ptest),	    T(pextrq),		T(pcmpestri),
		T(aesenc),	T(pclmulqdq),	    T(vpaddd),		T(vmovdqa_high),
		T(vpshufb_ymm), T(vpermq),	    T(vfmadd),		T(sha),
		T(vzeroupper),	T(dangerous_forms), T(page_fault),	T(exceptions_are_caught),
		T(every_row),	T(rsp_is_a_value),
	};

	simd_open();
	if (!simd_place) { /* cmocka takes a skip in a setup for an error */
		puts("no /dev/kvm here that takes vector registers");
		return 77;
	}
	return cmocka_run_group_tests(tests, group_setup, simd_group_teardown);
}
