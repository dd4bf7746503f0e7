/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XSAVE and XRSTOR as complete.c does them are compared with this machine's CPU:
 * same registers, same area, byte for byte. Areas that a guest must not have are
 * refused, and a hostile header leads nowhere.
 */
#include "vmm/pvm/complete.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/insn_fixture.h"
#include "tests/unit/skip.h"

#define XMASK 7u /* x87, SSE, AVX: every machine that has XSAVEC has them */
#define AREA (DATA + 4096 - 192)
#define AREA_SIZE 832u

struct area {
	_Alignas(64) uint8_t b[4096];
};

/* Run one save or restore with the CPU's registers loaded from `img`; they are put back. */
#define WITH_STATE(img, insn, mem)                                                      \
	do {                                                                            \
		static struct area own_;                                                \
		__asm__ volatile("xsave %[own]\n\txrstor %[from]\n\t" insn " %[to]\n\t" \
				 "xrstor %[own]"                                        \
				 : [own] "+m"(own_), [to] "+m"(mem)                     \
				 : [from] "m"(img), "a"(XMASK), "d"(0)                  \
				 : "memory");                                           \
	} while (0)

static bool have_xsavec(void)
{
	return __builtin_cpu_supports("avx") && cpu_has(0xd, 0, 1);
}

/* The bits that MXCSR has, which is what the processor writes behind it. */
static uint32_t mxcsr_mask;

static int group_setup(void **state)
{
	static struct area a;

	(void)state;
	__asm__ volatile("fxsave %0" : "=m"(a));
	memcpy(&mxcsr_mask, a.b + 28, 4);
	return 0;
}

/* A standard-format image with random values in every register. */
static void random_image(struct area *a, uint64_t bv, uint32_t mxcsr)
{
	uint16_t fcw = 0x27f;

	memset(a, 0, sizeof(*a));
	memcpy(a->b, &fcw, 2);
	a->b[4] = 0xff; /* abridged tag word: all eight in use */
	memcpy(a->b + 24, &mxcsr, 4);
	memcpy(a->b + 28, &mxcsr_mask, 4);
	for (unsigned int i = 0; i < 8; i++)
		for (unsigned int k = 0; k < 10; k++)
			a->b[32 + 16 * i + k] = (uint8_t)rnd();
	for (unsigned int i = 160; i < 416; i++)
		a->b[i] = (uint8_t)rnd();
	for (unsigned int i = 576; i < 832; i++)
		a->b[i] = (uint8_t)rnd();
	memcpy(a->b + 512, &bv, 8);
}

static void xsave_at(const struct area *a)
{
	kvm_answers = true;
	xcrs.nr_xcrs = 1;
	xcrs.xcrs[0].value = XMASK;
	memcpy(&xsave_area, a->b, sizeof(xsave_area));
	f.v->run->s.regs.regs.rax = UINT64_MAX; /* all components, as kernels ask */
	f.v->run->s.regs.regs.rdx = UINT64_MAX;
	f.v->run->s.regs.regs.rdi = AREA;
}

static void get_area(struct area *a)
{
	memset(a, 0, sizeof(*a));
	fake_get(&f, AREA, a->b, AREA_SIZE);
}

static void put_area(const struct area *a)
{
	fake_put(&f, AREA, a->b, AREA_SIZE);
}

