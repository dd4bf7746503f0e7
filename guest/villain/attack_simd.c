// SPDX-License-Identifier: GPL-2.0-or-later
/* SIMD instructions in ring 0, which the VMM completes on a host that interprets ring 0. */
#include "villain.h"

#define CR4_SSE 0x600ul

/* Turns SSE on; the guest's own code does not use it. */
void simd_on(void)
{
	u64 v;

	__asm__ volatile("mov %%cr4, %0; or %1, %0; mov %0, %%cr4"
			 : "=&r"(v)
			 : "r"(CR4_SSE)
			 : "memory");
	__asm__ volatile("mov %%cr0, %0; and $~0xc, %0; or $2, %0; mov %0, %%cr0"
			 : "=&r"(v)
			 :
			 : "memory");
}

int simd_works(void)
{
	u64 v = 0x1122334455667788, back;

	simd_on();
	__asm__ volatile("movq %1, %%xmm1; punpcklqdq %%xmm1, %%xmm1; movq %%xmm1, %0"
			 : "=r"(back)
			 : "r"(v));
	return back == v;
}

/* Register 4 is rsp, or r12 with a REX bit: the guest's value must be used. */
static int number_four(struct vdev *d)
{
	u64 rsp, seen, r12 = 0x7654321, other;

	(void)d;
	__asm__ volatile("mov %%rsp, %0; cvtsi2sd %%rsp, %%xmm0; cvttsd2si %%xmm0, %1"
			 : "=&r"(rsp), "=&r"(seen));
	if (rsp != seen && rsp >> 53 == 0)
		return 1;
	__asm__ volatile("movq %%rsp, %%xmm0; mov %%rsp, %0; movq %%xmm0, %%rsp; mov %%rsp, %1; "
			 "mov %0, %%rsp"
			 : "=&r"(rsp), "=&r"(seen));
	if (rsp != seen)
		return 1;
	__asm__ volatile("mov %1, %%r12; movq %%r12, %%xmm0; movq %%xmm0, %0"
			 : "=r"(other)
			 : "r"(r12)
			 : "r12");
	return other != r12;
}

/* pcmpestri reads eax and edx and writes ecx, which its encoding does not name. */
static int implicit_operands(struct vdev *d)
{
	u64 c = ~0ul, b = 0x5555;

	(void)d;
	__asm__ volatile("pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pcmpestri $8, %%xmm2, %%xmm1"
			 : "+c"(c), "+b"(b)
			 : "a"(16ul), "d"(16ul)
			 : "cc");
	return c != 0 || b != 0x5555;
}

/* Operands that cross the end of a page. */
static int over_pages(struct vdev *d)
{
	u64 place = (u64)at(BIG_BUFFER + 0x1000 - 8), low = 0x0123456789abcdef, back;

	(void)d;
	write64(place, low);
	write64(place + 8, ~low);
	__asm__ volatile("movdqu (%1), %%xmm3; movdqu %%xmm3, 64(%1); movq %%xmm3, %0"
			 : "=r"(back)
			 : "r"(place)
			 : "memory");
	return back != low || read64(place + 64) != low || read64(place + 72) != ~low;
}

static const struct attack attacks[] = {
	{ "simd number-four", PASS, number_four },
	{ "simd implicit-operands", PASS, implicit_operands },
	{ "simd over-pages", PASS, over_pages },
};

const struct attack_class simd_class = { "simd", ATTACKS(attacks), ON_NONE, simd_works };