static void xsave_forms(void **state)
{
	static struct area img, want, got, zero;

	(void)state;
	if (!have_xsavec()) {
		SKIP("this CPU has no AVX or XSAVEC");
	}
	for (int i = 0; i < 50; i++) {
		random_image(&img, XMASK, 0x1fa0);
		xsave_at(&img);

		memset(&want, 0, sizeof(want));
		WITH_STATE(img, "xsavec", want);
		put_area(&zero);
		CODE_BYTES(0x48, 0x0f, 0xc7, 0x27); /* xsavec64 [rdi] */
		completes(4);
		get_area(&got);
		assert_memory_equal(got.b, want.b, AREA_SIZE);

		memset(&want, 0, sizeof(want));
		WITH_STATE(img, "xsave", want);
		put_area(&zero);
		CODE_BYTES(0x48, 0x0f, 0xae, 0x27); /* xsave64 [rdi] */
		completes(4);
		get_area(&got);
		/* x87 pointers differ between the 32- and 64-bit forms, but they are all zero */
		assert_memory_equal(got.b, want.b, AREA_SIZE);
	}
	/* Components that were not requested stay unchanged, in the header as well. */
	random_image(&img, XMASK, 0x1fa0);
	xsave_at(&img);
	memset(&want, 0xee, sizeof(want));
	memset(want.b + 512, 0, 64);
	want.b[512] = 4;
	put_area(&want);
	f.v->run->s.regs.regs.rax = 2;
	f.v->run->s.regs.regs.rdx = 0;
	CODE_BYTES(0x48, 0x0f, 0xae, 0x27);
	completes(4);
	get_area(&got);
	memcpy(want.b + 24, img.b + 24, 8);
	memcpy(want.b + 160, img.b + 160, 256);
	want.b[512] = 6;
	assert_memory_equal(got.b, want.b, AREA_SIZE);
}

/* After a restore KVM must hold what the CPU holds after the same restore. */
static void xrstor_forms(void **state)
{
	static struct area img, other, from, want;

	(void)state;
	if (!have_xsavec()) {
		SKIP("this CPU has no AVX or XSAVEC");
	}
	for (uint64_t n = 0; n < 64; n++) {
		uint64_t bv = n & XMASK;
		bool compact = n & 8;
		struct kvm_xsave before;
		uint64_t kvm_bv;

		random_image(&img, XMASK, 0x1fa0);
		random_image(&other, XMASK, 0x1f80);
		if (compact)
			WITH_STATE(img, "xsavec", from);
		else
			from = img;
		memcpy(from.b + 512, &bv, 8);
		/* the CPU's answer: load `from`, store everything in standard form */
		memset(&want, 0, sizeof(want));
		WITH_STATE(from, "xsave", want);

		xsave_at(&other);
		before = xsave_area;
		put_area(&from);
		xsave_set = 0;
		CODE_BYTES(0x48, 0x0f, 0xae, 0x2f); /* xrstor64 [rdi] */
		completes(4);
		assert_int_equal(xsave_set, 1);
		memcpy(&kvm_bv, (uint8_t *)xsave_area.region + 512, 8);
		assert_int_equal(kvm_bv, bv);
		{
			const uint8_t *got = (const uint8_t *)xsave_area.region;

			assert_memory_equal(got, want.b, 24);		   /* x87 control */
			assert_memory_equal(got + 24, want.b + 24, 4);	   /* MXCSR */
			assert_memory_equal(got + 32, want.b + 32, 128);   /* st0..7 */
			assert_memory_equal(got + 160, want.b + 160, 256); /* xmm */
			assert_memory_equal(got + 576, want.b + 576, 256); /* upper ymm */
		}
		assert_memory_not_equal(&before, &xsave_area, sizeof(before));
	}
}

static void xstate_refuses(void **state)
{
	static struct area img;
	struct err e = { 0 };
	uint64_t rip;

	(void)state;
	random_image(&img, XMASK, 0x1f80);
	xsave_at(&img);
	f.v->run->s.regs.regs.rdi = AREA + 8; /* not a multiple of 64 */
	CODE_BYTES(0x48, 0x0f, 0xc7, 0x27);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "xsavec64"));
	CODE_BYTES(0x48, 0x0f, 0xae, 0x2f);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	/* Runs into nothing: the guest's own page fault, at the instruction. */
	f.v->run->s.regs.regs.rdi = DATA + DATA_SIZE - 256;
	CODE_BYTES(0x48, 0x0f, 0xae, 0x2f);
	rip = f.v->run->s.regs.regs.rip;
	assert_int_equal(complete_instruction(f.v, &e), 0);
	assert_int_equal(f.v->run->s.regs.regs.rip, rip);
	assert_int_equal(f.v->run->s.regs.sregs.cr2, DATA + DATA_SIZE);
	assert_int_equal(events.exception.injected, 1);
	assert_int_equal(events.exception.nr, 14);
	assert_int_equal(events.exception.has_error_code, 1);
	assert_int_equal(events.exception.error_code, 0); /* a read by the kernel, not present */
	assert_int_equal(xsave_set, 0);
	kvm_answers = false;
	f.v->run->s.regs.regs.rdi = AREA;
	CODE_BYTES(0x48, 0x0f, 0xc7, 0x27);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
}

/* A component bitmap from the guest leads nowhere outside of our own buffer. */
static void xrstor_hostile_header(void **state)
{
	static struct area img;

	(void)state;
	for (int i = 0; i < 500; i++) {
		struct err e = { 0 };
		uint64_t bv = rnd(), comp = rnd() | (i & 1 ? UINT64_C(1) << 63 : 0);

		random_image(&img, XMASK, 0x1f80);
		xsave_at(&img);
		xcrs.xcrs[0].value = rnd();
		memcpy(img.b + 512, &bv, 8);
		memcpy(img.b + 520, &comp, 8);
		put_area(&img);
		CODE_BYTES(0x48, 0x0f, 0xae, 0x2f);
		(void)complete_instruction(f.v, &e);
		CODE_BYTES(0x48, 0x0f, 0xc7, 0x27);
		(void)complete_instruction(f.v, &e);
	}
}

static void mxcsr(void **state)
{
	static const uint32_t values[] = { 0x1f80, 0x9fc0, 0xffff, 0 };
	struct err e = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct area before, after;
		uint64_t bv;
		uint32_t got;

		/* In use or not: what was in the other registers stays. */
		random_image(&before, i & 1 ? 7 : 1, 0x1f80);
		xsave_at(&before);
		memcpy(fake_host(&f, DATA + 64), &values[i], 4);
		f.v->run->s.regs.regs.rdi = DATA;
		CODE_BYTES(0x0f, 0xae, 0x57, 0x40); /* ldmxcsr 64(%rdi) */
		xsave_set = 0;
		completes(4);
		assert_int_equal(xsave_set, 1);
		memcpy(&after, &xsave_area, sizeof(after));
		memcpy(&got, after.b + 24, 4);
		memcpy(&bv, after.b + 512, 8);
		assert_int_equal(got, values[i]);
		assert_int_equal(bv, (i & 1 ? 7 : 1) | 2);
		assert_memory_equal(after.b, before.b, 24);
		assert_memory_equal(after.b + 28, before.b + 28, 512 - 28);
		CODE_BYTES(0x0f, 0xae, 0x5f, 0x48); /* stmxcsr 72(%rdi) */
		completes(4);
		assert_memory_equal(fake_host(&f, DATA + 72), &values[i], 4);
	}
	/* One bit more or less: by the processor's mask, or by the first processors', which gave none. */
	for (unsigned int i = 0; i < 6; i++) {
		static const uint32_t masks[] = { 0, 0xffff, 0x2ffff };
		uint32_t mask = masks[i / 2], bits = mask ? mask : 0xffbf;
		uint32_t value = i & 1 ? bits : bits + 0x40000;

		memcpy((uint8_t *)&xsave_area + 28, &mask, 4);
		memcpy(fake_host(&f, DATA + 64), &value, 4);
		CODE_BYTES(0x0f, 0xae, 0x57, 0x40);
		xsave_set = 0;
		assert_int_equal(complete_instruction(f.v, &e), i & 1 ? 0 : -ENOTSUP);
		assert_int_equal(xsave_set, i & 1);
	}
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(xsave_forms),	     TEST(xrstor_forms), TEST(xstate_refuses),
		TEST(xrstor_hostile_header), TEST(mxcsr),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
